"""`SET` and `UNSET TBLPROPERTIES`: options, and the table's comment."""

from __future__ import annotations

from ledger.events.schema_changes import RemoveOption, SetOption, UpdateComment
from ledger.sql.conditional import Asked
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
