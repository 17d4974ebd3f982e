"""Iceberg manifests of snapshots whose engines list their files in another format.

Each manifest of the engine becomes one of Iceberg, under a name derived from everything that its
bytes depend on: later snapshots list the same file again. An engine's manifest of removed files has
none; the manifests that hold these files are written again without them. A snapshot's own changes
are marked as added and removed by it; all other files are existing ones.
"""

from __future__ import annotations

import hashlib
from array import array
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec
from attrs import Factory, define
from msgspec import Struct
from msgspec.structs import replace

from ledger.decide.format_rules import Refusal
from ledger.model.errors import DamagedLogError, UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.snapshot import Snapshot
from ledger.state.iceberg_summary import FileCounts
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.iceberg.manifest_avro import write_manifest, write_manifest_list
from projections.iceberg.manifest_entry import (
    DELETED,
    FileOrigin,
    ManifestEntry,
    PartitionStruct,
    entry_of,
)
from projections.iceberg.manifest_list import (
    ManifestDraft,
    ManifestFile,
    ManifestRange,
    manifest_file,
)
from projections.iceberg.position import FOLDER, Names
from projections.iceberg.rules import FileRules
from projections.manifest_files.engine_lists import (
    EngineLists,
    ManifestChanges,
    SnapshotLists,
    SourceManifest,
)

RENDERER: Final = 1
"""Version of the renderer; it is raised when any byte of the files changes."""

_BEFORE: Final = 0
"""Id and sequence number of the unknown snapshots that added a snapshot's earlier files."""

_KEYS: Final = (0, ""), (0, "")


def refuse_foreign(table: TableHandle, problems: Iterable[Refusal]) -> None:
    """Reject a table that Iceberg's readers cannot read.

    Raises:
        UnsupportedError: The first problem.
    """
    for each in problems:
        raise UnsupportedError(
            f"Iceberg cannot express {table.identifier}: {each.what}: {each.rule}; "
            f"{each.alternative}"
        )


class RenderedManifest(Struct, frozen=True):
    """A manifest that was rendered.

    Attributes:
        file: Its record in a list.
        schema_ids: The schemas of its files, ascending.
        snapshot_ids: The first and the last snapshot that lists it, and all between perhaps.
    """

    file: ManifestFile
    schema_ids: tuple[int, ...]
    snapshot_ids: tuple[int, int]


class RemovedFiles(Struct, frozen=True):
    """The files that an engine's manifest removes.

    Attributes:
        paths: Their paths.
        snapshot_ids: As of `RenderedManifest`.
    """

    paths: tuple[str, ...]
    snapshot_ids: tuple[int, int]


class RenderedSnapshot(Struct, frozen=True):
    """A snapshot that was rendered, or the reason that it cannot be.

    Attributes:
        snapshot_id: Its id.
        version: The commit that added it; ids may be given again after a rollback.
        summary: Its summary.
        list_path: The path of its manifest list, below the table's location.
        schema_ids: The schemas of its files, ascending.
        problem: The reason that Iceberg cannot express it; empty if it can.
    """

    snapshot_id: int
    version: int
    summary: dict[str, str] = {}
    list_path: str = ""
    schema_ids: tuple[int, ...] = ()
    problem: str = ""


class _Selection(Struct, frozen=True):
    """Everything that the bytes of a manifest depend on, besides the table.

    Attributes:
        source: The engine's manifest.
        data_location: The table's folder, below which its files may be.
        format_version: Iceberg's format version.
        added_in: The snapshot that adds its files; 0 for files of earlier snapshots.
        gone: The files that earlier snapshots removed, by path.
        removed: Those that the snapshot `removed_in` removes.
    """

    source: SourceManifest
    data_location: str
    format_version: int
    added_in: int = 0
    gone: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    removed_in: int = 0

    @property
    def name(self) -> str:
        """A digest of it."""
        content = msgspec.json.encode((RENDERER, self))
        return hashlib.sha256(content).hexdigest()


@define
class ForeignManifests:
    """The manifests of a table's snapshots.

    Attributes:
        table: The table.
        state: Its state.
        lists: The reader of its engines' lists.
        format_version: Iceberg's format version.
        schemas: The table's schemas as Iceberg's JSON, by id, as far as Iceberg can express them.
        known: The manifests of earlier renderings, by name.
        removals: The files that an engine's manifest removes, by the manifest's name.
        holders: The engine's manifest that added a removed file, by path.
        files: The rendered files that are to be written, by path below the table's location.
    """

    table: TableHandle
    state: TableState
    lists: EngineLists
    format_version: int
    schemas: Mapping[int, bytes]
    known: dict[str, RenderedManifest] = Factory(dict)
    removals: dict[str, RemovedFiles] = Factory(dict)
    holders: dict[str, str] = Factory(dict)
    files: dict[str, bytes] = Factory(dict)
    _paths: dict[str, array[int]] = Factory(dict)
    _own: frozenset[str] = frozenset()
    _read: dict[str, ManifestChanges] = Factory(dict)

    @property
    def _names(self) -> Names:
        return Names(self.state.table_id)

    def render(self, snapshot: Snapshot, version: int, parent: int | None) -> RenderedSnapshot:
        """Render a snapshot's manifests and its list.

        Args:
            snapshot: The snapshot.
            version: The commit that added it.
            parent: The snapshot before it, if there was one.

        Raises:
            NotFoundError: A file of the engine is missing.
            DamagedLogError: A file of the engine is damaged.
            UnsupportedError: Iceberg cannot express one of its files.
        """
        refuse_foreign(self.table, self.lists.snapshot_problems(self.table, self.state, snapshot))
        found = self.lists.lists(self.table, self.state, snapshot)
        # Read several times, and as few as the snapshot's changes: all others may be many.
        self._own = frozenset(each.name for each in found.delta)
        self._read.clear()
        manifests = [
            manifest
            for each in self._selections(found, snapshot.id)
            if (manifest := self._manifest(each, snapshot.id)) is not None
        ]
        schema_ids = {key for each in manifests if each.file.live_files for key in each.schema_ids}
        return RenderedSnapshot(
            snapshot_id=snapshot.id,
            version=version,
            summary=self._summary(found, snapshot, manifests),
            list_path=self._put_list([each.file for each in manifests], snapshot.id, parent),
            schema_ids=tuple(sorted(schema_ids)),
        )

    def _selections(self, found: SnapshotLists, snapshot_id: int) -> Iterator[_Selection]:
        listed = {each.name: each for each in (*found.base, *found.delta)}
        before = self._removed_files(found.base, listed, snapshot_id)
        now = self._removed_files(found.delta, listed, snapshot_id)
        own = {each.name for each in found.delta}
        for name, each in listed.items():
            removed = tuple(sorted(now[name] - before[name]))
            yield _Selection(
                source=each,
                data_location=self.table.data_location,
                format_version=self.format_version,
                added_in=snapshot_id if name in own else 0,
                gone=tuple(sorted(before[name])),
                removed=removed,
                removed_in=snapshot_id if removed else 0,
            )

    def _removed_files(
        self,
        removers: Iterable[SourceManifest],
        listed: Mapping[str, SourceManifest],
        snapshot_id: int,
    ) -> Mapping[str, set[str]]:
        """Return the files that some manifests remove, by the manifest that adds each."""
        gone: dict[str, set[str]] = defaultdict(set)
        for remover in removers:
            for path in self._removals_of(remover, snapshot_id):
                holder = self.holders.get(path, "")
                if holder not in listed:
                    holder = self.holders[path] = self._holder_of(path, remover.name, listed)
                gone[holder].add(path)
        return gone

    def _removals_of(self, manifest: SourceManifest, snapshot_id: int) -> tuple[str, ...]:
        if not manifest.removed:
            return ()
        found = self.removals.get(manifest.name)
        if found is None:
            changes = self._changes(manifest.name)
            paths = tuple(each.path for each in changes.removed)
            found = RemovedFiles(paths, (snapshot_id, snapshot_id))
        self.removals[manifest.name] = replace(
            found, snapshot_ids=_extended(found.snapshot_ids, snapshot_id)
        )
        return found.paths

    def _holder_of(self, path: str, remover: str, listed: Mapping[str, SourceManifest]) -> str:
        digest = _digest(path)
        for each in listed.values():
            if not each.added:
                continue
            there = self._digests_of(each.name)
            place = bisect_left(there, digest)
            if place < len(there) and there[place] == digest:
                return each.name
        raise DamagedLogError(f"{remover} deletes {path}, which was not live", remover)

    def _digests_of(self, name: str) -> array[int]:
        if name not in self._paths:
            self._changes(name)
        return self._paths[name]

    def _changes(self, name: str) -> ManifestChanges:
        found = self._read.get(name)
        if found is None:
            found = self.lists.changes(self.table, self.state, name)
            self._paths[name] = array("Q", sorted(_digest(each.path) for each in found.added))
            if name in self._own:
                self._read[name] = found
        return found

    def _manifest(self, selection: _Selection, snapshot_id: int) -> RenderedManifest | None:
        """Return a manifest of a snapshot, rendered unless it is known; None if it is empty."""
        if len(selection.gone) == selection.source.added:
            return None
        name = selection.name
        found = self.known.get(name) or self._rendered(selection, name, snapshot_id)
        ids = _extended(found.snapshot_ids, snapshot_id)
        self.known[name] = replace(found, snapshot_ids=ids)
        return found

    def _rendered(self, selection: _Selection, name: str, snapshot_id: int) -> RenderedManifest:
        gone = frozenset(selection.gone)
        added = [
            each for each in self._changes(selection.source.name).added if each.path not in gone
        ]
        refuse_foreign(
            self.table,
            FileRules(self.state.schema, self.state.specs, self.format_version).problems(added),
        )
        spec_id = added[0].spec_id
        struct = self._struct(spec_id)
        entries = tuple(self._entries(added, selection, struct))
        path = f"{FOLDER}/{self._names.uuid(name)}-m0.avro"
        body = write_manifest(
            entries,
            struct,
            content=0,
            schema=self._schema_of(selection.source),
            format_version=self.format_version,
            sync_marker=self._names.sync_marker(path),
        )
        self.files[path] = body
        by = selection.added_in or selection.removed_in or _BEFORE
        part = ManifestRange(0, 0, spec_id, 0, 0)
        record = manifest_file(
            ManifestDraft(part, _KEYS, entries), path, body, struct=struct, by=(by, by)
        )
        is_left = frozenset(selection.removed).isdisjoint
        schema_ids = {each.schema_id for each in added if is_left((each.path,))}
        return RenderedManifest(record, tuple(sorted(schema_ids)), (snapshot_id, snapshot_id))

    def _struct(self, spec_id: int) -> PartitionStruct:
        types = {each.id: each.type for each in self.state.schema.fields}
        return PartitionStruct.of(self.state.spec_by_id(spec_id), types)

    def _schema_of(self, manifest: SourceManifest) -> bytes:
        found = self.schemas.get(manifest.schema_id)
        return self.schemas[self.state.schema.id] if found is None else found

    @staticmethod
    def _entries(
        added: Iterable[FileChange], selection: _Selection, struct: PartitionStruct
    ) -> Iterator[ManifestEntry]:
        """Yield the entries of a manifest, those of removed files last."""
        adder, removed = selection.added_in, frozenset(selection.removed)
        origin = FileOrigin(adder or _BEFORE, adder or _BEFORE, is_back=not adder)
        entries = [entry_of(each, struct, uri_of=str, origin=origin) for each in added]
        yield from (each for each in entries if each.path not in removed)
        for each in entries:
            if each.path in removed:
                yield replace(each, status=DELETED, snapshot_id=selection.removed_in)

    def _summary(
        self, found: SnapshotLists, snapshot: Snapshot, manifests: Iterable[RenderedManifest]
    ) -> dict[str, str]:
        changes = [self._changes(each.name) for each in found.delta]
        counts = FileCounts.of(file for each in changes for file in (*each.added, *each.removed))
        records = [each.file for each in manifests]
        totals = {
            "total-data-files": sum(each.live_files for each in records),
            "total-records": sum(each.added_rows + each.existing_rows for each in records),
            "total-delete-files": 0,
        }
        summary = counts.summary(snapshot.commit_kind, totals, {})
        return {**summary, "engine-name": self.state.origin.format_name}

    def _put_list(
        self, manifests: Iterable[ManifestFile], snapshot_id: int, parent: int | None
    ) -> str:
        header = {
            "snapshot-id": str(snapshot_id),
            "parent-snapshot-id": "null" if parent is None else str(parent),
            "format-version": str(self.format_version),
            "sequence-number": str(snapshot_id),
        }
        listed = tuple(manifests)
        content = msgspec.json.encode(
            (RENDERER, header, self.table.location, [each.path for each in listed])
        )
        unique = self._names.uuid(hashlib.sha256(content).hexdigest())
        path = f"{FOLDER}/snap-{snapshot_id}-1-{unique}.avro"
        self.files[path] = write_manifest_list(
            listed,
            location=self.table.location,
            format_version=self.format_version,
            sync_marker=self._names.sync_marker(path),
            metadata=header,
        )
        return path


def _digest(path: str) -> int:
    return int.from_bytes(hashlib.blake2b(path.encode(), digest_size=8).digest(), "big")


def _extended(snapshot_ids: tuple[int, int], snapshot_id: int) -> tuple[int, int]:
    first, last = snapshot_ids
    return min(first, snapshot_id), max(last, snapshot_id)
