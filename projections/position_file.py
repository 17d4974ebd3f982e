"""Where a projection remembers how far it has come: a checked file beside the table's log.

A cache: without it the projection begins anew, and finds what it would write there already.
"""

from __future__ import annotations

import hashlib
from typing import TypeVar

import msgspec

from ledger.stores import Store

_T = TypeVar("_T")


class _File(msgspec.Struct, rename="camel"):
    format: int
    check: str
    position: msgspec.Raw


def load_position(store: Store, key: str, kind: type[_T], *, file_format: int) -> _T | None:
    """Return the position kept under a key; None when none can be used.

    Args:
        store: The table's.
        key: Where the file is.
        kind: What it holds.
        file_format: The format that it must have.
    """
    body = store.read(key)
    if body is None:
        return None
    try:
        file = msgspec.json.decode(body, type=_File)
        content = bytes(file.position)
        if file.format != file_format or hashlib.sha256(content).hexdigest() != file.check:
            return None
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, ValueError):
        return None


def save_position(store: Store, key: str, position: object, *, file_format: int) -> None:
    """Keep a position, after everything up to it was written."""
    content = msgspec.json.encode(position)
    check = hashlib.sha256(content).hexdigest()
    store.replace(key, msgspec.json.encode(_File(file_format, check, msgspec.Raw(content))))
