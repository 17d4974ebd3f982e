"""Iceberg's data types as values, and primitive ones as the strings that stand in its JSON.

Source: the Iceberg table specification, "Schemas and Data Types", appendix C.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Literal, TypeAlias, cast, get_args

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


@lru_cache(maxsize=65_536)
def shared(member: NestedField) -> NestedField:
    """Return the one of all equal fields that are shared; its defaults have to be None.

    A table's schemas say most columns over and over, and what is shared is quickly compared.
    """
    return member


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


_PLAIN = frozenset(get_args(PlainName))
_NUMBER = r"\s*([0-9]{1,10})\s*"


def _geography(crs: str | None, algorithm: str | None) -> GeographyType:
    known = get_args(EdgeAlgorithm)
    name = (algorithm or "spherical").lower()
    if name not in known:
        raise InvalidTypeError(f"edge algorithm {algorithm!r} is none of {', '.join(known)}")
    default = GeographyType()
    return GeographyType((crs or "").strip() or default.crs, cast("EdgeAlgorithm", name))


def _geometry(crs: str | None) -> GeometryType:
    return GeometryType((crs or "").strip() or GeometryType().crs)


_PARAMETERISED: tuple[tuple[re.Pattern[str], Callable[..., PrimitiveType]], ...] = (
    (re.compile(rf"fixed\[{_NUMBER}\]", re.IGNORECASE), lambda length: FixedType(int(length))),
    (
        re.compile(rf"decimal\({_NUMBER},{_NUMBER}\)", re.IGNORECASE),
        lambda precision, scale: DecimalType(int(precision), int(scale)),
    ),
    (re.compile(r"geometry(?:\(([^(),]*)\))?", re.IGNORECASE), _geometry),
    (
        re.compile(r"geography(?:\(([^(),]*)(?:,\s*([a-z]+)\s*)?\))?", re.IGNORECASE),
        _geography,
    ),
)


def primitive_type(text: str) -> PrimitiveType:
    """Return the type that a string names; blanks between parameters do not matter.

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
    """Return the string of a type, with all its parameters.

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
    """Return how a type is called in a message; nested types go by their kind alone."""
    match kind:
        case StructType() | ListType() | MapType():
            return type(kind).__name__.removesuffix("Type").lower()
        case _:
            return type_text(kind)
