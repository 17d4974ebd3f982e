"""ReplaceOrder: a table's new sort order, column by column, and then committed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Unpack

from attrs import evolve, frozen

from ledger.commit_options import CommitOptions
from ledger.events.spec_changes import ReplaceSortOrder, SortColumn
from ledger.evolution.state import TableState
from ledger.log.request import Appended
from ledger.model.errors import InvalidInputError
from ledger.model.partition import Direction, NullOrder, SortOrder
from ledger.transforms import Column, Term, term_of

if TYPE_CHECKING:
    from ledger.table import Table

Nulls = Literal["first", "last"]
_NULL_ORDERS: dict[str | None, NullOrder | None] = {
    None: None,
    "first": "nulls-first",
    "last": "nulls-last",
}


@frozen
class ReplaceOrder:
    """How rows of files written from now on are to be ordered; each call gives a new one.

    Without columns: not at all.

    Attributes:
        table: Whose order.
        columns: What was asked so far.

    Example:
        >>> import ledger
        >>> from ledger.transforms import day
        >>> lake = ledger.open("memory://replace-sort-order")
        >>> _ = lake.create_database("shop")
        >>> schema = ledger.Schema.of({"id": "BIGINT", "ts": "TIMESTAMP(6)"})
        >>> order = lake.create_table("shop.orders", schema).replace_sort_order()
        >>> order.asc("id", nulls="last").desc(day("ts")).apply().order_id
        1
    """

    table: Table
    columns: tuple[SortColumn, ...] = ()

    def asc(self, source: Term | Column, nulls: Nulls | None = None) -> ReplaceOrder:
        """Order by a column, or a transform of one, the least first; nulls first by default."""
        return self._with(source, "asc", nulls)

    def desc(self, source: Term | Column, nulls: Nulls | None = None) -> ReplaceOrder:
        """Order by a column, or a transform of one, the greatest first; nulls last by default."""
        return self._with(source, "desc", nulls)

    def _with(
        self, source: Term | Column, direction: Direction, nulls: Nulls | None
    ) -> ReplaceOrder:
        # A list cannot be looked up.
        if not any(nulls == each for each in _NULL_ORDERS):
            raise InvalidInputError(f"nulls={nulls!r} is no place for nulls; give first or last")
        term = term_of(source)
        column = SortColumn(term.source, term.transform, direction, _NULL_ORDERS[nulls])
        return evolve(self, columns=(*self.columns, column))

    @property
    def change(self) -> ReplaceSortOrder:
        """The change as `table.alter` takes it."""
        return ReplaceSortOrder(self.columns)

    def apply(self) -> SortOrder:
        """Return the order that would come out, without committing it.

        Raises:
            InvalidChangeError: A rule forbids a column.
        """
        plan = self.table.plan([self.change])
        for refusal in plan.refusals:
            raise refusal
        return plan.after.sort_order

    def commit(self, **options: Unpack[CommitOptions]) -> Appended[TableState]:
        """Commit the order.

        Raises:
            InvalidChangeError: A rule forbids a column; nothing was written.
            CommitConflictError: Somebody else set another order meanwhile.
            CommitUnknownError: The store gave no answer.
        """
        return self.table.alter([self.change], **options)
