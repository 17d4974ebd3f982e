"""Rows written into tables in folders, and read back without lakeledger."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from attrs import evolve

import ledger
from ledger import FileChange, Schema, Table
from ledger.rows.attempts import WriteAttempt
from ledger.rows.row_files import RowTarget, write_rows
from ledger.table_handle import handle_of


def a_table(folder: Path, columns: Any, spec: Sequence[Any] = (), **options: str) -> Table:
    lake = ledger.open(str(folder))
    lake.init()
    if "shop" not in lake.databases():
        lake.create_database("shop")
    schema = Schema.of(columns, options={"ledger.formats": "iceberg", **options})
    return lake.create_table("shop.orders", schema, partition_spec=list(spec) or None)


def written(
    table: Table, batches: Iterable[pa.RecordBatch], name: str = "job", **changed: Any
) -> tuple[FileChange, ...]:
    """Write rows as an executor does, which gets the target pickled."""
    attempt = WriteAttempt.of(table, name)
    target = evolve(RowTarget.of(handle_of(table), attempt.folder), **changed)
    return write_rows(pickle.loads(pickle.dumps(target)), batches)  # noqa: S301 - made here


def rows_in(table: Table) -> list[dict[str, Any]]:
    found = []
    for each in table.at().files:
        path = f"{table.location.removeprefix('file://')}/{each.path}"
        found += pq.ParquetFile(path).read().to_pylist()
    return found


def paths_in(table: Table) -> list[str]:
    folder = Path(table.location.removeprefix("file://")) / "data"
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*.parquet"))
