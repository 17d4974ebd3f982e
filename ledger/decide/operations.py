"""Registry of every operation on a table, by request and by event.

It also has the display texts of the events of both streams.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from ledger.decide.catalog_facts import CATALOG_FACTS
from ledger.decide.imported_operations import ORIGIN_OPERATIONS
from ledger.decide.layout import LAYOUT_OPERATIONS
from ledger.decide.operation import LayoutOperation, Operation, SchemaOperation, StateOperation
from ledger.decide.schema_operations import COLUMN_OPERATIONS, OPTION_OPERATIONS
from ledger.decide.snapshot_operations import TABLE_OPERATIONS
from ledger.events import TableEvent
from ledger.model.errors import InvalidChangeError
from ledger.model.messages import excerpt

OPERATIONS: tuple[Operation, ...] = (
    *COLUMN_OPERATIONS,
    *OPTION_OPERATIONS,
    *LAYOUT_OPERATIONS,
    *TABLE_OPERATIONS,
    *ORIGIN_OPERATIONS,
)

BY_FACT: Mapping[type, Operation] = {kind: each for each in OPERATIONS for kind in each.facts}
"""The row of each kind of event in a table's stream."""

BY_ASKED: Mapping[type, Operation] = {
    each.asked: each for each in OPERATIONS if each.asked is not None
}
"""The row of each kind of change."""


def in_words(change: Any) -> str:
    """Return the display text of a change or an event; its class's name where it has no row.

    Example:
        >>> from ledger.events.schema import RenameColumn
        >>> in_words(RenameColumn(("addr",), "address"))
        'renamed column addr to address'
    """
    kind = type(change)
    row = BY_FACT.get(kind) or CATALOG_FACTS.get(kind) or BY_ASKED.get(kind)
    return kind.__name__ if row is None else row.says(change)


_PLANNED = {
    "added": "will add",
    "allowed": "will allow",
    "changed": "will change",
    "commented": "will comment",
    "created": "will create",
    "deleted": "will delete",
    "dropped": "will drop",
    "files": "files will be",
    "forbade": "will forbid",
    "moved": "will move",
    "removed": "will remove",
    "renamed": "will rename",
    "replaced": "will replace",
    "restored": "will restore",
    "set": "will set",
    "tagged": "will tag",
}


def planned_words(change: Any) -> str:
    """Return the display text of a change or an event that has not been committed.

    Example:
        >>> from ledger.events.schema import RenameColumn
        >>> planned_words(RenameColumn(("addr",), "address"))
        'will rename column addr to address'
    """
    words = in_words(change)
    first, _, rest = words.partition(" ")
    planned = _PLANNED.get(first)
    return words if planned is None else f"{planned} {rest.removeprefix('are ')}"


def alters(facts: Iterable[TableEvent]) -> bool:
    """Return whether some events may change the table itself, and not only its contents.

    Example:
        >>> from ledger.events.snapshots import TagDeleted
        >>> alters([TagDeleted(tag_name="v1")])
        False
    """
    return any(BY_FACT[type(each)].alters for each in facts)


Row = TypeVar("Row", SchemaOperation, LayoutOperation, StateOperation)


def operation(change: object, kind: type[Row]) -> Row:
    """Return the row of a change.

    Raises:
        InvalidChangeError: There is none of that kind.
    """
    row = BY_ASKED.get(type(change))
    if not isinstance(row, kind):
        raise InvalidChangeError(
            f"{excerpt(change)} is no change of a table; give one, such as "
            "AddColumn(('name',), 'STRING')"
        )
    return row
