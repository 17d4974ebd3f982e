"""JSON documents that nobody has looked at yet: decoded, and bounded before anything walks them."""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import msgspec

from ledger.model.errors import InvalidInputError
from ledger.model.types import MAX_DEPTH

# The DLF spelling of a ROW opens four containers: wrapper, type, list of fields, field.
_MAX_NESTING = 4 * MAX_DEPTH + 32
_LONGS = range(-(2**63), 2**63)
_PLAIN_KEY = re.compile(r"\w{1,64}")

# Where a value stands: where its container stands, and the key or index inside it.
_Place: TypeAlias = "tuple[_Place, str | int] | None"


def decoded(obj: object) -> object:
    """Return a JSON document as plain Python, once it is known to be harmless.

    Harmless: JSON's own types, keys that are texts, whole numbers of 64 bits, Unicode that can be
    encoded, and no deeper than the deepest type. It takes time in proportion to the document, and
    no recursion.

    Args:
        obj: JSON text, or what a JSON decoder made of it.

    Raises:
        InvalidInputError: It is not; the message names the place.

    Example:
        >>> decoded('{"id": 1}')
        {'id': 1}
        >>> decoded({"id": 2**70})
        Traceback (most recent call last):
        ledger.model.errors.InvalidInputError: $.id: has more than 64 bits; ...
    """
    document = _parsed(obj) if isinstance(obj, str | bytes) else obj
    waiting: list[tuple[object, _Place, int]] = [(document, None, 0)]
    while waiting:
        value, place, depth = waiting.pop()
        problem = _too_deep() if depth > _MAX_NESTING else _problem(value)
        if problem is not None:
            raise InvalidInputError(f"{_path(place)}: {problem}")
        members: Any = ()
        if isinstance(value, dict):
            members = value.items()
        elif isinstance(value, list):
            members = enumerate(value)
        # The last in is looked at first, and people read from the top.
        waiting.extend((each, (place, key), depth + 1) for key, each in reversed([*members]))
    return document


def _parsed(text: str | bytes) -> object:
    try:
        return msgspec.json.decode(text)
    except RecursionError as error:
        raise InvalidInputError(f"$: {_too_deep()}") from error
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidInputError(f"$: not JSON: {error}; send one whole JSON document") from error


def _problem(value: object) -> str | None:
    """Return what is wrong with one value, its members aside."""
    match value:
        case None | bool() | float() | list():
            return None
        case int():
            sound, rule = value in _LONGS, "has more than 64 bits; send a smaller number"
        case str():
            sound, rule = _is_encodable(value), "has half a character; send whole Unicode"
        case dict():
            sound = all(isinstance(key, str) and _is_encodable(key) for key in value)
            rule = "has a key that is no text; JSON's keys are texts"
        case _:
            return f"{type(value).__name__} is no JSON; give what a JSON decoder gave"
    return None if sound else rule


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _too_deep() -> str:
    return f"nests deeper than {_MAX_NESTING}; flatten it"


def _path(place: _Place) -> str:
    steps: list[str] = []
    while place is not None:
        place, key = place
        plain = isinstance(key, str) and _PLAIN_KEY.fullmatch(key)
        steps.append(f".{key}" if plain else f"[{key!r:.80}]")
    # A path as deep as the document says at its beginning all that it says.
    return "$" + "".join(reversed(steps))[:200]
