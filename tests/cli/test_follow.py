"""`lakeledger follow`, and the commands that report freshness."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import ledger.table_handle as tables
from ledger import FileChange, Schema, Table
from ledger import open as open_ledger
from ledger.following import files as followed
from ledger.following.files import wait
from tests.cli.conftest import ROOT, Run


@pytest.fixture
def lake(run: Run, tmp_path: Path, installed: None) -> Path:
    del installed
    place = tmp_path / "lake"
    for line in (
        ("init",),
        ("create", "shop"),
        ("create", "shop.orders", "--column", "id INT"),
        ("create", "shop.still", "--column", "id INT"),
        ("alter", "shop.orders", "--set", "ledger.follow=iceberg,paimon"),
    ):
        assert run(*line, "--ledger", place).code == 0
    # In this process; one that ends would wait.
    assert wait(open_ledger(place).url, 60)
    return place


def test_one_round_updates_every_followed_format(run: Run, lake: Path) -> None:
    assert run("follow", "--once", "--ledger", lake).code == 0
    shown = run("show", "shop.orders", "--ledger", lake, "--output", "json").document
    assert [(each["format"], each["behind"]) for each in shown["following"]] == [
        ("iceberg", 0),
        ("paimon", 0),
    ]
    assert "iceberg files" in run("show", "shop.orders", "--ledger", lake).out
    assert (lake / "shop.db/orders/metadata").is_dir()
    assert not (lake / "shop.db/still/metadata").exists()


def test_lag_is_reported_everywhere_and_fails_nothing(run: Run, lake: Path) -> None:
    assert run("follow", "--once", "--ledger", lake).code == 0
    log = lake / "shop.db/orders/_ledger"
    for name in ("iceberg", "paimon"):
        (log / "projections" / f"{name}.json").unlink()
    shown = run("show", "shop.orders", "--ledger", lake, "--output", "json").document
    assert [each["behind"] for each in shown["following"]] == [2, 2]
    assert all(each["millisBehind"] > 0 for each in shown["following"])
    logged = run("log", "shop.orders", "--ledger", lake).err
    assert "the iceberg files of shop.orders are at no version yet, 2 commits" in logged
    assert "the paimon files" in logged
    assert "files" not in run("log", "shop.still", "--ledger", lake).err
    following = run("doctor", lake, "--output", "json").document["following"]
    assert {each["table"] for each in following} == {"shop.orders"}
    assert "follow shop.orders --once" in run("verify", "shop.orders", "--ledger", lake).out
    lines = run("follow", "shop.orders", "--once", "--ledger", lake, "--output", "json").out
    said = [json.loads(each) for each in lines.splitlines()]
    assert {(each["format"], each["version"]) for each in said} == {("iceberg", 1), ("paimon", 1)}


def test_a_projection_that_fails_is_reported_and_ends_with_an_exit_code(
    run: Run, lake: Path
) -> None:
    run("follow", "--once", "--ledger", lake)
    metadata = lake / "shop.db/orders/schema"
    for each in metadata.iterdir():
        each.unlink()
    metadata.rmdir()
    metadata.write_text("in the way")
    run("alter", "shop.orders", "--set", "a=b", "--ledger", lake)
    ran = run("follow", "--once", "--ledger", lake)
    assert ran.code == 8
    assert "shop.orders, paimon" in ran.err
    assert "1 failed" in ran.err
    assert (lake / "shop.db/orders/metadata").is_dir()


def test_doctor_reports_a_copy(run: Run, lake: Path, tmp_path: Path) -> None:
    lines = tmp_path / "lines"
    lines.write_text(run("export", "--ledger", lake).out)
    copy = tmp_path / "copy"
    assert run("import", "ledger", lines, "--copy", "--ledger", copy).code == 0
    assert "copiedFrom" in run("doctor", copy, "--output", "json").document
    assert "copiedFrom" not in run("doctor", lake, "--output", "json").document


@contextmanager
def process(folder: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that follows a ledger until it is ended; one that hangs shows what it was about."""
    line = ["-X", "faulthandler", "-m", "ledger", "follow", "--interval", "0.05"]
    following = subprocess.Popen(
        [sys.executable, *line, "--output", "json", "--ledger", str(folder / "lake")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(folder / "site")},
    )
    watch = threading.Timer(900, following.send_signal, [signal.SIGABRT])
    watch.start()
    with following:
        try:
            yield following
        finally:
            watch.cancel()
            following.kill()


def wait_for_versions(
    following: subprocess.Popen[str], versions: dict[str, int], formats: str = "iceberg,paimon"
) -> None:
    """Return once formats of tables are said to stand at versions."""
    missing = {(name, kind) for name in versions for kind in formats.split(",")}
    assert following.stdout is not None
    while missing:
        said = json.loads(following.stdout.readline())
        if said["version"] == versions.get(said["table"]):
            missing.discard((said["table"], said["format"]))


def add(table: Table) -> None:
    path = f"{table.state.version}.parquet"
    table.append([FileChange(path=path, record_count=1, file_size_in_bytes=9, field_ids=True)])


@pytest.fixture
def left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process commits, and brings nothing on itself."""
    monkeypatch.setattr(tables, "follow", lambda _table: None)


def test_files_far_behind_catch_up_in_steps(
    run: Run, lake: Path, monkeypatch: pytest.MonkeyPatch, left_to_it: None
) -> None:
    del left_to_it
    orders = open_ledger(lake).table("shop.orders")
    for _ in range(5):
        add(orders)
    monkeypatch.setattr(followed, "STEP_COMMITS", 2)
    lines = run("follow", "--once", "--ledger", lake, "--output", "json").out
    said = [json.loads(each) for each in lines.splitlines()]
    assert [(each["format"], each["version"]) for each in said] == [
        (name, version) for version in (3, 5, 6) for name in ("iceberg", "paimon")
    ]
    assert all(each["lackedMillis"] > 0 for each in said)


def test_one_process_keeps_all_tables_up_those_that_come_later_too_and_ends_cleanly(
    lake: Path, tmp_path: Path, left_to_it: None
) -> None:
    del left_to_it
    orders = open_ledger(lake).table("shop.orders")
    with process(tmp_path) as following:
        add(orders)
        wait_for_versions(following, {"shop.orders": orders.state.version})
        made = open_ledger(lake).create_table("shop.late", orders.state.schema)
        wait_for_versions(following, {"shop.late": made.state.version})
        following.send_signal(signal.SIGTERM)
        _, said = following.communicate()
    assert following.returncode == 0, said
    assert "followed 3 tables" in said
    assert [each.behind for each in (*orders.freshness(), *made.freshness())] == [0] * 4


def resident_kb(process_id: int) -> int:
    status = Path(f"/proc/{process_id}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0])


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux for the memory")
def test_the_memory_of_a_process_that_follows_twenty_tables_stays_flat(
    lake: Path, tmp_path: Path, left_to_it: None
) -> None:
    """Of 3,200 commits, after 4,000: until then handles keep more of the newest commits.

    Snapshots expire, since they stand in a table's state until then.
    """
    del left_to_it
    formats = "iceberg,paimon,delta"
    options = {"ledger.formats": formats, "ledger.follow": formats, "ledger.reader-grace": "0"}
    place = open_ledger(lake)
    schema = Schema.of({"id": "BIGINT"}, options=options)
    many = {name: place.create_table(name, schema) for name in (f"shop.t{n}" for n in range(20))}
    sizes = []
    with process(tmp_path) as following:
        for _ in range(9):
            for table in many.values():
                for _ in range(39):
                    add(table)
                table.expire_snapshots(before=table.state.last_snapshot_id)
            wait_for_versions(
                following, {name: each.state.version for name, each in many.items()}, formats
            )
            sizes.append(resident_kb(following.pid))
    assert sizes[-1] < 1.05 * sizes[4], sizes
