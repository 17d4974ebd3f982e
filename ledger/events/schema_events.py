"""The facts that SchemaChanges became: the same name and shape, plus the field ids resolved.

A change that resolves nothing (an option, the comment, the primary key) is its own event.
"""

from msgspec import UNSET, UnsetType

from ledger.events.base import Record
from ledger.events.schema_changes import (
    AddColumn,
    DropColumn,
    DropPrimaryKey,
    Move,
    RemoveOption,
    RenameColumn,
    SetIdentifierFields,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
)
from ledger.model.types.wire import TypeJson


class ColumnAdded(AddColumn, frozen=True, tag="addColumn", kw_only=True):
    """`field_id` is new, and so are all ids inside `data_type`.

    `parent_id` is the nearest enclosing named field, for a nested column.
    """

    field_id: int
    parent_id: int | UnsetType = UNSET


class ColumnRenamed(RenameColumn, frozen=True, tag="renameColumn", kw_only=True):
    """`field_id` is the column that got the new name.

    `parent_id` is the nearest enclosing named field, for a nested column.
    """

    field_id: int
    parent_id: int | UnsetType = UNSET


class ColumnDropped(DropColumn, frozen=True, tag="dropColumn", kw_only=True):
    """`field_id` is the column that went; `ColumnUndropped` brings it and those below back."""

    field_id: int


class ColumnUndropped(Record, frozen=True, tag="undropColumn", kw_only=True):
    """A column is back under its own id, with all that it is said to be.

    `field_id` and the ids inside `data_type` were given out before, and none of them stands.
    `initial_default` is what files without the column read as. `parent_id` is the nearest enclosing
    named field, for a nested column.
    """

    field_names: tuple[str, ...]
    data_type: TypeJson
    comment: str | None = None
    move: Move | None = None
    default_value: str | None = None
    initial_default: str | None = None
    field_id: int
    parent_id: int | UnsetType = UNSET


class ColumnTypeUpdated(UpdateColumnType, frozen=True, tag="updateColumnType", kw_only=True):
    """`field_id` is the named field at or around the place (an array's element has no own)."""

    field_id: int


class ColumnNullabilityUpdated(
    UpdateColumnNullability, tag="updateColumnNullability", frozen=True, kw_only=True
):
    """`field_id` as in ColumnTypeUpdated."""

    field_id: int


class ColumnCommentUpdated(
    UpdateColumnComment, tag="updateColumnComment", frozen=True, kw_only=True
):
    """`field_id` is the column that got the comment."""

    field_id: int


class ColumnDefaultValueUpdated(
    UpdateColumnDefaultValue, frozen=True, tag="updateColumnDefaultValue", kw_only=True
):
    """`field_id` is the column that got the default."""

    field_id: int


class ColumnMoved(UpdateColumnPosition, frozen=True, tag="updateColumnPosition", kw_only=True):
    """`field_id` moved; `reference_id` is the column it now stands before or after."""

    field_id: int
    reference_id: int | UnsetType = UNSET


class UpdateKeys(Record, frozen=True, tag="updateKeys"):
    """The options `primary-key` or `partition`, set while there were no snapshots, became keys."""

    partition_keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()


class IdentifierFieldsSet(
    SetIdentifierFields, frozen=True, tag="setIdentifierFields", kw_only=True
):
    """`field_ids` are those columns, sorted."""

    field_ids: tuple[int, ...]


SchemaEvent = (
    ColumnAdded
    | SetOption
    | ColumnRenamed
    | ColumnTypeUpdated
    | ColumnDropped
    | ColumnUndropped
    | ColumnCommentUpdated
    | ColumnMoved
    | ColumnNullabilityUpdated
    | ColumnDefaultValueUpdated
    | RemoveOption
    | UpdateComment
    | DropPrimaryKey
    | UpdateKeys
    | IdentifierFieldsSet
)
"""Every fact that changes a schema."""
