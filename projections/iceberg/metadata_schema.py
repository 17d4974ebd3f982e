"""Iceberg schemas and types.

Source: the Iceberg table specification, "Schemas" and "Identifier Field IDs"; the messages' rules
are those of Java's Schema class.

Source: the Iceberg table specification, "Schemas and Data Types", appendix C.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import Any, Literal, TypeAlias, cast, get_args

from attrs import field, frozen

from ledger.model.errors import InvalidInputError, InvalidTypeError, UnsupportedError

MOST_DECIMAL_DIGITS = 38
DEFAULT_CRS = "OGC:CRS84"

Default: TypeAlias = bool | int | float | str | Mapping[str, Any]
"""A default value as single-value JSON; that of a struct is `{}`."""

PlainName = Literal[
    "boolean",
    "int",
    "long",
    "float",
    "double",
    "date",
    "time",
    "timestamp",
    "timestamptz",
    "timestamp_ns",
    "timestamptz_ns",
    "string",
    "uuid",
    "binary",
    "unknown",
    "variant",
]
EdgeAlgorithm = Literal["spherical", "vincenty", "thomas", "andoyer", "karney"]


@frozen
class PlainType:
    """A type without parameters."""

    name: PlainName


def _check_fixed_length(_instance: object, _attribute: object, length: int) -> None:
    if length < 0:
        raise InvalidTypeError(f"fixed[{length}]: a length is not negative")


@frozen
class FixedType:
    """Binary values of a fixed number of bytes."""

    length: int = field(validator=_check_fixed_length)


@frozen
class DecimalType:
    """Decimal numbers of at most `precision` digits, `scale` of them behind the point."""

    precision: int
    scale: int

    def __attrs_post_init__(self) -> None:
        if not 1 <= self.precision <= MOST_DECIMAL_DIGITS or self.scale < 0:
            raise InvalidTypeError(
                f"decimal({self.precision}, {self.scale}): the precision is 1 to "
                f"{MOST_DECIMAL_DIGITS}, the scale is not negative"
            )


@frozen
class GeometryType:
    """Shapes with straight edges in the coordinate reference system `crs`."""

    crs: str = DEFAULT_CRS


@frozen
class GeographyType:
    """Shapes with geodesic edges, computed by `algorithm`."""

    crs: str = DEFAULT_CRS
    algorithm: EdgeAlgorithm = "spherical"


PrimitiveType: TypeAlias = PlainType | FixedType | DecimalType | GeometryType | GeographyType


@frozen
class NestedField:
    """A named field of a struct.

    Attributes:
        id: Unique in the whole schema.
        name: Unique inside the struct.
        type: Its type.
        required: Whether it is never null.
        doc: A comment.
        initial_default: The value that rows of files without the field have.
        write_default: The value that a writer stores when it is given none.
    """

    id: int
    name: str
    type: Type
    required: bool
    doc: str | None = None
    initial_default: Default | None = None
    write_default: Default | None = None


@lru_cache(maxsize=65_536)
def shared_field(member: NestedField) -> NestedField:
    """Return the shared instance of a field without defaults, equal to the given one.

    A table's schemas repeat most columns, and shared instances compare quickly.
    """
    return member


@frozen
class StructType:
    """Ordered named fields."""

    fields: tuple[NestedField, ...] = ()


@frozen
class ListType:
    """Elements of one type."""

    element_id: int
    element: Type
    element_required: bool


@frozen
class MapType:
    """Pairs of a non-null key and a value."""

    key_id: int
    key: Type
    value_id: int
    value: Type
    value_required: bool


Type: TypeAlias = PrimitiveType | StructType | ListType | MapType


_PLAIN = frozenset(get_args(PlainName))
_NUMBER = r"\s*([0-9]{1,10})\s*"


def _parse_geography(crs: str | None, algorithm: str | None) -> GeographyType:
    known = get_args(EdgeAlgorithm)
    name = (algorithm or "spherical").lower()
    if name not in known:
        raise InvalidTypeError(f"edge algorithm {algorithm!r} is none of {', '.join(known)}")
    default = GeographyType()
    return GeographyType((crs or "").strip() or default.crs, cast("EdgeAlgorithm", name))


def _parse_geometry(crs: str | None) -> GeometryType:
    return GeometryType((crs or "").strip() or GeometryType().crs)


_PARAMETERISED: tuple[tuple[re.Pattern[str], Callable[..., PrimitiveType]], ...] = (
    (re.compile(rf"fixed\[{_NUMBER}\]", re.IGNORECASE), lambda length: FixedType(int(length))),
    (
        re.compile(rf"decimal\({_NUMBER},{_NUMBER}\)", re.IGNORECASE),
        lambda precision, scale: DecimalType(int(precision), int(scale)),
    ),
    (re.compile(r"geometry(?:\(([^(),]*)\))?", re.IGNORECASE), _parse_geometry),
    (
        re.compile(r"geography(?:\(([^(),]*)(?:,\s*([a-z]+)\s*)?\))?", re.IGNORECASE),
        _parse_geography,
    ),
)


def primitive_type(text: str) -> PrimitiveType:
    """Return the type with a given name; blanks between parameters are ignored.

    Raises:
        InvalidTypeError: No version of the specification has such a type.

    Example:
        >>> primitive_type("decimal(9,2)")
        DecimalType(precision=9, scale=2)
    """
    lowered = text.lower()
    if lowered in _PLAIN:
        return PlainType(cast("PlainName", lowered))
    for pattern, build in _PARAMETERISED:
        if found := pattern.fullmatch(text):
            return build(*found.groups())
    raise InvalidTypeError(
        f"{text!r:.80} is no primitive type; Iceberg has {', '.join(sorted(_PLAIN))}, fixed[L], "
        "decimal(P, S), geometry(C), geography(C, A)"
    )


def type_text(primitive: PrimitiveType) -> str:
    """Return the name of a type, with all its parameters.

    Example:
        >>> type_text(GeographyType())
        'geography(OGC:CRS84, spherical)'
    """
    match primitive:
        case PlainType(name=name):
            return name
        case FixedType(length=length):
            return f"fixed[{length}]"
        case DecimalType(precision=precision, scale=scale):
            return f"decimal({precision}, {scale})"
        case GeometryType(crs=crs):
            return f"geometry({crs})"
        case GeographyType(crs=crs, algorithm=algorithm):
            return f"geography({crs}, {algorithm})"


def type_name(kind: Type) -> str:
    """Return a type's name for messages; nested types without their members."""
    match kind:
        case StructType() | ListType() | MapType():
            return type(kind).__name__.removesuffix("Type").lower()
        case _:
            return type_text(kind)


def _sorted_unique_ids(ids: Iterable[int]) -> tuple[int, ...]:
    return tuple(sorted(set(ids)))


@frozen
class Schema:
    """The columns of a table or view under a schema id.

    Two schemas with the same columns and identifier fields are the same under different ids;
    `is_same_schema` compares them.

    Attributes:
        schema_id: Its id in the metadata.
        fields: The columns.
        identifier_field_ids: Ids of the fields that identify a row, ascending.

    Example:
        >>> from projections.iceberg.metadata_schema import PlainType
        >>> schema = Schema(0, (NestedField(1, "id", PlainType("long"), required=True),))
        >>> schema.find("id").id, schema.highest_field_id
        (1, 1)
    """

    schema_id: int
    fields: tuple[NestedField, ...] = ()
    identifier_field_ids: tuple[int, ...] = field(default=(), converter=_sorted_unique_ids)

    @property
    def struct(self) -> StructType:
        """The columns as a struct."""
        return StructType(self.fields)

    @cached_property
    def placed_fields(self) -> tuple[PlacedField, ...]:
        """Every field at every depth, parents before children, in the order of the columns."""
        return tuple(_placed_fields(self.struct, ()))

    @cached_property
    def by_id(self) -> Mapping[int, PlacedField]:
        """Every field by its id."""
        return {each.field.id: each for each in self.placed_fields}

    @cached_property
    def by_name(self) -> Mapping[str, PlacedField]:
        """Every field by its full name and by its short one, if that is not taken."""
        full = {each.name: each for each in self.placed_fields}
        return {each.short_name: each for each in reversed(self.placed_fields)} | full

    @property
    def highest_field_id(self) -> int:
        """The highest id of a field at any depth; 0 without fields."""
        return max((each.field.id for each in self.placed_fields), default=0)

    def find(self, name: str) -> NestedField | None:
        """Return the field with a full or short name, or None."""
        found = self.by_name.get(name)
        return found.field if found else None

    def name_of(self, field_id: int) -> str | None:
        """Return the full name of a field, or None."""
        found = self.by_id.get(field_id)
        return found.name if found else None


@frozen
class PlacedField:
    """A field at its position in a schema.

    List elements, map keys and map values are fields named `element`, `key` and `value`.

    Attributes:
        field: The field.
        parents: The fields around it, outermost first.
    """

    field: NestedField
    parents: tuple[NestedField, ...] = ()

    @property
    def name(self) -> str:
        """The full name: all names on the path, joined with dots."""
        if not self.parents:
            return self.field.name
        return ".".join(each.name for each in (*self.parents, self.field))

    @property
    def short_name(self) -> str:
        """The full name without `element` and `value` for structs on the path."""
        parts = []
        inside: Type | None = None
        for each in (*self.parents, self.field):
            skipped = (
                each is not self.field
                and isinstance(inside, ListType | MapType)
                and each.name != "key"
                and isinstance(each.type, StructType)
            )
            if not skipped:
                parts.append(each.name)
            inside = each.type
        return ".".join(parts)


def is_same_schema(one: Schema, other: Schema) -> bool:
    """Return whether two schemas differ at most in their ids."""
    return one.fields == other.fields and one.identifier_field_ids == other.identifier_field_ids


def type_members(kind: Type) -> tuple[NestedField, ...]:
    """Return the direct members of a type: fields, or `element`, or `key` and `value`."""
    match kind:
        case StructType(fields=fields):
            return fields
        case ListType():
            return (NestedField(kind.element_id, "element", kind.element, kind.element_required),)
        case MapType():
            return (
                NestedField(kind.key_id, "key", kind.key, required=True),
                NestedField(kind.value_id, "value", kind.value, kind.value_required),
            )
        case _:
            return ()


def _placed_fields(kind: Type, parents: tuple[NestedField, ...]) -> Iterator[PlacedField]:
    for child in type_members(kind):
        yield PlacedField(child, parents)
        if isinstance(child.type, StructType | ListType | MapType):
            yield from _placed_fields(child.type, (*parents, child))


DEFAULTS_SINCE = 3
_PLAIN_SINCE = {"timestamp_ns": 3, "timestamptz_ns": 3, "unknown": 3, "variant": 3}
_GEO_SINCE = 3
_INEXACT = {"float", "double"}


def check_schema(schema: Schema) -> None:
    """Check that a schema is consistent.

    Raises:
        InvalidInputError: An id or a full name occurs twice, an identifier field cannot
            identify a row, or a field of type unknown is required.
    """
    ids: dict[int, str] = {}
    names: dict[str, int] = {}
    for placed in schema.placed_fields:
        field_id, name = placed.field.id, placed.name
        if field_id in ids:
            raise InvalidInputError(
                f"field id {field_id} is that of {ids[field_id]} and of {name}; give each its own"
            )
        if name in names:
            raise InvalidInputError(
                f"the name {name} is that of fields {names[name]} and {field_id}; rename one"
            )
        ids[field_id], names[name] = name, field_id
        if placed.field.required and placed.field.type == PlainType("unknown"):
            raise InvalidInputError(f"{name} is of type unknown, so it must be optional")
    for field_id in schema.identifier_field_ids:
        _check_identifier(schema, field_id)


def _check_identifier(schema: Schema, field_id: int) -> None:
    placed = schema.by_id.get(field_id)
    if placed is None:
        raise InvalidInputError(f"identifier field {field_id} is not in the schema")
    problem = _identifier_problem(placed)
    if problem:
        raise InvalidInputError(f"{placed.name} cannot be an identifier field: {problem}")


def _identifier_problem(placed: PlacedField) -> str | None:
    kind = placed.field.type
    if isinstance(kind, StructType | ListType | MapType):
        return "it is not primitive"
    if isinstance(kind, PlainType) and kind.name in _INEXACT:
        return f"it is a {kind.name}"
    if not placed.field.required:
        return "it is optional"
    for parent in placed.parents:
        if not isinstance(parent.type, StructType):
            return f"it is in the list or map {parent.name}"
        if not parent.required:
            return f"it is in the optional struct {parent.name}"
    return None


def check_format_features(schema: Schema, format_version: int) -> None:
    """Check that a format version supports every type and default of a schema.

    Raises:
        UnsupportedError: It does not; the message names all fields concerned.
    """
    problems = []
    for placed in schema.placed_fields:
        since = _first_version_of_type(placed.field.type)
        if since > format_version:
            problems.append(f"{placed.name} is of a type that needs v{since}")
        if placed.field.initial_default is not None and format_version < DEFAULTS_SINCE:
            problems.append(f"{placed.name} has an initial default, which needs v{DEFAULTS_SINCE}")
    if problems:
        raise UnsupportedError(
            f"not a schema for format version {format_version}: {'; '.join(problems)}"
        )


def _first_version_of_type(kind: Type) -> int:
    match kind:
        case PlainType(name=name):
            return _PLAIN_SINCE.get(name, 1)
        case GeometryType() | GeographyType():
            return _GEO_SINCE
        case _:
            return 1
