"""Rows of any kind that callers pass, appended and read back by PyIceberg and DuckDB."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

import ledger
from ledger import FileChange, InvalidInputError, Ledger, Schema, Table
from ledger.transforms import day, hour, identity, month, year
from tests.rows.written import a_table, paths_in, rows_in

COLUMNS = {"id": "BIGINT", "name": "STRING", "day": "DATE"}
ROWS: list[dict[str, Any]] = [
    {"id": 1, "name": "a", "day": dt.date(2026, 1, 1)},
    {"id": 2, "name": None, "day": dt.date(2026, 1, 2)},
    {"id": 3, "name": "c", "day": None},
]
ARROW = pa.table(
    {
        "id": pa.array([1, 2, 3], pa.int64()),
        "name": ["a", None, "c"],
        "day": pa.array([each["day"] for each in ROWS], pa.date32()),
    }
)
_numbers = count()


class Streamed:
    """An object of a library that has nothing but a stream, which can be taken once."""

    def __init__(self, table: pa.Table) -> None:
        self._left = [table]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._left.pop().__arrow_c_stream__(requested_schema)


class Unreadable:
    """Rows that nobody may read."""

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        raise AssertionError


def in_order(table: Table) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = table.to_arrow().to_pylist()
    return sorted(found, key=lambda row: row["id"])


KINDS: dict[str, Callable[[], Any]] = {
    "list of dicts": lambda: ROWS,
    "generator of dicts": lambda: (each for each in ROWS),
    "table": lambda: ARROW,
    "record batch": lambda: ARROW.combine_chunks().to_batches()[0],
    "reader": ARROW.to_reader,
    "PyCapsule stream": lambda: Streamed(ARROW),
    "pandas": ARROW.to_pandas,
    "pandas on Arrow": lambda: ARROW.to_pandas(types_mapper=pd.ArrowDtype),
    "Polars": lambda: pl.from_arrow(ARROW),
    "DuckDB": lambda: duckdb.from_arrow(ARROW),
}


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_every_kind_are_appended_by_one_commit_to_their_partitions(
    tmp_path: Path, kind: str
) -> None:
    table = a_table(tmp_path, COLUMNS, (identity("day"),))
    done = table.append(KINDS[kind](), author="ada", message="first")
    assert (done.version, done.repeated, table.state.version) == (1, False, 1)
    assert in_order(table) == ROWS
    assert {each.partition for each in table.at().files} == {
        ("2026-01-01",),
        ("2026-01-02",),
        (None,),
    }
    pattern = f"{table.location.removeprefix('file://')}/data/**/*.parquet"
    found = duckdb.read_parquet(pattern).project("id, name, day").fetchall()
    assert sorted(found) == [tuple(each.values()) for each in ROWS]


def test_the_statistics_of_the_writer_are_those_of_the_footers(tmp_path: Path) -> None:
    table = a_table(tmp_path, COLUMNS, (identity("day"),))
    table.append(ROWS)
    folder = table.location.removeprefix("file://")
    described = {each.path: each for each in table.data_files([f"{folder}/data"])}
    for each in table.at().files:
        assert replace(each, creation_time=0) == replace(described[each.path], creation_time=0)


def test_a_branch_takes_rows_and_main_does_not_change(tmp_path: Path) -> None:
    table = a_table(tmp_path, COLUMNS)
    table.append(ROWS[:1])
    table.create_branch("audit")
    branch = table.branch("audit")
    branch.append(ROWS[1:])
    branch.append(ARROW)
    assert [branch.at().totals.record_count, table.at().totals.record_count] == [6, 1]
    branch.overwrite(ROWS[2:])
    assert branch.at().totals.record_count == 1
    with pytest.raises(ledger.NotFoundError, match="nowhere"):
        table.branch("nowhere").append(ROWS)
    assert len(paths_in(table)) == 4


def test_overwrite_replaces_all_rows_or_those_of_the_named_partitions(tmp_path: Path) -> None:
    table = a_table(tmp_path, COLUMNS, (identity("day"),))
    table.append(ROWS)
    table.overwrite([{**ROWS[0], "name": "new"}], where={"day": "2026-01-01"})
    assert in_order(table) == [{**ROWS[0], "name": "new"}, *ROWS[1:]]
    table.overwrite((), where={"day": None})
    assert [each["id"] for each in in_order(table)] == [1, 2]
    table.overwrite(ARROW.slice(2))
    assert in_order(table) == ROWS[2:]
    assert table.state.snapshot is not None
    assert table.state.snapshot.commit_kind == "OVERWRITE"


@pytest.mark.parametrize(
    ("transform", "texts", "number"),
    [
        (year, ("2024", "2023"), 54),
        (month, ("2024-02", "2024-01"), 649),
        (day, ("2024-02-07", "2024-02-06"), None),
        (hour, ("2024-02-07-13", "2024-02-07-12"), 474253),
    ],
)
def test_partitions_of_periods_are_named_as_in_paths(
    tmp_path: Path, transform: Callable[[str], Any], texts: tuple[str, str], number: int | None
) -> None:
    table = a_table(tmp_path, {"id": "INT", "ts": "TIMESTAMP(6)"}, (transform("ts"),))
    at = dt.datetime(2024, 2, 7, 13, 5)  # noqa: DTZ001 - a local time
    (key,) = (each.name for each in table.state.spec.fields)
    table.append([{"id": 1, "ts": at}, {"id": 2, "ts": at.replace(year=2020)}])
    table.overwrite([{"id": 3, "ts": at}], where={key: texts[0]})
    assert sorted(each["id"] for each in rows_in(table)) == [2, 3]
    with pytest.raises(InvalidInputError, match="outside of where"):
        table.overwrite([{"id": 4, "ts": at}], where={key: texts[1]})
    if number is not None:
        table.overwrite([{"id": 5, "ts": at}], where={key: number})
        assert sorted(each["id"] for each in rows_in(table)) == [2, 5]
        if transform is not year:
            # The texts of years are those of the calendar.
            table.overwrite([{"id": 5, "ts": at}], where={key: str(number)})
    with pytest.raises(InvalidInputError, match=f"no value of .*; write it like {texts[0]}"):
        table.overwrite((), where={key: "02/2024"})


def test_rows_outside_of_the_partitions_to_replace_are_rejected(tmp_path: Path) -> None:
    table = a_table(tmp_path, COLUMNS, (identity("day"),))
    with pytest.raises(
        InvalidInputError, match=r"1 of the rows .*2026-01-02.* is outside of where"
    ):
        table.overwrite(ROWS[:2], where={"day": "2026-01-01"})
    with pytest.raises(InvalidInputError, match="'name' is no partition key"):
        table.overwrite(ROWS, where={"name": "a"})
    assert paths_in(table) == []
    assert table.state.version == 0


NESTED = {
    "id": "BIGINT NOT NULL",
    "amount": "DECIMAL(10, 2)",
    "ratio": "FLOAT",
    "at": "TIMESTAMP(6)",
    "seen": "TIMESTAMP_LTZ(6)",
    "clock": "TIME(6)",
    "raw": "BYTES",
    "ok": "BOOLEAN",
    "tags": "ARRAY<STRING>",
    "point": "ROW<x INT, inner ROW<y ARRAY<ROW<z BIGINT>>>>",
    "counts": "MAP<STRING, INT>",
}
BERLIN = dt.timezone(dt.timedelta(hours=1))


def test_python_values_of_every_class_keep_their_meaning(tmp_path: Path) -> None:
    table = a_table(tmp_path, NESTED)
    table.append(
        [
            {
                "id": 1,
                "AMOUNT": 7,
                "ratio": 1,
                "at": dt.datetime(2026, 1, 1, 10, 0, 0, 5),  # noqa: DTZ001 - a local time
                "seen": dt.datetime(2026, 1, 1, 1, tzinfo=BERLIN),
                "clock": dt.time(10, 30),
                "raw": bytearray(b"x"),
                "ok": np.True_,
                "tags": ("a", None),
                "point": {"X": 1, "inner": {"y": [{"z": 1}, {}, None]}},
                "counts": {"k": 1, "n": None},
            },
            {"id": np.int64(2), "amount": Decimal("1.5"), "tags": np.array(["b"]), "counts": []},
            {"id": 3, "counts": [("k", 2)]},
        ]
    )
    first, second, third = in_order(table)
    assert first == {
        "id": 1,
        "amount": Decimal("7.00"),
        "ratio": 1.0,
        "at": dt.datetime(2026, 1, 1, 10, 0, 0, 5),  # noqa: DTZ001 - a local time
        "seen": dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
        "clock": dt.time(10, 30),
        "raw": b"x",
        "ok": True,
        "tags": ["a", None],
        "point": {"x": 1, "inner": {"y": [{"z": 1}, {"z": None}, None]}},
        "counts": [("k", 1), ("n", None)],
    }
    assert (second["id"], second["amount"], second["tags"]) == (2, Decimal("1.50"), ["b"])
    assert (second["counts"], second["point"]) == ([], None)
    assert third["counts"] == [("k", 2)]


PARIS = dt.datetime(2026, 7, 1, 12, tzinfo=dt.timezone(dt.timedelta(hours=2)))
ZONED: dict[str, Callable[[], Any]] = {
    "dicts": lambda: [{"at": None}, {"at": PARIS}],
    "dicts in UTC": lambda: [{"at": PARIS.astimezone(dt.UTC)}],
    "Arrow": lambda: pa.table({"at": pa.array([PARIS], pa.timestamp("us", "Europe/Paris"))}),
    "pandas": lambda: pd.DataFrame({"at": pd.to_datetime([PARIS])}),
    "objects of pandas": lambda: pd.DataFrame({"at": pd.Series([None, PARIS], dtype=object)}),
    "Polars": lambda: pl.DataFrame({"at": [PARIS]}),
}


@pytest.mark.parametrize("kind", ZONED)
def test_a_time_with_a_zone_does_not_lose_it_in_a_column_without_one(
    tmp_path: Path, kind: str
) -> None:
    table = a_table(tmp_path, {"at": "TIMESTAMP(6)"})
    with pytest.raises(InvalidInputError, match=r"column at .* to UTC and drop .* TIMESTAMP_LTZ"):
        table.append(ZONED[kind]())
    assert (table.state.version, paths_in(table)) == (0, [])
    moments = a_table(tmp_path / "moments", {"at": "TIMESTAMP_LTZ(6)"})
    moments.append(ZONED[kind]())
    assert [each["at"] for each in rows_in(moments) if each["at"]] == [PARIS]


def test_nulls_of_pandas_in_dicts_are_null_and_nan_is_a_number(tmp_path: Path) -> None:
    columns = {"id": "BIGINT", "x": "DOUBLE", "at": "TIMESTAMP(6)", "tags": "ARRAY<STRING>"}
    table = a_table(tmp_path, {**columns, "r": "ROW<n INT>"})
    table.append(
        [
            {"id": pd.NA, "x": pd.NA, "at": pd.NaT, "tags": [pd.NA], "r": {"n": pd.NA}},
            {"id": 1, "x": float("nan"), "tags": pd.NA, "r": pd.NA},
        ]
    )
    first, second = rows_in(table)
    assert first == {"id": None, "x": None, "at": None, "tags": [None], "r": {"n": None}}
    assert str(second["x"]) == "nan"
    assert (second["tags"], second["r"]) == (None, None)


def test_uuids_multisets_and_vectors_are_given_as_python_has_them(tmp_path: Path) -> None:
    table = a_table(tmp_path / "iceberg", {"id": "INT", "u": "UUID"})
    table.append([{"id": 1, "u": UUID(int=5)}, {"id": 2, "u": UUID(int=6).bytes}, {"id": 3}])
    assert [each["u"] for each in in_order(table)] == [UUID(int=5), UUID(int=6), None]

    columns = {"v": "VECTOR<FLOAT, 2>", "m": "MULTISET<STRING>"}
    other = a_table(tmp_path / "paimon", columns, **{"ledger.formats": "paimon"})
    other.append([{"v": [1, 2.5], "m": {"a": 2}}, {"v": (3, 4), "m": [("b", 1)]}])
    assert rows_in(other) == [
        {"v": [1.0, 2.5], "m": [("a", 2)]},
        {"v": [3.0, 4.0], "m": [("b", 1)]},
    ]


def test_a_key_that_a_dict_lacks_means_the_columns_default(tmp_path: Path) -> None:
    table = a_table(tmp_path, {"id": "INT"}, **{"format-version": "3"})
    table.alter([ledger.AddColumn(("kind",), "STRING"), ledger.AddColumn(("n",), "INT")])
    table.alter([ledger.UpdateColumnDefaultValue(("kind",), "new")])
    table.append([{"id": 1, "kind": "old"}, {"id": 2}, {"id": 3, "kind": None}])
    assert [each["kind"] for each in in_order(table)] == ["old", "new", None]


REJECTED: list[tuple[Any, str]] = [
    ({"id": "x"}, "column id of shop.orders is BIGINT, and the value is 'x' (str)"),
    (
        {"id": float("nan")},
        "(float); give a value of int, or None for NULL: NaN is a value of FLOAT",
    ),
    ({"id": 1, "name": float("nan")}, "give a value of str, or None for NULL"),
    ({"id": True}, "column id of shop.orders is BIGINT, and the value is True (bool)"),
    ({"id": 1.5}, "column id of shop.orders is BIGINT, and the value is 1.5 (float)"),
    ({"id": 2**70}, "column id of shop.orders is BIGINT, and a value does not fit"),
    ({"id": None}, "column id of shop.orders is NOT NULL"),
    ({}, "column id of shop.orders is NOT NULL"),
    ({"id": 1, "nmae": "x"}, "shop.orders has no column 'nmae'; did you mean 'name'? Add it"),
    ({"id": 1, "ID": 2}, "shop.orders has no column 'ID'; did you mean 'id'? Add it"),
    ({"id": 1, 5: 2}, "5 is no name of a column"),
    ({"id": 1, "day": dt.datetime(2026, 1, 1)}, "give a value of date"),  # noqa: DTZ001 - a local time
    ({"id": 1, "day": "2026-01-01"}, "the value is '2026-01-01' (str); give a value of date"),
    ({"id": 1, "seen": dt.datetime(2026, 1, 1)}, "give a value of datetime with a time zone"),  # noqa: DTZ001 - a local time
    ({"id": 1, "amount": Decimal("1.234")}, "column amount of shop.orders is DECIMAL(10, 2)"),
    ({"id": 1, "amount": 1.5}, "give a value of finite Decimal, with an exponent of"),
    ({"id": 1, "amount": Decimal("NaN")}, "column amount of shop.orders is DECIMAL(10, 2)"),
    ({"id": 1, "amount": Decimal("1e-99999999")}, "with an exponent of -1,000 to 1,000, or int"),
    ({"id": 1, "ratio": 1e39}, "column ratio of shop.orders is FLOAT, and the value is 1e+39"),
    ({"id": 1, "ratio": 10**400}, "column ratio of shop.orders is FLOAT, and the value is 1000"),
    ({"id": 1, "code": "abc"}, "a value has the length 3"),
    ({"id": 1, "point": {"z": 1}}, "shop.orders has no column 'point.z'; "),
    ({"id": 1, "point": {"x": "1"}}, "column point.x of shop.orders is INT"),
    ({"id": 1, "point": [1]}, "column point of shop.orders is ROW<`x` INT>"),
    ({"id": 1, "tags": "ab"}, "the value is 'ab' (str); give a value of list"),
    ({"id": 1, "tags": [1]}, "column tags.element of shop.orders is STRING"),
    ({"id": 1, "counts": {"k": "v"}}, "column counts.value of shop.orders is INT"),
    ({"id": 1, "counts": {None: 1}}, "a key of column counts of shop.orders is None"),
    ({"id": 1, "counts": [1]}, "give a value of dict, or list of pairs"),
    ([1], "[1] is no dict of column names to values"),
    (FileChange(path="a", record_count=1, file_size_in_bytes=9), "give rows of one kind"),
]


@pytest.mark.parametrize(("row", "message"), REJECTED, ids=str)
def test_a_row_that_does_not_fit_is_named_and_nothing_is_written(
    tmp_path: Path, row: Any, message: str
) -> None:
    columns = {
        "id": "BIGINT NOT NULL",
        "name": "STRING",
        "day": "DATE",
        "amount": "DECIMAL(10, 2)",
        "seen": "TIMESTAMP_LTZ(6)",
        "ratio": "FLOAT",
        "code": "VARCHAR(2)",
        "point": "ROW<x INT>",
        "tags": "ARRAY<STRING>",
        "counts": "MAP<STRING, INT>",
    }
    table = a_table(tmp_path, columns)
    rows = [{"id": each} for each in range(1500)]
    rows.insert(1100, row)
    with pytest.raises(InvalidInputError, match=re.escape(message)) as rejected:
        table.append(rows)
    assert rejected.value.message.startswith("row 1101 (counted from 1): ")
    assert (table.state.version, paths_in(table)) == (0, [])


def test_the_row_of_arrow_data_that_does_not_fit_is_named_over_all_batches(tmp_path: Path) -> None:
    table = a_table(tmp_path, {"id": "TINYINT", "r": "ROW<a INT NOT NULL>"})
    kind = pa.struct([("a", pa.int32())])

    def batch(ids: list[int], value: int | None) -> pa.RecordBatch:
        members = [{"a": 1}] * (len(ids) - 1) + [{"a": value}]
        return pa.RecordBatch.from_arrays([pa.array(ids), pa.array(members, kind)], ["id", "r"])

    for batches, message in (
        ([batch([1] * 70, 1), batch([5, 1, 300, 1, 999], 1)], r"row 73 \(.*column id .*300"),
        ([batch([1] * 70, 1), batch([5, 1, 1], None)], r"row 73 \(.*column r\.a .* NOT NULL"),
    ):
        reader = pa.RecordBatchReader.from_batches(batches[0].schema, batches)
        with pytest.raises(InvalidInputError, match=message):
            table.append(reader)
    assert paths_in(table) == []


def test_columns_that_do_not_fit_are_rejected_before_the_stream_is_read(tmp_path: Path) -> None:
    table = a_table(tmp_path, COLUMNS)
    for schema in (pa.schema([("other", pa.int64())]), pa.schema([("id", pa.string())])):
        with pytest.raises(InvalidInputError, match=r"no column 'other'|column id .* is BIGINT"):
            table.append(pa.RecordBatchReader.from_batches(schema, Unreadable()))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (5, "data=5 is neither files nor rows"),
        ("rows", "data='rows' is neither"),
        ({"id": [1]}, "is neither files nor rows"),
        (pl.LazyFrame({"id": [1]}), "is neither files nor rows"),
        (pl.Series([1]), "a Series is no table of columns"),
        (pa.chunked_array([[1]]), "a ChunkedArray is no table of columns"),
        ([ARROW], "data[0] is a Table, and data has to be one"),
        ([None], "files[0]=None is no FileChange"),
        ({None: 1, "id": 2}.keys(), "files[0]=None is no FileChange"),
        (["a.parquet"], "files[0]='a.parquet' is no FileChange"),
        (
            [FileChange(path="a", record_count=1, file_size_in_bytes=9), {"id": 1}],
            "files[1]={'id': 1} is no FileChange",
        ),
    ],
    ids=lambda each: str(each)[:30],
)
def test_what_is_neither_files_nor_rows_is_rejected(
    tmp_path: Path, data: Any, message: str
) -> None:
    table = a_table(tmp_path, COLUMNS)
    for call in (table.append, table.overwrite):
        with pytest.raises(InvalidInputError, match=re.escape(message)):
            call(data)
    assert table.state.version == 0


def test_no_rows_are_a_snapshot_without_files_as_no_files_are(tmp_path: Path) -> None:
    table = a_table(tmp_path, COLUMNS)
    for number, data in enumerate(([], iter(()), ARROW.slice(0, 0), ARROW.to_pandas().iloc[:0])):
        assert table.append(data).version == number + 1
    assert (paths_in(table), table.at().totals.record_count) == ([], 0)


def test_the_index_of_a_frame_is_never_written_and_asked_about_if_the_table_has_it(
    tmp_path: Path,
) -> None:
    table = a_table(tmp_path, COLUMNS)
    frame = pd.DataFrame({"id": [1, 2], "name": ["a", "b"]})
    for each in (
        frame,
        frame.set_index(pd.Index([7, 8])),
        frame.set_index(pd.Index([7, 8], name="k")),
    ):
        table.append(each)
    table.append(frame.set_index("id", drop=False))
    assert table.at().totals.record_count == 8
    for index in (["id"], ["Id", "other"]):
        keyed = (
            frame.rename(columns={"id": index[0]})
            .assign(other=1)
            .drop(columns="other" if len(index) == 1 else [])
        )
        with pytest.raises(InvalidInputError, match=rf"{index[0]} as its index.*reset_index\(\)"):
            table.append(keyed.set_index(index))


def test_missing_values_of_pandas_are_null_and_whole_floats_are_integers(tmp_path: Path) -> None:
    table = a_table(
        tmp_path, {**COLUMNS, "x": "DOUBLE", "at": "TIMESTAMP(6)", "o": "MAP<STRING, INT>"}
    )
    frame = pd.DataFrame(
        {
            "id": [1.0, float("nan")],
            "name": ["a", float("nan")],
            "day": [dt.date(2026, 1, 1), pd.NaT],
            "x": [0.5, float("nan")],
            "at": pd.to_datetime(["2026-01-01T10:00:00", None]),
            "o": [{"k": 1}, pd.NA],
        }
    )
    table.append(frame)
    assert table.to_arrow().to_pylist() == [
        {
            "id": 1,
            "name": "a",
            "day": dt.date(2026, 1, 1),
            "x": 0.5,
            "at": dt.datetime(2026, 1, 1, 10),  # noqa: DTZ001 - a local time
            "o": [("k", 1)],
        },
        dict.fromkeys(frame.columns),
    ]


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"id": [1.5]}, "column id of shop.orders is BIGINT, and the rows have double"),
        ({"id": [1, "x"]}, "row 2 (counted from 1): column id of shop.orders is BIGINT"),
        ({0: [1]}, "0 is no name of a column; rename the columns of the frame"),
        (
            {"other": ["x"]},
            "shop.orders has no column 'other'; there are: 'id', 'name', 'day'. Add",
        ),
        ({"other": [1, "x"]}, "column other of the rows for shop.orders cannot be converted"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_frame_is_named(tmp_path: Path, frame: Any, message: str) -> None:
    table = a_table(tmp_path, COLUMNS)
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        table.append(pd.DataFrame(frame))
    assert (table.state.version, paths_in(table)) == (0, [])


def test_a_long_stream_is_read_in_batches(tmp_path: Path) -> None:
    table = a_table(tmp_path, {"v": "BYTES"}, **{"ledger.target-file-size": "64 kb"})
    alive = most = 0

    def batches() -> Iterator[pa.RecordBatch]:
        nonlocal alive, most
        for number in range(300):
            yield pa.RecordBatch.from_pydict({"v": [number.to_bytes(2, "big") * 500_000]})
            most = max(most, pa.total_allocated_bytes() - before)

    before = pa.total_allocated_bytes()
    schema = pa.schema([("v", pa.binary())])
    table.append(pa.RecordBatchReader.from_batches(schema, batches()))
    assert table.at().totals.record_count == 300
    assert most < 220 << 20


VALUES = {
    "id": ("BIGINT", pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "small": ("SMALLINT", pa.int16(), st.integers(-(2**15), 2**15 - 1)),
    "x": ("DOUBLE", pa.float64(), st.floats(allow_nan=False)),
    "amount": (
        "DECIMAL(12, 3)",
        pa.decimal128(12, 3),
        st.decimals(-(10**8), 10**8, places=3, allow_nan=False),
    ),
    "name": ("STRING", pa.string(), st.text(max_size=5)),
    "raw": ("BYTES", pa.binary(), st.binary(max_size=5)),
    "flag": ("BOOLEAN", pa.bool_(), st.booleans()),
    "day": ("DATE", pa.date32(), st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1))),
    "at": (
        "TIMESTAMP(6)",
        pa.timestamp("us"),
        st.datetimes(dt.datetime(1900, 1, 1), dt.datetime(2100, 1, 1)),  # noqa: DTZ001 - local times
    ),
    "tags": ("ARRAY<STRING>", pa.list_(pa.string()), st.lists(st.text(max_size=3), max_size=3)),
    "r": (
        "ROW<a INT, b STRING>",
        pa.struct([("a", pa.int32()), ("b", pa.string())]),
        st.fixed_dictionaries({"a": st.none() | st.integers(-9, 9), "b": st.text(max_size=2)}),
    ),
    "m": (
        "MAP<STRING, INT>",
        pa.map_(pa.string(), pa.int32()),
        st.dictionaries(st.text(max_size=2), st.integers(-9, 9), max_size=3).map(
            lambda each: list(each.items())
        ),
    ),
}
_any_row = st.fixed_dictionaries(
    {}, optional={name: st.none() | values for name, (_, _, values) in VALUES.items()}
)


@pytest.mark.law
@given(rows=st.lists(_any_row, max_size=12))
def test_any_dicts_are_read_back_as_given_and_as_the_same_arrow_data_is(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]]
) -> None:
    columns = {"n": "INT", **{name: kind for name, (kind, _, _) in VALUES.items()}}
    schema = pa.schema([("n", pa.int32()), *((n, kind) for n, (_, kind, _) in VALUES.items())])
    numbered = [{"n": number, **row} for number, row in enumerate(rows)]
    of_dicts = a_table(tmp_path_factory.mktemp(f"dicts-{next(_numbers)}"), columns)
    of_arrow = a_table(tmp_path_factory.mktemp(f"arrow-{next(_numbers)}"), columns)

    of_dicts.append(iter(numbered))
    of_arrow.append(pa.Table.from_pylist(numbered, schema))

    expected = [{**dict.fromkeys(columns), **row} for row in numbered]
    for table in (of_dicts, of_arrow):
        found = table.to_arrow().to_pylist() if rows else []
        assert sorted(found, key=lambda row: cast(int, row["n"])) == expected
    assert [replace(each, path="", creation_time=0) for each in of_dicts.at().files] == [
        replace(each, path="", creation_time=0) for each in of_arrow.at().files
    ]


def a_lake(folder: Path) -> Ledger:
    lake = ledger.open(str(folder))
    lake.create_database("shop")
    return lake


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_created_of_rows_of_every_kind_and_holds_them(tmp_path: Path, kind: str) -> None:
    lake = a_lake(tmp_path)
    table = lake.create_table(
        "shop.orders", KINDS[kind](), append=True, partition_spec=[identity("day")], author="ada"
    )
    assert table.schema.names == ("id", "name", "day")
    assert [each.type.root for each in table.schema.fields] == ["BIGINT", "VARCHAR", "DATE"]
    assert in_order(table) == ROWS
    assert [each.transactions[0].author for each in table.events()] == ["ada", "ada"]


def test_rows_are_a_schema_alone_unless_they_are_to_be_appended(tmp_path: Path) -> None:
    lake = a_lake(tmp_path)
    table = lake.create_table("shop.orders", ROWS)
    assert (table.state.version, table.at().totals.record_count) == (0, 0)
    reader = ARROW.to_reader()
    other = lake.create_table("shop.other", reader)
    other.append(reader)
    assert in_order(other) == ROWS


def test_a_name_that_is_taken_is_told_before_a_row_is_read(tmp_path: Path) -> None:
    lake = a_lake(tmp_path)
    lake.create_table("shop.orders", {"id": "INT"})
    with pytest.raises(ledger.AlreadyExistsError, match=r"table shop\.orders exists already"):
        lake.create_table("shop.orders", Unreadable(), append=True)
    with pytest.raises(ledger.NotFoundError, match="database nope does not exist"):
        lake.create_table("nope.orders", ROWS, append=True)


def test_a_creation_whose_rows_fail_says_that_the_table_exists(tmp_path: Path) -> None:
    lake = a_lake(tmp_path)
    rows = [{"id": each if each < 1030 else "x"} for each in range(1050)]
    with pytest.raises(
        InvalidInputError,
        match=r"row 1031 .*; the table shop\.orders was created before its rows: to retry, append",
    ):
        lake.create_table("shop.orders", rows, append=True)
    table = lake.table("shop.orders")
    assert (table.state.version, paths_in(table)) == (0, [])

    def breaks() -> Iterator[dict[str, Any]]:
        yield from ({"id": each} for each in range(1030))
        raise OSError("the network is gone")

    with pytest.raises(OSError, match="the network is gone") as failed:
        lake.create_table("shop.other", breaks(), append=True)
    assert "shop.other was created before its rows" in failed.value.__notes__[0]
    assert paths_in(lake.table("shop.other")) == []


def test_a_creation_with_rows_is_repeated_safely_under_its_commit_id(tmp_path: Path) -> None:
    lake = a_lake(tmp_path)
    broken = [*ROWS, {"id": 9, "name": None, "day": dt.date(2026, 1, 1)}]
    for _ in range(3):
        table = lake.create_table("shop.orders", iter(broken), append=True, commit_id="monday")
        assert (table.state.version, table.at().totals.record_count) == (1, 4)
    assert table.find_commit("monday-rows") is not None

    # The process died between the two commits.
    lake.create_table("shop.other", ROWS, commit_id="tuesday")
    other = lake.create_table("shop.other", ROWS, append=True, commit_id="tuesday")
    assert in_order(other) == ROWS


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ([], r"schema=\[\] has no rows"),
        ([1], "has no rows to infer columns from"),
        ([{"a": 1}, {"a": "x"}], "the type of column a cannot be inferred"),
        ([{3: 1}], "3 is no name of a column"),
        ({"id": "INT"}, r"append=True takes rows, and schema=.* has none"),
        (Schema.of({"id": "INT"}), "append=True takes rows"),
        (pa.schema([("id", pa.int32())]), "append=True takes rows"),
    ],
    ids=str,
)
def test_rows_without_a_schema_are_rejected(tmp_path: Path, schema: Any, message: str) -> None:
    lake = a_lake(tmp_path)
    with pytest.raises(InvalidInputError, match=message):
        lake.create_table("shop.orders", schema, append=True)
    assert lake.tables() == []


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["x", "y"])], ids=str)
def test_categories_of_polars_are_texts(tmp_path: Path, kind: Any) -> None:
    frame = pl.DataFrame({"code": pl.Series(["y", None, "x", "y"], dtype=kind)})
    table = a_table(tmp_path, {"code": "STRING"})
    table.append(frame)
    table.append(frame.slice(1, 2))
    assert table.to_arrow()["code"].to_pylist() == ["y", None, "x", "y", None, "x"]


def test_whole_numbers_that_pandas_may_have_rounded_are_rejected(tmp_path: Path) -> None:
    table = a_table(tmp_path, {"id": "BIGINT"})
    largest = 2**53 - 1
    table.append(pd.DataFrame({"id": [largest, None, -largest]}))
    assert table.to_arrow()["id"].to_pylist() == [largest, None, -largest]
    for each in (2**53 + 1, -(2**53) - 1):
        with pytest.raises(InvalidInputError, match="column id of shop.orders is BIGINT, and the"):
            table.append(pd.DataFrame({"id": [each, None]}))
    assert table.at().totals.record_count == 3


MIXED_TIMES = [{"at": PARIS.replace(tzinfo=None)}, {"at": PARIS}]
FRAME = pd.DataFrame({"species": ["a", "b"], "n": [1, 2]})
OBJECTS = pl.DataFrame({"o": pl.Series([object()], dtype=pl.Object)})
UNFIT: list[tuple[Any, str]] = [
    (MIXED_TIMES, r"row 2 \(counted from 1\): column at .* without time zone"),
    (MIXED_TIMES[::-1], r"row 2 \(counted from 1\): column at .* with a time zone"),
    ([{"r": each} for each in MIXED_TIMES], r"row 2 \(counted from 1\): column r\.at .* without"),
    ([{"a": "x"}, {"a": float("nan")}], "column a cannot be inferred: .* give None for NULL"),
    ([{"a": {}}], "column a of shop.orders is a ROW without"),
    ([{"i": 1, "a": None}], "column a has no value but NULL.* give a Schema, or leave"),
    ([{"a": []}, {"a": None}], "column a has no value but NULL, or only empty lists"),
    ([{"a": {"b": None}}], "column a has no value but NULL"),
    (pd.DataFrame({"i": [1], "a": [None]}), "column a has no value but NULL"),
    (pd.DataFrame({"a": [[]]}), "column a has no value but NULL"),
    (pl.DataFrame({"s": [{}]}), "column s of shop.orders is a ROW without"),
    (OBJECTS, "column o .* is polars.Object"),
    (pa.table([[1], [2]], ["a", "a"]), "a and a of the rows both mean column a"),
    (FRAME.set_index("species"), r"has 'species' as its index.*; call reset_index\(\)"),
    (FRAME.set_index(["species", "n"]), r"has 'species', 'n' as its index"),
    (pd.DataFrame([[1, 2]], columns=["a", "a"]), "the frame has two columns 'a'"),
    (pd.DataFrame({0: [1]}), "0 is no name of a column"),
    (
        pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")])),
        r"\('a', 'b'\) is no name of a column",
    ),
    (pd.DataFrame({"a": [{}]}), "column a of shop.orders is a ROW without"),
    (pd.DataFrame({"a": [1, "x"]}), "column a of the frame cannot be inferred: .* convert"),
    (pd.DataFrame({"a": [[1, "x"]]}), "column a of the frame cannot be inferred"),
    (pd.DataFrame({"a": [1j]}), "column a of the frame cannot be inferred"),
    (pd.DataFrame({"a": [object()]}), "column a of the frame cannot be inferred"),
    (
        pd.DataFrame({"a": [b"x", "y"]}),
        r"row 2 \(counted from 1\): column a .* give a value of bytes",
    ),
]


@pytest.mark.parametrize(("rows", "message"), UNFIT, ids=lambda each: str(each)[:40])
def test_what_no_table_can_hold_is_rejected_before_one_is_created(
    tmp_path: Path, rows: Any, message: str
) -> None:
    lake = a_lake(tmp_path)
    with pytest.raises(ledger.LedgerError, match=message) as rejected:
        lake.create_table("shop.orders", rows, append=True)
    assert "was created before" not in rejected.value.message
    assert lake.tables() == []


def test_an_index_whose_values_no_column_loses_is_ignored(tmp_path: Path) -> None:
    lake = a_lake(tmp_path)
    for name, index in (("kept", FRAME.set_index("species", drop=False)), ("unnamed", FRAME[1:])):
        table = lake.create_table(f"shop.{name}", index, append=True)
        assert rows_in(table) == index.to_dict("records")


def test_python_objects_of_polars_are_no_bytes(tmp_path: Path) -> None:
    table = a_table(tmp_path, {"o": "BYTES"})
    with pytest.raises(InvalidInputError, match="column o of the frame is polars.Object"):
        table.append(OBJECTS)
    assert (table.state.version, paths_in(table)) == (0, [])


def test_categories_of_polars_are_texts_at_any_depth(tmp_path: Path) -> None:
    frame = pl.DataFrame(
        {
            "c": pl.Series(["a", "b", None], dtype=pl.Categorical),
            "e": pl.Series(["x", "y", "x"], dtype=pl.Enum(["y", "x"])),
        }
    ).with_columns(l=pl.concat_list("c"), s=pl.struct("e"))
    lake = a_lake(tmp_path)
    table = lake.create_table("shop.orders", frame, append=True)
    table.append(frame)
    expected = [
        {"c": "a", "e": "x", "l": ["a"], "s": {"e": "x"}},
        {"c": "b", "e": "y", "l": ["b"], "s": {"e": "y"}},
        {"c": None, "e": "x", "l": [None], "s": {"e": "x"}},
    ]
    assert rows_in(table) == expected * 2
