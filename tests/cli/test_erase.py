"""The command line erases the data of a person."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ledger.cli import exits

if TYPE_CHECKING:
    from tests.cli.conftest import Run

ANN = "ann-0123456789@example.com"


@pytest.fixture
def folder(run: Run, tmp_path: Path) -> Path:
    """Return a ledger that can forget, and what Ann did in it."""
    lake = tmp_path / "lake"
    assert run("init", lake, "--erasable", "--output", "json").document["erasable"] is True
    run("create", "shop", "--author", ANN, "--ledger", lake)
    run("create", "shop.orders", "--column", "id INT", "--author", "bob", "--ledger", lake)
    said = ("--author", "bob", "--message", f"for {ANN}")
    run("alter", "shop.orders", "--set", "k=1", *said, "--ledger", lake)
    return lake


def files_with(folder: Path, text: str) -> list[Path]:
    found = [each for each in folder.rglob("*") if each.is_file()]
    return [each for each in found if text.encode() in each.read_bytes()]


def test_an_author_is_erased_and_every_reader_says_so(run: Run, folder: Path) -> None:
    at = ("--ledger", folder)
    plan = run("erase", "--person", ANN, *at)
    assert "2 authors, messages, property maps and column values of 2 " in plan.out
    assert len(files_with(folder, ANN)) == 2

    ran = run("erase", "--person", ANN, "--yes", "--author", "desk", "--message", "request 17", *at)
    assert ran.code == exits.OK
    assert " changes erased" in ran.out
    assert "exports, backups" in ran.out
    assert files_with(folder, ANN) == []

    output = run("log", "shop.orders", "--output", "json", *at).out
    assert "erased" in output
    assert "bob" in output
    assert "desk" in run("log", *at).out
    for words in (("show", "shop.orders"), ("blame", "shop.orders"), ("verify",), ("maintain",)):
        assert run(*words, *at).code == exits.OK


def test_what_is_not_there_is_said_not_to_be(run: Run, folder: Path) -> None:
    ran = run("erase", "--person", "nobody", "--yes", "--ledger", folder)

    assert ran.code == exits.OK
    assert "no such values are stored outside the log" in ran.out
    document = run(
        "erase", "--text", "nobody", "--yes", "--ledger", folder, "--output", "json"
    ).document
    assert (document["values"], document["version"], document["remaining"]) == (0, None, [])


def test_what_lines_hold_is_listed(run: Run, folder: Path) -> None:
    run("alter", "shop.orders", "--set", f"owner={ANN}", "--ledger", folder)

    ran = run("erase", "--person", ANN, "--yes", "--ledger", folder)
    assert "shop.orders keeps the data in its log permanently: 2" in ran.out


def test_a_ledger_that_cannot_forget_says_how_it_could(run: Run, tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    run("init", lake)
    run("create", "shop", "--author", ANN, "--ledger", lake)

    refused = run("erase", "--person", ANN, "--yes", "--ledger", lake)
    assert (refused.code, refused.out) == (exits.INVALID_INPUT, "")
    assert "lakeledger init --erasable" in refused.err
    refused = run("init", lake, "--erasable")
    assert refused.code == exits.USAGE
    assert "lakeledger init --erasable" in refused.err
