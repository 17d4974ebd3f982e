"""Appends of rows under faults: one commit a request, and no files but those that it names."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ledger
from ledger import (
    AddColumn,
    CommitConflictError,
    CommitUnknownError,
    DropColumn,
    InvalidInputError,
    Ledger,
    Schema,
    SetOption,
    Table,
    TableDroppedError,
    UnsupportedError,
)
from ledger.decide.changes import Isolation
from ledger.log.request import now_millis
from ledger.stores import Durability, LocalStore, Store
from ledger.table_handle import handle_of
from ledger.transforms import identity
from tests.faults import LosesAnswers, LosesRequests, RacesBefore
from tests.history.test_orphans import Unlocked
from tests.lakes import lake_on, no_time
from tests.rows.test_failed_writes import entries_of, maintain
from tests.rows.written import paths_in
from tests.stores.servers.buckets import S3Server, root

ROOT = Path(__file__).parents[2]
DAY = 24 * 3_600_000
ROWS = [{"id": 1}, {"id": 2}]
NAME = "shop.orders"


def unreadable() -> Iterator[dict[str, Any]]:
    # The first item tells rows from files.
    yield {"id": 1}
    raise AssertionError


def is_commit(key: str) -> bool:
    return key.startswith("shop.db/orders/_ledger/log/")


def a_store(folder: Path) -> LocalStore:
    return LocalStore(folder, durable=Durability.NONE)


def a_table(folder: Path, columns: Any = None, **kept: Any) -> Table:
    lake = lake_on(a_store(folder), now_millis)
    lake.create_database("shop")
    return lake.create_table(NAME, columns or {"id": "BIGINT"}, **kept)


def opened(store: Store, clock: Callable[[], int] = now_millis) -> Table:
    return lake_on(store, clock, no_time()).table(NAME)


def rows_of(table: Table) -> int:
    return table.at().totals.record_count


def named_by(table: Table) -> list[str]:
    return sorted(each.path.removeprefix("data/") for each in table.at().files)


def test_a_retry_returns_the_first_commit_and_reads_no_row(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    first = table.append(ROWS, commit_id="monday")
    for each in (table, opened(a_store(tmp_path))):
        again = each.append(unreadable(), commit_id="monday")
        assert (first.version, again.version, again.repeated) == (1, 1, True)
    table.alter([AddColumn(("n",), "INT"), DropColumn(("id",))])
    assert table.append(unreadable(), commit_id="monday").repeated
    assert (rows_of(table), len(paths_in(table))) == (2, 1)


def test_a_commit_id_of_another_operation_is_rejected_before_a_row_is_read(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    table.append(ROWS, commit_id="monday")
    table.create_branch("audit")
    calls: list[Callable[[], object]] = [
        lambda: table.overwrite(unreadable(), commit_id="monday"),
        lambda: table.branch("audit").append(unreadable(), commit_id="monday"),
    ]
    for call in calls:
        with pytest.raises(InvalidInputError, match="commit id 'monday' was used for something"):
            call()
    table.overwrite(ROWS, where={}, commit_id="tuesday")
    with pytest.raises(InvalidInputError, match="commit id 'tuesday' was used for something"):
        table.overwrite(unreadable(), isolation="snapshot", commit_id="tuesday")


def test_the_slower_of_two_calls_with_one_id_removes_its_files(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    raced = RacesBefore(
        Unlocked(a_store(tmp_path)),
        lambda: opened(a_store(tmp_path)).append(ROWS, commit_id="k"),
        on=is_commit,
    )
    done = opened(raced).append(ROWS, commit_id="k")
    assert (done.version, done.repeated) == (1, True)
    assert (table.state.version, rows_of(table)) == (1, 2)
    assert paths_in(table) == named_by(table)


def test_an_answer_that_is_lost_is_found_and_the_files_stay(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    done = opened(LosesAnswers(a_store(tmp_path), on=is_commit, times=1)).append(ROWS)
    assert (done.version, rows_of(table)) == (1, 2)
    assert paths_in(table) == named_by(table)


class LosesBoth(LosesRequests):
    """Neither takes a commit nor says what is there."""

    def confirm(self, key: str) -> bytes | None:
        if is_commit(key):
            raise OSError("no answer")
        return super().confirm(key)


def test_files_of_an_unknown_outcome_stay_and_a_retry_by_its_id_commits_once(
    tmp_path: Path,
) -> None:
    table = a_table(tmp_path)
    with pytest.raises(CommitUnknownError) as unknown:
        opened(LosesBoth(a_store(tmp_path), on=is_commit)).append(ROWS)
    assert len(paths_in(table)) == 1

    commit_id = unknown.value.commit_id
    assert not table.append(ROWS, commit_id=commit_id).repeated
    assert table.append(unreadable(), commit_id=commit_id).repeated
    assert rows_of(table) == 2
    assert len(paths_in(table)) == 2


def test_files_of_a_commit_that_is_rejected_or_conflicts_are_removed(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    table.alter([SetOption("k", "v")])
    with pytest.raises(CommitConflictError):
        table.append(ROWS, expect_version=0)
    raced = RacesBefore(
        Unlocked(a_store(tmp_path)),
        lambda: lake_on(a_store(tmp_path), now_millis).drop_table(NAME),
        on=is_commit,
    )
    with pytest.raises(TableDroppedError):
        opened(raced).append(ROWS)
    assert paths_in(table) == []


def test_rows_are_committed_and_removed_on_an_object_store(
    seaweedfs: S3Server, tmp_path: Path
) -> None:
    lake = ledger.open(root(seaweedfs, f"appended-{tmp_path.name}"), seaweedfs.options)
    lake.create_database("shop")
    table = lake.create_table(NAME, {"id": "BIGINT", "day": "STRING"}, partition_spec=["day"])
    table.append([{"id": 1, "day": "a"}, {"id": 2, "day": "b"}])
    with pytest.raises(CommitConflictError):
        table.append([{"id": 3, "day": "c"}], expect_version=0)
    table.overwrite([{"id": 4, "day": "b"}], where={"day": "b"})
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 4]
    store = handle_of(table).log.store
    assert len([each for each in store.keys("shop.db/orders/data") if "parquet" in each]) == 3


def test_a_stream_that_breaks_leaves_nothing_and_its_error_is_raised(tmp_path: Path) -> None:
    def broken() -> Iterator[dict[str, Any]]:
        yield from ({"id": each} for each in range(5000))
        raise ConnectionResetError("the source is gone")

    table = a_table(tmp_path)
    with pytest.raises(ConnectionResetError, match="the source is gone"):
        table.append(broken())
    assert (paths_in(table), table.state.version) == ([], 0)


FULL = """
import random, resource, sys
import ledger
table = ledger.open(sys.argv[1]).table("shop.orders")
rows = [{"id": random.getrandbits(60)} for _ in range(300_000)]
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
try:
    table.append(rows)
except ledger.StoreError as error:
    print(type(error).__name__)
"""


def test_a_file_that_cannot_be_finished_is_removed_without_a_word_of_its_finaliser(
    tmp_path: Path,
) -> None:
    table = a_table(tmp_path)
    ran = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], cwd=ROOT, check=False, capture_output=True
    )
    assert (ran.stdout, ran.stderr) == (b"StoreError\n", b"")
    assert (paths_in(table), table.state.version) == ([], 0)


def test_a_schema_or_spec_that_changes_meanwhile_does_not_matter_to_the_files(
    tmp_path: Path,
) -> None:
    table = a_table(tmp_path, {"id": "BIGINT", "name": "STRING"})

    def meanwhile() -> None:
        other = opened(a_store(tmp_path))
        other.alter([AddColumn(("n",), "INT"), DropColumn(("name",))])
        other.update_spec().add_field("id").commit()

    raced = RacesBefore(Unlocked(a_store(tmp_path)), meanwhile, on=is_commit)
    done = opened(raced).append([{"id": 1, "name": "a"}])
    (file,) = table.at().files
    assert (done.version, file.schema_id, file.spec_id, file.partition) == (3, 0, 0, ())
    assert table.to_arrow().to_pylist() == [{"id": 1, "n": None}]


def test_an_overwrite_conflicts_with_rows_that_are_added_meanwhile(tmp_path: Path) -> None:
    table = a_table(tmp_path)
    table.append(ROWS)
    cases: list[tuple[Isolation, int]] = [("serializable", 4), ("snapshot", 3)]
    for isolation, count in cases:
        raced = RacesBefore(
            Unlocked(a_store(tmp_path)),
            lambda: opened(a_store(tmp_path)).append(ROWS),
            on=is_commit,
        )
        slow = opened(raced)
        if isolation == "serializable":
            with pytest.raises(CommitConflictError):
                slow.overwrite([{"id": 9}], isolation=isolation)
        else:
            slow.overwrite([{"id": 9}], isolation=isolation)
        assert rows_of(table) == count


def test_tables_whose_files_others_write_are_rejected_before_a_row_is_read(tmp_path: Path) -> None:
    keyed = a_table(tmp_path / "keyed", Schema.of({"id": "INT NOT NULL"}, primary_keys=["id"]))
    served = a_table(tmp_path / "served", options_of("iceberg"))
    served.start_serving("iceberg")
    dropped = a_table(tmp_path / "dropped")
    lake_on(a_store(tmp_path / "dropped"), now_millis).drop_table(NAME)
    cases: list[tuple[Table, type[Exception], str]] = [
        (keyed, UnsupportedError, r"has the primary key \['id'\]: its files are merged by key"),
        (served, UnsupportedError, "is served through the iceberg protocol"),
        (dropped, TableDroppedError, "was dropped"),
    ]
    for table, kind, message in cases:
        for call in (table.append, table.overwrite):
            with pytest.raises(kind, match=message):
                call(unreadable())
        assert not (Path(table.location.removeprefix("file://")) / "data").exists()


def test_a_table_that_follows_a_source_is_rejected(tmp_path: Path) -> None:
    source = a_table(tmp_path / "source", options_of("delta"))
    source.append(ROWS)
    source.project("delta")
    lake: Ledger = lake_on(a_store(tmp_path / "lake"), now_millis)
    lake.import_table(NAME, source.location, format_name="delta")
    with pytest.raises(UnsupportedError, match="follows .*, whose engine writes its files"):
        lake.table(NAME).append(unreadable())


def options_of(formats: str) -> Schema:
    return Schema.of({"id": "BIGINT"}, options={"ledger.formats": formats})


KILLED = """
import os, signal, sys
from ledger.decide.changes import Isolation
from ledger.log.request import now_millis
from ledger.stores import LocalStore
from tests.faults import Wrapped
from tests.history.test_orphans import Unlocked
from tests.lakes import lake_on

class Kills(Wrapped):
    def create(self, key, body):
        if key.startswith("shop.db/orders/_ledger/log/"):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().create(key, body)

table = lake_on(Kills(LocalStore(sys.argv[1])), now_millis).table("shop.orders")
table.append([{"id": 1, "day": "a"}, {"id": 2, "day": "b"}], commit_id="monday")
"""


def test_files_of_a_process_that_was_killed_before_its_commit_are_removed_by_maintenance(
    tmp_path: Path,
) -> None:
    table = a_table(tmp_path, {"id": "BIGINT", "day": "STRING"}, partition_spec=[identity("day")])
    ran = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], cwd=ROOT, check=False)
    assert ran.returncode == -signal.SIGKILL
    left = paths_in(table)
    assert (len(left), table.state.version, len(entries_of(table))) == (2, 0, 1)
    assert maintain(table) == set()

    def later() -> int:
        return now_millis() + 10 * DAY

    table.append([{"id": 1, "day": "a"}, {"id": 2, "day": "b"}], commit_id="monday")
    opened(a_store(tmp_path), later).alter([SetOption("k", "v")])
    assert maintain(table) == {f"data/{each}" for each in left}
    assert paths_in(table) == named_by(table)
    assert (rows_of(table), entries_of(table)) == (2, [])
