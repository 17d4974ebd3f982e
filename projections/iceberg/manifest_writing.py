"""Writing of a table's manifests and manifest lists, snapshot by snapshot.

A snapshot writes its added files to one manifest. When an interval of snapshots is complete, by the
rule of `ledger.model.snapshot`, its small manifests are merged; those that are half full or more
are kept. A snapshot that removes files rewrites the manifests that hold them, under names of its
own.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import Factory, define, evolve, field, frozen
from msgspec.structs import replace

from ledger.model.errors import DamagedLogError
from ledger.model.snapshot import tiles_covering
from projections.iceberg.manifest_avro import write_manifest, write_manifest_list
from projections.iceberg.manifest_entry import DELETED, EXISTING, ManifestEntry, Piece, TableFacts
from projections.iceberg.manifest_list import (
    ManifestDraft,
    ManifestFile,
    ManifestRange,
    manifest_file,
)
from projections.iceberg.manifest_reading import (
    oldest_sequence_number,
    read_manifest,
    read_manifest_pieces,
    read_row_ids,
)
from projections.iceberg.position import FOLDER, Names
from projections.manifest_files.container import EncodedBlock, read_container
from projections.outputs import Outputs

MOST_ENTRIES = 512
"""Number of files per manifest, as long as at most `MOST_FULL` manifests are full."""

MOST_FULL = 32


def max_entries_per_manifest(live_files: int) -> int:
    """Return the number of files per manifest of a table, from its number of files.

    A removal rewrites a manifest, and every snapshot lists all manifests: both costs grow with the
    square root of the number of files.

    >>> (
    ...     max_entries_per_manifest(10_000),
    ...     max_entries_per_manifest(60_000),
    ...     max_entries_per_manifest(1_000_000),
    ... )
    (512, 1024, 4096)
    """
    most, full = MOST_ENTRIES, MOST_FULL
    while live_files > most * full:
        most, full = 2 * most, 2 * full
    return most


def interval_merged_at(snapshot_id: int) -> tuple[int, int]:
    """Return the first and last snapshot whose manifests are merged at a snapshot.

    >>> interval_merged_at(7), interval_merged_at(8), interval_merged_at(64)
    ((7, 7), (1, 8), (1, 64))
    """
    first, end = next(tiles_covering(snapshot_id))
    return first + 1, end


def is_merged_at_interval(
    manifest: ManifestFile, removed: int, interval: tuple[int, int], most: int
) -> bool:
    """Return whether a manifest is merged into the one of the whole interval.

    Args:
        manifest: The manifest.
        removed: The number of its files that the snapshot removes.
        interval: The newest interval, see `interval_merged_at`.
        most: See `max_entries_per_manifest`.
    """
    is_inside = manifest.part.first >= interval[0]
    return is_inside and 2 * (manifest.live_files - removed) < most


def pieces_after_removal(
    pieces: Iterable[Piece], gone: Collection[str], snapshot_id: int
) -> tuple[Piece, ...]:
    """Return a manifest's content after a snapshot removed files from it.

    Args:
        pieces: Its live files; the removed ones are decoded.
        gone: The URIs of the removed files.
        snapshot_id: The snapshot.
    """
    left = frozenset(gone)
    return tuple(
        each if isinstance(each, EncodedBlock) else _mark_if_removed(each, left, snapshot_id)
        for each in pieces
    )


def _mark_if_removed(entry: ManifestEntry, gone: frozenset[str], snapshot_id: int) -> ManifestEntry:
    if entry.path in gone:
        return replace(entry, status=DELETED, snapshot_id=snapshot_id, written=None)
    return entry if entry.status == EXISTING else replace(entry, status=EXISTING)


def form_interval_drafts(
    interval: tuple[int, int],
    older: Iterable[tuple[Iterable[ManifestEntry], Sequence[str]]],
    added: Iterable[ManifestEntry],
    most: int,
) -> Iterator[ManifestDraft]:
    """Yield the manifests of an interval's files of one spec and content, in key order.

    Args:
        interval: Its first snapshot, and its last one, which is being written.
        older: The live files of each merged manifest, and the URIs of removed files.
        added: The added files.
        most: See `max_entries_per_manifest`.
    """
    keyed = [(each.key, each) for each in added]
    for live, gone in older:
        left = frozenset(gone)
        keyed += [(each.key, _mark_if_removed(each, left, interval[1])) for each in live]
    keyed.sort(key=lambda each: each[0])
    for number, start in enumerate(range(0, len(keyed), most)):
        piece = keyed[start : start + most]
        entry = piece[0][1]
        yield ManifestDraft(
            ManifestRange(*interval, entry.spec_id, entry.content, number),
            (piece[0][0], piece[-1][0]),
            tuple(entry for _, entry in piece),
        )


def _read_no_file(_path: str) -> bytes | None:
    return None


Group = tuple[int, int]
"""A partition spec's id and a content: data (0) or deletes (1)."""


@frozen
class SnapshotFileChanges:
    """Changes of a snapshot to the table's files.

    Attributes:
        snapshot_id: The snapshot.
        added: The added and restored files.
        removed: The removed files: by URI, the snapshot that added it and its group.
    """

    snapshot_id: int
    added: tuple[ManifestEntry, ...]
    removed: Mapping[str, tuple[int, Group]] = field(hash=False)


@frozen
class ManifestListContent:
    """Content of a snapshot's manifest list.

    Attributes:
        manifests: The manifests in order.
        first_row_id: The first row id that the snapshot assigns.
        added_rows: The number of row ids that it assigns.
    """

    manifests: tuple[ManifestFile, ...]
    first_row_id: int
    added_rows: int

    @property
    def paths(self) -> list[str]:
        """Paths of its manifests, below the table's location."""
        return [each.path for each in self.manifests]


@define
class CurrentManifests:
    """The manifests in the newest snapshot's list.

    New manifests are kept in memory until a retained list names them, so that nothing is
    written that expires within the run.

    Attributes:
        names: The names of the table's files.
        outputs: The storage of the files of this and earlier runs.
        current: The manifests with live files, oldest files first.
        next_row_id: The first unassigned row id.
        list_check: SHA-256 of the last list written, in hex; empty before the first.
        read_engines: Function that reads an engine's manifest by its absolute path; None if it
            does not exist.
    """

    names: Names
    outputs: Outputs
    current: tuple[ManifestFile, ...] = ()
    next_row_id: int = 0
    list_check: str = ""
    read_engines: Callable[[str], bytes | None] = _read_no_file
    _bodies: dict[str, bytes] = Factory(dict)
    _unwritten: set[str] = Factory(set)
    _left: dict[str, int | None] = Factory(dict)

    def fork(self) -> CurrentManifests:
        """Return a copy of the manifests, from which a branch continues."""
        return evolve(
            self, bodies=dict(self._bodies), unwritten=set(self._unwritten), left={}, list_check=""
        )

    def snapshot(self, changes: SnapshotFileChanges, facts: TableFacts) -> ManifestListContent:
        """Apply the next snapshot; return the content of its list.

        Raises:
            DamagedLogError: A manifest of an earlier run is damaged or missing.
        """
        first_row_id = self.next_row_id
        self.next_row_id = max(first_row_id, *map(row_id_after, changes.added), 0)
        ordered = sorted(
            self._manifests_after_changes(changes, facts), key=lambda each: each.part.place
        )
        listed = tuple(self._assign_row_ids(each, facts) for each in ordered)
        self.current = tuple(each for each in listed if each.live_files)
        named = {each.path for each in listed}
        self._bodies = {path: body for path, body in self._bodies.items() if path in named}
        self._unwritten &= named
        return ManifestListContent(listed, first_row_id, self.next_row_id - first_row_id)

    def apply_existing_list(
        self, manifests: Iterable[ManifestFile], facts: TableFacts
    ) -> ManifestListContent:
        """Apply a snapshot that lists existing manifests; return the content of its list."""
        first_row_id = self.next_row_id
        self.current = tuple(self._assign_row_ids(each, facts) for each in manifests)
        return ManifestListContent(self.current, first_row_id, self.next_row_id - first_row_id)

    def _manifests_after_changes(
        self, changes: SnapshotFileChanges, facts: TableFacts
    ) -> Iterator[ManifestFile]:
        gone = self._removed_files_by_manifest(changes, facts)
        interval = interval_merged_at(changes.snapshot_id)
        there = sum(each.live_files for each in self.current)
        most = max_entries_per_manifest(there - len(changes.removed) + len(changes.added))
        merging: dict[Group, list[ManifestFile]] = defaultdict(list)
        drafts: list[ManifestDraft] = []
        for each in self.current:
            removed = gone.get(each.path, ())
            if is_merged_at_interval(each, len(removed), interval, most):
                merging[each.part.group].append(each)
            elif removed:
                drafts.append(self._draft_without_files(each, removed, changes.snapshot_id, facts))
            else:
                yield each
        adding: dict[Group, list[ManifestEntry]] = defaultdict(list)
        for entry in changes.added:
            adding[entry.spec_id, entry.content].append(entry)
        for group in sorted({*merging, *adding}):
            older, added = merging[group], adding[group]
            if len(older) == 1 and not added and older[0].path not in gone:
                yield older[0]
            else:
                pairs = (
                    (self._read_live_entries(each, facts), gone.get(each.path, ()))
                    for each in older
                )
                drafts += form_interval_drafts(interval, pairs, added, most)
        self._check_all_removed(drafts, changes)
        for draft in drafts:
            yield self._write_draft(draft, changes.snapshot_id, facts)

    @staticmethod
    def _check_all_removed(drafts: list[ManifestDraft], changes: SnapshotFileChanges) -> None:
        if sum(len(each.removed) for each in drafts) != len(changes.removed):
            raise DamagedLogError(
                f"snapshot {changes.snapshot_id} removes files that no manifest lists; restore "
                "the Iceberg files by rebuilding the projection",
                f"snapshot {changes.snapshot_id}",
            )

    def _removed_files_by_manifest(
        self, changes: SnapshotFileChanges, facts: TableFacts
    ) -> dict[str, list[str]]:
        """Return the removed files by the path of the manifest that holds them."""
        held: dict[str, set[str]] = {}
        gone: dict[str, list[str]] = defaultdict(list)
        for uri, (adder, group) in sorted(changes.removed.items()):
            near = [each for each in self.current if each.may_hold((adder, uri), group)]
            for each in near:
                if len(near) > 1 and each.path not in held:
                    held[each.path] = {entry.path for entry in self._read_live_entries(each, facts)}
                if len(near) == 1 or uri in held[each.path]:
                    gone[each.path].append(uri)
        return gone

    def row_ids(
        self, uris: Collection[str], snapshot_id: int, *, status: int = EXISTING
    ) -> dict[str, int]:
        """Return the first row id that each of some files had in an earlier snapshot.

        Reads that snapshot's manifests, or none if the files were removed in this run. Manifests
        that are still listed hold no file that is live in that snapshot only, but may record its
        removal.

        Args:
            uris: URIs of files that are live or removed in that snapshot, and not in the newest.
            snapshot_id: A snapshot with row ids.
            status: `DELETED` if the snapshot removes the files.

        Raises:
            DamagedLogError: A manifest or list of an earlier run is damaged or missing.
        """
        wanted = {each for each in uris if each not in self._left}
        left = {each: self._left.pop(each) for each in uris if each in self._left}
        found = {each: row_id for each, row_id in left.items() if row_id is not None}
        passed = {each.path for each in self.current} if status == EXISTING else frozenset()
        for record in self._list_records(snapshot_id) if wanted else ():
            path = f"{FOLDER}/{record['manifest_path'].rpartition('/')[2]}"
            if record["content"] or path in passed:
                continue
            if status == DELETED and record["added_snapshot_id"] != snapshot_id:
                # It may record that the file was removed earlier, with the ids that it had then.
                continue
            body = self.outputs.read(path)
            if body is None or len(body) != record["manifest_length"]:
                raise DamagedLogError(f"{path} is not the manifest that was projected", path)
            is_gone = status == DELETED
            ids = read_row_ids(body, path, record.get("first_row_id"), is_gone=is_gone)
            found.update((uri, row_id) for uri, row_id in ids if uri in wanted)
        return found

    def _list_records(self, snapshot_id: int) -> Iterable[dict[str, Any]]:
        path = self.names.manifest_list(snapshot_id)
        body = self.outputs.read(path)
        if body is None:
            raise DamagedLogError(f"{path} is not the manifest list that was projected", path)
        return read_container(body, path)

    def forget(self, uris: Iterable[str]) -> None:
        """Drop the row ids of files that no rollback can restore any more."""
        for each in uris:
            self._left.pop(each, None)

    def _read_live_entries(
        self, manifest: ManifestFile, facts: TableFacts
    ) -> Iterator[ManifestEntry]:
        return read_manifest(
            self._manifest_body(manifest), manifest, facts.struct(manifest.part.spec_id)
        )

    def _manifest_body(self, manifest: ManifestFile) -> bytes | None:
        body = self._bodies.get(manifest.path)
        if body is None:
            read = self.read_engines if manifest.is_written_by_engine else self.outputs.read
            body = read(manifest.path)
        return body

    def _draft_without_files(
        self, manifest: ManifestFile, gone: Collection[str], snapshot_id: int, facts: TableFacts
    ) -> ManifestDraft:
        part, struct = manifest.part, facts.struct(manifest.part.spec_id)
        keys = (manifest.low, manifest.high)
        if not manifest.is_formed_by_ledger:
            pieces = pieces_after_removal(
                self._read_live_entries(manifest, facts), gone, snapshot_id
            )
            return ManifestDraft(part, keys, pieces)
        live = read_manifest_pieces(
            self._manifest_body(manifest),
            manifest,
            struct,
            wanted=gone,
            format_version=facts.format_version,
        )
        pieces = pieces_after_removal(live, gone, snapshot_id)
        return ManifestDraft(
            part, keys, pieces, manifest, oldest_sequence_number(pieces, manifest, struct)
        )

    def _write_draft(
        self, draft: ManifestDraft, snapshot_id: int, facts: TableFacts
    ) -> ManifestFile:
        part, struct = draft.part, facts.struct(draft.part.spec_id)
        path = self.names.manifest(f"{part.name} {snapshot_id}", part.number)
        body = write_manifest(
            draft.pieces,
            struct,
            content=part.content,
            schema=facts.schema,
            format_version=facts.format_version,
            sync_marker=self.names.sync_marker(path),
        )
        self._bodies[path] = body
        self._unwritten.add(path)
        if facts.has_row_ids:
            self._left.update((each.path, each.first_row_id) for each in draft.removed)
        by = (snapshot_id, facts.sequence_number(snapshot_id))
        return manifest_file(draft, path, body, struct=struct, by=by)

    def _assign_row_ids(self, each: ManifestFile, facts: TableFacts) -> ManifestFile:
        """Assign row ids to the rows of a manifest that have none."""
        if not facts.has_row_ids or each.part.content or each.first_row_id is not None:
            return each
        first, self.next_row_id = self.next_row_id, self.next_row_id + each.new_rows
        return replace(each, first_row_id=first)

    def write_manifests(self, paths: Iterable[str]) -> None:
        """Write those of the newest snapshot's manifests that are not written yet."""
        for path in paths:
            if path in self._unwritten:
                self.outputs.put(path, self._bodies[path])
                self._unwritten.discard(path)

    def write(
        self,
        listed: ManifestListContent,
        snapshot_id: int,
        facts: TableFacts,
        parent: int | None = None,
    ) -> None:
        """Write the newest snapshot's list, after those of its manifests that are not written yet.

        Args:
            listed: The content of the list.
            snapshot_id: The snapshot.
            facts: The table's facts.
            parent: The snapshot before it; None: the one with the previous id, if there is one.
        """
        self.write_manifests(listed.paths)
        before = snapshot_id - 1 if parent is None else parent
        path = self.names.manifest_list(snapshot_id)
        body = write_manifest_list(
            listed.manifests,
            location=facts.location,
            format_version=facts.format_version,
            sync_marker=self.names.sync_marker(path),
            metadata=list_header(listed, snapshot_id, before, facts),
        )
        self.outputs.put(path, body)
        self.list_check = hashlib.sha256(body).hexdigest()


def row_id_after(entry: ManifestEntry) -> int:
    """Return the row id after the last row of a file with row ids; 0 if it has none."""
    return 0 if entry.first_row_id is None else entry.first_row_id + entry.records


def list_header(
    listed: ManifestListContent, snapshot_id: int, parent: int, facts: TableFacts
) -> dict[str, str]:
    """Return the header of a snapshot's manifest list; `parent` is 0 without one."""
    header = {
        "snapshot-id": str(snapshot_id),
        "parent-snapshot-id": str(parent) if parent else "null",
        "format-version": str(facts.format_version),
    }
    if facts.has_sequence_numbers:
        header["sequence-number"] = str(facts.sequence_number(snapshot_id))
    if facts.has_row_ids:
        header["first-row-id"] = str(listed.first_row_id)
    return header
