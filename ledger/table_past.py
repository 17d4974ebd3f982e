"""TablePast: what the formats' rules have to know of a table's older schemas and files."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from attrs import field, frozen

from ledger.events.snapshot_events import RolledBack, SnapshotCommitted
from ledger.evolution.state import TableState
from ledger.evolution.stream import Postponed
from ledger.files.live import LiveFiles
from ledger.log.travel import head_state
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema
from ledger.snapshot_search import TableLog, schema_by_id, state_at_snapshot

if TYPE_CHECKING:
    from ledger.evolution.legality import Reach


@frozen(eq=False)
class TablePast:
    """A table's past, read from its log when it is asked for."""

    _log: TableLog
    _live: LiveFiles
    _schemas: dict[int, Schema] = field(factory=dict, init=False)

    def schemas(self, schema_ids: Collection[int]) -> list[Schema]:
        """Return some schemas, oldest first."""
        for each in schema_ids:
            if each > head_state(self._log).schema.id:
                raise Postponed
            if each not in self._schemas:
                self._schemas[each] = schema_by_id(self._log, each)
        return [self._schemas[each] for each in sorted(schema_ids)]

    def reach(self, state: TableState) -> Reach:
        """Return what the snapshots hold that can be read at a state, tagged ones included.

        Reads every file change that is live in one of them.
        """
        from ledger.evolution.decide_snapshot import is_named
        from ledger.evolution.legality import Reach

        if state.snapshot is None:
            return Reach()
        if state.version > head_state(self._log).version:
            raise Postponed
        first = self._state_at(state, state.earliest_snapshot_id)
        starts = [first] + [
            self._state_at(state, tag.snapshot_id)
            for tag in state.tags.values()
            if tag.snapshot_id < state.earliest_snapshot_id
        ]
        files: list[FileChange] = []
        for each in starts:
            files += self._live.at_state(each).values()
        later = self._live.snapshot_changes(
            first.last_snapshot_id + 1, state.last_snapshot_id, first.version, state.version
        )
        files += (each.change for each in later if each.change.kind == "ADD")
        written = {each.snapshot.schema_id for each in starts if each.snapshot is not None}
        return Reach(
            files=tuple(files),
            schema_ids=frozenset(
                written.union(
                    (each.schema_id for each in files),
                    self._snapshot_schemas(first.version, state.version),
                )
            ),
            named_schema_ids=frozenset(each.schema_id for each in files if is_named(each)),
            spec_ids=frozenset(each.spec_id for each in files),
        )

    def _state_at(self, state: TableState, snapshot_id: int) -> TableState:
        if snapshot_id == state.last_snapshot_id:
            return state
        return state_at_snapshot(self._log, snapshot_id)

    def _snapshot_schemas(self, first: int, last: int) -> set[int]:
        return {
            event.schema_id
            for read in (self._log.commits(first, last) if first <= last else ())
            for transaction in read.commit.transactions
            for event in transaction.events
            if isinstance(event, SnapshotCommitted | RolledBack)
        }
