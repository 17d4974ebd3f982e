"""Schema files `schema/schema-N`, and the form of Paimon's JSON.

Source: Paimon's TableSchema and SchemaSerializer.

Paimon writes with Jackson's default pretty printer: two spaces a level, a blank on both sides of
the colon, lists opened and closed on the line of their neighbours, nothing after the last brace.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from ledger.model.errors import InvalidInputError
from ledger.model.messages import is_utf8_encodable
from ledger.model.schema import Schema
from ledger.model.types.wire import field_from_json, field_to_json

# Jackson escapes these alone, with upper-case hex; everything else is written as UTF-8.
_ESCAPES: dict[int, str] = {code: f"\\u{code:04X}" for code in range(32)} | {
    ord("\b"): "\\b",
    ord("\t"): "\\t",
    ord("\n"): "\\n",
    ord("\f"): "\\f",
    ord("\r"): "\\r",
    ord('"'): '\\"',
    ord("\\"): "\\\\",
}


def paimon_json(value: Any) -> str:
    r"""Return decoded JSON as text in the form of Paimon's files.

    Example:
        >>> print(paimon_json({"id": 0, "keys": ["a", "b"], "fields": [{"id": 1}], "options": {}}))
        {
          "id" : 0,
          "keys" : [ "a", "b" ],
          "fields" : [ {
            "id" : 1
          } ],
          "options" : { }
        }
    """
    return _format_json(value, "\n")


def _format_json(value: Any, newline: str) -> str:
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    if isinstance(value, Mapping):
        deeper = newline + "  "
        members = [
            f"{_format_json(key, deeper)} : {_format_json(item, deeper)}"
            for key, item in value.items()
        ]
        return f"{{{deeper}{f',{deeper}'.join(members)}{newline}}}" if members else "{ }"
    if isinstance(value, Sequence):
        items = [_format_json(item, newline) for item in value]
        return f"[ {', '.join(items)} ]" if items else "[ ]"
    return json.dumps(value, allow_nan=False)


_File = TypeVar("_File", bound=msgspec.Struct)


def decode_file(
    obj: Mapping[str, Any] | str | bytes, kind: type[_File], what: str, other: str = "one"
) -> _File:
    """Return a file's content as a struct.

    Args:
        obj: The file's bytes or text, or its decoded JSON.
        kind: The struct; unknown keys are ignored.
        what: The kind of file, for the message.
        other: A sound file of its kind, for the message.

    Raises:
        InvalidInputError: It is not such a file; the message names the place.
    """
    try:
        if isinstance(obj, str | bytes):
            return msgspec.json.decode(obj, type=kind)
        return msgspec.convert(obj, kind, str_keys=True)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInputError(
            f"not a Paimon {what}: {error}; compare it with another {other} of the table"
        ) from error


_ABSENT_VERSION = 1

# Meaning of an absent option in a file of an old version: the defaults of its time.
_OLD_DEFAULTS: dict[int, dict[str, str]] = {
    1: {"bucket": "1", "file.format": "orc"},
    2: {"file.format": "orc"},
}


class _SchemaFile(msgspec.Struct, kw_only=True, rename="camel"):
    version: int = _ABSENT_VERSION
    id: int
    fields: list[Any]
    highest_field_id: int
    partition_keys: tuple[str, ...]
    primary_keys: tuple[str, ...]
    options: dict[str, str]
    comment: str | None = None
    time_millis: int = 0


SCHEMA_KEYS = frozenset(each.encode_name for each in msgspec.structs.fields(_SchemaFile))
"""The keys of a schema file that this module reads."""


def schema_from_json(obj: Mapping[str, Any] | str | bytes) -> Schema:
    """Read a schema file of any version.

    An absent `version` means 1. Defaults of versions 1 and 2 become explicit in the options, while
    `version` is kept, as in Paimon. Unknown keys are ignored and `highestFieldId` is trusted.
    An explicit null for `comment`, `description` or `defaultValue` reads as absent; Paimon's Java
    reads it as the text `null`, which was never meant.

    Args:
        obj: The file's bytes or text, or its decoded JSON.

    Raises:
        InvalidInputError: It is no schema file; the message names the place. Every field needs its
            id, those inside a ROW included: invented ones could collide with other columns'.

    Example:
        >>> old = {"id": 0, "fields": [{"id": 0, "name": "a", "type": "INT"}], "highestFieldId": 0,
        ...        "partitionKeys": [], "primaryKeys": [], "options": {}}
        >>> sorted(schema_from_json(old).options.items())
        [('bucket', '1'), ('file.format', 'orc')]
    """
    file = decode_file(obj, _SchemaFile, "schema file", other="schema-N")
    _check_texts(file)
    return Schema(
        fields=tuple(
            field_from_json(each, path=f"$.fields[{index}]")
            for index, each in enumerate(file.fields)
        ),
        partition_keys=file.partition_keys,
        primary_keys=file.primary_keys,
        options={**_OLD_DEFAULTS.get(file.version, {}), **file.options},
        comment=file.comment,
        id=file.id,
        highest_field_id=file.highest_field_id,
        time_millis=file.time_millis,
        version=file.version,
    )


def schema_to_json(schema: Schema) -> dict[str, Any]:
    """Return the content of a schema file, keys in Paimon's order, options sorted by key.

    `comment` is left out when there is none; an empty one is kept.
    """
    content: dict[str, Any] = {
        "version": schema.version,
        "id": schema.id,
        "fields": [field_to_json(each) for each in schema.fields],
        "highestFieldId": schema.highest_field_id,
        "partitionKeys": list(schema.partition_keys),
        "primaryKeys": list(schema.primary_keys),
        "options": dict(sorted(schema.options.items())),
    }
    if schema.comment is not None:
        content["comment"] = schema.comment
    return {**content, "timeMillis": schema.time_millis}


def schema_file(schema: Schema) -> bytes:
    """Return the bytes of a schema file: the same schema gives the same bytes, always.

    They equal the bytes from Paimon's Java except for the order of the options, which is that of a
    hash map there.
    """
    return paimon_json(schema_to_json(schema)).encode()


def _check_texts(file: _SchemaFile) -> None:
    texts = [*file.partition_keys, *file.primary_keys, *file.options, *file.options.values()]
    for each in (*texts, file.comment or ""):
        if not is_utf8_encodable(each):
            raise InvalidInputError(
                f"not a Paimon schema file: {each!r} holds half a surrogate pair"
            )
