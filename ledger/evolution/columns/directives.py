"""Column comments that Paimon takes as orders: `__BLOB_FIELD`, `__VECTOR_FIELD;128;the comment`.

Source: Paimon's SchemaManager.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from ledger.evolution.options.naming import BLOB_OPTIONS, MAP_LAYOUT_SUFFIXES
from ledger.evolution.options.reading import comma_list
from ledger.evolution.refusals import argument
from ledger.model.types import (
    ArrayType,
    BlobType,
    DataType,
    MapType,
    VectorType,
)

_BLOB_MARKERS = {
    "__BLOB_VIEW_FIELD": "blob-view-field",
    "__BLOB_DESCRIPTOR_FIELD": "blob-descriptor-field",
    "__BLOB_FIELD": "blob-field",
}
_VECTOR_MARKER = "__VECTOR_FIELD"
_BLOB_SOURCES = ("BINARY", "VARBINARY", "BLOB")
_OLDER_KEYS = {"blob-descriptor-field": ("blob.stored-descriptor-fields",)}

LISTS = frozenset({*BLOB_OPTIONS, "vector-field"})
"""Options that list the columns which are such."""

OptionEdit = tuple[str, str | None]
"""A key with its new value, or None where the option goes."""


class Directive(Struct, frozen=True):
    """An order found in a comment.

    Attributes:
        option: The option that lists such columns.
        comment: What is left for readers; None when nothing is.
        dimension: The length of a vector; None for a BLOB.
    """

    option: str
    comment: str | None
    dimension: int | None = None


def read_directive(comment: str | None) -> Directive | None:
    """Return the order in a column comment, or None where it is a plain comment.

    Raises:
        InvalidChangeError: It begins like an order, but is none that Paimon knows.

    Example:
        >>> read_directive("__VECTOR_FIELD;3;of the title").dimension
        3
    """
    text = (comment or "").strip()
    if text.startswith("__VECTOR"):
        return _vector_directive(text)
    if not text.startswith("__BLOB"):
        return None
    marker, _, rest = text.partition(";")
    if marker not in _BLOB_MARKERS:
        known = ", ".join(_BLOB_MARKERS)
        raise argument(f"column comment {text!r} is no BLOB directive: use one of {known}")
    return Directive(_BLOB_MARKERS[marker], rest.strip() or None)


def _vector_directive(text: str) -> Directive:
    marker, _, rest = text.partition(";")
    if marker != _VECTOR_MARKER:
        raise argument(f"column comment {text!r} is no VECTOR directive: use {_VECTOR_MARKER};128")
    dimension, _, comment = rest.partition(";")
    try:
        length = int(dimension)
    except ValueError:
        length = 0
    if length < 1:
        raise argument(f"{text!r} needs a dimension of at least 1, like {_VECTOR_MARKER};128")
    return Directive("vector-field", comment.strip() or None, length)


def directed_type(directive: Directive, name: str, source: DataType) -> DataType:
    """Return the type that the order gives to a column.

    Raises:
        InvalidChangeError: A column of type `source` cannot become that.
    """
    if directive.dimension is not None:
        if not isinstance(source, ArrayType):
            raise argument(f"column {name} is {source.root}: a VECTOR is declared as an ARRAY")
        return VectorType(source.element, directive.dimension, nullable=source.nullable)
    match source:
        case ArrayType(element=element) if _may_hold_blobs(directive, element):
            return ArrayType(BlobType(nullable=element.nullable), nullable=source.nullable)
        case MapType(key=key, value=value) if _may_hold_blobs(directive, value):
            return MapType(key, BlobType(nullable=value.nullable), nullable=source.nullable)
        case _ if source.root in _BLOB_SOURCES:
            return BlobType(nullable=source.nullable)
        case _:
            raise argument(
                f"column {name} is {source.root}: {directive.option} takes BYTES, BINARY or BLOB "
                "(blob-field takes them as ARRAY elements and MAP values, too)"
            )


def _may_hold_blobs(directive: Directive, inner: DataType) -> bool:
    return directive.option == "blob-field" and inner.root in _BLOB_SOURCES


def listing(directive: Directive, name: str, options: Mapping[str, str]) -> list[OptionEdit]:
    """Return the option edits that list a column under its order."""
    edits: list[OptionEdit] = []
    existing = options.get(directive.option)
    if not existing:
        for older in _OLDER_KEYS.get(directive.option, ()):
            if older in options:
                # Left in place, the older key would be shadowed and its columns forgotten.
                existing = options[older]
                edits.append((older, None))
    names = dict.fromkeys((*comma_list(existing or ""), name))
    edits.append((directive.option, ",".join(names)))
    return edits


def unlisting(name: str, data_type: DataType, options: Mapping[str, str]) -> list[OptionEdit]:
    """Return the option edits that forget a dropped BLOB, VECTOR or MAP column."""
    if is_blob(data_type):
        return list(_without(name, BLOB_OPTIONS, options))
    removed: tuple[str, ...] = ()
    edits: list[OptionEdit] = []
    if data_type.root == "VECTOR":
        edits = list(_without(name, ["vector-field"], options))
        removed = (f"field.{name}.vector-dim",)
    elif data_type.root == "MAP":
        removed = tuple(f"fields.{name}.{suffix}" for suffix in MAP_LAYOUT_SUFFIXES)
    return edits + [(key, None) for key in removed if key in options]


def is_blob(data_type: DataType) -> bool:
    """Return whether a column's values go to BLOB files: BLOB, ARRAY of it, MAP to it."""
    match data_type:
        case ArrayType(element=inner) | MapType(value=inner):
            return inner.root == "BLOB"
        case _:
            return data_type.root == "BLOB"


def _without(name: str, keys: Sequence[str], options: Mapping[str, str]) -> Iterator[OptionEdit]:
    for key in keys:
        listed = options.get(key)
        if not listed:
            continue
        rest = ",".join(each for each in comma_list(listed) if each != name)
        if rest != listed:
            yield key, rest or None
