"""Schema and ViewSchema: columns, keys, options and comment.

Source: Paimon's TableSchema (`schema/schema-N`) and the DLF metadata API's Schema and ViewSchema.

A commit looks up columns by name or id a dozen times. Most commits change no column, so the index
of the columns is cached and shared between states (`column_index_of`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

from attrs import evolve, field, frozen

import ledger.model.arguments as its
from ledger.model.arguments import validate_arguments
from ledger.model.errors import ColumnNotFoundError, InvalidTypeError
from ledger.model.messages import html_table, name_hint
from ledger.model.types import (
    DataField,
    DataType,
    Part,
    assign_field_ids,
    parts_of,
    type_places,
    walk_ids,
    with_parts,
)
from ledger.model.types.sql import json_of_text, read_type
from ledger.model.types.text import format_type
from ledger.model.types.wire import type_from_json

if TYPE_CHECKING:
    import pyarrow as pa


def as_fields(values: Iterable[DataField]) -> tuple[DataField, ...]:
    """Return columns as a tuple."""
    return tuple(values)


def as_names(values: Iterable[str]) -> tuple[str, ...]:
    """Return names as a tuple; a single str counts as one name.

    Example:
        >>> as_names(["day"])
        ('day',)
    """
    if isinstance(values, str):
        return (values,)
    return tuple(values)


def as_texts(values: Mapping[str, str]) -> dict[str, str]:
    """Return a copy of a mapping of texts."""
    return dict(values)


FieldIdPolicy = Literal["paimon", "iceberg"]
"""Numbering rule of a table's field ids: Paimon's gives ids to columns and ROW members, from 0;
Iceberg's gives ids to list elements, map keys and map values, too, from 1."""


class ArrowSchemaExporter(Protocol):
    """Schema of another library with Arrow's PyCapsule interface."""

    def __arrow_c_schema__(self) -> object: ...


class ArrowStreamExporter(Protocol):
    """Data frame or table of another library with Arrow's PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


class PyIcebergSchema(Protocol):
    """Schema of PyIceberg."""

    def as_arrow(self) -> pa.Schema: ...  # noqa: D102 - theirs


ForeignSchema = ArrowSchemaExporter | ArrowStreamExporter | PyIcebergSchema
"""A schema or frame of Arrow, pandas, Polars, PyIceberg or a library like them."""

_EXPORTS = ("__arrow_c_schema__", "__arrow_c_stream__", "as_arrow")


def is_arrow_schema_exporter(given: object) -> bool:
    """Return whether a value exports an Arrow schema; a schema of Polars is a mapping, too."""
    return hasattr(given, "__arrow_c_schema__")


_COLUMNS = its.ArgumentForm(
    "a mapping by name, or a schema or frame of Arrow, pandas, Polars or PyIceberg",
    lambda value: its.by_name.holds(value) or any(hasattr(value, each) for each in _EXPORTS),
)
_A_TYPE = its.instance_of("a type, or its text", DataType)
SCHEMA_FILE_VERSION = 3
SYSTEM_FIELD_ID_START = 1_073_741_823


def highest_field_id(fields: Sequence[DataField]) -> int:
    """Return the highest id among all fields, including nested ones; -1 when there are none.

    Ids of the formats' system range (1,073,741,823 and above) do not count.

    Example:
        >>> highest_field_id([DataField(7, "a", read_type("INT"))])
        7
    """
    ids = (each for member in fields for each in (member.id, *walk_ids(member.type)))
    return max((each for each in ids if each < SYSTEM_FIELD_ID_START), default=-1)


def paths_of(schema: Schema) -> Iterator[tuple[tuple[str, ...], int]]:
    """Yield the path and id of every field; list and map parts are `element`, `key`, `value`.

    Example:
        >>> list(paths_of(Schema.of({"a": "INT", "b": "ARRAY<INT>"})))
        [(('a',), 0), (('b',), 1)]
    """
    for each in type_places(schema.fields):
        if each.field is not None:
            yield each.path, each.field.id


@frozen
class Schema:
    """Schema of a table at a version: columns, keys, options and comment.

    Attributes:
        fields: The columns, in order.
        partition_keys: Column names that partition the table; never change.
        primary_keys: Column names of the primary key; empty for append tables.
        options: Table options; the order has no meaning.
        comment: None when the table has none (an empty comment is kept).
        id: Schema id, counted from 0 as Paimon does: each transaction that changes it adds one.
        highest_field_id: The highest field id ever given out; never lowered, so that a dropped
            column's id cannot come back.
        time_millis: Unix time of the commit that made this version, in milliseconds.
        version: Version of Paimon's schema file; 3 for everything but old files read as they are.
        identifier_field_ids: Columns that identify a row, sorted; empty means the primary key's.
        field_id_policy: Numbering rule of field ids; fixed when the table is created.

    Example:
        >>> orders = Schema.of({"id": "BIGINT NOT NULL", "day": "DATE"}, partition_keys=["day"])
        >>> orders.field("day").id
        1
    """

    fields: tuple[DataField, ...] = field(converter=as_fields)
    partition_keys: tuple[str, ...] = field(default=(), converter=as_names)
    primary_keys: tuple[str, ...] = field(default=(), converter=as_names)
    options: Mapping[str, str] = field(factory=dict, converter=as_texts, hash=False)
    comment: str | None = None
    id: int = 0
    highest_field_id: int = field()
    time_millis: int = field(default=0, eq=False)
    version: int = SCHEMA_FILE_VERSION
    identifier_field_ids: tuple[int, ...] = ()
    field_id_policy: FieldIdPolicy = "paimon"

    @highest_field_id.default
    def _default_highest_field_id(self) -> int:
        return highest_field_id(self.fields)

    @classmethod
    @validate_arguments(
        columns=_COLUMNS,
        partition_keys=its.paths,
        primary_keys=its.paths,
        options=its.texts.or_none(),
        comment=its.words.or_none(),
    )
    def of(
        cls,
        columns: Mapping[str, str | DataType | Mapping[str, Any]] | ForeignSchema,
        *,
        partition_keys: Iterable[str] = (),
        primary_keys: Iterable[str] = (),
        options: Mapping[str, str] | None = None,
        comment: str | None = None,
    ) -> Schema:
        """Return a schema of named types; ids are counted from 0, a column's before its members'.

        Args:
            columns: Name to type, as a `DataType`, as its JSON object, or as its text in Paimon's,
                Spark's, Arrow's or Iceberg's spelling (`"INT NOT NULL"`, `"struct<a: int64>"`); or
                a schema or frame of Arrow, pandas, Polars or PyIceberg, whose columns get new ids.
            partition_keys: Names of columns.
            primary_keys: Names of columns.
            options: Table options.
            comment: The table's comment.

        Raises:
            InvalidTypeError: A type's text cannot be read; the message names the column.
            UnsupportedError: No type can represent a column's values; the message names the column.

        Example:
            >>> import pyarrow as pa
            >>> Schema.of(pa.schema([("id", pa.int64())])) == Schema.of({"id": "int64"})
            True
        """
        if isinstance(columns, Mapping) and not is_arrow_schema_exporter(columns):
            fields = _fields_of_mapping(columns)
        else:
            from ledger.model.arrow_types import fields_from_arrow, to_arrow_schema

            fields = fields_from_arrow(to_arrow_schema(columns))
        return cls(
            fields=fields,
            partition_keys=its.path_texts(partition_keys),
            primary_keys=its.path_texts(primary_keys),
            options=options or {},
            comment=comment,
        )

    def __repr__(self) -> str:
        columns = ", ".join(f"{each.name} {format_type(each.type)}" for each in self.fields)
        keys = {"partitioned by": self.partition_keys, "key": self.primary_keys}
        said = "".join(f"; {what} {', '.join(names)}" for what, names in keys.items() if names)
        return f"{type(self).__name__}({self.id}: {columns}{said})"

    def _repr_html_(self) -> str:
        rows = [(e.id, e.name, format_type(e.type), e.description) for e in self.fields]
        return html_table(("id", "column", "type", "comment"), rows, caption=f"schema {self.id}")

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in order."""
        return tuple([each.name for each in self.fields])

    def field(self, name: str) -> DataField:
        """Return the column of that name.

        Raises:
            ColumnNotFoundError: There is none.
        """
        for each in self.fields:
            if each.name == name:
                return each
        raise ColumnNotFoundError(f"column {name} does not exist; {name_hint(name, self.names)}")

    def with_options(self, options: Mapping[str, str]) -> Schema:
        """Return this schema with other options."""
        return evolve(self, options=options)

    def to_arrow(self) -> pa.Schema:
        """Return the Arrow schema, every field with its id (`PARQUET:field_id`).

        Files written with it are matched by id, so that they stay readable after renames.

        Raises:
            UnsupportedError: Arrow has no type for a column.
        """
        from ledger.model.arrow_types import fields_to_arrow

        schema: Any = fields_to_arrow(self.fields)
        return schema


def _fields_of_mapping(columns: Mapping[str, Any]) -> tuple[DataField, ...]:
    fields: list[DataField] = []
    highest = -1
    for name, column_type in columns.items():
        column_id = highest + 1
        try:
            read = _read_given_type(column_type)
        except InvalidTypeError as error:
            raise InvalidTypeError(f"column {name}: {error.message}") from error
        _A_TYPE.check(f"columns[{name!r}]", read)
        numbered, highest = assign_field_ids(read, column_id)
        fields.append(DataField(column_id, name, numbered))
    return tuple(fields)


def _read_given_type(given: Any) -> Any:
    """Return a type that is given as text or JSON, and anything else unchanged."""
    if isinstance(given, str):
        return read_type(given)
    return type_from_json(given, json_of_text) if isinstance(given, Mapping) else given


def with_column_names(schema: Schema, names: Mapping[int, str]) -> Schema:
    """Return a schema with other names for some fields, at every depth; keys are renamed, too.

    Args:
        schema: The schema.
        names: The new names, by field id; the other fields keep theirs.

    Example:
        >>> renamed = with_column_names(Schema.of({"a": "INT"}, partition_keys=["a"]), {0: "b"})
        >>> renamed.names, renamed.partition_keys
        (('b',), ('b',))
    """
    if not names:
        return schema
    now = {each.name: names.get(each.id, each.name) for each in schema.fields}
    return evolve(
        schema,
        fields=tuple(_renamed_field(each, names) for each in schema.fields),
        partition_keys=tuple(now.get(each, each) for each in schema.partition_keys),
        primary_keys=tuple(now.get(each, each) for each in schema.primary_keys),
    )


def _renamed_field(each: DataField, names: Mapping[int, str]) -> DataField:
    return evolve(each, name=names.get(each.id, each.name), type=_renamed_parts(each.type, names))


def _renamed_parts(data_type: DataType, names: Mapping[int, str]) -> DataType:
    return with_parts(data_type, [_renamed_part(each, names) for each in parts_of(data_type)])


def _renamed_part(each: Part, names: Mapping[int, str]) -> Part:
    if each.field is None:
        return each._replace(type=_renamed_parts(each.type, names))
    renamed = _renamed_field(each.field, names)
    return each._replace(type=renamed.type, field=renamed)


@frozen
class ViewSchema:
    """Definition of a view: result columns, query and options.

    Attributes:
        fields: The columns of its result.
        query: The query text.
        dialects: Other spellings of the query, by engine: `{"spark": "SELECT ..."}`.
        comment: None when it has none.
        options: View options.
    """

    fields: tuple[DataField, ...] = field(converter=as_fields)
    query: str
    dialects: Mapping[str, str] = field(factory=dict, converter=as_texts, hash=False)
    comment: str | None = None
    options: Mapping[str, str] = field(factory=dict, converter=as_texts, hash=False)
