"""Clients of format 1 and of today on one ledger: the older ones run on the code of their time."""

from __future__ import annotations

import io
import json
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ledger import SetOption, Table
from ledger.cli import exits, main
from ledger.evolution.fold.table_record import TableStream
from ledger.log.patience import Patience
from ledger.stores import Durability, LocalStore
from tests.history.ledgers import built, files_in
from tests.lakes import format_1, lake_on
from tests.log.older_client import Client, Counting, asked, opened, state_hash

REPOSITORY = Path(__file__).parents[2]
LAST_OF_FORMAT_1 = "1429bb6"


@pytest.fixture(scope="session")
def older_code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The code of the last version that knew format 1 alone, out of this repository's history."""
    if shutil.which("git") is None:
        pytest.skip("there is no git to take the older client out of the history with")
    command = ["git", "archive", "--format=tar", LAST_OF_FORMAT_1, "ledger", "projections"]
    archive = subprocess.run(command, cwd=REPOSITORY, capture_output=True, check=False)
    if archive.returncode:
        pytest.skip(f"the history here does not reach back to {LAST_OF_FORMAT_1}: a shallow clone")
    folder = tmp_path_factory.mktemp("older")
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
        tar.extractall(folder, filter="data")
    return folder


class Older:
    """A process of the older code."""

    def __init__(self, code: Path, folder: Path) -> None:
        script = str(Path(__file__).with_name("older_client.py"))
        bootstrap = "import runpy, sys; sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], {}, "
        self._process = subprocess.Popen(
            [sys.executable, "-c", f"{bootstrap}'__main__')", script, str(folder)],
            cwd=code,
            env={"PYTHONPATH": str(code), "PATH": "/usr/bin:/bin"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, name: str, *arguments: object) -> Any:
        """Return the answer to an order, or the name of the error that it came to."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([name, *arguments]) + "\n")
        self._process.stdin.flush()
        answer, self.said = json.loads(self._process.stdout.readline())
        return answer

    def end(self) -> None:
        self._process.communicate(timeout=30)


@pytest.fixture
def older(older_code: Path, tmp_path: Path) -> Iterator[Older]:
    process = Older(older_code, tmp_path)
    yield process
    process.end()


def test_older_and_newer_clients_write_in_turn_and_opening_stays_flat(
    older: Older, tmp_path: Path
) -> None:
    newer = Client(str(tmp_path))
    older.ask("begin")
    costs: dict[Client | Older, list[int]] = {older: [], newer: []}
    written = 0
    for _ in range(2):
        # Each of them crosses a boundary that the other has to find again.
        for ask, who in ((older.ask, older), (lambda *it: getattr(newer, it[0])(*it[1:]), newer)):
            found = ask("open")
            assert found["version"] == written
            costs[who].append(found["asked"])
            assert ask("alter", written + 1, 105) == written + 105
            written += 105
    final = [older.ask("open"), newer.open()]

    assert {each["hash"] for each in final} == {final[0]["hash"]}
    said = [each.transactions[0].message for each in newer.table.events(1)]
    assert said == [f"m{number}" for number in range(1, written + 1)]
    assert {each.format for each in newer.table.events()} == {1}
    assert newer.table.alter([SetOption("k3", "3")], commit_id="id-x").version == written + 1
    # Neither reads what came before the newest checkpoint, whoever made that.
    assert max(costs[older]) <= 60
    assert max(costs[newer]) <= 60
    assert older.ask("verify") == exits.OK
    assert main(["verify", "--ledger", str(tmp_path)]) == exits.OK


def test_an_upgrade_refuses_older_clients_whatever_they_hold(
    older: Older, older_code: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    older.ask("begin")
    assert older.ask("open")["version"] == 0
    older.ask("alter", 1, 3)
    lake = opened(str(tmp_path))
    assert main(["upgrade", "--dry-run", "--ledger", str(tmp_path)]) == exits.OK
    assert "older clients will no longer" in capsys.readouterr().out
    assert lake.format == 1

    assert main(["upgrade", "--ledger", str(tmp_path)]) == exits.OK

    # It holds the table, and nothing there is new to it: it may go on until something is.
    assert older.ask("alter", 4, 1) == 4
    table = at_one_time(tmp_path)
    table.alter([SetOption("new", "1")])
    table.alter([SetOption("new", "2")])
    assert older.ask("alter", 5, 1) == "UpgradeRequiredError"
    # A checkpoint after it would let it go on without reading it.
    for number in range(6, 110):
        table.alter([SetOption("new", str(number))])
        lake.create_database(f"d{number}")
    before = {each: each.stat().st_mtime_ns for each in files_in(tmp_path)}
    assert older.ask("alter", 5, 1) == "UpgradeRequiredError"
    assert older.ask("create_database", "theirs") == "UpgradeRequiredError"
    again = Older(older_code, tmp_path)
    assert again.ask("open") == "UpgradeRequiredError"
    assert "upgrade lakeledger" in again.said
    again.end()

    assert {each: each.stat().st_mtime_ns for each in files_in(tmp_path)} == before
    assert [each.transactions[0].message for each in table.events(1, 4)] == ["m1", "m2", "m3", "m4"]


def at_one_time(folder: Path) -> Table:
    """Return a table whose clock stands still: every commit of it is one of format 2."""
    moment = opened(str(folder)).table("shop.orders").state.time_millis + 1
    store = Counting(folder, durable=Durability.NONE)
    return lake_on(store, lambda: moment, Patience()).table("shop.orders")


def test_a_new_ledger_refuses_older_clients(older: Older, tmp_path: Path) -> None:
    Client(str(tmp_path)).begin()

    assert older.ask("open") == "UpgradeRequiredError"
    assert older.ask("begin") == "UpgradeRequiredError"


def test_a_log_of_format_1_folds_to_the_very_bytes_that_it_did(
    older: Older, tmp_path: Path
) -> None:
    format_1(LocalStore(tmp_path))
    built(tmp_path, 110)
    older.ask("open")
    theirs = older.ask("hashes")

    builder = TableStream().builder(None)
    mine = []
    for commit in opened(str(tmp_path)).table("shop.orders").events():
        builder.commit(commit)
        mine.append(state_hash(builder.freeze()))
    assert mine == theirs


def test_a_ledger_of_older_clients_opens_from_their_checkpoints(
    older: Older, tmp_path: Path
) -> None:
    older.ask("begin")
    older.ask("open")
    older.ask("alter", 1, 205)
    newer = Client(str(tmp_path))

    newer.open()
    commits = [key for key in asked if "/orders/_ledger/log/" in key]
    assert len(set(commits)) <= 30
    asked.clear()
    assert newer.table.at(version=103).version == 103
    assert len({key for key in asked if "/log/" in key}) <= 130


def test_the_older_code_is_what_runs_there(older: Older, tmp_path: Path) -> None:
    # Otherwise the tests above would compare today's code with itself.
    older.ask("begin")

    assert json.loads((tmp_path / "_ledger" / "ledger.json").read_bytes())["format"] == 1
