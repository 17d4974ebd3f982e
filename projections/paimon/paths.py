"""Paths of a Paimon table's files, and the merge tree of its manifests.

Names of manifests and lists are derived from the table's id and their contents, never random.

Source: Paimon's FileStorePathFactory, SchemaManager, SnapshotManager and TagManager.

The changes of each snapshot are one manifest; adjacent manifests merge by the rule of
`ledger.model.snapshot`. A rollback has the contents of its target, and so reads the target's
manifests. Later snapshots continue from there: the changes that were rolled back are not on their
line, and no manifest that they read holds them or their reversal.
"""

from __future__ import annotations

import hashlib
import re
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final
from uuid import UUID, uuid5

from attrs import frozen

from ledger.model.errors import InvalidNameError
from ledger.model.messages import excerpt
from ledger.model.snapshot import FAN_OUT, tiles_covering
from projections.manifest_files.lists import manifest_list_names
from projections.partition_text import partition_path

_LONGEST_TAG: Final = 251
"""Length in bytes of the longest name of a tag; that of its file is four bytes longer."""

_FIRST = -1
"""The stretch of snapshots before the first rollback."""


@frozen(order=True)
class Tile:
    """Range of snapshots on a line whose net changes are one manifest."""

    first: int
    last: int


class SnapshotLines:
    """The line of each snapshot: the snapshots whose changes it contains, oldest first.

    Between two rollbacks snapshots follow one another; such a stretch begins at its rollback and
    continues the line of the rollback's target. If engines made the target, the rollback begins a
    line of its own and is the first on it, with all files that it restores.

    Args:
        rollbacks: The ids of all rollbacks and of their targets, ascending.
        before: The last snapshot that is on no line, since engines made it; the first one follows.

    Example:
        >>> lines = SnapshotLines([(4, 2)])
        >>> lines.depth(3), lines.depth(4), lines.depth(5)
        (3, 2, 3)
        >>> lines.tiles(5) == [Tile(5, 5), Tile(2, 2), Tile(1, 1)]
        True
    """

    def __init__(self, rollbacks: Iterable[tuple[int, int]] = (), before: int = 0) -> None:
        self._before = before
        self._ids: list[int] = []
        self._targets: list[int] = []
        self._begins: list[int] = []
        self._depths: list[int] = []
        self._parents: list[int] = []
        for each in rollbacks:
            self.add(*each)

    def add(self, rollback: int, target: int) -> None:
        """Add the next rollback."""
        is_anew = target <= self._before
        depth, parent = 0 if is_anew else self.depth(target), self._stretch_of(target)
        self._ids.append(rollback)
        self._targets.append(target)
        self._begins.append(rollback if is_anew else rollback + 1)
        self._depths.append(depth)
        self._parents.append(parent)

    @property
    def rollbacks(self) -> tuple[tuple[int, int], ...]:
        """The ids of all rollbacks and of their targets, ascending."""
        return tuple(zip(self._ids, self._targets, strict=True))

    def depth(self, snapshot_id: int) -> int:
        """Return the number of snapshots on the line of one, including itself, not rollbacks."""
        stretch = self._stretch_of(snapshot_id)
        if stretch == _FIRST:
            return snapshot_id - self._before
        return self._depths[stretch] + snapshot_id - self._begins[stretch] + 1

    def is_rollback(self, snapshot_id: int) -> bool:
        """Return whether a snapshot is a rollback to one on a line, without changes of its own."""
        stretch = self._stretch_of(snapshot_id)
        return stretch != _FIRST and snapshot_id < self._begins[stretch]

    def is_rollback_start(self, snapshot_id: int) -> bool:
        """Return whether a snapshot is the first of a line, and a rollback.

        Example:
            >>> lines = SnapshotLines([(8, 3)], before=5)
            >>> lines.is_rollback_start(8), lines.tiles(9)
            (True, [Tile(first=9, last=9), Tile(first=8, last=8)])
        """
        stretch = self._stretch_of(snapshot_id)
        return stretch != _FIRST and self._begins[stretch] == snapshot_id == self._ids[stretch]

    def tiles(self, snapshot_id: int) -> list[Tile]:
        """Return the tiles that a snapshot reads, newest first; the first is its last change.

        Example:
            >>> [(each.first, each.last) for each in SnapshotLines().tiles(11)]
            [(11, 11), (10, 10), (9, 9), (1, 8)]
            >>> [(each.first, each.last) for each in SnapshotLines(before=30).tiles(40)]
            [(40, 40), (39, 39), (31, 38)]
        """
        depth, stretch = self.depth(snapshot_id), self._stretch_of(snapshot_id)
        found: list[Tile] = []
        for start, end in ((depth - 1, depth), *tiles_covering(depth - 1)):
            stretch = self._stretch_containing(end, stretch)
            last = self._snapshot_at(end, stretch)
            stretch = self._stretch_containing(start + 1, stretch)
            found.append(Tile(self._snapshot_at(start + 1, stretch), last))
        return found

    def runs(self, tile: Tile) -> list[tuple[int, int]]:
        """Return the snapshots of a tile as runs of neighbouring ids, both ends included.

        Example:
            >>> SnapshotLines([(4, 2)]).runs(Tile(1, 6))
            [(1, 2), (5, 6)]
        """
        found: list[tuple[int, int]] = []
        last, stretch = tile.last, self._stretch_of(tile.last)
        while tile.first < (begin := self._stretch_begin(stretch)):
            if begin <= last:
                found.append((begin, last))
            last, stretch = self._targets[stretch], self._parents[stretch]
        return [(tile.first, last), *reversed(found)]

    def readers(self, tile: Tile) -> Iterator[tuple[int, int]]:
        """Yield the snapshots that read a tile as runs of ids, both ends included.

        The last run may reach beyond the newest snapshot.

        Example:
            >>> list(SnapshotLines().readers(Tile(9, 9))), list(SnapshotLines().readers(Tile(1, 8)))
            ([(9, 16)], [(9, 64)])
        """
        start, end = self.depth(tile.first) - 1, self.depth(tile.last)
        wider = (end - start) * FAN_OUT
        # Its own snapshot reads a single one, too; later ones do until the next level is full.
        least = end if end - start == 1 else end + 1
        most = (start // wider + 1) * wider
        home = self._stretch_of(tile.last)
        first = tile.last - end
        yield from self._clipped_run(first + least, first + most, home)
        later = {home}
        for stretch in range(home + 1, len(self._ids)):
            parent = self._parents[stretch]
            if parent in later and (parent != home or self._targets[stretch] >= tile.last):
                later.add(stretch)
                first = self._begins[stretch] - 1 - self._depths[stretch]
                yield from self._clipped_run(
                    max(first + least, self._ids[stretch]), first + most, stretch
                )

    def _clipped_run(self, first: int, last: int, stretch: int) -> Iterator[tuple[int, int]]:
        following = stretch + 1
        end = self._ids[following] - 1 if following < len(self._ids) else sys.maxsize
        if first <= min(last, end):
            yield first, min(last, end)

    def _stretch_of(self, snapshot_id: int) -> int:
        return bisect_right(self._ids, snapshot_id) - 1

    def _stretch_begin(self, stretch: int) -> int:
        return self._before + 1 if stretch == _FIRST else self._begins[stretch]

    def _stretch_containing(self, place: int, stretch: int) -> int:
        """Return the stretch, this one or one that it continues, that contains a line's place."""
        while stretch != _FIRST and place <= self._depths[stretch]:
            stretch = self._parents[stretch]
        return stretch

    def _snapshot_at(self, place: int, stretch: int) -> int:
        if stretch == _FIRST:
            return place + self._before
        return self._begins[stretch] + place - self._depths[stretch] - 1


FOLDERS = ("schema", "snapshot", "tag", "manifest")
"""The folders whose files the ledger projects."""

EARLIEST = "snapshot/EARLIEST"
"""The hint that holds the number of the oldest snapshot file."""

LATEST = "snapshot/LATEST"
"""The hint that holds the number of the newest snapshot file."""

POSTPONED_BUCKET = -2
"""The bucket of files whose rows are assigned to buckets later."""

_NUMBERED = re.compile(r"(schema|snapshot)/\1-(0|[1-9][0-9]{0,18})")
_LAST_CONTROL = 0x1F
_DELETE = 0x7F


def bucket_path(spec: Mapping[str, str], bucket: int) -> str:
    """Return Paimon's folder for the data files of one bucket.

    Args:
        spec: The partition's text by key, as from `PartitionText.spec`; empty for a table without
            partitions.
        bucket: The bucket of the manifest entry; an append table's is 0.

    Example:
        >>> bucket_path({"dt": "19723", "kind": "a/b"}, 0)
        'dt=19723/kind=a%2Fb/bucket-0'
        >>> bucket_path({}, POSTPONED_BUCKET)
        'bucket-postpone'
    """
    folder = "bucket-postpone" if bucket == POSTPONED_BUCKET else f"bucket-{bucket}"
    return f"{partition_path(spec)}/{folder}" if spec else folder


def schema_path(schema_id: int) -> str:
    """Return the path of a schema file.

    >>> schema_path(0)
    'schema/schema-0'
    """
    return f"schema/schema-{schema_id}"


def snapshot_path(snapshot_id: int) -> str:
    """Return the path of a snapshot file.

    >>> snapshot_path(1)
    'snapshot/snapshot-1'
    """
    return f"snapshot/snapshot-{snapshot_id}"


def tag_path(name: str) -> str:
    """Return the path of a tag file.

    Raises:
        InvalidNameError: The name is blank, too long for a file, or would leave the folder: it
            holds a separator or a control character.

    Example:
        >>> tag_path("2024-01-01 05")
        'tag/tag-2024-01-01 05'
    """
    if not name.strip() or any(_is_unsafe_character(each) for each in name):
        raise InvalidNameError(
            f"tag name {name!r} cannot be a part of a file name: it must not be blank nor hold "
            "slashes or control characters; give the tag another name"
        )
    if len(name.encode()) > _LONGEST_TAG:
        raise InvalidNameError(
            f"tag name {excerpt(name)} has more than {_LONGEST_TAG} bytes, the limit of file "
            "systems; give the tag a shorter name"
        )
    return f"{TAG_PREFIX}{name}"


TAG_PREFIX: Final = "tag/tag-"
"""Beginning of the path of each tag's file."""


def manifest_path(name: str) -> str:
    """Return the path of a manifest, a manifest list or an index manifest.

    >>> manifest_path("manifest-list-x-0")
    'manifest/manifest-list-x-0'
    """
    return f"manifest/{name}"


def statistics_path(name: str) -> str:
    """Return the path of a statistics file.

    >>> statistics_path("stat-x-0")
    'statistics/stat-x-0'
    """
    return f"statistics/{name}"


def quarantine_path(path: str, body: bytes) -> str:
    """Return the new path of a foreign file that conflicts with a file of the ledger's.

    Paimon's readers ignore it, since its name lacks their prefix.

    Example:
        >>> quarantine_path("snapshot/snapshot-6", b"mine")
        'snapshot/foreign-3fd30542-snapshot-6'
    """
    folder, _, name = path.rpartition("/")
    return f"{folder}/foreign-{hashlib.sha256(body).hexdigest()[:8]}-{name}"


def is_ahead(path: str, *, schema_id: int, snapshot_id: int) -> bool:
    """Return whether a path is that of a schema or snapshot file after the newest ones.

    Example:
        >>> is_ahead("snapshot/snapshot-6", schema_id=0, snapshot_id=5)
        True
        >>> is_ahead("snapshot/snapshot-5", schema_id=0, snapshot_id=5)
        False
    """
    found = _NUMBERED.fullmatch(path)
    return (
        found is not None
        and int(found[2]) > {"schema": schema_id, "snapshot": snapshot_id}[found[1]]
    )


def _is_unsafe_character(character: str) -> bool:
    return character in "/\\" or ord(character) <= _LAST_CONTROL or ord(character) == _DELETE


@frozen
class PaimonFileNames:
    """Deterministic names of one table's files.

    Example:
        >>> names = PaimonFileNames("01a1f54c-0000-7000-8000-000000000000")
        >>> names.tile(Tile(1, 8)) == names.tile(Tile(1, 8)) != names.tile(Tile(1, 1))
        True
    """

    table_id: str

    def _derive_uuid(self, what: str) -> UUID:
        return _uuid_of(self.table_id, what)

    def tile(self, tile: Tile) -> str:
        """Return the name of the manifest of a tile."""
        return f"manifest-{self._derive_uuid(f'manifest {tile.first} {tile.last}')}-0"

    def older_live(self, rollback: int, part: int) -> str:
        """Return the name in renderer 1 of a list of the files live at a rollback."""
        return f"manifest-{self._derive_uuid(f'live {rollback}')}-{part}"

    def lists(self, snapshot_id: int) -> tuple[str, str]:
        """Return the names of a snapshot's base and delta manifest list."""
        return manifest_list_names(self.table_id, snapshot_id)

    def snapshot_uuid(self, snapshot_id: int) -> str:
        """Return a snapshot's uuid."""
        return str(self._derive_uuid(f"snapshot {snapshot_id}"))

    def statistics(self, snapshot_id: int, check: str) -> str:
        """Return the name of a statistics file.

        Args:
            snapshot_id: The snapshot that was analysed.
            check: A digest of the file's contents.
        """
        return f"stat-{self._derive_uuid(f'statistics {snapshot_id} {check}')}-0"

    def sync_marker(self, name: str) -> bytes:
        """Return the sixteen bytes between a file's Avro blocks."""
        return self._derive_uuid(name).bytes


@lru_cache(maxsize=1024)
def _uuid_of(table_id: str, what: str) -> UUID:
    # A snapshot needs the names of all manifests that it lists, most of which the previous one
    # listed, too.
    return uuid5(UUID(table_id), what)
