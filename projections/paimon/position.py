"""Position: how far the Paimon projection has come, and what it needs to go on from there."""

from __future__ import annotations

from attrs import field, frozen

from ledger.log.layout import Layout
from ledger.stores import Store
from projections.paimon.manifest_records import ManifestFileMeta
from projections.position_file import load_position, save_position

FORMAT = 2
_FIRST_FORMAT = 1

RENDERER = 2
"""How files are made; one by another rule is made anew. The first listed, for every rollback, all
files that were live then, so that tables without rollbacks had the same files as now."""


@frozen
class Position:
    """Where a projection stands.

    Attributes:
        version: The last commit applied; -1 before the first.
        rollbacks: The ids of all rollbacks so far and of their targets, ascending.
        manifests: By name, those that the next snapshot may read; None for one without entries.
        unlisted: See `UnlistedFiles.flips`.
        renderer: The rule that the files were made by; an older one leaves only version and
            rollbacks here, without their targets.
    """

    version: int = -1
    rollbacks: tuple[tuple[int, int], ...] = ()
    manifests: dict[str, ManifestFileMeta | None] = field(factory=dict, hash=False)
    unlisted: tuple[int, ...] = ()
    renderer: int = RENDERER

    @property
    def is_older(self) -> bool:
        """Whether the files were made by an older rule."""
        return self.renderer != RENDERER


@frozen
class _First:
    """What the first format kept."""

    version: int = -1
    rollbacks: tuple[int, ...] = ()


def key(layout: Layout) -> str:
    """Return where a table's position is kept."""
    return f"{layout.root}/projections/paimon.json"


def load(store: Store, layout: Layout) -> Position:
    """Return the position kept for a table; the beginning when none can be used."""
    found = load_position(store, key(layout), Position, file_format=FORMAT)
    if found is not None:
        return found
    first = load_position(store, key(layout), _First, file_format=_FIRST_FORMAT)
    if first is None:
        return Position()
    return Position(first.version, tuple((each, 0) for each in first.rollbacks), renderer=1)


def save(store: Store, layout: Layout, position: Position) -> None:
    """Keep a position, after everything up to it was written."""
    save_position(store, key(layout), position, file_format=FORMAT)
