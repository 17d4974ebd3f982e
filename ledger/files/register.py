"""Registration of existing Parquet files, for `table.add_files`.

A file with field ids has to be written with this table's ids, or it is rejected: another table's
ids would show values under the wrong names. A file without ids is matched by name. Its types have
to be those of the columns or narrower ones that Iceberg promotes; a file whose values could change
or be lost is rejected.

Source: Iceberg's table properties `write.metadata.metrics.default` and
`write.metadata.metrics.column.PATH`, and its MetricsModes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from attrs import frozen
from msgspec import UNSET

from ledger.decide.format_rules import (
    MemberMisfit,
    member_misfit_error,
    member_ordering_format,
)
from ledger.files.bounds import (
    TRUNCATE_LENGTH,
    ColumnFacts,
    Footer,
    FooterColumn,
    lower_bound,
    upper_bound,
)
from ledger.files.footers import OnProgress, read_footers
from ledger.files.partition_values import DEFAULT_NAME, partition_value, partition_values, path_keys
from ledger.files.snapshot_plan import ListedFiles
from ledger.files.struct_members import field_ids_in_file_order, member_misfits
from ledger.formats import INSTALLED
from ledger.locations import LOCAL, FileNames, place_of
from ledger.model import types as t
from ledger.model.arrow_types import nested_ids
from ledger.model.credentials import shown
from ledger.model.errors import InvalidChangeError, InvalidInputError, LedgerError, NotFoundError
from ledger.model.file_change import FileChange, PartitionValue
from ledger.model.messages import join_names, similar_names
from ledger.model.schema import Schema, paths_of, with_column_names
from ledger.model.transforms import field_types
from ledger.model.types import DataField, RowType, parts_of, walk_fields
from ledger.model.types.text import format_type
from ledger.state.table import TableState
from ledger.stores.file_access import open_location
from ledger.stores.object_errors import reading

if TYPE_CHECKING:
    from fsspec import AbstractFileSystem


_SMALL = ("TINYINT", "SMALLINT", "INT")
_TEXT = ("CHAR", "VARCHAR")
_BYTES = ("BINARY", "VARBINARY")
_UUID_BYTES = 16

# File types that are readable as each column type, where no parameter matters. Parquet stores all
# small integers in 32 bits, and many writers do not record the exact type.
_READABLE: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_TEXT, _TEXT),
    "BOOLEAN": ("BOOLEAN",),
    **dict.fromkeys(_SMALL, _SMALL),
    "BIGINT": (*_SMALL, "BIGINT"),
    "FLOAT": ("FLOAT",),
    "DOUBLE": ("FLOAT", "DOUBLE"),
    "BINARY": ("VARBINARY",),
    "VARBINARY": ("VARBINARY",),
    "UUID": ("UUID",),
    "DATE": ("DATE",),
    "TIME": ("TIME",),
    "TIMESTAMP": ("TIMESTAMP",),
    "TIMESTAMP_LTZ": ("TIMESTAMP_LTZ",),
    **dict.fromkeys(("BLOB", "GEOMETRY", "GEOGRAPHY"), _BYTES),
}


Carried = Mapping[tuple[int, tuple[str, ...]], int]
"""Field ids of elements, keys and values, by the id of the nearest named field and the path of
`element`, `key` and `value` steps below it."""


@frozen
class _ColumnPosition:
    """Position of a column or nested part in the table's schema.

    Attributes:
        path: Names from the column on, for messages.
        field_id: The table's id of the nearest named field.
        below: The `element`, `key` and `value` steps below that field.
        carried: The ids in the table's types; None if the file has no field ids.
    """

    path: str
    field_id: int
    below: tuple[str, ...]
    carried: Carried | None

    @classmethod
    def of_column(cls, field: DataField, carried: Carried | None) -> _ColumnPosition:
        return cls(field.name, field.id, (), carried)

    def of_member(self, field: DataField) -> _ColumnPosition:
        return _ColumnPosition(f"{self.path}.{field.name}", field.id, (), self.carried)

    def nested_position(self, name: str) -> _ColumnPosition:
        return _ColumnPosition(
            f"{self.path}.{name}", self.field_id, (*self.below, name), self.carried
        )

    def field_id_misfit(self, found: int | None, formula: int) -> Iterator[str]:
        """Yield the problem with the id that a file has for an element, key or value, if any."""
        if self.carried is None:
            return
        own = self.carried.get((self.field_id, self.below))
        # Ids that follow from a formula may be absent: many writers leave them out.
        if own is not None or found is not None:
            yield from _field_id_misfits(found, formula if own is None else own, self.path)


def _nested_ids_in_fields(
    fields: Iterable[DataField],
) -> Iterator[tuple[tuple[int, tuple[str, ...]], int]]:
    for each in walk_fields(fields):
        yield from _nested_ids_in_type(each.type, each.id, ())


def _nested_ids_in_type(
    data_type: t.DataType, field_id: int, below: tuple[str, ...]
) -> Iterator[tuple[tuple[int, tuple[str, ...]], int]]:
    for each in parts_of(data_type):
        if each.field is None:
            inner = (*below, each.name)
            if each.id is not None:
                yield (field_id, inner), each.id
            yield from _nested_ids_in_type(each.type, field_id, inner)


def _column_misfits(
    column: FooterColumn, wanted: t.DataType, place: _ColumnPosition
) -> Iterator[str]:
    """Yield the reasons why a file's column cannot be read as `wanted`; none if it can.

    Args:
        column: The file's column.
        wanted: The type in the schema.
        place: Its position in the schema.
    """
    match column.type, wanted:
        case t.RowType(), t.RowType(fields=fields):
            yield from _row_misfits(column.members, fields, place)
        case ((t.ArrayType() | t.VectorType()), (t.ArrayType() | t.VectorType())) | (
            t.MapType(),
            (t.MapType() | t.MultisetType()),
        ):
            yield from _nested_misfits(column.members, wanted, place)
        case found, _ if found is None or not can_read_as(found, wanted):
            yield _explain_type_misfit(column, wanted, place.path)


def _nested_misfits(
    members: Sequence[FooterColumn], wanted: t.DataType, place: _ColumnPosition
) -> Iterator[str]:
    """Yield the misfits of a list's element, or of a map's key and value."""
    ids = nested_ids(wanted, place.field_id, len(place.below) + 1)
    for member, (name, data_type), number in zip(
        members, _list_or_map_parts(wanted), ids, strict=True
    ):
        inner = place.nested_position(name)
        yield from inner.field_id_misfit(member.field_id, number)
        yield from _column_misfits(member, data_type, inner)


def _list_or_map_parts(data_type: t.DataType) -> tuple[tuple[str, t.DataType], ...]:
    """Return the parts of a list or map, by their names in paths."""
    if isinstance(data_type, t.ArrayType | t.VectorType):
        return (("element", data_type.element),)
    if isinstance(data_type, t.MultisetType):
        return ("key", data_type.element), ("value", t.IntType())
    if isinstance(data_type, t.MapType):
        return ("key", data_type.key), ("value", data_type.value)
    return ()


def _field_id_misfits(found: int | None, wanted: int, path: str) -> Iterator[str]:
    if found != wanted:
        yield (
            f"column {path!r} carries {'no field id' if found is None else f'field id {found}'}; "
            f"the table's is {wanted}: write the file with the table's schema.to_arrow(), or "
            "without field ids"
        )


def _row_misfits(
    members: Sequence[FooterColumn], fields: Sequence[t.DataField], place: _ColumnPosition
) -> Iterator[str]:
    by_name = {each.name: each for each in fields}
    for member in members:
        inner = f"{place.path}.{member.name}"
        field = by_name.get(member.name)
        if field is None:
            yield f"column {inner!r} is not among the members {list(by_name)}"
        elif place.carried is not None and member.field_id != field.id:
            yield from _field_id_misfits(member.field_id, field.id, inner)
        else:
            yield from _column_misfits(member, field.type, place.of_member(field))
    present = {each.name for each in members}
    for field in fields:
        if field.name not in present and not field.type.nullable:
            yield f"the NOT NULL column '{place.path}.{field.name}' is missing from the file"


def can_read_as(found: t.DataType, wanted: t.DataType) -> bool:
    """Return whether a file's values of type `found` can be read as `wanted`.

    Example:
        >>> can_read_as(t.IntType(), t.BigIntType()), can_read_as(t.BigIntType(), t.IntType())
        (True, False)
    """
    match found, wanted:
        case t.UnknownType(), _:
            # Nothing but nulls.
            return wanted.nullable
        case t.DecimalType(), t.DecimalType():
            return found.scale == wanted.scale and found.precision <= wanted.precision
        case t.BinaryType(), (t.BinaryType() | t.VarBinaryType() | t.UuidType()):
            return _byte_length_fits(found.length, wanted)
        case _:
            return found.root in _READABLE.get(wanted.root, ())


def _byte_length_fits(length: int, wanted: t.DataType) -> bool:
    match wanted:
        case t.UuidType():
            return length == _UUID_BYTES
        case t.BinaryType():
            return length == wanted.length
        case t.VarBinaryType():
            return length <= wanted.length
        case _:
            return False


def _explain_type_misfit(column: FooterColumn, wanted: t.DataType, path: str) -> str:
    if column.type is None:
        return f"column {path!r} holds {column.type_text}, which no column type can hold"
    found = format_type(column.type)
    advice = ""
    if can_read_as(wanted, column.type):
        advice = f": widen the column to {found} first"
    return f"column {path!r} holds {found}, but the table's column is {format_type(wanted)}{advice}"


_MOST_HINTS = 5


@frozen
class SchemaMatch:
    """Result of matching a file.

    Attributes:
        schema: The schema, with the column names in the file.
        field_ids: True if the file has the table's field ids.
        column_names: The names in which it differs from the table's schema of its id.
    """

    schema: Schema
    field_ids: bool
    column_names: Mapping[int, str] = MappingProxyType({})

    @property
    def schema_id(self) -> int:
        """The id of the schema whose names the file uses."""
        return self.schema.id


def match_schema(
    columns: Sequence[FooterColumn],
    history: Iterable[Schema],
    *,
    file: str,
    column_names: Mapping[int, str] = MappingProxyType({}),
) -> SchemaMatch:
    """Return the newest schema that a file matches.

    A file matches if each of its columns is in the schema, by name and (if the file has ids) by id,
    with a type that the file's values are readable as, and if it has all NOT NULL columns that do
    not partition the table.

    Args:
        columns: The file's columns.
        history: The table's schemas, newest first; consumed only as far as needed.
        file: The file's name, for errors.
        column_names: The names that a format needs in files, by field id, where the newest schema
            has others. A schema that has these names is preferred, then the newest one with them.

    Raises:
        InvalidChangeError: No schema matches; the message names the file, the column and the
            reason.
    """
    if not columns:
        raise InvalidChangeError(f"file {file} has no columns")
    with_ids = _has_field_ids(columns, file)
    has_all_ids = with_ids and all(map(_has_nested_ids, columns))
    seen: list[Schema] = []
    carried: dict[tuple[int, tuple[str, ...]], int] = {}
    if column_names:
        # Older schemas may come first.
        history = list(history)
        carried = dict(chain(*(_nested_ids_in_fields(each.fields) for each in history[::-1])))
    for schema, renamed in _candidate_schemas(history, column_names):
        seen.append(schema)
        # Ids that a source assigned to existing parts hold for older schemas, too.
        carried = {**dict(_nested_ids_in_fields(schema.fields)), **carried}
        if next(_schema_misfits(columns, schema, carried if with_ids else None), None) is None:
            return SchemaMatch(schema, has_all_ids, renamed)
    if not seen:
        raise InvalidChangeError(f"file {file} cannot be matched: the table has no schema")
    if with_ids:
        _refuse_foreign_field_ids(columns, seen, file)
    found = _no_matching_schema_text(columns, seen, file, carried if with_ids else None)
    raise InvalidChangeError(found)


def _candidate_schemas(
    history: Iterable[Schema], column_names: Mapping[int, str]
) -> Iterator[tuple[Schema, Mapping[int, str]]]:
    """Yield the schemas that a file may match, in order, with the names that the history lacks.

    Args:
        history: The table's schemas, newest first.
        column_names: As for `match_schema`.
    """
    if not column_names:
        yield from ((each, {}) for each in history)
        return
    schemas = list(history)
    named = [each for each in schemas if _has_names(each, schemas[0], column_names)]
    yield from ((each, {}) for each in named)
    yield with_column_names(schemas[0], column_names), column_names
    # The format's rules decide about these: the same commit may remove the older files.
    yield from ((each, {}) for each in schemas if each not in named)


def match_member_order(
    match: SchemaMatch,
    columns: Sequence[FooterColumn],
    history: Iterable[Schema],
    *,
    file: str,
) -> SchemaMatch | MemberMisfit:
    """Return the newest match in which every struct has the file's members, in the file's order.

    An older schema has to mean the same columns by the file's names.

    Args:
        match: The newest match.
        columns: The file's columns.
        history: The table's schemas, newest first; consumed only as far as needed.
        file: The file's name.

    Returns:
        The match; or, if there is none, the first struct that differs from the newest match.
    """
    misfit = next(member_misfits(file, columns, match.schema.fields), None)
    if misfit is None:
        return match
    meant = tuple(field_ids_in_file_order(columns, match.schema.fields))
    with_ids = _has_field_ids(columns, file)
    carried: dict[tuple[int, tuple[str, ...]], int] = {}
    for schema in history:
        carried = {**dict(_nested_ids_in_fields(schema.fields)), **carried}
        if (
            schema.id < match.schema_id
            and next(_schema_misfits(columns, schema, carried if with_ids else None), None) is None
            and next(member_misfits(file, columns, schema.fields), None) is None
            and tuple(field_ids_in_file_order(columns, schema.fields)) == meant
        ):
            return SchemaMatch(schema, match.field_ids)
    return misfit


def pair_columns_with_fields(
    columns: Sequence[FooterColumn], fields: Sequence[DataField]
) -> Iterator[tuple[FooterColumn, DataField]]:
    """Yield the file's columns and ROW members, each with its field in the schema.

    Args:
        columns: The columns of a file that matches.
        fields: The fields of the schema that it matches.
    """
    by_name = {each.name: each for each in fields}
    for column in columns:
        field = by_name[column.name]
        yield column, field
        if isinstance(field.type, RowType):
            yield from pair_columns_with_fields(column.members, field.type.fields)


def _has_names(schema: Schema, newest: Schema, column_names: Mapping[int, str]) -> bool:
    """Return whether a schema has the names that new files need."""
    wanted = {each.id: each.name for each in walk_fields(newest.fields)} | dict(column_names)
    return all(wanted.get(each.id, each.name) == each.name for each in walk_fields(schema.fields))


def find_schema_with_names(
    newest: Schema, column_names: Mapping[int, str], history: Iterable[Schema]
) -> Schema | None:
    """Return the newest schema that has all columns of the newest one under other names.

    Columns that it has besides are nullable, so that files can lack them.

    Args:
        newest: The table's schema.
        column_names: The names that a format needs in files, by field id, where they differ.
        history: The table's schemas, newest first; consumed only as far as needed.

    Example:
        >>> old = Schema.of({"city": "STRING", "zip": "INT"})
        >>> new = with_column_names(old, {0: "town"})
        >>> find_schema_with_names(new, {0: "city"}, [new, old]) == old
        True
    """
    wanted = {
        each.id: (each.name, each.type) for each in with_column_names(newest, column_names).fields
    }
    for schema in history:
        found = {each.id: (each.name, each.type) for each in schema.fields}
        if wanted.items() <= found.items() and all(
            each.type.nullable for each in schema.fields if each.id not in wanted
        ):
            return schema
    return None


def _has_nested_ids(column: FooterColumn) -> bool:
    """Return whether a column has a field id, and all of its members, elements, keys and values."""
    return column.field_id is not None and all(map(_has_nested_ids, column.members))


def _has_field_ids(columns: Sequence[FooterColumn], file: str) -> bool:
    without = [each.name for each in columns if each.field_id is None]
    if without and len(without) < len(columns):
        raise InvalidChangeError(
            f"file {file}: columns {without} carry no field id, but others do; write it again "
            "with the table's schema.to_arrow(), or without field ids"
        )
    return not without


def _schema_misfits(
    columns: Sequence[FooterColumn], schema: Schema, carried: Carried | None
) -> Iterator[str]:
    """Yield the reasons why a file does not match a schema, unknown columns first."""
    by_name = {each.name: each for each in schema.fields}
    strange = [
        each.name
        for each in columns
        if (field := by_name.get(each.name)) is None
        or (carried is not None and field.id != each.field_id)
    ]
    if strange:
        yield _unknown_columns_text(strange, by_name)
    for column in columns:
        field = by_name.get(column.name)
        if field is not None:
            yield from _column_misfits(
                column, field.type, _ColumnPosition.of_column(field, carried)
            )
    present = {each.name for each in columns}
    for field in schema.fields:
        absent = field.name not in present and field.name not in schema.partition_keys
        if absent and not field.type.nullable:
            yield f"the NOT NULL column {field.name!r} is missing from the file"


def _unknown_columns_text(strange: Sequence[str], known: Mapping[str, DataField]) -> str:
    columns = "column" if len(strange) == 1 else "columns"
    they = "is" if len(strange) == 1 else "are"
    near = {each: similar_names(each, known) for each in strange}
    hints = [f"{' or '.join(map(repr, each))} for {name!r}" for name, each in near.items() if each]
    said = f"did you mean {', '.join(hints[:_MOST_HINTS])}?" if hints else ""
    if not all(near.values()):
        said += f"{' ' if said else ''}there are: {join_names(known)}"
    return f"{columns} {join_names(strange)} {they} not among its columns ({said})"


def _refuse_foreign_field_ids(
    columns: Sequence[FooterColumn], seen: Sequence[Schema], file: str
) -> None:
    names: dict[int, list[str]] = {}
    for schema in seen:
        for field in schema.fields:
            known = names.setdefault(field.id, [])
            if field.name not in known:
                known.append(field.name)
    inner = {each.id for schema in seen for each in walk_fields(schema.fields)}
    for column in columns:
        known = names.get(column.field_id if column.field_id is not None else -1, [])
        if column.name in known:
            continue
        is_here = f"is {' or '.join(map(repr, known))}" if known else "is no column"
        if not known and column.field_id in inner:
            is_here = "is inside another column"
        raise InvalidChangeError(
            f"file {file}: column {column.name!r} carries field id {column.field_id}, which "
            f"{is_here} in this table. The ids are another table's: write the file again with "
            "this table's schema.to_arrow(), or without field ids"
        )


def _no_matching_schema_text(
    columns: Sequence[FooterColumn], seen: Sequence[Schema], file: str, carried: Carried | None
) -> str:
    names = {each.name for each in columns}
    # The newest schema with all the columns gives the most useful reasons.
    best = next((each for each in seen if names <= set(each.names)), seen[0])
    reasons = list(_schema_misfits(columns, best, carried))
    return (
        f"file {file} fits no schema of this table; of schema {best.id}: {'; '.join(reasons)}. "
        "Change the table first, or write the file again"
    )


METRICS_DEFAULT: Final = "write.metadata.metrics.default"
METRICS_COLUMN: Final = "write.metadata.metrics.column."
"""Prefix of Iceberg's per-column metrics options, followed by the column's path."""

_is_truncate = re.compile(r"truncate\(([1-9][0-9]{0,8})\)").fullmatch


@frozen
class MetricsMode:
    """Metrics mode of a column: the statistics that the ledger records for it.

    Attributes:
        counts: True if counts of values and nulls are recorded.
        length: Maximum length of a bound in characters, or in bytes; 0 for no bounds, None for
            whole values.
    """

    counts: bool
    length: int | None


DEFAULT_MODE: Final = MetricsMode(counts=True, length=TRUNCATE_LENGTH)
_BY_NAME: Final = {
    "none": MetricsMode(counts=False, length=0),
    "counts": MetricsMode(counts=True, length=0),
    "full": MetricsMode(counts=True, length=None),
}


@frozen
class MetricsModes:
    """Metrics modes of a table's columns.

    Attributes:
        by_default: The mode of a column without an option of its own.
        by_id: The modes of the other columns, by field id.
    """

    by_default: MetricsMode = DEFAULT_MODE
    by_id: Mapping[int, MetricsMode] = {}

    def of(self, field_id: int) -> MetricsMode:
        """Return the metrics mode of a column by its field id."""
        return self.by_id.get(field_id, self.by_default)


def metrics_modes(schema: Schema) -> MetricsModes:
    """Return the metrics modes of a table, from its options.

    Raises:
        InvalidChangeError: An option is not a metrics mode; a bound, once recorded, cannot be
            removed.

    Example:
        >>> options = {"write.metadata.metrics.column.mail": "none"}
        >>> modes = metrics_modes(Schema.of({"id": "INT", "mail": "STRING"}, options=options))
        >>> modes.of(0).length, modes.of(1)
        (16, MetricsMode(counts=False, length=0))
    """
    said = {key: each for key, each in schema.options.items() if key.startswith(METRICS_COLUMN)}
    by_default = schema.options.get(METRICS_DEFAULT)
    by_path = {key: _parse_metrics_mode(key, each) for key, each in said.items()}
    return MetricsModes(
        DEFAULT_MODE if by_default is None else _parse_metrics_mode(METRICS_DEFAULT, by_default),
        {
            field_id: by_path[key]
            for path, field_id in (paths_of(schema) if said else ())
            if (key := METRICS_COLUMN + ".".join(path)) in by_path
        },
    )


def _parse_metrics_mode(key: str, text: str) -> MetricsMode:
    wanted = text.strip().lower()
    truncated = _is_truncate(wanted)
    if truncated:
        return MetricsMode(counts=True, length=int(truncated[1]))
    if wanted not in _BY_NAME:
        raise InvalidChangeError(
            f"option {key} is {text!r}, which is no metrics mode; set none, counts, truncate(16) "
            "or full"
        )
    return _BY_NAME[wanted]


@frozen
class FoundFiles:
    """Files that paths were expanded to, on one file system.

    Attributes:
        filesystem: The file system of the files.
        infos: The files' entries in its listings, by path; sorted by path.
    """

    filesystem: AbstractFileSystem
    infos: Mapping[str, Mapping[str, Any]]


def expand_paths_to_files(
    paths: Sequence[str], storage_options: Mapping[str, Any] | None = None
) -> FoundFiles:
    """Expand paths to files: each path is a file, a folder, or a glob.

    In folders and globs, files and folders whose names begin with a dot or an underscore are
    skipped, as engines do, except partition folders such as `_key=value`.

    Raises:
        NotFoundError: A path matches no file.
        InvalidInputError: The paths are on more than one file system, or one cannot be opened.
        MissingDependencyError: The client library of the URL is not installed.
    """
    filesystem: Any = None
    infos: dict[str, Mapping[str, Any]] = {}
    for path in paths:
        place, nested_position = open_location(path, storage_options)
        if filesystem is not None and place is not filesystem:
            raise InvalidInputError(
                f"{path} lies on another file system than {paths[0]}; add them in two calls"
            )
        filesystem = place
        try:
            found = _find_files(place, nested_position)
        except LedgerError:
            raise
        except ValueError as error:
            # A port out of range, or no bucket.
            raise InvalidInputError(f"{shown(path)} cannot be opened: {error}") from error
        if not found:
            raise NotFoundError(f"{path} names no file; check the path")
        infos.update(found)
    if filesystem is None:
        raise InvalidInputError("no paths were given; name at least one file, folder or glob")
    return FoundFiles(filesystem, dict(sorted(infos.items())))


def _find_files(filesystem: AbstractFileSystem, path: str) -> dict[str, Mapping[str, Any]]:
    if filesystem.isdir(path):
        found = filesystem.find(path, detail=True)
        return {name: info for name, info in found.items() if _is_visible_file(name, path)}
    if filesystem.exists(path):
        return {path: filesystem.info(path)}
    if not any(mark in path for mark in "*?["):
        return {}
    found = filesystem.glob(path, detail=True)
    fixed = path[: min(path.index(mark) for mark in "*?[" if mark in path)].rpartition("/")[0]
    return {
        name: info
        for name, info in found.items()
        if info["type"] == "file" and _is_visible_file(name, fixed)
    }


def _is_visible_file(name: str, base: str) -> bool:
    below = PurePosixPath(name[len(base) :].lstrip("/"))
    return not any(part[0] == "." or (part[0] == "_" and "=" not in part) for part in below.parts)


def ledger_names(path: str, filesystem: AbstractFileSystem, names: FileNames) -> tuple[str, str]:
    """Return a file's name in the ledger, and its name at the path where it was found.

    A local symbolic link is another name of the same file, so the ledger's name is that of the
    link's target. The other name has the folders with the partition values.

    Args:
        path: Path in the spelling of `filesystem`.
        filesystem: The file system of the file.
        names: Normalization of the table's file names.
    """
    found = str(filesystem.unstrip_protocol(path))
    place = place_of(names.location)
    if place.family != LOCAL or place_of(found).family != LOCAL:
        return names.usual(found), names.usual(found)
    # The path of the table's own folder may contain a link, too.
    real = FileNames(f"file://{os.path.realpath(f'/{place.path}')}")
    return real.usual(os.path.realpath(path)), names.usual(found)


def data_files(  # noqa: PLR0913 - the files, the table and what its formats need
    paths: Sequence[str],
    *,
    state: TableState,
    history: Iterable[Schema],
    location: str,
    column_names: Mapping[int, str] = MappingProxyType({}),
    storage_options: Mapping[str, Any] | None = None,
    on_progress: OnProgress | None = None,
) -> tuple[FileChange, ...]:
    """Return the file changes that add existing Parquet files, sorted by path.

    Only footers are read. Partition values are those of the default spec, from `key=value` folders
    and the files' own statistics; the schema id is that of the newest schema whose names a file
    uses.

    Args:
        paths: Files, folders or globs; paths or URLs.
        state: The state of the table to add them to.
        history: Its schemas, newest first, the current one included; read as far as needed.
        location: The table's absolute URL.
        column_names: As for `match_schema`.
        storage_options: Options for the files' file system.
        on_progress: Called with the number of files read and of all, after each file.

    Raises:
        NotFoundError: A path matches no file.
        StoreError: A file system does not answer, or denies access with these credentials.
        InvalidInputError: A file is not a Parquet file, or the paths are on two file systems.
        InvalidChangeError: A file's columns, ids, types or partition values do not match the table,
            its partition values are unknown, or an option of the table is not a metrics mode.
        UnsupportedError: A partition value cannot be parsed from a path.
    """
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    with reading(f"{shown(paths[0])}{more}" if paths else ""):
        found = expand_paths_to_files(paths, storage_options)
    names, modes = FileNames(location), metrics_modes(state.schema)
    footers = read_footers(
        list(found.infos),
        filesystem=found.filesystem,
        infos=found.infos,
        on_progress=on_progress,
    )
    registrar = _FileRegistrar(state, _ReplayableIterable(history), column_names, {}, modes)
    return tuple(
        registrar.file_change(*ledger_names(each.path, found.filesystem, names), each)
        for each in footers
    )


def new_files(
    paths: Sequence[str],
    *,
    live: ListedFiles,
    state: TableState,
    storage_options: Mapping[str, Any] | None = None,
) -> list[str]:
    """Return the URLs of the files that are not live in a table, sorted.

    Args:
        paths: Files, folders or globs; paths or URLs.
        live: The lookup of the table's live files.
        state: The state at which files are live or not.
        storage_options: Options for the files' file system.

    Raises:
        NotFoundError: A path matches no file.
        StoreError: A file system does not answer, or denies access with these credentials.
        InvalidInputError: The paths are on two file systems.
    """
    with reading(shown(paths[0]) if paths else ""):
        found = expand_paths_to_files(paths, storage_options)
    urls = {
        ledger_names(each, found.filesystem, live.names)[0]: str(
            found.filesystem.unstrip_protocol(each)
        )
        for each in found.infos
    }
    spelled = {name: (name, *live.names.spellings(name)) for name in urls}
    every = list(dict.fromkeys(chain.from_iterable(spelled.values())))
    there = live.lookup_live_files_at(every, state)
    return [url for name, url in urls.items() if there.keys().isdisjoint(spelled[name])]


class _ReplayableIterable:
    """Re-iterable wrapper of an iterable, which is consumed only as far as needed."""

    def __init__(self, source: Iterable[Schema]) -> None:
        self._rest = iter(source)
        self._taken: list[Schema] = []

    def __iter__(self) -> Iterator[Schema]:
        position = 0
        while True:
            if position == len(self._taken):
                try:
                    self._taken.append(next(self._rest))
                except StopIteration:
                    return
            yield self._taken[position]
            position += 1


@frozen
class _FileRegistrar:
    """Registration of files in one call, with a cache of schema matches by column shape."""

    state: TableState
    history: Iterable[Schema]
    column_names: Mapping[int, str]
    matches: dict[tuple[FooterColumn, ...], SchemaMatch]
    modes: MetricsModes

    def file_change(self, name: str, found: str, footer: Footer) -> FileChange:
        match = self._match_schema_cached(name, footer)
        partition = self._file_partition_values(found, footer, match)
        statistics = FileStatistics.of_fields(footer, match.schema.fields, self.modes)
        return FileChange(
            path=name,
            partition=partition,
            schema_id=match.schema_id,
            record_count=footer.record_count,
            file_size_in_bytes=footer.file_size_in_bytes,
            creation_time=footer.creation_time,
            spec_id=self.state.spec.spec_id,
            field_ids=match.field_ids,
            value_counts=statistics.value_counts,
            null_value_counts=statistics.null_value_counts,
            lower_bounds=statistics.lower_bounds,
            upper_bounds=statistics.upper_bounds,
            column_names=dict(match.column_names) or UNSET,
        )

    def _match_schema_cached(self, name: str, footer: Footer) -> SchemaMatch:
        match = self.matches.get(footer.columns)
        if match is None:
            match = match_schema(
                footer.columns, self.history, file=name, column_names=self.column_names
            )
            ordering = member_ordering_format(self.state, INSTALLED)
            if ordering is not None:
                ordered = match_member_order(match, footer.columns, self.history, file=name)
                if isinstance(ordered, MemberMisfit):
                    raise member_misfit_error(ordering, ordered, self.state)
                match = ordered
            self.matches[footer.columns] = match
        return match

    def _file_partition_values(
        self, name: str, footer: Footer, match: SchemaMatch
    ) -> tuple[PartitionValue, ...]:
        schema = self.state.schema
        self._refuse_lost_values(name, footer)
        said = partition_values(
            name,
            self.state.spec,
            field_types(schema),
            default_name=schema.options.get("partition.default-name", DEFAULT_NAME),
        )
        stored = {
            field.id: column
            for column, field in pair_columns_with_fields(footer.columns, match.schema.fields)
        }
        sources = {each.id: each for each in walk_fields(schema.fields)}
        return tuple(
            partition_value(name, field, value, sources.get(field.source_id), stored)
            for field, value in zip(self.state.spec.fields, said, strict=True)
        )

    def _refuse_lost_values(self, name: str, footer: Footer) -> None:
        """Raise if only a file's path has the values of a column that is no partition column."""
        partitioning = {each.name for each in self.state.spec.fields}
        stored = {each.name for each in footer.columns}
        for key in path_keys(name):
            if key in self.state.schema.names and key not in partitioning | stored:
                raise InvalidChangeError(
                    f"file {name}: only its path says {key}, and the table is not partitioned by "
                    f"{key}, so readers would see NULL; write the column into the file"
                )


@frozen
class FileStatistics:
    """Statistics of a file, by the table's field ids; attributes as in `FileChange`."""

    value_counts: dict[int, int]
    null_value_counts: dict[int, int]
    lower_bounds: dict[int, str]
    upper_bounds: dict[int, str]

    @classmethod
    def of_fields(
        cls, footer: Footer, fields: Sequence[DataField], modes: MetricsModes
    ) -> FileStatistics:
        """Return the statistics in a footer.

        Args:
            footer: The file's footer.
            fields: The fields of the schema that the file matches.
            modes: The table's metrics modes.
        """
        found = cls({}, {}, {}, {})
        for column, field in pair_columns_with_fields(footer.columns, fields):
            mode = modes.of(field.id)
            if column.facts is not None and mode.counts:
                found._count(field, column.facts)
                found._bound(column, field, column.facts, mode)
        return found

    def _count(self, field: DataField, facts: ColumnFacts) -> None:
        self.value_counts[field.id] = facts.value_count
        if facts.null_count is not None:
            self.null_value_counts[field.id] = facts.null_count

    def _bound(
        self, column: FooterColumn, field: DataField, facts: ColumnFacts, mode: MetricsMode
    ) -> None:
        if column.type is None or mode.length == 0:
            return
        lower = lower_bound(facts, column.type, field.type, mode.length)
        upper = upper_bound(facts, column.type, field.type, mode.length)
        if lower is not None:
            self.lower_bounds[field.id] = lower
        if upper is not None:
            self.upper_bounds[field.id] = upper
