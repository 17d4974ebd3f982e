"""Statistics as Paimon's readers and its REST wire have them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

import ledger
from ledger import (
    AddColumn,
    FileChange,
    InvalidInputError,
    Schema,
    UnsupportedError,
)
from ledger.table_handle import handle_of
from projections.materialising import outputs_of
from projections.paimon import materialise as paimon
from projections.paimon import statistics_file as publish_paimon
from projections.paimon import statistics_from_json
from projections.paimon.statistics_file import PAIMON
from projections.statistics import Kept
from projections.statistics.analyze import Analysis
from projections.statistics.partition_views import document, every_snapshot, snapshot_statistics
from tests.lakes import lake_on, memory
from tests.projections.iceberg.older_logs import record_file
from tests.projections.statistics.publishing import a_file, a_table


def counted(path: str, day: str | None, low: int, high: int, nulls: int = 0) -> FileChange:
    def encoded(number: int) -> str:
        return number.to_bytes(8, "little", signed=True).hex()

    def unscaled(number: int) -> str:
        return number.to_bytes(2, "big", signed=True).hex()

    return a_file(
        path,
        day,
        value_counts={0: 5, 2: 5, 3: 5},
        null_value_counts={0: nulls, 2: 0, 3: 1},
        lower_bounds={0: encoded(low), 2: unscaled(low), 3: b"a".hex()},
        upper_bounds={0: encoded(high), 2: unscaled(high), 3: b"z".hex()},
    )


def test_an_analyze_snapshot_names_what_was_found_out_about_the_one_before() -> None:
    table = a_table()
    table.append([counted("a", "2024-01-01", 3, 9, nulls=2), counted("b", None, -7, 4)])

    found = publish_paimon.publish(handle_of(table))

    snapshot = table.state.snapshot
    assert snapshot is not None
    assert (snapshot.id, snapshot.commit_kind, snapshot.delta_record_count) == (2, "ANALYZE", 0)
    assert found.path == f"statistics/{snapshot.statistics}"
    body = outputs_of(handle_of(table)).read(found.path)
    assert body is not None
    assert json.loads(body) == {
        "snapshotId": 1,
        "schemaId": 0,
        "mergedRecordCount": 10,
        "mergedRecordSize": 100,
        "colStats": {
            "id": {"colId": 0, "min": "-7", "max": "9", "nullCount": 2},
            "price": {"colId": 2, "min": "-0.07", "max": "0.09", "nullCount": 0},
            "name": {"colId": 3, "nullCount": 2},
        },
    }
    projected = json.loads(outputs_of(handle_of(table)).read("snapshot/snapshot-2") or b"")
    assert (projected["commitKind"], projected["statistics"]) == ("ANALYZE", snapshot.statistics)
    assert paimon.verify(handle_of(table)).is_empty


def test_a_distinct_count_is_published_with_bounds_and_nulls_or_not_at_all() -> None:
    table = a_table()
    table.append([counted("a", "2024-01-01", 3, 9, nulls=2)])
    ids = {each.name: each.id for each in table.state.schema.fields}
    distinct = {ids["id"]: 4, ids["day"]: 1, ids["name"]: 3}

    found = publish_paimon.table_statistics(handle_of(table), table.at(), 1, distinct).columns

    assert (found["id"].distinct_count, found["id"].null_count) == (4, 2)
    assert (found["id"].min, found["id"].max) == ("3", "9")
    # Spark's cost model needs no bounds of a text, and takes a date without them for NULL.
    assert (found["name"].distinct_count, found["name"].min) == (3, None)
    assert "day" not in found


def test_what_was_analysed_is_not_analysed_again_until_something_changes() -> None:
    table = a_table()
    table.append([counted("a", "2024-01-01", 3, 9)])
    first = publish_paimon.publish(handle_of(table))
    version = table.state.version

    again = publish_paimon.publish(handle_of(table))
    assert (again.path, again.snapshot_id, again.is_new) == (first.path, 1, False)
    assert table.state.version == version

    table.append([counted("b", None, 3, 9)])
    second = publish_paimon.publish(handle_of(table))
    assert (second.snapshot_id, second.is_new) == (3, True)
    table.alter([AddColumn(("extra",), "INT")])
    third = publish_paimon.publish(handle_of(table))
    assert (third.snapshot_id, third.is_new) == (4, True)
    body = outputs_of(handle_of(table)).read(third.path)
    assert body is not None
    assert statistics_from_json(body).schema_id == 1


def test_two_concurrent_analyses_commit_one_snapshot() -> None:
    store = memory()
    table = a_table(store)
    table.append([counted("a", "2024-01-01", 3, 9)])
    other = lake_on(store).table("shop.orders")
    assert other.state == table.state

    publish_paimon.publish(handle_of(table))
    plan_of_the_other = publish_paimon.publish(handle_of(other))

    assert table.state.last_snapshot_id == 2
    assert not plan_of_the_other.is_new


def test_a_partition_that_says_nothing_leaves_a_column_unknown() -> None:
    table = a_table()
    table.append([counted("a", "2024-01-01", 3, 9), a_file("b", None)])

    statistics = publish_paimon.table_statistics(handle_of(table), table.at(), 1)

    assert statistics.columns == {}
    assert statistics.merged_record_count == 10


def test_a_partition_of_nulls_alone_takes_no_bounds_away() -> None:
    table = a_table()
    nulls = a_file("b", None, value_counts={0: 5}, null_value_counts={0: 5})
    table.append([counted("a", "2024-01-01", 3, 9), nulls])

    found = publish_paimon.table_statistics(handle_of(table), table.at(), 1).columns

    assert list(found) == ["id"]
    assert (found["id"].min, found["id"].max, found["id"].null_count) == ("3", "9", 5)


def test_what_only_an_engine_knows_is_not_analysed() -> None:
    table = a_table(options={"ledger.formats": "iceberg"})
    table.append([a_file("a")])
    with pytest.raises(UnsupportedError, match="not declared to be a Paimon table"):
        publish_paimon.publish(handle_of(table))
    with pytest.raises(InvalidInputError, match="no snapshot yet"):
        publish_paimon.publish(handle_of(a_table()))
    table = a_table()
    record_file(table, a_file("d", content="position-deletes"))
    with pytest.raises(UnsupportedError, match="compact it first"):
        publish_paimon.publish(handle_of(table))


def test_every_snapshot_says_what_it_adds_in_the_spelling_of_paimons_commits() -> None:
    table = a_table()
    table.append([a_file("a"), a_file("b", None)])
    table.overwrite([a_file("c")], where={"day": "2024-01-01"})
    table.delete_files(["b.parquet"])
    kept = Kept.of(handle_of(table).log)

    found = dict(every_snapshot(table, kept))

    assert sorted(found) == [1, 2, 3]
    assert found[2] == snapshot_statistics(kept, table.at(snapshot=2))
    assert document("partition-statistics", kept, table.at()) == {
        "snapshotId": 3,
        "statistics": [
            {
                "spec": {"day": "__DEFAULT_PARTITION__"},
                "recordCount": -5,
                "fileSizeInBytes": -50,
                "fileCount": -1,
                "lastFileCreationTime": 100,
                "totalBuckets": -1,
            }
        ],
    }


def test_partitions_are_listed_as_the_dlf_api_lists_them_at_any_instant(tmp_path: Path) -> None:
    lake = ledger.open(str(tmp_path))
    lake.create_database("shop")
    schema = Schema.of({"id": "BIGINT", "day": "DATE"}, partition_keys=["day"])
    table = lake.create_table("shop.orders", schema)
    table.append([a_file(str(number), f"2024-01-{number:02d}") for number in range(1, 30)])
    table.delete_files(["3.parquet"])
    kept = Kept.of(handle_of(table).log)

    now = document("list-partitions", kept, table.at())["partitions"]
    then = document("list-partitions", kept, table.at(snapshot=1))["partitions"]

    assert (len(now), len(then)) == (28, 29)
    assert then[0] == {
        "spec": {"day": "19723"},
        "recordCount": 5,
        "fileSizeInBytes": 50,
        "fileCount": 1,
        "lastFileCreationTime": 100,
    }


def test_counts_of_another_snapshot_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    table = a_table()
    table.append([counted("a", "2024-01-01", 3, 9)])
    published: list[Mapping[int, int] | None] = []
    monkeypatch.setattr(publish_paimon, "publish", lambda _, distinct: published.append(distinct))
    at, kept = table.at(), Kept.of(handle_of(table).log)
    for snapshot_id in (at.state.last_snapshot_id, at.state.last_snapshot_id + 1):
        [
            *PAIMON.publish(
                handle_of(table),
                kept,
                at,
                Analysis(snapshot_id, {0: 7}, is_exact=True, read_count=1),
            )
        ]
    [*PAIMON.publish(handle_of(table), kept, at, None)]

    assert published == [{0: 7}, None, None]


def test_what_only_an_engine_could_count_is_rejected_before_anything_is_counted() -> None:
    lake = lake_on(memory())
    lake.create_database("d")
    keyed = lake.create_table("d.t", Schema.of({"id": "INT NOT NULL"}, primary_keys=["id"]))
    with pytest.raises(InvalidInputError, match="no snapshot yet"):
        PAIMON.check(handle_of(keyed), keyed.at(), None)
