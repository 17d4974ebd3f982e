"""Killed at every write, damaged, two at once, or with another history: the same statistics."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ledger import DamagedLogError, FileChange, Schema, SnapshotPlan, Table
from ledger.stores import LocalStore, MemoryStore, Store
from ledger.table_handle import handle_of
from projections.statistics import Kept, query, rebuild, refresh, verification, verify
from projections.statistics.materialise import BLOCKS_A_STEP
from projections.statistics.tile_files import (
    BLOCK,
    Tile,
    covering_tiles,
    decode_parquet,
    encode_parquet,
)
from projections.statistics.tile_rows import START, folder
from tests.faults import Died, DiesAfter
from tests.lakes import lake_on, memory
from tests.projections.statistics.lives import NAME, Life, a_table, listed_partitions


def kept_files(store: Store) -> dict[str, bytes | None]:
    return {key: store.read(key) for key in store.keys("") if "/statistics/" in key}


def a_file_in(partitions: list[tuple[str | None]]) -> list[FileChange]:
    return [
        FileChange(path=f"{nth}", partition=each, record_count=nth, file_size_in_bytes=1)
        for nth, each in enumerate(partitions)
    ]


def a_copy(store: Store) -> MemoryStore:
    copy = memory()
    for key in store.keys(""):
        body = store.read(key)
        if body is not None:
            copy.create(key, body)
    return copy


def refreshed(store: Store) -> dict[str, bytes | None]:
    refresh(handle_of(lake_on(store).table(NAME)).log)
    return kept_files(store)


@pytest.mark.parametrize(("before", "after"), [(3, 9), (60, 70), (60, 64), (500, 515), (0, 200)])
def test_killed_at_any_write_and_run_again_it_keeps_the_same(before: int, after: int) -> None:
    table = a_table()
    life = Life(table, before)
    for _ in range(before):
        life.append()
    refresh(handle_of(table).log)
    for _ in range(after - before):
        life.append()
    store = handle_of(table).log.store
    wanted = refreshed(a_copy(store))
    figures = listed_partitions(Kept.of(handle_of(table).log), table.at())

    kills = 0
    while True:
        copy = a_copy(store)
        try:
            refresh(handle_of(lake_on(DiesAfter(copy, kills)).table(NAME)).log, blocks_a_step=1)
        except Died:
            survivor = lake_on(copy).table(NAME)
            assert listed_partitions(Kept.of(handle_of(survivor).log), survivor.at()) == figures
            assert refreshed(copy) == wanted or only_small_tiles_more(kept_files(copy), wanted)
            assert (
                not verify(handle_of(survivor).log).missing
                + verify(handle_of(survivor).log).changed
            )
            kills += 1
            continue
        assert kept_files(copy) == wanted
        break
    assert kills > 4


def only_small_tiles_more(found: dict[str, bytes | None], wanted: dict[str, bytes | None]) -> bool:
    """Return whether a kill right after the position left small tiles that nothing refers to."""
    more = found.keys() - wanted.keys()
    return {key: found[key] for key in wanted} == wanted and all("/deltas/" in key for key in more)


def test_files_left_by_a_kill_are_foreign_and_are_deleted_by_a_rebuild() -> None:
    table = a_table()
    Life(table, 1).goes_on(5)
    refresh(handle_of(table).log)
    wanted = kept_files(handle_of(table).log.store)
    left = f"{folder(handle_of(table).log.layout)}/{Tile(2, 3).name}"
    handle_of(table).log.store.replace(left, b"left behind")

    assert verify(handle_of(table).log).foreign in ((Tile(2, 3).name,), ())
    rebuild(handle_of(table).log)

    assert kept_files(handle_of(table).log.store) == wanted


@pytest.fixture
def long_table() -> Table:
    table = a_table()
    life = Life(table, 3)
    for _ in range(530):
        life.append()
    refresh(handle_of(table).log)
    return table


@pytest.mark.parametrize("name", [each.name for each in covering_tiles(531)] + [Tile(64, 128).name])
def test_a_lost_or_damaged_tile_is_reported_and_rebuilt(long_table: Table, name: str) -> None:
    store, key = (
        handle_of(long_table).log.store,
        f"{folder(handle_of(long_table).log.layout)}/{name}",
    )
    wanted = kept_files(store)
    figures = listed_partitions(Kept.of(handle_of(long_table).log), long_table.at())
    body = store.read(key)
    assert body is not None

    store.delete(key)
    assert verify(handle_of(long_table).log).missing == (name,)
    assert listed_partitions(Kept.of(handle_of(long_table).log), long_table.at()) == figures

    store.replace(key, body[: len(body) // 2])
    assert verify(handle_of(long_table).log).changed == (name,)
    assert listed_partitions(Kept.of(handle_of(long_table).log), long_table.at()) == figures

    assert verification.verify(handle_of(long_table)).changed == (f"_ledger/statistics/{name}",)
    assert verification.rebuild(handle_of(long_table)).changed == (f"_ledger/statistics/{name}",)
    assert kept_files(store) == wanted


def test_a_flipped_byte_in_a_page_does_not_go_unnoticed(long_table: Table) -> None:
    rows = Kept.of(handle_of(long_table).log).tile(Tile(0, 64))
    body = encode_parquet([rows])

    flipped = [
        decode_parquet(body[:at] + bytes([body[at] ^ 255]) + body[at + 1 :])
        for at in range(40, 400, 7)
    ]

    assert all(each is None or each.equals(rows) for each in flipped)
    assert sum(each is None for each in flipped) > 40


def test_a_tile_with_wrong_figures_is_reported(long_table: Table) -> None:
    tile = Tile(0, 64)
    kept = Kept.of(handle_of(long_table).log)
    kept.files.save(tile, [kept.tile(tile).slice(1)])

    assert verify(handle_of(long_table).log).changed == (tile.name,)


def test_another_history_under_the_same_name_is_counted_anew() -> None:
    table, other = a_table(), a_table()
    Life(table, 1).goes_on(20)
    Life(other, 2).goes_on(30)
    refresh(handle_of(table).log)
    store = a_copy(handle_of(other).log.store)
    for key, body in kept_files(handle_of(table).log.store).items():
        assert body is not None
        store.replace(key, body)
    restored = lake_on(store).table(NAME)

    assert Kept.of(handle_of(restored).log).position == START
    assert query.totals(Kept.of(handle_of(restored).log), restored.at()) == query.totals(
        Kept.of(handle_of(other).log), other.at()
    )
    refresh(handle_of(restored).log)
    assert verify(handle_of(restored).log).is_empty


def test_a_log_that_was_cut_back_is_counted_anew() -> None:
    table = a_table()
    Life(table, 1).goes_on(9)
    store = a_copy(handle_of(table).log.store)
    shorter = lake_on(a_copy(store)).table(NAME)
    Life(table, 2).append()
    refresh(handle_of(table).log)
    for key, body in kept_files(handle_of(table).log.store).items():
        assert body is not None
        store.replace(key, body)

    cut = lake_on(store).table(NAME)
    refresh(handle_of(cut).log)

    assert query.totals(Kept.of(handle_of(cut).log), cut.at()) == query.totals(
        Kept.of(handle_of(shorter).log), shorter.at()
    )
    assert verify(handle_of(cut).log).is_empty


def test_concurrent_jobs_and_a_writer_keep_the_files_of_a_single_job(tmp_path: Path) -> None:
    table = a_table(LocalStore(tmp_path))
    life = Life(table, 9)
    life.append()

    def job(_number: int) -> None:
        log = handle_of(lake_on(LocalStore(tmp_path)).table(NAME)).log
        for _ in range(15):
            refresh(log)

    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(job, number) for number in range(3)]
        for _ in range(80):
            life.append()
        for each in jobs:
            each.result(60)
    refresh(handle_of(table).log)

    assert verify(handle_of(table).log).is_empty
    clean = MemoryStore("statistics-jobs-at-once")
    for key in handle_of(table).log.store.keys(""):
        body = handle_of(table).log.store.read(key)
        if "/statistics/" not in key and body is not None:
            clean.create(key, body)
    wanted = refreshed(clean)
    found = kept_files(handle_of(table).log.store)
    assert {key: found[key] for key in wanted} == wanted


def test_nothing_new_writes_nothing() -> None:
    table = a_table()
    Life(table, 4).goes_on(12)
    refresh(handle_of(table).log)
    log = handle_of(lake_on(DiesAfter(a_copy(handle_of(table).log.store), 0)).table(NAME)).log

    refresh(log)

    assert Kept.of(log).position.version == table.state.version


def test_one_commit_more_is_two_files_more_to_write() -> None:
    table = a_table()
    refresh(handle_of(table).log)
    table.append(a_file_in([(None,)]))

    refresh(handle_of(lake_on(DiesAfter(handle_of(table).log.store, 2)).table(NAME)).log)

    assert Kept.of(handle_of(table).log).position.version == table.state.version


@pytest.mark.parametrize("partitions", [[], [(None,)], [("2024-01-01",), ("é \\ \n",), (None,)]])
def test_a_commit_that_is_spelled_otherwise_counts_the_same(
    partitions: list[tuple[str | None]],
) -> None:
    def counted(spell: Callable[[object], str]) -> list[dict[str, object]]:
        lake = lake_on(memory())
        lake.create_database("shop")
        options = {"ledger.formats": "iceberg"}
        schema = Schema.of({"name": "STRING"}, partition_keys=["name"], options=options)
        table = lake.create_table(NAME, schema)
        table.append(a_file_in(partitions))
        key = handle_of(table).log.layout.commit(table.state.version)
        body = handle_of(table).log.store.read(key)
        assert body is not None
        handle_of(table).log.store.replace(key, f"{spell(json.loads(body))}\n".encode())
        log = handle_of(lake_on(handle_of(table).log.store).table(NAME)).log
        refresh(log)
        return [row for rows in Kept.of(log).deltas(0, 1) for row in rows.to_pylist()]

    ours = counted(lambda commit: json.dumps(commit, separators=(",", ":"), ensure_ascii=False))

    assert counted(json.dumps) == ours


def test_a_damaged_list_of_files_stops_the_job() -> None:
    table = a_table()
    Life(table, 4).append_many()
    store = handle_of(table).log.store
    (key,) = (each for each in store.keys("") if "/changes/" in each)
    store.replace(key, b"torn")

    with pytest.raises(DamagedLogError, match="not the file that the commit's digest names"):
        refresh(handle_of(table).log)
    store.delete(key)
    with pytest.raises(DamagedLogError, match="missing"):
        refresh(handle_of(table).log)
    assert kept_files(store) == {}


def test_a_step_is_made_of_whole_blocks() -> None:
    assert Tile(0, 512).end == BLOCKS_A_STEP * BLOCK


def test_a_snapshot_without_files_counts_as_one() -> None:
    table = a_table()
    table.append(
        [FileChange(path="a.parquet", partition=(None,), record_count=1, file_size_in_bytes=2)]
    )
    table.commit_snapshot(SnapshotPlan("ANALYZE"))

    totals = query.totals(Kept.of(handle_of(table).log), table.at())

    assert [(each.snapshot_id, each.record_count) for each in totals] == [(1, 1), (2, 1)]


def test_the_position_states_the_format_that_readers_know() -> None:
    table = a_table()
    refresh(handle_of(table).log)

    body = handle_of(table).log.store.read(f"{folder(handle_of(table).log.layout)}/position.json")

    assert body is not None
    said = json.loads(body)
    assert ([*said], said["format"]) == (["format", "check", "position"], 3)
