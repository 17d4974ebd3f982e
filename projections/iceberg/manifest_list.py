"""ManifestFile: one manifest in a manifest list."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator

import msgspec
from attrs import frozen
from msgspec.structs import replace

from projections.iceberg.manifest_entry import (
    ADDED,
    DELETED,
    EXISTING,
    FieldSummary,
    ManifestEntry,
    PartitionStruct,
    Piece,
)
from projections.manifest_files.container import EncodedBlock

Key = tuple[int, str]


class ManifestRange(msgspec.Struct, frozen=True):
    """Range of files for one manifest: fixed when it is formed, whatever is removed later.

    Attributes:
        first: The first snapshot whose files it holds.
        last: The last snapshot whose files it holds.
        spec_id: The files' partition spec.
        content: Data (0) or deletes (1).
        number: Index from 0 among the manifests of one interval with many files.
    """

    first: int
    last: int
    spec_id: int
    content: int
    number: int

    @property
    def name(self) -> str:
        """Base of the manifest's file name, without its newest snapshot."""
        return f"{self.first} {self.last} {self.spec_id} {self.content} {self.number}"

    @property
    def group(self) -> tuple[int, int]:
        """Spec id and content, common to all of its files."""
        return (self.spec_id, self.content)

    @property
    def place(self) -> tuple[int, int, int, int, int]:
        """Sort key in manifest lists: oldest files first."""
        return (self.first, self.last, self.spec_id, self.content, self.number)


class ManifestFile(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest in a manifest list.

    Attributes:
        part: Its range of files.
        path: Its path below the table's location.
        length: Its size in bytes.
        check: SHA-256 of its bytes, in hex; empty for an engine's.
        low: The least key of the files that it was formed with.
        high: The greatest key of those files.
        sequence_number: The sequence number of the snapshot that wrote it.
        min_sequence_number: The least sequence number of its live files.
        added_snapshot_id: The snapshot that wrote it.
        added_files: Number of files added by that snapshot; the other counts likewise.
        partitions: One summary per partition field; None if an engine gave none.
        first_row_id: The first row id for new rows; None before a list assigned it.
        new_rows: Number of rows that get their ids from it.
    """

    part: ManifestRange
    path: str
    length: int
    check: str
    low: Key
    high: Key
    sequence_number: int
    min_sequence_number: int
    added_snapshot_id: int
    added_files: int
    existing_files: int
    deleted_files: int
    added_rows: int
    existing_rows: int
    deleted_rows: int
    partitions: tuple[FieldSummary, ...] | None
    first_row_id: int | None = None
    new_rows: int = 0

    @property
    def is_written_by_engine(self) -> bool:
        """Return whether an engine wrote it before the promotion; its path is then absolute."""
        return not self.check

    @property
    def is_formed_by_ledger(self) -> bool:
        """Return whether its `part` and keys are known, and not only its record in a list."""
        return self.part.first > 0

    @property
    def live_files(self) -> int:
        """Number of live files in it."""
        return self.added_files + self.existing_files

    def may_hold(self, key: Key, group: tuple[int, int]) -> bool:
        """Return whether it may contain a file with a key, a spec and a content."""
        return self.part.group == group and self.low <= key <= self.high


_LEAST, _MOST = (-1, ""), (1 << 63, "")
"""Keys below and above those of all files."""


def unmergeable_manifest(manifest: ManifestFile, place: int) -> ManifestFile:
    """Return a manifest known only from its list: it is never merged.

    Args:
        manifest: The manifest.
        place: Its position in the list.
    """
    part = ManifestRange(0, 0, manifest.part.spec_id, manifest.part.content, place)
    return replace(manifest, part=part, low=_LEAST, high=_MOST)


@frozen
class ManifestDraft:
    """A manifest to be written.

    Attributes:
        part: Its range of files.
        keys: The least and the greatest key of the files that it is formed with.
        pieces: Its entries, in order.
        was: The manifest that it replaces after removals; None for one with all entries read.
        oldest: The least sequence number of the remaining files, if it replaces another manifest.
    """

    part: ManifestRange
    keys: tuple[Key, Key]
    pieces: tuple[Piece, ...]
    was: ManifestFile | None = None
    oldest: int = 0

    @property
    def entries(self) -> Iterator[ManifestEntry]:
        """The entries that were read, without copied blocks."""
        return (each for each in self.pieces if not isinstance(each, EncodedBlock))

    @property
    def removed(self) -> list[ManifestEntry]:
        """The entries of removed files."""
        return [each for each in self.entries if each.status == DELETED]


def manifest_file(
    draft: ManifestDraft,
    path: str,
    body: bytes,
    *,
    struct: PartitionStruct,
    by: tuple[int, int],
) -> ManifestFile:
    """Return the list record of a manifest that a snapshot wrote.

    Args:
        draft: Its content.
        path: Its path below the table's location.
        body: Its bytes.
        struct: The partition struct of its spec.
        by: The snapshot's id and sequence number.
    """
    check = hashlib.sha256(body).hexdigest()
    if draft.was is not None:
        without = _rewritten_manifest_file(draft, draft.was, by)
        return replace(without, path=path, length=len(body), check=check)
    entries = list(draft.entries)
    live = [each for each in entries if each.status != DELETED]
    of = {
        status: [each.records for each in entries if each.status == status]
        for status in (ADDED, EXISTING, DELETED)
    }
    snapshot_id, sequence_number = by
    return ManifestFile(
        part=draft.part,
        path=path,
        length=len(body),
        check=check,
        low=draft.keys[0],
        high=draft.keys[1],
        sequence_number=sequence_number,
        min_sequence_number=min((each.sequence_number for each in live), default=sequence_number),
        added_snapshot_id=snapshot_id,
        added_files=len(of[ADDED]),
        existing_files=len(of[EXISTING]),
        deleted_files=len(of[DELETED]),
        added_rows=sum(of[ADDED]),
        existing_rows=sum(of[EXISTING]),
        deleted_rows=sum(of[DELETED]),
        partitions=struct.summaries([each.partition for each in entries]),
        first_row_id=_known_first_row_id(live),
        new_rows=sum(each.records for each in live if each.first_row_id is None),
    )


def _rewritten_manifest_file(
    draft: ManifestDraft, was: ManifestFile, by: tuple[int, int]
) -> ManifestFile:
    """Return the list record of a manifest rewritten without the files that a snapshot removed.

    Partition bounds stay as they were: they are valid for fewer files as well.
    """
    removed = draft.removed
    rows = sum(each.records for each in removed)
    unnumbered = sum(each.records for each in removed if each.first_row_id is None)
    snapshot_id, sequence_number = by
    return replace(
        was,
        sequence_number=sequence_number,
        min_sequence_number=draft.oldest if was.live_files > len(removed) else sequence_number,
        added_snapshot_id=snapshot_id,
        added_files=0,
        existing_files=was.live_files - len(removed),
        deleted_files=len(removed),
        added_rows=0,
        existing_rows=was.added_rows + was.existing_rows - rows,
        deleted_rows=rows,
        # Rewritten entries contain the row ids that they inherited.
        new_rows=was.new_rows - unnumbered if was.first_row_id is None else 0,
    )


def _known_first_row_id(live: Iterable[ManifestEntry]) -> int | None:
    """Return the first row id of a manifest whose rows all have ids already."""
    ids = [each.first_row_id for each in live]
    given = [each for each in ids if each is not None]
    return min(given) if given and len(given) == len(ids) else None
