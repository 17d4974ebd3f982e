"""Texts of other writers are only texts, in a terminal and in a notebook.

They hold no escape sequence that steers the terminal, no character that changes the direction of
a line, and no end of a line behind which a forged one could stand.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from pathlib import Path
from typing import Any

import pytest

import ledger
from ledger import AddColumn, FileChange, Schema, SetOption, UpdateColumnComment, ViewSchema
from ledger.cli.exits import USAGE
from tests.cli.conftest import Run

HOSTILE = "x\x1b[2J\x07\u202ecod.exe\u2066\u200f\x9b31m\r\nFORGED line\u2028FORGED again\x85FORGED"
"""A text that would steer a terminal, turn a line around, and forge three more."""

COMMANDS = (
    *(
        "ls",
        "ls shop",
        "show shop.orders",
        "show shop.orders --at version:1",
        "log",
        "log --limit 3",
    ),
    *(
        "log shop.orders",
        "log shop.orders --limit 2",
        "diff shop.orders 0 now",
        "blame shop.orders",
    ),
    *("blame shop.orders --column id", "snapshots shop.orders", "replay shop.orders", "doctor"),
    *("plan shop.orders --drop id", "undo shop.orders 2", "verify", "branch shop.orders"),
    *("view show shop.v", "view list shop", "expire shop.orders --keep 1", "head shop.orders"),
    *("promote shop.orders --dry-run", "drop shop.orders", "tag shop.orders v2", "maintain"),
    *("erase --person a", "stats shop.orders", "delete-files shop.orders nothing"),
    *(
        "project iceberg shop.orders",
        "follow --once",
        "move",
        "restore shop.orders --to 1",
    ),
)


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """A ledger with hostile texts wherever it takes any."""
    made = ledger.open(str(tmp_path / "lake"), author=HOSTILE)
    made.create_database("shop", options={"note": HOSTILE}, message=HOSTILE)
    table = made.create_table(
        "shop.orders",
        Schema.of({"id": "BIGINT"}, options={"ledger.formats": "iceberg"}),
        message=HOSTILE,
    )
    table.alter([AddColumn((HOSTILE,), "BIGINT", comment=HOSTILE)], message=HOSTILE)
    table.alter([UpdateColumnComment(("id",), HOSTILE), SetOption("k", HOSTILE)], message=HOSTILE)
    table.append(
        [FileChange(path=HOSTILE, record_count=1, file_size_in_bytes=1)],
        properties={"p": HOSTILE},
        message=HOSTILE,
    )
    table.create_tag("v1", message=HOSTILE)
    columns = Schema.of({"id": "BIGINT"}).fields
    made.create_view("shop.v", ViewSchema(columns, HOSTILE, comment=HOSTILE))
    made.close()
    return tmp_path / "lake"


@pytest.mark.parametrize("line", COMMANDS)
def test_no_command_prints_what_steers_a_terminal_or_forges_a_line(
    run: Run, lake: Path, line: str
) -> None:
    ran = run(*line.split(), "--ledger", lake)

    assert ran.code != USAGE
    for text in (ran.out, ran.err):
        assert {each for each in text if not each.isprintable()} <= {"\n"}
        assert not [each for each in text.splitlines() if each.strip().startswith("FORGED")]


def test_an_error_names_what_was_asked_for_without_steering_the_terminal(
    run: Run, lake: Path
) -> None:
    for line in (
        ["show", HOSTILE],
        ["show", f"shop.{HOSTILE}"],
        [HOSTILE],
        ["log", f"--{HOSTILE}"],
    ):
        ran = run(*line, "--ledger", lake)
        assert ran.code != 0
        assert ran.err.isprintable() or ran.err.count("\n") == 1
        assert {each for each in ran.out + ran.err if not each.isprintable()} <= {"\n"}


def test_json_output_still_has_the_texts_as_they_are(run: Run, lake: Path) -> None:
    ran = run("log", "shop.orders", "--output", "json", "--ledger", lake)

    assert {each for each in ran.out if not each.isprintable()} <= {"\n"}
    assert ran.document["commits"][0]["transactions"][0]["author"] == HOSTILE


def shown_in_notebooks() -> set[type]:
    """Every class of the package that a notebook shows as HTML."""
    found: set[type] = set()
    for each in pkgutil.walk_packages(ledger.__path__, "ledger."):
        if not each.name.endswith("__main__"):
            module = importlib.import_module(each.name)
            found |= {kind for _, kind in inspect.getmembers(module, inspect.isclass)}
    return {each for each in found if "_repr_html_" in vars(each)}


def test_no_notebook_shows_what_turns_a_line_around(lake: Path) -> None:
    opened = ledger.open(str(lake))
    table = opened.table("shop.orders")
    branch = table.branch("audit")
    shown: list[Any] = [
        opened,
        table,
        table.at(),
        table.at().schema,
        table.plan([AddColumn(("n",), "INT", comment=HOSTILE)]),
        table.diff(0),
        table.history(),
        table.blame(),
        *table.blame(),
        table.plan_undo(1),
        table.plan_restore(0),
        table.at().plan("id > 5"),
        *table.entries(),
        *opened.entries(),
        branch,
    ]

    assert shown_in_notebooks() - {type(each) for each in shown} == set()
    for each in shown:
        page: str = each._repr_html_()
        assert page.isprintable()
