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
from projections.manifest_files.container import WrittenBlock

Key = tuple[int, str]


class Part(msgspec.Struct, frozen=True):
    """Which files a manifest is for: fixed when it is formed, whatever is removed from it later.

    Attributes:
        first: The first snapshot whose files it takes.
        last: The last one.
        spec_id: The files' partition spec.
        content: Whether they are data (0) or position deletes (1).
        number: From 0, where the files of one interval are too many for one manifest.
    """

    first: int
    last: int
    spec_id: int
    content: int
    number: int

    @property
    def name(self) -> str:
        """What the manifest's name is made of, besides its newest snapshot."""
        return f"{self.first} {self.last} {self.spec_id} {self.content} {self.number}"

    @property
    def group(self) -> tuple[int, int]:
        """What all of its files share: the spec's id and the content."""
        return (self.spec_id, self.content)

    @property
    def place(self) -> tuple[int, int, int, int, int]:
        """Where it stands in manifest lists: oldest files first."""
        return (self.first, self.last, self.spec_id, self.content, self.number)


class ManifestFile(msgspec.Struct, frozen=True, kw_only=True):
    """A manifest.

    Attributes:
        part: Which files it is for.
        path: Below the table's location.
        length: Bytes.
        check: SHA-256 of the bytes, in hex.
        low: The least key among the files that it was formed with.
        high: The greatest.
        sequence_number: Of the snapshot that wrote it.
        min_sequence_number: The least of its live files'.
        added_snapshot_id: The snapshot that wrote it.
        added_files: How many files came with that snapshot; the other counts likewise.
        partitions: One summary a partition field; None where an engine gave none.
        first_row_id: The id that the first new row gets; None before a list gave it out.
        new_rows: How many rows get their ids from it.
    """

    part: Part
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
    def is_of_engine(self) -> bool:
        """Whether an engine wrote it before the ledger owned the table; its path is whole then."""
        return not self.check

    @property
    def is_formed_here(self) -> bool:
        """Whether the ledger knows how it was formed, and not only what a list says of it."""
        return self.part.first > 0

    @property
    def live_files(self) -> int:
        """How many files of the table it holds."""
        return self.added_files + self.existing_files

    def may_hold(self, key: Key, group: tuple[int, int]) -> bool:
        """Return whether a file of a spec and content may stand in it."""
        return self.part.group == group and self.low <= key <= self.high


_LEAST, _MOST = (-1, ""), (1 << 63, "")
"""Keys that no file of a manifest is outside of."""


def wherever(manifest: ManifestFile, place: int) -> ManifestFile:
    """Return a manifest of which only what its list says is known: it never becomes part of one.

    Args:
        manifest: The manifest.
        place: Where it stands in the list.
    """
    part = Part(0, 0, manifest.part.spec_id, manifest.part.content, place)
    return replace(manifest, part=part, low=_LEAST, high=_MOST)


@frozen
class ManifestDraft:
    """A manifest to be written.

    Attributes:
        part: Which files it is for.
        keys: The least and the greatest key of the files that it is formed with.
        pieces: Its entries, in order.
        was: Which manifest it is, without some of its files; None: a new one, all of it read.
        oldest: The least sequence number of the files that stay in it, where it was another.
    """

    part: Part
    keys: tuple[Key, Key]
    pieces: tuple[Piece, ...]
    was: ManifestFile | None = None
    oldest: int = 0

    @property
    def entries(self) -> Iterator[ManifestEntry]:
        """Those of its entries that were read."""
        return (each for each in self.pieces if not isinstance(each, WrittenBlock))

    @property
    def removed(self) -> list[ManifestEntry]:
        """Those of its files that go."""
        return [each for each in self.entries if each.status == DELETED]


def manifest_file(
    draft: ManifestDraft,
    path: str,
    body: bytes,
    *,
    struct: PartitionStruct,
    by: tuple[int, int],
) -> ManifestFile:
    """Return what a list says of a manifest that a snapshot wrote.

    Args:
        draft: What it holds.
        path: Below the table's location.
        body: Its bytes.
        struct: Of its partition spec.
        by: The snapshot's id and sequence number.
    """
    check = hashlib.sha256(body).hexdigest()
    if draft.was is not None:
        without = _without(draft, draft.was, by)
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
        first_row_id=_given(live),
        new_rows=sum(each.records for each in live if each.first_row_id is None),
    )


def _without(draft: ManifestDraft, was: ManifestFile, by: tuple[int, int]) -> ManifestFile:
    """Return what a list says of a manifest without the files that a snapshot takes out of it.

    Partitions' bounds stay as they were: they hold for fewer files, too.
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
        # Files say the ids that they inherited.
        new_rows=was.new_rows - unnumbered if was.first_row_id is None else 0,
    )


def _given(live: Iterable[ManifestEntry]) -> int | None:
    """Return the row id of a manifest whose rows all have one already."""
    ids = [each.first_row_id for each in live]
    given = [each for each in ids if each is not None]
    return min(given) if given and len(given) == len(ids) else None
