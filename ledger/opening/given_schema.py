"""First schema of a table from the forms that callers have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from ledger.decide.change_json import schema_from_json
from ledger.model.errors import InvalidInputError
from ledger.model.messages import excerpt
from ledger.model.schema import Schema
from ledger.model.types import DataType

if TYPE_CHECKING:
    import pyarrow as pa


class ExportsSchema(Protocol):
    """A library's schema: Arrow's PyCapsule interface."""

    def __arrow_c_schema__(self) -> object: ...


class ExportsRows(Protocol):
    """A library's frame or table: Arrow's PyCapsule interface."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...


class HasArrow(Protocol):
    """A schema of PyIceberg."""

    def as_arrow(self) -> pa.Schema: ...  # noqa: D102 - theirs


GivenSchema = Schema | Mapping[str, Any] | ExportsSchema | ExportsRows | HasArrow
"""What a schema can be taken from."""


def as_schema(given: GivenSchema) -> Schema:
    """Return the schema of a value that holds one.

    Columns of another library get new ids.

    Args:
        given: A Schema, its JSON, or a library's. A mapping of names says each type as a
            `DataType` or as Paimon's type text.

    Raises:
        InvalidInputError: It is no schema; the message names the place.
        InvalidTypeError: A type's text cannot be read.
        UnsupportedError: No type holds a column's values; the message names the column.

    Example:
        >>> import pyarrow as pa
        >>> as_schema({"id": "BIGINT"}) == as_schema(pa.schema([("id", pa.int64())]))
        True
    """
    if isinstance(given, Schema):
        return given
    if isinstance(given, Mapping) and not _is_arrow(given):
        if given and all(isinstance(each, str | DataType) for each in given.values()):
            return Schema.of(given)
        return schema_from_json(given)
    from ledger.model.arrow_types import fields_from_arrow

    return Schema(fields_from_arrow(_arrow(given)))


def _is_arrow(given: object) -> bool:
    # A schema of Polars is a mapping, too.
    return hasattr(given, "__arrow_c_schema__")


def _arrow(given: Any) -> pa.Schema:
    import pyarrow as pa

    if isinstance(given, pa.Schema):
        return given
    if hasattr(given, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(given).schema
    if hasattr(given, "__arrow_c_schema__"):
        return pa.schema(given)
    found = given.as_arrow()
    if not isinstance(found, pa.Schema):
        raise InvalidInputError(f"schema={excerpt(given)} gives no Arrow schema; give one itself")
    return found
