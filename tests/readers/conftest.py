"""The lake that all readers read: written and projected once a run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

import ledger
from ledger import AddColumn, Ledger, RenameColumn, Schema
from ledger.table_handle import handle_of
from projections.paimon import PAIMON
from tests.readers.book import Book, DataFile
from tests.readers.evolutions import EVOLUTIONS, Evolution
from tests.readers.iceberg_runtime import hadoop_catalog
from tests.readers.java_core import JavaPaimon, PaimonUnavailableError
from tests.readers.partitions import LAYOUTS, Layout

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DAYS = {"2013-01-01": "DATE '2013-01-01'", "2013-01-02": "DATE '2013-01-02'"}


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    lake = ledger.open(str(tmp_path_factory.mktemp("lake")))
    lake.create_database("shop")
    return lake


@pytest.fixture(scope="module")
def iceberg(spark: SparkSession, lake: Ledger) -> Iterator[SparkSession]:
    """A session with an Iceberg catalog on the lake that the module reads."""
    with hadoop_catalog(spark, lake.url) as session:
        yield session


@pytest.fixture(scope="session")
def java(spark: SparkSession, lake: Ledger) -> Iterator[JavaPaimon]:
    """Paimon's Java core, in the JVM that the run has anyway."""
    try:
        paimon = JavaPaimon.start(spark, lake.url)
    except PaimonUnavailableError as error:
        pytest.skip(str(error))
    yield paimon
    paimon.stop()


@pytest.fixture(scope="session")
def evolved(lake: Ledger) -> dict[str, Book]:
    """Tables whose schemas changed, by the evolution's name, with and without field ids."""
    return {
        name: _evolved(lake, evolution, name, has_ids=has_ids)
        for evolution in EVOLUTIONS.values()
        for name, has_ids in ((evolution.name, True), (f"{evolution.name}_no_ids", False))
    }


def _evolved(lake: Ledger, evolution: Evolution, name: str, *, has_ids: bool) -> Book:
    book = Book(lake.create_table(f"shop.{name}", evolution.schema), has_ids=has_ids)
    book.add()
    for step in evolution.steps:
        book.alter(step.changes, step.lens)
        book.add()
    assert {each.field_ids for each in book.table.at().files} == {has_ids}
    PAIMON.project(handle_of(book.table))
    return book


@pytest.fixture(scope="session")
def partitioned(lake: Ledger) -> dict[str, Book]:
    """Tables with two files in each of their partitions, by the layout's name."""
    return {layout.name: _partitioned(lake, layout) for layout in LAYOUTS.values()}


def _partitioned(lake: Ledger, layout: Layout) -> Book:
    schema = Schema.of(
        {"id": "BIGINT NOT NULL", "name": "STRING", **layout.keys},
        partition_keys=list(layout.keys),
        options={"partition.legacy-name": str(layout.legacy).lower()},
    )
    book = Book(lake.create_table(f"shop.{layout.name}", schema))
    for values in layout.partitions():
        folder = "/".join(f"{key}={value.folder}" for key, value in values.items())
        partition = {key: value.sql for key, value in values.items()}
        book.add(folder, partition)
        # Where Paimon itself would look for it, unless it names the partition otherwise.
        book.add(f"{folder}/bucket-0", partition)
    PAIMON.project(handle_of(book.table))
    return book


@pytest.fixture(scope="session")
def lived(lake: Ledger) -> dict[str, Book]:
    """The same life twice: projected at its end, and after every commit."""
    return {
        "life_at_once": _lived(lake, "life_at_once", follows=False),
        "life_step_by_step": _lived(lake, "life_step_by_step", follows=True),
    }


def _lived(lake: Ledger, name: str, *, follows: bool) -> Book:
    columns = {"id": "BIGINT NOT NULL", "name": "STRING", "day": "DATE"}
    # What expired is refused at once.
    options = {"ledger.reader-grace": "0"}
    schema = Schema.of(columns, partition_keys=["day"], options=options)
    book = Book(lake.create_table(f"shop.{name}", schema), follows=follows)
    first, second = _in_day(book, "2013-01-01"), _in_day(book, "2013-01-02")
    book.tag("moved", 2)
    book.alter([AddColumn(("qty",), "INT")], "SELECT *, NULL::INT AS qty FROM {rows}")
    _in_day(book, "2013-01-01")
    book.delete(first)
    book.overwrite(_written(book, "2013-01-02"), [second], day="2013-01-02")
    book.rollback(2)
    _in_day(book, "2013-01-02")
    book.tag("kept", 3)
    book.tag("passing", 1)
    book.tag("moved", 7)
    book.expire(before=5)
    book.alter([RenameColumn(("name",), "title")], "SELECT * RENAME (name AS title) FROM {rows}")
    _in_day(book, "2013-01-01")
    book.untag("passing")
    book.rollback_to_tag("kept")
    _in_day(book, "2013-01-02")
    PAIMON.project(handle_of(book.table))
    return book


def _in_day(book: Book, day: str) -> DataFile:
    return book.add(f"day={day}", {"day": _DAYS[day]})


def _written(book: Book, day: str) -> DataFile:
    return book.write(f"day={day}", {"day": _DAYS[day]})


@pytest.fixture(scope="session")
def long(lake: Ledger) -> Book:
    """A table of 80 snapshots: more than one tier of manifests, removals and a rollback in it."""
    schema = Schema.of({"id": "BIGINT NOT NULL", "name": "STRING"})
    book = Book(lake.create_table("shop.long", schema))
    for number in range(1, 81):
        if number % 10 == 0:
            book.delete(book.live[number // 20], book.live[-1])
        elif number == 73:
            book.rollback(70)
        else:
            book.add()
    PAIMON.project(handle_of(book.table))
    return book
