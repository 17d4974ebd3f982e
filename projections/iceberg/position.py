"""Position of the Iceberg projection, and names of its files.

What grows with the history (schemas, snapshots, logs) is not in it: that is taken from the
metadata file that was written last.
"""

from __future__ import annotations

from uuid import UUID, uuid5

from attrs import evolve, field, frozen

from ledger.state.iceberg_summary import NO_FILES, FileTotals
from projections.iceberg.manifest_list import ManifestFile
from projections.outputs import PositionFile

FOLDER = "metadata"
"""The folder whose files the ledger projects."""

HINT = "metadata/version-hint.text"
"""The hint that holds the version of a Hadoop table's newest metadata file."""

RENDERER = 4
"""Counts the ways of making files from one log; it grows when any byte of them changes.

The second names itself, place and commit. The third takes row ids from files that say them. The
fourth writes manifests in small blocks, and fewer files into one.
"""


@frozen
class Names:
    """The names of one table's files, below its location.

    Two renderers never give different files one name, but for Hadoop's, so that one's can be
    written while another's are read.

    Attributes:
        table_id: The table's.
        renderer: Whose files are meant.

    Example:
        >>> names = Names("01a1f54c-0000-7000-8000-000000000000")
        >>> names.metadata(3)
        'metadata/00003-2f65ce56-0fba-5c00-932a-510638238fa4.metadata.json'
        >>> names.hadoop(3)
        'metadata/v3.metadata.json'
    """

    table_id: str
    renderer: int = RENDERER

    def uuid(self, what: str) -> UUID:
        """Return the id of one of the table's files."""
        return uuid5(UUID(self.table_id), what)

    def _rendered(self, what: str) -> UUID:
        # The first did not name itself.
        return self.uuid(what if self.renderer == 1 else f"{what} by renderer {self.renderer}")

    def metadata(self, version: int) -> str:
        """Return the name of the metadata file of a ledger version."""
        return f"{FOLDER}/{version:05d}-{self._rendered(f'metadata {version}')}.metadata.json"

    def hadoop(self, version: int) -> str:
        """Return the name under which a Hadoop catalog looks for the same file."""
        return f"{FOLDER}/v{version}.metadata.json"

    def version_of(self, path: str) -> int | None:
        """Return the ledger version whose metadata file has that name; None if none has."""
        digits = path.removeprefix(f"{FOLDER}/").partition("-")[0]
        if not (digits.isascii() and digits.isdigit()):
            return None
        return int(digits) if path == self.metadata(int(digits)) else None

    def manifest_list(self, snapshot_id: int) -> str:
        """Return the name of a snapshot's manifest list."""
        return f"{FOLDER}/snap-{snapshot_id}-1-{self._rendered(f'snapshot {snapshot_id}')}.avro"

    def partition_statistics(self, snapshot_id: int) -> str:
        """Return the name of a snapshot's file of statistics by partition."""
        unique = self.uuid(f"partition statistics {snapshot_id}")
        return f"{FOLDER}/partition-stats-{snapshot_id}-{unique}.parquet"

    def sketches(self, snapshot_id: int, check: str) -> str:
        """Return the name of a snapshot's Puffin file; `check` is of what it holds, in hex."""
        unique = self.uuid(f"statistics {snapshot_id}")
        return f"{FOLDER}/{snapshot_id}-{unique}-{check[:16]}.stats"

    def holds_sketches(self, path: str, snapshot_id: int) -> bool:
        """Whether a Puffin file of a snapshot is one that was written here."""
        return path.rpartition("-")[0] == self.sketches(snapshot_id, "").removesuffix("-.stats")

    def manifest(self, what: str, part: int) -> str:
        """Return the name of a manifest, of its `Part.name` and its newest snapshot."""
        return f"{FOLDER}/{self._rendered(f'manifest {what}')}-m{part}.avro"

    def sync_marker(self, path: str) -> bytes:
        """Return the sixteen bytes between a file's Avro blocks."""
        return self.uuid(path).bytes


@frozen
class LinePosition:
    """What a branch's next snapshot needs.

    Attributes:
        number: The branch's.
        manifests: Those that its newest snapshot's list names and that have live files.
        totals: Sums over its live files.
    """

    number: int
    manifests: tuple[ManifestFile, ...] = ()
    totals: FileTotals = NO_FILES


@frozen
class IcebergPosition:
    """Where a projection stands.

    Attributes:
        version: The last commit applied; -1 before the first.
        check: SHA-256 of the metadata file of that version, in hex.
        metadata_versions: The versions whose metadata files were written when they were newest and
            are still there, ascending.
        format_version: Iceberg's; 0 before the first commit.
        first_sequenced: The first snapshot with a sequence number; 0 when none was possible yet.
        schema_ids: Pairs of a ledger schema's id and Iceberg's id for it and those that follow.
        source_types: The types of partition sources, by field id, as JSON.
        manifests: Those that the newest snapshot's list names and that have live files.
        next_row_id: The first row id that no row has.
        totals: Sums over the live files.
        location: The table's URI, which the files name.
        commit: The digest of the commit at that version.
        list_check: SHA-256 of the newest snapshot's manifest list; empty without one.
        renderer: Whose files they are.
        garbage: Files that nothing names any more and that are still to be taken away.
        leaving_since: See `projections.outputs.FilesPosition`.
        lines: The branches that are there.
    """

    version: int = -1
    check: str = ""
    metadata_versions: tuple[int, ...] = ()
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
    lines: tuple[LinePosition, ...] = ()

    def leads_on(self, location: str) -> bool:
        """Whether a run can go on from here: the files are this renderer's, and of this place."""
        return self.version < 0 or (self.renderer == RENDERER and self.location == location)

    def with_pending_deletes(self, garbage: tuple[str, ...], since: int) -> IcebergPosition:
        """Return this position with other garbage and another time since when files leave."""
        return evolve(self, garbage=garbage, leaving_since=since)


FILE = PositionFile("iceberg", IcebergPosition())
