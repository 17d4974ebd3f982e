"""What a table has beside its columns: partition fields, write order, identifiers, tags, options.

In Iceberg's words, but for `SET` and `UNSET TBLPROPERTIES`.
"""

from __future__ import annotations

from ledger.events.schema_changes import RemoveOption, SetIdentifierFields, SetOption, UpdateComment
from ledger.events.spec_changes import (
    AddPartitionField,
    RemovePartitionField,
    RenamePartitionField,
    ReplaceSortOrder,
    SortColumn,
    SpecUpdate,
)
from ledger.evolution.table.changes import CreateTag, DeleteTag, ReplaceTag
from ledger.model.iceberg.layout import Direction
from ledger.sql.conditional import Asked, DropIdentifierFields, IfTag, RemoveTerm, SpecClause
from ledger.sql.cursor import Cursor

_COMMENT = "comment"


def set_properties(cursor: Cursor) -> list[Asked]:
    """Read what follows `SET TBLPROPERTIES`."""
    return [*cursor.items(_set)]


def unset_properties(cursor: Cursor) -> list[Asked]:
    """Read what follows `UNSET TBLPROPERTIES`; a key that is not set is no error."""
    cursor.found("IF", "EXISTS")
    return [*cursor.items(_unset)]


def _set(cursor: Cursor) -> SetOption | UpdateComment:
    key = _key(cursor)
    # Spark reads `'a'='b'` and `'a' 'b'` alike.
    cursor.found("=")
    value = cursor.literal()
    return UpdateComment(value) if key == _COMMENT else SetOption(key, value)


def _unset(cursor: Cursor) -> RemoveOption | UpdateComment:
    key = _key(cursor)
    return UpdateComment() if key == _COMMENT else RemoveOption(key)


def _key(cursor: Cursor) -> str:
    return cursor.quoted() or ".".join(cursor.path())


_MILLIS = {"DAYS": 86_400_000, "HOURS": 3_600_000, "MINUTES": 60_000}


def create_tag(cursor: Cursor) -> list[Asked]:
    """Read what follows `CREATE TAG`."""
    if cursor.found("IF", "NOT", "EXISTS"):
        return [IfTag(CreateTag(*_tag(cursor)), exists=False)]
    return [CreateTag(*_tag(cursor))]


def create_or_replace_tag(cursor: Cursor) -> list[Asked]:
    """Read what follows `CREATE OR REPLACE TAG`."""
    tag = _tag(cursor)
    return [IfTag(CreateTag(*tag), exists=False), IfTag(ReplaceTag(*tag), exists=True)]


def replace_tag(cursor: Cursor) -> list[Asked]:
    """Read what follows `REPLACE TAG`."""
    return [ReplaceTag(*_tag(cursor))]


def drop_tag(cursor: Cursor) -> list[Asked]:
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


DISTRIBUTION_MODE = "write.distribution-mode"
_UNITS = ("year", "month", "day", "hour")
_TIMES = {f"{unit}{plural}".upper(): unit for unit in _UNITS for plural in ("", "s")}
_SIZED = ("BUCKET", "TRUNCATE")

Term = tuple[tuple[str, ...], str]
"""A column's path and the transform of it."""


def add_field(cursor: Cursor) -> list[Asked]:
    """Read what follows `ADD PARTITION FIELD`."""
    source, transform = _term(cursor)
    return _updated(AddPartitionField(source, transform, _named(cursor, "AS")))


def drop_field(cursor: Cursor) -> list[Asked]:
    """Read what follows `DROP PARTITION FIELD`: a field's name, or a transform of a column."""
    return _updated(_removed(_term(cursor)))


def replace_field(cursor: Cursor) -> list[Asked]:
    """Read what follows `REPLACE PARTITION FIELD`."""
    old = _term(cursor)
    cursor.expect("WITH")
    source, transform = _term(cursor)
    name = _named(cursor, "AS")
    return _updated(_removed(old), AddPartitionField(source, transform, name))


def rename_field(cursor: Cursor) -> list[Asked]:
    """Read what follows `RENAME PARTITION FIELD`."""
    name = cursor.name()
    cursor.expect("TO")
    return _updated(RenamePartitionField(name, cursor.name()))


def _updated(*updates: SpecUpdate | RemoveTerm) -> list[Asked]:
    return [SpecClause(updates)]


def _removed(term: Term) -> RemovePartitionField | RemoveTerm:
    source, transform = term
    if transform == "identity" and len(source) == 1:
        return RemoveTerm(source[0])
    return RemovePartitionField(source=source, transform=transform)


def _named(cursor: Cursor, word: str) -> str | None:
    return cursor.name() if cursor.found(word) else None


def _term(cursor: Cursor) -> Term:
    for word, unit in _TIMES.items():
        if cursor.found(word, "("):
            path = cursor.path()
            cursor.expect(")")
            return path, unit
    for word in _SIZED:
        if cursor.found(word, "("):
            return _sized(cursor, word.lower())
    return cursor.path(), "identity"


def _sized(cursor: Cursor, transform: str) -> Term:
    # Iceberg takes the number before the column and after it.
    try:
        number: int | None = cursor.whole_number()
        cursor.expect(",")
    except ValueError:
        number = None
    path = cursor.path()
    if number is None:
        cursor.expect(",")
        number = cursor.whole_number()
    cursor.expect(")")
    return path, f"{transform}[{number}]"


def write(cursor: Cursor) -> list[Asked]:
    """Read what follows `WRITE`: how rows are ordered and distributed when they are written."""
    if cursor.found("UNORDERED"):
        return [ReplaceSortOrder(()), SetOption(DISTRIBUTION_MODE, "none")]
    distributed = cursor.found("DISTRIBUTED", "BY", "PARTITION")
    locally = cursor.found("LOCALLY")
    if cursor.found("ORDERED", "BY"):
        order = ReplaceSortOrder(tuple(cursor.items(_sorted)))
    elif distributed and not locally:
        return [ReplaceSortOrder(()), SetOption(DISTRIBUTION_MODE, "hash")]
    else:
        raise cursor.error("expected ORDERED BY, LOCALLY ORDERED BY, DISTRIBUTED BY PARTITION")
    distributed = cursor.found("DISTRIBUTED", "BY", "PARTITION") or distributed
    mode = "hash" if distributed else "none" if locally else "range"
    return [order, SetOption(DISTRIBUTION_MODE, mode)]


def _sorted(cursor: Cursor) -> SortColumn:
    source, transform = _term(cursor)
    direction: Direction = "desc" if cursor.found("DESC") else "asc"
    cursor.found("ASC")
    if not cursor.found("NULLS"):
        return SortColumn(source, transform, direction)
    if cursor.found("FIRST"):
        return SortColumn(source, transform, direction, "nulls-first")
    cursor.expect("LAST")
    return SortColumn(source, transform, direction, "nulls-last")


def set_identifier_fields(cursor: Cursor) -> list[Asked]:
    """Read what follows `SET IDENTIFIER FIELDS`."""
    return [SetIdentifierFields(tuple(cursor.items(Cursor.path)))]


def drop_identifier_fields(cursor: Cursor) -> list[Asked]:
    """Read what follows `DROP IDENTIFIER FIELDS`."""
    return [DropIdentifierFields(tuple(cursor.items(Cursor.path)))]
