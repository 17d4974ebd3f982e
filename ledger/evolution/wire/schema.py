"""A table's first schema from the JSON of a create request: DLF's and Paimon's REST `Schema`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ledger.evolution.wire import members as read
from ledger.model.errors import InvalidChangeError, InvalidTypeError
from ledger.model.schema import Schema
from ledger.model.types import DataField
from ledger.model.types.wire import field_from_json


def schema_from_json(obj: Mapping[str, Any], *, path: str = "$") -> Schema:
    """Read `{fields, partitionKeys, primaryKeys, options, comment}`.

    Types may be DLF's wrappers, Paimon's objects or text. Unknown keys are ignored; whether the
    table can be is for `create_schema` to say.

    Args:
        obj: What the JSON decoder gave.
        path: Where `obj` stands in the document, for messages.

    Raises:
        InvalidChangeError: It is no schema; the message names the place, like `$.fields[2].type`.

    Example:
        >>> schema_from_json({"fields": [{"id": 0, "name": "a", "type": "int"}]}).names
        ('a',)
    """
    members = read.as_object(obj, path)
    fields = members.get("fields")
    if not isinstance(fields, list | tuple):
        raise read.bad(f"{path}.fields", "is missing; give a list of columns")
    return Schema(
        fields=tuple(_field(each, f"{path}.fields[{i}]") for i, each in enumerate(fields)),
        partition_keys=read.texts(members, "partitionKeys", path),
        primary_keys=read.texts(members, "primaryKeys", path),
        options=read.text_map(members, "options", path),
        comment=read.optional_text(members, "comment", path),
    )


def _field(obj: object, path: str) -> DataField:
    try:
        return field_from_json(obj, path=path)
    except InvalidTypeError as error:
        raise InvalidChangeError(error.message) from error
