"""Engines that read a folder of Iceberg's as Hadoop tables: DuckDB's extension, and ClickHouse."""

from __future__ import annotations

import json
import os
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb

Rows = list[dict[str, Any]]

HAS_CHDB = find_spec("chdb") is not None


def duckdb_connection(*extensions: str) -> duckdb.DuckDBPyConnection:
    """Return a connection with extensions that packages bring; nothing is downloaded."""
    connection = _duckdb_with(*extensions).cursor()
    connection.execute("SET TimeZone = 'UTC'")
    return connection


@cache
def _duckdb_with(*extensions: str) -> duckdb.DuckDBPyConnection:
    """Return a database in memory: loading an extension takes longer than most queries."""
    connection = duckdb.connect()
    # What one query read answers no other.
    connection.execute("SET enable_external_file_cache = false")
    for each in extensions:
        spec = find_spec(f"duckdb_extension_{each}")
        assert spec is not None, f"pip install duckdb-extension-{each}"
        assert spec.origin is not None
        (path,) = Path(spec.origin).parent.rglob(f"{each}.duckdb_extension")
        connection.load_extension(str(path))
    return connection


def duckdb_rows(folder: Path, snapshot: int | None = None) -> Rows:
    """Return what DuckDB's extension reads of the newest metadata, or of a snapshot in it."""
    at = "" if snapshot is None else f", snapshot_from_id={snapshot}"
    with duckdb_connection("avro", "iceberg") as connection:
        connection.execute("SET unsafe_enable_version_guessing = true")
        query = f"SELECT * FROM iceberg_scan('{folder}'{at})"  # noqa: S608 - written here
        rows: Rows = connection.sql(query).to_arrow_table().to_pylist()
        return rows


def chdb_rows(folder: Path, snapshot: int | None = None) -> Rows:
    """Return what ClickHouse reads of the newest metadata, or of a snapshot in it."""
    chdb = import_module("chdb")
    at = "" if snapshot is None else f" SETTINGS iceberg_snapshot_id={snapshot}"
    # It reads nothing outside the folder that it was started in.
    before = Path.cwd()
    os.chdir("/")
    try:
        found = chdb.query(f"SELECT * FROM icebergLocal('{folder}/'){at}", "JSONEachRow")  # noqa: S608 - written here
    finally:
        os.chdir(before)
    return [json.loads(line) for line in str(found).splitlines() if line]
