"""The example of Iceberg's page on evolution: months until 2008, days from 2009 on, one table."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ledger
from ledger import Ledger, Schema, Table
from ledger.planning import TRUE, SpecCounts
from ledger.transforms import day, month
from tests.readers.lakehouse import Rows, add_rows, by_id, duck_rows, folder_of

WHERE = "ts >= TIMESTAMP '2008-12-14 00:00:00' AND ts < TIMESTAMP '2009-01-03 00:00:00'"
MONTHS = ("2008-10", "2008-11", "2008-12")
DAYS = ("2009-01-01", "2009-01-02", "2009-01-03")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    lake = ledger.open(str(tmp_path_factory.mktemp("evolution")))
    lake.create_database("shop")
    return lake


@pytest.fixture(scope="module")
def visits(lake: Ledger) -> Table:
    columns = {"id": "BIGINT NOT NULL", "ts": "TIMESTAMP(6)", "page": "STRING"}
    # A layout of months and days is nothing that Paimon has.
    schema = Schema.of(columns, options={"ledger.formats": "iceberg"})
    table = lake.create_table("shop.visits", schema)
    table.update_spec().add_field(month("ts")).commit()
    for each in MONTHS:
        add_rows(table, f"data/ts_month={each}/visits.parquet", list(_visits(each, days=28)))
    table.update_spec().remove_field(month("ts")).add_field(day("ts")).commit()
    for each in DAYS:
        add_rows(table, f"data/ts_day={each}/visits.parquet", list(_visits(each, days=1)))
    return table


def _visits(first: str, *, days: int) -> Iterator[dict[str, Any]]:
    start = dt.datetime.fromisoformat(first if len(first) > len("2008-10") else f"{first}-01")
    for number in range(days * 2):
        ts = start + dt.timedelta(hours=12 * number, minutes=number, microseconds=1)
        yield {"id": int(f"{ts:%y%m%d%H}"), "ts": ts, "page": f"page {number % 3}"}


def _paths(table: Table) -> list[Path]:
    return sorted(folder_of(table).glob("data/**/*.parquet"))


def _read(table: Table, where: Any) -> Rows:
    return by_id(table.at().to_arrow(where).to_pylist())


def test_both_layouts_are_in_one_table(visits: Table) -> None:
    old, new = visits.state.specs[1:]
    assert [each.transform for each in old.fields] == ["month"]
    assert [each.transform for each in new.fields] == ["day"]
    assert {each.spec_id: each.partition for each in visits.at().files} == {
        old.spec_id: (12 * (2008 - 1970) + 11,),
        new.spec_id: ("2009-01-03",),
    }


def test_each_layout_plans_with_its_own_filter(visits: Table) -> None:
    plan = visits.at().plan(WHERE)
    # The unpartitioned layout, that of months, and that of days: one filter, three projections.
    assert plan.by_spec == {
        0: "true",
        1: "ts_month >= 2008-12 and ts_month <= 2009-01",
        2: "ts_day >= 2008-12-14 and ts_day <= 2009-01-02",
    }
    assert plan.counts == {
        0: SpecCounts(),
        1: SpecCounts(total=3, kept=1, by_partition=2),
        2: SpecCounts(total=3, kept=2, by_partition=1),
    }


def test_the_files_that_are_left_out_say_why(visits: Table) -> None:
    reasons = {each.file.path: each.reason.text for each in visits.at().plan(WHERE).pruned()}
    assert reasons == {
        "data/ts_month=2008-10/visits.parquet": "partition ts_month = 2008-10 is outside "
        "ts_month >= 2008-12",
        "data/ts_month=2008-11/visits.parquet": "partition ts_month = 2008-11 is outside "
        "ts_month >= 2008-12",
        "data/ts_day=2009-01-03/visits.parquet": "partition ts_day = 2009-01-03 is outside "
        "ts_day <= 2009-01-02",
    }


def test_a_day_that_matches_whole_leaves_nothing_to_filter(visits: Table) -> None:
    residuals = {
        each.file.path.split("/")[1]: each.residual for each in visits.at().plan(WHERE).files
    }
    assert residuals["ts_day=2009-01-01"] == TRUE
    assert residuals["ts_month=2008-12"] != TRUE


@pytest.mark.parametrize(
    "where",
    [
        WHERE,
        [("ts", ">=", "2008-12-14T00:00:00"), ("ts", "<", "2009-01-03T00:00:00")],
        [
            [("ts", ">=", dt.datetime(2008, 12, 14)), ("ts", "<", dt.datetime(2009, 1, 3))],  # noqa: DTZ001 - wall clocks
        ],
    ],
    ids=["sql", "list", "list of lists"],
)
def test_the_same_filter_finds_the_rows_of_both_layouts(visits: Table, where: Any) -> None:
    rows = duck_rows(_paths(visits), WHERE)
    assert {each["ts"].year for each in rows} == {2008, 2009}
    assert _read(visits, where) == rows


def test_pyiceberg_reads_no_more_files_than_the_plan_names(visits: Table) -> None:
    at = visits.at()
    planned = {f"{visits.location}/{each.file.path}" for each in at.plan(WHERE).files}
    assert {each.file.file_path for each in at.scan(WHERE).plan_files()} == planned
    assert len(planned) == 3


def test_the_filter_means_the_same_before_and_after_the_layout_evolved(lake: Ledger) -> None:
    columns = {"id": "BIGINT NOT NULL", "ts": "TIMESTAMP(6)", "page": "STRING"}
    schema = Schema.of(columns, options={"ledger.formats": "iceberg"})
    table = lake.create_table("shop.steps", schema)
    for term in (None, month("ts"), day("ts")):
        if term is not None:
            table.update_spec().add_field(term).commit()
        for each in ("2008-12-31", "2009-01-01", "2009-01-05"):
            name = f"data/{each}-{len(table.at().files)}.parquet"
            add_rows(table, name, list(_visits(each, days=1)))
        assert _read(table, WHERE) == duck_rows(_paths(table), WHERE)
    assert len({each.spec_id for each in table.at().files}) == 3
    plan = table.at().plan(WHERE)
    assert [plan.counts[each].kept for each in (0, 1, 2)] == [2, 2, 2]


def test_a_layout_evolves_without_rewriting_a_file(visits: Table) -> None:
    before = {each.path: each for each in visits.at(version=4).files}
    now = {each.path: each for each in visits.at().files}
    assert len(before) == 3
    assert {path: now[path] for path in before} == before
