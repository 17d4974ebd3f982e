"""Views between their record and their value, and what changes of them set, cell by cell."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct

from ledger.events.catalog_events import (
    AddDialect,
    DropDialect,
    UpdateDialect,
    ViewChange,
    ViewRecord,
)
from ledger.events.schema_changes import RemoveOption, SetOption, UpdateComment
from ledger.model.schema import ViewSchema
from ledger.model.types.wire import field_from_wire, field_to_wire


def view_from_record(record: ViewRecord) -> ViewSchema:
    """Return the view that a record holds.

    Raises:
        InvalidTypeError: A column's type is not valid.
    """
    return ViewSchema(
        fields=tuple(field_from_wire(each) for each in record.fields),
        query=record.query,
        dialects=dict(sorted(record.dialects.items())),
        comment=record.comment,
        options=dict(sorted(record.options.items())),
    )


def view_to_record(view: ViewSchema) -> ViewRecord:
    """Return the record of a view."""
    return ViewRecord(
        fields=tuple(field_to_wire(each) for each in view.fields),
        query=view.query,
        dialects=dict(sorted(view.dialects.items())),
        comment=view.comment,
        options=dict(sorted(view.options.items())),
    )


class ViewOperation(Struct, frozen=True, kw_only=True):
    """A kind of change of a view.

    Attributes:
        cell: The name of what a change sets.
        value: What it sets the cell to; None where it goes.
        dialect: Whether the dialect that it names has to be `there` before, or `absent`; None
            where it names none.
    """

    cell: Callable[[Any], str]
    value: Callable[[Any], str | None]
    dialect: Literal["there", "absent"] | None = None


def _option(change: SetOption | RemoveOption) -> str:
    return f"option {change.key}"


def _dialect(change: AddDialect | UpdateDialect | DropDialect) -> str:
    return f"dialect {change.dialect}"


VIEW_OPERATIONS: Mapping[type, ViewOperation] = {
    SetOption: ViewOperation(cell=_option, value=lambda change: change.value),
    RemoveOption: ViewOperation(cell=_option, value=lambda _: None),
    UpdateComment: ViewOperation(cell=lambda _: "comment", value=lambda change: change.comment),
    AddDialect: ViewOperation(cell=_dialect, value=lambda change: change.query, dialect="absent"),
    UpdateDialect: ViewOperation(cell=_dialect, value=lambda change: change.query, dialect="there"),
    DropDialect: ViewOperation(cell=_dialect, value=lambda _: None, dialect="there"),
}
"""One row a kind of change."""


def view_cell(change: ViewChange) -> str:
    """Return the name of what a change sets: `option K`, `dialect D` or `comment`."""
    return VIEW_OPERATIONS[type(change)].cell(change)


def asked_cells(changes: Iterable[ViewChange]) -> dict[str, str | None]:
    """Return the value that each changed cell has in the end; None where it goes."""
    return {view_cell(each): VIEW_OPERATIONS[type(each)].value(each) for each in changes}


def view_cells(view: ViewSchema) -> dict[str, str | None]:
    """Return every cell of a view that changes can set, by name; an absent one is not set."""
    cells: dict[str, str | None] = {"comment": view.comment}
    cells.update({f"option {key}": value for key, value in view.options.items()})
    cells.update({f"dialect {name}": query for name, query in view.dialects.items()})
    return cells
