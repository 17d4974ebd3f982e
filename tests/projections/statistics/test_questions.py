"""The questions of `lakeledger stats --ask`, on a table whose answers are known by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, get_args

import pytest
from msgspec.structs import replace

from ledger import FileChange, InvalidInputError, Schema, SetOption, SnapshotPlan, Table
from ledger.table_handle import handle_of
from ledger.transforms import day, hour, month, year
from projections.statistics import Kept
from projections.statistics.questions import Question, Thresholds, answer
from tests.lakes import lake_on, memory

if TYPE_CHECKING:
    from pathlib import Path


DAY = 86_400_000
TRANSFORMS = {"year": year, "month": month, "day": day, "hour": hour}
FIRST_DAY = 20_000
"""2024-10-04, in days since 1970."""


def a_file(name: str, day: str, size: int, records: int = 10) -> FileChange:
    return FileChange(
        path=f"{name}.parquet",
        partition=(day,),
        record_count=records,
        file_size_in_bytes=size,
        field_ids=True,
    )


def a_table(store: Any = None) -> Table:
    """Return a table that got files on three days; the second day's went a day later."""
    moments: Iterator[int] = iter(range(FIRST_DAY * DAY, 2**60, 1))
    skipped = [0]
    lake = lake_on(store or memory(), clock=lambda: next(moments) + skipped[0] * DAY)
    lake.create_database("shop")
    schema = Schema.of({"id": "BIGINT", "day": "DATE"}, partition_keys=["day"])
    table = lake.create_table("shop.orders", schema)
    table.append([a_file(f"a{each}", "2024-10-04", 10) for each in range(5)])
    table.append([a_file("b0", "2024-10-05", 100), a_file("b1", "2024-10-05", 100)])
    skipped[0] = 3
    table.append([a_file("c0", "2024-10-06", 300, records=1)])
    skipped[0] = 7
    table.append([a_file("c1", "2024-10-06", 100, records=1)])
    table.overwrite([], where={"day": "2024-10-05"})
    return table


def asked(table: Table, question: Question, **bounds: Any) -> list[dict[str, Any]]:
    given = Thresholds(now_millis=(FIRST_DAY + 10) * DAY, **bounds)
    rows = answer(question, Kept.of(handle_of(table).log), handle_of(table).log, table.at(), given)
    found: list[dict[str, Any]] = rows.to_pylist()
    return found


def test_days_of_imported_history_are_those_on_which_it_happened() -> None:
    lake = lake_on(memory(), clock=lambda: (FIRST_DAY + 9) * DAY)
    lake.create_database("shop")
    schema = Schema.of({"id": "BIGINT", "day": "DATE"}, partition_keys=["day"])
    table = lake.create_table("shop.orders", schema, effective_time=FIRST_DAY * DAY)
    for number in (1, 2):
        file = a_file(str(number), f"2024-10-0{4 + number}", 10)
        table.append([file], effective_time=(FIRST_DAY + number) * DAY)

    assert [row["day"] for row in asked(table, "growth")] == ["2024-10-05", "2024-10-06"]
    assert [row["untouched_days"] for row in asked(table, "untouched", untouched_days=0)] == [9, 8]


def test_small_files_skew_and_what_a_compaction_would_gain() -> None:
    rows = asked(a_table(), "compaction", target_file_size=150)

    assert [tuple(row.values()) for row in rows] == [
        ("day=2024-10-04", 5, 50, 10, 0.22, 1, 4),
        # Two files of 200 bytes on average are not fewer at 150 each.
        ("day=2024-10-06", 2, 400, 200, 1.78, 2, 0),
    ]


def test_a_compaction_gains_nothing_by_files_of_deletes() -> None:
    table = a_table()
    table.alter([SetOption("ledger.formats", "iceberg")])
    deletes = a_file("gone", "2024-10-06", 90_000, records=3)
    table.append([replace(deletes, content="position-deletes")])

    rows = asked(table, "compaction", target_file_size=150)

    assert [tuple(row.values())[1:] for row in rows] == [
        (5, 50, 10, 0.22, 1, 4),
        (2, 400, 200, 1.78, 2, 0),
    ]


def test_growth_has_a_row_for_each_day_with_snapshots() -> None:
    rows = asked(a_table(), "growth")

    assert [tuple(row.values()) for row in rows] == [
        ("2024-10-04", 2, 70, 7, 250, 70, 7, 250),
        ("2024-10-07", 1, 1, 1, 300, 71, 8, 550),
        ("2024-10-11", 2, -19, -1, -100, 52, 7, 450),
    ]


def test_partitions_that_no_commit_has_changed_for_some_days() -> None:
    table = a_table()

    assert [row["partition"] for row in asked(table, "untouched", untouched_days=2)] == [
        "day=2024-10-04",
        "day=2024-10-06",
    ]
    (row,) = asked(table, "untouched", untouched_days=9)
    assert (row["partition"], row["untouched_days"], row["last_change_version"]) == (
        "day=2024-10-04",
        9,
        1,
    )
    assert row["last_change"].startswith("2024-10-04T00:00:00")
    assert asked(table, "untouched", untouched_days=10) == []


def test_rows_that_come_after_their_day_are_late_and_a_compaction_brings_none() -> None:
    table = a_table()
    at = table.state.version
    (row,) = asked(table, "late")
    assert tuple(row.values()) == (
        "day=2024-10-06",
        "2024-10-07T00:00:00+00:00",
        row["newest_arrival"],
        4,
        1,
        1,
        1,
        100,
    )
    assert row["newest_arrival"].startswith("2024-10-11T00:00:00")
    assert [each["late_record_count"] for each in asked(table, "late", late_days=0)] == [2]
    assert asked(table, "late", late_days=5) == []

    gone = [each.path for each in table.at().files if each.partition == ("2024-10-06",)]
    one = a_file("compacted", "2024-10-06", 400, records=2)
    table.commit_snapshot(SnapshotPlan("COMPACT", (one,), delete=tuple(gone)))
    assert table.state.version == at + 1
    assert [each["late_record_count"] for each in asked(table, "late", late_days=0)] == [2]


@pytest.mark.parametrize(
    ("kind", "transform", "value", "ended"),
    [
        ("DATE", "identity", "2024-10-04", "2024-10-05T00:00:00+00:00"),
        ("STRING", "identity", "20241004", "2024-10-05T00:00:00+00:00"),
        ("TIMESTAMP(6)", "identity", "2024-10-04T12:00:00", "2024-10-04T12:00:00+00:00"),
        ("TIMESTAMP(6)", "day", "2024-10-04", "2024-10-05T00:00:00+00:00"),
        ("TIMESTAMP(6)", "hour", 24 * FIRST_DAY + 5, "2024-10-04T06:00:00+00:00"),
        ("DATE", "month", 54 * 12 + 11, "2025-01-01T00:00:00+00:00"),
        ("DATE", "year", 54, "2025-01-01T00:00:00+00:00"),
    ],
)
def test_the_time_of_a_partition_is_over_when_its_field_says(
    kind: str, transform: str, value: Any, ended: str
) -> None:
    lake = lake_on(memory(), clock=lambda: (FIRST_DAY + 500) * DAY)
    lake.create_database("shop")
    keys = ["at"] if transform == "identity" else []
    options = {"ledger.formats": "iceberg"}
    schema = Schema.of({"id": "BIGINT", "at": kind}, partition_keys=keys, options=options)
    table = lake.create_table("shop.t", schema)
    if transform != "identity":
        table.update_spec().add_field(TRANSFORMS[transform]("at")).commit()
    table.append([replace(a_file("a", value, 10), spec_id=table.state.specs[-1].spec_id)])

    (row,) = asked(table, "late")
    assert row["ended"] == ended


def test_nothing_is_late_where_no_partition_is_of_a_time() -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    table = lake.create_table("shop.t", Schema.of({"id": "BIGINT"}, partition_keys=["id"]))
    with pytest.raises(InvalidInputError, match="partition by day"):
        asked(table, "late")


def test_a_retention_frees_what_only_older_snapshots_read() -> None:
    table = a_table()
    # The second day's files went on the seventh day after; three days of snapshots miss them.
    assert asked(table, "retention", retained_days=30) == []
    assert [tuple(row.values()) for row in asked(table, "retention", retained_days=2)] == [
        ("day=2024-10-05", 2, 200, 20)
    ]

    table.create_tag("kept", snapshot=2)
    assert asked(table, "retention", retained_days=2) == []
    table.delete_tag("kept")
    table.create_branch("audit", snapshot=2)
    assert asked(table, "retention", retained_days=2) == []
    table.branch("audit").delete()
    table.expire_snapshots(before=table.state.last_snapshot_id)
    assert asked(table, "retention", retained_days=0) == []


def test_a_retention_frees_no_rows_by_files_of_deletes() -> None:
    table = a_table()
    table.alter([SetOption("ledger.formats", "iceberg")])
    deletes = replace(a_file("gone", "2024-10-04", 7, records=3), content="position-deletes")
    table.append([deletes])
    table.overwrite([], where={"day": "2024-10-04"})

    freed = {row["partition"]: row for row in asked(table, "retention", retained_days=2)}
    assert [*freed["day=2024-10-04"].values()][1:] == [6, 57, 50]


def test_a_filter_costs_what_its_spec_cannot_leave_out() -> None:
    table = a_table()
    (row,) = asked(table, "filter", where="day = DATE '2024-10-04'")
    assert (row["spec_id"], row["fields"], row["file_count"], row["files_read"]) == (0, "day", 7, 5)
    assert (row["left_out_by_partition"], row["read_size_in_bytes"]) == (2, 50)
    assert row["read_share"] == round(50 / 450, 4)
    (row,) = asked(table, "filter")
    assert row["files_read"] == 7


def test_a_table_without_files_has_no_answers() -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    table = lake.create_table("shop.empty", Schema.of({"id": "BIGINT"}))

    assert asked(table, "compaction") == asked(table, "growth") == asked(table, "untouched") == []


def test_files_of_no_size_are_rejected_as_a_target() -> None:
    with pytest.raises(InvalidInputError, match="give at least 1"):
        Thresholds(now_millis=0, target_file_size=0)


@pytest.mark.parametrize("question", get_args(Question))
def test_every_question_has_a_picture(question: Question, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from projections.statistics.report import draw_answer

    table = a_table()
    given = Thresholds(now_millis=(FIRST_DAY + 10) * DAY, untouched_days=0, retained_days=0)
    found = answer(question, Kept.of(handle_of(table).log), handle_of(table).log, table.at(), given)

    draw_answer(tmp_path / "a.png", question, "shop.orders", found)

    assert len(found)
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
