"""Sums of a Paimon table's partitions from the manifests of its newest snapshot.

Source: Paimon's PartitionEntry.
"""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define

from ledger.model.errors import DamagedLogError, InvalidInputError
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.paimon.binary_row import decode_row
from projections.paimon.engine_files import EngineFileReader, entry_counts, listed_manifests
from projections.paimon.partitions import PartitionSums
from projections.paimon.row_values import scalar
from projections.partition_text import PartitionText


@define
class _Counts:
    records: int = 0
    size_in_bytes: int = 0
    files: int = 0
    created: int = 0
    total_buckets: int = 0


def manifest_partitions(table: TableHandle, state: TableState) -> Iterator[PartitionSums]:
    """Yield the partitions with files at a state, from its engines' manifests.

    Args:
        table: The table.
        state: Its state, or that of a branch.

    Raises:
        NotFoundError: A manifest is missing, or outside of the permitted locations.
        DamagedLogError: A manifest is damaged.
    """
    if state.snapshot is None:
        return
    reader = EngineFileReader(table, state, state.origin_of_kind(PaimonOrigin))
    found: dict[bytes, _Counts] = {}
    for name in (state.snapshot.base_manifest_list, state.snapshot.delta_manifest_list):
        if name is None:
            continue
        for each in listed_manifests(reader.read_manifest_file(name), name):
            file = each.file_name
            for entry in entry_counts(reader.read_manifest_file(file), file):
                counts = found.setdefault(entry.partition, _Counts())
                counts.records += entry.records
                counts.size_in_bytes += entry.size_in_bytes
                counts.files += entry.files
                counts.created = max(counts.created, entry.creation_time)
                counts.total_buckets = entry.total_buckets
    schema = state.schema
    keys = schema.partition_keys
    types = [schema.field(each).type for each in keys]
    text = PartitionText.of(schema)
    for row, counts in found.items():
        if counts.files <= 0 and counts.records <= 0 and counts.size_in_bytes <= 0:
            continue
        try:
            spec = text.spec(keys, list(map(scalar, decode_row(row, types), types)))
        except InvalidInputError as error:
            raise DamagedLogError(
                f"a manifest of snapshot {state.snapshot.id} holds a partition that does not fit "
                f"the table's keys: {error}",
                str(state.snapshot.base_manifest_list),
            ) from error
        yield PartitionSums(
            spec,
            records=counts.records,
            size_in_bytes=counts.size_in_bytes,
            files=counts.files,
            last_file_creation_time=counts.created,
            total_buckets=counts.total_buckets,
        )
