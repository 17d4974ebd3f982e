"""Statistics that are published for other people's readers, and what stands where afterwards."""

from __future__ import annotations

import io
import json
import random
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import ledger
from ledger import (
    AddColumn,
    DropColumn,
    FileChange,
    InvalidInputError,
    Schema,
    Table,
    UnsupportedError,
)
from ledger.model.errors import NotFoundError
from ledger.stores import Store
from ledger.transforms import bucket
from projections.iceberg import materialise as iceberg
from projections.iceberg.names import Names
from projections.materialisation import outputs_of
from projections.paimon import materialise as paimon
from projections.paimon.statistics_file import statistics_from_json
from projections.statistics import Kept, publish_iceberg, publish_paimon
from projections.statistics.published import Published
from projections.statistics.views import document, every_snapshot, snapshot_statistics
from tests.lakes import lake_on, memory, no_time
from tests.projections.statistics import lives as tables


def a_table(store: Store | None = None, options: Mapping[str, str] | None = None) -> Table:
    lake = lake_on(store or memory(), patience=no_time())
    lake.create_database("shop")
    columns = {"id": "BIGINT", "day": "DATE", "price": "DECIMAL(9, 2)", "name": "STRING"}
    schema = Schema.of(columns, partition_keys=["day"], options=options)
    return lake.create_table("shop.orders", schema)


def a_file(path: str, day: str | None = "2024-01-01", **more: object) -> FileChange:
    given = {"record_count": 5, "file_size_in_bytes": 50, "creation_time": 100, **more}
    partition = more.pop("partition", (day,))
    given.pop("partition", None)
    return FileChange(path=f"{path}.parquet", partition=partition, field_ids=True, **given)  # type: ignore[arg-type]


def published(table: Table, **at: int) -> Published:
    return publish_iceberg.publish(table, Kept.of(table.log), table.at(**at))  # type: ignore[arg-type]


def metadata(table: Table) -> dict[str, object]:
    version = int(outputs_of(table).read("metadata/version-hint.text") or b"-1")
    body = outputs_of(table).read(f"metadata/v{version}.metadata.json")
    assert body is not None
    found: dict[str, object] = json.loads(body)
    return found


def rows(table: Table, path: str) -> list[dict[str, object]]:
    body = outputs_of(table).read(path)
    assert body is not None
    found: list[dict[str, object]] = parquet.read_table(io.BytesIO(body)).to_pylist()
    return found


def test_the_metadata_names_a_snapshots_file_and_its_size() -> None:
    table = a_table()
    table.append([a_file("a"), a_file("b", None)])
    table.append([a_file("c")])

    found = published(table)

    body = outputs_of(table).read(found.path)
    assert body is not None
    assert metadata(table)["partition-statistics"] == [
        {
            "snapshot-id": 2,
            "statistics-path": f"{table.location}/{found.path}",
            "file-size-in-bytes": len(body),
        }
    ]
    assert found.is_new
    assert found.version == table.state.version
    assert found.path == Names(table.state.table_id).partition_statistics(2)
    assert [(each["partition"], each["data_file_count"]) for each in rows(table, found.path)] == [
        ({"day": None}, 1),
        ({"day": pa.scalar(19_723, pa.date32()).as_py()}, 2),
    ]


def test_every_row_says_when_its_partition_changed_last() -> None:
    table = a_table()
    table.append([a_file("a"), a_file("b", None)])
    table.append([a_file("c")])

    found = rows(table, published(table).path)

    moments = {}
    for number in (1, 2):
        snapshot = table.at(snapshot=number).snapshot
        assert snapshot is not None
        moments[number] = snapshot.time_millis
    assert [(each["last_updated_snapshot_id"], each["last_updated_at"]) for each in found] == [
        (1, moments[1]),
        (2, moments[2]),
    ]
    table.expire_snapshots(before=2)
    table.append([a_file("d")])
    assert rows(table, published(table).path)[0]["last_updated_at"] is None


def test_publishing_again_writes_nothing() -> None:
    table = a_table()
    table.append([a_file("a")])
    first = published(table)

    second = published(table)

    assert not second.is_new
    assert (second.path, second.version) == (first.path, first.version)


def test_a_file_that_was_lost_is_written_again() -> None:
    table = a_table()
    table.append([a_file("a")])
    found = published(table)
    before = rows(table, found.path)
    outputs_of(table).remove(found.path)

    assert not published(table).is_new
    assert rows(table, found.path) == before


def test_a_publisher_that_died_before_its_event_leaves_a_file_that_the_next_one_takes() -> None:
    table = a_table()
    table.append([a_file("a")])
    path = Names(table.state.table_id).partition_statistics(1)
    outputs_of(table).put(path, b"what another version of Parquet's library wrote")

    assert published(table).is_new
    assert table.state.partition_statistics[1].file_size_in_bytes == 47


def test_any_snapshot_that_can_be_read_gets_a_file_of_its_own() -> None:
    table = a_table()
    for name in "abcd":
        table.append([a_file(name)])
    table.create_tag("two", snapshot=2)
    table.expire_snapshots(before=3)

    counts = {number: rows(table, published(table, snapshot=number).path) for number in (2, 3, 4)}

    assert {n: [each["data_file_count"] for each in found] for n, found in counts.items()} == {
        2: [2],
        3: [3],
        4: [4],
    }
    named = metadata(table)["partition-statistics"]
    assert isinstance(named, list)
    assert [each["snapshot-id"] for each in named] == [2, 3, 4]
    with pytest.raises(NotFoundError, match="cannot be read"):
        published(table, version=1)


def test_the_same_log_gives_the_same_metadata_wherever_it_is_projected() -> None:
    table = a_table()
    table.append([a_file("a")])
    published(table)
    table.append([a_file("b")])
    published(table)
    iceberg.project(table)

    wanted = iceberg.expected(table)

    outputs = outputs_of(table)
    assert {path: outputs.read(path) for path in wanted} == wanted
    found = iceberg.verify(table)
    assert found.is_empty
    assert found.foreign == ()


def test_statistics_go_with_their_snapshot() -> None:
    table = a_table()
    table.append([a_file("a")])
    first = published(table)
    table.append([a_file("b")])
    second = published(table)

    table.expire_snapshots(before=2)
    iceberg.project(table)

    assert outputs_of(table).read(first.path) is None
    assert outputs_of(table).read(second.path) is not None
    named = metadata(table)["partition-statistics"]
    assert isinstance(named, list)
    assert [each["snapshot-id"] for each in named] == [2]
    assert iceberg.verify(table).foreign == ()


def test_statistics_that_came_and_went_unprojected_are_taken_away_too() -> None:
    table = a_table()
    table.append([a_file("a")])
    path = Names(table.state.table_id).partition_statistics(1)
    outputs_of(table).put(path, b"x")
    table.set_partition_statistics(1, path, 1)
    table.append([a_file("b")])
    table.expire_snapshots(before=2)

    iceberg.project(table)

    assert outputs_of(table).read(path) is None


@pytest.mark.parametrize("seed", range(6))
def test_what_stands_on_the_store_is_what_the_log_names_however_publications_came_about(
    seed: int,
) -> None:
    rng = random.Random(seed)
    table = tables.a_table()
    life = tables.Life(table, seed)
    for _ in range(12):
        life.goes_on(rng.randrange(4))
        state = table.state
        readable = [each for each in range(1, state.last_snapshot_id + 1) if state.reachable(each)]
        if readable and rng.random() < 0.6:
            published(table, snapshot=rng.choice(readable))
        if readable and rng.random() < 0.3:
            table.create_tag(f"t{state.version}", snapshot=rng.choice(readable))
        if state.tags and rng.random() < 0.3:
            table.delete_tag(rng.choice(sorted(state.tags)))
    iceberg.project(table)

    outputs, wanted = outputs_of(table), iceberg.expected(table)
    named = {each.path for each in table.state.partition_statistics.values()}
    assert named
    assert set(outputs.paths("metadata")) >= wanted.keys() | named
    assert {each for each in outputs.paths("metadata") if each.endswith("parquet")} == named
    assert {path: outputs.read(path) for path in wanted} == wanted
    assert iceberg.verify(table).foreign == ()
    for snapshot_id, file in table.state.partition_statistics.items():
        assert table.state.reachable(snapshot_id)
        assert len(outputs.read(file.path) or b"") == file.file_size_in_bytes


def test_a_file_covers_every_spec() -> None:
    table = a_table()
    table.append([a_file("a")])
    table.update_spec().add_field(bucket("id", 4)).commit()
    table.append([a_file("b", partition=("2024-01-01", 3), spec_id=1)])

    found = rows(table, published(table).path)

    day = pa.scalar(19_723, pa.date32()).as_py()
    assert [(each["spec_id"], each["partition"]) for each in found] == [
        (0, {"day": day, "id_bucket_4": None}),
        (1, {"day": day, "id_bucket_4": 3}),
    ]


def test_a_partition_field_of_a_dropped_column_keeps_its_type() -> None:
    table = a_table(options={"ledger.formats": "iceberg"})
    table.update_spec().add_field(bucket("id", 4)).add_field("price").commit()
    table.append([a_file("a", partition=("2024-01-01", 3, "1.25"), spec_id=1)])
    table.update_spec().remove_field("price").commit()
    table.alter([DropColumn(("price",))])
    table.append([a_file("b", partition=("2024-01-01", 3), spec_id=2)])

    found = [each["partition"] for each in rows(table, published(table).path)]

    day = pa.scalar(19_723, pa.date32()).as_py()
    assert found == [
        {"day": day, "id_bucket_4": 3, "price": None},
        {"day": day, "id_bucket_4": 3, "price": Decimal("1.25")},
    ]


def test_two_partition_fields_of_one_name_stay_two_columns() -> None:
    table = a_table()
    table.update_spec().add_field(bucket("id", 4), name="b").commit()
    table.append([a_file("a", partition=("2024-01-01", 3), spec_id=1)])
    table.update_spec().remove_field("b").commit()
    table.update_spec().add_field(bucket("id", 8), name="b").commit()
    table.append([a_file("b", partition=("2024-01-01", 7), spec_id=2)])

    found = [each["partition"] for each in rows(table, published(table).path)]

    day = pa.scalar(19_723, pa.date32()).as_py()
    assert found == [
        {"day": day, "b_1001": None, "b_1002": 7},
        {"day": day, "b_1001": 3, "b_1002": None},
    ]


def test_what_is_no_iceberg_table_or_has_no_snapshot_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="no snapshot yet"):
        published(a_table())
    table = a_table(options={"ledger.formats": "paimon"})
    table.append([a_file("a")])
    with pytest.raises(UnsupportedError, match="not declared to be an Iceberg table"):
        published(table)


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

    found = publish_paimon.publish(table)

    snapshot = table.state.snapshot
    assert snapshot is not None
    assert (snapshot.id, snapshot.commit_kind, snapshot.delta_record_count) == (2, "ANALYZE", 0)
    assert found.path == f"statistics/{snapshot.statistics}"
    body = outputs_of(table).read(found.path)
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
    projected = json.loads(outputs_of(table).read("snapshot/snapshot-2") or b"")
    assert (projected["commitKind"], projected["statistics"]) == ("ANALYZE", snapshot.statistics)
    assert paimon.verify(table).is_empty


def test_what_was_analysed_is_not_analysed_again_until_something_changes() -> None:
    table = a_table()
    table.append([counted("a", "2024-01-01", 3, 9)])
    first = publish_paimon.publish(table)
    version = table.state.version

    again = publish_paimon.publish(table)
    assert (again.path, again.snapshot_id, again.is_new) == (first.path, 1, False)
    assert table.state.version == version

    table.append([counted("b", None, 3, 9)])
    second = publish_paimon.publish(table)
    assert (second.snapshot_id, second.is_new) == (3, True)
    table.alter([AddColumn(("extra",), "INT")])
    third = publish_paimon.publish(table)
    assert (third.snapshot_id, third.is_new) == (4, True)
    body = outputs_of(table).read(third.path)
    assert body is not None
    assert statistics_from_json(body).schema_id == 1


def test_two_who_analyse_at_once_commit_one_snapshot() -> None:
    store = memory()
    table = a_table(store)
    table.append([counted("a", "2024-01-01", 3, 9)])
    other = lake_on(store).table("shop.orders")
    assert other.state == table.state

    publish_paimon.publish(table)
    plan_of_the_other = publish_paimon.publish(other)

    assert table.state.last_snapshot_id == 2
    assert not plan_of_the_other.is_new


def test_a_partition_that_says_nothing_leaves_a_column_unknown() -> None:
    table = a_table()
    table.append([counted("a", "2024-01-01", 3, 9), a_file("b", None)])

    statistics = publish_paimon.table_statistics(table.at(), 1)

    assert statistics.columns == {}
    assert statistics.merged_record_count == 10


def test_a_partition_of_nulls_alone_takes_no_bounds_away() -> None:
    table = a_table()
    nulls = a_file("b", None, value_counts={0: 5}, null_value_counts={0: 5})
    table.append([counted("a", "2024-01-01", 3, 9), nulls])

    found = publish_paimon.table_statistics(table.at(), 1).columns

    assert list(found) == ["id"]
    assert (found["id"].min, found["id"].max, found["id"].null_count) == ("3", "9", 5)


def test_what_only_an_engine_knows_is_not_analysed() -> None:
    table = a_table(options={"ledger.formats": "iceberg"})
    table.append([a_file("a")])
    with pytest.raises(UnsupportedError, match="not declared to be a Paimon table"):
        publish_paimon.publish(table)
    with pytest.raises(InvalidInputError, match="no snapshot yet"):
        publish_paimon.publish(a_table())
    table = a_table()
    table.append([a_file("a"), a_file("d", content="position-deletes")])
    with pytest.raises(UnsupportedError, match="compact it first"):
        publish_paimon.publish(table)


def test_every_snapshot_says_what_it_adds_in_the_spelling_of_paimons_commits() -> None:
    table = a_table()
    table.append([a_file("a"), a_file("b", None)])
    table.overwrite([a_file("c")], where={"day": "2024-01-01"})
    table.delete_files(["b.parquet"])
    kept = Kept.of(table.log)

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
    kept = Kept.of(table.log)

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
