"""The logical types of a column: Paimon's, plus the two that only Iceberg has.

A type is a value: frozen, comparable, hashable, and valid by construction. The types themselves
are here; beside them others may import:

- `text`, `wire`: a type's text and JSON forms; `sql`, `arrow`: what it is in Spark's SQL and Arrow.
- `iceberg`, `single_value`: what it and its values are in Iceberg.
- `defaults`: a column's default, kept as text.
- `casting`: what may become what.
- `walk`: what stands inside a type, every place of a schema, and who gives ids to members.
- `columns`: a table's columns by id and by name, found once while they stand.
- `numbers`: numbers that texts and decimals say, with a bound on their digits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Self

import attrs
from attrs import field, frozen

from ledger.model.errors import InvalidTypeError
from ledger.model.messages.excerpt import excerpt

INT_MAX, LONG_MAX = 2**31 - 1, 2**63 - 1
"""The greatest numbers of Java's int and long, which formats' files hold."""

MAX_LENGTH = INT_MAX
"""The greatest length of a string or binary type; there it prints as STRING or BYTES."""

MAX_DEPTH = 100
"""How many constructed types may stand inside one another; deeper ones are refused."""

GEOGRAPHY_ALGORITHMS = ("spherical", "vincenty", "thomas", "andoyer", "karney")


def _within(low: int, high: int) -> Callable[[Any, attrs.Attribute[int], object], None]:
    """Return an attrs validator for a whole number in `low..high`, both included."""

    def check(instance: DataType, attribute: attrs.Attribute[int], value: object) -> None:
        # bool is an int in Python, but VARCHAR(true) is a mistake.
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise InvalidTypeError(
                f"{instance.root} {attribute.name} {excerpt(value)} is out of range: "
                f"give a whole number from {low} to {high}"
            )

    return check


def _spelled_out(instance: DataType, attribute: attrs.Attribute[str], value: object) -> None:
    if not isinstance(value, str) or not value.strip():
        raise InvalidTypeError(
            f"{instance.root} {attribute.name} is blank: name it or leave it out"
        )


def _as_tuple(fields: Iterable[DataField]) -> tuple[DataField, ...]:
    return tuple(fields)


@frozen
class DataType:
    """What a column's values are, and whether they may be NULL (by default they may)."""

    root: ClassVar[str]
    """The type's name without parameters, such as `VARCHAR` or `TIMESTAMP_LTZ`."""

    nullable: bool = field(default=True, kw_only=True)
    depth: int = field(default=0, init=False, eq=False, repr=False)
    """How many constructed types lead to the innermost one: 0 for INT, 1 for an ARRAY of INT."""

    def with_nullability(self, nullable: bool) -> Self:  # noqa: FBT001 - the value, not a switch
        """Return the same type, nullable or not.

        >>> IntType().with_nullability(False)
        IntType(nullable=False)
        """
        return self if nullable is self.nullable else attrs.evolve(self, nullable=nullable)

    def _nest(self, *members: DataType) -> None:
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
    length: int = field(default=1, validator=_within(1, MAX_LENGTH))


@frozen
class VarCharType(DataType):
    """Text of at most `length` characters; `STRING` is the one with the greatest length."""

    root: ClassVar[str] = "VARCHAR"
    length: int = field(default=1, validator=_within(1, MAX_LENGTH))


@frozen
class BinaryType(DataType):
    """Exactly `length` bytes."""

    root: ClassVar[str] = "BINARY"
    length: int = field(default=1, validator=_within(1, MAX_LENGTH))


@frozen
class VarBinaryType(DataType):
    """At most `length` bytes; `BYTES` is the one with the greatest length."""

    root: ClassVar[str] = "VARBINARY"
    length: int = field(default=1, validator=_within(1, MAX_LENGTH))


# attrs compiles methods for every class it is given: one that adds no field inherits them.
class BooleanType(DataType):
    """True or false."""

    __slots__ = ()
    root: ClassVar[str] = "BOOLEAN"


@frozen
class DecimalType(DataType):
    """An exact number of `precision` digits, `scale` of them behind the point."""

    root: ClassVar[str] = "DECIMAL"
    precision: int = field(default=10, validator=_within(1, 38))
    scale: int = field(default=0)

    @scale.validator
    def _check_scale(self, attribute: attrs.Attribute[int], value: int) -> None:
        _within(0, self.precision)(self, attribute, value)


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
    precision: int = field(default=0, validator=_within(0, 9))


@frozen
class TimestampType(DataType):
    """A wall-clock reading without a time zone, `precision` fractional digits of a second."""

    root: ClassVar[str] = "TIMESTAMP"
    precision: int = field(default=6, validator=_within(0, 9))


@frozen
class LocalZonedTimestampType(DataType):
    """A point on the time line, shown in the reader's zone; `precision` as in `TimestampType`."""

    root: ClassVar[str] = "TIMESTAMP_LTZ"
    precision: int = field(default=6, validator=_within(0, 9))


class VariantType(DataType):
    """A semi-structured value that carries its own shape."""

    __slots__ = ()
    root: ClassVar[str] = "VARIANT"


class BlobType(DataType):
    """A large binary object that is stored beside the rows."""

    __slots__ = ()
    root: ClassVar[str] = "BLOB"


@frozen
class GeometryType(DataType):
    """A shape in the plane of the coordinate reference system `crs`."""

    root: ClassVar[str] = "GEOMETRY"
    crs: str = field(default="OGC:CRS84", validator=_spelled_out)


@frozen
class GeographyType(DataType):
    """A shape on the globe; `algorithm` says how edges run between its points."""

    root: ClassVar[str] = "GEOGRAPHY"
    crs: str = field(default="OGC:CRS84", validator=_spelled_out)
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
        self._nest(self.element)


@frozen
class MultisetType(DataType):
    """Elements of one type, each with the number of times that it occurs."""

    root: ClassVar[str] = "MULTISET"
    element: DataType

    def __attrs_post_init__(self) -> None:
        self._nest(self.element)


@frozen
class MapType(DataType):
    """Values found by their key; `key_id`, `value_id` where the table carries such ids."""

    root: ClassVar[str] = "MAP"
    key: DataType
    value: DataType
    key_id: int | None = field(default=None, kw_only=True, eq=False, repr=False)
    value_id: int | None = field(default=None, kw_only=True, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._nest(self.key, self.value)


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
        self._nest(*(member.type for member in self.fields))


@frozen
class VectorType(DataType):
    """Exactly `length` elements of one fixed-width type."""

    root: ClassVar[str] = "VECTOR"
    element: DataType
    length: int = field(validator=_within(1, MAX_LENGTH))

    def __attrs_post_init__(self) -> None:
        self._nest(self.element)
        if self.element.root not in _VECTOR_ELEMENTS:
            known = ", ".join(_VECTOR_ELEMENTS)
            raise InvalidTypeError(f"VECTOR cannot hold {self.element.root}: use one of {known}")


@frozen
class DataField:
    """A column or a member of a ROW. `id` is what it is; `name` is only what it is called.

    `default_value` is what writers put where a row says nothing; `initial_default` what files older
    than the column read as (Iceberg's; None: NULL).
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
