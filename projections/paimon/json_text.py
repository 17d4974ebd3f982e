"""The one place that knows how Paimon's JSON files look, byte for byte.

Paimon writes with Jackson's default pretty printer: two spaces a level, a blank on both sides of
the colon, lists opened and closed on the line of their neighbours, nothing after the last brace.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

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
