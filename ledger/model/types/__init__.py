"""Logical types of columns: Paimon's, plus the two that only Iceberg has.

A type is a value: frozen, comparable, hashable, and valid by construction. This module has the
types, traversal of nested types, assignment of field ids, and limits on the digits of numbers.
Other modules:

- `text`, `wire`: a type's text and JSON forms; `sql`: types as users write them.
- `casts`: allowed type changes and checks of column defaults.
- `ledger.model.arrow_types`, `ledger.model.iceberg_types`: the types in Arrow and Iceberg.

Numbers are limited in length before they are parsed or printed: Python rejects very long numbers
with an error of its own, and prints an exponent as zeros, so that nine letters become a gigabyte.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, ClassVar, NamedTuple, Self

import attrs
from attrs import field, frozen
from msgspec import Struct

from ledger.model.errors import InvalidInputError, InvalidTypeError
from ledger.model.messages import excerpt

INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1
"""The maximum values of Java's int and long, the range of numbers in the formats' files."""

MAX_LENGTH = INT_MAX
"""The maximum length of a string or binary type; with it a type prints as STRING or BYTES."""

MAX_DEPTH = 100
"""Maximum nesting depth of constructed types; deeper types are rejected."""

GEOGRAPHY_ALGORITHMS = ("spherical", "vincenty", "thomas", "andoyer", "karney")


def _integer_between(low: int, high: int) -> Callable[[Any, attrs.Attribute[int], object], None]:
    """Return an attrs validator for a whole number in `low..high`, both included."""

    def check(instance: DataType, attribute: attrs.Attribute[int], value: object) -> None:
        # bool is an int in Python, but VARCHAR(true) is a mistake.
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise InvalidTypeError(
                f"{instance.root} {attribute.name} {excerpt(value)} is out of range: "
                f"give a whole number from {low} to {high}"
            )

    return check


def _check_not_blank(instance: DataType, attribute: attrs.Attribute[str], value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise InvalidTypeError(
            f"{instance.root} {attribute.name} is blank: name it or leave it out"
        )


def _as_tuple(fields: Iterable[DataField]) -> tuple[DataField, ...]:
    return tuple(fields)


@frozen
class DataType:
    """Logical type of a column, and its nullability (nullable by default)."""

    root: ClassVar[str]
    """The type's name without parameters, such as `VARCHAR` or `TIMESTAMP_LTZ`."""

    nullable: bool = field(default=True, kw_only=True)
    depth: int = field(default=0, init=False, eq=False, repr=False)
    """Nesting depth of constructed types: 0 for INT, 1 for an ARRAY of INT."""

    def with_nullability(self, nullable: bool) -> Self:  # noqa: FBT001 - the value, not a switch
        """Return the same type, nullable or not.

        >>> IntType().with_nullability(False)
        IntType(nullable=False)
        """
        return self if nullable is self.nullable else attrs.evolve(self, nullable=nullable)

    def _set_nesting_depth(self, *members: DataType) -> None:
        for member in members:
            if not isinstance(member, DataType):
                raise InvalidTypeError(f"{self.root} of {member!r}: give a type, see parse_type")
        depth = 1 + max((member.depth for member in members), default=0)
        if depth > MAX_DEPTH:
            raise InvalidTypeError(
                f"{self.root} nests {depth} types: at most {MAX_DEPTH} may; flatten it"
            )
        object.__setattr__(self, "depth", depth)


@frozen
class CharType(DataType):
    """Text of exactly `length` characters."""

    root: ClassVar[str] = "CHAR"
    length: int = field(default=1, validator=_integer_between(1, MAX_LENGTH))


@frozen
class VarCharType(DataType):
    """Text of at most `length` characters; `STRING` is the one with the greatest length."""

    root: ClassVar[str] = "VARCHAR"
    length: int = field(default=1, validator=_integer_between(1, MAX_LENGTH))


@frozen
class BinaryType(DataType):
    """Exactly `length` bytes."""

    root: ClassVar[str] = "BINARY"
    length: int = field(default=1, validator=_integer_between(1, MAX_LENGTH))


@frozen
class VarBinaryType(DataType):
    """At most `length` bytes; `BYTES` is the one with the greatest length."""

    root: ClassVar[str] = "VARBINARY"
    length: int = field(default=1, validator=_integer_between(1, MAX_LENGTH))


# attrs compiles methods for every decorated class; a class without fields of its own inherits them.
class BooleanType(DataType):
    """True or false."""

    __slots__ = ()
    root: ClassVar[str] = "BOOLEAN"


@frozen
class DecimalType(DataType):
    """An exact number of `precision` digits, `scale` of them behind the point."""

    root: ClassVar[str] = "DECIMAL"
    precision: int = field(default=10, validator=_integer_between(1, 38))
    scale: int = field(default=0)

    @scale.validator
    def _check_scale(self, attribute: attrs.Attribute[int], value: int) -> None:
        _integer_between(0, self.precision)(self, attribute, value)


class TinyIntType(DataType):
    """A signed whole number of 8 bits."""

    __slots__ = ()
    root: ClassVar[str] = "TINYINT"


class SmallIntType(DataType):
    """A signed whole number of 16 bits."""

    __slots__ = ()
    root: ClassVar[str] = "SMALLINT"


class IntType(DataType):
    """A signed whole number of 32 bits."""

    __slots__ = ()
    root: ClassVar[str] = "INT"


class BigIntType(DataType):
    """A signed whole number of 64 bits."""

    __slots__ = ()
    root: ClassVar[str] = "BIGINT"


class FloatType(DataType):
    """A binary floating-point number of 32 bits."""

    __slots__ = ()
    root: ClassVar[str] = "FLOAT"


class DoubleType(DataType):
    """A binary floating-point number of 64 bits."""

    __slots__ = ()
    root: ClassVar[str] = "DOUBLE"


class DateType(DataType):
    """A calendar day without a time zone."""

    __slots__ = ()
    root: ClassVar[str] = "DATE"


@frozen
class TimeType(DataType):
    """A time of day with `precision` fractional digits of a second."""

    root: ClassVar[str] = "TIME"
    precision: int = field(default=0, validator=_integer_between(0, 9))


@frozen
class TimestampType(DataType):
    """A wall-clock reading without a time zone, `precision` fractional digits of a second."""

    root: ClassVar[str] = "TIMESTAMP"
    precision: int = field(default=6, validator=_integer_between(0, 9))


@frozen
class LocalZonedTimestampType(DataType):
    """A point on the time line, shown in the reader's zone; `precision` as in `TimestampType`."""

    root: ClassVar[str] = "TIMESTAMP_LTZ"
    precision: int = field(default=6, validator=_integer_between(0, 9))


class VariantType(DataType):
    """A semi-structured value that carries its own shape."""

    __slots__ = ()
    root: ClassVar[str] = "VARIANT"


class BlobType(DataType):
    """A large binary object that is stored separately from the rows."""

    __slots__ = ()
    root: ClassVar[str] = "BLOB"


@frozen
class GeometryType(DataType):
    """A shape in the plane of the coordinate reference system `crs`."""

    root: ClassVar[str] = "GEOMETRY"
    crs: str = field(default="OGC:CRS84", validator=_check_not_blank)


@frozen
class GeographyType(DataType):
    """A shape on the globe; `algorithm` says how edges run between its points."""

    root: ClassVar[str] = "GEOGRAPHY"
    crs: str = field(default="OGC:CRS84", validator=_check_not_blank)
    algorithm: str = field(default="spherical")

    @algorithm.validator
    def _check_algorithm(self, _attribute: attrs.Attribute[str], value: str) -> None:
        if value not in GEOGRAPHY_ALGORITHMS:
            known = ", ".join(GEOGRAPHY_ALGORITHMS)
            raise InvalidTypeError(f"GEOGRAPHY algorithm {value!r} is unknown: use one of {known}")


class UuidType(DataType):
    """A universally unique identifier. Only Iceberg has it."""

    __slots__ = ()
    root: ClassVar[str] = "UUID"


@frozen
class UnknownType(DataType):
    """Always NULL until the column is given a real type. Only Iceberg has it."""

    root: ClassVar[str] = "UNKNOWN"

    def __attrs_post_init__(self) -> None:
        if not self.nullable:
            raise InvalidTypeError("UNKNOWN holds nothing but NULL: it cannot be NOT NULL")


@frozen
class ArrayType(DataType):
    """A list of elements of one type; `element_id` where the table carries such ids."""

    root: ClassVar[str] = "ARRAY"
    element: DataType
    element_id: int | None = field(default=None, kw_only=True, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._set_nesting_depth(self.element)


@frozen
class MultisetType(DataType):
    """Elements of one type, each with the number of times that it occurs."""

    root: ClassVar[str] = "MULTISET"
    element: DataType

    def __attrs_post_init__(self) -> None:
        self._set_nesting_depth(self.element)


@frozen
class MapType(DataType):
    """Values found by their key; `key_id`, `value_id` where the table carries such ids."""

    root: ClassVar[str] = "MAP"
    key: DataType
    value: DataType
    key_id: int | None = field(default=None, kw_only=True, eq=False, repr=False)
    value_id: int | None = field(default=None, kw_only=True, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._set_nesting_depth(self.key, self.value)


@frozen
class RowType(DataType):
    """A struct: named fields in order, each with an id that survives renames."""

    root: ClassVar[str] = "ROW"
    fields: tuple[DataField, ...] = field(converter=_as_tuple)

    def __attrs_post_init__(self) -> None:
        seen: set[str] = set()
        for member in self.fields:
            if not member.name.strip():
                raise InvalidTypeError(f"ROW field {member.id} has a blank name: give it one")
            if member.name in seen:
                raise InvalidTypeError(f"ROW names {member.name!r} twice: rename one of the fields")
            seen.add(member.name)
        self._set_nesting_depth(*(member.type for member in self.fields))


@frozen
class VectorType(DataType):
    """Exactly `length` elements of one fixed-width type."""

    root: ClassVar[str] = "VECTOR"
    element: DataType
    length: int = field(validator=_integer_between(1, MAX_LENGTH))

    def __attrs_post_init__(self) -> None:
        self._set_nesting_depth(self.element)
        if self.element.root not in _VECTOR_ELEMENTS:
            known = ", ".join(_VECTOR_ELEMENTS)
            raise InvalidTypeError(f"VECTOR cannot hold {self.element.root}: use one of {known}")


@frozen
class DataField:
    """A column or a member of a ROW, identified by `id`; `name` may change.

    `default_value` is Paimon's default, which writers use for rows without a value;
    `initial_default` is Iceberg's, the value of rows in files older than the column (None: NULL).
    """

    id: int
    name: str
    type: DataType
    description: str | None = None
    default_value: str | None = None
    initial_default: str | None = None


STRING = VarCharType(MAX_LENGTH)
BYTES = VarBinaryType(MAX_LENGTH)

_VECTOR_ELEMENTS = ("BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE")


class Part(NamedTuple):
    """Direct part of a constructed type: a ROW member, list element, map key or map value.

    Attributes:
        name: A member's name; `element`, `key` or `value` for the other parts.
        type: The part's type.
        field: The member of a ROW; None for an element, key or value.
        id: The part's field id; None if it has none.
    """

    name: str
    type: DataType
    field: DataField | None
    id: int | None


def parts_of(data_type: DataType) -> tuple[Part, ...]:
    """Return the direct parts of a type; empty for an atomic type.

    Example:
        >>> from ledger.model.types import STRING, IntType
        >>> [(each.name, each.id) for each in parts_of(MapType(STRING, IntType()))]
        [('key', None), ('value', None)]
    """
    if not data_type.depth:
        return ()
    if isinstance(data_type, RowType):
        return tuple(Part(each.name, each.type, each, each.id) for each in data_type.fields)
    if isinstance(data_type, ArrayType):
        return (Part("element", data_type.element, None, data_type.element_id),)
    if isinstance(data_type, MultisetType):
        return (Part("element", data_type.element, None, None),)
    if isinstance(data_type, MapType):
        return (
            Part("key", data_type.key, None, data_type.key_id),
            Part("value", data_type.value, None, data_type.value_id),
        )
    return ()


def with_parts(data_type: DataType, parts: Sequence[Part]) -> DataType:
    """Return a type with its direct parts replaced.

    Args:
        data_type: The type.
        parts: The parts in the order of `parts_of`, with their new types and ids.

    Example:
        >>> from ledger.model.types import STRING, IntType
        >>> (part,) = parts_of(ArrayType(STRING))
        >>> with_parts(ArrayType(STRING), [part._replace(type=IntType(), id=3)]).element_id
        3
    """
    if isinstance(data_type, RowType):
        fields = [
            attrs.evolve(each.field, id=each.id, type=each.type)
            for each in parts
            if each.field is not None and each.id is not None
        ]
        return attrs.evolve(data_type, fields=fields)
    if isinstance(data_type, ArrayType):
        (element,) = parts
        return attrs.evolve(data_type, element=element.type, element_id=element.id)
    if isinstance(data_type, MultisetType):
        (element,) = parts
        return attrs.evolve(data_type, element=element.type)
    if isinstance(data_type, MapType):
        key, value = parts
        return attrs.evolve(
            data_type, key=key.type, value=value.type, key_id=key.id, value_id=value.id
        )
    return data_type


def walk_fields(fields: Iterable[DataField]) -> Iterator[DataField]:
    """Yield every field, each before those nested in it (through arrays, maps, multisets).

    >>> from ledger.model.types import STRING, IntType
    >>> inner = RowType((DataField(2, "x", IntType()),))
    >>> [each.name for each in walk_fields([DataField(1, "a", MapType(STRING, inner))])]
    ['a', 'x']
    """
    for each in fields:
        yield each
        if each.type.depth:
            yield from _nested_fields(each.type)


def _nested_fields(data_type: DataType) -> Iterator[DataField]:
    for each in parts_of(data_type):
        if each.field is not None:
            yield each.field
        yield from _nested_fields(each.type)


def walk_ids(data_type: DataType) -> Iterator[int]:
    """Yield every field id inside a type: ROW members, and elements, keys and values with an id.

    >>> from ledger.model.types import IntType
    >>> list(walk_ids(ArrayType(RowType((DataField(2, "x", IntType()),)), element_id=1)))
    [1, 2]
    """
    if not data_type.depth:
        return
    parts = parts_of(data_type)
    if isinstance(data_type, MapType):
        # The ids of a key and a value are assigned together.
        yield from (each.id for each in parts if each.id is not None)
    for each in parts:
        if each.id is not None and not isinstance(data_type, MapType):
            yield each.id
        yield from walk_ids(each.type)


class TypePlace(Struct, frozen=True):
    """Position of a type in a schema: a column, or a part nested in one.

    Attributes:
        path: Names from the column on; `element`, `key` and `value` for unnamed parts.
        type: The type at this position.
        field: The named field at this position; None for an element, key or value.
        level: Scope in which its name has to be unique: the id of the enclosing named field (None
            at the top level), then the `element`, `key` and `value` steps below it.
        around: The enclosing types, outermost first.
    """

    path: tuple[str, ...]
    type: DataType
    field: DataField | None
    level: tuple[int | str | None, ...]
    around: tuple[DataType, ...] = ()

    @property
    def name(self) -> str:
        """The path as text, with dots."""
        return ".".join(self.path)


def type_places(fields: Iterable[DataField]) -> Iterator[TypePlace]:
    """Yield the position of every type in a schema, each before the ones nested in it.

    Example:
        >>> from ledger.model.types import IntType
        >>> row = RowType([DataField(1, "x", IntType())])
        >>> [each.name for each in type_places([DataField(0, "a", ArrayType(row))])]
        ['a', 'a.element', 'a.element.x']
    """
    for each in fields:
        place = TypePlace((each.name,), each.type, each, (None,))
        yield place
        if each.type.depth:
            yield from _nested_places(place)


def _nested_places(place: TypePlace) -> Iterator[TypePlace]:
    around = (*place.around, place.type)
    level: tuple[int | str | None, ...] = (
        (*place.level, place.path[-1]) if place.field is None else (place.field.id,)
    )
    for part in parts_of(place.type):
        inner = TypePlace((*place.path, part.name), part.type, part.field, level, around)
        yield inner
        if part.type.depth:
            yield from _nested_places(inner)


def assign_field_ids(data_type: DataType, highest: int) -> tuple[DataType, int]:
    """Assign new ids to all ROW members in a type; return the type and the highest id.

    Paimon's order: the ids inside a member come before its own, a map's key before its value.

    Args:
        data_type: The type; ids that it has are discarded.
        highest: The highest id assigned so far; the first new one is `highest + 1`.

    Example:
        >>> from ledger.model.types import DataField, IntType
        >>> from ledger.model.types import walk_fields
        >>> row = RowType((DataField(0, "a", ArrayType(RowType((DataField(0, "x", IntType()),)))),))
        >>> [member.id for member in walk_fields(assign_field_ids(row, 5)[0].fields)]
        [7, 6]
    """
    parts = []
    for part in parts_of(data_type):
        inner, highest = assign_field_ids(part.type, highest)
        highest += part.field is not None
        parts.append(part._replace(type=inner, id=highest if part.field else part.id))
    return with_parts(data_type, parts), highest


MOST_DIGITS = 309
"""Maximum number of digits: that of the greatest DOUBLE; no number in a table has more."""

TOO_MANY_DIGITS = f"more digits than any number here: {MOST_DIGITS} at most"

_ENDLESS = 10**MOST_DIGITS


def is_endless(number: int) -> bool:
    """Return whether an integer has more than `MOST_DIGITS` digits.

    >>> is_endless(10**18), is_endless(-(10**5000))
    (False, True)
    """
    return not -_ENDLESS < number < _ENDLESS


def whole_number(text: str) -> int | None:
    """Return the integer of a decimal text; None for any other text.

    Raises:
        InvalidInputError: The text has more than `MOST_DIGITS` digits.

    Example:
        >>> whole_number("12"), whole_number("-3"), whole_number("1_000")
        (12, None, None)
    """
    if not text.isdecimal():
        return None
    if len(text) > MOST_DIGITS:
        raise InvalidInputError(f"number {excerpt(text)} has {TOO_MANY_DIGITS}")
    return int(text)


def within_digits(value: Decimal) -> Decimal:
    """Return a decimal unchanged if it is safe to print without an exponent.

    Raises:
        InvalidInputError: Without an exponent it has more than `MOST_DIGITS` digits.
        OverflowError: It is infinite or NaN.

    Example:
        >>> within_digits(Decimal("1e3"))
        Decimal('1E+3')
    """
    if not value.is_finite():
        raise OverflowError(value)
    if not -MOST_DIGITS <= value.adjusted() < MOST_DIGITS:
        raise InvalidInputError(f"number {value:.3e} has {TOO_MANY_DIGITS}")
    return value


__all__ = [
    "BYTES",
    "GEOGRAPHY_ALGORITHMS",
    "INT_MAX",
    "LONG_MAX",
    "MAX_DEPTH",
    "MAX_LENGTH",
    "MOST_DIGITS",
    "STRING",
    "TOO_MANY_DIGITS",
    "ArrayType",
    "BigIntType",
    "BinaryType",
    "BlobType",
    "BooleanType",
    "CharType",
    "DataField",
    "DataType",
    "DateType",
    "DecimalType",
    "DoubleType",
    "FloatType",
    "GeographyType",
    "GeometryType",
    "IntType",
    "LocalZonedTimestampType",
    "MapType",
    "MultisetType",
    "Part",
    "RowType",
    "SmallIntType",
    "TimeType",
    "TimestampType",
    "TinyIntType",
    "TypePlace",
    "UnknownType",
    "UuidType",
    "VarBinaryType",
    "VarCharType",
    "VariantType",
    "VectorType",
    "assign_field_ids",
    "is_endless",
    "parts_of",
    "type_places",
    "walk_fields",
    "walk_ids",
    "whole_number",
    "with_parts",
    "within_digits",
]
