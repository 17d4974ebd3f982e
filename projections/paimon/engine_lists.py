"""Manifest lists of Paimon's engines for other formats.

Other formats' readers return the rows of the files in a snapshot. That is the table only where
Paimon's readers neither merge rows by a key, nor complete them from several files, nor leave rows
out by deletion vectors.

Source: Paimon's ManifestFileMeta, DataFileMeta, IndexManifestEntry and TableType.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from attrs import frozen
from msgspec.structs import replace

from ledger.decide.format_rules import Refusal
from ledger.model.errors import UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.messages import excerpt
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.manifest_files.engine_lists import ManifestChanges, SnapshotLists, SourceManifest
from projections.paimon.engine_files import EngineFileReader, PaimonPartitions
from projections.paimon.manifest_avro import (
    ManifestEntry,
    read_index_manifest,
    read_manifest,
    read_manifest_list,
)

_TABLES_OF_FILES: Final = frozenset({"table", "materialized-table"})
_ROWS_ELSEWHERE: Final = {
    "scan.fallback-branch": "partitions that it lacks are read from a branch",
    "scan.primary-branch": "partitions of a branch are read in place of its own",
    "chain-table.enabled": "partitions are read together with those of its branches",
    "query-auth.enabled": "its readers ask the catalog which rows and columns they may see",
}
"""Options by which Paimon's readers return other rows than those of the files."""

_VECTORS: Final = "DELETION_VECTORS"


@frozen
class PaimonLists:
    """See `projections.manifest_files.engine_lists.EngineLists`."""

    def table_problems(self, schema: Schema) -> Iterator[Refusal]:
        """Yield why Paimon's readers return other rows than those of the files."""
        kind = schema.options.get("type", "table")
        if kind not in _TABLES_OF_FILES:
            yield Refusal(
                f"option type={excerpt(kind)}",
                f"it is a {excerpt(kind)}, whose rows are in no snapshot",
                "read it by paimon",
            )
        for option, rule in _ROWS_ELSEWHERE.items():
            if schema.options.get(option, "false") != "false":
                yield Refusal(f"option {option}", rule, "read it by paimon")
        if schema.primary_keys:
            yield Refusal(
                f"primary key {', '.join(schema.primary_keys)}",
                "only Paimon's merge finds the newest rows of a table with a primary key, and "
                "other readers would return older ones as well",
                "read it by paimon",
            )

    def main_line(self, state: TableState, snapshot: Snapshot) -> tuple[int, ...]:
        """Return the ids of a snapshot and of those before it that were not expired, ascending."""
        return state.origin_of_kind(PaimonOrigin).snapshot_lineage(snapshot.id)

    def snapshot_problems(
        self, table: TableHandle, state: TableState, snapshot: Snapshot
    ) -> Iterator[Refusal]:
        """Yield that a snapshot has deletion vectors."""
        name = snapshot.index_manifest
        if name is None:
            return
        reader = _reader(table, state)
        for entry in read_index_manifest(reader.read_manifest_file(name), name):
            if entry.index_type == _VECTORS and entry.kind == "ADD":
                yield Refusal(
                    f"snapshot {snapshot.id}",
                    "it leaves rows out by deletion vectors in Paimon's own files",
                    "read it by paimon, or compact the table",
                )
                return

    def lists(self, table: TableHandle, state: TableState, snapshot: Snapshot) -> SnapshotLists:
        """Return the manifests of the base and the delta list."""
        reader = _reader(table, state)
        base, delta = (
            tuple(_listed_manifests(reader, name))
            for name in (snapshot.base_manifest_list, snapshot.delta_manifest_list)
        )
        return SnapshotLists(base, delta)

    def changes(self, table: TableHandle, state: TableState, name: str) -> ManifestChanges:
        """Return the files of a manifest, under the spec of the partition keys.

        Raises:
            UnsupportedError: A file has some columns of its rows only, or rows that retract others.
        """
        reader = _reader(table, state)
        spec_id = PaimonPartitions.of(state).spec_id
        changes: dict[str, list[FileChange]] = {"ADD": [], "DELETE": []}
        for entry in read_manifest(reader.read_manifest_file(name), name):
            if entry.kind == "ADD":
                _check_rows_are_whole(table, entry)
            changes[entry.kind].append(replace(reader.file_change(entry), spec_id=spec_id))
        return ManifestChanges(tuple(changes["ADD"]), tuple(changes["DELETE"]))


def _reader(table: TableHandle, state: TableState) -> EngineFileReader:
    return EngineFileReader(table, state, state.origin_of_kind(PaimonOrigin))


def _listed_manifests(reader: EngineFileReader, name: str | None) -> Iterator[SourceManifest]:
    if name is None:
        return
    for each in read_manifest_list(reader.read_manifest_file(name), name):
        yield SourceManifest(
            each.file_name, each.num_added_files, each.num_deleted_files, each.schema_id
        )


def _check_rows_are_whole(table: TableHandle, entry: ManifestEntry) -> None:
    file = entry.file
    if file.write_cols is not None:
        raise UnsupportedError(
            f"{table.identifier}: {file.file_name} has the columns "
            f"{', '.join(file.write_cols)} only, and Paimon's readers take the others of its rows "
            "from other files; read it by paimon"
        )
    if file.delete_row_count:
        raise UnsupportedError(
            f"{table.identifier}: {file.file_name} has rows that retract others, which only "
            "Paimon's merge applies; read it by paimon"
        )


LISTS: Final = PaimonLists()
