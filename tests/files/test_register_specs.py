"""Registering files under specs that are more than folders named after columns."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import FileChange, InvalidChangeError, Schema, Table
from ledger.files import ColumnFacts
from ledger.files.partition_values import UnknownValueReason, single_result
from ledger.model import decode_value, transform_of
from ledger.model import types as t
from ledger.transforms import Term, bucket, day, hour, identity, month, truncate, year
from tests.files.building import written
from tests.lakes import lake_on, memory
from tests.thorough import examples

COLUMNS = {
    "id": "BIGINT",
    "ts": "TIMESTAMP(6)",
    "at": "TIMESTAMP_LTZ(6)",
    "due": "DATE",
    "kind": "STRING",
    "price": "DECIMAL(9, 2)",
    "rate": "DOUBLE",
    "raw": "BYTES",
    "flag": "BOOLEAN",
}
MOMENT = datetime(2017, 12, 1, 10, 12, 55)  # noqa: DTZ001 - of a TIMESTAMP
ROW: dict[str, Any] = {
    "id": 34,
    "ts": MOMENT,
    "at": MOMENT.replace(tzinfo=UTC),
    "due": date(2017, 11, 16),
    "kind": "iceberg",
    "price": Decimal("-10.65"),
    "rate": 1.5,
    "raw": b"\x00\x01",
    "flag": True,
}


def rows(*changes: dict[str, Any], without: tuple[str, ...] = ()) -> pa.Table:
    schema = Schema.of(COLUMNS).to_arrow()
    kept = pa.schema([each for each in schema if each.name not in without])
    return pa.Table.from_pylist([{**ROW, **each} for each in changes], schema=kept)


def table_by(*terms: Term) -> Table:
    lake = lake_on(memory())
    lake.create_database("shop")
    schema = Schema.of(COLUMNS, options={"ledger.formats": "iceberg"})
    table = lake.create_table("shop.t", schema)
    update = table.update_spec()
    for term in terms:
        update = update.add_field(term)
    update.commit()
    return table


def registered(table: Table, path: Path, content: pa.Table, **options: Any) -> FileChange:
    (found,) = table.data_files([written(path, content, **options)])
    return found


@pytest.mark.parametrize(
    ("term", "value"),
    [
        (identity("id"), 34),
        (identity("ts"), "2017-12-01T10:12:55"),
        (identity("at"), "2017-12-01T10:12:55"),
        (identity("due"), "2017-11-16"),
        (identity("kind"), "iceberg"),
        (identity("price"), "-10.65"),
        (identity("raw"), "0001"),
        (identity("flag"), True),
        (bucket("id", 16), 3),
        (bucket("kind", 16), 9),
        (bucket("due", 10), 6),
        (truncate("kind", 3), "ice"),
        (truncate("price", 50), "-11.00"),
        (truncate("id", 10), 30),
        (year("ts"), 47),
        (month("due"), 574),
        (day("at"), "2017-12-01"),
        (hour("at"), 420034),
    ],
)
def test_a_files_own_statistics_say_its_partition(tmp_path: Path, term: Term, value: Any) -> None:
    table = table_by(term)

    found = registered(table, tmp_path / "x.parquet", rows({}, {}))

    assert (found.partition, found.spec_id) == ((value,), table.state.default_spec_id)
    table.append([found])
    assert table.at().files == (found,)


def test_rows_that_differ_may_have_one_result(tmp_path: Path) -> None:
    table = table_by(day("ts"), truncate("kind", 3), truncate("id", 10))
    early = MOMENT.replace(hour=0)
    content = rows({"id": 31, "kind": "ice"}, {"id": 39, "kind": "iced", "ts": early})

    found = registered(table, tmp_path / "x.parquet", content)

    assert found.partition == ("2017-12-01", "ice", 30)


@pytest.mark.parametrize("term", [identity("id"), bucket("id", 4), truncate("id", 2)])
def test_a_column_of_nulls_has_the_partition_null(tmp_path: Path, term: Term) -> None:
    found = registered(table_by(term), tmp_path / "x.parquet", rows({"id": None}, {"id": None}))

    assert found.partition == (None,)


@pytest.mark.parametrize(
    ("term", "changes"),
    [
        (identity("id"), ({"id": 1}, {"id": 2})),
        (day("ts"), ({}, {"ts": MOMENT.replace(day=2)})),
        (day("ts"), ({}, {"ts": None})),
        (bucket("id", 4), ({}, {"id": None})),
    ],
)
def test_a_file_of_several_partitions_is_refused(
    tmp_path: Path, term: Term, changes: tuple[dict[str, Any], ...]
) -> None:
    table = table_by(term)
    name = table.state.spec.fields[0].name
    asked = rf"file .*x\.parquet: its rows have several values of partition field {name} .*; split"

    with pytest.raises(InvalidChangeError, match=asked):
        registered(table, tmp_path / "x.parquet", rows(*changes))


@pytest.mark.parametrize(
    ("term", "content", "options"),
    [
        (bucket("id", 4), rows({"id": 1}, {"id": 2}), {}),
        (identity("rate"), rows({}, {}), {}),
        (identity("kind"), rows({"kind": "a"}, {"kind": "b"}), {}),
        (day("ts"), rows({}, {}), {"write_statistics": False}),
        (identity("id"), rows({}, without=("id",)), {}),
        (identity("id"), rows(), {}),
    ],
)
def test_what_nothing_says_is_refused_with_the_ways_out(
    tmp_path: Path, term: Term, content: pa.Table, options: dict[str, Any]
) -> None:
    with pytest.raises(
        InvalidChangeError, match="neither its statistics nor a folder .*partition="
    ):
        registered(table_by(term), tmp_path / "x.parquet", content, **options)


@pytest.mark.parametrize(
    ("term", "folder", "value"),
    [
        (day("ts"), "ts_day=2017-12-01", "2017-12-01"),
        (hour("ts"), "ts_hour=2017-12-01-10", 420034),
        (month("ts"), "ts_month=2017-12", 575),
        (year("ts"), "ts_year=2017", 47),
        (bucket("id", 16), "id_bucket_16=3", 3),
        (truncate("kind", 3), "kind_trunc_3=ice", "ice"),
        (day("ts"), "ts_day=null", None),
        (day("ts"), "ts_day=__HIVE_DEFAULT_PARTITION__", None),
        (identity("rate"), "rate=1.5", "1.5"),
    ],
)
def test_a_folder_in_icebergs_form_says_what_statistics_do_not(
    tmp_path: Path, term: Term, folder: str, value: Any
) -> None:
    content = rows({}, {})

    found = registered(
        table_by(term), tmp_path / folder / "x.parquet", content, write_statistics=False
    )

    assert found.partition == (value,)


@pytest.mark.parametrize(
    ("term", "folder"),
    [
        (day("ts"), "ts_day=2017-12-02"),
        (day("ts"), "ts_day=null"),
        (bucket("id", 16), "id_bucket_16=4"),
        (truncate("id", 10), "id_trunc_10=20"),
    ],
)
def test_a_folder_that_contradicts_the_rows_is_refused(
    tmp_path: Path, term: Term, folder: str
) -> None:
    with pytest.raises(InvalidChangeError, match=r"its path says .* by its statistics it has"):
        registered(table_by(term), tmp_path / folder / "x.parquet", rows({}, {}))


def test_a_text_is_taken_from_the_rows_whatever_escapes_its_folder_has(tmp_path: Path) -> None:
    content = rows({"kind": "a b/c"})
    folder = tmp_path / "kind_trunc_4=a+b%2F"

    found = registered(table_by(truncate("kind", 4)), folder / "x.parquet", content)

    assert found.partition == ("a b/",)


def test_a_folder_called_null_is_null_or_the_text_as_the_rows_say(tmp_path: Path) -> None:
    table, path = table_by(identity("kind")), tmp_path / "kind=null/x.parquet"

    assert registered(table, path, rows({"kind": None})).partition == (None,)
    assert registered(table, path, rows({"kind": "null"})).partition == ("null",)


def test_a_column_that_the_file_lacks_is_null_under_every_transform(tmp_path: Path) -> None:
    content = rows({}, without=("ts", "id"))
    table = table_by(day("ts"), bucket("id", 4))

    assert registered(table, tmp_path / "x.parquet", content).partition == (None, None)
    with pytest.raises(InvalidChangeError, match="its path says ts_day=2017-12-01"):
        registered(table, tmp_path / "ts_day=2017-12-01/x.parquet", content)


def test_files_are_registered_with_the_default_spec_and_older_ones_stay(tmp_path: Path) -> None:
    table = table_by(day("ts"))
    first = written(tmp_path / "a.parquet", rows({}))
    table.add_files([first])
    table.update_spec().remove_field(day("ts")).add_field(month("ts")).commit()
    second = written(tmp_path / "b.parquet", rows({}))
    table.add_files([second])

    found = {each.path.rpartition("/")[2]: each for each in table.at().files}
    assert found["a.parquet"].partition == ("2017-12-01",)
    assert found["b.parquet"].partition == (575,)
    assert found["b.parquet"].spec_id == found["a.parquet"].spec_id + 1


def test_void_fields_are_null(tmp_path: Path) -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    options = {"ledger.formats": "iceberg", "format-version": "1"}
    table = lake.create_table("shop.t", Schema.of(COLUMNS, options=options))
    table.update_spec().add_field("kind").add_field("id").commit()
    table.update_spec().remove_field("kind").commit()

    assert registered(table, tmp_path / "x.parquet", rows({})).partition == (None, 34)


def test_units_of_the_file_are_those_of_the_column(tmp_path: Path) -> None:
    content = rows({}, {})
    place = content.schema.get_field_index("ts")
    field = content.schema.field(place)
    millis = pa.field("ts", pa.timestamp("ms"), metadata=field.metadata)
    in_millis = content.set_column(place, millis, content.column("ts").cast(pa.timestamp("ms")))

    found = registered(table_by(hour("ts"), identity("ts")), tmp_path / "x.parquet", in_millis)

    assert found.partition == (420034, "2017-12-01T10:12:55")


@settings(max_examples=examples(200), deadline=None)
@given(
    st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=5),
    st.sampled_from(["identity", "bucket[4]", "truncate[7]", "void"]),
)
def test_one_result_from_extremes_is_the_result_of_every_row(
    values: list[int], transform: str
) -> None:
    source, by = t.IntType(), transform_of(transform)
    facts = ColumnFacts(len(values), 0, min(values), max(values))
    results = {by.apply(each, source) for each in values}

    found = single_result(facts, source, source, by)

    if found is UnknownValueReason.SEVERAL:
        assert len(results) > 1
    elif not isinstance(found, UnknownValueReason):
        assert results == {decode_value(found, by.result_type(source))}
