"""Signals that end what goes on for ever."""

from __future__ import annotations

import gc
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import ledger
from ledger.cli.exits import Stop, stop_flag_at_once, stop_flag_between_rounds
from tests import programs

ROOT = Path(__file__).parents[2]

_COMMAND = """
import sys
from importlib.abc import MetaPathFinder


class Interrupting(MetaPathFinder):
    module = sys.argv.pop(1)

    def find_spec(self, name, path, target=None):
        if name == self.module:
            self.module = None
            raise KeyboardInterrupt


sys.meta_path.insert(0, Interrupting())
from ledger.cli import main

sys.exit(main())
"""


@pytest.mark.parametrize("module", ["ledger.cli.exits", "cyclopts.core", "ledger.table"])
def test_an_interruption_is_one_line_whatever_is_imported(module: str, tmp_path: Path) -> None:
    lake = ledger.open(str(tmp_path / "lake"))
    lake.create_database("shop")
    lake.create_table("shop.orders", ledger.Schema.of({"id": "INT"}))
    script = tmp_path / "lakeledger"
    script.write_text(_COMMAND)
    line = ["log", "shop.orders", "--ledger", lake.url, "--output", "json"]

    # As an installation starts it: the folder of the script is what Python looks in.
    ran = subprocess.run(
        [sys.executable, "-S", script, module, *line],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": ":".join([str(ROOT), *sys.path])},
    )

    assert (ran.returncode, ran.stdout) == (130, "")
    assert ran.stderr.count("\n") == 1
    assert json.loads(ran.stderr)["kind"] == "INTERRUPTED"


def test_a_followed_log_ends_quietly(tmp_path: Path) -> None:
    lake = ledger.open(str(tmp_path / "lake"))
    lake.create_database("shop")
    following = subprocess.Popen(
        [sys.executable, "-m", "ledger", "log", "--follow", "--ledger", lake.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert following.stdout is not None
    while "created database shop" not in following.stdout.readline():
        pass
    following.stdout.readline()

    following.send_signal(signal.SIGINT)

    _, said = following.communicate(timeout=60)
    assert (following.returncode, said) == (0, "")


def test_a_warning_is_a_plain_line(tmp_path: Path) -> None:
    lake = ledger.open(str(tmp_path / "lake"))
    lake.create_database("shop")
    lake.create_table("shop.orders", ledger.Schema.of({"id": "INT"})).project("iceberg")
    lake.close()
    (tmp_path / "lake").rename(tmp_path / "elsewhere")
    url = str(tmp_path / "elsewhere")

    ran = programs.run("-m", "ledger", "move", "--ledger", url)

    assert ran.returncode == 0
    (said,) = [each for each in ran.stderr.splitlines() if "another location" in each]
    assert said.startswith("lakeledger: warning: files projected for another location are projec")
    assert "(table: shop.orders, format: iceberg, version: 0, " in said


class _Finalised:
    def __del__(self) -> None:
        signal.raise_signal(signal.SIGINT)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interruption_that_python_loses_in_a_finaliser_ends_the_next_wait() -> None:
    with stop_flag_at_once() as stop:
        _Finalised()
        gc.collect()
        with pytest.raises(KeyboardInterrupt):
            stop.sleep(600)


def test_an_interruption_leaves_what_is_under_way() -> None:
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt), stop_flag_at_once():
        signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("asked", [signal.SIGINT, signal.SIGTERM])
def test_what_is_asked_between_rounds_ends_the_wait_and_interrupts_nothing(asked: int) -> None:
    with stop_flag_between_rounds() as stop:
        assert not stop.wait(0)
        signal.raise_signal(asked)
        assert stop.wait(600)


def test_without_a_signal_it_waits() -> None:
    Stop().sleep(0)
