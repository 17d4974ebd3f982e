"""Files that are far behind go on in steps, each of which stands whatever comes of the next."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import pytest
from attrs import evolve
from msgspec.structs import replace

from ledger import Schema, SetOption, Table, UnsupportedError
from ledger.following.files import advance
from ledger.stores import MemoryStore, Store
from ledger.table_handle import handle_of
from projections import materialising
from tests.faults import Died, DiesAfter, Wrapped
from tests.lakes import data_file, lake_on, memory, orders
from tests.projections.formats import DELTA, ICEBERG, Format, through
from tests.projections.iceberg.older_logs import record_file

LIFE = {"paimon": 45, "iceberg": 45, "delta": 16}
"""So many writes are enough for a step of three commits, and not for all of a table."""

EVERY = {"ledger.formats": "iceberg,paimon,delta"}

FAR = 200
"""More commits than a first step takes."""


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let steps be of three commits, however soon they are done."""
    monkeypatch.setattr(materialising, "FIRST_COMMITS", 3)
    monkeypatch.setattr(materialising, "STEP_S", 0.0)


def table_of(formats: str, store: MemoryStore | None = None) -> Table:
    options = {"ledger.formats": formats}
    return orders(lake_on(store or memory()), Schema.of({"id": "BIGINT"}, options=options))


def commits(table: Table, count: int) -> None:
    for number in range(count):
        table.alter([SetOption("mine", f"{table.state.version} {number}")])


@pytest.mark.parametrize("seed", [1, 2])
def test_a_run_that_is_killed_repeatedly_advances_each_time(
    kept: Format, seed: int, one_by_one: None
) -> None:
    del one_by_one
    store = memory()
    table = kept.random_table(seed, store, 40)
    newest, stood = table.state.version, [-1]
    for _ in range(1000):
        try:
            kept.project(through(DiesAfter(store, LIFE[kept.name])))
            break
        except Died:
            stood.append(kept.stands(table))
            assert stood[-1] < newest
            assert kept.is_consistent(table)
    else:
        pytest.fail("it never came to an end")

    assert stood == sorted(set(stood))
    assert len(stood) > 2
    assert kept.stands(table) == newest
    left, wanted = kept.made(table), kept.expected(table)
    assert {path: left.get(path) for path in wanted} == wanted
    assert kept.verify(table).is_empty


def test_progress_is_that_of_all_steps(kept: Format, one_by_one: None) -> None:
    del one_by_one
    table = kept.random_table(1, memory(), 30)
    progress: list[tuple[int, int]] = []
    kept.kept.project(handle_of(table), on_progress=lambda done, of: progress.append((done, of)))

    total = table.state.version + 1
    assert progress == sorted(progress)
    assert {of for _, of in progress} == {total}
    assert progress[-1] == (total, total)


class Reached(Wrapped):
    """Notes where files stand whenever that is saved."""

    def __init__(self, inner: Store, key: str, stands: Callable[[], int]) -> None:
        super().__init__(inner)
        self._key = key
        self._stands = stands
        self.versions = [-1]

    def replace(self, key: str, body: bytes) -> None:
        super().replace(key, body)
        if key == self._key and self._stands() != self.versions[-1]:
            self.versions.append(self._stands())


def test_steps_grow_as_long_as_they_are_soon_done(
    kept: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(materialising, "FIRST_COMMITS", 2)
    monkeypatch.setattr(materialising, "STEP_S", 1000.0)
    table = kept.random_table(1, memory(), 30)
    noting = Reached(
        handle_of(table).log.store, kept.position_key(table), lambda: kept.stands(table)
    )
    kept.project(through(noting))

    newest = table.state.version
    assert noting.versions == [-1, *(each for each in (1, 5, 13, 29) if each < newest), newest]


@pytest.mark.parametrize("kept", [ICEBERG, DELTA], ids=lambda kept: kept.name)
def test_files_of_a_format_that_is_declared_late_are_made(kept: Format) -> None:
    table = table_of("paimon")
    commits(table, FAR)
    table.append([replace(data_file("a.parquet"), partition=())])
    table.alter([SetOption("ledger.formats", f"paimon,{kept.name}")])
    commits(table, FAR)

    assert kept.kept.step(handle_of(table), commits=64) > FAR
    kept.project(table)

    assert kept.stands(table) == table.state.version
    assert kept.verify(table).is_empty


@pytest.mark.parametrize("name", ["iceberg", "paimon", "delta"])
def test_a_follower_passes_versions_that_do_not_declare_its_format(name: str) -> None:
    every = "iceberg,paimon,delta"
    others = ",".join(each for each in every.split(",") if each != name)
    table = table_of(every)
    commits(table, 3)
    table.alter([SetOption("ledger.formats", others)])
    commits(table, FAR)
    table.alter([SetOption("ledger.formats", every), SetOption("ledger.follow", name)])
    commits(table, 3)

    reached = [dict(advance(handle_of(table)))[name] for _ in range(4)]

    assert not [each for each in reached if isinstance(each, Exception)]
    assert reached[-1] == table.state.version


def test_files_get_past_snapshots_without_a_word_for_them_that_are_gone_by_now() -> None:
    options = {"ledger.formats": "iceberg"}
    schema = Schema.of({"id": "BIGINT"}, primary_keys=["id"], options=options)
    table = orders(lake_on(memory()), schema)
    # As clients wrote it that asked no format.
    record_file(table, replace(data_file("d.parquet"), partition=()))
    commits(table, FAR)
    table.delete_files(["d.parquet"])
    with pytest.raises(UnsupportedError, match="primary key"):
        ICEBERG.project(table)
    table.expire_snapshots(before=2)

    assert ICEBERG.kept.step(handle_of(table), commits=64) == table.state.version
    assert ICEBERG.verify(table).is_empty


def test_what_is_not_declared_by_now_is_rejected_at_once() -> None:
    table = table_of("paimon")
    commits(table, FAR)
    with pytest.raises(UnsupportedError, match="not declared"):
        ICEBERG.kept.step(handle_of(table), commits=64)
    assert ICEBERG.stands(table) == -1


class NoLock(Wrapped):
    """As a bucket, which keeps nobody out."""

    def lock(self, key: str) -> AbstractContextManager[None]:
        del key
        return nullcontext()


@pytest.mark.parametrize("nth", [1, 2])
@pytest.mark.parametrize("how", ["project", "advance"])
def test_a_run_overtaken_between_two_steps_returns_the_position_of_the_files(
    kept: Format, how: str, nth: int
) -> None:
    store = NoLock(memory())
    table = orders(lake_on(store), Schema.of({"id": "BIGINT"}, options=EVERY))
    commits(table, FAR)
    reached_by_others: list[int] = []

    class Overtaken(Wrapped):
        """Lets other runs finish before the run that saved a first step reads its position."""

        looks = -100

        def replace(self, key: str, body: bytes) -> None:
            super().replace(key, body)
            if key == kept.position_key(table) and kept.stands(table) >= 0:
                self.looks = 0

        def read(self, key: str) -> bytes | None:
            if key == kept.position_key(table):
                self.looks += 1
                if self.looks == nth and not reached_by_others:
                    reached_by_others.append(kept.project(through(store)))
            return super().read(key)

    found = getattr(kept.kept, how)(handle_of(through(Overtaken(store))))

    assert reached_by_others == [table.state.version]
    assert found == kept.stands(table) == table.state.version


@pytest.mark.parametrize("more", [0, 5])
def test_progress_counts_what_begins_anew(kept: Format, more: int) -> None:
    table = orders(lake_on(memory()), Schema.of({"id": "BIGINT"}, options=EVERY))
    commits(table, 20)
    kept.project(table)
    files = kept.kept.format.positions
    stood = kept.position(table)
    files.save(
        handle_of(table).log.store,
        handle_of(table).log.layout,
        evolve(stood, renderer=stood.renderer - 1),
    )
    commits(table, more)
    progress: list[tuple[int, int]] = []
    kept.kept.project(handle_of(table), on_progress=lambda done, of: progress.append((done, of)))

    assert progress == sorted(progress)
    assert all(0 < done <= of for done, of in progress)
    assert progress[-1][0] == progress[-1][1]
