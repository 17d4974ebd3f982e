"""Iceberg's own Spark runtime reads what was projected, and its metadata tables agree."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from attrs import frozen
from py4j.protocol import Py4JError  # type: ignore[import-untyped]  # ships none
from pyarrow import parquet
from pyspark.errors import AnalysisException, PySparkException

import ledger
from ledger import AddColumn, Ledger, Schema, SchemaChange, SetOption, Table, UpdateColumnType
from ledger.model import read_type, type_to_wire
from ledger.table_handle import handle_of
from projections.iceberg import Names
from projections.iceberg.planned import LIMITS
from tests.readers.book import Book
from tests.readers.iceberg_life import CASES, Case, life
from tests.readers.iceberg_runtime import catalog_of
from tests.readers.lakehouse import add_rows, write_rows
from tests.readers.typed_rows import VALUES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    lake = ledger.open(str(tmp_path_factory.mktemp("iceberg")))
    lake.create_database("shop")
    return lake


@pytest.fixture(scope="module", params=[CASES[0], CASES[3], CASES[4], CASES[5]], ids=str)
def book(lake: Ledger, iceberg: SparkSession, request: pytest.FixtureRequest) -> Book:
    del iceberg
    case: Case = request.param
    return life(lake, case)


def _select(book: Book, suffix: str = "") -> str:
    table = book.table
    name = f"{catalog_of(handle_of(table).ledger_url)}.`shop.db`.{table.identifier.name}"
    return f"SELECT * FROM {name}{suffix}"  # noqa: S608 - written here


def _rows(session: SparkSession, query: str) -> list[dict[str, Any]]:
    return [each.asDict(recursive=True) for each in session.sql(query).collect()]


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: int(row["id"]))


def _moment(millis: int) -> dt.datetime:
    return dt.datetime.fromtimestamp(millis / 1000, dt.UTC).replace(tzinfo=None)


def _reachable(book: Book) -> list[int]:
    state = book.table.state
    return [each for each in range(1, state.last_snapshot_id + 1) if state.reachable(each)]


def test_the_newest_snapshot_reads(iceberg: SparkSession, book: Book) -> None:
    assert _sorted(_rows(iceberg, _select(book))) == book.expected()


def test_every_snapshot_reads_with_the_schema_of_its_time(
    iceberg: SparkSession, book: Book
) -> None:
    for number in _reachable(book):
        found = _rows(iceberg, _select(book, f" VERSION AS OF {number}"))
        assert _sorted(found) == book.expected(number), number


def test_tags_and_times_lead_to_their_snapshot(iceberg: SparkSession, book: Book) -> None:
    for tag, number in book.tags.items():
        found = _rows(iceberg, _select(book, f" VERSION AS OF '{tag}'"))
        assert _sorted(found) == book.expected(number)
    for number in (5, book.last):
        snapshot = book.table.at(snapshot=number).snapshot
        assert snapshot is not None
        moment = _moment(snapshot.time_millis)
        found = _rows(iceberg, _select(book, f" TIMESTAMP AS OF '{moment}'"))
        assert _sorted(found) == book.expected(number)


def test_a_filter_reads_the_partition(iceberg: SparkSession, book: Book) -> None:
    found = _rows(iceberg, _select(book, " WHERE day = DATE '2013-01-02'"))
    day = dt.date(2013, 1, 2)
    assert _sorted(found) == [row for row in book.expected() if row["day"] == day]


def test_snapshots_and_history_are_the_ledgers(iceberg: SparkSession, book: Book) -> None:
    found = {each["snapshot_id"]: each for each in _rows(iceberg, _select(book, ".snapshots"))}
    assert sorted(found) == _reachable(book)
    for number, each in found.items():
        snapshot = book.table.at(snapshot=number).snapshot
        assert snapshot is not None
        assert each["committed_at"] == _moment(snapshot.time_millis)
        assert each["parent_id"] == (number - 1 or None)
        assert int(each["summary"]["total-records"]) == snapshot.total_record_count
    history = [each["snapshot_id"] for each in _rows(iceberg, _select(book, ".history"))]
    assert history == list(range(book.table.state.earliest_snapshot_id, book.last + 1))


def test_refs_are_the_tags_and_main(iceberg: SparkSession, book: Book) -> None:
    found = {
        e["name"]: (e["type"], e["snapshot_id"]) for e in _rows(iceberg, _select(book, ".refs"))
    }
    tags = {name: ("TAG", number) for name, number in book.tags.items()}
    assert found == tags | {"main": ("BRANCH", book.last)}


def test_the_metadata_log_has_the_versions_since_it_began(
    iceberg: SparkSession, book: Book
) -> None:
    state, names = book.table.state, Names(book.table.state.table_id)
    found = _rows(iceberg, _select(book, ".metadata_log_entries"))
    first = state.version + 1 - len(found)
    files = [
        f"{book.table.location}/{names.metadata(each)}" for each in range(first, state.version)
    ]
    assert [each["file"] for each in found[:-1]] == files
    assert all(Path(each.removeprefix("file://")).exists() for each in files)
    assert found[-1]["file"].endswith(names.hadoop(state.version))
    for version, each in enumerate(found, first):
        then = book.table.at(version=version).state
        assert each["timestamp"] == _moment(then.effective_millis)


def test_files_and_partitions_are_the_live_ones(iceberg: SparkSession, book: Book) -> None:
    live = {f"{book.table.location}/{each.path}": each for each in book.table.at().files}
    found = _rows(iceberg, _select(book, ".files"))
    assert Counter(each["file_path"] for each in found) == Counter(list(live))
    for each in found:
        change = live[each["file_path"]]
        assert each["record_count"] == change.record_count
        assert each["spec_id"] == change.spec_id
        assert str(each["partition"]["day"]) == change.partition[0]
    partitions = _rows(iceberg, _select(book, ".partitions"))
    counted: Counter[str] = Counter()
    for change in live.values():
        counted[str(change.partition[0])] += change.record_count
    assert {str(e["partition"]["day"]): e["record_count"] for e in partitions} == counted


def test_row_ids_are_unique_and_stay(iceberg: SparkSession, book: Book) -> None:
    if book.table.state.schema.options["format-version"] != "3":
        pytest.skip("rows have ids from version 3 on")
    ids = {
        number: {
            each["id"]: each["_row_id"]
            for each in _rows(
                iceberg,
                _select(book, f" VERSION AS OF {number}").replace("*", "id, _row_id"),
            )
        }
        for number in (book.last - 1, book.last)
    }
    for number, found in ids.items():
        assert len(set(found.values())) == len(book.expected(number))
        assert None not in found.values()
    assert ids[book.last].items() <= ids[book.last - 1].items()


def test_names_that_differ_by_case_alone_are_distinct_only_in_case_sensitive_spark(
    iceberg: SparkSession, lake: Ledger
) -> None:
    assert any("spark.sql.caseSensitive" in each.says for each in LIMITS)
    options = {"ledger.formats": "iceberg"}
    table = lake.create_table("shop.alike", Schema.of({"a": "INT", "A": "INT"}, options=options))
    add_rows(table, "1.parquet", [{"a": 1, "A": 2}])
    table.project("iceberg")
    query = f"SELECT a, A FROM {catalog_of(lake.url)}.`shop.db`.alike"  # noqa: S608 - written here
    with pytest.raises(AnalysisException, match="AMBIGUOUS_REFERENCE"):
        iceberg.sql(query).collect()
    iceberg.conf.set("spark.sql.caseSensitive", "true")
    try:
        assert _rows(iceberg, query) == [{"a": 1, "A": 2}]
    finally:
        iceberg.conf.unset("spark.sql.caseSensitive")


SHAPES: dict[str, tuple[tuple[str, ...], Callable[[Any], Any]]] = {
    "{}": ((), lambda value: value),
    "ROW<x {}>": (("x",), lambda value: {"x": value}),
    "ARRAY<{}>": (("element",), lambda value: [value]),
    "MAP<STRING NOT NULL, {}>": (("value",), lambda value: [("k", value)]),
}
"""Types around a type: the path to it, and a value from one of the type."""


@frozen
class Retyped:
    """A column whose types follow one another after its first file was written."""

    name: str
    shape: str
    types: tuple[str, ...]


def retyped_columns() -> list[Retyped]:
    """Return columns for every change of type that the ledger allows, and every two in a row.

    Spark cannot read TIME at all.
    """
    atoms = [each for each in VALUES if not each.startswith("TIME(")]
    lake = ledger.open("memory://retyped")
    lake.create_database("shop")
    columns = {f"c{number}": each for number, each in enumerate(atoms)}
    schema = Schema.of(columns, options={"ledger.formats": "iceberg"})
    table = lake.create_table("shop.t", schema)
    pairs = [
        (old, new)
        for name, old in columns.items()
        for new in atoms
        if old != new and not table.plan([UpdateColumnType((name,), new)]).refusals
    ]
    found = [
        *product(SHAPES, pairs),
        *(("{}", (old, new, newest)) for old, new in pairs for by, newest in pairs if by == new),
        *(("{}", (each,)) for each in atoms),
    ]
    return [Retyped(f"c{number}", *each) for number, each in enumerate(found)]


def test_a_plan_warns_of_the_changes_of_types_that_spark_misreads_and_only_of_those(
    iceberg: SparkSession, lake: Ledger
) -> None:
    columns = retyped_columns()
    options = {"ledger.formats": "iceberg"}
    table = lake.create_table("shop.retyped", Schema.of({"id": "INT"}, options=options))
    first = [(each.name, read_type(each.shape.format(each.types[0]))) for each in columns]
    changes: list[SchemaChange] = [AddColumn((name,), type_to_wire(kind)) for name, kind in first]
    warned = _columns_warned_of_for_spark(table, changes)
    table.alter(changes)
    rows = [
        {"id": row, **{e.name: SHAPES[e.shape][1](VALUES[e.types[0]][row]) for e in columns}}
        for row in (0, 1)
    ]
    rows.append({"id": 2, **{each.name: SHAPES[each.shape][1](None) for each in columns}})
    add_rows(table, "dictionary.parquet", rows)
    plain = write_rows(table, "plain.parquet", rows)
    parquet.write_table(parquet.read_table(plain), plain, use_dictionary=False)
    table.add_files([str(plain)])
    for step in (1, 2):
        changes = [
            UpdateColumnType(
                (each.name, *SHAPES[each.shape][0]), each.types[step], keep_nullability=True
            )
            for each in columns
            if len(each.types) > step
        ]
        warned |= _columns_warned_of_for_spark(table, changes)
        table.alter(changes)
    table.project("iceberg")

    def read(names: Iterable[str]) -> list[dict[str, Any]]:
        name = f"{catalog_of(lake.url)}.`shop.db`.retyped"
        query = f"SELECT {', '.join(names)} FROM {name} ORDER BY id"  # noqa: S608 - written here
        found: list[dict[str, Any]] = iceberg.sql(query).toArrow().to_pylist()
        return found

    expected = [row for row in rows for _ in range(2)]
    right = ["id", *(each.name for each in columns if each.name not in warned)]
    assert read(right) == [{name: row[name] for name in right} for row in expected]
    wrong = [each for each in columns if each.name in warned]
    misread = [each.name for each in wrong if each.types[0].startswith("TIMESTAMP")]
    found = read(["id", *misread])
    assert [e for e in misread if [row[e] for row in found] == [row[e] for row in expected]] == []
    failing = [each.name for each in wrong if each.name not in misread]
    assert misread
    assert failing
    for name in failing:
        with pytest.raises((PySparkException, Py4JError), match="BigIntVector cannot be cast to"):
            read([name])

    table.alter([SetOption("read.parquet.vectorization.enabled", "false")])
    table.project("iceberg")
    assert read(["id", *(each.name for each in columns)]) == expected


def _columns_warned_of_for_spark(table: Table, changes: list[SchemaChange]) -> set[str]:
    places = [
        each.partition(": Spark with Iceberg")[0].removeprefix("columns ").removeprefix("column ")
        for each in table.plan(changes).warnings
        if ": Spark with Iceberg" in each
    ]
    return {name for each in places for name in each.split(", ")}


def test_a_branch_reads_by_its_name_until_main_has_what_it_shows(
    iceberg: SparkSession, lake: Ledger
) -> None:
    schema = Schema.of({"id": "INT", "name": "STRING"}, options={"ledger.formats": "iceberg"})
    table = lake.create_table("shop.audited", schema)
    old, new, late = ({"id": number, "name": f"of {number}"} for number in range(3))
    add_rows(table, "0.parquet", [old])
    audit = table.branch("audit")
    audit.create()
    audit.add_files(str(write_rows(table, "1.parquet", [new])))
    add_rows(table, "2.parquet", [late])
    table.project("iceberg")
    name = f"{catalog_of(lake.url)}.`shop.db`.audited"

    def rows(suffix: str = "") -> list[dict[str, Any]]:
        return _sorted(_rows(iceberg, f"SELECT * FROM {name}{suffix}"))  # noqa: S608 - ours

    assert rows() == [old, late]
    assert rows(" VERSION AS OF 'audit'") == rows(".branch_audit") == [old, new]
    refs = {each["name"]: each["snapshot_id"] for each in _rows(iceberg, _refs(name))}
    assert refs == {"main": 2, "audit": 1_000_000_000_001}
    audit.delete_files("0.parquet")
    table.project("iceberg")
    assert rows(" VERSION AS OF 'audit'") == [new]
    audit.reset()
    audit.delete_files("2.parquet")
    audit.fast_forward()
    audit.add_files(str(write_rows(table, "3.parquet", [new])))
    table.project("iceberg")
    assert rows() == [old]
    assert rows(" VERSION AS OF 'audit'") == [old, new]
    audit.delete()
    table.project("iceberg")
    assert {each["name"] for each in _rows(iceberg, _refs(name))} == {"main"}
    assert rows() == [old]


def _refs(name: str) -> str:
    return f"SELECT * FROM {name}.refs"  # noqa: S608 - written here
