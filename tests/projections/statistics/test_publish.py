"""Statistics that are published for Iceberg's readers, and what stands where afterwards."""

from __future__ import annotations

import random
from decimal import Decimal

import pyarrow as pa
import pytest

from ledger import (
    DropColumn,
    InvalidInputError,
    NotFoundError,
    UnsupportedError,
)
from ledger.table_handle import handle_of
from ledger.transforms import bucket
from projections.iceberg import Names
from projections.iceberg import materialise as iceberg
from projections.materialising import PendingDeletes, outputs_of
from tests.projections.statistics import lives as tables
from tests.projections.statistics.publishing import a_file, a_table, metadata, published, rows
from tests.thorough import some


def test_the_metadata_names_a_snapshots_file_and_its_size() -> None:
    table = a_table()
    table.append([a_file("a"), a_file("b", None)])
    table.append([a_file("c")])

    found = published(table)

    body = outputs_of(handle_of(table)).read(found.path)
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
    outputs_of(handle_of(table)).remove(found.path)

    assert not published(table).is_new
    assert rows(table, found.path) == before


def test_a_publisher_that_died_before_its_event_leaves_a_file_that_the_next_one_takes() -> None:
    table = a_table()
    table.append([a_file("a")])
    path = Names(table.state.table_id).partition_statistics(1)
    outputs_of(handle_of(table)).put(path, b"what another version of Parquet's library wrote")

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
    iceberg.project(handle_of(table))

    wanted = iceberg.expected(handle_of(table))

    outputs = outputs_of(handle_of(table))
    assert {path: outputs.read(path) for path in wanted} == wanted
    found = iceberg.verify(handle_of(table))
    assert found.is_empty
    assert found.foreign == ()


def test_statistics_go_with_their_snapshot() -> None:
    table = a_table()
    table.append([a_file("a")])
    first = published(table)
    table.append([a_file("b")])
    second = published(table)

    table.expire_snapshots(before=2)
    iceberg.project(handle_of(table))

    assert outputs_of(handle_of(table)).read(first.path) is None
    assert outputs_of(handle_of(table)).read(second.path) is not None
    named = metadata(table)["partition-statistics"]
    assert isinstance(named, list)
    assert [each["snapshot-id"] for each in named] == [2]
    assert iceberg.verify(handle_of(table)).foreign == ()


def test_statistics_that_came_and_went_unprojected_are_taken_away_too() -> None:
    table = a_table()
    table.append([a_file("a")])
    path = Names(table.state.table_id).partition_statistics(1)
    outputs_of(handle_of(table)).put(path, b"x")
    table.set_partition_statistics(1, path, 1)
    table.append([a_file("b")])
    table.expire_snapshots(before=2)

    iceberg.project(handle_of(table))

    assert outputs_of(handle_of(table)).read(path) is None


@pytest.mark.parametrize("seed", some(range(6), 2))
def test_the_store_holds_the_files_that_the_log_names_for_every_order_of_publications(
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
    iceberg.project(handle_of(table))

    outputs, wanted = outputs_of(handle_of(table)), iceberg.expected(handle_of(table))
    named = {each.statistics_path for each in table.state.partition_statistics.values()}
    assert named
    assert set(outputs.paths("metadata")) >= wanted.keys() | named
    stands = {each for each in outputs.paths("metadata") if each.endswith("parquet")}
    # What leaves stays for older readers.
    assert stands - PendingDeletes(handle_of(table), "iceberg").paths() == named
    assert {path: outputs.read(path) for path in wanted} == wanted
    assert iceberg.verify(handle_of(table)).foreign == ()
    for snapshot_id, file in table.state.partition_statistics.items():
        assert table.state.reachable(snapshot_id)
        assert len(outputs.read(file.statistics_path) or b"") == file.file_size_in_bytes


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


def test_what_is_no_iceberg_table_or_has_no_snapshot_is_rejected() -> None:
    with pytest.raises(InvalidInputError, match="no snapshot yet"):
        published(a_table())
    table = a_table(options={"ledger.formats": "paimon"})
    table.append([a_file("a")])
    with pytest.raises(UnsupportedError, match="not declared to be an Iceberg table"):
        published(table)
