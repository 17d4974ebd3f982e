"""Position: how far the Iceberg projection has come, and what it needs to go on from there.

What grows with the history (schemas, snapshots, logs) is not in it: that is taken from the
metadata file that was written last.
"""

from __future__ import annotations

from attrs import evolve, field, frozen

from ledger.evolution.table.origin.summary import NO_FILES, FileTotals
from projections.iceberg.manifests.file import ManifestFile
from projections.iceberg.names import RENDERER
from projections.position_file import PositionFile


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
        leaving_since: See `projections.position_file.FilesPosition`.
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

    def with_leaving(self, garbage: tuple[str, ...], since: int) -> IcebergPosition:
        """Return this position with other garbage and another time since when files leave."""
        return evolve(self, garbage=garbage, leaving_since=since)


FILE = PositionFile("iceberg", IcebergPosition())
