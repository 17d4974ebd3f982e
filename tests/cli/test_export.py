"""`lakeledger export` and `lakeledger import ledger`."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run


@pytest.fixture
def lake(run: Run, tmp_path: Path) -> Path:
    place = tmp_path / "lake"
    assert run("init", place).code == 0
    assert run("create", "shop", "--ledger", place).code == 0
    assert run("create", "shop.orders", "--column", "id INT", "--ledger", place).code == 0
    assert run("alter", "shop.orders", "--set", "a=b", "--ledger", place).code == 0
    return place


def test_a_ledger_exported_to_a_file_and_imported_is_the_same(
    run: Run, lake: Path, tmp_path: Path
) -> None:
    file, new = tmp_path / "lines", tmp_path / "new"
    done = run("export", "--ledger", lake)
    assert done.code == 0
    assert "exported 4 commits of 2 logs" in done.err
    file.write_text(done.out)
    brought = run("import", "ledger", file, "--restore", "--ledger", new, "--output", "json")
    assert (brought.code, brought.document["commitsWritten"]) == (0, 4)
    assert run("verify", "--ledger", new).out == run("verify", "--ledger", lake).out
    assert run("export", "--ledger", new).out == done.out


def test_lines_come_from_a_pipe(
    run: Run, lake: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = run("export", "shop.orders", "--to", 0, "--ledger", lake).out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines.encode())))
    assert run("import", "ledger", "-", "--copy", "--ledger", tmp_path / "new").code == 0
    assert "copiedFrom" in (tmp_path / "new/_ledger/ledger.json").read_text()


def test_mistakes_end_with_their_exit_codes(run: Run, lake: Path, tmp_path: Path) -> None:
    new = tmp_path / "new"
    assert run("export", "shop.orderz", "--ledger", lake).code == 3
    assert run("import", "ledger", tmp_path / "none", "--restore", "--ledger", new).code == 3
    file = tmp_path / "lines"
    file.write_text(run("export", "--ledger", lake).out[:-20])
    assert run("import", "ledger", file, "--restore", "--ledger", new).code == 6
    assert run("ls", "--ledger", new).code == 6


def test_an_export_is_not_copied_onto_its_own_ledger(shop: Run, tmp_path: Path) -> None:
    lines = tmp_path / "x.jsonl"
    lines.write_text(shop("export").out)

    ran = shop("import", "ledger", lines, "--copy")

    assert ran.code == 3
    assert "itself, of which the lines are an export; a copy needs an empty place" in ran.err
