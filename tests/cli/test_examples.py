"""The examples of the help: pasted as they are shown at 80 columns, one after the other."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from ledger.cli.app import app_for
from ledger.cli.commands import NAMES

ROOT = Path(__file__).parents[2]
COLUMNS = 80
PLUGGED = ("project", "serve", "serve-token", "stats", "ui")


def environment(**more: str) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("LAKELEDGER")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{kept.get('PATH', '')}"
    return {**kept, "COLUMNS": str(COLUMNS), "TERM": "dumb", "PATH": path, **more}


def pages() -> list[tuple[str, ...]]:
    """Return every command in the order in which one begins, families unfolded."""
    found: list[tuple[str, ...]] = [()]
    for name in (*NAMES, *PLUGGED):
        found.append((name,))
        inner = [each for each in app_for([name])[name] if not each.startswith("-")]
        found += [(name, each) for each in inner]
    return found


EVERY_PAGE = """
import contextlib, io, json, sys
from ledger.cli import main
for words in json.load(sys.stdin):
    page = io.StringIO()
    with contextlib.redirect_stdout(page):
        assert main([*words, "--help"]) == 0
    print(json.dumps(page.getvalue()))
"""


@cache
def helps() -> dict[tuple[str, ...], str]:
    """Return the help of every command, as a process without a terminal prints it."""
    ran = subprocess.run(
        [sys.executable, "-c", EVERY_PAGE],
        input=json.dumps(pages()),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=environment(),
    )
    return dict(zip(pages(), map(json.loads, ran.stdout.splitlines()), strict=True))


def help_of(words: tuple[str, ...]) -> str:
    return helps()[words]


def examples_in(page: str) -> list[str]:
    """Return the commands below `Example:`, joined where a line ends in a backslash."""
    _, _, text = page.partition("Example:")
    lines = [each.strip() for each in text.splitlines() if each.strip()]
    commands: list[str] = []
    goes_on = False
    for line in lines:
        if goes_on:
            commands[-1] += f"\n{line}"
        else:
            commands.append(line)
        goes_on = line.endswith("\\")
    return commands


@pytest.mark.parametrize("words", pages(), ids=" ".join)
def test_every_page_has_examples_of_itself_that_fit(words: tuple[str, ...]) -> None:
    page = help_of(words)
    commands = examples_in(page)

    assert commands
    own = " ".join(("lakeledger", *words))
    for each in commands:
        # A root or a family shows an example of one of its commands.
        assert each.startswith(own), each
    assert all(len(line.rstrip()) <= COLUMNS for line in page.splitlines())


ELSEWHERE = (
    "lakeledger import delta",
    "lakeledger import iceberg",
    "lakeledger import paimon",
    "lakeledger project delta",
    "lakeledger promote",
    "lakeledger serve ",
    "lakeledger serve-table",
    "lakeledger ui",
)
"""Commands that need an imported table or other declared formats, or run until they are stopped."""


def is_for_the_shell(line: str) -> bool:
    """Return whether a line pipes or writes elsewhere: whose process it is may matter then."""
    return bool(re.search(r" [|>] ", line))


@pytest.mark.law
def test_the_examples_run_in_the_order_of_the_help(tmp_path: Path, loaded_command: Path) -> None:
    pasted = [each for words in pages()[1:] for each in examples_in(help_of(words))]
    # A family's own example is one of its commands', shown twice.
    pasted = [each for each in dict.fromkeys(pasted) if not each.startswith(ELSEWHERE)]

    assert len(pasted) > len(NAMES)
    installed = environment(LAKELEDGER_URL="lake", LAKELEDGER_AUTHOR="ada")
    loaded = {**installed, "PATH": f"{loaded_command}{os.pathsep}{installed['PATH']}"}
    assert 3 <= sum(map(is_for_the_shell, pasted)) < len(pasted)
    for each in pasted:
        ran = subprocess.run(
            ["bash", "-c", each],
            cwd=tmp_path,
            env=installed if is_for_the_shell(each) else loaded,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, f"{each}\n{ran.stdout}\n{ran.stderr}"
        assert not re.search(r"Traceback|Warning", ran.stderr), each
