"""Paimon's own readers count a table's partitions as the statistics do, and read what we publish.

Paimon's Java core reads its `$partitions` table from the projected manifests at the head and at
tags, pypaimon at the head; Java reads the statistics of an ANALYZE snapshot.
"""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import duckdb
import pytest

from ledger import Ledger, Schema, Table
from ledger.table_handle import handle_of
from projections.paimon import PAIMON
from projections.paimon import statistics_file as publish_paimon
from projections.statistics.analyze import analyze
from tests.pypaimon_or_skip import CatalogFactory
from tests.readers.java_core import JavaPaimon
from tests.readers.lakehouse import add_rows, folder_of
from tests.readers.partition_lives import DecisionContext, Lived, lived

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COURSES = [
    DecisionContext(21, evolves=False),
    DecisionContext(22, evolves=False),
    DecisionContext(23),
    DecisionContext(24),
]

NULL = "__DEFAULT_PARTITION__"
COLUMNS = ["partition", "record_count", "file_size_in_bytes", "file_count"]

Figures = tuple[int, int, int]


@pytest.fixture(scope="module")
def lives(lake: Ledger) -> dict[DecisionContext, Lived]:
    found = {each: lived(lake, each) for each in COURSES}
    for each in found.values():
        PAIMON.project(handle_of(each.table))
    return found


@pytest.fixture(params=COURSES, ids=str)
def life(lives: dict[DecisionContext, Lived], request: pytest.FixtureRequest) -> Lived:
    course: DecisionContext = request.param
    return lives[course]


def test_the_histories_hold_everything_that_can_happen(lives: dict[DecisionContext, Lived]) -> None:
    kinds = {"APPEND", "OVERWRITE", "COMPACT", "RolledBack", "SnapshotsExpired", "evolution"}
    assert set.union(*(each.happenings() for each in lives.values())) == kinds
    assert all(len(each.instants()) == 4 for each in lives.values())


def figures(life: Lived, tag: str | None = None) -> dict[str, Figures]:
    """Return what `lakeledger stats` shows, by the day."""
    return {
        day: (each.record_count, each.file_size_in_bytes, each.file_count)
        for day, each in life.shown(tag).items()
    }


def test_javas_partitions_are_those_of_the_statistics(java: JavaPaimon, life: Lived) -> None:
    name = f"{life.table.identifier.name}$partitions"
    for tag in life.instants():
        options = {} if tag is None else {"scan.tag-name": tag}
        _, rows = java.rows(name, options, COLUMNS)

        found: dict[str, Figures] = {}
        for row in rows:
            spec, records, size, files = row[1:-1].split(", ")
            found[spec.removeprefix("day=")] = (int(records), int(size), int(files))
        assert found == figures(life, tag), tag


def test_pypaimons_partitions_are_those_of_the_statistics(lake: Ledger, life: Lived) -> None:
    catalog = CatalogFactory.create({"warehouse": lake.url})
    table: Any = catalog.get_table(f"shop.{life.table.identifier.name}$partitions")
    builder = table.new_read_builder()

    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()

    found = {each["partition"]: tuple(each[key] for key in COLUMNS[1:]) for each in rows}
    # It writes NULL as Python does.
    assert {each.replace("None", NULL): value for each, value in found.items()} == {
        f"day={day}": value for day, value in figures(life).items()
    }


TYPES = {
    "id": "BIGINT",
    "flag": "BOOLEAN",
    "tiny": "TINYINT",
    "small": "SMALLINT",
    "price": "DECIMAL(9, 2)",
    "wide": "DECIMAL(30, 2)",
    "born": "DATE",
    "moment": "TIME(3)",
    "seen": "TIMESTAMP(3)",
    "zoned": "TIMESTAMP_LTZ(6)",
    "exact": "TIMESTAMP(9)",
    "name": "STRING",
    "share": "DOUBLE",
    "day": "DATE",
}

# Where Java's value has another text than DuckDB's.
INSIDE = {
    "born": "date_diff('day', DATE '1970-01-01', {})",
    "day": "date_diff('day', DATE '1970-01-01', {})",
    "moment": "epoch_ms({}::TIME)",
    "seen": "strftime({}, '%Y-%m-%dT%H:%M:%S.%g')",
    "zoned": "strftime({} AT TIME ZONE 'UTC', '%Y-%m-%dT%H:%M:%S.%g')",
    "exact": "strftime({}, '%Y-%m-%dT%H:%M:%S.%g')",
}
# Bounds of text are cut, and those of floating numbers leave NaN out.
INEXACT = {"name", "share"}


def a_row(number: int, day: dt.date | None) -> dict[str, Any]:
    moment = dt.datetime(1969, 12, 31, 12) + dt.timedelta(hours=number, milliseconds=number)  # noqa: DTZ001 - a wall clock
    return {
        "id": None if number % 3 == 0 else number - 5,
        "flag": number > 4,
        "tiny": -number,
        "small": number * 100,
        "price": Decimal(number * 101 - 500).scaleb(-2),
        "wide": Decimal(f"12345678901234567{number}.50"),
        "born": moment.date(),
        "moment": dt.time(1, 2, number, 3000),
        "seen": moment,
        "zoned": moment.replace(tzinfo=dt.UTC),
        "exact": moment,
        "name": f"n{number}",
        "share": number / 4,
        "day": day,
    }


def of_two_files(lake: Ledger, name: str) -> Table:
    """Return a table of two files in two partitions."""
    options = {"ledger.formats": "paimon"}
    schema = Schema.of(TYPES, partition_keys=["day"], options=options)
    table = lake.create_table(f"shop.{name}", schema)
    for day, numbers in ((dt.date(2013, 1, 1), range(1, 6)), (dt.date(2013, 1, 2), range(6, 10))):
        add_rows(table, f"day={day}/a.parquet", [a_row(number, day) for number in numbers])
    return table


def analysed(lake: Ledger) -> Table:
    """Return such a table that was analysed."""
    table = of_two_files(lake, "analysed")
    published = publish_paimon.publish(handle_of(table))
    assert (published.snapshot_id, published.version) == (2, table.state.version)
    return table


def measured(table: Table, column: str) -> tuple[str | None, str | None, int]:
    """Return what DuckDB finds in a column of the files themselves."""
    value = INSIDE.get(column, "{}")
    least, greatest = (value.format(f"{each}({column})") for each in ("min", "max"))
    files = folder_of(table) / "*" / "*.parquet"
    query = (
        f"SELECT ({least})::VARCHAR, ({greatest})::VARCHAR, count(*) - count({column}) "  # noqa: S608 - written here
        f"FROM read_parquet('{files}', hive_partitioning=false)"
    )
    with duckdb.connect() as duck:
        duck.execute("SET TimeZone = 'UTC'")
        ((low, high, nulls),) = duck.execute(query).fetchall()
    return (None, None, nulls) if column in INEXACT else (low, high, nulls)


def test_java_finds_as_many_different_values_as_duckdb(
    java: JavaPaimon, lake: Ledger, spark: SparkSession
) -> None:
    table = of_two_files(lake, "sketched")
    names = {each.id: each.name for each in table.schema.fields}
    analysis = analyze(table, spark=spark)

    publish_paimon.publish(handle_of(table), analysis.distinct)

    files = folder_of(table) / "*" / "*.parquet"
    counted = [names[key] for key in analysis.distinct]
    query = ", ".join(f"count(DISTINCT {each})" for each in counted)
    with duckdb.connect() as duck:
        found = duck.execute(
            f"SELECT {query} FROM read_parquet('{files}', hive_partitioning=false)"  # noqa: S608 - written here
        ).fetchone()
    assert found is not None
    assert java.distinct("sketched") == {
        **dict.fromkeys(TYPES, -1),
        **dict(zip(counted, found, strict=True)),
        # Without bounds, Spark's cost model would take the count to mean that no row is equal.
        "share": -1,
    }
    assert len(counted) > len(TYPES) // 2


def test_javas_statistics_are_what_duckdb_finds_in_the_files(
    java: JavaPaimon, lake: Ledger
) -> None:
    table = analysed(lake)
    columns = ["snapshot_id", "schema_id", "mergedRecordCount", "mergedRecordSize"]

    _, rows = java.rows("analysed$statistics", columns=columns)
    found = java.statistics("analysed")

    size = sum(each.file_size_in_bytes for each in table.at().files)
    assert rows == [f"{{2, 0, 9, {size}}}"]
    assert found == {column: measured(table, column) for column in TYPES}
    columns, all_rows = java.rows("analysed")
    assert (columns, len(all_rows)) == (list(TYPES), 9)
