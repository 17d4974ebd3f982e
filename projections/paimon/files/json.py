"""The one place that knows how Paimon's JSON files look, byte for byte, and that reads them.

Paimon writes with Jackson's default pretty printer: two spaces a level, a blank on both sides of
the colon, lists opened and closed on the line of their neighbours, nothing after the last brace.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from ledger.model.errors import InvalidInputError

# Jackson escapes these alone, with upper-case hex; everything else stands as UTF-8.
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
    r"""Return decoded JSON as the text that Paimon writes to its files.

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
    return _text(value, "\n")


def _text(value: Any, newline: str) -> str:
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    if isinstance(value, Mapping):
        deeper = newline + "  "
        members = [f"{_text(key, deeper)} : {_text(item, deeper)}" for key, item in value.items()]
        return f"{{{deeper}{f',{deeper}'.join(members)}{newline}}}" if members else "{ }"
    if isinstance(value, Sequence):
        items = [_text(item, newline) for item in value]
        return f"[ {', '.join(items)} ]" if items else "[ ]"
    return json.dumps(value, allow_nan=False)


_File = TypeVar("_File", bound=msgspec.Struct)


def decoded(obj: Mapping[str, Any] | str | bytes, kind: type[_File], what: str) -> _File:
    """Return a file's content as a struct.

    Args:
        obj: The file's bytes or text, or what a JSON decoder made of them.
        kind: The struct; keys that it does not have are ignored.
        what: What the file should be, for the message.

    Raises:
        InvalidInputError: It is none; the message names the place.
    """
    try:
        if isinstance(obj, str | bytes):
            return msgspec.json.decode(obj, type=kind)
        return msgspec.convert(obj, kind)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInputError(
            f"not a Paimon {what}: {error}; compare it with another one of the table"
        ) from error
