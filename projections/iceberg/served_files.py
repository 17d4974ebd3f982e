"""Live files of a table that engines own, as the manifests of a snapshot list them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final
from weakref import WeakKeyDictionary

from attrs import frozen
from msgspec import UnsetType

from ledger.files.snapshot_plan import MayBe
from ledger.locations import FileNames
from ledger.model.file_change import FileChange, PartitionValue
from ledger.model.iceberg_objects import IcebergSnapshot
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.iceberg.engine_files import EngineManifests
from projections.iceberg.manifest_scan import DELETED_PATH_ID, is_unpartitioned

_MOST_KEPT: Final = 100_000
"""Maximum number of live files cached per table, so that the next commit reads new manifests."""

_Files = tuple[FileChange, ...]
_known_files: WeakKeyDictionary[TableHandle, dict[str, _Files]] = WeakKeyDictionary()
"""Live files by the URL of their manifest, of the newest snapshot read."""


@frozen
class ManifestFiles:
    """The live files of one snapshot, as its manifests list them; see `ListedFiles`.

    Attributes:
        names: The normalization of the table's file names.
        by_manifest: The files of each manifest, by its URL.
    """

    names: FileNames
    by_manifest: Mapping[str, _Files]

    @classmethod
    def of(
        cls, table: TableHandle, manifests: EngineManifests, snapshot: IcebergSnapshot | None
    ) -> ManifestFiles:
        """Return the files of a snapshot; there are none without one."""
        known, structs = _known_files.get(table, {}), manifests.structs()
        listed = () if snapshot is None else manifests.listed(snapshot)
        found = {
            each.path: known.get(each.path) or tuple(manifests.files_of_manifest(each, structs))
            for each in listed
        }
        if sum(map(len, found.values())) <= _MOST_KEPT:
            _known_files[table] = found
        return cls(table.live.names, found)

    def __iter__(self) -> Iterator[FileChange]:
        for each in self.by_manifest.values():
            yield from each

    def live_files_at_state(self, state: TableState) -> dict[str, FileChange]:
        """Return all files, by path."""
        del state
        return {each.path: each for each in self}

    def live_files_of_partitions(self, state: TableState, may_be: MayBe) -> list[FileChange]:
        """Return the files whose spec and partition values pass a check."""
        del state
        return [each for each in self if may_be(each.spec_id, each.partition)]

    def lookup_live_files_at(
        self, paths: Iterable[str], state: TableState
    ) -> dict[str, FileChange]:
        """Return those of the given files that are live, by the path as given."""
        del state
        usual = {self.names.usual(each.path): each for each in self}
        named = ((path, usual.get(self.names.usual(path))) for path in paths)
        return {path: found for path, found in named if found is not None}

    def newest_changes_at(self, paths: Iterable[str], state: TableState) -> dict[str, FileChange]:
        """Return the same: manifests say nothing of files that were removed."""
        return self.lookup_live_files_at(paths, state)

    def absence_text(self, paths: Sequence[str], state: TableState) -> str:
        """Return why a file is not live, for a message."""
        del paths, state
        return "no manifest of the newest snapshot lists it; reload the table and plan again"

    def holders(self, removed: Iterable[FileChange]) -> dict[str, set[str]]:
        """Return the paths of removed files, by the URL of the manifest that lists them."""
        gone = {each.path for each in removed}
        found = {
            url: gone.intersection(each.path for each in files)
            for url, files in self.by_manifest.items()
        }
        return {url: paths for url, paths in found.items() if paths}

    def delete_files(self) -> Iterator[FileChange]:
        """Yield the files that delete rows of others."""
        return (each for each in self if each.content != "data")

    def find_new_delete(
        self, removed: Iterable[FileChange], known: Collection[str], state: TableState
    ) -> FileChange | None:
        """Return a delete file that applies to a removed data file; None if all are known.

        Source: the Iceberg table specification, "Scan Planning". Sequence numbers are not compared:
        a delete file that is not known is newer than the removed files.

        Args:
            removed: The removed files, of any content.
            known: The paths of the delete files that their remover has read.
            state: The table's state, for its specs.
        """
        new = [each for each in self.delete_files() if each.path not in known]
        if not new:
            return None
        usual = self.names.usual
        gone = [each for each in removed if each.content == "data"]
        paths = {usual(each.path) for each in gone}
        by_partition: dict[_Partition, list[bytes]] = {}
        for each in gone:
            by_partition.setdefault(_partition(each), []).append(each.path.encode())
        for each in new:
            there = by_partition.get(_partition(each), [])
            if each.content == "equality-deletes":
                applies = bool(there or (gone and is_unpartitioned(state.spec_by_id(each.spec_id))))
            elif isinstance(each.referenced_data_file, str):
                applies = usual(each.referenced_data_file) in paths
            else:
                lower, upper = _deleted_path_bounds(each)
                applies = lower == upper and usual(lower.decode(errors="replace")) in paths
                applies |= any(lower <= path and (not upper or path <= upper) for path in there)
            if applies:
                return each
        return None


_Partition = tuple[int, tuple[PartitionValue, ...]]


def _partition(file: FileChange) -> _Partition:
    return file.spec_id, file.partition


def _deleted_path_bounds(file: FileChange) -> tuple[bytes, bytes]:
    """Return the bounds of the paths that position deletes name; empty where there is none."""
    bounds = (file.lower_bounds, file.upper_bounds)
    lower, upper = (
        b"" if isinstance(each, UnsetType) else bytes.fromhex(each.get(DELETED_PATH_ID, ""))
        for each in bounds
    )
    return lower, upper
