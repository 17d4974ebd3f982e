"""Reading Paimon's JSON files into typed values, with errors that name the place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from ledger.model.errors import InvalidInputError

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
