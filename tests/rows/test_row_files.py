from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger import InvalidChangeError, InvalidInputError, StoreError
from ledger.transforms import bucket, day, hour, identity, month, truncate, year
from tests.rows.written import a_table, paths_in, rows_in, written

COLUMNS = {
    "id": "BIGINT",
    "day": "DATE",
    "amount": "DECIMAL(10, 2)",
    "at": "TIMESTAMP(6)",
    "name": "STRING",
    "flag": "BOOLEAN",
}
ARROW = pa.schema(
    [
        ("id", pa.int64()),
        ("day", pa.date32()),
        ("amount", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us")),
        ("name", pa.string()),
        ("flag", pa.bool_()),
    ]
)
SPECS: list[Sequence[Any]] = [
    (),
    (identity("day"),),
    (identity("name"),),
    (identity("amount"),),
    (identity("flag"), identity("id")),
    (bucket("id", 3),),
    (year("at"), bucket("name", 2)),
    (month("at"), identity("day")),
    (hour("at"),),
    (day("day"),),
    (truncate("name", 1), truncate("amount", 100)),
]

_moments = st.datetimes(dt.datetime(1960, 1, 1), dt.datetime(2030, 1, 1))  # noqa: DTZ001 - local times
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "id": st.none() | st.integers(-3, 3),
            "day": st.none() | st.dates(dt.date(1969, 12, 30), dt.date(1970, 1, 2)),
            "amount": st.none() | st.sampled_from([Decimal("-1.00"), Decimal("2.50")]),
            "at": st.none() | _moments,
            "name": st.none() | st.sampled_from(["", " ", "a/b", "ä=x", "x" * 40]),
            "flag": st.none() | st.booleans(),
        }
    ),
    max_size=40,
)
_numbers = count()


def _in_order(row: dict[str, Any]) -> str:
    return repr(sorted(row.items()))


def batches_of(rows: list[dict[str, Any]], length: int) -> list[pa.RecordBatch]:
    starts = range(0, len(rows), length)
    return [pa.RecordBatch.from_pylist(rows[each : each + length], ARROW) for each in starts]


@pytest.mark.law
@given(
    rows=ROWS,
    spec=st.sampled_from(SPECS),
    length=st.integers(1, 20),
    held=st.sampled_from([0, 300, 1 << 20]),
    size=st.sampled_from([1, 3000, 1 << 29]),
)
def test_any_rows_become_files_that_hold_them_and_are_described_as_their_footers_are(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[dict[str, Any]],
    spec: Sequence[Any],
    length: int,
    held: int,
    size: int,
) -> None:
    table = a_table(tmp_path_factory.mktemp(f"rows-{next(_numbers)}"), COLUMNS, spec)

    files = written(table, batches_of(rows, length), held_bytes=held, target_file_size=size)

    folder = table.location.removeprefix("file://")
    described = {each.path: each for each in table.data_files([f"{folder}/data"])} if files else {}
    assert {each.path for each in files} == described.keys()
    for each in files:
        assert replace(each, creation_time=0) == replace(described[each.path], creation_time=0)
    if size == 1 << 29:
        assert len({each.partition for each in files}) == len(files)
    if files:
        table.append(files)
    assert sorted(rows_in(table), key=_in_order) == sorted(rows, key=_in_order)


def test_a_file_is_closed_at_the_tables_target_size(tmp_path: Path) -> None:
    table = a_table(tmp_path, {"v": "BINARY(1000)"}, **{"ledger.target-file-size": "1 mb"})
    noise = Random(1).randbytes(4_000_000)
    values = [noise[start : start + 1000] for start in range(0, len(noise), 1000)]
    files = written(table, [pa.RecordBatch.from_pydict({"v": pa.array(values, pa.binary())})])
    assert [each.record_count for each in files][:-1] == [files[0].record_count] * (len(files) - 1)
    assert all(2**20 <= each.file_size_in_bytes < 1.15 * 2**20 for each in files[:-1])
    assert sum(each.record_count for each in files) == len(values)


@pytest.mark.parametrize("text", ["0", "many", "-1", "2 pb", "9999999999999 gb"])
def test_a_target_size_that_is_no_size_is_rejected(tmp_path: Path, text: str) -> None:
    with pytest.raises(InvalidChangeError, match=r"option ledger\.target-file-size"):
        a_table(tmp_path, {"id": "INT"}, **{"ledger.target-file-size": text})


def test_duckdb_reads_the_files_with_their_nested_fields(tmp_path: Path) -> None:
    columns = {"id": "INT", "r": "ROW<a INT, l ARRAY<ROW<x INT>>>", "m": "MAP<STRING, INT>"}
    table = a_table(tmp_path, columns, (identity("id"),))
    rows = [
        {"id": 1, "r": {"a": 1, "l": [{"x": 1}, None]}, "m": [("k", 1), ("n", None)]},
        {"id": 2, "r": None, "m": None},
        {"id": 1, "r": {"a": None, "l": None}, "m": []},
    ]
    given = pa.RecordBatch.from_pylist(rows, table.schema.to_arrow())
    table.append(written(table, [given]))

    pattern = f"{table.location.removeprefix('file://')}/data/**/*.parquet"
    found = duckdb.sql(
        f"SELECT id, r.a, r.l[1].x, m['k'] FROM read_parquet('{pattern}') ORDER BY ALL"  # noqa: S608
    ).fetchall()
    assert found == [(1, 1, 1, 1), (1, None, None, None), (2, None, None, None)]


def test_rows_beyond_the_held_ones_leave_memory(tmp_path: Path) -> None:
    table = a_table(tmp_path, {"id": "BIGINT", "text": "STRING"}, (identity("id"),))
    peaks = []

    def many() -> Iterator[pa.RecordBatch]:
        for _ in range(200):
            peaks.append(pa.total_allocated_bytes() - before)
            rows = {"id": list(range(100)) * 20, "text": ["x" * 100] * 2000}
            yield pa.RecordBatch.from_pydict(rows)

    before = pa.total_allocated_bytes()
    files = written(table, many(), held_bytes=1 << 20)
    assert sum(each.record_count for each in files) == 400_000
    assert len(files) == 100
    # All rows have 46 MB.
    assert max(peaks) < 12 << 20


def test_files_of_a_failed_task_are_removed(tmp_path: Path) -> None:
    table = a_table(tmp_path, COLUMNS, (identity("id"),))

    def rows_and_a_failure() -> Any:
        yield from batches_of([{"id": number} for number in range(9)], 3)
        raise RuntimeError("the task is killed")

    with pytest.raises(RuntimeError, match="the task is killed"):
        written(table, rows_and_a_failure(), held_bytes=0)
    assert paths_in(table) == []


def test_a_value_beyond_its_column_writes_nothing(tmp_path: Path) -> None:
    table = a_table(tmp_path, {"v": "INT"})
    rows = [pa.RecordBatch.from_pydict({"v": pa.array([each])}) for each in (1, 2**40)]
    with pytest.raises(InvalidInputError, match=r"column v of shop\.orders is INT"):
        written(table, rows)
    assert paths_in(table) == []


def test_a_file_that_cannot_be_created_is_a_store_error(tmp_path: Path) -> None:
    table = a_table(tmp_path, {"v": "INT"})
    (Path(table.location.removeprefix("file://")) / "data").write_text("a file")
    rows = [pa.RecordBatch.from_pydict({"v": pa.array([1], pa.int32())})]
    with pytest.raises((StoreError, OSError)):
        written(table, rows)
