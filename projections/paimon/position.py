"""Position: how far the Paimon projection has come, and what it needs to go on from there."""

from __future__ import annotations

from attrs import field, frozen

from ledger.log.layout import Layout
from ledger.stores import Store
from projections.paimon.manifest_records import ManifestFileMeta
from projections.position_file import load_position, save_position

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


def key(layout: Layout) -> str:
    """Return where a table's position is kept."""
    return f"{layout.root}/projections/paimon.json"


def load(store: Store, layout: Layout) -> Position:
    """Return the position kept for a table; the beginning when none can be used."""
    return load_position(store, key(layout), Position, file_format=FORMAT) or Position()


def save(store: Store, layout: Layout, position: Position) -> None:
    """Keep a position, after everything up to it was written."""
    save_position(store, key(layout), position, file_format=FORMAT)
