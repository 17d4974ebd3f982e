"""`lakeledger import FORMAT` of many tables at once, and of what comes from now on."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyiceberg.catalog import load_catalog

import ledger
from ledger import InvalidInputError, NotFoundError
from tests.lakes import lake_on, memory
from tests.projections.delta.importing.test_following import ID, PROTOCOL, add, metadata, write
from tests.projections.iceberg.importing.writing import COLUMNS, appended, created
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
    assert again.out.count("is up to date with") == 2


@pytest.mark.usefixtures("installed")
def test_a_mistake_about_many_is_one_line(shop: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    one = created(tmp_path / "t")
    appended(one, 1, name=["x"])
    for source, code, said in (
        (tmp_path / "nowhere", 3, "there is no folder"),
        (tmp_path / "empty", 3, "holds no such table"),
        (tmp_path / "t", 1, "give its name in the ledger"),
    ):
        ran = shop("import", "iceberg", source)
        assert (ran.code, ran.err.count("\n")) == (code, 1)
        assert said in ran.err
    ran = shop("import", "iceberg", tmp_path / "t", "a.b", "--follow", "--dry-run")
    assert (ran.code, ran.err.count("\n")) == (2, 1)


def test_the_json_output_holds_the_outcome_of_each_table(tmp_path: Path) -> None:
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


def following_of(
    tmp_path: Path, *asked: str, form: str = "iceberg", **environment: str
) -> subprocess.Popen[str]:
    """Follow in a process of its own, into the ledger `lake`."""
    return subprocess.Popen(
        [
            *(sys.executable, "-X", "faulthandler", "-m", "ledger", "import", form),
            *(*asked, "--follow", "--interval", "0.1", "--ledger", str(tmp_path / "lake")),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, **environment},
    )


@contextmanager
def watched(process: subprocess.Popen[str]) -> Iterator[None]:
    """See to it that a process ends; one that hangs shows what it was about."""
    watch = threading.Timer(120, process.send_signal, [signal.SIGABRT])
    with process:
        try:
            watch.start()
            yield
        finally:
            watch.cancel()
            process.kill()


def lines_until(process: subprocess.Popen[str], *wanted: str) -> str:
    """Return the lines that a process says until each of some texts stood in one."""
    assert process.stdout is not None
    said, left = "", set(wanted)
    while left:
        line = process.stdout.readline()
        assert line, said
        said += line
        left = {each for each in left if each not in line}
    return said


def test_following_imports_new_tables_and_ends_in_a_line(tmp_path: Path) -> None:
    theirs = created(tmp_path / "t")
    appended(theirs, 1, name=["x"])
    lake = ledger.open(str(tmp_path / "lake"))
    lake.create_database("a")
    following = following_of(tmp_path, str(tmp_path / "t"), "a.b")
    with watched(following):
        lines_until(following, "version 2")
        appended(theirs, 2, name=["y"])
        lines_until(following, "version 3")
        following.send_signal(signal.SIGINT)
        _, said = following.communicate()
    assert (following.returncode, said.count("\n")) == (0, 1), said
    assert "3 transactions imported" in said


def test_following_says_once_what_is_not_carried(tmp_path: Path) -> None:
    write(tmp_path / "t", 0, PROTOCOL, metadata())
    write(tmp_path / "t", 1, metadata(ID), add("a"))
    ledger.open(str(tmp_path / "lake")).create_database("a")
    following = following_of(tmp_path, str(tmp_path / "t"), "a.b", form="delta")
    with watched(following):
        said = lines_until(following, "not carried: version 0 has no transaction")
        write(tmp_path / "t", 2, add("b"))
        said += lines_until(following, "a.b stands at version 2")
        following.send_signal(signal.SIGINT)
        rest, _ = following.communicate()
    assert (said + rest).count("not carried") == 1


def test_following_a_folder_continues_with_each_table_and_reports_a_bad_one_once(
    tmp_path: Path,
) -> None:
    root = warehouse(tmp_path / "w")
    ledger.open(str(tmp_path / "lake")).create_database("one")
    following = following_of(tmp_path, str(root))
    with watched(following):
        lines_until(following, "one.a stands at", "two.b stands at")
        theirs = created(root / "two/later")
        appended(theirs, 1, 2, name=["x", "y"])
        lines_until(following, "two.later stands at version 2")
        # The one that nobody could read is whole again, and comes as well.
        shutil.rmtree(root / "one.db/broken")
        appended(created(root / "one.db/broken"), 5, name=["z"])
        lines_until(following, "one.broken stands at version 2")
        following.send_signal(signal.SIGTERM)
        _, said = following.communicate()
    assert following.returncode == 0, said
    # A source that was half written has its own reasons; each is reported once.
    reported = [line for line in said.splitlines() if line.startswith("one.broken: ")]
    assert len(reported) == len(set(reported)) > 0
    assert "transactions imported\n" in said
    lake = ledger.open(str(tmp_path / "lake"))
    assert [*lake.tables("one"), *lake.tables("two")] == ["a", "broken", "b", "later"]


def test_following_a_catalog_continues_with_each_table_and_ends_in_a_line(tmp_path: Path) -> None:
    pytest.importorskip("sqlalchemy", reason="PyIceberg's catalog in a file needs it")
    properties = {
        "TYPE": "sql",
        "URI": f"sqlite:///{tmp_path}/catalog.db",
        "WAREHOUSE": f"file://{tmp_path}/warehouse",
    }
    catalog = load_catalog("here", **{key.lower(): value for key, value in properties.items()})
    catalog.create_namespace("s")
    one = catalog.create_table("s.one", COLUMNS)
    bad = catalog.create_table("s.bad", COLUMNS)
    for each in (one, bad):
        appended(each, 1, name=["x"])
    Path(bad.metadata_location.removeprefix("file://")).write_bytes(b"{")
    configured = {f"PYICEBERG_CATALOG__HERE__{key}": value for key, value in properties.items()}
    ledger.open(str(tmp_path / "lake")).create_database("mine")
    following = following_of(tmp_path, "here:", "mine", **configured)
    with watched(following):
        lines_until(following, "mine.one stands at version 2")
        appended(one, 2, name=["y"])
        lines_until(following, "mine.one stands at version 3")
        following.send_signal(signal.SIGINT)
        _, said = following.communicate()
    catalog.close()
    assert following.returncode == 0, said
    assert said.count("mine.bad: ") == 1
    assert "3 transactions imported; failed tables: 1" in said
