"""Schema changes of a branch, validated as those of the main line, on the branch's own schemas."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from attrs import frozen

from ledger.decide.conflicts import RecentlyTouched
from ledger.decide.format_rules import BoundNames, MemberMisfit, ReadableReach
from ledger.decide.table import TableIntent
from ledger.events import TableEvent
from ledger.events.schema import SchemaChange
from ledger.formats import INSTALLED
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema
from ledger.state.columns import PastColumns
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.stream import AlreadyCommitted
from ledger.state.table import TableState


@frozen
class BranchHistory:
    """The history of a branch, as its files have it; see `ledger.decide.format_rules.History`.

    Rules that need live files concern formats that are declared later, which engines cannot do.

    Attributes:
        origin: The branch's origin.
    """

    origin: PaimonOrigin

    def schemas(self, schema_ids: Collection[int]) -> list[Schema]:
        """Return some schemas, oldest first."""
        return [self.origin.schema(each) for each in sorted(schema_ids)]

    def names(self, state: TableState, more: Collection[int]) -> BoundNames:
        """Return the names of some schemas."""
        del state
        found = BoundNames()
        for each in self.schemas(more):
            found.add(each)
        return found

    def holds(self, state: TableState, schema_id: int) -> bool:
        """Return False: no file is read."""
        del state, schema_id
        return False

    def live(self, state: TableState) -> Collection[FileChange]:
        """Return no files: the engines' manifests list them."""
        del state
        return ()

    def reach(self, state: TableState) -> ReadableReach:
        """Return the schemas of the snapshots."""
        del state
        readable = self.origin.readable_snapshots.values()
        return ReadableReach(schema_ids=frozenset(each.schema_id for each in readable))

    def columns(self, state: TableState) -> PastColumns:
        """Return every column of the branch's schemas."""
        del state
        newest_first = sorted(self.origin.schemas, reverse=True)
        return PastColumns(map(self.origin.schema, newest_first), lambda _: True)

    def member_misfits(
        self, files: Collection[FileChange], schemas: Mapping[int, Schema]
    ) -> Iterator[MemberMisfit]:
        """Yield nothing: no file is read."""
        del files, schemas
        return iter(())


def decide_branch_changes(
    state: TableState, changes: Sequence[SchemaChange]
) -> tuple[TableEvent, ...] | AlreadyCommitted:
    """Return the events of changes on a branch, with the id of the new schema.

    Args:
        state: The branch as a table.
        changes: The changes, in order.

    Raises:
        InvalidChangeError: A rule forbids a change.
    """
    history = BranchHistory(state.origin_of_kind(PaimonOrigin))
    touched = RecentlyTouched(lambda *_: ())
    return TableIntent(changes, state, touched, history, INSTALLED).decide(state, ())
