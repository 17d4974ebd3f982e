"""JSON documents that nobody has looked at yet: decoded, and bounded before anything walks them.

What cattrs finds wrong becomes one sentence that names the place.
"""

from __future__ import annotations

import re
from typing import Any, TypeAlias

import msgspec
from cattrs.errors import (
    AttributeValidationNote,
    BaseValidationError,
    ClassValidationError,
    IterableValidationError,
    IterableValidationNote,
)

from ledger.model.errors import InvalidInputError
from ledger.model.messages.excerpt import is_storable
from ledger.model.types import MAX_DEPTH
from projections.dlf.wire.keys import camel_case

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
            sound, rule = is_storable(value), "has half a character; send whole Unicode"
        case dict():
            sound = all(isinstance(key, str) and is_storable(key) for key in value)
            rule = "has a key that is no text; JSON's keys are texts"
        case _:
            return f"{type(value).__name__} is no JSON; give what a JSON decoder gave"
    return None if sound else rule


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


def refusal(error: Exception, kind: object, obj: object) -> InvalidInputError:
    """Return the error to raise for what a reader raised: the first problem and where it is.

    Args:
        error: What the reader raised.
        kind: What was to be read.
        obj: What it was to be read from.

    Example:
        >>> refusal(ValueError("$.name: is missing"), str, {}).message
        '$.name: is missing'
    """
    path, cause = _first(error, "$")
    text = cause.args[0] if cause.args else cause
    if isinstance(cause, KeyError):
        return InvalidInputError(f"{path}: is missing")
    if isinstance(cause, RecursionError):
        return InvalidInputError(f"{path}: nests too deep for the stack left here; flatten it")
    if str(text).startswith("$"):
        # The reader of a part says where inside the part: `$.type: ...`.
        return InvalidInputError(f"{path}{str(text)[1:]}")
    if path == "$":
        name = getattr(kind, "__name__", "object of this kind")
        return InvalidInputError(f"$: {obj!r:.80} is no {name}: {text}")
    return InvalidInputError(f"{path}: {text}")


def _first(error: Exception, path: str) -> tuple[str, Exception]:
    if not isinstance(error, BaseValidationError):
        return path, error
    inner, note = _noted(error)[0]
    if isinstance(note, AttributeValidationNote):
        path = f"{path}.{camel_case(note.name)}"
    elif isinstance(note, IterableValidationNote):
        path = f"{path}[{note.index!r}]"
    return _first(inner, path)


def _noted(
    error: BaseValidationError,
) -> list[tuple[Exception, AttributeValidationNote | IterableValidationNote | None]]:
    if isinstance(error, ClassValidationError | IterableValidationError):
        noted, plain = error.group_exceptions()
        return [*noted, *((each, None) for each in plain)]
    return [(each, None) for each in error.exceptions]
