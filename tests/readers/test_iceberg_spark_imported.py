"""Iceberg tables that Spark wrote, rows of which deletes hide: imported, projected, and read again.

In format version 2 files of positions hide them, in version 3 deletion vectors.
"""
# ruff: noqa: S608 - our own text

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ledger
from tests.readers.engines import duckdb_rows
from tests.readers.iceberg_runtime import catalog_of, hadoop_catalog

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long

Rows = list[dict[str, Any]]


def written(session: SparkSession, name: str, version: int) -> None:
    """A table whose deletes and updates leave its files as they are."""
    modes = ", ".join(f"'write.{each}.mode' = 'merge-on-read'" for each in ("delete", "update"))
    session.sql(
        f"CREATE TABLE {name} (id BIGINT, name STRING) USING iceberg "
        f"TBLPROPERTIES ('format-version' = '{version}', {modes})"
    )
    rows = session.range(20).selectExpr("id", "concat('n', id) AS name").coalesce(1)
    rows.writeTo(name).append()
    for statement in (
        f"DELETE FROM {name} WHERE id IN (3, 4)",
        f"UPDATE {name} SET name = 'new' WHERE id = 7",
        f"DELETE FROM {name} WHERE id > 17",
    ):
        session.sql(statement)


def read(session: SparkSession, name: str, snapshot_id: int) -> Rows:
    found = session.sql(f"SELECT * FROM {name} VERSION AS OF {snapshot_id}").collect()
    return _sorted([each.asDict() for each in found])


def _sorted(rows: Rows) -> Rows:
    return sorted(rows, key=lambda each: int(each["id"]))


@pytest.mark.parametrize("version", [2, 3])
def test_rows_that_deletes_hide_are_hidden_in_imported_tables(
    spark: SparkSession, tmp_path: Path, version: int
) -> None:
    warehouse = tmp_path / f"theirs{version}"
    with hadoop_catalog(spark, f"file://{warehouse}") as session:
        name = f"{catalog_of(f'file://{warehouse}')}.s.t"
        written(session, name, version)
        history = session.sql(f"SELECT snapshot_id FROM {name}.snapshots ORDER BY committed_at")
        wanted = {each[0]: read(session, name, each[0]) for each in history.collect()}
    assert [len(each) for each in wanted.values()] == [20, 18, 18, 16]
    lake = ledger.open(tmp_path / f"ours{version}", allowed_locations=[f"file://{warehouse}"])
    lake.import_table("a.b", str(warehouse / "s/t"))
    table = lake.table("a.b")
    hiding = {each.format for each in table.at().files if each.content == "position-deletes"}
    assert hiding == ({"puffin"} if version > 2 else {"parquet"})
    for each, rows in wanted.items():
        assert _sorted(table.at(snapshot=each).to_arrow().to_pylist()) == rows
    table.project("iceberg")
    folder = Path(table.location.removeprefix("file://"))
    newest = list(wanted.values())[-1]
    assert _sorted(duckdb_rows(folder)) == newest
    with hadoop_catalog(spark, lake.url) as session:
        ours = f"{catalog_of(lake.url)}.`a.db`.b"
        assert {each: read(session, ours, each) for each in wanted} == wanted
        lake.promote("a.b")
        table.project("iceberg")
        assert read(session, ours, table.state.last_snapshot_id) == newest
    assert _sorted(table.at().to_arrow().to_pylist()) == newest
