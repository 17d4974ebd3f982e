"""Real Parquet files for a table, from rows that a test made up, with or without field ids."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from pyarrow import parquet

from ledger import Table

Rows = list[dict[str, Any]]


def folder_of(table: Table) -> Path:
    return Path(table.location.removeprefix("file://"))


def write_rows(
    table: Table, path: str, rows: Sequence[dict[str, Any]], *, has_ids: bool = True
) -> Path:
    """Write rows below a table's folder, in the columns that the table has now."""
    arrow = table.at().schema.to_arrow()
    schema = arrow if has_ids else without_ids(arrow)
    target = folder_of(table) / path
    target.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.Table.from_pylist(list(rows), schema=schema), target)
    return target


def add_rows(
    table: Table, path: str, rows: Sequence[dict[str, Any]], *, has_ids: bool = True
) -> None:
    """Write rows and register the file."""
    table.add_files([str(write_rows(table, path, rows, has_ids=has_ids))])


def without_ids(schema: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field(each.name, bare(each.type), each.nullable) for each in schema])


def bare(data_type: pa.DataType) -> pa.DataType:
    """Return a type without the field ids of its members."""
    if pa.types.is_struct(data_type):
        return pa.struct(
            [pa.field(each.name, bare(each.type), each.nullable) for each in data_type]
        )
    if pa.types.is_list(data_type):
        inner = data_type.value_field
        return pa.list_(pa.field(inner.name, bare(inner.type), inner.nullable))
    if pa.types.is_map(data_type):
        return pa.map_(bare(data_type.key_type), bare(data_type.item_type))
    return data_type


def duck_rows(paths: Iterable[Path], where: str = "true", columns: str = "*") -> Rows:
    """Return what DuckDB reads in the files themselves, by id."""
    named = [str(each) for each in paths]
    query = (
        f"SELECT {columns} FROM read_parquet({named!r}, union_by_name=true, "  # noqa: S608 - written here
        f"hive_partitioning=false) WHERE {where} ORDER BY id"
    )
    with duckdb.connect() as duck:
        duck.execute("SET TimeZone = 'UTC'")
        rows: Rows = duck.sql(query).to_arrow_table().to_pylist()
        return rows


def by_id(rows: Iterable[dict[str, Any]]) -> Rows:
    return sorted(rows, key=lambda row: int(row["id"]))
