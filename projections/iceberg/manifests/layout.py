"""Which manifests a snapshot's list names: a rule of the log alone, so that all agree.

The files that a snapshot adds are a manifest. When an interval of snapshots is complete, by the
rule of `ledger.model.tiles`, its small manifests become one; those that are half full or more stay
as they are. A snapshot that removes files writes the manifests that hold them again, named after
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from ledger.model.tiles import covering
from projections.iceberg.manifests.entry import DELETED, EXISTING, ManifestEntry
from projections.iceberg.manifests.file import ManifestDraft, ManifestFile, Part

MOST_ENTRIES = 10_000
"""How many files one manifest lists."""


def newest_interval(snapshot_id: int) -> tuple[int, int]:
    """Return the snapshots, both included, whose manifests become one with a snapshot.

    >>> newest_interval(7), newest_interval(8), newest_interval(64)
    ((7, 7), (1, 8), (1, 64))
    """
    first, end = next(covering(snapshot_id))
    return first + 1, end


def merges(manifest: ManifestFile, removed: int, interval: tuple[int, int]) -> bool:
    """Return whether a manifest becomes part of one for the whole interval.

    Args:
        manifest: The manifest.
        removed: How many of its files the snapshot takes away.
        interval: The newest one, see `newest_interval`.
    """
    is_inside = manifest.part.first >= interval[0]
    return is_inside and 2 * (manifest.live_files - removed) < MOST_ENTRIES


def after_removal(
    manifest: ManifestFile, live: Iterable[ManifestEntry], gone: Sequence[str], snapshot_id: int
) -> ManifestDraft:
    """Return a manifest without the files that a snapshot takes out of it."""
    entries = tuple(_marked(live, frozenset(gone), snapshot_id))
    return ManifestDraft(manifest.part, (manifest.low, manifest.high), entries)


def _marked(
    live: Iterable[ManifestEntry], gone: frozenset[str], snapshot_id: int
) -> Iterator[ManifestEntry]:
    for each in live:
        if each.path in gone:
            yield replace(each, status=DELETED, snapshot_id=snapshot_id, written=None)
        else:
            yield each if each.status == EXISTING else replace(each, status=EXISTING)


def formed(
    interval: tuple[int, int],
    older: Iterable[tuple[Iterable[ManifestEntry], Sequence[str]]],
    added: Iterable[ManifestEntry],
) -> Iterator[ManifestDraft]:
    """Yield the manifests of an interval's files of one spec and content, by the files' keys.

    Args:
        interval: Its first snapshot, and its last one, which is being made.
        older: The live files of each manifest that is merged, and the URIs of those that go.
        added: The files that come.
    """
    keyed = [(each.key, each) for each in added]
    for live, gone in older:
        found = list(live)
        marked = _marked(found, frozenset(gone), interval[1])
        keyed += zip((each.key for each in found), marked, strict=True)
    keyed.sort(key=lambda each: each[0])
    for number, start in enumerate(range(0, len(keyed), MOST_ENTRIES)):
        piece = keyed[start : start + MOST_ENTRIES]
        entry = piece[0][1]
        yield ManifestDraft(
            Part(*interval, entry.spec_id, entry.content, number),
            (piece[0][0], piece[-1][0]),
            tuple(entry for _, entry in piece),
        )
