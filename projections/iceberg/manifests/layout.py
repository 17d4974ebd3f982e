"""Which manifests a snapshot's list names: a rule of the log alone, so that all agree.

The files that a snapshot adds are a manifest. When an interval of snapshots is complete, by the
rule of `ledger.model.tiles`, its small manifests become one; those that are half full or more stay
as they are. A snapshot that removes files writes the manifests that hold them again, named after
it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from msgspec.structs import replace

from ledger.model.tiles import covering
from projections.iceberg.manifests.entry import DELETED, EXISTING, ManifestEntry, Piece
from projections.iceberg.manifests.file import ManifestDraft, ManifestFile, Part
from projections.manifest_files.container import WrittenBlock

MOST_ENTRIES = 512
"""How many files one manifest lists, as long as there are no more than `MOST_FULL` full ones."""

MOST_FULL = 32


def most_entries(live_files: int) -> int:
    """Return how many files one manifest of a table lists, by how many the table has.

    A removal writes a manifest again, and every snapshot names them all: both grow with the square
    root of the table's files.

    >>> most_entries(10_000), most_entries(60_000), most_entries(1_000_000)
    (512, 1024, 4096)
    """
    most, full = MOST_ENTRIES, MOST_FULL
    while live_files > most * full:
        most, full = 2 * most, 2 * full
    return most


def newest_interval(snapshot_id: int) -> tuple[int, int]:
    """Return the snapshots, both included, whose manifests become one with a snapshot.

    >>> newest_interval(7), newest_interval(8), newest_interval(64)
    ((7, 7), (1, 8), (1, 64))
    """
    first, end = next(covering(snapshot_id))
    return first + 1, end


def merges(manifest: ManifestFile, removed: int, interval: tuple[int, int], most: int) -> bool:
    """Return whether a manifest becomes part of one for the whole interval.

    Args:
        manifest: The manifest.
        removed: How many of its files the snapshot takes away.
        interval: The newest one, see `newest_interval`.
        most: See `most_entries`.
    """
    is_inside = manifest.part.first >= interval[0]
    return is_inside and 2 * (manifest.live_files - removed) < most


def after_removal(
    pieces: Iterable[Piece], gone: Collection[str], snapshot_id: int
) -> tuple[Piece, ...]:
    """Return what a manifest holds after a snapshot took files out of it.

    Args:
        pieces: Its live files; those that go are read.
        gone: Their URIs.
        snapshot_id: The snapshot.
    """
    left = frozenset(gone)
    return tuple(
        each if isinstance(each, WrittenBlock) else _marked(each, left, snapshot_id)
        for each in pieces
    )


def _marked(entry: ManifestEntry, gone: frozenset[str], snapshot_id: int) -> ManifestEntry:
    if entry.path in gone:
        return replace(entry, status=DELETED, snapshot_id=snapshot_id, written=None)
    return entry if entry.status == EXISTING else replace(entry, status=EXISTING)


def formed(
    interval: tuple[int, int],
    older: Iterable[tuple[Iterable[ManifestEntry], Sequence[str]]],
    added: Iterable[ManifestEntry],
    most: int,
) -> Iterator[ManifestDraft]:
    """Yield the manifests of an interval's files of one spec and content, by the files' keys.

    Args:
        interval: Its first snapshot, and its last one, which is being made.
        older: The live files of each manifest that is merged, and the URIs of those that go.
        added: The files that come.
        most: See `most_entries`.
    """
    keyed = [(each.key, each) for each in added]
    for live, gone in older:
        left = frozenset(gone)
        keyed += [(each.key, _marked(each, left, interval[1])) for each in live]
    keyed.sort(key=lambda each: each[0])
    for number, start in enumerate(range(0, len(keyed), most)):
        piece = keyed[start : start + most]
        entry = piece[0][1]
        yield ManifestDraft(
            Part(*interval, entry.spec_id, entry.content, number),
            (piece[0][0], piece[-1][0]),
            tuple(entry for _, entry in piece),
        )
