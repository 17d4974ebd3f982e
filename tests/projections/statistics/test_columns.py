"""Columns by partition, at an instant and at every snapshot, from what the entries say."""

from __future__ import annotations

import itertools
import json
import random
from pathlib import Path
from typing import Any

import pytest

import ledger
from ledger import AddColumn, FileChange, Schema, Table, UpdateColumnType
from ledger.model import types as t
from ledger.planning import value_to_bytes
from projections.statistics.column_history import (
    column_statistics_at,
    column_statistics_by_snapshot,
)
from tests.thorough import some

NUMBERS = itertools.count()
DAYS = ("2024-01-01", "2024-01-02", None)


def table_in(where: str = "", **options: Any) -> Table:
    lake = ledger.open(where or f"memory://columns-{next(NUMBERS)}")
    lake.create_database("shop")
    schema = Schema.of(
        {"id": "INT", "note": "STRING", "day": "DATE"}, partition_keys=["day"], **options
    )
    return lake.create_table("shop.orders", schema)


def table_of(name: str, data_type: str, options: dict[str, str]) -> Table:
    lake = ledger.open(f"memory://columns-{next(NUMBERS)}")
    lake.create_database("shop")
    return lake.create_table("shop.one", Schema.of({name: data_type}, options=options))


def counted(path: str, day: str | None, low: int, high: int, *, nulls: int = 0) -> FileChange:
    return FileChange(
        path=f"{path}.parquet",
        partition=(day,),
        record_count=high - low + 1 + nulls,
        file_size_in_bytes=7,
        field_ids=True,
        value_counts={0: high - low + 1 + nulls},
        null_value_counts={0: nulls},
        lower_bounds={0: value_to_bytes(low, t.IntType()).hex()},
        upper_bounds={0: value_to_bytes(high, t.IntType()).hex()},
    )


def column_rows(table: Table, **instant: Any) -> list[tuple[Any, ...]]:
    rows = column_statistics_at(table, table.at(**instant)).to_pylist()
    names = ("partition", "column", "value_count", "null_count", "lower", "upper", "is_exact")
    return [tuple(each[name] for name in names) for each in rows]


def test_an_instant_has_counts_nulls_and_bounds_of_each_partition() -> None:
    table = table_in()
    table.append([counted("a", DAYS[0], -5, 9, nulls=2), counted("b", DAYS[0], 3, 12)])
    table.append([counted("c", DAYS[1], 1, 1)])
    table.delete_files(["a.parquet"])

    assert column_rows(table, snapshot=1) == [("day=2024-01-01", "id", 27, 2, "-5", "12", True)]
    assert column_rows(table) == [
        ("day=2024-01-01", "id", 10, 0, "3", "12", True),
        ("day=2024-01-02", "id", 1, 0, "1", "1", True),
    ]


def test_live_deletes_make_a_partition_inexact_and_those_of_equality_without_one_all() -> None:
    table = table_in(options={"ledger.formats": "iceberg"})
    table.append([counted(str(each), day, 1, 9) for each, day in enumerate(DAYS)])
    deletes = FileChange(
        path="d.parquet",
        partition=(DAYS[0],),
        record_count=1,
        file_size_in_bytes=1,
        content="position-deletes",
        field_ids=True,
    )
    table.append([deletes])

    assert {row[0]: row[-1] for row in column_rows(table)} == {
        "day=2024-01-01": False,
        "day=2024-01-02": True,
        "day=__DEFAULT_PARTITION__": True,
    }
    assert all(row[-1] for row in column_rows(table, snapshot=1))
    last = column_statistics_by_snapshot(table, table.at()).to_pylist()[-1]
    assert (last["snapshot_id"], last["partition"]) == (2, "day=2024-01-01")
    assert not last["is_exact"]


@pytest.mark.parametrize(
    ("mode", "lower", "is_exact"),
    [
        (None, "a" * 15, True),
        (None, "a" * 16, False),
        (None, "ü" * 16, False),
        ("truncate(4)", "a" * 3, True),
        ("truncate(4)", "a" * 4, False),
        ("full", "a" * 15, True),
        ("truncate(64)", "a" * 32, False),
    ],
)
@pytest.mark.parametrize("column_type", ["STRING", "BYTES"])
def test_a_bound_that_may_be_truncated_is_not_exact(
    mode: str | None, lower: str, column_type: str, *, is_exact: bool
) -> None:
    options = {} if mode is None else {"write.metadata.metrics.default": mode}
    table = table_of("s", column_type, options)
    bound = lower.encode() if column_type == "STRING" else lower.encode("utf-32-le")[::4]
    file = FileChange(
        path="a.parquet",
        record_count=2,
        file_size_in_bytes=7,
        field_ids=True,
        value_counts={0: 2},
        null_value_counts={0: 0},
        lower_bounds={0: bound.hex()},
        upper_bounds={0: b"b".hex()},
    )
    table.append([file])

    (row,) = column_statistics_at(table, table.at()).to_pylist()

    assert row["is_exact"] is is_exact


def test_a_bound_of_zero_has_no_sign() -> None:
    table = table_of("s", "DOUBLE", {})
    zeros = [value_to_bytes(each, t.DoubleType()).hex() for each in (-0.0, 0.0)]
    file = FileChange(
        path="a.parquet",
        record_count=2,
        file_size_in_bytes=7,
        field_ids=True,
        value_counts={0: 2},
        null_value_counts={0: 0},
        lower_bounds={0: zeros[0]},
        upper_bounds={0: zeros[1]},
    )
    table.append([file])

    (row,) = column_statistics_at(table, table.at()).to_pylist()

    assert (row["lower"], row["upper"]) == ("0.0", "0.0")


def test_bounds_of_another_type_are_not_read_as_this_one() -> None:
    table = table_in(options={"ledger.formats": "paimon"})
    table.append([counted("a", None, 0x41424344, 0x41424344)])
    table.alter([UpdateColumnType(("id",), "STRING")])
    (row,) = column_rows(table)
    assert row[1:6] == ("id", 1, 0, None, None)

    promoted = table_in()
    promoted.append([counted("a", None, -1, 5)])
    promoted.alter([UpdateColumnType(("id",), "BIGINT")])
    (row,) = column_rows(promoted)
    assert row[4:6] == ("-1", "5")


def test_of_a_column_that_came_later_older_files_hold_nulls() -> None:
    table = table_in()
    table.append([counted("a", None, 1, 4)])
    table.alter([AddColumn(("more",), "INT")])
    assert column_rows(table) == [
        ("day=__DEFAULT_PARTITION__", "id", 4, 0, "1", "4", True),
        ("day=__DEFAULT_PARTITION__", "more", 4, 4, None, None, True),
    ]


def test_a_branch_has_its_own_columns_and_main_has_them_after_a_fast_forward() -> None:
    table = table_in()
    table.append([counted("a", None, 1, 4)])
    table.create_branch("audit")
    branch = table.branch("audit")
    branch.append([counted("b", None, 9, 9)])

    (there,) = column_statistics_at(table, branch.at()).to_pylist()
    assert (there["lower"], there["upper"], there["value_count"]) == ("1", "9", 5)
    assert [row[5] for row in column_rows(table)] == ["4"]

    branch.fast_forward()
    assert [row[5] for row in column_rows(table)] == ["9"]
    rows = column_statistics_by_snapshot(table, table.at()).to_pylist()
    assert [(each["snapshot_id"], each["upper"]) for each in rows] == [(1, "4"), (2, "9")]


@pytest.mark.parametrize("seed", some(range(4), 2))
def test_every_snapshot_has_the_columns_of_the_table_at_it(seed: int) -> None:
    rng = random.Random(seed)
    table = table_in()
    for step in range(24):
        live = [each.path for each in table.at().files]
        if step and live and rng.random() < 0.3:
            table.delete_files(rng.sample(live, rng.randint(1, min(3, len(live)))))
        elif step > 3 and rng.random() < 0.15:
            table.rollback(snapshot=rng.randint(1, table.state.last_snapshot_id))
        else:
            low = rng.randint(-50, 50)
            table.append(
                counted(f"{step}-{n}", rng.choice(DAYS), low, low + n, nulls=rng.randint(0, 2))
                for n in range(rng.randint(1, 4))
            )
    at = table.at()

    rows = column_statistics_by_snapshot(table, at).to_pylist()

    for snapshot in range(1, at.state.last_snapshot_id + 1):
        newest: dict[tuple[str, str], dict[str, Any]] = {}
        for each in rows:
            if each["snapshot_id"] <= snapshot:
                newest[each["partition"], each["column"]] = each
        found = sorted(
            (key, *(each[name] for name in ("value_count", "null_count", "lower", "upper")))
            for key, each in newest.items()
            if each["file_count"]
        )
        wanted = sorted(
            ((row[0], row[1]), *row[2:6]) for row in column_rows(table, snapshot=snapshot)
        )
        assert found == wanted


def test_the_command_line_shows_columns_at_instants_and_at_every_snapshot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from ledger.cli import main

    table = table_in(str(tmp_path))
    table.append([counted("a", DAYS[0], 1, 4)])
    table.append([counted("b", DAYS[1], 5, 6, nulls=1)])
    line = ["stats", "shop.orders", "--ledger", str(tmp_path), "--columns"]

    assert main([*line, "--output", "json"]) == 0
    found = json.loads(capsys.readouterr().out)["columns"]
    assert [(each["partition"], each["upper"]) for each in found] == [
        ("day=2024-01-01", "4"),
        ("day=2024-01-02", "6"),
    ]
    assert main([*line, "--output", "jsonl"]) == 0
    assert [*map(json.loads, capsys.readouterr().out.splitlines())] == found
    assert main([*line, "--history"]) == 0
    assert "day=2024-01-02" in capsys.readouterr().out
    assert main([*line, "--partition", "day=2024-01-03"]) != 0
    assert "no file was ever in partition day=2024-01-03" in capsys.readouterr().err
