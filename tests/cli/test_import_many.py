"""`lakeledger import FORMAT` of many tables at once, and of what comes from now on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ledger
from ledger import InvalidInputError, NotFoundError
from tests.lakes import lake_on, memory
from tests.projections.iceberg.importing.writing import appended, created
from tests.projections.paimon.importing.paimon_source import PaimonSource

if TYPE_CHECKING:
    from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]


def warehouse(root: Path) -> Path:
    """Two databases of Iceberg tables, one of which is half written."""
    for name in ("one.db/a", "one.db/broken", "two/b"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        appended(created(root / name), 1, name=["x"])
    for each in (root / "one.db/broken/metadata").glob("*.json"):
        each.write_bytes(each.read_bytes()[:-20])
    (root / "readme.txt").write_text("no table")
    return root


@pytest.mark.usefixtures("installed")
def test_a_table_that_cannot_come_in_does_not_stop_the_others(shop: Run, tmp_path: Path) -> None:
    command = ("import", "iceberg", warehouse(tmp_path / "w"))
    planned = shop(*command, "--dry-run", "--output", "json")
    assert [each["table"] for each in planned.document["tables"]] == ["one.a", "two.b"]
    assert shop("show", "one.a").code == 3
    ran = shop(*command, "--output", "json")
    assert ran.code == 1
    assert [each["table"] for each in ran.document["tables"]] == ["one.a", "two.b"]
    assert [each["table"] for each in ran.document["failed"]] == ["one.broken"]
    assert ran.err.count("one.broken: ") == 1
    into = shop(*command, "here")
    assert into.code == 1
    assert "here.b stands at version" in into.out
    again = shop(*command)
    assert again.out.count("nothing is new") == 2


@pytest.mark.usefixtures("installed")
def test_a_mistake_about_many_is_one_line(shop: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    one = created(tmp_path / "t")
    appended(one, 1, name=["x"])
    for source, code, said in (
        (tmp_path / "nowhere", 3, "there is no folder"),
        (tmp_path / "empty", 3, "holds no such table"),
        (tmp_path / "t", 1, "say what it is to be called"),
    ):
        ran = shop("import", "iceberg", source)
        assert (ran.code, ran.err.count("\n")) == (code, 1)
        assert said in ran.err
    ran = shop("import", "iceberg", tmp_path / "t", "a.b", "--follow", "--dry-run")
    assert (ran.code, ran.err.count("\n")) == (2, 1)


def test_a_program_gets_each_tables_fate(tmp_path: Path) -> None:
    lake = lake_on(memory())
    root = warehouse(tmp_path / "w")
    assert list(lake.tables_to_import(str(root))) == ["one.a", "one.broken", "two.b"]
    good, bad, other = lake.import_tables(str(root))
    assert (str(good.identifier), str(other.identifier)) == ("one.a", "two.b")
    assert isinstance(bad.error, InvalidInputError)
    source = PaimonSource(tmp_path / "p")
    source.append()
    (done,) = lake.import_tables(str(tmp_path / "p"), format_name="paimon", database="mine")
    assert str(done.identifier) == "mine.t"
    with pytest.raises(NotFoundError):
        lake.import_tables(str(tmp_path / "nowhere"), format_name="paimon")


def test_following_takes_what_comes_and_ends_in_a_line(tmp_path: Path) -> None:
    theirs = created(tmp_path / "t")
    appended(theirs, 1, name=["x"])
    lake = ledger.open(str(tmp_path / "lake"))
    lake.create_database("a")
    following = subprocess.Popen(
        [
            *(sys.executable, "-X", "faulthandler", "-m", "ledger", "import", "iceberg"),
            *(str(tmp_path / "t"), "a.b", "--follow", "--interval", "0.1"),
            *("--ledger", str(tmp_path / "lake")),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env=dict(os.environ),
    )
    with following:
        assert following.stdout is not None
        try:
            # A process that hangs shows what it was about, and ends.
            watch = threading.Timer(120, following.send_signal, [signal.SIGABRT])
            watch.start()
            assert "version 2" in following.stdout.readline()
            appended(theirs, 2, name=["y"])
            assert "version 3" in following.stdout.readline()
            following.send_signal(signal.SIGINT)
            _, said = following.communicate()
        finally:
            watch.cancel()
            following.kill()
    assert (following.returncode, said.count("\n")) == (0, 1), said
    assert "3 transactions came" in said
