"""The representations of handles, instants and plans, and the sources of a schema."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.types import LongType, NestedField, StringType

import ledger
from ledger import AddColumn, FileChange, InvalidInputError, Table
from ledger.model import format_type
from tests.lakes import lake_on, memory


@pytest.fixture
def table() -> Table:
    lake = lake_on(memory())
    lake.create_database("shop")
    return lake.create_table("shop.orders", {"id": "BIGINT", "<b>": "STRING"})


def test_nothing_shows_a_page_of_state(table: Table) -> None:
    appended = table.alter([AddColumn(("c",), "INT")])
    planned = table.plan([AddColumn(("d",), "INT")])
    shown = [table, table.at(), appended, planned, table.diff(0), table.history()]

    assert all(len(repr(each)) < 600 for each in shown)
    assert repr(planned) == (
        "ChangePlan(['will add column d INT (id 3)']: paimon allows it, iceberg allows it)"
    )
    assert repr(table.plan_undo(1)) == "Undoing(['will drop column c'])"
    assert repr(table.at().schema) == "Schema(1: id BIGINT, <b> STRING, c INT)"
    assert repr(table.at()) == "TableAt(version=1, columns=('id', '<b>', 'c'))"
    assert repr(lake_on(memory())).startswith("Ledger('memory://")


def test_what_happened_in_the_catalog_is_shown_in_the_same_words_everywhere() -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    (created,) = lake.entries(last=1)

    assert repr(created).endswith("['created database shop'])")
    assert "<td>created database shop</td>" in created._repr_html_()


def test_what_is_long_shows_its_beginning_and_how_much_there_is(table: Table) -> None:
    many = [AddColumn((f"c{number}",), "INT") for number in range(100)]
    planned = table.plan(many)
    table.alter(many, author="ann")
    names = [f"{each}.parquet" for each in range(100)]
    table.append([FileChange(path=each, record_count=10, file_size_in_bytes=9) for each in names])
    (step, *_) = table.replay(first=1)
    shown = [
        planned,
        table.plan_undo(1),
        table.plan_restore(0),
        table.diff(0),
        table.blame(),
        table.blame("c7")[0],
        next(table.entries(author="ann")),
        table.at().plan("id > 5"),
        step,
        table.update_schema().add_column("d", "INT"),
    ]

    assert all(len(repr(each)) < 600 for each in shown)
    assert [repr(each)[:40] for each in shown if "more]" in repr(each)] == [
        "ChangePlan(['will add column c0 INT (id ",
        "Undoing(['will drop column c0', 'will dr",
        "Undoing(['will drop column c0', 'will dr",
        "TableDiff(versions 0 to 2: [('field 2', ",
        "Blames(['column id', 'column `<b>`', 'co",
        "Entry(shop.orders version 1 by ann: ['ad",
        "Step(version 1: ['added column c0 INT (i",
    ]
    assert repr(table.at().plan("id > 5")) == "FilePlan(100 of 100 files, 1000 rows)"


def test_notebooks_get_tables_in_which_all_text_is_escaped(table: Table) -> None:
    plan = table.plan([AddColumn(("<i>",), "INT")])
    table.alter([AddColumn(("<i>c",), "INT")], author="<b>")
    table.append([FileChange(path="a.parquet", record_count=7, file_size_in_bytes=9)])
    began = table.branch("audit")
    assert "does not exist yet" in began._repr_html_()
    began.create()
    assert "<td>rows</td><td>7</td>" in began._repr_html_()
    for each in (
        table,
        table.at(),
        table.at().schema,
        plan,
        table.diff(0),
        table.history(),
        table.blame(),
        table.plan_undo(1),
        table.at().plan("id > 5"),
        table.blame("<i>c")[0],
        next(table.entries(author="<b>")),
        table.branch("<b>"),
        began,
    ):
        page: str = each._repr_html_()
        assert page.startswith("<table>")
        assert "<b>" not in page
        assert "<i>" not in page
    assert "&lt;b&gt;" in table.at()._repr_html_()


def test_the_tables_of_all_databases_are_named_in_full() -> None:
    lake = lake_on(memory())
    for name in ("b", "a"):
        lake.create_database(name)
        lake.create_table(f"{name}.t", {"id": "INT"})

    assert lake.tables() == ["a.t", "b.t"]
    assert lake.tables("a") == ["t"]
    assert "<td>b</td><td>t</td>" in lake._repr_html_()


@pytest.mark.parametrize("rows", [pd.DataFrame({"a": [1]}), pl.DataFrame({"a": [1]})])
def test_rows_are_no_paths_by_the_names_of_their_columns(table: Table, rows: Any) -> None:
    with pytest.raises(InvalidInputError, match="is rows, and no paths; write it as Parquet"):
        table.add_files(rows)


def test_the_version_is_the_installed_one() -> None:
    from importlib.metadata import version

    assert ledger.__version__ == version("lakeledger")


GIVEN: dict[str, Any] = {
    "names": {"id": "BIGINT", "name": "STRING"},
    "json": {
        "fields": [
            {"id": 0, "name": "id", "type": "BIGINT"},
            {"id": 1, "name": "name", "type": "STRING"},
        ]
    },
    "arrow": pa.schema([("id", pa.int64()), ("name", pa.string())]),
    "arrow rows": pa.table({"id": [1], "name": ["a"]}),
    "pandas": pd.DataFrame({"id": [1], "name": ["a"]}),
    "polars": pl.DataFrame({"id": [1], "name": ["a"]}),
    "pyiceberg": IcebergSchema(
        NestedField(7, "id", LongType(), required=False),
        NestedField(9, "name", StringType(), required=False),
    ),
}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_a_schema_is_taken_from_what_people_have_at_hand(given: Any) -> None:
    lake = lake_on(memory())
    lake.create_database("db")

    schema = lake.create_table("db.t", given).at().schema

    found = [(each.id, each.name, format_type(each.type)) for each in schema.fields]
    assert found == [(0, "id", "BIGINT"), (1, "name", "STRING")]


@pytest.mark.parametrize("given", [None, "id BIGINT", 7, [("id", "BIGINT")], object()])
def test_what_is_no_schema_is_refused_by_name(given: Any) -> None:
    lake = lake_on(memory())
    lake.create_database("db")

    with pytest.raises(InvalidInputError, match="^schema="):
        lake.create_table("db.t", given)


@pytest.mark.parametrize("zone", [None, "Europe/Oslo"])
def test_times_of_a_pandas_frame_become_microseconds_and_finer_ones_are_refused(
    tmp_path: Path, zone: str | None
) -> None:
    lake = ledger.open(tmp_path)
    lake.create_database("db")
    times = pd.to_datetime(["2026-01-01T12:34:56.123456", None]).tz_localize(zone)
    frame = pd.DataFrame({"at": times.astype(f"datetime64[ns, {zone}]" if zone else "M8[ns]")})

    table = lake.create_table("db.t", frame, append=True)

    kind = "TIMESTAMP(6)" if zone is None else "TIMESTAMP(6) WITH LOCAL TIME ZONE"
    assert format_type(table.schema.fields[0].type) == kind
    read = table.to_pandas()["at"]
    assert read.equals(frame["at"].astype(read.dtype))
    with pytest.raises(InvalidInputError, match=r"column at"):
        table.append(frame + pd.Timedelta(1, "ns"))


def test_nanoseconds_of_arrow_are_refused_with_the_ways_out() -> None:
    lake = lake_on(memory())
    lake.create_database("db")
    frame = pa.schema([("at", pa.timestamp("ns"))])

    with pytest.raises(
        ledger.FormatError, match=r"set format-version=3, or take TIMESTAMP\(6\), or leave"
    ):
        lake.create_table("db.t", frame)
