"""Manifests and manifest lists of snapshots that the library adds to a table that engines own.

A snapshot writes its added files to new manifests, whose sequence number readers inherit from the
list. Manifests that hold removed files are written again with those as `DELETED`; all others stay
as they are. Files have random names: those of a try that lost a race are never referenced.

Source: the Iceberg table specification, "Manifests", "Manifest Lists" and "Row Lineage".
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from secrets import token_bytes

from attrs import Factory, define, frozen
from msgspec.structs import replace

from ledger.log.request import fresh_id
from ledger.model.errors import StoreError
from ledger.model.file_change import FileChange
from ledger.model.iceberg_objects import IcebergSnapshot
from ledger.table_handle import TableHandle
from projections.iceberg.engine_files import EngineManifests
from projections.iceberg.imported import facts_of
from projections.iceberg.manifest_avro import write_manifest, write_manifest_list
from projections.iceberg.manifest_entry import (
    DELETED,
    EXISTING,
    ManifestEntry,
    PartitionStruct,
    TableFacts,
    entry_of,
)
from projections.iceberg.manifest_list import (
    ManifestDraft,
    ManifestFile,
    ManifestRange,
    manifest_file,
)
from projections.iceberg.manifest_reading import read_manifest
from projections.iceberg.manifest_writing import (
    Group,
    ManifestListContent,
    list_header,
    row_id_after,
)
from projections.manifest_files.container import read_container


@frozen
class SnapshotBase:
    """The table as a new snapshot meets it.

    Attributes:
        manifests: Reader of its manifests.
        parent: The snapshot that the new one follows.
        folder: The URL of its folder of metadata files.
        next_row_id: The first row id that no row has.
    """

    manifests: EngineManifests
    parent: IcebergSnapshot | None
    folder: str
    next_row_id: int


@define
class SnapshotWriter:
    """Writes the files of one snapshot, for each base that its commit meets.

    Attributes:
        table: The table.
        snapshot_id: The snapshot's id.
    """

    table: TableHandle
    snapshot_id: int
    _added: dict[tuple[Group, bytes, int], ManifestFile] = Factory(dict)

    def with_changes(
        self,
        snapshot: IcebergSnapshot,
        base: SnapshotBase,
        added: Iterable[FileChange],
        holders: Mapping[str, Collection[str]],
    ) -> IcebergSnapshot:
        """Write the manifests and the list of a snapshot; return it with its list and row ids.

        Args:
            snapshot: The snapshot without them.
            base: The table before it.
            added: The added files.
            holders: The paths of removed files, by the manifest that lists them.

        Raises:
            UnsupportedError: Iceberg cannot express an added file.
            DamagedLogError: A manifest is damaged.
        """
        facts = self._facts(snapshot, base)
        entries = [*self._added_entries(added, facts)]
        listed = [*self._added_manifests(entries, facts, base.folder)]
        for each in () if base.parent is None else base.manifests.listed(base.parent):
            gone = holders.get(each.path)
            kept = each if not gone else self._without(each, gone, facts, base)
            listed.append(kept)
        # Files that give their rows' ids keep them.
        first = max(base.next_row_id, *map(row_id_after, entries), 0)
        return self._write_list(listed, snapshot, facts, base, first)

    def with_content_of(
        self, snapshot: IcebergSnapshot, base: SnapshotBase, target: IcebergSnapshot
    ) -> IcebergSnapshot:
        """Write the list of a snapshot that restores an older one; return it with its list.

        Args:
            snapshot: The snapshot without its list.
            base: The table before it.
            target: The snapshot whose manifests it lists.
        """
        listed = base.manifests.listed(target)
        facts = self._facts(snapshot, base)
        return self._write_list(listed, snapshot, facts, base, base.next_row_id)

    def _facts(self, snapshot: IcebergSnapshot, base: SnapshotBase) -> TableFacts:
        state, origin = base.manifests.state, base.manifests.origin
        return facts_of(self.table, state, origin, snapshot)

    def _added_entries(
        self, added: Iterable[FileChange], facts: TableFacts
    ) -> Iterator[ManifestEntry]:
        structs: dict[int, PartitionStruct] = {}
        for each in added:
            yield entry_of(
                each,
                structs.setdefault(each.spec_id, facts.struct(each.spec_id)),
                uri_of=facts.data_uri,
                origin=facts.origin(each, self.snapshot_id),
            )

    def _added_manifests(
        self, added: Iterable[ManifestEntry], facts: TableFacts, folder: str
    ) -> Iterator[ManifestFile]:
        groups: dict[Group, list[ManifestEntry]] = defaultdict(list)
        for each in added:
            groups[each.spec_id, each.content].append(each)
        for group, entries in sorted(groups.items(), key=lambda each: each[0]):
            # After a lost race the same manifest fits, as long as the schema is the same.
            key = (group, facts.schema, facts.format_version)
            if key not in self._added:
                self._added[key] = self._write_manifest(group, entries, facts, folder)
            number = facts.sequence_number(self.snapshot_id)
            yield replace(self._added[key], sequence_number=number, min_sequence_number=number)

    def _without(
        self,
        manifest: ManifestFile,
        gone: Collection[str],
        facts: TableFacts,
        base: SnapshotBase,
    ) -> ManifestFile:
        """Write a manifest again, with some of its files as removed ones."""
        group = manifest.part.group
        body = base.manifests.body(manifest.path)
        numbers = _file_sequence_numbers(body, manifest)
        entries = [
            replace(
                each,
                status=DELETED if each.path in gone else EXISTING,
                snapshot_id=self.snapshot_id if each.path in gone else each.snapshot_id,
                file_sequence_number=numbers.get(each.path),
                written=None,
            )
            for each in read_manifest(body, manifest, facts.struct(group[0]))
        ]
        return self._write_manifest(group, entries, facts, base.folder)

    def _write_manifest(
        self, group: Group, entries: Sequence[ManifestEntry], facts: TableFacts, folder: str
    ) -> ManifestFile:
        spec_id, content = group
        struct = facts.struct(spec_id)
        body = write_manifest(
            entries,
            struct,
            content=content,
            schema=facts.schema,
            format_version=facts.format_version,
            sync_marker=token_bytes(16),
        )
        url = f"{folder}/{fresh_id()}-m0.avro"
        _create(self.table, url, body)
        keys = (entries[0].key, entries[-1].key)
        draft = ManifestDraft(ManifestRange(0, 0, spec_id, content, 0), keys, tuple(entries))
        by = (self.snapshot_id, facts.sequence_number(self.snapshot_id))
        # Without a check it is one of the engines', by its URL.
        return replace(manifest_file(draft, url, body, struct=struct, by=by), check="")

    def _write_list(
        self,
        listed: Iterable[ManifestFile],
        snapshot: IcebergSnapshot,
        facts: TableFacts,
        base: SnapshotBase,
        next_row_id: int,
    ) -> IcebergSnapshot:
        manifests = []
        for each in listed:
            manifest = each
            if facts.has_row_ids and not each.part.content and each.first_row_id is None:
                manifest = replace(each, first_row_id=next_row_id)
                next_row_id += each.new_rows
            manifests.append(manifest)
        rows = next_row_id - base.next_row_id
        content = ManifestListContent(tuple(manifests), base.next_row_id, rows)
        url = f"{base.folder}/snap-{self.snapshot_id}-1-{fresh_id()}.avro"
        body = write_manifest_list(
            content.manifests,
            location=facts.location,
            format_version=facts.format_version,
            sync_marker=token_bytes(16),
            metadata=list_header(
                content, self.snapshot_id, snapshot.parent_snapshot_id or 0, facts
            ),
        )
        _create(self.table, url, body)
        return replace(
            snapshot,
            manifest_list=url,
            first_row_id=base.next_row_id if facts.has_row_ids else None,
            added_rows=rows if facts.has_row_ids else None,
        )


def _file_sequence_numbers(body: bytes, manifest: ManifestFile) -> dict[str, int]:
    """Return the file sequence numbers of a manifest's files, by path; none in version 1."""
    found: dict[str, int] = {}
    for record in read_container(body, manifest.path):
        if "file_sequence_number" not in record:
            return {}
        file, number = record["data_file"], record["file_sequence_number"]
        offset = file.get("content_offset")
        path = file["file_path"] if offset is None else f"{file['file_path']}#{offset}"
        found[path] = manifest.sequence_number if number is None else number
    return found


def _create(table: TableHandle, url: str, body: bytes) -> None:
    folder, name = posixpath.split(url)
    if not table.setting.store_at(table.reached(folder)).create(name, body):
        raise StoreError(f"{url} exists already, although its name is random; try again")
