"""Iceberg tables with files of chosen rows, partitioned by every transform that PyIceberg has."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyiceberg.expressions.literals import literal
from pyiceberg.io.pyarrow import (
    compute_statistics_plan,
    data_file_statistics_from_parquet_metadata,
    parquet_path_to_id_mapping,
    schema_to_pyarrow,
)
from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
from pyiceberg.table import Table
from pyiceberg.typedef import Record

from ledger.log import fresh_id
from projections.iceberg.table_json import read_metadata
from projections.iceberg.table_metadata import TableMetadata

Row = dict[str, Any]


def read(url: str) -> bytes | None:
    """Return a file of this machine."""
    path = Path(url.removeprefix("file://"))
    return path.read_bytes() if path.exists() else None


def metadata_of(table: Table) -> TableMetadata:
    """Return a table's metadata as the ledger reads it."""
    body = read(table.metadata_location)
    assert body is not None
    return read_metadata(body)


def partition_of(table: Table, row: Row) -> Record:
    """Return the partition that a row belongs to under the default spec."""
    columns = {each.field_id: each for each in table.schema().fields}
    found = []
    for field in table.spec().fields:
        source = columns[field.source_id]
        value = row[source.name]
        inner = None if value is None else literal(value).to(source.field_type).value
        found.append(field.transform.transform(source.field_type)(inner))
    return Record(*found)


def write_file(table: Table, rows: Sequence[Row], partition: Record) -> DataFile:
    """Write a data file, and return its entry with statistics."""
    path = f"{table.location()}/data/{fresh_id()}.parquet"
    inside = Path(path.removeprefix("file://"))
    inside.parent.mkdir(exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema_to_pyarrow(table.schema())), inside)
    found = data_file_statistics_from_parquet_metadata(
        parquet_metadata=pq.read_metadata(inside),
        stats_columns=compute_statistics_plan(table.schema(), table.properties),
        parquet_column_mapping=parquet_path_to_id_mapping(table.schema()),
    )
    return DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=path,
        file_format=FileFormat.PARQUET,
        partition=partition,
        file_size_in_bytes=inside.stat().st_size,
        sort_order_id=None,
        spec_id=table.spec().spec_id,
        equality_ids=None,
        key_metadata=None,
        **found.to_serialized_dict(),
    )


def append(table: Table, rows: Sequence[Row]) -> None:
    """Append rows, one file a partition."""
    by_partition: dict[str, list[Row]] = {}
    for each in rows:
        by_partition.setdefault(repr(partition_of(table, each)), []).append(each)
    with table.transaction() as change, change.update_snapshot().fast_append() as snapshot:
        for group in by_partition.values():
            snapshot.append_data_file(write_file(table, group, partition_of(table, group[0])))
