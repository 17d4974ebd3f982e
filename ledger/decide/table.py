"""TableIntent: a writer's request on a table, decided again on every newer state.

The first decision resolves every column path to field ids. When others won meanwhile, the intent
looks for a cell or file that both wanted, and is decided again with its paths following the ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from attrs import evolve
from msgspec.structs import replace

from ledger.decide.changes import (
    AllowIncompatibleChanges,
    CommitSnapshot,
    CreateTag,
    DropTable,
    OtherChange,
    ReplaceTag,
    SnapshotChange,
    TableChange,
)
from ledger.decide.commit_policies import Asker, refuse_commit
from ledger.decide.conflicts import FileWish, Needs, RecentlyTouched, contradicted, lost, taken
from ledger.decide.format_checks import (
    raised_rules,
    refuse_inexpressible,
    refuse_names,
    refuse_unknown,
)
from ledger.decide.format_rules import Formats, History
from ledger.decide.operation import Course, StateOperation
from ledger.decide.operations import BY_ASKED, operation
from ledger.decide.personal_columns import PERSONAL_OPTION, refuse_marks
from ledger.decide.table_decision import Decided, TableWishes
from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.events.schema import SetOption
from ledger.model.errors import (
    AlreadyExistsError,
    InvalidChangeError,
    NotFoundError,
    TableDroppedError,
)
from ledger.model.schema import Schema
from ledger.state.declared_formats import Rules
from ledger.state.owner import METADATA_OWNERS, OwnerKind, refuse_unservable
from ledger.state.stream import Landed
from ledger.state.table import TableState

Judged = Literal["now", "later"]
"""When rules are asked about what changes: on the state that the writer saw, or on the newest."""


class TableIntent:
    """One transaction's changes on their way into a table's log.

    Args:
        changes: What is asked, in order. SchemaChanges are decided as one batch, as Paimon does,
            before the rest.
        base: The state that the writer looked at. Contradictions to it are refused here.
        touched: What the winners touched, shared by all who ask.
        history: What the formats' rules have to know of the past.
        formats: The formats that there are.
        asker: Who wants it, for the table's own rules; None where nobody is to be judged.
        judged: "later" where others are on their way before it: what the rules say of changes of
            schema and layout is asked once, on what those make, and refusals then say nothing of
            the base.
    """

    def __init__(  # noqa: PLR0913 - what decides, and who asks
        self,
        changes: Sequence[TableChange],
        base: TableState,
        touched: RecentlyTouched,
        history: History,
        formats: Formats,
        *,
        asker: Asker | None = None,
        judged: Judged = "now",
    ) -> None:
        asked: list[Any] = [
            each for each in changes if not isinstance(each, AllowIncompatibleChanges)
        ]
        self._asked = asked
        self._allows_incompatible = len(asked) < len(changes)
        wishes: list[Any] = []
        self._others: list[OtherChange] = []
        for each in asked:
            if isinstance(BY_ASKED.get(type(each)), StateOperation):
                self._others.append(_pinned(each, base))
            else:
                wishes.append(each)
        self._wishes = TableWishes(wishes, base.schema.highest_field_id)
        self._touched = touched
        self._history = history
        self._formats = formats
        self._asker = asker
        # Nobody asks for it before the first loss, and most writers never lose.
        self._needed: Needs | None = None
        self._wanted: FileWish | None = None
        self._spared: dict[int, Commit[TableEvent]] = {}
        self.base_version = base.version
        self._base = base
        is_plain = (
            not base.origin.names_schemas
            and not base.dropped
            and all(map(_claims_nothing, self._others))
        )
        self.is_judged = judged == "now" or not is_plain
        self._first = self._on(base) if self.is_judged else self._resolved(base)

    def _needs(self) -> Needs:
        """Return what has to be as it was at the base."""
        if isinstance(self._first, Landed):
            return Needs()
        anchors = self._wishes.anchors or ()
        asked = self._wishes.schema if anchors else ()
        return Needs.of(self._first, asked, anchors, self._base.schema.highest_field_id)

    def meet(self, winners: Sequence[Commit[TableEvent]]) -> None:
        """See `Intent`: finds out what they touched."""
        needed, wanted = self._unchanged()
        for commit in winners if needed.cells or wanted is not None else ():
            if self._touched.left(wanted, commit) is not None:
                self._touched.by(commit).read_files()
            elif needed.cells:
                self._touched.by(commit)
            else:
                self._spared[commit.version] = commit

    def decide(
        self, state: TableState | None, winners: Sequence[Commit[TableEvent]]
    ) -> tuple[TableEvent, ...] | Landed:
        """Return the events that the changes become on `state`; see `Intent`."""
        if state is None:
            raise NotFoundError("the table has no version 0; create it first")
        if state.version == self.base_version:
            return self._first if self.is_judged else self._judged(state)
        landed = self._landed_in(winners)
        if landed is not None:
            return landed
        self._refuse_conflicts(state, winners)
        try:
            return self._on(state)
        except TableDroppedError:
            raise
        except (InvalidChangeError, NotFoundError, AlreadyExistsError) as error:
            if not self.is_judged:
                raise
            raise lost(self._base, winners, error, self._is_refused) from error

    def _is_refused(self, state: TableState) -> bool:
        try:
            self._on(state)
        except (InvalidChangeError, NotFoundError, AlreadyExistsError):
            return True
        return False

    def _on(self, state: TableState) -> tuple[TableEvent, ...] | Landed:
        if not state.dropped:
            self._refuse_of_owner(state)
            events = tuple(self._decide(state))
            if self._asker is not None:
                refuse_commit(state, events, self._asker)
            return events
        if any(isinstance(each, DropTable) for each in self._others):
            # Nothing follows a seal, so it stands at the newest version.
            return Landed(state.version)
        raise TableDroppedError("the table was dropped; open its name again to see what is there")

    def _resolved(self, base: TableState) -> tuple[TableEvent, ...]:
        self._refuse_of_owner(base)
        if not self._wishes:
            return ()
        rules = partial(self._rules, base)
        return self._wishes.resolve(base, rules, self._history).events

    def _judged(self, base: TableState) -> tuple[TableEvent, ...] | Landed:
        # As if it had not been looked at.
        self._wishes.anchors = None
        return self._on(base)

    def _refuse_of_owner(self, state: TableState) -> None:
        """Refuse what the table's owner does not let the library do.

        Data of a served table comes through manifests, by another request than a list of files.
        """
        owner = state.owner
        if owner.kind == "ledger" or all(owner.kind in _owners(each) for each in self._asked):
            return
        if owner.kind == "served":
            raise InvalidChangeError(
                f"the table is served: engines commit its data through the {owner.protocol} "
                f"protocol since version {owner.since_version}, and no list of data files can be "
                "committed here. Commit through the server, or take the table back first "
                "(lakeledger serve-table TABLE --back, or Table.stop_serving)",
                kind="SERVED",
            )
        origin = state.origin
        marks = any(isinstance(e, SetOption) and e.key == PERSONAL_OPTION for e in self._asked)
        there = f"set the property {PERSONAL_OPTION} there" if marks else "change it there"
        raise InvalidChangeError(
            f"the table follows {origin.source}, which others own, and takes no commits of "
            f"its own: {there}, then take over what is new (lakeledger import "
            f"{origin.format_name}), "
            "or let the ledger own it from now on (lakeledger promote)",
            kind="MIRRORED",
        )

    def _decide(self, state: TableState) -> Iterator[TableEvent]:
        schema = state.schema
        asks = False
        if self._wishes:
            decided = self._decide_table(state)
            yield from decided.events
            schema, asks = decided.batch.schema, bool(decided.events)
            facts = state.origin.schema_facts(state.schema, schema)
            yield from facts.events
            if facts.schema_id != schema.id:
                schema = evolve(schema, id=facts.schema_id)
        for row, event in self._decide_others(state, schema) if self._others else ():
            asks = asks or row.asks_formats
            yield event
        if asks:
            raised = raised_rules(schema.options, state, self._formats)
            if raised is not None:
                yield raised

    def _decide_others(
        self, state: TableState, schema: Schema
    ) -> Iterator[tuple[StateOperation, TableEvent]]:
        """Yield what the changes become that come after those of the schema and the layout."""
        course = Course(
            state,
            schema,
            state.origin.last_used_id(state),
            state.totals.record_count,
            state.version == self.base_version,
            self._formats,
            self._refuse_names,
        )
        for change in self._others:
            row = operation(change, StateOperation)
            event = row.decide(course, change)
            if event is not None:
                yield row, event

    def _decide_table(self, state: TableState) -> Decided:
        """Return what changes the schema and the layout."""
        decided = self._wishes.decide(state, partial(self._rules, state), self._history)
        if decided.events:
            refuse_marks(
                decided.batch.schema, state.schema.options, is_erasable=state.keeps_outside
            )
            refuse_inexpressible(decided.batch, self._formats)
        return decided

    def _rules(self, state: TableState, options: Mapping[str, str]) -> Rules:
        refuse_unknown(options, state.schema.options, self._formats)
        if state.owner.protocol is not None:
            refuse_unservable(options, state.owner.protocol)
        return Rules.of(options, allow_incompatible=self._allows_incompatible)

    def _refuse_names(self, state: TableState, schema: Schema, change: SnapshotChange) -> None:
        if change.files:
            refuse_names(schema, change.files, state, self._history, self._formats)

    def _unchanged(self) -> tuple[Needs, FileWish | None]:
        if self._needed is None:
            self._wanted = FileWish.of(self._others, self._touched.named)
            self._needed = self._needs()
        return self._needed, self._wanted

    def _refuse_conflicts(self, state: TableState, winners: Sequence[Commit[TableEvent]]) -> None:
        needed, wanted = self._unchanged()
        cells, schema = needed.cells, self._base.schema
        for commit in winners if cells or wanted is not None else ():
            if self._spared.get(commit.version) is commit:
                continue
            left = self._touched.left(wanted, commit)
            if left is None and not cells:
                continue
            touch = self._touched.by(commit).first(cells, left, state)
            if touch is not None:
                raise taken(touch, commit, cells.get(touch.cell), schema, state.schema)
        found = contradicted(needed, winners, self._touched, state)
        if found is not None:
            commit, touch, value = found
            raise taken(touch, commit, value, schema, state.schema)

    def _landed_in(self, winners: Sequence[Commit[TableEvent]]) -> Landed | None:
        """Return the winner that is this very snapshot, committed by another attempt of its job."""
        keys = {each.key for each in self._others if isinstance(each, CommitSnapshot)}
        keys.discard(None)
        for commit in winners if keys else ():
            if not keys.isdisjoint(self._touched.by(commit).snapshot_keys):
                return Landed(commit.version)
        return None


def _owners(change: TableChange) -> frozenset[OwnerKind]:
    """Return the owners of a table under which a change may be asked."""
    row = BY_ASKED.get(type(change))
    return row.owners if isinstance(row, StateOperation) else METADATA_OWNERS


def _claims_nothing(change: OtherChange) -> bool:
    """Whether a change has its needs from what is asked, and not from what is decided at first."""
    return isinstance(change, CommitSnapshot) and change.branch is None


def _pinned(change: OtherChange, base: TableState) -> OtherChange:
    """Return the change with "the newest snapshot" said by its id: the one that the writer saw."""
    if isinstance(change, CreateTag | ReplaceTag) and change.snapshot_id is None:
        return replace(change, snapshot_id=base.last_snapshot_id or None)
    return change
