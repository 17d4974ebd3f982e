"""Data types as users write them: Paimon's text, SQL or JSON.

The command `show` prints nested types as `ROW<...>`, `MAP<...>` and `ARRAY<...>`; `read_type` reads
that form.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ledger.model.errors import InvalidInputError, InvalidTypeError
from ledger.model.messages import excerpt
from ledger.model.names import parse_leading_path
from ledger.model.types import MAX_DEPTH, DataType
from ledger.model.types.wire import type_from_json

_NESTED = re.compile(r"\s*(ROW|STRUCT|MAP|ARRAY|MULTISET)\s*<", re.IGNORECASE)
# Paimon reads these without a length as length one, which users do not mean.
_BARE = re.compile(r"(VARCHAR|CHAR|VARBINARY|BINARY)(?:\s+(?:NOT\s+)?NULL)?", re.IGNORECASE)
_QUOTES = "'`"
_COLON = re.compile(r"^\s*(`(?:[^`]|``)+`|[^\s:`]+)\s*:\s*")
_COMMENT = re.compile(r"\s+COMMENT\s+'((?:[^']|'')*)'\s*$", re.IGNORECASE)


def read_type(text: str) -> DataType:
    """Parse a data type from Paimon's text, SQL or JSON.

    Raises:
        InvalidTypeError: The text is not a type, or is VARCHAR or a similar type without a length.

    Example:
        >>> read_type("ROW<city STRING, lines ARRAY<STRING>> NOT NULL").nullable
        False
    """
    if text.count("<") > MAX_DEPTH:
        raise InvalidTypeError(f"type {excerpt(text)} nests deeper than {MAX_DEPTH}; flatten it")
    return type_from_json(_parse_simple_type(text.strip()))


def _parse_simple_type(text: str) -> Any:
    if text.startswith("{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidTypeError(f"type {excerpt(text)} is no JSON: {error}") from error
    bare = _BARE.fullmatch(text)
    if bare is not None:
        root = bare[1].upper()
        whole = "STRING" if root.endswith("CHAR") else "BYTES"
        raise InvalidTypeError(
            f"{root} without a length holds one {'character' if whole == 'STRING' else 'byte'}: "
            f"write {root}(20), or {whole} for any length"
        )
    found = _NESTED.match(text)
    return text if found is None else _parse_constructed_type(found[1].upper(), text, found.end())


def _parse_constructed_type(root: str, text: str, start: int) -> Any:
    end = _closing_bracket_index(text, start)
    parts = _split_at_commas(text[start:end])
    suffix = " ".join(text[end + 1 :].split()).upper()
    if suffix not in {"", "NULL", "NOT NULL"}:
        raise InvalidTypeError(f"cannot read type {text!r}: {suffix!r} may not follow the '>'")
    name = f"{root} NOT NULL" if suffix == "NOT NULL" else root
    match root, parts:
        case (("ROW" | "STRUCT"), _):
            row = name.replace("STRUCT", "ROW")
            return {"type": row, "fields": [_parse_row_member(part) for part in parts]}
        case "MAP", [key, value]:
            return {
                "type": name,
                "key": _parse_simple_type(key),
                "value": _parse_simple_type(value),
            }
        case (("ARRAY" | "MULTISET"), [element]):
            return {"type": name, "element": _parse_simple_type(element)}
        case _:
            wanted = "two types" if root == "MAP" else "one type"
            raise InvalidTypeError(f"cannot read type {text!r}: {root} takes {wanted}")


def _parse_row_member(text: str) -> dict[str, Any]:
    try:
        # Spark writes a colon between the name and the type.
        names, rest = parse_leading_path(_COLON.sub(r"\1 ", text, count=1))
    except InvalidInputError as error:
        raise InvalidTypeError(f"cannot read the ROW member {text!r}: {error}") from error
    if len(names) != 1 or not rest.strip():
        raise InvalidTypeError(f"cannot read the ROW member {text!r}; write NAME TYPE")
    comment = _COMMENT.search(rest)
    member: dict[str, Any] = {"name": names[0]}
    if comment is not None:
        rest = rest[: comment.start()]
        member["description"] = comment[1].replace("''", "'")
    return {**member, "type": _parse_simple_type(rest.strip())}


def _closing_bracket_index(text: str, start: int) -> int:
    """Return the index of the bracket that closes the one opened before `start`."""
    depth = 1
    for position, char in _chars_outside_quotes(text, start):
        depth += (char == "<") - (char == ">")
        if depth == 0:
            return position
    raise InvalidTypeError(f"cannot read type {text!r}: a '>' is missing")


def _split_at_commas(text: str) -> list[str]:
    parts: list[str] = []
    depth = begin = 0
    for position, char in _chars_outside_quotes(text, 0):
        depth += (char in "<(") - (char in ">)")
        if char == "," and depth == 0:
            parts.append(text[begin:position].strip())
            begin = position + 1
    return [*parts, text[begin:].strip()]


def _chars_outside_quotes(text: str, start: int) -> list[tuple[int, str]]:
    quote = ""
    found: list[tuple[int, str]] = []
    for position in range(start, len(text)):
        char = text[position]
        if quote:
            quote = "" if char == quote else quote
        elif char in _QUOTES:
            quote = char
        else:
            found.append((position, char))
    return found
