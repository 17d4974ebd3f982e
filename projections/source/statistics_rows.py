"""Rows of the views of kept statistics: the tiles, and the sums of partitions at an instant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from attrs import frozen

from ledger.log.personal_data import PersonalColumns
from ledger.model.errors import DamagedLogError
from ledger.model.file_change import PartitionValue
from ledger.state.table import TableState
from ledger.table_at import TableAt
from projections.source.columns import (
    PARTITION,
    TYPED,
    Column,
    Names,
    arrow_type,
    parse_value,
    partition_field_names,
    value_text,
)
from projections.source.file_rows import PARTITION_CONTENT, SPEC, refuse_engine_listed
from projections.source.row_batches import Arrays
from projections.source.span_reading import LogScan
from projections.statistics import Kept
from projections.statistics.engine_listed import EngineListedStatistics
from projections.statistics.fold import between, up_to
from projections.statistics.partition_rendering import fill_personal_values
from projections.statistics.query import StatisticsSource, partition_sums
from projections.statistics.tile_files import AllPartitions, blocks

if TYPE_CHECKING:
    import pyarrow as pa

_NEWEST = Column(
    "last_file_creation_time",
    "bigint",
    "newest of all files ever added or deleted, Unix milliseconds",
    nullable=True,
)

TILES = (
    Column("version", "bigint", "number of the commit in the table's stream"),
    Column("snapshot_id", "bigint", "the snapshot"),
    SPEC,
    PARTITION,
    PARTITION_CONTENT,
    Column("record_count", "bigint", "added minus deleted rows"),
    Column("file_size_in_bytes", "bigint", "added minus deleted bytes"),
    Column("file_count", "bigint", "added minus deleted files"),
    _NEWEST,
)

PARTITIONS = (
    Column("version", "bigint", "the commit at which the table is read"),
    SPEC,
    PARTITION,
    PARTITION_CONTENT,
    Column("record_count", "bigint", "rows in its live files"),
    Column("file_size_in_bytes", "bigint", "their bytes"),
    Column("file_count", "bigint", "number of live files"),
    _NEWEST,
)

_ROWS_AT_ONCE = 65_536


def tile_arrays(scan: LogScan, wanted: Sequence[Column]) -> Iterator[Arrays]:
    """Yield columns of `TILES`: the change of each partition by each snapshot, in no order.

    What is not kept yet is computed from the log.

    Raises:
        DamagedLogError: A needed part of the log is missing or damaged.
        UnsupportedError: An engine lists the table's files.
    """
    refuse_engine_listed(scan)
    state = scan.final()
    shown = _ShownRows.of(scan, state)
    for rows in _deltas(Kept.of(scan.log), scan.first, state):
        yield from shown.arrays(rows, wanted)


def _deltas(kept: Kept, first: int, state: TableState) -> Iterator[pa.Table]:
    """Yield the deltas of the versions from `first` to a state; wide blocks in several tables."""
    for block in blocks(first, state.version):
        if block.end <= state.version:
            tables = kept.tables(block, _ROWS_AT_ONCE)
        else:
            rows = kept.block(block, state.version)
            tables = iter([up_to(rows, version=state.version, snapshot_id=state.last_snapshot_id)])
        for each in tables:
            yield each if first <= block.start else between(each, first, state.version)


def partition_arrays(scan: LogScan, wanted: Sequence[Column]) -> Iterator[Arrays]:
    """Yield columns of `PARTITIONS`: the partitions that have files at the scan's end.

    If an engine lists the table's files, they are counted from its manifests.

    Raises:
        DamagedLogError: A needed part of the log is missing or damaged.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    state = scan.final()
    kept: StatisticsSource = (
        Kept.of(scan.log)
        if state.lists_files
        else EngineListedStatistics(scan.table, TableAt(state, state.schema, scan.table))
    )
    rows = partition_sums(kept, state)
    rows = rows.filter(pc.greater(rows["file_count"], 0))
    version = pa.repeat(pa.scalar(state.version, pa.int64()), len(rows))
    rows = rows.set_column(rows.schema.get_field_index("version"), "version", version)
    yield from _ShownRows.of(scan, state).arrays(rows, wanted)


@frozen
class _ShownRows:
    """Rows of a table's statistics as columns of a view.

    Attributes:
        personal: Personal partition values, which rows do not contain.
        names: The names of partition fields, by spec id.
        file: Folder of the log, for errors.
    """

    personal: PersonalColumns
    names: Names
    file: str

    @classmethod
    def of(cls, scan: LogScan, state: TableState) -> _ShownRows:
        log = scan.log
        return cls(
            log.personal.columns, partition_field_names(state.specs), f"{log.layout.root}/log"
        )

    def arrays(self, rows: pa.Table, wanted: Sequence[Column]) -> Iterator[Arrays]:
        """Yield columns of the rows; those of whole tables are left out."""
        rows = AllPartitions().select(rows)
        for begin in range(0, len(rows), _ROWS_AT_ONCE):
            filled = fill_personal_values(self.personal, rows.slice(begin, _ROWS_AT_ONCE))
            partitions = _DistinctPartitions.of(filled, self.names, self.file)
            yield [
                partitions.column(each)
                if each.name in (PARTITION.name, TYPED)
                else _own(filled, each)
                for each in wanted
            ]


def _own(rows: pa.Table, column: Column) -> pa.Array:
    return rows[column.name].combine_chunks().cast(arrow_type(column))


@frozen
class _DistinctPartitions:
    """The partitions of some rows, each parsed once.

    Attributes:
        names: The names of their fields, by spec id.
        values: The values of each distinct partition, by spec id.
        indices: The place of each row's partition among these; None if each has its own.
    """

    names: Names
    values: Mapping[int, Sequence[Sequence[PartitionValue]]]
    indices: pa.Array | None

    @classmethod
    def of(cls, rows: pa.Table, names: Names, file: str) -> _DistinctPartitions:
        """Return those of some rows of partitions; `file` is named in errors."""
        import pyarrow as pa
        import pyarrow.compute as pc

        spec_ids, texts = rows["spec_id"].combine_chunks(), rows["partition"].combine_chunks()
        values: dict[int, Sequence[Sequence[PartitionValue]]] = {}
        indices, count = pa.repeat(pa.scalar(0, pa.int64()), len(rows)), 0
        for spec_id in pc.unique(spec_ids).to_pylist():
            is_mine = pc.equal(spec_ids, spec_id)
            encoded = texts.filter(is_mine).dictionary_encode()
            mine = pc.add(encoded.indices.cast(pa.int64()), count)
            indices = pc.replace_with_mask(indices, is_mine, mine)
            values[spec_id] = _decode_partitions(encoded.dictionary.to_pylist(), file)
            count += len(encoded.dictionary)
        is_whole = len(values) == 1 and count == len(rows)
        return cls(names, values, None if is_whole else indices)

    def column(self, column: Column) -> pa.Array:
        """Return a column of partition values: the map of texts, or the struct of typed values."""
        import pyarrow as pa

        build = self._maps if column.name == PARTITION.name else self._structs
        parts = [build(column, spec_id) for spec_id in self.values]
        found = pa.concat_arrays(parts) if parts else pa.array([], arrow_type(column))
        return found if self.indices is None else found.take(self.indices)

    def _texts(self, spec_id: int) -> dict[str, list[str | None]]:
        """Return, by field, the text of each of a spec's partitions."""
        fields = zip(*self.values[spec_id], strict=True)
        return {
            name: [value_text(each) for each in values]
            for name, values in zip(self.names[spec_id], fields, strict=True)
            if name is not None
        }

    def _maps(self, column: Column, spec_id: int) -> pa.Array:
        import pyarrow as pa

        texts, count = self._texts(spec_id), len(self.values[spec_id])
        offsets = pa.array(range(0, len(texts) * count + 1, len(texts) or 1), pa.int32())
        if not texts:
            offsets = pa.repeat(pa.scalar(0, pa.int32()), count + 1)
        items = [each for row in zip(*texts.values(), strict=True) for each in row]
        keys = pa.array(list(texts) * count, pa.string())
        found = pa.MapArray.from_arrays(offsets, keys, pa.array(items, pa.string()))
        return found.cast(arrow_type(column))

    def _structs(self, column: Column, spec_id: int) -> pa.Array:
        import pyarrow as pa

        texts, count = self._texts(spec_id), len(self.values[spec_id])
        fields = list(arrow_type(column))
        members = [
            pa.array([parse_value(member, each) for each in texts[member.name]], field.type)
            if member.name in texts
            else pa.nulls(count, field.type)
            for member, field in zip(column.members, fields, strict=True)
        ]
        return pa.StructArray.from_arrays(members, fields=fields)


def _decode_partitions(texts: Sequence[str], file: str) -> Sequence[Sequence[PartitionValue]]:
    try:
        return msgspec.json.decode(f"[{','.join(texts)}]", type=list[list[PartitionValue]])
    except msgspec.DecodeError as error:
        raise DamagedLogError(
            f"the table's log or statistics hold a partition that is no list of values: {error}. "
            "Check the log with lakeledger verify, then count again: lakeledger stats TABLE "
            "--rebuild",
            file,
        ) from error
