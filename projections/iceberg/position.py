"""Position of the Iceberg projection, and names of its files.

Data that grows with the history (schemas, snapshots, logs) is not stored in it, but read from the
last metadata file.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from uuid import UUID, uuid5

from attrs import evolve, field, frozen

from ledger.model.iceberg_objects import MetadataLogEntry
from ledger.state.iceberg_summary import NO_FILES, FileTotals
from projections.iceberg.manifest_list import ManifestFile
from projections.outputs import PositionFile

FOLDER = "metadata"
"""The folder with the projected files."""

METADATA_PATH = "write.metadata.path"
"""Property with the folder of the metadata files of an engine's table or view."""

HINT = "metadata/version-hint.text"
"""The hint that holds the version of a Hadoop table's newest metadata file."""

RENDERER = 5
"""Version of the renderer; it is raised when any byte of the projected files changes.

Version 2 has renderer, place and commit in its files. Version 3 takes row ids from files that
contain them. Version 4 writes manifests in small blocks, and fewer files per manifest. Version 5
writes every file that a metadata log names.
"""


@frozen
class Names:
    """File names of one table, below its location.

    Two renderer versions never use one name for different files, except for Hadoop's, so that
    files of one can be written while those of another are read.

    Attributes:
        table_id: The table's id.
        renderer: The renderer version of the files.

    Example:
        >>> names = Names("01a1f54c-0000-7000-8000-000000000000")
        >>> names.metadata(3)
        'metadata/00003-ad8adfba-93c8-5d0b-b982-93ed68617b57.metadata.json'
        >>> names.hadoop(3)
        'metadata/v3.metadata.json'
    """

    table_id: str
    renderer: int = RENDERER

    def uuid(self, what: str) -> UUID:
        """Return the UUID of one of the table's files."""
        return uuid5(UUID(self.table_id), what)

    def _derived_uuid(self, what: str) -> UUID:
        # Version 1 did not include the renderer.
        return self.uuid(what if self.renderer == 1 else f"{what} by renderer {self.renderer}")

    def metadata(self, version: int) -> str:
        """Return the name of the metadata file of a ledger version."""
        return f"{FOLDER}/{version:05d}-{self._derived_uuid(f'metadata {version}')}.metadata.json"

    def hadoop(self, version: int) -> str:
        """Return the name of the same file in a Hadoop catalog."""
        return f"{FOLDER}/v{version}.metadata.json"

    def version_of(self, path: str) -> int | None:
        """Return the ledger version of a metadata file's name; None for other names."""
        digits = path.removeprefix(f"{FOLDER}/").partition("-")[0]
        if not (digits.isascii() and digits.isdigit()):
            return None
        return int(digits) if path == self.metadata(int(digits)) else None

    def manifest_list(self, snapshot_id: int) -> str:
        """Return the name of a snapshot's manifest list."""
        return f"{FOLDER}/snap-{snapshot_id}-1-{self._derived_uuid(f'snapshot {snapshot_id}')}.avro"

    def partition_statistics(self, snapshot_id: int) -> str:
        """Return the name of a snapshot's partition statistics file."""
        unique = self.uuid(f"partition statistics {snapshot_id}")
        return f"{FOLDER}/partition-stats-{snapshot_id}-{unique}.parquet"

    def sketches(self, snapshot_id: int, check: str) -> str:
        """Return the name of a snapshot's Puffin file; `check` is a hex digest of its content."""
        unique = self.uuid(f"statistics {snapshot_id}")
        return f"{FOLDER}/{snapshot_id}-{unique}-{check[:16]}.stats"

    def holds_sketches(self, path: str, snapshot_id: int) -> bool:
        """Return whether a Puffin file of a snapshot was written by the ledger."""
        return path.rpartition("-")[0] == self.sketches(snapshot_id, "").removesuffix("-.stats")

    def manifest(self, what: str, part: int) -> str:
        """Return the name of a manifest, from its `ManifestRange.name` and its newest snapshot."""
        return f"{FOLDER}/{self._derived_uuid(f'manifest {what}')}-m{part}.avro"

    def sync_marker(self, path: str) -> bytes:
        """Return the sync marker between a file's Avro blocks."""
        return self.uuid(path).bytes


def metadata_folder(properties: Mapping[str, str], location: str) -> str:
    """Return the URL of the folder of an engine's metadata files.

    Args:
        properties: The properties of the table or view.
        location: Its location in Iceberg's metadata.

    Example:
        >>> metadata_folder({}, "s3://lake/t")
        's3://lake/t/metadata'
    """
    return properties.get(METADATA_PATH, "").rstrip("/") or f"{location}/{FOLDER}"


def metadata_file_url(
    table_id: str, version: int, properties: Mapping[str, str], location: str
) -> str:
    """Return the URL of the metadata file of a served table's version; no other file has it."""
    name = f"{version:05d}-{uuid5(UUID(table_id), f'served {version}')}.metadata.json"
    return f"{metadata_folder(properties, location)}/{name}"


def is_projected_metadata_file(path: str) -> bool:
    """Return whether a metadata file was projected by a ledger, of whatever table.

    Names of catalog files contain a UUID, random ones from engines, and one of version 5 from
    every renderer version.

    Example:
        >>> is_projected_metadata_file("00003-ad8adfba-93c8-5d0b-b982-93ed68617b57.metadata.json")
        True
        >>> is_projected_metadata_file("00003-2f65ce56-0fba-4c00-932a-510638238fa4.metadata.json")
        False
    """
    return _is_projected_name(path.rpartition("/")[2]) is not None


_is_projected_name = re.compile(
    r"[0-9]{5,}-[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}\.metadata\.json"
).fullmatch


@frozen
class BranchPosition:
    """Position of one branch.

    Attributes:
        number: The branch's number.
        manifests: The manifests with live files in its newest snapshot's list.
        totals: The totals of its live files.
    """

    number: int
    manifests: tuple[ManifestFile, ...] = ()
    totals: FileTotals = NO_FILES


@frozen
class IcebergPosition:
    """Position of the Iceberg projection of one table.

    Attributes:
        version: The last commit applied; -1 before the first.
        check: SHA-256 of the metadata file of that version, in hex.
        metadata_versions: The versions whose metadata files exist until a run finds them obsolete,
            ascending.
        requested_versions: The versions whose metadata files no run deletes, ascending: those that
            callers requested, and those of their logs.
        metadata_log: The metadata log of the version; not that of a mirrored table's source.
        format_version: Iceberg's format version; 0 before the first commit.
        first_sequenced: The first snapshot with a sequence number; 0 if there is none.
        schema_ids: Pairs of a ledger schema id and the Iceberg id from that schema on.
        source_types: The types of partition sources, by field id, as JSON.
        manifests: The manifests with live files in the newest snapshot's list.
        next_row_id: The first unassigned row id.
        totals: The totals of the live files.
        location: The table's URI, which is in the files.
        commit: The digest of the commit at that version.
        list_check: SHA-256 of the newest snapshot's manifest list; empty without one.
        renderer: The version of the renderer that wrote the files.
        garbage: Unreferenced files that are still to be deleted.
        leaving_since: See `projections.outputs.FilesPosition`.
        lines: The positions of existing branches.
    """

    version: int = -1
    check: str = ""
    metadata_versions: tuple[int, ...] = ()
    requested_versions: tuple[int, ...] = ()
    metadata_log: tuple[MetadataLogEntry, ...] = ()
    format_version: int = 0
    first_sequenced: int = 0
    schema_ids: tuple[tuple[int, int], ...] = ()
    source_types: dict[int, str] = field(factory=dict, hash=False)
    manifests: tuple[ManifestFile, ...] = ()
    next_row_id: int = 0
    totals: FileTotals = NO_FILES
    location: str = ""
    commit: str = ""
    list_check: str = ""
    renderer: int = RENDERER
    garbage: tuple[str, ...] = ()
    leaving_since: int = 0
    lines: tuple[BranchPosition, ...] = ()

    def can_continue_at(self, location: str) -> bool:
        """Return whether a run can continue from here: same renderer and location."""
        has_files = self.version >= 0 or bool(self.requested_versions)
        return not has_files or (self.renderer == RENDERER and self.location == location)

    def with_pending_deletes(self, garbage: tuple[str, ...], since: int) -> IcebergPosition:
        """Return this position with other garbage and another `leaving_since`."""
        return evolve(self, garbage=garbage, leaving_since=since)


FILE = PositionFile("iceberg", IcebergPosition())
