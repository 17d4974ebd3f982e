"""Tags: `CREATE [OR REPLACE] TAG`, `REPLACE TAG`, `DROP TAG`."""

from __future__ import annotations

from ledger.evolution.table.changes import CreateTag, DeleteTag, ReplaceTag
from ledger.sql.conditional import Asked, IfTag
from ledger.sql.cursor import Cursor

_MILLIS = {"DAYS": 86_400_000, "HOURS": 3_600_000, "MINUTES": 60_000}


def create(cursor: Cursor) -> list[Asked]:
    """Read what follows `CREATE TAG`."""
    if cursor.found("IF", "NOT", "EXISTS"):
        return [IfTag(CreateTag(*_tag(cursor)), exists=False)]
    return [CreateTag(*_tag(cursor))]


def create_or_replace(cursor: Cursor) -> list[Asked]:
    """Read what follows `CREATE OR REPLACE TAG`."""
    tag = _tag(cursor)
    return [IfTag(CreateTag(*tag), exists=False), IfTag(ReplaceTag(*tag), exists=True)]


def replace(cursor: Cursor) -> list[Asked]:
    """Read what follows `REPLACE TAG`."""
    return [ReplaceTag(*_tag(cursor))]


def drop(cursor: Cursor) -> list[Asked]:
    """Read what follows `DROP TAG`."""
    if cursor.found("IF", "EXISTS"):
        return [IfTag(DeleteTag(cursor.name()), exists=True)]
    return [DeleteTag(cursor.name())]


def _tag(cursor: Cursor) -> tuple[str, int | None, int | None]:
    name = cursor.name()
    snapshot_id = cursor.whole_number() if cursor.found("AS", "OF", "VERSION") else None
    return name, snapshot_id, _retained(cursor)


def _retained(cursor: Cursor) -> int | None:
    if not cursor.found("RETAIN"):
        return None
    number = cursor.whole_number()
    for unit, millis in _MILLIS.items():
        if cursor.found(unit):
            return number * millis
    raise cursor.error(f"expected {', '.join(_MILLIS)}")
