"""Removal of the files of failed writes by maintenance, and the files that always stay."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from attrs import define, field, frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ledger import (
    CommitConflictError,
    FileChange,
    InvalidChangeError,
    Ledger,
    LedgerError,
    SetOption,
    Table,
)
from ledger.files.change_lists import commit_files
from ledger.history.garbage import OrphanedFile, orphaned_row_files, remove
from ledger.history.verifying import Subject
from ledger.log.request import fresh_id
from ledger.model.attempt_files import new_row_file_name
from ledger.rows.attempts import WriteAttempt
from ledger.stores import Durability, LocalStore, Store
from ledger.table_handle import handle_of
from tests.faults import Died, DiesAfter, RacesBefore
from tests.history.test_orphans import Unlocked
from tests.lakes import START_MILLIS, data_file, lake_on, memory, orders
from tests.thorough import examples

HOUR = 3_600_000
DAY = 24 * HOUR
NAME = "shop.orders"


@define
class Clock:
    """The clock of all machines; advances only by the test."""

    now: int = START_MILLIS

    def __call__(self) -> int:
        return self.now


@frozen
class Writer:
    """Writes files of attempts, as tasks do."""

    clock: Clock
    table: Table

    def write(self, attempt_id: str, folder: str = "") -> FileChange:
        attempt = WriteAttempt.of(self.table, attempt_id)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("ledger.rows.attempts.now_millis", self.clock)
            attempt.register()
        name = f"{folder}{new_row_file_name(self.clock.now, fresh_id())}"
        path = f"{attempt.folder.removeprefix(f'{self.table.location}/')}/{name}"
        log = handle_of(self.table).log
        log.store.create(log.layout.key_of(path), b"rows")
        return data_file(path)


def orphans_of(table: Table, now: int = 0) -> list[OrphanedFile]:
    handle = handle_of(table).again()
    return list(orphaned_row_files(Subject("t", handle.log, has_files=True), now))


def maintain(table: Table, now: int = 0) -> set[str]:
    """Remove the orphans; return the paths of removed data files."""
    log = handle_of(table).log
    found = orphans_of(table, now)
    for each in found:
        remove(log.store, each)
    return {each.path.removeprefix(log.layout.key_of("")) for each in found if each.sort == "rows"}


def entries_of(table: Table) -> list[str]:
    log = handle_of(table).log
    start = log.layout.attempt("")
    return [each.removeprefix(start) for each in log.store.keys(start.rstrip("/"))]


def exists(table: Table, path: str) -> bool:
    log = handle_of(table).log
    return log.store.exists(log.layout.key_of(path))


def named_by(table: Table) -> Iterator[str]:
    log = handle_of(table).log
    for commit in table.events():
        for each in commit_files(log.store, log.layout, commit):
            yield handle_of(table).live.names.usual(each.path)


def refusal_of(commit: Callable[[], object]) -> str | None:
    """Return the message with which a commit is refused."""
    try:
        commit()
    except (InvalidChangeError, CommitConflictError) as error:
        return error.message
    return None


STEPS = st.lists(
    st.one_of(
        st.sampled_from(
            ["write", "write", "commit", "commit", "branch", "remove", "rollback", "option"]
        ),
        st.sampled_from(["maintain", "raced", "drop"]),
        st.integers(1, 12).map(lambda days: days * DAY),
        st.integers(1, 30).map(lambda hours: hours * HOUR),
    ),
    max_size=25,
)


@define
class History:
    """A table with writers, commits and maintenance in any order, and what has to hold."""

    clock: Clock = field(factory=Clock)
    store: Store = field(factory=memory)
    lake: Ledger = field(init=False)
    table: Table = field(init=False)
    open_files: dict[str, list[FileChange]] = field(factory=dict)
    written: dict[str, int] = field(factory=dict)
    gone: set[str] = field(factory=set)

    def __attrs_post_init__(self) -> None:
        self.lake = lake_on(self.store, self.clock)
        self.table = orders(self.lake)

    def write(self, number: int) -> None:
        attempt = f"spark-{number % 3}"
        file = Writer(self.clock, self.table).write(attempt, "day=2013-01-01/" * (number % 2))
        self.open_files.setdefault(attempt, []).append(file)
        self.written[file.path] = self.clock.now

    def next_files(self) -> list[FileChange]:
        return self.open_files.pop(next(iter(self.open_files)), []) if self.open_files else []

    def commit(self, table: Table, branch: str = "") -> None:
        files = self.next_files()
        if not files:
            return
        target = table.branch(branch) if branch else table
        refused = refusal_of(lambda: target.append(files))
        if refused is not None:
            newest = table.state.time_millis
            assert "maintain may have removed it" in refused
            assert newest - min(self.written[each.path] for each in files) > 7 * DAY

    def take(self, step: str, number: int) -> None:
        table = self.table
        match step:
            case "write":
                self.write(number)
            case "commit":
                self.commit(table)
            case "branch":
                self.commit(table, "audit")
            case "remove" if table.at().files:
                table.delete_files([table.at().files[0].path])
            case "rollback" if table.state.last_snapshot_id > 1:
                table.rollback(snapshot=1)
            case "option":
                table.alter([SetOption(f"k{number}", "v")])
            case "raced":
                self.raced()
            case "maintain":
                self.maintain()
            case "drop":
                self.drop_and_restore()

    def drop_and_restore(self) -> None:
        self.lake.drop_table(NAME)
        self.gone |= maintain(self.table, self.clock.now)
        self.table = self.lake.undrop_table(NAME)

    def raced(self) -> None:
        """Let days pass, and maintenance run, between a decision and the commit's file."""

        def others() -> None:
            self.clock.now += 9 * DAY
            lake_on(self.store, self.clock).table(NAME).alter([SetOption(f"t{self.clock()}", "v")])
            self.maintain()

        raced = RacesBefore(
            Unlocked(self.store), others, on=lambda key: "/log/" in key and ".json" in key
        )
        self.commit(lake_on(raced, self.clock).table(NAME))

    def maintain(self) -> None:
        table = lake_on(self.store, self.clock).table(NAME)
        newest, named = table.state.time_millis, {*named_by(table)}
        removed = maintain(table)
        assert not removed & named
        old = {path for path, when in self.written.items() if newest - when > 8 * DAY}
        assert removed <= old
        # The day of an attempt's entry ends up to a day after the file was written.
        due = {path for path, when in self.written.items() if newest - when > 10 * DAY}
        assert due - named <= removed | self.gone
        self.gone |= removed


@settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
@given(STEPS)
def test_whatever_the_history_no_named_file_goes_and_every_old_unnamed_one_does(
    steps: list[str | int],
) -> None:
    history = History()
    history.table.append([data_file("first.parquet")])
    history.table.create_branch("audit")
    for number, step in enumerate(steps):
        if isinstance(step, int):
            history.clock.now += step
        else:
            history.take(step, number)
    history.clock.now += 20 * DAY
    table = history.table
    table.alter([SetOption("end", "k")])
    history.maintain()

    assert all(exists(table, path) for path in {*named_by(table)} - {"first.parquet"})
    assert history.gone == {*history.written} - {*named_by(table)}
    assert entries_of(table) == []


def remove_all(store: Store, orphans: list[OrphanedFile]) -> None:
    for each in orphans:
        remove(store, each)


def aged(history: History, days: int = 9) -> None:
    """Let days pass, and somebody commit."""
    history.clock.now += days * DAY
    history.table.alter([SetOption("k", str(history.clock.now))])


def test_a_commit_that_was_overtaken_by_nine_days_is_refused_and_its_files_are_gone() -> None:
    history = History()
    history.write(0)
    (file,) = history.open_files["spark-0"]

    history.raced()

    assert history.gone == {file.path}
    assert [*named_by(history.table)] == []
    with pytest.raises(InvalidChangeError, match="maintain may have removed it") as refused:
        history.table.append([data_file(file.path)])
    assert refused.value.kind == "STALE_FILES"


def test_a_long_list_of_files_is_refused_as_well() -> None:
    history = History()
    for _ in range(1001):
        history.write(0)
    aged(history)
    maintain(history.table)
    with pytest.raises(InvalidChangeError, match="write the rows again"):
        history.table.append(history.open_files["spark-0"])


def test_names_in_other_spellings_and_of_removed_files_count_as_named(tmp_path: Path) -> None:
    history = History(store=LocalStore(tmp_path, durable=Durability.NONE))
    for number in range(4):
        history.write(number)
    table = history.table
    first, second, third, fourth = history.written
    table.append([data_file(f"{table.location}/{first}")])
    table.append([data_file(f"{table.location.removeprefix('file://')}/{second}")])
    table.append([data_file(third)])
    table.delete_files([third])
    aged(history)

    assert maintain(table) == {fourth}
    assert exists(table, third)
    assert entries_of(table) == []


def test_only_files_that_tasks_named_go_and_an_attempt_stays_while_it_has_young_ones() -> None:
    history = History()
    store = history.store
    history.write(0)
    user_file, near = "data/spark-0/mine.parquet", f"data/other/{new_row_file_name(0, fresh_id())}"
    for path in (user_file, near):
        store.create(f"shop.db/orders/{path}", b"rows")
    store.create("shop.db/orders/_ledger/attempts/notes.txt", b"mine")
    history.clock.now += 8 * DAY
    history.write(0)
    history.write(1)
    aged(history, 2)
    first, second, third = history.written

    assert maintain(history.table) == {first}
    assert all(exists(history.table, each) for each in (second, third, user_file, near))
    assert sorted(entries_of(history.table)) == [
        "20231114-spark-0.json",
        "20231122-spark-0.json",
        "20231122-spark-1.json",
        "notes.txt",
    ]
    aged(history)
    assert maintain(history.table) == {second, third}
    assert entries_of(history.table) == ["notes.txt"]


def test_the_newest_commit_tells_the_time_and_for_a_dropped_table_the_machine() -> None:
    history = History()
    history.write(0)
    late = history.clock.now + 30 * DAY
    assert maintain(history.table, late) == set()

    history.lake.drop_table(NAME)
    assert maintain(history.table, history.clock.now + 8 * DAY) == set()
    assert maintain(history.table, late) == {*history.written}
    restored = history.lake.undrop_table(NAME)
    assert entries_of(restored) == []


def test_nothing_goes_while_the_log_cannot_be_read_and_a_killed_run_is_continued(
    tmp_path: Path,
) -> None:
    history = History(store=LocalStore(tmp_path, durable=Durability.NONE))
    for number in range(3):
        history.write(number)
    aged(history)
    for number in range(3):
        history.table.alter([SetOption("x", str(number))])
    commit = tmp_path / handle_of(history.table).log.layout.commit(2)
    body = commit.read_bytes()
    commit.unlink()
    with pytest.raises(LedgerError):
        orphans_of(history.table)
    commit.write_bytes(body)

    for deletes in (0, 1, 2):
        with pytest.raises(Died):
            remove_all(DiesAfter(history.store, deletes), orphans_of(history.table))
        assert len(entries_of(history.table)) == 3 - deletes // 2
    maintain(history.table)
    assert entries_of(history.table) == []
    assert not any(exists(history.table, each) for each in history.written)
