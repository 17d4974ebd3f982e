"""A ledger that may only be read: what reads works, and what writes says why it cannot."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ledger
from ledger.cli import exits
from tests.readers.lakehouse import add_rows
from tests.stores.test_refusals import as_somebody_else

if TYPE_CHECKING:
    from tests.cli.conftest import Run

pytestmark = pytest.mark.usefixtures("installed")

TABLE = "shop.orders"

READS = (
    *("ls", "show", f"show {TABLE}", f"head {TABLE}", f"snapshots {TABLE}", f"log {TABLE}"),
    *("log --all", f"diff {TABLE} 0", f"blame {TABLE}", f"replay {TABLE}", f"stats {TABLE}"),
    *("verify", "view list shop", f"plan {TABLE} --drop note", "init"),
    *(f"undo {TABLE} 2", f"restore {TABLE} --to version:0", "follow --once"),
    *(f"drop {TABLE}", f"expire {TABLE} --keep 1", "status", f"status {TABLE}"),
)
WRITES = (
    *("create more", "create shop.x --like shop.orders", f"alter {TABLE} --set k=v"),
    *(f"rename {TABLE} shop.x", f"drop {TABLE} --yes", f"undo {TABLE} 2 --yes", f"tag {TABLE} t"),
    *(f"branch {TABLE} b", f"rollback {TABLE} --to snapshot:1", f"delete-files {TABLE} 2.parquet"),
    *(f"restore {TABLE} --to version:0 --yes", f"expire {TABLE} --keep 1 --yes", "doctor"),
)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user may come to."""
    made = Path(tempfile.mkdtemp(prefix="read-only-"))
    made.chmod(0o755)
    yield made
    for each in made.rglob("*"):
        if each.is_dir():
            each.chmod(0o755)
    shutil.rmtree(made)


def lake_in(folder: Path) -> str:
    """Return a new ledger with a table of two snapshots."""
    made = ledger.open(str(folder / "lake"))
    made.create_database("shop")
    table = made.create_table(TABLE, {"id": "BIGINT"})
    add_rows(table, "1.parquet", [{"id": 1}])
    table.alter([ledger.AddColumn(("note",), "STRING")])
    add_rows(table, "2.parquet", [{"id": 2, "note": None}])
    table.project("iceberg")
    return str(folder / "lake")


@pytest.mark.parametrize("lines", [READS, WRITES])
def test_reading_commands_work_and_writing_commands_name_the_reason(
    run: Run, folder: Path, tmp_path: Path, lines: Sequence[str]
) -> None:
    lake, spare = lake_in(folder), lake_in(tmp_path)
    for each in (Path(lake), *Path(lake).rglob("*")):
        if each.is_dir():
            each.chmod(0o555)
    for line in lines:
        # What a line imports may stand where somebody else may not look.
        run(*line.split(), "--ledger", spare)
    with as_somebody_else():
        found = {line: run(*line.split(), "--ledger", lake) for line in lines}

    for line, ran in found.items():
        assert "Traceback" not in ran.err, line
        if lines is READS:
            assert ran.code == exits.OK, (line, ran.err)
        else:
            assert (ran.code, len(ran.err.splitlines())) == (exits.STORE, 1), (line, ran.err)
            assert "Permission denied" in ran.err, line
