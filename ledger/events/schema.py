"""Changes and events of schemas, partition specs and sort orders.

SchemaChanges are those of the DLF metadata API and of Paimon; identifier fields are Iceberg's, and
only the ledger restores a dropped column. A change that resolves nothing (an option, the comment,
the primary key) is its own event.

`fieldNames` is a path: one segment a ROW level, and one (`element` or `value`) for each ARRAY or
MAP in between. `source` is a column's path. Transforms are Iceberg's text: `identity`,
`bucket[16]`, `truncate[4]`, `year`, `month`, `day`, `hour`, `void`.

Requested changes also accept a path as text (`address.zip`) or in any sequence, and a type as text
or as a `DataType`: the constructors say so to type checkers, and `normalize_change` converts them
before a change is decided.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from msgspec import UNSET, Struct, UnsetType

from ledger.events.commit import Record
from ledger.model.iceberg_layout import Direction, NullOrder, PartitionField, SortField
from ledger.model.types import DataType
from ledger.model.types.wire import TypeJson

ColumnPath: TypeAlias = str | Sequence[str]
"""A column's path: its names, or the text of the path, as `parse_column_path` reads it."""

TypeInput: TypeAlias = TypeJson | DataType | Mapping[str, Any]
"""A type: its text, a `DataType`, or its JSON."""

MoveType = Literal["FIRST", "AFTER", "BEFORE", "LAST"]


class Move(
    Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """Target position of a column; `reference_field_name` is set for AFTER and BEFORE only."""

    field_name: str
    type: MoveType
    reference_field_name: str | None = None


class RequestedChange(Record, frozen=True):
    """Base of the changes that a writer requests of a table or a view.

    Type checkers infer it for a list of changes of several kinds; it is no change itself.
    """


class SetOption(RequestedChange, frozen=True, tag="setOption"):
    """Set a table option."""

    key: str
    value: str


class RemoveOption(RequestedChange, frozen=True, tag="removeOption"):
    """Remove a table option; one that is not set is no error."""

    key: str


class UpdateComment(RequestedChange, frozen=True, tag="updateComment"):
    """Set the table's comment; None removes it."""

    comment: str | None = None


class AddColumn(RequestedChange, frozen=True, tag="addColumn"):
    """Add a nullable column, or a member of a nested ROW; older files read as NULL there.

    `default_value` is Iceberg's: older files read as it, and new rows get it. Paimon has none.
    `field_id` is the wanted id; it and the ids inside the type are used where none of them was ever
    assigned. Otherwise, and if left out, the next ids are assigned.
    """

    field_names: tuple[str, ...]
    data_type: TypeJson
    comment: str | None = None
    move: Move | None = None
    default_value: str | None = None
    field_id: int | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            field_names: ColumnPath,
            data_type: TypeInput,
            comment: str | None = None,
            move: Move | None = None,
            default_value: str | None = None,
            field_id: int | None = None,
        ) -> None: ...


class RenameColumn(RequestedChange, frozen=True, tag="renameColumn"):
    """Rename a column; `new_name` is the last segment only."""

    field_names: tuple[str, ...]
    new_name: str

    if TYPE_CHECKING:

        def __init__(
            self,
            field_names: ColumnPath,
            new_name: str,
        ) -> None: ...


class DropColumn(RequestedChange, frozen=True, tag="dropColumn"):
    """Drop a column; its id is never assigned again."""

    field_names: tuple[str, ...]

    if TYPE_CHECKING:

        def __init__(
            self,
            field_names: ColumnPath,
        ) -> None: ...


class UndropColumn(RequestedChange, frozen=True, tag="undropColumn"):
    """Restore a dropped column under its own id, as it was last; files still hold its values.

    `field_names` is its last path, by the names of the columns around it then or now. With
    `field_id` the id selects the column, and the path only gives its new name; one of the two may
    be left out. Without `move` it returns to its former position among the remaining columns.
    """

    field_names: tuple[str, ...] = ()
    field_id: int | None = None
    move: Move | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            field_names: ColumnPath = (),
            field_id: int | None = None,
            move: Move | None = None,
        ) -> None: ...


class UpdateColumnType(RequestedChange, frozen=True, tag="updateColumnType"):
    """Change a column's type along Paimon's cast tables.

    Without `keep_nullability` the new type's nullability applies, too.
    """

    field_names: tuple[str, ...]
    new_data_type: TypeJson
    keep_nullability: bool = False

    if TYPE_CHECKING:

        def __init__(
            self,
            field_names: ColumnPath,
            new_data_type: TypeInput,
            keep_nullability: bool = False,  # noqa: FBT001, FBT002 - the value
        ) -> None: ...


class UpdateColumnNullability(RequestedChange, frozen=True, tag="updateColumnNullability"):
    """Allow (True) or forbid (False) NULL in a column."""

    field_names: tuple[str, ...]
    new_nullability: bool

    if TYPE_CHECKING:

        def __init__(
            self,
            field_names: ColumnPath,
            new_nullability: bool,  # noqa: FBT001 - the value
        ) -> None: ...


class UpdateColumnComment(RequestedChange, frozen=True, tag="updateColumnComment"):
    """Set a column's comment; None removes it, an empty text is kept."""

    field_names: tuple[str, ...]
    new_comment: str | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            field_names: ColumnPath,
            new_comment: str | None = None,
        ) -> None: ...


class UpdateColumnDefaultValue(RequestedChange, frozen=True, tag="updateColumnDefaultValue"):
    """Set a column's default, as text; None removes it."""

    field_names: tuple[str, ...]
    new_default_value: str | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            field_names: ColumnPath,
            new_default_value: str | None = None,
        ) -> None: ...


class UpdateColumnPosition(RequestedChange, frozen=True, tag="updateColumnPosition"):
    """Move a column; `field_names` is the path of a nested one (an extension of the DLF API)."""

    move: Move
    field_names: tuple[str, ...] = ()

    if TYPE_CHECKING:

        def __init__(
            self,
            move: Move,
            field_names: ColumnPath = (),
        ) -> None: ...


class DropPrimaryKey(RequestedChange, frozen=True, tag="dropPrimaryKey"):
    """Turn a primary-key table without snapshots into an append table."""


class SetIdentifierFields(RequestedChange, frozen=True, tag="setIdentifierFields"):
    """Set the identifier fields, by path: columns that together identify a row. No constraint."""

    field_names: tuple[tuple[str, ...], ...]

    if TYPE_CHECKING:

        def __init__(
            self,
            field_names: Iterable[ColumnPath],
        ) -> None: ...


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
"""A change that a writer can request of a schema."""


class ColumnAdded(AddColumn, frozen=True, tag="addColumn", kw_only=True):
    """A column was added; `field_id` is new, and so are all ids inside `data_type`.

    `parent_id` is the nearest enclosing named field, for a nested column.
    """

    field_id: int
    parent_id: int | UnsetType = UNSET


class ColumnRenamed(RenameColumn, frozen=True, tag="renameColumn", kw_only=True):
    """A column was renamed; `field_id` is its id.

    `parent_id` is the nearest enclosing named field, for a nested column.
    """

    field_id: int
    parent_id: int | UnsetType = UNSET


class ColumnDropped(DropColumn, frozen=True, tag="dropColumn", kw_only=True):
    """A column was dropped; `ColumnUndropped` restores it and those below."""

    field_id: int


class ColumnUndropped(Record, frozen=True, tag="undropColumn", kw_only=True):
    """A dropped column was restored under its own id, with all its properties.

    `field_id` and the ids inside `data_type` were assigned before, and no current column has them.
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
    """A column's type changed; `field_id` is the nearest named field (an element has no own id)."""

    field_id: int


class ColumnNullabilityUpdated(
    UpdateColumnNullability, tag="updateColumnNullability", frozen=True, kw_only=True
):
    """A column's nullability changed; `field_id` as in ColumnTypeUpdated."""

    field_id: int


class ColumnCommentUpdated(
    UpdateColumnComment, tag="updateColumnComment", frozen=True, kw_only=True
):
    """The comment of the column `field_id` changed."""

    field_id: int


class ColumnDefaultValueUpdated(
    UpdateColumnDefaultValue, frozen=True, tag="updateColumnDefaultValue", kw_only=True
):
    """The default of the column `field_id` changed."""

    field_id: int


class ColumnMoved(UpdateColumnPosition, frozen=True, tag="updateColumnPosition", kw_only=True):
    """The column `field_id` moved, for BEFORE and AFTER next to the column `reference_id`."""

    field_id: int
    reference_id: int | UnsetType = UNSET


class UpdateKeys(Record, frozen=True, tag="updateKeys"):
    """The options `primary-key` or `partition`, set while there were no snapshots, became keys."""

    partition_keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()


class IdentifierFieldsSet(
    SetIdentifierFields, frozen=True, tag="setIdentifierFields", kw_only=True
):
    """The identifier fields were set; `field_ids` are their ids, sorted."""

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
"""Every event that changes a schema."""


class PartitionFieldChange(Record, frozen=True):
    """Base of the updates of a partition spec, as `RequestedChange` is of changes."""


class AddPartitionField(PartitionFieldChange, frozen=True, tag="addPartitionField"):
    """Add a partition field; without a name it gets Iceberg's default one."""

    source: tuple[str, ...]
    transform: str = "identity"
    name: str | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            source: ColumnPath,
            transform: str = "identity",
            name: str | None = None,
        ) -> None: ...


class RemovePartitionField(PartitionFieldChange, frozen=True, tag="removePartitionField"):
    """Remove a partition field, by its name or by its source and transform."""

    name: str | None = None
    source: tuple[str, ...] | None = None
    transform: str | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            name: str | None = None,
            source: ColumnPath | None = None,
            transform: str | None = None,
        ) -> None: ...


class RenamePartitionField(PartitionFieldChange, frozen=True, tag="renamePartitionField"):
    """Rename a partition field; its id stays."""

    name: str
    new_name: str


SpecUpdate = AddPartitionField | RemovePartitionField | RenamePartitionField


class UpdatePartitionSpec(RequestedChange, frozen=True, tag="updatePartitionSpec"):
    """Change the partition spec of files written from now on; older files stay as they are.

    All updates are resolved against the default spec, as Iceberg does. With `set_default` off the
    new spec does not become the default one.
    """

    updates: tuple[SpecUpdate, ...]
    set_default: bool = True

    if TYPE_CHECKING:

        def __init__(
            self,
            updates: Iterable[SpecUpdate | PartitionFieldChange],
            set_default: bool = True,  # noqa: FBT001, FBT002 - the value
        ) -> None: ...


class SortColumn(
    Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """One field of a requested sort order; by default nulls sort first if ascending, else last."""

    source: tuple[str, ...]
    transform: str = "identity"
    direction: Direction = "asc"
    null_order: NullOrder | None = None

    if TYPE_CHECKING:

        def __init__(
            self,
            source: ColumnPath,
            transform: str = "identity",
            direction: Direction = "asc",
            null_order: NullOrder | None = None,
        ) -> None: ...


class ReplaceSortOrder(RequestedChange, frozen=True, tag="replaceSortOrder"):
    """Change the sort order of files written from now on; without columns they are unsorted."""

    columns: tuple[SortColumn, ...]

    if TYPE_CHECKING:

        def __init__(
            self,
            columns: Iterable[SortColumn],
        ) -> None: ...


SpecChange = UpdatePartitionSpec | ReplaceSortOrder
"""A change that a writer can request of a table's layout."""


class PartitionSpecUpdated(
    UpdatePartitionSpec, frozen=True, tag="updatePartitionSpec", kw_only=True
):
    """The spec `spec_id` has these fields; it is new, or an older one that became default again."""

    spec_id: int
    fields: tuple[PartitionField, ...]


class SortOrderReplaced(ReplaceSortOrder, frozen=True, tag="replaceSortOrder", kw_only=True):
    """The order `order_id` has these fields; 0 is unsorted.

    It is new, or an older one that became default again. With `set_default` off, a new order does
    not become the default one.
    """

    set_default: bool = True
    order_id: int
    fields: tuple[SortField, ...]


SpecEvent = PartitionSpecUpdated | SortOrderReplaced
"""Every event that changes a table's layout."""
