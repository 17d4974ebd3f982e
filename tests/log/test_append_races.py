"""Outcomes of `append` when concurrent writers commit in between."""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext

import pytest
from msgspec.structs import replace

from ledger import (
    CommitConflictError,
    CommitUnknownError,
    FileChange,
    InvalidInputError,
    Schema,
    SetOption,
    SnapshotPlan,
    UpdateComment,
)
from ledger.stores import Store
from ledger.table_handle import handle_of
from tests.faults import DeliversTwice, LosesAnswers, RacesBefore, Wrapped
from tests.lakes import data_file, lake_on, memory, no_time, orders


class LetsAllIn(Wrapped):
    """A store that cannot lock."""

    def lock(self, _key: str) -> AbstractContextManager[None]:
        return nullcontext()


class AlwaysLater(Wrapped):
    """Runs `action` right before each commit: other writers are always faster."""

    def __init__(self, inner: Store, action: Callable[[], object]) -> None:
        super().__init__(inner)
        self._action = action

    def create(self, key: str, body: bytes) -> bool:
        if is_commit(key):
            self._action()
        return super().create(key, body)


class RacesBeforeLock(LetsAllIn):
    """Runs `action` once, when a writer of the table has looked and is about to append."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.action: Callable[[], object] | None = None

    def lock(self, _key: str) -> AbstractContextManager[None]:
        action, self.action = self.action, None
        if action is not None:
            action()
        return nullcontext()


def unlocked() -> Store:
    return LetsAllIn(memory())


def is_commit(key: str) -> bool:
    return "orders/_ledger/log" in key


@pytest.mark.parametrize(
    "options",
    [{"message": None}, {"author": None}, {"properties": {"a": 1}}],
    ids=["message", "author", "properties"],
)
def test_an_envelope_that_no_reader_could_decode_is_refused(options: dict[str, object]) -> None:
    store = memory()
    table = orders(lake_on(store))
    with pytest.raises(InvalidInputError):
        table.alter([SetOption("k", "v")], **options)  # type: ignore[arg-type]  # the point
    assert lake_on(store).table("shop.orders").state.version == 0


@pytest.mark.parametrize("change", [SetOption("k", 4), UpdateComment(5)])  # type: ignore[arg-type]  # the point
def test_a_change_that_no_reader_could_decode_is_refused(change: SetOption) -> None:
    store = memory()
    table = orders(lake_on(store), Schema.of({"id": "INT"}))
    with pytest.raises(InvalidInputError):
        table.alter([change])
    assert lake_on(store).table("shop.orders").state.version == 0


def test_database_options_that_no_reader_could_decode_are_refused() -> None:
    store = memory()
    with pytest.raises(InvalidInputError):
        lake_on(store).create_database("shop", {"owner": 1})  # type: ignore[dict-item]  # the point
    assert lake_on(store).init()
    assert lake_on(store).databases() == []


@pytest.mark.parametrize(
    "facts",
    [{"creation_time": 1.7e12}, {"partition": (1.5,)}, {"bucket": None}, {"lower_bounds": None}],
    ids=str,
)
def test_a_file_that_no_reader_could_decode_is_refused(facts: dict[str, object]) -> None:
    store = memory()
    table = orders(lake_on(store))
    plain: dict[str, object] = {
        "path": "a",
        "partition": ("2013-01-01",),
        "record_count": 1,
        "file_size_in_bytes": 1,
    }
    with pytest.raises(InvalidInputError):
        table.append([FileChange(**(plain | facts))])  # type: ignore[arg-type]  # the point
    assert lake_on(store).table("shop.orders").state.version == 0


def test_a_racing_use_of_my_commit_id_for_something_else_is_refused() -> None:
    store = unlocked()
    theirs = orders(lake_on(store))
    race = RacesBefore(
        store, lambda: theirs.alter([SetOption("theirs", "1")], commit_id="x"), on=is_commit
    )
    mine = lake_on(race).table("shop.orders")
    with pytest.raises(InvalidInputError, match="used for something else"):
        mine.alter([SetOption("mine", "1")], commit_id="x")


def test_a_commit_id_committed_after_the_look_up_is_not_committed_twice() -> None:
    store = unlocked()
    theirs = orders(lake_on(store))
    race = RacesBeforeLock(store)
    mine = lake_on(race).table("shop.orders")

    def another_writer_and_a_reader_of_my_handle() -> None:
        theirs.alter([SetOption("k", "v")], commit_id="x")
        mine.at()

    race.action = another_writer_and_a_reader_of_my_handle
    done = mine.alter([SetOption("k", "v")], commit_id="x")
    assert (done.version, mine.state.version) == (1, 1)


def test_a_commit_id_committed_after_the_look_up_is_no_conflict_under_expect_version() -> None:
    store = unlocked()
    theirs = orders(lake_on(store))
    race = RacesBeforeLock(store)
    mine = lake_on(race).table("shop.orders")
    race.action = lambda: theirs.alter([SetOption("k", "v")], commit_id="x", expect_version=0)
    assert mine.alter([SetOption("k", "v")], commit_id="x", expect_version=0).version == 1


def test_a_writer_that_always_loses_gives_up_and_reports_that_nothing_was_written() -> None:
    store, numbers = unlocked(), itertools.count()
    theirs = orders(lake_on(store))
    later = AlwaysLater(store, lambda: theirs.alter([SetOption("k", str(next(numbers)))]))
    mine = lake_on(later, retry_policy=replace(no_time(), deadline_s=5)).table("shop.orders")

    with pytest.raises(CommitConflictError, match="gave up after 5 s.* nothing was written"):
        mine.alter([SetOption("mine", "1")])
    assert next(numbers) > 1
    assert "mine" not in theirs.at().schema.options


def test_an_id_that_is_no_text_is_the_same_id_each_time() -> None:
    table = orders(lake_on(memory()))
    key = uuid.UUID(int=7)
    versions = []
    for _ in range(2):
        try:
            done = table.alter([SetOption("k", "v")], commit_id=key)  # type: ignore[arg-type]  # the point
        except InvalidInputError:
            return
        versions.append(done.version)
    assert versions == [1, 1]


def test_a_repeated_commit_id_is_acknowledged_only_once_it_is_durable() -> None:
    store = memory()
    orders(lake_on(store)).alter([SetOption("k", "v")], commit_id="x")
    confirmed: list[str] = []

    class Confirms(Wrapped):
        def confirm(self, key: str) -> bytes | None:
            confirmed.append(key)
            return super().confirm(key)

    again = lake_on(Confirms(store)).table("shop.orders")
    assert again.alter([SetOption("k", "v")], commit_id="x").repeated
    assert any(is_commit(key) for key in confirmed)


@pytest.mark.parametrize("files", [(), (data_file("a.parquet"),)], ids=["no files", "a file"])
def test_a_racing_duplicate_of_a_snapshot_is_success(files: tuple[FileChange, ...]) -> None:
    store = unlocked()
    theirs = orders(lake_on(store))
    plan = SnapshotPlan("APPEND", files, commit_user="job", commit_identifier=7)
    race = RacesBefore(store, lambda: theirs.commit_snapshot(plan), on=is_commit)
    done = lake_on(race).table("shop.orders").commit_snapshot(plan)
    assert (done.version, done.repeated) == (1, True)


def test_a_duplicate_committed_after_the_look_up_is_not_committed_twice() -> None:
    store = unlocked()
    theirs = orders(lake_on(store))
    race = RacesBeforeLock(store)
    mine = lake_on(race).table("shop.orders")
    plan = SnapshotPlan("APPEND", commit_user="job", commit_identifier=7)
    looks = iter([False, True])

    class RacesSecondLook(Wrapped):
        def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
            if next(looks, False):
                theirs.commit_snapshot(plan)
            return super().read_many(keys)

    handle_of(mine).log.reader._store = RacesSecondLook(store)
    mine.commit_snapshot(plan, commit_id="z")
    assert mine.state.last_snapshot_id == 1


def test_a_durable_commit_is_acknowledged_though_its_list_cannot_be_read_back() -> None:
    class CannotReadLists(Wrapped):
        def read(self, key: str) -> bytes | None:
            if "/changes/" in key:
                raise OSError("no answer")
            return super().read(key)

    store = memory()
    orders(lake_on(store))
    table = lake_on(CannotReadLists(store)).table("shop.orders")
    assert table.append([data_file(f"f{n}.parquet") for n in range(1001)]).version == 1


def test_a_loser_that_cannot_read_the_winner_does_not_know() -> None:
    class ThenGoesSilent(DeliversTwice):
        def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
            if self.hits:
                raise OSError("no answer")
            return super().read_many(keys)

    store = memory()
    orders(lake_on(store))
    table = lake_on(ThenGoesSilent(store, on=is_commit), retry_policy=no_time()).table(
        "shop.orders"
    )
    with pytest.raises(CommitUnknownError):
        table.alter([SetOption("k", "v")])


def test_a_lost_response_at_a_tables_creation_is_no_failure() -> None:
    store = memory()
    lake_on(store).create_database("shop")
    lossy = LosesAnswers(store, on=is_commit, times=1)
    table = lake_on(lossy).create_table("shop.orders", Schema.of({"id": "INT"}))
    assert table.state.version == 0


def test_taking_away_a_file_that_is_not_live_is_refused_however_it_is_said() -> None:
    table = orders(lake_on(memory()))
    ghost = FileChange(
        kind="DELETE",
        path="ghost",
        partition=("2013-01-01",),
        record_count=50,
        file_size_in_bytes=1,
    )
    with pytest.raises(InvalidInputError):
        table.append([ghost])


def test_a_rollback_brings_back_a_files_older_facts_or_is_refused() -> None:
    table = orders(lake_on(memory()))
    table.append([data_file("a.parquet", records=10)])
    table.delete_files(["a.parquet"])
    try:
        table.append([data_file("a.parquet", records=99)])
        table.rollback(snapshot=1)
    except InvalidInputError:
        return
    assert table.at().totals == table.at(snapshot=1).totals


@pytest.mark.parametrize("path", ["", "../x", "a/../b", "a//b"])
def test_a_file_outside_without_saying_so_is_refused(path: str) -> None:
    with pytest.raises(InvalidInputError, match="file path"):
        orders(lake_on(memory())).append([data_file(path)])


def test_partition_values_are_compared_as_their_types_have_them() -> None:
    table = orders(lake_on(memory()))
    table.append([data_file("a.parquet", "2013-01-01")])
    with pytest.raises(InvalidInputError, match="no value of partition key day DATE"):
        table.overwrite([], where={"day": "yesterday"})
    table.overwrite([], where={"day": "2013-01-01"})
    assert table.at().files == ()


class CannotConfirm(DeliversTwice):
    """A store that delivers a create twice, and then cannot say whether it is durable."""

    def confirm(self, _key: str) -> bytes | None:
        raise OSError("no answer")


def test_a_commit_that_may_not_be_durable_is_unknown() -> None:
    store = memory()
    orders(lake_on(store))
    faulty = CannotConfirm(store, on=is_commit)
    table = lake_on(faulty, retry_policy=no_time()).table("shop.orders")
    with pytest.raises(CommitUnknownError) as caught:
        table.alter([SetOption("k", "v")], commit_id="mine")
    assert (caught.value.commit_id, caught.value.version) == ("mine", 1)


def test_a_duplicates_snapshot_is_acknowledged_only_once_it_is_durable() -> None:
    confirmed: list[str] = []

    class Confirms(LetsAllIn):
        def confirm(self, key: str) -> bytes | None:
            confirmed.append(key)
            return super().confirm(key)

    store = unlocked()
    theirs = orders(lake_on(store))
    plan = SnapshotPlan("APPEND", (), commit_user="job", commit_identifier=7)
    race = RacesBefore(Confirms(store), lambda: theirs.commit_snapshot(plan), on=is_commit)
    done = lake_on(race).table("shop.orders").commit_snapshot(plan)
    assert (done.version, done.repeated) == (1, True)
    assert any(is_commit(key) for key in confirmed)
