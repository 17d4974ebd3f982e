"""Position: how far a projection has come, and what it needs to go on from there.

A cache: without it the projection begins anew, and finds what it would write there already.
"""

from __future__ import annotations

import hashlib

import msgspec
from attrs import field, frozen

from ledger.log.layout import Layout
from ledger.stores import Store
from projections.paimon.manifest_records import ManifestFileMeta

FORMAT = 1


@frozen
class Position:
    """Where a projection stands.

    Attributes:
        version: The last commit applied; -1 before the first.
        rollbacks: The ids of all rollbacks so far, ascending.
        manifests: By name, those that the next snapshot may read; None for one without entries.
    """

    version: int = -1
    rollbacks: tuple[int, ...] = ()
    manifests: dict[str, ManifestFileMeta | None] = field(factory=dict, hash=False)


class _File(msgspec.Struct, rename="camel"):
    format: int
    check: str
    position: msgspec.Raw


def key(layout: Layout) -> str:
    """Return where a table's position is kept."""
    return f"{layout.root}/projections/paimon.json"


def load(store: Store, layout: Layout) -> Position:
    """Return the position kept for a table; the beginning when none can be used."""
    body = store.read(key(layout))
    if body is None:
        return Position()
    try:
        file = msgspec.json.decode(body, type=_File)
        content = bytes(file.position)
        if file.format != FORMAT or hashlib.sha256(content).hexdigest() != file.check:
            return Position()
        return msgspec.json.decode(content, type=Position)
    except (msgspec.DecodeError, ValueError):
        return Position()


def save(store: Store, layout: Layout, position: Position) -> None:
    """Keep a position, after everything up to it was written."""
    content = msgspec.json.encode(position)
    check = hashlib.sha256(content).hexdigest()
    body = msgspec.json.encode(_File(FORMAT, check, msgspec.Raw(content)))
    store.replace(key(layout), body)
