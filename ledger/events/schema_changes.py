"""The SchemaChanges, as asked for: the twelve of the DLF page and of Paimon, and two others.

Iceberg has the identifier fields; nobody but the ledger brings a dropped column back.

`fieldNames` is a path: one segment a ROW level, and one (`element` or `value`) for each ARRAY or
MAP on the way.
"""

from typing import Literal

from msgspec import Struct

from ledger.events.base import Record
from ledger.model.types.wire import TypeJson

MoveType = Literal["FIRST", "AFTER", "BEFORE", "LAST"]


class Move(
    Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """Where a column goes: `reference_field_name` is set for AFTER and BEFORE only."""

    field_name: str
    type: MoveType
    reference_field_name: str | None = None


class SetOption(Record, frozen=True, tag="setOption"):
    """Set a table option."""

    key: str
    value: str


class RemoveOption(Record, frozen=True, tag="removeOption"):
    """Remove a table option; one that is not set is no error."""

    key: str


class UpdateComment(Record, frozen=True, tag="updateComment"):
    """Set the table's comment; None removes it."""

    comment: str | None = None


class AddColumn(Record, frozen=True, tag="addColumn"):
    """Add a nullable column, or a member of a nested ROW; older files read as NULL there.

    `default_value` is Iceberg's: older files read as it, and new rows get it. Paimon cannot say it.
    `field_id` is the id that it gets, and the ids inside its type are those that it has, where
    none of them was ever given out; else, and left out, the next ones are given out.
    """

    field_names: tuple[str, ...]
    data_type: TypeJson
    comment: str | None = None
    move: Move | None = None
    default_value: str | None = None
    field_id: int | None = None


class RenameColumn(Record, frozen=True, tag="renameColumn"):
    """Rename a column; `new_name` is the last segment only."""

    field_names: tuple[str, ...]
    new_name: str


class DropColumn(Record, frozen=True, tag="dropColumn"):
    """Drop a column; its id is never given out again."""

    field_names: tuple[str, ...]


class UndropColumn(Record, frozen=True, tag="undropColumn"):
    """Bring a dropped column back under its own id, as it was last: files hold its values still.

    `field_names` is where it stood last, by the names around it then or now. With `field_id` it
    says which column, and the path only what it is called from now on; one of the two may be left
    out. Without `move` it stands where it stood among those that are still there.
    """

    field_names: tuple[str, ...] = ()
    field_id: int | None = None
    move: Move | None = None


class UpdateColumnType(Record, frozen=True, tag="updateColumnType"):
    """Change a column's type along Paimon's cast tables.

    Without `keep_nullability` the new type's nullability is taken, too.
    """

    field_names: tuple[str, ...]
    new_data_type: TypeJson
    keep_nullability: bool = False


class UpdateColumnNullability(Record, frozen=True, tag="updateColumnNullability"):
    """Allow (True) or forbid (False) NULL in a column."""

    field_names: tuple[str, ...]
    new_nullability: bool


class UpdateColumnComment(Record, frozen=True, tag="updateColumnComment"):
    """Set a column's comment; None removes it, an empty text is kept."""

    field_names: tuple[str, ...]
    new_comment: str | None = None


class UpdateColumnDefaultValue(Record, frozen=True, tag="updateColumnDefaultValue"):
    """Set a column's default, as text; None removes it."""

    field_names: tuple[str, ...]
    new_default_value: str | None = None


class UpdateColumnPosition(Record, frozen=True, tag="updateColumnPosition"):
    """Move a column; `field_names` is the path of a nested one (the DLF page has it)."""

    move: Move
    field_names: tuple[str, ...] = ()


class DropPrimaryKey(Record, frozen=True, tag="dropPrimaryKey"):
    """Turn a primary-key table without snapshots into an append table."""


class SetIdentifierFields(Record, frozen=True, tag="setIdentifierFields"):
    """Say which columns, by path, together identify a row; Iceberg's, and no constraint."""

    field_names: tuple[tuple[str, ...], ...]


SchemaChange = (
    SetOption
    | RemoveOption
    | UpdateComment
    | AddColumn
    | RenameColumn
    | DropColumn
    | UndropColumn
    | UpdateColumnType
    | UpdateColumnNullability
    | UpdateColumnComment
    | UpdateColumnDefaultValue
    | UpdateColumnPosition
    | DropPrimaryKey
    | SetIdentifierFields
)
"""What a writer may ask of a schema."""
