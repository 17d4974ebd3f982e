"""The figures are those of an independent oracle, at every snapshot, however they came about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, ClassVar

import duckdb
import pyarrow as pa
import pytest
from attrs import frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger import Schema, Table
from ledger.history.older import state_at_snapshot
from ledger.state import TableState
from ledger.stores import MemoryStore
from ledger.table_handle import handle_of
from projections.statistics import Kept, query, refresh, verify
from projections.statistics.materialise import LocalEngine
from projections.statistics.spark_executors import decreasing_runs, divide_into_runs
from projections.statistics.tile_rows import (
    BLOCK,
    NARROWEST_SUMS,
    Tile,
    block_of,
    local_scan,
    tiles_within,
)
from tests.lakes import memory
from tests.projections.statistics.lives import Life, a_table, reopened
from tests.thorough import examples

LAWS = settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
SEEDS = st.integers(0, 2**32)


@frozen
class At:
    state: TableState
    schema: Schema


def instants(table: Table) -> Iterator[At]:
    for snapshot_id in range(1, table.state.last_snapshot_id + 1):
        state = state_at_snapshot(handle_of(table).log, snapshot_id)
        yield At(state, state.schema)


def entries(table: Table) -> pa.Table:
    """Return the file changes of the whole log, as the core reads them."""
    rows = [
        {
            "s": each.snapshot_id,
            "day": each.change.partition[0],
            "sign": 1 if each.change.kind == "ADD" else -1,
            "records": each.change.record_count,
            "size": each.change.file_size_in_bytes,
            "created": each.change.creation_time,
        }
        for each in handle_of(table).live.changes(0, table.state.version)
    ]
    names = ("s", "sign", "records", "size", "created")
    schema = pa.schema([*((name, pa.int64()) for name in names), ("day", pa.string())])
    return pa.Table.from_pylist(rows, schema=schema)


SUMS = """coalesce(sum(sign * records), 0)::bigint, coalesce(sum(sign * size), 0)::bigint,
    coalesce(sum(sign), 0)::bigint, max(created)"""


Figures = tuple[Any, ...]


def asked(entries: pa.Table, statement: str, snapshots: int) -> list[Figures]:
    with duckdb.connect() as connection:
        connection.register("e", entries)
        return connection.execute(statement, [snapshots]).fetchall()


def oracle_partitions(entries: pa.Table, snapshots: int) -> dict[int, list[Figures]]:
    """Return the partitions after each snapshot, by its id."""
    rows = asked(
        entries,
        f"""select * from (
              select n, coalesce(day::date::varchar, '__DEFAULT_PARTITION__') as shown, {SUMS}
              from e, range(1, ? + 1) as t(n) where s <= n
              group by all having sum(sign) > 0)
            order by n, 'day=' || shown""",  # noqa: S608 - our own text
        snapshots,
    )
    found: dict[int, list[Figures]] = {each: [] for each in range(1, snapshots + 1)}
    for snapshot_id, *figures in rows:
        found[snapshot_id].append(tuple(figures))
    return found


def oracle_totals(entries: pa.Table, snapshots: int) -> list[Figures]:
    """Return snapshot id and sums after each snapshot."""
    statement = f"""select n, {SUMS} from range(1, ? + 1) as t(n) left join e on s <= n
        group by n order by n"""  # noqa: S608 - our own text
    return asked(entries, statement, snapshots)


def shown(kept: Kept, at: At) -> list[Figures]:
    return [
        (
            each.spec["day"],
            each.record_count,
            each.file_size_in_bytes,
            each.file_count,
            each.last_file_creation_time,
        )
        for each in query.partitions(kept, at)
    ]


def sums(each: query.TableTotals) -> Figures:
    return (
        each.record_count,
        each.file_size_in_bytes,
        each.file_count,
        each.last_file_creation_time,
    )


@LAWS
@given(seed=SEEDS, steps=st.integers(0, 30), refresh_at=st.integers(0, 30))
def test_every_figure_at_every_snapshot_is_what_duckdb_counts(
    seed: int, steps: int, refresh_at: int
) -> None:
    table = a_table()
    life = Life(table, seed)
    life.goes_on(min(steps, refresh_at))
    refresh(handle_of(table).log)
    life.goes_on(steps - min(steps, refresh_at))
    last = table.state.last_snapshot_id
    partitions = oracle_partitions(entries(table), last)
    totals = oracle_totals(entries(table), last)

    # One reads tiles and the log's tail, the other the log alone.
    for kept in (
        Kept.of(handle_of(table).log),
        Kept.of(handle_of(reopened(table, empty(table))).log),
    ):
        for at in instants(table):
            assert shown(kept, at) == partitions[at.state.last_snapshot_id]
        found = query.totals(kept, table.at())
        assert [(each.snapshot_id, *sums(each)) for each in found] == totals


def empty(table: Table) -> MemoryStore:
    """Return a copy of a table's store that keeps no statistics."""
    copy, store = memory(), handle_of(table).log.store
    for key in store.keys(""):
        body = store.read(key)
        if "/statistics/" not in key and body is not None:
            copy.create(key, body)
    return copy


def kept_files(table: Table) -> dict[str, bytes | None]:
    store = handle_of(table).log.store
    return {key: store.read(key) for key in store.keys("") if "/statistics/" in key}


@LAWS
@given(seed=SEEDS, bouts=st.lists(st.integers(0, 12), max_size=8))
def test_incremental_is_full(seed: int, bouts: list[int]) -> None:
    table = a_table()
    life = Life(table, seed)
    for bout in bouts:
        life.goes_on(bout)
        refresh(handle_of(table).log)
    refresh(handle_of(table).log)
    full = reopened(table, empty(table))

    refresh(handle_of(full).log)

    assert kept_files(table) == kept_files(full)
    assert verify(handle_of(table).log).is_empty
    assert verify(handle_of(table).log).foreign == ()


@LAWS
@given(seed=SEEDS, steps=st.integers(1, 25))
def test_the_growth_of_a_partition_ends_where_the_listing_is(seed: int, steps: int) -> None:
    table = a_table()
    Life(table, seed).goes_on(steps)
    kept, at = Kept.of(handle_of(table).log), table.at()

    for each in query.partitions(kept, at):
        grown = query.growth(kept, at, each.spec)
        assert sums(grown[-1]) == (
            each.record_count,
            each.file_size_in_bytes,
            each.file_count,
            each.last_file_creation_time,
        )
        assert [one.snapshot_id for one in grown] == sorted({one.snapshot_id for one in grown})


def test_a_random_history_has_commits_of_many_writers_long_lists_and_many_specs() -> None:
    table = a_table()
    life = Life(table, 5)
    life.goes_on(60)
    life.append_many()
    for _ in range(20):
        life.crowd()
        totals = query.totals(Kept.of(handle_of(table).log), table.at())
        if totals[-1].version == totals[-2].version:
            break

    assert totals[-1].version == totals[-2].version
    assert len(table.state.specs) == 3
    assert table.state.earliest_snapshot_id > 1
    last = table.state.last_snapshot_id
    state = state_at_snapshot(handle_of(table).log, last - 1)
    wanted = oracle_partitions(entries(table), last)[last - 1]
    assert shown(Kept.of(handle_of(table).log), At(state, state.schema)) == wanted


@pytest.fixture(scope="module")
def long_table() -> Table:
    """Return a table of 1,100 versions, so that sums of two blocks' tiles merge twice."""
    table = a_table()
    life = Life(table, 11)
    for number in range(1100):
        life.append()
        if number % 97 == 0:
            refresh(handle_of(table).log)
    refresh(handle_of(table).log)
    return table


def test_long_histories_merge_their_sums_and_stay_what_duckdb_counts(long_table: Table) -> None:
    wanted = oracle_partitions(entries(long_table), 1100)
    kept = Kept.of(handle_of(long_table).log)

    assert [each.end - each.start for each in kept.position.tiles][-2:] == [512, 512]
    for snapshot_id in (1, 63, 64, 511, 512, 513, 1000, 1100):
        state = state_at_snapshot(handle_of(long_table).log, snapshot_id)
        assert shown(kept, At(state, state.schema)) == wanted[snapshot_id]
    assert verify(handle_of(long_table).log).is_empty


def test_a_refresh_in_small_steps_keeps_the_same(long_table: Table) -> None:
    full = reopened(long_table, empty(long_table))
    progress: list[tuple[int, int]] = []

    refresh(
        handle_of(full).log,
        blocks_a_step=1,
        on_progress=lambda done, of: progress.append((done, of)),
    )

    assert kept_files(full) == kept_files(long_table)
    assert progress[0] == (64, 1101)
    assert progress[-1] == (1101, 1101)


class Asked(LocalEngine):
    """Records the tiles that it was asked to merge."""

    merged: ClassVar[list[Tile]] = []

    def merge(self, kept: Kept, tiles: Sequence[Tile]) -> None:
        self.merged.extend(tiles)
        super().merge(kept, tiles)


@pytest.mark.parametrize(
    ("blocks_a_step", "asked"), [(8, []), (64, []), (3, [Tile(0, 512), Tile(512, 1024)])]
)
def test_a_refresh_that_keeps_all_of_a_tile_of_sums_also_merges_it(
    long_table: Table, monkeypatch: pytest.MonkeyPatch, blocks_a_step: int, asked: list[Tile]
) -> None:
    full = reopened(long_table, empty(long_table))
    monkeypatch.setattr(Asked, "merged", [])

    refresh(handle_of(full).log, Asked(handle_of(full).log), blocks_a_step=blocks_a_step)

    assert Asked.merged == asked
    assert kept_files(full) == kept_files(long_table)


@given(first=st.integers(0, 3000), count=st.integers(1, 40_000), cores=st.integers(1, 64))
def test_shares_of_executors_lessen_and_hold_tiles_of_sums_whole_while_there_are_enough(
    first: int, count: int, cores: int
) -> None:
    last = first + count - 1
    shares = list(decreasing_runs(first, last, cores))
    lengths = [-(-(b + 1) // BLOCK) - a // BLOCK for a, b in shares]

    assert [each for a, b in shares for each in (a, b + 1)][1:-1:2] == [a for a, _ in shares[1:]]
    assert (shares[0][0], shares[-1][1]) == (first, last)
    assert all(a % BLOCK == 0 for a, _ in shares[1:])
    # The first may end early, so that those behind it begin with a tile.
    assert all(a >= b for a, b in pairwise(lengths[1:]))
    for a, b in shares:
        if last + 1 - a >= cores * NARROWEST_SUMS:
            assert (b + 1) % NARROWEST_SUMS == 0


@given(first=st.integers(0, 3000), count=st.integers(1, 4000))
def test_a_task_keeps_no_more_at_once_than_a_tile_of_sums_is_made_of(
    first: int, count: int
) -> None:
    last = first + count - 1
    found = list(divide_into_runs(first, last))

    assert [each for a, b in found for each in range(a, b + 1)] == list(range(first, last + 1))
    assert all(b + 1 - block_of(a).start <= NARROWEST_SUMS for a, b in found)
    if len(found) > 1:
        assert {tile for a, b in found for tile in tiles_within(a, b)} == {
            *tiles_within(first, last)
        }


def test_the_deltas_of_any_commits_are_those_of_the_log(long_table: Table) -> None:
    rows = list(Kept.of(handle_of(long_table).log).deltas(700))
    scanned = local_scan(handle_of(long_table).log)(0, 700)

    assert pa.concat_tables(rows).combine_chunks().equals(scanned)
