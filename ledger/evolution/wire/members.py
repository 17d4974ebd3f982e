"""Reading members of decoded JSON objects, with errors that say where: `$.move.type`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ledger.model.errors import InvalidChangeError
from ledger.model.messages.excerpt import excerpt, is_storable


def bad(path: str, rule: str) -> InvalidChangeError:
    """Return the refusal of what stands at `path`."""
    return InvalidChangeError(f"{path}: {rule}")


def as_object(value: object, path: str) -> Mapping[str, Any]:
    """Return a JSON object as it is.

    Raises:
        InvalidChangeError: It is something else.
    """
    if not isinstance(value, Mapping):
        raise bad(path, f"is {excerpt(value)}, not an object")
    return value


def text(obj: Mapping[str, Any], key: str, path: str) -> str:
    """Return a text that must be there.

    Raises:
        InvalidChangeError: It is missing, null or no text.
    """
    value = optional_text(obj, key, path)
    if value is None:
        raise bad(f"{path}.{key}", "is missing; give a text")
    return value


def optional_text(obj: Mapping[str, Any], key: str, path: str) -> str | None:
    """Return a text, or None where it is missing or null.

    Raises:
        InvalidChangeError: It is no text.
    """
    value = obj.get(key)
    return None if value is None else _storable(value, f"{path}.{key}")


def _storable(value: object, path: str) -> str:
    if not isinstance(value, str):
        raise bad(path, f"is {excerpt(value)}, not a text")
    if not is_storable(value):
        raise bad(path, f"is {excerpt(value)}: half a surrogate pair is no character")
    return value


def optional_number(obj: Mapping[str, Any], key: str, path: str) -> int | None:
    """Return a whole number, or None where it is missing or null.

    Raises:
        InvalidChangeError: It is none.
    """
    value = obj.get(key)
    if value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise bad(f"{path}.{key}", f"is {excerpt(value)}, no whole number")
    return value


def flag(obj: Mapping[str, Any], key: str, path: str) -> bool:
    """Return a switch; False where it is missing or null, as Paimon reads it.

    Raises:
        InvalidChangeError: It is neither true nor false.
    """
    value = obj.get(key)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise bad(f"{path}.{key}", f"is {excerpt(value)}, neither true nor false")
    return value


def texts(obj: Mapping[str, Any], key: str, path: str) -> tuple[str, ...]:
    """Return a list of texts; empty where it is missing or null.

    Raises:
        InvalidChangeError: It is no list, or holds something else; the message gives the index.
    """
    value = obj.get(key)
    if value is None:
        return ()
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise bad(f"{path}.{key}", f"is {excerpt(value)}, not a list of texts")
    return tuple(_storable(each, f"{path}.{key}[{i}]") for i, each in enumerate(value))


def text_map(obj: Mapping[str, Any], key: str, path: str) -> dict[str, str]:
    """Return a map of texts; empty where it is missing or null.

    Raises:
        InvalidChangeError: It is no object, or a value is no text.
    """
    given = obj.get(key)
    value = as_object({} if given is None else given, f"{path}.{key}")
    return {
        _storable(name, f"{path}.{key}"): _storable(each, f"{path}.{key}.{name}")
        for name, each in value.items()
    }
