"""Cells: what an event sets, and what it needs unchanged, so that conflicts are found by meaning.

A cell is a field id and an aspect, an option, the comment, a tag, ... Two events conflict when one
claims a cell that the other set to another value. An equal value is no conflict, and events that
share no cell commute.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ledger.events import TableEvent
from ledger.evolution.columns.draft import Anchor
from ledger.evolution.columns.operations import ROOT
from ledger.evolution.operation import Cell
from ledger.evolution.operations import BY_FACT
from ledger.model.schema import Schema
from ledger.model.types import DataField, DataType
from ledger.model.types.walk import parts_of, walk_fields

__all__ = ["Cell", "cell_name", "claims", "existence", "holder", "sets"]


def cell_name(cell: Cell) -> str:
    """Return a cell's name for people: `column 4 name`, `option bucket`, `tag v1`."""
    return " ".join(str(each) for each in cell)


def sets(event: TableEvent) -> Iterator[tuple[Cell, Any]]:
    """Yield the cells that an event sets, with their values."""
    return BY_FACT[type(event)].sets(event)


def claims(event: TableEvent) -> Iterator[tuple[Cell, Any]]:
    """Yield the cells that must not have been set to another value meanwhile."""
    return BY_FACT[type(event)].claims(event)


def holder(cell: Cell, schema: Schema) -> int | None:
    """Return the id of the column that has the name which a `name` cell is about; None if free."""
    _, owner, name = cell
    members: Iterable[DataField] = schema.fields
    if owner != ROOT:
        around = next((each for each in walk_fields(schema.fields) if each.id == owner), None)
        members = () if around is None else _members(around.type)
    return next((each.id for each in members if each.name == name), None)


def _members(data_type: DataType) -> Iterator[DataField]:
    """Yield a ROW's members, through the lists and maps around it."""
    for each in parts_of(data_type):
        if each.field is not None:
            yield each.field
        elif each.name != "key":
            yield from _members(each.type)


def existence(anchor: Anchor) -> Iterator[tuple[Cell, Any]]:
    """Yield that the columns exist which a change goes through, acts on, refers to or names."""
    for field_id in (*anchor.ids, anchor.reference_id, *anchor.named):
        if field_id is not None:
            yield ("column", field_id, "exists"), True
