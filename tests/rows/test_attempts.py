from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledger
from ledger import Ledger, Table
from ledger.log.request import fresh_id
from ledger.model.attempt_files import (
    attempt_entry_name,
    attempt_name,
    new_row_file_name,
    parse_attempt_entry,
    row_file_millis,
)
from ledger.rows import attempts
from ledger.rows.attempts import WriteAttempt
from ledger.table_handle import handle_of
from tests.stores.servers.buckets import S3Server, root

NOW = 1_790_000_000_000
DAY = 24 * 3_600_000

Open = Callable[[], Ledger]


@pytest.fixture(params=["local", "seaweedfs"])
def open_lake(request: pytest.FixtureRequest, tmp_path: Path) -> Open:
    """Return a function that opens one ledger, on a disk and on an object store."""
    if request.param == "local":
        return lambda: ledger.open(str(tmp_path / "lake"))
    server: S3Server = request.getfixturevalue("seaweedfs")
    url = root(server, f"attempts-{tmp_path.name}")
    return lambda: ledger.open(url, server.options)


def a_table(lake: Ledger) -> Table:
    lake.create_database("shop")
    return lake.create_table("shop.orders", {"id": "BIGINT"})


def keys_in(table: Table, folder: str) -> list[str]:
    log = handle_of(table).log
    return [each.removeprefix(f"{log.layout.folder}/") for each in log.store.keys(folder)]


def entries_of(table: Table) -> list[str]:
    return keys_in(table, handle_of(table).log.layout.attempt("").rstrip("/"))


def test_every_task_registers_the_attempt_and_a_day_has_one_entry(
    open_lake: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = a_table(open_lake())
    moments = iter((NOW, NOW + 1, NOW + DAY, NOW + DAY))
    monkeypatch.setattr(attempts, "now_millis", lambda: next(moments))
    attempt = WriteAttempt.of(table, "spark-1-7")

    for _ in range(4):
        pickle.loads(pickle.dumps(attempt)).register()  # noqa: S301 - our own

    assert entries_of(table) == [
        "_ledger/attempts/20260921-spark-1-7.json",
        "_ledger/attempts/20260922-spark-1-7.json",
    ]
    assert attempt.folder == f"{table.location}/data/spark-1-7"


@given(st.text(max_size=300), st.integers(0, 4_000_000_000_000))
def test_the_name_of_an_entry_tells_folder_and_day_whatever_the_id(text: str, millis: int) -> None:
    name = attempt_name(text)
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,100}", name)
    parsed = parse_attempt_entry(attempt_entry_name(name, millis))
    assert parsed is not None
    folder, day = parsed
    assert folder == name
    assert day <= millis < day + DAY


@given(st.lists(st.text(max_size=120), min_size=2, max_size=2, unique=True))
def test_two_attempts_have_two_folders(ids: list[str]) -> None:
    assert attempt_name(ids[0]) != attempt_name(ids[1])


@pytest.mark.parametrize(
    "name", ["20260921-...json", "20260921-a/b.json", "20261341-a.json", "20260921-.json", "a.json"]
)
def test_other_names_are_no_entries(name: str) -> None:
    assert parse_attempt_entry(name) is None


def test_only_files_of_attempts_have_a_time_in_their_name() -> None:
    name = new_row_file_name(NOW, fresh_id())
    for path in (f"data/a/{name}", f"data/a/day=2024-01-01/b=%2F/{name}"):
        assert row_file_millis(path) == NOW
    others = (name, f"data/{name}", f"x/data/a/{name}", f"data//{name}", f"data/a/{name[1:]}")
    assert [*map(row_file_millis, others)] == [None] * 5
