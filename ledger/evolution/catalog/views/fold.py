"""What changes make of a view. Frozen: how written events fold never changes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import assert_never

from ledger.events.catalog_events import AddDialect, DropDialect, UpdateDialect, ViewChange
from ledger.events.schema_changes import RemoveOption, SetOption, UpdateComment
from ledger.model.errors import InvalidChangeError
from ledger.model.messages.similar import meant
from ledger.model.schema import ViewSchema


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
