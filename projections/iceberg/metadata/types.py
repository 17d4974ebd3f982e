"""Iceberg's data types as values; how they are written stands in `type_text` and `schema_json`.

Source: the Iceberg table specification, "Schemas and Data Types".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias

from attrs import field, frozen

from ledger.model.errors import InvalidTypeError

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


def _check_length(_instance: object, _attribute: object, length: int) -> None:
    if length < 0:
        raise InvalidTypeError(f"fixed[{length}]: a length is not negative")


@frozen
class FixedType:
    """Exactly that many bytes."""

    length: int = field(validator=_check_length)


@frozen
class DecimalType:
    """An exact number of at most `precision` digits, `scale` of them behind the point."""

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
    """Shapes whose edges are straight lines in the coordinate reference system `crs`."""

    crs: str = DEFAULT_CRS


@frozen
class GeographyType:
    """Shapes whose edges follow the earth's surface, computed by `algorithm`."""

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
        initial_default: What rows of files without the field have in it.
        write_default: What a writer stores when it is given no value.
    """

    id: int
    name: str
    type: Type
    required: bool
    doc: str | None = None
    initial_default: Default | None = None
    write_default: Default | None = None


@frozen
class StructType:
    """Named fields in an order."""

    fields: tuple[NestedField, ...] = ()


@frozen
class ListType:
    """Elements of one type."""

    element_id: int
    element: Type
    element_required: bool


@frozen
class MapType:
    """Pairs of a key, which is never null, and a value."""

    key_id: int
    key: Type
    value_id: int
    value: Type
    value_required: bool


Type: TypeAlias = PrimitiveType | StructType | ListType | MapType
