"""`lakeledger move`, and what `doctor` says of places."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import Run

pytest.importorskip("pyiceberg")


@pytest.fixture
def there(run: Run, tmp_path: Path, installed: None) -> Path:
    """Return a ledger that was copied after files were projected from it."""
    del installed
    here = tmp_path / "here"
    for line in (
        ("init",),
        ("create", "shop"),
        ("create", "shop.orders", "--column", "id INT"),
        ("project", "iceberg", "shop.orders"),
    ):
        assert run(*line, "--ledger", here).code == 0
    shutil.copytree(here, tmp_path / "there")
    return tmp_path / "there"


SET = ("alter", "shop.orders", "--set", "a=b", "--ledger")


def test_doctor_reports_a_copy_or_a_move_and_the_command_that_settles_it(
    run: Run, there: Path, tmp_path: Path
) -> None:
    reported = run("doctor", there, "--output", "json").document["place"]
    assert (reported["verdict"], reported["recorded"]) == ("copied", f"file://{tmp_path}/here")
    assert [each["kind"] for each in reported["tied"]] == ["projection"]
    assert "lakeledger move --copy" in run("doctor", there).out
    shutil.rmtree(tmp_path / "here")
    assert run("doctor", there, "--output", "json").document["place"]["verdict"] == "moved"
    assert "next" in run("doctor", there).out
    there.rename(tmp_path / "here")
    assert (
        run("doctor", tmp_path / "here", "--output", "json").document["place"]["verdict"] == "here"
    )


def test_a_move_is_said_once_and_files_are_made_anew(run: Run, there: Path) -> None:
    refused = run(*SET, there)
    assert refused.code == 1
    assert "lakeledger move" in refused.err
    assert "iceberg files lead to" in run("move", "--dry-run", "--ledger", there).out
    assert run(*SET, there).code == 1
    done = run("move", "--ledger", there, "--output", "json").document
    assert done["projected"] == ["shop.orders, iceberg"]
    assert run("project", "iceberg", "shop.orders", "--verify", "--ledger", there).code == 0
    assert run(*SET, there).code == 0
    assert "nothing to do" in run("move", "--dry-run", "--ledger", there).out


def test_a_copy_and_an_alias_are_said(run: Run, there: Path) -> None:
    assert run("move", "--alias", "--copy", "--ledger", there).code == 2
    assert run("move", "--alias", "--rewrite", "--ledger", there).code == 2
    assert "no alias" in run("move", "--alias", "--ledger", there).err
    before = run("doctor", there, "--output", "json").document["ledgerId"]
    done = run("move", "--copy", "--ledger", there, "--output", "json").document
    reported = run("doctor", there, "--output", "json").document
    assert reported["ledgerId"] == done["ledgerId"] != before == reported["copiedFrom"]
    assert run(*SET, there).code == 0
