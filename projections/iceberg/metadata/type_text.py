"""Primitive types as the strings that stand in Iceberg's JSON.

Source: the Iceberg table specification, appendix C.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import cast, get_args

from ledger.model.errors import InvalidTypeError
from projections.iceberg.metadata.types import (
    DecimalType,
    EdgeAlgorithm,
    FixedType,
    GeographyType,
    GeometryType,
    ListType,
    MapType,
    PlainName,
    PlainType,
    PrimitiveType,
    StructType,
    Type,
)

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
