"""Delta schemas as the ledger's columns, and column mapping.

A column is identified by its physical name: the one in the files, which no rename changes. If a
table uses column mapping, the ledger keeps Delta's ids; otherwise it assigns ids, and a name that
returns is the same column again.

Source: the Delta transaction protocol, "Schema Serialization Format", "Column Mapping" and "Writer
Requirements for IcebergCompatV2".

Delta finds a column in all files by one name. Until the first rename or drop that is the
column's own name, which every reader supports; afterwards it is the physical name, the one in the
live files.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from attrs import Factory, define, evolve, field, frozen
from msgspec import UnsetType

from ledger.decide.column_draft import without_member_ids
from ledger.model import types as t
from ledger.model.errors import InvalidInputError, InvalidTypeError, UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema, with_column_names
from ledger.model.types import (
    TypePlace,
    parts_of,
    type_places,
    walk_fields,
    walk_ids,
)
from ledger.state.table import TableState

_PLAIN: Mapping[str, t.DataType] = {
    "boolean": t.BooleanType(),
    "byte": t.TinyIntType(),
    "short": t.SmallIntType(),
    "integer": t.IntType(),
    "long": t.BigIntType(),
    "float": t.FloatType(),
    "double": t.DoubleType(),
    "date": t.DateType(),
    "string": t.STRING,
    "binary": t.BYTES,
    "timestamp": t.LocalZonedTimestampType(6),
    "timestamp_ntz": t.TimestampType(6),
    "variant": t.VariantType(),
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)")
_MODE = "delta.columnMapping.mode"
_ID = "delta.columnMapping.id"
_PHYSICAL = "delta.columnMapping.physicalName"
NESTED_IDS = "delta.columnMapping.nested.ids"
"""Key of column metadata with the ids of the nested elements, keys and values."""

Path = tuple[str, ...]


def column_path_text(path: Path) -> str:
    """Return a column's path as Delta's log writes it.

    Example:
        >>> column_path_text(("a", "element", "b.c"))
        'a.element.`b.c`'
    """
    return ".".join(map(_quote_name, path))


@frozen
class ColumnNamesInFiles:
    """Names of a table's columns in its files.

    The ledger's own files use the names of their schema. Files imported from a source use its
    physical names.

    Attributes:
        names: The physical names of the source, by field id.
        last_schema_id: The last schema of the source; -1 if there is none.
    """

    names: Mapping[int, str]
    last_schema_id: int

    @classmethod
    def of(cls, state: TableState) -> ColumnNamesInFiles:
        """Return the names of a table's columns in its files."""
        return cls(state.origin.physical_names, state.origin.last_physical_schema_id)

    def schema(self, schema: Schema) -> Schema:
        """Return a schema whose columns have the names used in its files."""
        if schema.id > self.last_schema_id:
            return schema
        return with_column_names(schema, self.names)


def _quote_name(name: str) -> str:
    return f"`{name.replace('`', '``')}`" if "." in name or "`" in name else name


def is_mapped(configuration: Mapping[str, str]) -> bool:
    """Return whether a table's columns have physical names (column mapping)."""
    return configuration.get(_MODE, "none") != "none"


@frozen
class ConvertedColumns:
    """A Delta schema converted to the ledger's columns.

    Attributes:
        fields: The columns.
        names: The name of each in files, by field id.
        new: The ids of new columns, by the path of their physical names.
        has_own_ids: Whether all ids are Delta's own, which the files then contain.
    """

    fields: tuple[t.DataField, ...]
    names: Mapping[int, str]
    new: Mapping[str, int]
    has_own_ids: bool


def columns_of(
    schema: Mapping[str, Any],
    configuration: Mapping[str, str],
    known: Mapping[str, int],
    highest: int,
) -> ConvertedColumns:
    """Return the columns of a Delta schema.

    Args:
        schema: The schema, as JSON.
        configuration: The table's configuration, which sets the column mapping mode.
        known: The ids of all columns so far, by the path of their physical names.
        highest: The highest id assigned so far; 0 for none.

    Raises:
        UnsupportedError: The ledger has no such type; the message names the column.
        InvalidInputError: The text is not a Delta schema.
    """
    reading = _SchemaReader(is_mapped(configuration), known)
    try:
        reading.number(schema, highest)
        fields = reading.read_members(schema, (), ())
    except (KeyError, TypeError, AttributeError) as error:
        raise InvalidInputError(f"the source's schema is not a Delta schema: {error!r}") from error
    except RecursionError as error:
        raise InvalidInputError(
            f"the source's schema nests deeper than {t.MAX_DEPTH} types: flatten its columns"
        ) from error
    has_own_ids = reading.mapped and reading.has_own_ids
    if has_own_ids:
        _check_unique_ids(fields)
    else:
        # If ids are assigned here, ids of nested types could be those of other columns.
        fields = without_member_ids(fields)
    _check_unique_names(fields)
    return ConvertedColumns(fields, reading.names, reading.new, has_own_ids)


def _check_unique_ids(fields: tuple[t.DataField, ...]) -> None:
    names: dict[int, str] = {}
    for each in fields:
        for number in (each.id, *walk_ids(each.type)):
            if number in names:
                raise InvalidInputError(
                    f"the source gives field id {number} twice, in column {names[number]} and in "
                    f"column {each.name}; give each column, element, key and value its own id"
                )
            names[number] = each.name


def _check_unique_names(fields: tuple[t.DataField, ...]) -> None:
    """Check that no two columns have the same name, physical name or id."""
    seen: dict[int | str, str] = {}
    for each in fields:
        for key in (each.id, each.name):
            if key in seen:
                raise InvalidInputError(
                    f"the source's columns {seen[key]} and {each.name} have the same name or the "
                    "same physical name; give each its own name"
                )
            seen[key] = each.name


def nested_ids_of(schema: Schema, physical: Mapping[int, str]) -> dict[int, dict[str, int]]:
    """Return the ids that types carry for elements, keys and values, as column metadata gives them.

    Args:
        schema: The ledger's schema.
        physical: The name of each column in files, by field id.

    Returns:
        The ids by path, relative to the column's physical name, by the id of the nearest column.

    Example:
        >>> kind = t.MapType(t.STRING, t.ArrayType(t.STRING, element_id=9), key_id=7, value_id=8)
        >>> nested_ids_of(Schema((t.DataField(1, "a", kind),)), {1: "c"})
        {1: {'c.key': 7, 'c.value': 8, 'c.value.element': 9}}
    """
    found: dict[int, dict[str, int]] = {}
    for each in walk_fields(schema.fields):
        if ids := dict(_nested_type_ids(each.type, physical[each.id])):
            found[each.id] = ids
    return found


def _nested_type_ids(kind: t.DataType, path: str) -> Iterator[tuple[str, int]]:
    for each in parts_of(kind):
        if each.field is None:
            inner = f"{path}.{each.name}"
            if each.id is not None:
                yield inner, each.id
            yield from _nested_type_ids(each.type, inner)


def physical_fields(
    schema: Mapping[str, Any], configuration: Mapping[str, str], known: Mapping[str, int]
) -> tuple[t.DataField, ...]:
    """Return a schema's columns with their names in files; every column is known."""
    columns = columns_of(schema, configuration, known, 0)

    def renamed(each: t.DataField) -> t.DataField:
        return evolve(each, name=columns.names[each.id], type=inside(each.type))

    def inside(kind: t.DataType) -> t.DataType:
        if not isinstance(kind, t.RowType):
            return kind
        return evolve(kind, fields=tuple(map(renamed, kind.fields)))

    return tuple(map(renamed, columns.fields))


def columns_by_physical_path(
    schema: Mapping[str, Any], configuration: Mapping[str, str]
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield every column of a Delta schema, at every depth, by the path of its physical names."""
    for path, member in _SchemaReader(is_mapped(configuration), {}).all(schema, ()):
        yield column_path_text(path), member


@frozen
class _TypePosition:
    """Position of a type in a Delta schema.

    Attributes:
        path: Its path in physical names.
        said: Its path in display names.
        nested: The nested ids of elements, keys and values in the nearest column, by path.
        key: Its path in `nested`.
    """

    path: Path
    said: Path
    nested: Mapping[str, int]
    key: str

    def inside(self, name: str) -> _TypePosition:
        return _TypePosition(
            (*self.path, name), (*self.said, name), self.nested, f"{self.key}.{name}"
        )

    @property
    def id(self) -> int | None:
        """The id of this element, key or value; None if none is given."""
        found = self.nested.get(self.key)
        if found is not None and type(found) is not int:
            raise TypeError(f"{NESTED_IDS} gives {self.key} {found!r}, which is not an id")
        return found


@define
class _SchemaReader:
    mapped: bool
    known: Mapping[str, int]
    names: dict[int, str] = Factory(dict)
    new: dict[str, int] = Factory(dict)
    has_own_ids: bool = True

    def number(self, schema: Mapping[str, Any], highest: int) -> None:
        """Assign ids to new columns: Delta's own, in their order, if they are unused."""
        unknown = [
            (self._source_id(member), place, path)
            for place, (path, member) in enumerate(self.all(schema, ()))
            if column_path_text(path) not in self.known
        ]
        for own, _, path in sorted(unknown, key=lambda each: each[:2]):
            highest = own if own > highest else highest + 1
            self.new[column_path_text(path)] = highest

    def _source_id(self, member: Mapping[str, Any]) -> int:
        return int(member.get("metadata", {}).get(_ID, 0)) if self.mapped else 0

    def _physical_name(self, member: Mapping[str, Any]) -> str:
        name = member.get("metadata", {}).get(_PHYSICAL) if self.mapped else None
        return str(member["name"] if name is None else name)

    def all(
        self, schema: Mapping[str, Any], around: Path
    ) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        """Yield every column below a path of physical names."""
        for member in schema["fields"]:
            path = (*around, self._physical_name(member))
            yield path, member
            yield from self._nested_columns(member["type"], path)

    def _nested_columns(self, kind: Any, path: Path) -> Iterator[tuple[Path, Mapping[str, Any]]]:
        if not isinstance(kind, Mapping):
            return
        if kind["type"] == "struct":
            yield from self.all(kind, path)
        elif kind["type"] == "array":
            yield from self._nested_columns(kind["elementType"], (*path, "element"))
        elif kind["type"] == "map":
            yield from self._nested_columns(kind["keyType"], (*path, "key"))
            yield from self._nested_columns(kind["valueType"], (*path, "value"))

    def read_members(
        self, schema: Mapping[str, Any], around: Path, said: Path
    ) -> tuple[t.DataField, ...]:
        """Return the members of a struct.

        Args:
            schema: The struct.
            around: Its path in physical names.
            said: Its path in display names.
        """
        return tuple(self._convert_field(each, around, said) for each in schema["fields"])

    def _convert_field(self, member: Mapping[str, Any], around: Path, said: Path) -> t.DataField:
        path, name = (*around, self._physical_name(member)), str(member["name"])
        text = column_path_text(path)
        field_id = self.new[text] if text in self.new else self.known[text]
        self.names[field_id] = path[-1]
        self.has_own_ids = self.has_own_ids and field_id == self._source_id(member)
        nested = member.get("metadata", {}).get(NESTED_IDS, {}) if self.mapped else {}
        # Paths begin with the physical name; some writers use the display name.
        key = next((each for each in (path[-1], name) if _has_ids_below(nested, each)), name)
        data_type = self._convert_type(
            member["type"], _TypePosition(path, (*said, name), nested, key)
        )
        return t.DataField(
            field_id,
            name,
            data_type.with_nullability(bool(member["nullable"])),
            member.get("metadata", {}).get("comment"),
        )

    def _convert_type(self, kind: Any, place: _TypePosition) -> t.DataType:
        if isinstance(kind, str):
            return _parse_primitive_type(kind, place.said)
        if kind["type"] == "struct":
            return t.RowType(list(self.read_members(kind, place.path, place.said)))
        if kind["type"] == "array":
            inner = place.inside("element")
            element = self._convert_type(kind["elementType"], inner)
            return t.ArrayType(
                element.with_nullability(bool(kind["containsNull"])), element_id=inner.id
            )
        if kind["type"] == "map":
            keyed, valued = place.inside("key"), place.inside("value")
            key, value = (
                self._convert_type(kind["keyType"], keyed),
                self._convert_type(kind["valueType"], valued),
            )
            return t.MapType(
                key.with_nullability(nullable=False),
                value.with_nullability(bool(kind["valueContainsNull"])),
                key_id=keyed.id,
                value_id=valued.id,
            )
        raise _unsupported_type_error(kind["type"], place.said)


def _has_ids_below(nested: Mapping[str, int], name: str) -> bool:
    return any(each.startswith(f"{name}.") for each in nested)


def _parse_primitive_type(kind: str, said: Path) -> t.DataType:
    if kind in _PLAIN:
        return _PLAIN[kind]
    decimal = _DECIMAL.fullmatch(kind)
    if decimal is None:
        raise _unsupported_type_error(kind, said)
    try:
        return t.DecimalType(int(decimal[1]), int(decimal[2]))
    except InvalidTypeError as error:
        raise UnsupportedError(
            f"column {'.'.join(said)} has Delta's type {kind}, which the ledger cannot hold: "
            f"{error}"
        ) from error


def _unsupported_type_error(kind: object, said: Path) -> UnsupportedError:
    return UnsupportedError(
        f"column {'.'.join(said)} has Delta's type {kind}, which the ledger cannot hold"
    )


@frozen
class FileNaming:
    """Column names in a file: those of a schema, except for some fields.

    Attributes:
        schema_id: The schema.
        names: The other names, as pairs of a field id and a name, sorted.
    """

    schema_id: int
    names: tuple[tuple[int, str], ...] = ()

    @classmethod
    def of(cls, file: FileChange) -> FileNaming:
        """Return the column names in a file."""
        if isinstance(file.column_names, UnsetType):
            return cls(file.schema_id)
        return cls(file.schema_id, tuple(sorted(file.column_names.items())))

    @classmethod
    def of_text(cls, text: str) -> FileNaming:
        """Return the column names of a text that `text` returned.

        Example:
            >>> FileNaming.of_text(FileNaming(2, ((1, "a"),)).text())
            FileNaming(schema_id=2, names=((1, 'a'),))
        """
        schema_id, _, names = text.partition(" ")
        found = msgspec.json.decode(names, type=dict[int, str]) if names else {}
        return cls(int(schema_id), tuple(sorted(found.items())))

    def text(self) -> str:
        """Return a text of it, as a key of a position."""
        if not self.names:
            return str(self.schema_id)
        return f"{self.schema_id} {msgspec.json.encode(dict(self.names)).decode()}"

    def schema(self, schema: Schema) -> Schema:
        """Return its schema with the names in the file."""
        return with_column_names(schema, dict(self.names))


Level = tuple[int | str | None, ...]


@define
class HistoricalColumnNames:
    """Names of columns in the files of some schemas, dropped columns included.

    Attributes:
        names: The names by field id.
        meant: The field ids by level and case-folded name, as Spark compares names.
    """

    names: dict[int, set[str]] = field(factory=lambda: defaultdict(set))
    meant: dict[tuple[Level, str], set[int]] = field(factory=lambda: defaultdict(set))

    @classmethod
    def of(cls, schemas: Iterable[Schema]) -> HistoricalColumnNames:
        """Return the names of columns in files that use the names of some schemas."""
        found = cls()
        for schema in schemas:
            for place, field_id in named_fields(schema):
                name = place.path[-1]
                found.names[field_id].add(name)
                found.meant[place.level, name.casefold()].add(field_id)
        return found

    def physical(self, place: TypePlace, field_id: int) -> str:
        """Return the name by which readers find a column in all files."""
        held, name = self.names.get(field_id), place.path[-1]
        if held:
            return min(held)
        taken = self.meant.get((place.level, name.casefold()), set())
        return f"col-{field_id}" if taken - {field_id} else name


def named_fields(schema: Schema) -> Iterator[tuple[TypePlace, int]]:
    """Yield every named field of a schema, at every depth, with its field id."""
    for place in type_places(schema.fields):
        if place.field is not None:
            yield place, place.field.id


def physical_names(schema: Schema, held: HistoricalColumnNames) -> dict[int, str]:
    """Return the names of a schema's columns in files, by field id.

    Example:
        >>> old, new = Schema.of({"a": "INT"}), Schema.of({"b": "INT"})
        >>> physical_names(new, HistoricalColumnNames.of([old]))
        {0: 'a'}
    """
    return {field_id: held.physical(place, field_id) for place, field_id in named_fields(schema)}


def find_name_conflicts(
    schema: Schema, held: HistoricalColumnNames
) -> Iterator[tuple[TypePlace, str]]:
    """Yield the columns that no single name finds in all files, each with the reason."""
    for place, field_id in named_fields(schema):
        names = sorted(held.names.get(field_id, ()))
        if len(names) > 1:
            yield place, f"files hold it as {' and as '.join(names)}"
            continue
        for name in names:
            others = held.meant[place.level, name.casefold()] - {field_id}
            if others:
                yield place, f"files hold field {min(others)} under its name {name} as well"


def renames_or_drops(before: Schema, after: Schema) -> bool:
    """Return whether a column of a schema is renamed or dropped in a later one.

    Example:
        >>> from ledger.model.types import DataField, IntType, RowType
        >>> before, after = (
        ...     Schema((DataField(0, "r", RowType((DataField(1, name, IntType()),))),))
        ...     for name in ("a", "b")
        ... )
        >>> renames_or_drops(before, after), renames_or_drops(before, before)
        (True, False)
    """
    later = {field_id: place.path[-1] for place, field_id in named_fields(after)}
    return any(later.get(field_id) != place.path[-1] for place, field_id in named_fields(before))
