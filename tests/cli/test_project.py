from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ledger import FileChange, MissingDependencyError, Table
from ledger import open as open_ledger
from ledger.table_handle import handle_of
from projections.paimon import expected, verify

if TYPE_CHECKING:
    from tests.cli.conftest import Run

TABLE = "shop.orders"
ROOT = Path(__file__).parents[2]
PROJECT = ("project", "paimon", TABLE)

pytestmark = pytest.mark.usefixtures("installed")


def add_file(table: Table, name: str) -> None:
    table.append(
        [
            FileChange(
                path=f"{name}.parquet",
                partition=("2013-01-01",),
                record_count=3,
                file_size_in_bytes=900,
            )
        ]
    )


@pytest.fixture
def orders(shop: Run, tmp_path: Path) -> Table:
    """Return the table after two snapshots and a tag, in version 3."""
    del shop
    table = open_ledger(str(tmp_path / "lake")).table(TABLE)
    add_file(table, "a")
    add_file(table, "b")
    table.create_tag("v1")
    return table


def folder(tmp_path: Path, table: Table) -> Path:
    return tmp_path / "lake" / handle_of(table).path


def test_the_files_are_where_paimon_looks_for_them(
    shop: Run, orders: Table, tmp_path: Path
) -> None:
    ran = shop(*PROJECT)

    assert (ran.code, ran.err) == (0, "")
    assert ran.out == f"{TABLE} is projected up to version 3; readers open {orders.location}\n"
    for path, body in expected(handle_of(orders)).items():
        assert (folder(tmp_path, orders) / path).read_bytes() == body


def test_a_version_may_be_named_and_only_goes_forward(shop: Run, orders: Table) -> None:
    first = shop(*PROJECT, "--to", "1", "--output", "json")
    assert first.document == {
        "table": TABLE,
        "path": orders.location,
        "version": 1,
        "opens": orders.location,
    }
    assert shop(*PROJECT, "--to", "2").code == 0

    ran = shop(*PROJECT, "--to", "1")

    assert (ran.code, "they only go forward" in ran.err) == (1, True)


def test_verify_names_what_is_missing_or_changed_and_rebuild_restores_it(
    shop: Run, orders: Table, tmp_path: Path
) -> None:
    shop(*PROJECT)
    assert shop(*PROJECT, "--verify").code == 0
    (folder(tmp_path, orders) / "schema/schema-0").unlink()
    (folder(tmp_path, orders) / "snapshot/snapshot-2").write_bytes(b"{}")
    (folder(tmp_path, orders) / "tag/tag-mine").write_bytes(b"{}")
    wrong = {
        "table": TABLE,
        "version": 3,
        "newest": 3,
        "behind": 0,
        "missing": ["schema/schema-0"],
        "changed": ["snapshot/snapshot-2"],
        "foreign": ["tag/tag-mine"],
    }

    found = shop(*PROJECT, "--verify", "--output", "json")
    assert (found.code, found.document) == (6, wrong)
    assert "2 of the Paimon files of shop.orders are missing or changed" in found.err
    assert "--rebuild" in found.err
    said = shop(*PROJECT, "--verify").out
    assert all(word in said for word in ("missing", "schema/schema-0", "changed", "snapshot-2"))

    restored = shop(*PROJECT, "--rebuild", "--output", "json")
    assert (restored.code, restored.document) == (0, wrong)
    assert verify(handle_of(orders)).foreign == ("tag/tag-mine",)
    assert shop(*PROJECT, "--verify").code == 0
    assert "no file had to be restored" in shop(*PROJECT, "--rebuild").out


def test_verify_reports_how_far_the_files_are_behind_the_log(shop: Run, orders: Table) -> None:
    shop(*PROJECT)
    assert "at version 3, the newest: no file is missing" in shop(*PROJECT, "--verify").out
    add_file(orders, "c")
    assert "at version 3, 1 version behind the log: no" in shop(*PROJECT, "--verify").out
    add_file(orders, "d")

    ran = shop(*PROJECT, "--verify", "--output", "json")

    # To be behind is no damage.
    assert ran.code == 0
    reported = {each: ran.document[each] for each in ("version", "newest", "behind")}
    assert reported == {"version": 3, "newest": 5, "behind": 2}


def test_projecting_again_makes_what_is_lost_or_damaged(
    shop: Run, orders: Table, tmp_path: Path
) -> None:
    shop(*PROJECT)
    (folder(tmp_path, orders) / "schema/schema-0").unlink()
    (folder(tmp_path, orders) / "snapshot/snapshot-2").write_bytes(b"{}")

    assert shop(*PROJECT).code == 0

    assert verify(handle_of(orders)).is_empty
    assert shop(*PROJECT, "--verify").code == 0


def test_a_log_that_ends_before_the_files_is_reported_as_damage(
    shop: Run, orders: Table, tmp_path: Path
) -> None:
    shop(*PROJECT)
    (tmp_path / "lake" / handle_of(orders).path / "_ledger/log/00000000000000000003.json").unlink()
    said = "are at version 3, and its log ends at version 2: it was cut"

    for line in ([*PROJECT], [*PROJECT, "--verify"], ["verify"], ["verify", "--repair"]):
        ran = shop(*line)
        assert (ran.code, said in ran.err) == (6, True), line


def test_a_foreign_file_in_the_way_is_an_error_of_the_store(
    shop: Run, orders: Table, tmp_path: Path
) -> None:
    mine = folder(tmp_path, orders) / "schema/schema-0"
    mine.parent.mkdir()
    mine.write_bytes(b"mine")

    ran = shop(*PROJECT)

    assert (ran.code, "schema/schema-0" in ran.err) == (8, True)
    assert mine.read_bytes() == b"mine"


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (
            [TABLE, "--verify"],
            3,
            "has no Paimon files yet; create them with: lakeledger project paimon",
        ),
        ([TABLE, "--to", "9"], 3, "9"),
        ([TABLE, "--verify", "--rebuild"], 2, "give one of --to, --follow"),
        ([TABLE, "--to", "1", "--follow"], 2, "give one of --to, --follow"),
        (["shop.ordrs"], 3, "did you mean shop.orders"),
        ([], 2, "NAME"),
    ],
    ids=str,
)
def test_a_mistake_is_one_line_with_its_own_exit_code(
    shop: Run, line: list[str], code: int, said: str
) -> None:
    ran = shop("project", "paimon", *line)

    assert said in ran.err
    assert (ran.code, ran.out, ran.err.count("\n")) == (code, "", 1)


def test_an_unknown_format_names_those_that_there_are(shop: Run) -> None:
    ran = shop("project", "papaya", TABLE)

    assert (ran.code, "paimon" in ran.err) == (2, True)


def test_help_has_an_example(run: Run) -> None:
    ran = run("project", "paimon", "--help")

    assert ran.code == 0
    assert "lakeledger project paimon shop.flights" in ran.out.split("Example:")[1]


def test_following_says_each_version_until_it_is_interrupted(orders: Table, tmp_path: Path) -> None:
    following = subprocess.Popen(
        [
            sys.executable,
            "-X",
            "faulthandler",
            "-m",
            "ledger",
            *PROJECT,
            "--follow",
            "--ledger",
            str(tmp_path / "lake"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path / "site")},
    )
    with following:
        assert following.stdout is not None
        try:
            # A process that hangs shows what it was about, and ends.
            watch = threading.Timer(120, following.send_signal, [signal.SIGABRT])
            watch.start()
            assert "version 3" in following.stdout.readline()
            add_file(orders, "c")
            assert "version 4" in following.stdout.readline()
            following.send_signal(signal.SIGINT)
            _, said = following.communicate()
        finally:
            watch.cancel()
            following.kill()

    assert following.returncode == 130, said
    assert "interrupted" in said
    assert verify(handle_of(orders)).is_empty


def test_a_table_projects_itself_by_a_formats_name(orders: Table) -> None:
    assert orders.project("paimon", version=1) == 1
    assert orders.project("paimon") == 3
    assert verify(handle_of(orders)).is_empty


def test_an_unknown_projection_is_rejected_with_the_available_ones(orders: Table) -> None:
    with pytest.raises(
        MissingDependencyError, match="'papaya', but delta, iceberg, paimon; install"
    ):
        orders.project("papaya")


def test_without_an_installation_it_says_what_to_install(
    orders: Table, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])

    with pytest.raises(MissingDependencyError, match="pip install lakeledger"):
        orders.project("paimon")
