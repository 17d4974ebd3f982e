"""Views between their record and their value, and what changes make of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from ledger.events.catalog_events import (
    AddDialect,
    DropDialect,
    UpdateDialect,
    ViewChange,
    ViewRecord,
)
from ledger.events.schema_changes import RemoveOption, SetOption, UpdateComment
from ledger.model.errors import InvalidChangeError
from ledger.model.similar import meant
from ledger.model.types.wire import field_from_wire, field_to_wire
from ledger.model.view import ViewSchema


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


def altered_view(view: ViewSchema, changes: Iterable[ViewChange]) -> ViewSchema:
    """Return a view after changes, one after the other.

    Raises:
        InvalidChangeError: A dialect is added that is there, or updated or dropped that is not.

    Example:
        >>> altered_view(ViewSchema((), "SELECT 1"), [AddDialect("spark", "SELECT 1L")]).dialects
        {'spark': 'SELECT 1L'}
    """
    options, dialects, comment = dict(view.options), dict(view.dialects), view.comment
    for change in changes:
        match change:
            case SetOption(key=key, value=value):
                options[key] = value
            case RemoveOption(key=key):
                options.pop(key, None)
            case UpdateComment(comment=comment):
                pass
            case AddDialect(dialect=dialect, query=query):
                if dialect in dialects:
                    raise InvalidChangeError(f"dialect {dialect!r} is there; update it instead")
                dialects[dialect] = query
            case UpdateDialect(dialect=dialect, query=query):
                _dialect_is_there(dialect, dialects)
                dialects[dialect] = query
            case DropDialect(dialect=dialect):
                _dialect_is_there(dialect, dialects)
                del dialects[dialect]
            case _:
                assert_never(change)
    return ViewSchema(
        view.fields,
        view.query,
        dict(sorted(dialects.items())),
        comment,
        dict(sorted(options.items())),
    )


def _dialect_is_there(dialect: str, dialects: dict[str, str]) -> None:
    if dialect not in dialects:
        raise InvalidChangeError(
            f"dialect {dialect!r} does not exist: add it, or {meant(dialect, sorted(dialects))}"
        )


def view_cell(change: ViewChange) -> str:
    """Return the name of what a change sets: `option K`, `dialect D` or `comment`."""
    match change:
        case SetOption(key=key) | RemoveOption(key=key):
            return f"option {key}"
        case UpdateComment():
            return "comment"
        case AddDialect(dialect=dialect) | UpdateDialect(dialect=dialect):
            return f"dialect {dialect}"
        case DropDialect(dialect=dialect):
            return f"dialect {dialect}"
        case _:
            assert_never(change)


def view_cells(view: ViewSchema) -> dict[str, str | None]:
    """Return every cell of a view that changes can set, by name; an absent one is not set."""
    cells: dict[str, str | None] = {"comment": view.comment}
    cells.update({f"option {key}": value for key, value in view.options.items()})
    cells.update({f"dialect {name}": query for name, query in view.dialects.items()})
    return cells


def asked_cells(changes: Iterable[ViewChange]) -> dict[str, str | None]:
    """Return the value that each changed cell has in the end; None where it goes."""
    cells: dict[str, str | None] = {}
    for change in changes:
        match change:
            case SetOption(value=value):
                cells[view_cell(change)] = value
            case UpdateComment(comment=comment):
                cells[view_cell(change)] = comment
            case AddDialect(query=query) | UpdateDialect(query=query):
                cells[view_cell(change)] = query
            case RemoveOption() | DropDialect():
                cells[view_cell(change)] = None
            case _:
                assert_never(change)
    return cells
