from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ledger.cli.app import app_for
from ledger.cli.commands import NAMES
from ledger.cli.exits import MEANINGS
from ledger.cli.overview import families

if TYPE_CHECKING:
    from tests.cli.conftest import Run

ROOT = Path(__file__).parents[2]
ALL = (*NAMES, "project", "serve", "serve-token", "stats", "ui")


def test_help_names_every_command_and_every_exit_code(run: Run, installed: None) -> None:
    del installed
    ran = run("--help")

    assert ran.code == 0
    for name in ALL:
        assert re.search(rf"^. {name} ", ran.out, re.MULTILINE), name
    for code, meaning in MEANINGS.items():
        assert f"{code}: {meaning}" in ran.out


def test_help_is_one_panel_of_commands_grouped_by_task(run: Run, installed: None) -> None:
    del installed
    out = run("--help").out

    assert out.count("─ Commands ─") == 1
    headings = re.findall(r"^. ([A-Z][a-z,? ]+?) +.$", out, re.MULTILINE)
    assert headings[:3] == ["Get started", "Inspect tables", "Audit history"]
    after = out.partition("Project and serve")[2].partition("Administer a ledger")[0]
    # Commands of installed packages are there, too, and none that has a group of its own.
    assert re.findall(r"^. ([a-z-]+) ", after, re.MULTILINE) == [
        "follow",
        "promote",
        "serve-table",
        "project",
        "serve",
        "serve-token",
        "stats",
        "ui",
    ]


@pytest.mark.parametrize("name", ALL)
def test_each_command_has_help_and_an_example_of_itself(
    run: Run, installed: None, name: str
) -> None:
    del installed
    ran = run(name, "--help")

    assert ran.code == 0
    _, example = ran.out.split("Example:")
    assert f"lakeledger {name}" in example
    assert "help" not in example


@pytest.mark.parametrize("name", ALL)
def test_a_command_is_listed_by_the_first_line_of_its_own_help(installed: None, name: str) -> None:
    del installed
    listed = {each: summary for those in families().values() for each, summary in those.items()}

    assert listed[name] == str(app_for([name])[name].help).partition("\n")[0].replace("`", "")


@pytest.mark.parametrize("width", [30, 80, 200])
def test_the_overview_is_as_wide_as_the_terminal(
    run: Run, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = run("--help").out.splitlines()

    assert max(map(len, lines)) == width
    assert not [line for line in lines if line.endswith(" ")]
    words = " ".join(" ".join(lines).replace("│", " ").split())
    assert "init Initialize a ledger; does nothing if one already exists." in words
    assert "Root of the ledger: LAKELEDGER_URL or --ledger" in words


@pytest.mark.parametrize("line", [["--ledgr", "lake"], ["-x"], ["--output", "text"]])
def test_a_line_without_a_command_says_so(run: Run, line: list[str]) -> None:
    ran = run(*line)

    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "lakeledger: no command given; see: lakeledger --help\n"


def test_the_version_is_the_installed_one(run: Run, installed: None) -> None:
    del installed
    assert re.fullmatch(r"\d+\.\d+\.\d+\n", run("--version").out)


@pytest.mark.parametrize("line", [["--help"], ["alter", "--help"], ["show", "--help"]])
def test_help_starts_without_the_heavy_libraries(line: list[str]) -> None:
    program = (
        "import sys; from ledger.cli import main; main(sys.argv[1:]); "
        "print(sorted({'pyarrow', 'pyspark', 'fastavro', 'pandas'} & sys.modules.keys()))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program, *line], capture_output=True, text=True, check=True, cwd=ROOT
    )

    assert ran.stdout.splitlines()[-1] == "[]"


def test_the_module_runs_as_the_command() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "ledger", "nonsense"], capture_output=True, check=False, cwd=ROOT
    )

    assert (ran.returncode, ran.stdout) == (2, b"")


@pytest.mark.parametrize("name", ALL)
def test_every_command_is_in_the_documentation(name: str) -> None:
    page = ROOT / "ledger" / "docs" / "commands.md"

    assert f"lakeledger {name}" in page.read_text()
