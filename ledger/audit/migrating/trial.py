"""What a batch of changes would make of a state, without any table."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from attrs import frozen
from msgspec import UNSET

from ledger.events import SchemaChange, SpecChange, TableEvent
from ledger.events.commit import FORMAT, Commit, Outside, Transaction
from ledger.evolution.declared.format import Reach
from ledger.evolution.declared.names import BoundNames
from ledger.evolution.declared.rules import Rules
from ledger.evolution.fold.table_builder import TableBuilder
from ledger.evolution.state import TableState
from ledger.evolution.table.decision import TableWishes
from ledger.evolution.tree.past import PastColumns
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema


@frozen
class _NoPast:
    """The past of a table that nobody asks for it, but for the columns that it had."""

    _past: PastColumns

    def schemas(self, _schema_ids: Collection[int]) -> list[Schema]:
        return []

    def names(self, _state: TableState, _more: Collection[int]) -> BoundNames:
        return BoundNames()

    def holds(self, _state: TableState, _schema_id: int) -> bool:
        return False

    def columns(self, _state: TableState) -> PastColumns:
        return self._past

    def live(self, _state: TableState) -> Collection[FileChange]:
        return ()

    def reach(self, _state: TableState) -> Reach:
        return Reach()


def tried(
    state: TableState,
    changes: Sequence[SchemaChange | SpecChange],
    past: PastColumns | None = None,
) -> TableState:
    """Return the state that changes lead to, by the rules that its options declare.

    What a format refuses because of the table's files is not looked at.

    Args:
        state: The state.
        changes: One batch.
        past: The columns that the table had; None where nothing is known of them.

    Raises:
        InvalidChangeError: A rule forbids a change.
    """
    wishes = TableWishes(changes, state.schema.highest_field_id)
    return folded(state, wishes.decide(state, Rules.of, _NoPast(past or PastColumns())).events)


def folded(state: TableState, events: Sequence[TableEvent]) -> TableState:
    """Return the state after some facts; its version and times are of no meaning."""
    if not events:
        return state
    builder = TableBuilder(state)
    transaction: Transaction[TableEvent] = Transaction(
        id="trial",
        asked="",
        outside=Outside() if state.keeps_outside else UNSET,
        events=tuple(events),
    )
    builder.commit(
        Commit(
            format=FORMAT,
            version=state.version + 1,
            time_millis=state.time_millis + 1,
            transactions=(transaction,),
        )
    )
    return builder.freeze()
