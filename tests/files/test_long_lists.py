from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, timedelta

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace
from pyarrow import parquet

from ledger import DamagedLogError, FileChange, InvalidChangeError
from ledger.files.change_lists import to_table, write_changes
from ledger.files.long_lists import LongList
from ledger.files.runs import (
    Net,
    Placed,
    additions_in_partitions,
    net_changes,
    run_rows_to_table,
)
from ledger.locations import FileNames
from ledger.stores import Store
from ledger.stores.wrappers import ForwardingStore
from ledger.table_handle import handle_of
from tests.files.building import Table, add
from tests.lakes import data_file, lake_on, memory, orders

MANY = 10_000


class _ListsRead(ForwardingStore):
    """A store that counts the bytes that are read of long lists."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.bytes = 0

    def read(self, key: str) -> bytes | None:
        found = super().read(key)
        if "/changes/" in key and found is not None:
            self.bytes += len(found)
        return found

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        return map(self.read, keys)


def _list_size(store: Store) -> int:
    (key,) = store.keys("shop.db/orders/_ledger/changes")
    return len(store.read(key) or b"")


def _some(number: int) -> FileChange:
    return data_file(f"{number * 7919 % MANY:05d}.parquet")


def test_the_writer_of_a_wide_commit_never_reads_its_list() -> None:
    store = _ListsRead(memory())
    table = orders(lake_on(store))
    table.append([_some(each) for each in range(MANY)])

    for number in range(40):
        table.append([data_file(f"small-{number}.parquet")])
        table.delete_files([f"{number:05d}.parquet"])

    assert store.bytes == 0
    assert table.at().totals.file_count == MANY


def test_another_handle_reads_the_list_of_a_wide_commit_once() -> None:
    store = _ListsRead(memory())
    orders(lake_on(store)).append([_some(each) for each in range(MANY)])
    other = lake_on(store).table("shop.orders")

    for number in range(20):
        other.append([data_file(f"small-{number}.parquet")])
        other.delete_files([f"{number:05d}.parquet"])

    assert store.bytes == _list_size(store.inner)


def test_a_long_list_is_in_the_order_of_paths_in_row_groups_that_name_their_ends() -> None:
    store = memory()
    table = orders(lake_on(store))
    files = [_some(each) for each in range(MANY)]
    table.append(files)

    (key,) = store.keys("shop.db/orders/_ledger/changes")
    file = parquet.ParquetFile(pa.BufferReader(store.read(key)))
    ends = []
    for number in range(file.num_row_groups):
        rows = file.read_row_group(number, ["path"])["path"].to_pylist()
        place = file.schema_arrow.names.index("path")
        found = file.metadata.row_group(number).column(place).statistics
        assert len(rows) <= 2_560
        assert (found.min, found.max) == (rows[0], rows[-1])
        ends += [rows[0], rows[-1]]
    assert ends == sorted(ends)
    assert [*table.at().files] == sorted(files, key=lambda each: each.path)


paths = st.text(st.characters(codec="utf-8"), max_size=3)


@settings(deadline=None)
@given(
    st.lists(paths, max_size=12),
    st.sets(paths, max_size=4),
    st.integers(1, 5),
    st.sampled_from([["path"], []]),
)
def test_files_are_found_in_lists_of_any_order_and_row_groups(
    listed: list[str], others: set[str], rows: int, ends: list[str]
) -> None:
    files = [add(path, place) for place, path in enumerate(listed)]
    sink = pa.BufferOutputStream()
    parquet.write_table(to_table(files), sink, row_group_size=rows, write_statistics=ends)

    found = LongList(sink.getvalue().to_pybytes(), len(files), "list")

    assert [*found.paths()] == listed
    for path in others.union(listed):
        assert found.may_name(path) == (path in listed)
    wanted = others.union(listed[::2])
    assert found.changes_of(wanted) == tuple(each for each in files if each.path in wanted)


@pytest.mark.parametrize("body", [b"", b"PAR1", write_changes([add("a")])])
def test_a_long_list_that_is_not_of_its_commit_is_refused(body: bytes) -> None:
    with pytest.raises(DamagedLogError, match="changes/list"):
        LongList(body, 2, "changes/list")


def test_a_lookup_in_a_damaged_long_list_is_refused() -> None:
    table = Table()
    version = table.commit(*(add(f"{nth}") for nth in range(1_001)))
    (key,) = table.store.keys("t/_ledger/changes")
    table.store.replace(key, b"torn")

    with pytest.raises(DamagedLogError, match=key):
        table.live.lookup(["1"], version)


def test_files_of_long_lists_are_found_after_whatever_happened_to_them() -> None:
    lake = lake_on(memory())
    table = orders(lake)
    wide = [data_file(f"{each:04d}.parquet") for each in range(1_500)]
    table.append(wide)
    table.delete_files(["0001.parquet", "0700.parquet"])
    table.create_branch("b")
    table.overwrite([data_file(f"new-{each}.parquet") for each in range(1_200)])
    table.rollback(snapshot=2)
    table.delete_files(["0002.parquet"])
    for number in range(110):
        table.append([data_file(f"small-{number}.parquet")])
    table.delete_files(["0003.parquet"])

    every = [each.path for each in wide] + [f"new-{each}.parquet" for each in range(1_200)]
    for handle in (
        handle_of(table),
        handle_of(lake_on(handle_of(table).log.store).table("shop.orders")),
    ):
        state = handle.log.refresh()
        assert state is not None
        live = {each.path: each for each in table.at().files}
        found = handle.live.lookup_live_files_at(every, state)
        assert found == {path: live[path] for path in every if path in live}
        assert {*found} == {each.path for each in wide[4:] if each.path != "0700.parquet"} | {
            "0000.parquet"
        }


def test_a_filter_removes_the_files_of_a_partition_from_a_wide_table() -> None:
    table = orders(lake_on(memory()))
    days = [(date(2024, 1, 1) + timedelta(days=each)).isoformat() for each in range(30)]
    table.append([data_file(f"{each}.parquet", days[each % 30]) for each in range(30_000)])
    table.delete_files(["7.parquet"])
    table.append([data_file("late.parquet", days[7])])

    table.overwrite([data_file("come.parquet", days[7])], where={"day": days[7]})

    left = [each for each in table.at().files if each.partition == (days[7],)]
    assert [each.path for each in left] == ["come.parquet"]
    assert table.at().totals.file_count == 29 * 1_000 + 1


changes = st.builds(
    FileChange,
    kind=st.sampled_from(["ADD", "DELETE"]),
    path=st.sampled_from("abcde"),
    partition=st.sampled_from([(), (1,), (True,), ("1",), (None,), ("a\nb",), (1, 2)]),
    spec_id=st.integers(0, 1),
    record_count=st.integers(0, 9),
    file_size_in_bytes=st.just(1),
    sort_order_id=st.just(UNSET) | st.just(1),
)


def _placed(parts: list[list[FileChange]]) -> list[list[Placed]]:
    numbers = iter(range(1, 1 + sum(map(len, parts))))
    return [[Placed(at := next(numbers), at, each) for each in part] for part in parts]


@settings(deadline=None)
@given(st.lists(st.lists(changes, min_size=1, max_size=4), min_size=1, max_size=4))
def test_net_changes_of_tables_are_those_of_their_rows(parts: list[list[FileChange]]) -> None:
    placed = _placed(parts)
    rows = [*Net(each for part in placed for each in part).rows()]

    found = net_changes([*map(run_rows_to_table, placed)])

    if rows:
        assert found.equals(run_rows_to_table(rows), check_metadata=True)
    else:
        assert not len(found)


@settings(deadline=None)
@given(
    st.lists(st.lists(changes, min_size=1, max_size=4), min_size=1, max_size=4),
    st.integers(0, 16),
    st.sampled_from([(), (1,), (True,), ("1",), (None,), ("a\nb",), (1, 2)]),
    st.sampled_from([{0}, {1}, {0, 1}]),
)
def test_the_files_of_partitions_are_those_of_all_live_files(
    parts: list[list[FileChange]], newest: int, wanted: tuple[object, ...], specs: set[int]
) -> None:
    def may_be(spec_id: int, partition: tuple[object, ...]) -> bool:
        return spec_id in specs and repr(partition) == repr(wanted)

    placed = _placed(parts)
    live = Net(each for part in placed for each in part if each.snapshot_id <= newest).added

    found = additions_in_partitions([*map(run_rows_to_table, placed)], newest, may_be)

    there = [each.change for each in live.values()]
    assert sorted(map(repr, found)) == sorted(
        repr(each) for each in there if may_be(each.spec_id, each.partition)
    )


names = st.lists(
    st.sampled_from(
        ["a/b", "c", "", "a//b", "../a", "/x", "file:/lake/t/a", "s3://b/c", "s3a://b/t/x"]
    )
)


@given(names, st.sampled_from(["file:///lake/t", "s3://b/t", "odd://b/t"]))
def test_names_of_many_files_are_checked_and_spelled_as_those_of_one(
    listed: list[str], location: str
) -> None:
    files = FileNames(location)
    assert files.by_spelling(listed) == {
        name: path for path in listed for name in files.spellings(path)
    }
    refused = [each for each in listed if _is_refused(files, each)]
    if refused:
        with pytest.raises(InvalidChangeError):
            files.check_all(listed)
    else:
        files.check_all(listed)


def _is_refused(files: FileNames, path: str) -> bool:
    try:
        files.check(path)
    except InvalidChangeError:
        return True
    return False


@pytest.mark.parametrize("place", [0, 1_499])
def test_a_number_out_of_bounds_is_refused_wherever_it_is_in_a_list(place: int) -> None:
    table = orders(lake_on(memory()))
    files = [data_file(f"{each}.parquet") for each in range(1_500)]
    files[place] = replace(files[place], path="bad.parquet", creation_time=-(2**62))

    with pytest.raises(InvalidChangeError, match=r"bad\.parquet"):
        table.append(files)
    assert table.at().totals.file_count == 0
