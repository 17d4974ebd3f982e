"""TableIntent: what a writer wants of a table, decided on whatever state it meets.

The first decision resolves every column path to field ids. When others won meanwhile, the intent
looks for a cell or file that both wanted, and is decided again with its paths following the ids.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from typing import assert_never

from attrs import evolve

from ledger.events import TableEvent
from ledger.events.clock_events import ClockCorrected
from ledger.events.commit import Commit
from ledger.events.schema_changes import RemoveOption, SetOption
from ledger.events.snapshot_events import SnapshotsExpired
from ledger.events.statistics_events import PartitionStatisticsSet
from ledger.events.table_events import TableDropped, TableName
from ledger.evolution.cells import Cell, cell_name, claims, existence
from ledger.evolution.decide_clock import CorrectClock, decide_clock
from ledger.evolution.decide_snapshot import (
    decide_expiry,
    decide_snapshot,
    decide_tag,
    is_named,
    tag_holds,
)
from ledger.evolution.decide_statistics import decide_statistics
from ledger.evolution.file_wish import FileWish
from ledger.evolution.legality import History, refuse_inexpressible, refuse_names
from ledger.evolution.rules import Rules
from ledger.evolution.snapshot_keys import snapshot_key
from ledger.evolution.state import TableState
from ledger.evolution.stream import Landed
from ledger.evolution.table_changes import (
    AllowIncompatibleChanges,
    CommitSnapshot,
    CreateTag,
    DeleteTag,
    DropTable,
    ExpireSnapshots,
    OtherChange,
    ReplaceTag,
    Rollback,
    SetPartitionStatistics,
    TableChange,
)
from ledger.evolution.table_decision import TableWishes
from ledger.evolution.touched import RecentlyTouched, Touch
from ledger.model.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidChangeError,
    NotFoundError,
    TableDroppedError,
)
from ledger.model.schema import Schema


class TableIntent:
    """One transaction's changes on their way into a table's log.

    Args:
        changes: What is asked, in order. SchemaChanges are decided as one batch, as Paimon does,
            before the rest.
        base: The state that the writer looked at. Contradictions to it are refused here.
        touched: What the winners touched, shared by all who ask.
        history: What the formats' rules have to know of the past.
    """

    def __init__(
        self,
        changes: Sequence[TableChange],
        base: TableState,
        touched: RecentlyTouched,
        history: History,
    ) -> None:
        asked = [each for each in changes if not isinstance(each, AllowIncompatibleChanges)]
        self._allows_incompatible = len(asked) < len(changes)
        self._others = [_pinned(each, base) for each in asked if isinstance(each, _OTHERS)]
        self._wishes = TableWishes(
            (each for each in asked if not isinstance(each, _OTHERS)),
            base.schema.highest_field_id,
        )
        self._touched = touched
        self._history = history
        # Nobody asks for it before the first loss, and most writers never lose.
        self._claimed: dict[Cell, object] | None = None
        self._wanted: FileWish | None = None
        self.base_version = base.version
        self._highest = base.schema.highest_field_id
        self._first = self._on(base)

    def _claims(self) -> dict[Cell, object]:
        """Return the cells that this intent needs as they were at the base.

        Ids above the base's highest were given out by the intent itself; another writer's mean
        other things.
        """
        if isinstance(self._first, Landed):
            return {}
        asked = {each.key for each in self._wishes.schema if isinstance(each, _OPTION_CHANGES)}
        claimed: dict[Cell, object] = {}
        for anchor in self._wishes.anchors or ():
            claimed.update(existence(anchor))
        for event in self._first:
            # What Paimon derives from a change is derived again, on whatever stands there then.
            if isinstance(event, _OPTION_CHANGES) and event.key not in asked:
                continue
            claimed.update(claims(event))
        return {
            cell: _own(value, self._highest) if cell[0] in _OF_COLUMNS else value
            for cell, value in claimed.items()
            if cell[0] not in {"column", "name"} or cell[1] <= self._highest
        }

    def decide(
        self, state: TableState | None, winners: Sequence[Commit[TableEvent]]
    ) -> tuple[TableEvent, ...] | Landed:
        """Return the events that the changes become on `state`; see `Intent`."""
        if state is None:
            raise NotFoundError("the table has no version 0; create it first")
        if state.version == self.base_version:
            return self._first
        landed = self._landed_in(winners)
        if landed is not None:
            return landed
        self._refuse_conflicts(state, winners)
        try:
            return self._on(state)
        except TableDroppedError:
            raise
        except (InvalidChangeError, NotFoundError, AlreadyExistsError) as error:
            raise _lost(winners, error) from error

    def _on(self, state: TableState) -> tuple[TableEvent, ...] | Landed:
        if not state.dropped:
            return tuple(self._decide(state))
        if any(isinstance(each, DropTable) for each in self._others):
            # Nothing follows a seal, so it stands at the newest version.
            return Landed(state.version)
        raise TableDroppedError("the table was dropped; open its name again to see what is there")

    def _decide(self, state: TableState) -> Iterator[TableEvent]:
        schema = state.schema
        if self._wishes:
            schema = yield from self._decide_table(state)
        snapshot_id = state.last_snapshot_id
        records = state.totals.record_count
        for change in self._others:
            match change:
                case CommitSnapshot() | Rollback():
                    self._refuse_names(state, schema, change)
                    snapshot_id += 1
                    event = decide_snapshot(
                        state,
                        change,
                        snapshot_id=snapshot_id,
                        schema_id=schema.id,
                        records=records,
                    )
                    records = event.total_record_count
                    yield event
                case CreateTag() | ReplaceTag() | DeleteTag():
                    if state.version == self.base_version or not tag_holds(state, change):
                        yield decide_tag(state, change)
                case ExpireSnapshots() | SetPartitionStatistics() | CorrectClock():
                    decided = _decided(state, change)
                    if decided is not None:
                        yield decided
                case DropTable(database=database, name=name):
                    yield TableDropped(
                        identifier=TableName(database, name), table_id=state.table_id
                    )
                case _:
                    assert_never(change)

    def _decide_table(self, state: TableState) -> Generator[TableEvent, None, Schema]:
        """Yield what changes the schema and the layout; return the schema afterwards."""
        decided = self._wishes.decide(state, self._rules, self._history)
        yield from decided.events
        refuse_inexpressible(decided.batch)
        return decided.batch.schema

    def _rules(self, options: Mapping[str, str]) -> Rules:
        return Rules.of(options, allow_incompatible=self._allows_incompatible)

    def _refuse_names(
        self, state: TableState, schema: Schema, change: CommitSnapshot | Rollback
    ) -> None:
        named = {each.schema_id for each in change.files if is_named(each)} - {schema.id}
        if named and self._rules(schema.options).iceberg:
            refuse_names(schema, named, state, self._history)

    def _refuse_conflicts(self, state: TableState, winners: Sequence[Commit[TableEvent]]) -> None:
        if self._claimed is None:
            self._claimed = self._claims()
            self._wanted = FileWish.of(self._others)
        if not self._claimed and self._wanted is None:
            return
        for commit in winners:
            touch = self._touched.by(commit).first(self._claimed, self._wanted, state)
            if touch is not None:
                raise _taken(touch, commit.version)

    def _landed_in(self, winners: Sequence[Commit[TableEvent]]) -> Landed | None:
        """Return the winner that is this very snapshot, committed by another attempt of its job."""
        keys = {snapshot_key(each) for each in self._others if isinstance(each, CommitSnapshot)}
        keys.discard(None)
        for commit in winners if keys else ():
            if not keys.isdisjoint(self._touched.by(commit).snapshot_keys):
                return Landed(commit.version)
        return None


_OTHERS = (
    CommitSnapshot,
    Rollback,
    CreateTag,
    ReplaceTag,
    DeleteTag,
    ExpireSnapshots,
    SetPartitionStatistics,
    CorrectClock,
    DropTable,
)


_OPTION_CHANGES = (SetOption, RemoveOption)

# Cells whose values may refer to columns; numbers in others are snapshots, sizes and times.
_OF_COLUMNS = {"column", "name", "identifierFields", "partitionSpec", "sortOrder"}


def _pinned(change: OtherChange, base: TableState) -> OtherChange:
    """Return the change with "the newest snapshot" said by its id: the one that the writer saw."""
    if isinstance(change, CreateTag | ReplaceTag) and change.snapshot_id is None:
        return evolve(change, snapshot_id=base.last_snapshot_id or None)
    return change


def _decided(
    state: TableState, change: ExpireSnapshots | SetPartitionStatistics | CorrectClock
) -> SnapshotsExpired | PartitionStatisticsSet | ClockCorrected | None:
    """Return what a change becomes; None when all of it holds already."""
    if isinstance(change, ExpireSnapshots):
        return decide_expiry(state, change)
    if isinstance(change, CorrectClock):
        return decide_clock(state, change)
    return decide_statistics(state, change)


def _own(value: object, highest: int) -> object:
    """Return a claimed value; one that refers to an own new column equals nobody else's."""
    match value:
        case tuple() if any(isinstance(each, tuple) and each[0] > highest for each in value):
            # A layout's fields begin with their sources.
            return object()
        case tuple() if any(isinstance(each, int) and each > highest for each in value):
            return object()
        case _:
            return value


def _taken(touch: Touch, version: int) -> CommitConflictError:
    """Return the refusal of what somebody else has set, brought or taken meanwhile."""
    author = touch.author or "somebody"
    if touch.file is None:
        subject = cell_name(touch.cell)
        told = f"{subject} was changed by {author} in version {version}; look at it, then ask again"
    else:
        subject = f"file {touch.file.path}"
        done = "added" if touch.file.kind == "ADD" else "removed"
        told = (
            f"{subject} was {done} by {author} in version {version}; read the table again and "
            "plan anew"
        )
    return CommitConflictError(told, subject, version, touch.author, touch.event)


def _facts(winners: Sequence[Commit[TableEvent]]) -> Iterator[tuple[int, str, TableEvent]]:
    for commit in winners:
        for transaction in commit.transactions:
            for event in transaction.events:
                yield commit.version, transaction.author, event


def _lost(winners: Sequence[Commit[TableEvent]], error: Exception) -> CommitConflictError:
    version, author, event = next(
        (each for each in reversed(list(_facts(winners)))),
        (winners[-1].version, "", None),
    )
    return CommitConflictError(
        f"{error} (since version {winners[0].version - 1}, which this was asked on; the newest "
        f"change is version {version} by {author or 'somebody'})",
        str(getattr(error, "kind", "state")),
        version,
        author,
        event,
    )
