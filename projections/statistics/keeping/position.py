"""How far a table's statistics have come: the one file that is written last."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from ledger.log.codec import digest
from ledger.log.layout import Layout
from ledger.stores import Store
from projections.position_file import load_position, save_position
from projections.statistics.keeping.tiling import Tile, cover
from projections.statistics.reading.opening import Opening


class StatisticsPosition(msgspec.Struct, frozen=True, rename="camel"):
    """The commits that the kept statistics take in.

    Attributes:
        version: The last commit; -1 before the first.
        snapshot_id: The newest snapshot by then; 0 before the first.
        head: The digest of that commit, so that another history shows.
        files: The tiles that cover them, newest first: what a reader without lakeledger reads.
        opening: The last snapshot that stands for others before it; None if each is counted.
    """

    version: int = -1
    snapshot_id: int = 0
    head: str = ""
    files: tuple[str, ...] = ()
    opening: Opening | None = None

    @classmethod
    def at(
        cls, version: int, snapshot_id: int, head: str, opening: Opening | None = None
    ) -> StatisticsPosition:
        """Return the position after a commit."""
        names = tuple(each.name for each in cover(version + 1))
        return cls(version, snapshot_id, head, names, opening)

    @property
    def tiles(self) -> tuple[Tile, ...]:
        """The tiles that cover it, newest first."""
        return cover(self.version + 1)


START = StatisticsPosition()


def folder(layout: Layout) -> str:
    """Return the folder of a table's statistics."""
    return f"{layout.root}/statistics"


def key(layout: Layout) -> str:
    """Return the key of the position."""
    return f"{folder(layout)}/position.json"


def load(store: Store, layout: Layout) -> StatisticsPosition:
    """Return the position that is kept; the start when none can be used.

    One of another history, as after a restored backup, cannot be used.
    """
    found = load_position(store, key(layout), StatisticsPosition)
    if found is None:
        return START
    body = store.read(layout.commit(found.version))
    fits = body is not None and digest(body) == found.head
    return found if fits else START


def stated(store: Store, layout: Layout) -> int:
    """Return the version that the position states, whatever history it is of; -1 for none."""
    found = load_position(store, key(layout), StatisticsPosition)
    return -1 if found is None else found.version


def advance(store: Store, layout: Layout, position: StatisticsPosition) -> StatisticsPosition:
    """Keep a position unless a later one is kept, and return the one that stands."""
    with store.lock(key(layout)):
        # One that is behind gives way, of whatever history it is: only a later one is looked into.
        if stated(store, layout) >= position.version:
            kept = load(store, layout)
            if kept.version >= position.version:
                return kept
        save_position(store, key(layout), position)
        return position


def reopen(store: Store, layout: Layout, opening: Opening) -> None:
    """Say that the kept statistics begin with an opening, after all of them were made again."""
    with store.lock(key(layout)):
        kept = load(store, layout)
        if kept.version >= opening.version:
            changed = replace(kept, opening=opening)
            save_position(store, key(layout), changed)
