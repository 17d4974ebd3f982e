"""The figures are those of an independent oracle, at every snapshot, however they came about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
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
from projections.statistics import Kept, materialise, query, refresh, verify
from projections.statistics import entries as read
from projections.statistics.definition import ROWS, arrow_schema
from projections.statistics.fold import ordered
from projections.statistics.fold import sums as summed
from projections.statistics.materialise import LocalEngine
from projections.statistics.row_runs import SortedRows, SummedRows
from projections.statistics.shares import (
    COMMIT_AS_ENTRIES,
    ENTRY_BYTES,
    SHARE_BYTES,
    Run,
    divide_into_shares,
)
from projections.statistics.tile_files import BLOCK, NARROWEST_SUMS, Tile, block_of
from projections.statistics.tile_rows import scan_deltas
from tests.lakes import memory
from tests.projections.statistics.lives import Life, a_table, listed_partitions, reopened
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
        for each in listed_partitions(kept, at)
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

    for each in listed_partitions(kept, at):
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


RUNS = st.lists(st.tuples(st.integers(1, 700), st.integers(0, 20_000)), min_size=1, max_size=20)


@given(first=st.integers(0, 3000), lengths=RUNS)
def test_shares_are_whole_blocks_of_about_equal_size(
    first: int, lengths: list[tuple[int, int]]
) -> None:
    runs: list[Run] = []
    for length, count in lengths:
        begin = runs[-1][1] + 1 if runs else first
        runs.append((begin, begin + length - 1, count))
    of_commit = {each: count for begin, end, count in runs for each in range(begin, end + 1)}

    def size(begin: int, end: int) -> int:
        commits = (of_commit.get(each) for each in range(begin, end + 1))
        return sum((each + COMMIT_AS_ENTRIES) * ENTRY_BYTES for each in commits if each is not None)

    shares = divide_into_shares(runs)

    assert [each for a, b in shares for each in range(a, b + 1)] == [*of_commit]
    assert all(a % BLOCK == 0 for a, _ in shares[1:])
    for a, b in shares[:-1]:
        assert size(a, b) >= SHARE_BYTES
        # Without its last block, or the blocks up to a tile of sums, a share is too small.
        end = block_of(b).start
        if end - a >= NARROWEST_SUMS:
            assert (b + 1) % NARROWEST_SUMS == 0
        else:
            assert size(a, end - 1) < SHARE_BYTES


ROW = st.tuples(
    st.integers(0, 130),
    st.integers(1, 3),
    st.sampled_from([None, 0, 1]),
    st.sampled_from(['["a"]', '["é"]', '["\U0001f600"]', "[null]"]),
    st.integers(-9, 9),
)


def as_deltas(rows: list[tuple[int, int, int | None, str, int]]) -> pa.Table:
    """Return rows of statistics; without a spec they are those of the whole table."""
    columns: list[list[Any]] = [[] for _ in ROWS]
    for version, snapshot_id, spec_id, text, count in rows:
        key = (None, None, None) if spec_id is None else (spec_id, text, "data")
        row = (version, snapshot_id, *key, count, count, count, None)
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    return pa.table(columns, schema=arrow_schema(ROWS))


@given(rows=st.lists(ROW, max_size=60), most=st.integers(1, 70), cut=st.integers(1, 9))
def test_rows_beyond_memory_are_ordered_and_summed_as_those_in_it(
    rows: list[tuple[int, int, int | None, str, int]], most: int, cut: int
) -> None:
    # One row per key and snapshot, as deltas are.
    whole = as_deltas([*{row[:4] if row[2] is not None else row[:3]: row for row in rows}.values()])
    running = SummedRows(most)
    with SortedRows(most) as collected:
        for begin in range(0, len(whole), cut):
            collected.add(whole.slice(begin, cut))
            running.add(whole.slice(begin, cut))
        found = pa.concat_tables([whole.slice(0, 0), *collected.tables()])

    assert found.equals(ordered(whole))
    assert ordered(running.table()).equals(ordered(summed([whole])))


def test_a_wide_commit_is_read_in_parts_and_counts_as_one_read_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    table = a_table()
    life = Life(table, 5)
    for _ in range(3):
        life.append_many()
    refresh(handle_of(table).log)
    full = reopened(table, empty(table))
    monkeypatch.setattr(read, "_ROWS_A_BATCH", 100)
    monkeypatch.setattr(materialise, "SortedRows", partial(SortedRows, 100))
    monkeypatch.setattr(materialise, "SummedRows", partial(SummedRows, 100))

    refresh(handle_of(full).log)

    assert kept_files(full) == kept_files(table)


def test_the_deltas_of_any_commits_are_those_of_the_log(long_table: Table) -> None:
    rows = list(Kept.of(handle_of(long_table).log).deltas(0, 700))
    scanned = pa.concat_tables(scan_deltas(handle_of(long_table).log, 0, 700))

    assert ordered(pa.concat_tables(rows)).equals(ordered(scanned))
