"""Tables whose engine names manifest lists of its own: what pypaimon says of its own tables."""

from __future__ import annotations

import datetime as dt
import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from ledger import DamagedLogError, FileChange, Table, UnsupportedError
from ledger.locations import is_absolute
from ledger.table_handle import handle_of
from projections.paimon import PAIMON
from projections.statistics import Kept, entries, query, rebuild, refresh, verify
from projections.statistics.engine import estimate_new_entries
from projections.statistics.engine_files import EngineFiles
from projections.statistics.entries import Opening
from projections.statistics.partition_rendering import paimon_rendering_of
from projections.statistics.shares import LISTS_AS_ENTRIES
from projections.statistics.spark_executors import SparkEngine
from projections.statistics.spark_source import LogSource
from projections.statistics.tile_rows import scan_deltas
from tests.lakes import Elsewhere, memory
from tests.projections.statistics.lives import listed_partitions
from tests.projections.statistics.paimon_writer import (
    PaimonWriter,
    Partitions,
    Row,
    a_ledger_table,
    manifests_of,
    rows,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Seen = dict[int, Partitions]


def counted(table: Table, version: int | None = None, kept: Kept | None = None) -> Partitions:
    at = table.at(version=version)
    return {
        tuple(each.spec.values()): (each.record_count, each.file_size_in_bytes, each.file_count)
        for each in listed_partitions(
            kept or Kept.of(handle_of(table).log), at, paimon_rendering_of(at)
        )
    }


def version_of(table: Table, snapshot_id: int) -> int:
    found = query.totals(Kept.of(handle_of(table).log), table.at())
    return next(each.version for each in found if each.snapshot_id == snapshot_id)


def a_life(root: Path) -> tuple[PaimonWriter, Seen]:
    """Let pypaimon append and overwrite; return what it says of its partitions each time."""
    writer = PaimonWriter(a_ledger_table(root), root)
    seen: Seen = {}
    first, second = dt.date(2024, 1, 1), dt.date(2024, 1, 2)
    steps: tuple[tuple[list[Row], dict[str, Any] | None], ...] = (
        (rows(20), None),
        (rows(7, start=3), None),
        ([(1, first, "a")], {"day": first, "kind": "a"}),
        ([(1, None, None), (2, None, "b")], None),
        ([(5, second, "b"), (6, second, "b")], {"day": second, "kind": "b"}),
        (rows(9, start=1), None),
    )
    for written, overwrite in steps:
        writer.write(written, overwrite)
        seen[writer.table.state.last_snapshot_id] = writer.partitions()
    return writer, seen


def test_every_snapshot_counts_what_pypaimon_counts(tmp_path: Path) -> None:
    writer, seen = a_life(tmp_path)
    table = writer.table

    assert len({str(each) for each in seen.values()}) == len(seen) == 6
    for snapshot_id, wanted in seen.items():
        assert counted(table, version_of(table, snapshot_id)) == wanted
    last = query.totals(Kept.of(handle_of(table).log), table.at())[-1]
    assert last.record_count == writer.snapshot(6)["totalRecordCount"]

    refresh(handle_of(table).log)
    assert verify(handle_of(table).log).is_empty
    assert counted(table) == seen[6]


def test_incremental_is_full(tmp_path: Path) -> None:
    table = a_ledger_table(tmp_path)
    writer = PaimonWriter(table, tmp_path)
    for step in range(5):
        writer.write(rows(4 + step, start=step))
        refresh(handle_of(table).log)
        assert counted(table) == writer.partitions()
    assert verify(handle_of(table).log).is_empty


def listed(name: str, records: int, day: str | None = "2024-01-01") -> FileChange:
    return FileChange(
        path=f"{name}.parquet",
        partition=(day, "a"),
        record_count=records,
        file_size_in_bytes=records * 100,
        creation_time=5,
    )


def plus(before: Partitions, key: tuple[str, ...], more: tuple[int, int, int]) -> Partitions:
    found = dict(before)
    old = found.pop(key, (0, 0, 0))
    new = tuple(one + other for one, other in zip(old, more, strict=True))
    return {**found, key: new} if any(new) else found  # type: ignore[dict-item]  # three of them


ONE_DAY = ("19723", "a")


def mixed_life(root: Path) -> tuple[Table, Seen]:
    """Return a table that ledger and engine write, and what is right after each snapshot."""
    table = a_ledger_table(root)
    table.append([listed("first", 3), listed("second", 4)])
    seen: Seen = {1: {ONE_DAY: (7, 700, 2)}}
    # pypaimon goes on from the files that the ledger projects.
    PAIMON.project(handle_of(table))
    writer = PaimonWriter(table, root, exists=True)
    for snapshot_id in (2, 3):
        writer.write(rows(12))
        seen[snapshot_id] = writer.partitions()
    writer.write([(1, dt.date(2024, 1, 1), "a")], {"day": dt.date(2024, 1, 1), "kind": "a"})
    seen[4] = writer.partitions()
    table.append([listed("third", 5)])
    seen[5] = plus(seen[4], ONE_DAY, (5, 500, 1))
    table.append([listed("fourth", 6)])
    seen[6] = plus(seen[5], ONE_DAY, (6, 600, 1))
    for target in (3, 1, 5, 4, 8, 2, 6):
        table.rollback(snapshot=target)
        seen[table.state.last_snapshot_id] = seen[target]
    return table, seen


def test_the_ledger_and_an_engine_write_one_table_and_roll_it_back(tmp_path: Path) -> None:
    table, seen = mixed_life(tmp_path)

    assert seen[2][ONE_DAY][2] == 3
    assert seen[4][ONE_DAY][0] == 1
    assert len(seen) == 13
    for snapshot_id, wanted in seen.items():
        assert counted(table, version_of(table, snapshot_id)) == wanted, snapshot_id


def test_a_rollback_names_only_the_partitions_that_it_changed(tmp_path: Path) -> None:
    table = a_ledger_table(tmp_path)
    writer = PaimonWriter(table, tmp_path)
    writer.write(rows(12))
    writer.write([(1, dt.date(2024, 1, 2), "b")])
    table.rollback(snapshot=1)

    found = query.partition_deltas(Kept.of(handle_of(table).log), table.at())

    assert [(dict(each.spec)["kind"], each.file_count) for each in found] == [("b", -1)]
    assert found[0].record_count == -1


def test_both_engines_count_the_same(spark: SparkSession, tmp_path: Path) -> None:
    table, _ = mixed_life(tmp_path)

    refresh(handle_of(table).log, SparkEngine(spark, LogSource.of(table)))

    assert verify(handle_of(table).log).is_empty
    assert Kept.of(handle_of(table).log).position.version == table.state.version


def test_counting_begins_with_an_opening(tmp_path: Path) -> None:
    table, _ = mixed_life(tmp_path)
    opening = Opening(version_of(table, 5), 5)

    rows = pa.concat_tables(scan_deltas(handle_of(table).log, 0, table.state.version, opening))

    assert min(rows["snapshot_id"].to_pylist()) == 5


def test_many_manifests_are_read_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, seen = mixed_life(tmp_path)
    monkeypatch.setattr(entries, "_MANIFESTS_A_BATCH", 0)

    for snapshot_id, wanted in seen.items():
        assert counted(table, version_of(table, snapshot_id)) == wanted, snapshot_id


def expired(root: Path, *, before: int) -> tuple[PaimonWriter, Seen]:
    writer, seen = a_life(root)
    writer.forget_before(before)
    writer.table.expire_snapshots(before=before)
    return writer, seen


def test_statistics_begin_where_manifest_lists_can_be_read(tmp_path: Path) -> None:
    writer, seen = expired(tmp_path, before=4)
    table = writer.table

    assert counted(table) == seen[6]
    totals = query.totals(Kept.of(handle_of(table).log), table.at())
    assert [each.snapshot_id for each in totals] == [4, 5, 6]
    for snapshot_id in (4, 5, 6):
        assert counted(table, version_of(table, snapshot_id)) == seen[snapshot_id]

    position = refresh(handle_of(table).log)

    assert position.opening is not None
    assert position.opening.snapshot_id == 4
    assert counted(table) == seen[6]
    assert verify(handle_of(table).log).is_empty


def test_what_was_counted_before_its_lists_expired_is_kept_and_is_no_damage(tmp_path: Path) -> None:
    writer, seen = a_life(tmp_path)
    table = writer.table
    refresh(handle_of(table).log)
    whole = query.totals(Kept.of(handle_of(table).log), table.at())
    writer.forget_before(4)
    table.expire_snapshots(before=4)
    refresh(handle_of(table).log)

    assert query.totals(Kept.of(handle_of(table).log), table.at()) == whole
    assert counted(table) == seen[6]
    assert verify(handle_of(table).log).is_empty
    writer.write(rows(3))
    assert refresh(handle_of(table).log).opening is None
    assert counted(table) == writer.partitions()
    assert verify(handle_of(table).log).is_empty


def test_snapshots_that_expired_uncounted_are_counted_as_one(tmp_path: Path) -> None:
    table = a_ledger_table(tmp_path)
    writer = PaimonWriter(table, tmp_path)
    writer.write(rows(20))
    refresh(handle_of(table).log)
    for step in range(4):
        writer.write(rows(4, start=step))
    writer.write([(1, dt.date(2024, 1, 1), "a")], {"day": dt.date(2024, 1, 1), "kind": "a"})
    writer.forget_before(4)
    table.expire_snapshots(before=4)

    # Without a refresh, and with one.
    assert counted(table) == writer.partitions()
    position = refresh(handle_of(table).log)

    assert position.opening is not None
    assert position.opening.snapshot_id == 4
    assert counted(table) == writer.partitions()
    totals = query.totals(Kept.of(handle_of(table).log), table.at())
    assert [(each.snapshot_id, each.record_count) for each in totals][:2] == [(1, 20), (4, 32)]
    assert verify(handle_of(table).log).is_empty


def test_kept_statistics_that_cannot_be_recomputed_begin_anew(tmp_path: Path) -> None:
    writer, seen = a_life(tmp_path)
    table = writer.table
    refresh(handle_of(table).log)
    writer.forget_before(4)
    table.expire_snapshots(before=4)
    position = refresh(handle_of(table).log)
    oldest = f"{handle_of(table).path}/_ledger/statistics/{position.files[-1]}"
    handle_of(table).log.store.replace(oldest, b"torn")

    with pytest.raises(DamagedLogError, match="lakeledger stats TABLE --rebuild"):
        counted(table)
    assert position.files[-1] in verify(handle_of(table).log).changed
    rebuild(handle_of(table).log)

    assert counted(table) == seen[6]
    assert verify(handle_of(table).log).is_empty
    totals = query.totals(Kept.of(handle_of(table).log), table.at())
    assert [each.snapshot_id for each in totals] == [4, 5, 6]


def test_kept_statistics_that_do_not_add_up_to_what_the_lists_say_are_wrong(tmp_path: Path) -> None:
    writer, seen = a_life(tmp_path)
    table = writer.table
    refresh(handle_of(table).log)
    writer.forget_before(4)
    table.expire_snapshots(before=4)
    position = refresh(handle_of(table).log)
    kept = Kept.of(handle_of(table).log)
    tile = kept.position.tiles[-1]
    rows_kept = kept.tile(tile)
    # What can be computed again is right: only the sum at the opening tells.
    is_old = pc.less_equal(rows_kept["snapshot_id"], 4)
    falsified = rows_kept.set_column(
        rows_kept.schema.get_field_index("record_count"),
        rows_kept.schema.field("record_count"),
        pc.add(rows_kept["record_count"], pc.cast(is_old, "int64")),
    )
    assert not falsified.equals(rows_kept)
    kept.files.save(tile, [falsified])

    assert verify(handle_of(table).log).changed[0] == position.files[-1]
    rebuild(handle_of(table).log)

    assert counted(table) == seen[6]
    assert verify(handle_of(table).log).is_empty


@pytest.mark.parametrize("what", ["list", "manifest"])
@pytest.mark.parametrize("harm", ["cut", "garbage", "gone", "flipped"])
def test_the_error_of_a_damaged_manifest_names_its_file(
    tmp_path: Path, what: str, harm: str
) -> None:
    table = a_ledger_table(tmp_path)
    writer = PaimonWriter(table, tmp_path)
    writer.write(rows(6))
    writer.write(rows(6))
    name = writer.snapshot(2)["deltaManifestList"]
    if what == "manifest":
        name = next(iter(manifests_of(writer.place / "manifest" / name)))
    path = writer.place / "manifest" / name
    body = path.read_bytes()
    match harm:
        case "cut":
            path.write_bytes(body[:-20])
        case "garbage":
            path.write_bytes(b"x" * len(body))
        case "gone":
            path.unlink()
        case "flipped":
            path.write_bytes(body[:-30] + bytes(each ^ 0xFF for each in body[-30:]))

    with pytest.raises(DamagedLogError, match=path.name) as raised:
        refresh(handle_of(table).log)
    assert raised.value.file.endswith(path.name)
    assert "snapshot 2" in str(raised.value)


def test_an_engines_table_that_is_not_expired_needs_all_of_its_lists(tmp_path: Path) -> None:
    writer, _ = a_life(tmp_path)
    writer.forget_before(4)

    with pytest.raises(DamagedLogError, match="expire it in the ledger, too"):
        refresh(handle_of(writer.table).log)


def test_the_engine_is_chosen_by_the_counts_of_the_manifest_lists(tmp_path: Path) -> None:
    table = a_ledger_table(tmp_path)
    PaimonWriter(table, tmp_path).write(rows(12))

    assert estimate_new_entries(handle_of(table).log) == LISTS_AS_ENTRIES + 6


@pytest.mark.parametrize("seed", range(3))
def test_whenever_lists_expire_and_statistics_are_kept_the_figures_are_right(
    tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    table = a_ledger_table(tmp_path)
    writer = PaimonWriter(table, tmp_path)
    writer.write(rows(9))
    for step in range(14):
        happening = rng.choice(["write", "write", "overwrite", "expire", "refresh", "rebuild"])
        day, kind = dt.date(2024, 1, rng.randrange(1, 4)), rng.choice("ab")
        match happening:
            case "write":
                writer.write(rows(rng.randrange(1, 7), start=step))
            case "overwrite":
                writer.write([(step, day, kind)], {"day": day, "kind": kind})
            case "expire":
                earliest, last = table.state.earliest_snapshot_id, table.state.last_snapshot_id
                before = rng.randrange(earliest, last + 1)
                writer.forget_before(before)
                table.expire_snapshots(before=before)
            case "refresh":
                refresh(handle_of(table).log)
            case "rebuild":
                rebuild(handle_of(table).log)
        assert counted(table) == writer.partitions(), (step, happening)
        assert verify(handle_of(table).log).is_empty, (step, happening)
    refresh(handle_of(table).log)
    totals = query.totals(Kept.of(handle_of(table).log), table.at())
    said = writer.snapshot(table.state.last_snapshot_id)["totalRecordCount"]
    assert totals[-1].record_count == said
    assert verify(handle_of(table).log).is_empty


def test_a_file_that_is_shorter_than_was_recorded_is_damaged_whatever_it_reads_as() -> None:
    files = EngineFiles(memory(), "shop.db/orders")
    files.store.replace("shop.db/orders/m.avro", b"123")
    assert files.read("shop.db/orders/m.avro", 3, 7) == b"123"
    with pytest.raises(DamagedLogError, match=r"m\.avro has 3 of its 4 bytes"):
        files.read("shop.db/orders/m.avro", 4, 7)


@pytest.mark.parametrize(
    ("store", "folder"),
    [
        ("file:///lake", ["/lake", "file:///lake", "file:/lake", "FILE:///lake", "//lake/x/.."]),
        ("file:///", ["file:///", "", "file:"]),
        ("s3://b/lake", ["s3://b/lake", "s3a://b/lake", "s3n://b/lake", "S3://b/lake"]),
        ("gs://b", ["gs://b", "gcs://b"]),
        ("memory://lake", ["memory://lake"]),
        (
            "abfss://c@x.dfs.core.windows.net/lake",
            [
                "abfss://c@x.dfs.core.windows.net/lake",
                "abfs://c@x.blob.core.windows.net/lake",
                "az://c/lake",
            ],
        ),
    ],
)
def test_an_engines_file_is_found_however_its_place_is_spelled(
    store: str, folder: list[str]
) -> None:
    files = EngineFiles(Elsewhere(store), "shop.db/orders")
    for each in ["", *(f"{one.removesuffix('/')}/shop.db/orders/" for one in folder)]:
        assert files.key(f"{each}metadata/m.avro") == "shop.db/orders/metadata/m.avro"
        assert files.path(f"{each}data/a.parquet") == "data/a.parquet"


@pytest.mark.parametrize(
    "name",
    [
        "/lakes/m.avro",
        "/lake/../m.avro",
        "file:/elsewhere/m.avro",
        "file://host/lake/m.avro",
        "s3://lake/m.avro",
        "hdfs://n/lake/m.avro",
        "zip://m.avro::file:///lake/a.zip",
    ],
)
def test_an_engines_file_outside_of_the_store_is_rejected(name: str) -> None:
    files = EngineFiles(Elsewhere("file:///lake"), "shop.db/orders")
    with pytest.raises(UnsupportedError, match="is outside"):
        files.key(name)
    assert is_absolute(files.path(name))
