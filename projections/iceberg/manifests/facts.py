"""TableFacts: what manifests and lists say of the table that they are of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from attrs import evolve, field, frozen
from msgspec import UnsetType
from msgspec.structs import replace

from ledger.locations import below
from ledger.log.outside.column_values import is_unknown
from ledger.model import types as t
from ledger.model.file_change import FileChange
from ledger.model.iceberg.layout import PartitionSpec
from projections.iceberg.manifests.entry import Ancestry
from projections.iceberg.manifests.partition_struct import PartitionStruct
from projections.iceberg.metadata.table import ROW_IDS_SINCE, SEQUENCES_SINCE

UNLAID: Final = PartitionSpec(1_000_000)
"""The spec of files whose partition has a value that was erased: by it, no reader prunes them."""


def unlaid(files: Iterable[FileChange]) -> Iterator[FileChange]:
    """Yield files, those of `UNLAID` under it."""
    for each in files:
        yield replace(each, spec_id=UNLAID.spec_id, partition=()) if is_unknown(each) else each


@frozen
class TableFacts:
    """A table while a snapshot is made.

    Attributes:
        location: Its URI.
        format_version: 1, 2 or 3.
        first_sequenced: The first snapshot that has a sequence number, its own id; 0 if none has.
        schema: The current schema as JSON.
        specs: Every partition spec by id.
        types: Of the specs' source columns by field id; dropped ones have the type they had last.
        data_location: The URI that data files are below.
        before_sequence: By how much a snapshot's id is more than its sequence number, in a table
            whose ids are not counted from 1.
    """

    location: str
    format_version: int
    first_sequenced: int
    schema: bytes
    specs: Mapping[int, PartitionSpec] = field(hash=False)
    types: Mapping[int, t.DataType] = field(hash=False)
    data_location: str = field(kw_only=True)
    before_sequence: int = 0

    @property
    def has_row_ids(self) -> bool:
        """Whether rows have ids."""
        return self.format_version >= ROW_IDS_SINCE

    @property
    def has_sequences(self) -> bool:
        """Whether snapshots have sequence numbers."""
        return self.format_version >= SEQUENCES_SINCE

    def sequence_number(self, snapshot_id: int) -> int:
        """Return a snapshot's sequence number; 0 for those of version 1."""
        is_sequenced = 0 < self.first_sequenced <= snapshot_id
        return snapshot_id - self.before_sequence if is_sequenced else 0

    def origin(self, change: FileChange, snapshot_id: int) -> Ancestry:
        """Return where a file comes from that a snapshot brings for the first time."""
        origin, row_id = (
            Ancestry(snapshot_id, self.sequence_number(snapshot_id)),
            change.first_row_id,
        )
        if isinstance(row_id, UnsetType) or change.content != "data" or not self.has_row_ids:
            return origin
        return evolve(origin, first_row_id=row_id)

    def struct(self, spec_id: int) -> PartitionStruct:
        """Return the partition struct of a spec."""
        spec = UNLAID if spec_id == UNLAID.spec_id else self.specs[spec_id]
        return PartitionStruct.of(spec, self.types)

    def uri(self, path: str) -> str:
        """Return where a file of Iceberg's own is."""
        return f"{self.location}/{path}"

    def data_uri(self, path: str) -> str:
        """Return where a file is whose path the log has."""
        return below(self.data_location, path)
