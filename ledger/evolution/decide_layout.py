"""From what is asked of partition specs and sort orders to the facts, every id resolved."""

from __future__ import annotations

from ledger.events.spec_changes import ReplaceSortOrder, SpecChange, UpdatePartitionSpec
from ledger.events.spec_events import PartitionSpecUpdated, SortOrderReplaced
from ledger.evolution.layout_fold import LayoutTrail
from ledger.evolution.rules import Rules
from ledger.evolution.schema_paths import dotted
from ledger.model.errors import ColumnNotFoundError, UnsupportedError
from ledger.model.field_ids import walk_fields
from ledger.model.schema import Schema
from ledger.model.types import DataField, RowType


class Sources:
    """Finds the columns that a layout is made of; once found, they are followed by id.

    Args:
        highest: The highest field id that the writer saw. Columns above it are its own new ones,
            whose ids may be others when the change is decided again.
    """

    def __init__(self, highest: int) -> None:
        self._highest = highest
        self._pins: dict[tuple[str, ...], int] = {}

    def find(self, schema: Schema, path: tuple[str, ...]) -> DataField:
        """Return the column at a path, or what it has become since it was found first.

        Raises:
            ColumnNotFoundError: There is none, or it is gone.
        """
        pinned = self._pins.get(path)
        if pinned is None:
            found = _at(schema, path)
            if found.id <= self._highest:
                self._pins[path] = found.id
            return found
        for each in walk_fields(schema.fields):
            if each.id == pinned:
                return each
        raise ColumnNotFoundError(f"column {dotted(path)} does not exist any more")


def _at(schema: Schema, path: tuple[str, ...]) -> DataField:
    members, found = schema.fields, None
    for name in path:
        found = next((each for each in members if each.name == name), None)
        if found is None:
            break
        members = found.type.fields if isinstance(found.type, RowType) else ()
    if found is None:
        raise ColumnNotFoundError(
            f"column {dotted(path)} does not exist; there are: {list(schema.names)}"
        )
    return found


def decide_layout(
    layout: LayoutTrail, change: SpecChange, *, schema: Schema, sources: Sources, rules: Rules
) -> PartitionSpecUpdated | SortOrderReplaced | None:
    """Return the fact that a change of layout becomes; None when everything is so already.

    Args:
        layout: The specs and orders at this point of the transaction.
        change: What is asked.
        schema: The schema at this point of the transaction.
        sources: Finds columns.
        rules: Whose rules apply.

    Raises:
        InvalidChangeError: A rule forbids it.
    """
    match change:
        case UpdatePartitionSpec():
            raise UnsupportedError("not yet")
        case ReplaceSortOrder():
            raise UnsupportedError("not yet")
