"""Names of Iceberg's files: of the table's id and of what they hold, never random."""

from __future__ import annotations

from uuid import UUID, uuid5

from attrs import frozen

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
