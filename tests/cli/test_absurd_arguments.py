"""Numbers and texts without any sense: a clean exit code, one line, and soon."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cyclopts import App

from ledger import FileChange, Table
from ledger import open as open_ledger
from ledger.cli.app import app_for
from ledger.cli.commands import NAMES

if TYPE_CHECKING:
    from tests.cli.conftest import Run

TABLE = "shop.orders"
DIGITS = "9" * 5_000
NUMBERS = (str(2**31), str(2**63), str(-(2**63) - 1), DIGITS, f"-{DIGITS}")
SOON_S = 10
DEEP = "[" * 100_000
HALF = "\ud800"

WORDS: dict[str, tuple[str, ...]] = {
    "create": ("more",),
    "alter": (TABLE, "--add", "zip STRING"),
    "sql": (f"ALTER TABLE {TABLE} ADD COLUMN zip STRING",),
    "append": (TABLE, "nothing.csv"),
    "add-files": (TABLE, "nothing.parquet"),
    "tag": (TABLE, "v1"),
    "branch": (TABLE, "audit"),
    "overwrite": (TABLE, "--where", "day=2013-01-02"),
    "delete-files": (TABLE, "f0.parquet"),
    "rename": (TABLE, "shop.more"),
    "rollback": (TABLE, "--to", "snapshot:1"),
    "expire --expect-version": (TABLE, "--before", "2", "--yes"),
    "undo --expect-version": (TABLE, "1", "--yes"),
    "restore": (TABLE, "--to", "version:0", "--yes"),
    "move": ("--dry-run",),
    "view create": ("shop.seen", "--column", "id INT", "--query", "SELECT 1"),
    "view alter": ("shop.seen", "--comment", "a"),
    "view rename": ("shop.seen", "shop.more"),
    "view drop": ("shop.seen", "--yes"),
    "stats --target-size": (TABLE, "--ask", "compaction"),
}
"""Arguments that a command, or one of its options, requires; the table alone otherwise."""


def commands(app: App, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], App]]:
    below = [each for each in app if not each.startswith("-")]
    if not below:
        yield words, app
    for each in below:
        yield from commands(app[each], (*words, each))


def whole_numbers() -> Iterator[tuple[tuple[str, ...], str]]:
    """Every command with each of its options that is a whole number."""
    for name in (*NAMES, "project", "stats"):
        for words, app in commands(app_for([name])[name], (name,)):
            for each in app.assemble_argument_collection():
                if each.hint in {int, int | None}:
                    yield words, each.name


@pytest.fixture
def flags() -> list[tuple[tuple[str, ...], str]]:
    return list(whole_numbers())


@pytest.fixture
def orders(shop: Run, tmp_path: Path) -> Table:
    """The table with two snapshots."""
    del shop
    table = open_ledger(str(tmp_path / "lake")).table(TABLE)
    for number in range(2):
        path, partition = f"f{number}.parquet", ("2013-01-01",)
        file = FileChange(path=path, partition=partition, record_count=1, file_size_in_bytes=9)
        table.append([file])
    return table


def test_every_integer_option_accepts_or_rejects_any_integer(
    shop: Run, installed: None, orders: Table, flags: list[tuple[tuple[str, ...], str]]
) -> None:
    del installed, orders
    assert len(flags) > 40
    for words, flag in flags:
        command = " ".join(words)
        beside = WORDS.get(f"{command} {flag}") or WORDS.get(command, (TABLE,))
        for number in NUMBERS:
            said = f"{flag}={number}" if flag.startswith("--") else number
            begun = time.monotonic()
            ran = shop(*words, *beside, said)
            line = f"{command} {said:.50}"
            assert time.monotonic() - begun < SOON_S, line
            assert ran.code == 0 or ran.err.count("\n") == 1, (line, ran.err)
            # The number itself is what is looked at.
            assert not WRONG_LINE.search(ran.err), (line, ran.err)


WRONG_LINE = re.compile("does not take|there is no option|needs|give (either|one)")


@pytest.mark.parametrize("asked", ["compaction", "growth", "untouched", "late", "retention"])
def test_any_number_of_days_can_be_asked_about(
    shop: Run, installed: None, orders: Table, asked: str
) -> None:
    del installed, orders
    for days in (0, 2**31, 2**63):
        ran = shop("stats", TABLE, "--ask", asked, "--days", days)
        assert ran.code == 0, ran.err


@pytest.mark.parametrize(
    "line",
    [
        ("show", TABLE, "--at", f"snapshot:{DIGITS}"),
        ("show", TABLE, "--at", f"version:{DIGITS}"),
        ("show", TABLE, "--at", f"-{DIGITS}"),
        ("show", TABLE, "--at", f"timestamp:{DIGITS}"),
        ("show", TABLE, "--timestamp", DIGITS),
        ("show", TABLE, "--timestamp", str(2**63)),
        ("log", TABLE, "--since", DIGITS),
        ("expire", TABLE, "--older-than", DIGITS),
        ("diff", TABLE, DIGITS),
        ("diff", TABLE, f"version:{DIGITS}"),
        ("branch", TABLE, "audit", "--at", DIGITS),
        ("replay", TABLE, "--to", DIGITS),
        ("restore", TABLE, "--to", DIGITS),
        ("rollback", TABLE, "--to", DIGITS),
        ("tag", TABLE, "v1", "--at", DIGITS),
        ("alter", TABLE, "--undrop", f"zip={DIGITS}"),
        ("alter", TABLE, "--add", f"zip VARCHAR({DIGITS})"),
        ("alter", TABLE, "--add", f'zip {{"type":"VECTOR","element":"FLOAT","length":{DIGITS}}}'),
        ("alter", TABLE, "--add", "zip " + "ARRAY<" * 100_000),
        ("alter", TABLE, "--add", 'zip {"type":' + DEEP),
        ("alter", TABLE, "--change", DEEP),
        ("alter", TABLE, "--change", f'{{"type":"undropColumn","fieldId":{DIGITS}}}'),
        ("alter", TABLE, "--change", json.dumps({"type": "dropColumn", "fieldNames": [HALF]})),
        ("alter", TABLE, "--rename", f"id={HALF}"),
        ("alter", TABLE, "--set", f"a={HALF}"),
        ("alter", TABLE, "--add", "zip INT", "--commit-id", HALF),
        ("alter", TABLE, "--add", "zip INT", "--message", HALF),
        ("alter", TABLE, "--add", "zip INT", "--author", HALF),
        ("log", TABLE, "--commit-id", HALF),
        ("tag", TABLE, HALF),
        ("sql", f"ALTER TABLE {TABLE} ADD COLUMN zip DECIMAL(1, 2, 3)"),
        ("sql", f"ALTER TABLE {TABLE} ADD COLUMN zip DECIMAL({DIGITS})"),
        ("overwrite", TABLE, "--where", "day=999999999999"),
        ("overwrite", TABLE, "--where", f"day={DIGITS}"),
        ("overwrite", TABLE, "--where", f"day={HALF}"),
    ],
    ids=lambda line: " ".join(line)[:60].encode("ascii", "replace").decode(),
)
def test_absurd_arguments_are_rejected_in_one_line(shop: Run, line: tuple[str, ...]) -> None:
    begun = time.monotonic()
    ran = shop(*line)

    assert ran.code in {1, 2, 3}, ran.err
    assert (ran.out, ran.err.count("\n")) == ("", 1)
    assert time.monotonic() - begun < SOON_S


@pytest.mark.parametrize("content", [DEEP, f"[{DIGITS}]", f'["{HALF}"]'])
def test_an_absurd_file_of_changes_is_rejected_in_one_line(
    shop: Run, tmp_path: Path, content: str
) -> None:
    path = tmp_path / "changes.json"
    path.write_bytes(content.encode("utf-8", "surrogatepass"))
    ran = shop("alter", TABLE, "--changes", path)

    assert (ran.code, ran.out, ran.err.count("\n")) == (1, "", 1), ran.err
