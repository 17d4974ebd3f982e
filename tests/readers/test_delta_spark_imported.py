"""Delta tables that Spark wrote, imported, projected, and read by Spark again."""
# ruff: noqa: S608 - our own text

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ledger
from ledger import RenameColumn, Table, UnsupportedError
from ledger.table_handle import handle_of
from projections.delta import DELTA
from tests.readers.delta_runtime import delta_session
from tests.readers.test_delta_readers import delta_rs_query, duckdb, folder_of
from tests.readers.test_delta_spark import read_by

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    with delta_session(spark) as session:
        yield session


def written(session: SparkSession, folder: Path) -> str:
    """A mapped table: deletes, updates, new columns, a compaction, and other columns at last.

    This Delta alters no table under this Spark, so that nothing is renamed.
    """
    place = f"delta.`{folder}`"
    session.sql(
        f"CREATE TABLE {place} (id BIGINT, name STRING, s STRUCT<x: INT, y: STRING>, day DATE) "
        "USING delta PARTITIONED BY (day) TBLPROPERTIES ('delta.checkpointInterval' = '1000', "
        "'delta.columnMapping.mode' = 'name')"
    )
    row = "'{0}', named_struct('x', {0}, 'y', NULL), DATE'19{0}-01-01'"
    rows = ", ".join(f"({each}, {row.format(each)})" for each in (58, 69, 71))
    for statement in (
        f"INSERT INTO {place} VALUES {rows}",
        f"DELETE FROM {place} WHERE id = 58",
        f"INSERT INTO {place} SELECT id + 1, name, s, day FROM {place}",
        f"UPDATE {place} SET name = 'new' WHERE id = 69",
        f"OPTIMIZE {place}",
    ):
        session.sql(statement).collect()
    for mode, option, columns in (
        ("append", "mergeSchema", "id, name, s, day, id AS more"),
        ("overwrite", "overwriteSchema", "day, id, s, more AS other"),
    ):
        session.sql(f"SELECT {columns} FROM {place} LIMIT 2").write.format("delta").mode(
            mode
        ).option(option, "true").partitionBy("day").save(str(folder))
    return str(folder)


def mirrored(tmp_path: Path, source: str) -> Table:
    lake = ledger.open(str(tmp_path / "lake"))
    lake.import_table("a.b", source, format_name="delta")
    table = lake.table("a.b")
    DELTA.project(handle_of(table))
    assert DELTA.verify(handle_of(table)).is_empty
    return table


def test_every_version_that_spark_wrote_reads_as_at_the_source(
    session: SparkSession, tmp_path: Path
) -> None:
    source = written(session, tmp_path / "t")
    table = mirrored(tmp_path, source)
    newest = session.sql(f"DESCRIBE HISTORY delta.`{source}`").first()
    assert newest is not None
    for version in range(newest.version + 1):
        for reader in (read_by(session), delta_rs_query, duckdb):
            wanted = reader(source, version)
            assert reader(folder_of(table), version) == wanted, (version, reader)
    at = table.at(version=1)
    assert {each.name: each.id for each in at.schema.fields} == {
        "id": 1,
        "name": 2,
        "s": 3,
        "day": 6,
    }
    history = session.sql(f"DESCRIBE HISTORY delta.`{folder_of(table)}`").collect()
    theirs = session.sql(f"DESCRIBE HISTORY delta.`{source}`").collect()
    assert [each.operation for each in history] == [each.operation for each in theirs]


def test_spark_writes_into_no_projected_log(session: SparkSession, tmp_path: Path) -> None:
    from py4j.protocol import Py4JError  # type: ignore[import-untyped] # it has no types

    source = str(tmp_path / "t")
    session.range(3).coalesce(1).write.format("delta").save(source)
    folder = folder_of(mirrored(tmp_path, source))
    with pytest.raises(Py4JError, match="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE.*lakeledger"):
        session.sql(f"DELETE FROM delta.`{folder}`").collect()


def test_a_table_of_sparks_is_the_ledgers_and_sparks_to_read(
    session: SparkSession, tmp_path: Path
) -> None:
    from py4j.protocol import Py4JError

    source = written(session, tmp_path / "t")
    lake = ledger.open(str(tmp_path / "lake"))
    lake.import_table("a.b", source, format_name="delta")
    lake.promote("a.b")
    table = lake.table("a.b")
    history = session.sql(f"DESCRIBE HISTORY delta.`{source}`").collect()
    assert (history[0].operation, history[0].operationParameters["owner"]) == (
        "PROMOTE",
        table.location,
    )
    with pytest.raises(Py4JError, match="DELTA_UNSUPPORTED_FEATURES_FOR_WRITE.*lakeledger"):
        session.sql(f"DELETE FROM delta.`{source}`").collect()
    readers = (read_by(session), delta_rs_query, duckdb)
    for reader in readers:
        for version in (1, history[0].version):
            assert reader(folder_of(table), version) == reader(source, version), version
    there = readers[0](source, history[0].version)
    file = table.at().files[0]
    table.alter([RenameColumn(("other",), "called")])
    table.delete_files(file.path)
    table.rollback(snapshot=table.state.last_snapshot_id - 1)
    DELTA.project(handle_of(table))
    newest = history[0].version + 4
    names = ["called" if each == "other" else each for each in there[0]]
    for reader in readers:
        assert reader(folder_of(table), newest) == (names, there[1])
    assert len(duckdb(folder_of(table), newest - 1)[1]) == len(there[1]) - file.record_count


def test_deletion_vectors_of_spark_are_rejected_by_name(
    session: SparkSession, tmp_path: Path
) -> None:
    place = f"delta.`{tmp_path}/t`"
    vectors = "TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')"
    session.sql(f"CREATE TABLE {place} (id BIGINT) USING delta {vectors}")
    session.range(10).coalesce(1).write.format("delta").mode("append").save(f"{tmp_path}/t")
    session.sql(f"DELETE FROM {place} WHERE id = 3").collect()
    lake = ledger.open(str(tmp_path / "lake"))
    with pytest.raises(UnsupportedError, match=r"version 2 of .* has a deletion vector"):
        lake.import_table("a.b", f"{tmp_path}/t", format_name="delta")
    assert lake.databases() == []
