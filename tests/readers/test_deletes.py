"""Rows that deletion vectors and equality deletes take away are gone for Iceberg's own reader."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import ledger
from ledger import FileChange, Ledger, Schema, SnapshotPlan, Table
from ledger.table_handle import handle_of
from tests.readers.iceberg_runtime import catalog_of
from tests.readers.lakehouse import add_rows, folder_of, write_rows
from tests.readers.puffin import puffin

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    lake = ledger.open(str(tmp_path_factory.mktemp("deletes")))
    lake.create_database("shop")
    return lake


def filled(lake: Ledger, name: str, version: int) -> Table:
    """A table of two files with the rows 0 to 4 and 5 to 9."""
    options = {"ledger.formats": "iceberg", "format-version": str(version)}
    schema = Schema.of({"id": "INT", "name": "STRING"}, options=options)
    table = lake.create_table(f"shop.{name}", schema)
    for number, start in enumerate((0, 5)):
        rows = [{"id": each, "name": f"of {each}"} for each in range(start, start + 5)]
        add_rows(table, f"{number}.parquet", rows)
    return table


def vectors(table: Table, name: str, gone: dict[str, list[int]]) -> list[FileChange]:
    """Write deletion vectors into one Puffin file; return what the log says of them."""
    uris = {f"{table.location}/{path}": positions for path, positions in gone.items()}
    body, places = puffin(uris)
    (folder_of(table) / name).write_bytes(body)
    return [
        FileChange(
            path=f"{name}#{places[f'{table.location}/{path}'][0]}",
            content="position-deletes",
            format="puffin",
            record_count=len(positions),
            file_size_in_bytes=len(body),
            field_ids=True,
            referenced_data_file=path,
            content_offset=places[f"{table.location}/{path}"][0],
            content_size_in_bytes=places[f"{table.location}/{path}"][1],
        )
        for path, positions in gone.items()
    ]


def ids(rows: Iterable[dict[str, Any]]) -> list[int]:
    return sorted(each["id"] for each in rows)


def by_spark(spark: SparkSession, table: Table, suffix: str = "") -> list[int]:
    table.project("iceberg")
    name = f"{catalog_of(handle_of(table).ledger_url)}.`shop.db`.{table.identifier.name}"
    query = f"SELECT id FROM {name}{suffix}"  # noqa: S608 - written here
    return sorted(each["id"] for each in spark.sql(query).collect())


def by_pyiceberg(table: Table) -> list[int]:
    return ids(table.at().to_arrow().to_pylist())


def test_vectors_of_one_puffin_file_take_rows_of_their_files_away(
    iceberg: SparkSession, lake: Ledger
) -> None:
    table = filled(lake, "vectors", 3)
    table.append(vectors(table, "v1.puffin", {"0.parquet": [1, 3], "1.parquet": [0]}))
    assert by_spark(iceberg, table) == by_pyiceberg(table) == [0, 2, 4, 6, 7, 8, 9]
    # A vector is replaced; the other one in its file stays.
    (new,) = vectors(table, "v2.puffin", {"0.parquet": [0, 1, 3]})
    (old,) = (e.path for e in table.at().files if e.referenced_data_file == "0.parquet")
    table.commit_snapshot(SnapshotPlan("OVERWRITE", (new,), delete=(old,)))
    assert by_spark(iceberg, table) == by_pyiceberg(table) == [2, 4, 6, 7, 8, 9]
    assert by_spark(iceberg, table, " VERSION AS OF 2") == [*range(10)]
    assert by_spark(iceberg, table, " VERSION AS OF 3") == [0, 2, 4, 6, 7, 8, 9]
    table.rollback(snapshot=3)
    assert by_spark(iceberg, table) == by_pyiceberg(table) == [0, 2, 4, 6, 7, 8, 9]
    table.delete_files([each.path for each in table.at().files if each.is_vector])
    assert by_spark(iceberg, table) == by_pyiceberg(table) == [*range(10)]


@pytest.mark.parametrize("version", [2, 3])
def test_equality_deletes_take_older_rows_of_equal_values_away(
    iceberg: SparkSession, lake: Ledger, version: int
) -> None:
    table = filled(lake, f"values{version}", version)
    names = pa.schema([pa.field("name", pa.string(), metadata={"PARQUET:field_id": "1"})])
    target = folder_of(table) / "e.parquet"
    parquet.write_table(pa.table({"name": ["of 2", "of 7"]}, schema=names), target)
    deletes = FileChange(
        path="e.parquet",
        content="equality-deletes",
        record_count=2,
        file_size_in_bytes=target.stat().st_size,
        field_ids=True,
        equality_ids=(1,),
    )
    table.append([deletes])
    assert by_spark(iceberg, table) == [0, 1, 3, 4, 5, 6, 8, 9]
    # What comes later is not deleted.
    table.add_files([str(write_rows(table, "2.parquet", [{"id": 70, "name": "of 7"}]))])
    assert by_spark(iceberg, table) == [0, 1, 3, 4, 5, 6, 8, 9, 70]


def test_rows_have_the_ids_that_their_file_says(iceberg: SparkSession, lake: Ledger) -> None:
    table = filled(lake, "lineage", 3)
    rows = [{"id": 20, "name": "x"}, {"id": 21, "name": "y"}]
    target = write_rows(table, "2.parquet", rows)
    file = FileChange(
        path="2.parquet",
        record_count=2,
        file_size_in_bytes=target.stat().st_size,
        field_ids=True,
        first_row_id=500,
    )
    table.append([file])
    add_rows(table, "3.parquet", [{"id": 30, "name": "z"}])
    table.project("iceberg")
    name = f"{catalog_of(handle_of(table).ledger_url)}.`shop.db`.lineage"
    found = iceberg.sql(f"SELECT id, _row_id FROM {name}").collect()  # noqa: S608 - written here
    given = {each["id"]: each["_row_id"] for each in found}
    assert given == {each: each for each in range(10)} | {20: 500, 21: 501, 30: 502}
