"""Whole commands, interrupted at each call that changes their store, end alike after a retry.

A run compares what the interrupted command said with what it has left, runs the same command line
again, and compares the end with that of a command that nothing interrupted.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ledger import Ledger, Schema
from ledger.ledger_handle import LedgerHandle
from ledger.opening.context import TableSetting
from ledger.stores import LocalStore
from tests.faults import Died, DiesAfter
from tests.programme.command_cases import (
    CASES,
    ROWS,
    command,
    life,
    opened,
    rows,
    texts,
    verified,
)
from tests.programme.figures import FIGURES
from tests.pypaimon_or_skip import needs_pypaimon
from tests.readers.lakehouse import add_rows
from tests.thorough import some

needs_pypaimon()
pytest.importorskip("deltalake")

REPOSITORY = Path(__file__).parents[2]
SAMPLED = 5
"""So many interruptions of each command `.ci/run` looks at."""


def interrupted(cases: tuple[str, ...], runs: str, folder: Path) -> list[str]:
    """Interrupt commands, each a number of times or at all of their calls; return the problems."""
    program = "tests.programme.interrupted_commands"
    done = subprocess.run(
        [sys.executable, "-m", program, str(folder), runs, *cases],
        cwd=REPOSITORY,
        capture_output=True,
        check=False,
        text=True,
        timeout=6_000,
    )
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [each["case"] for each in lines if "case" in each] == [*cases]
    assert all(each["calls"] for each in lines if "case" in each)
    found = [each for each in lines if "call" in each]
    FIGURES["kills"] += len(found)
    problems = [each for each in found if each["problem"]]
    return [
        f"{each['name']}, {each['how']} at {each['call']}: {each['problem']}" for each in problems
    ]


def test_commands_interrupted_at_some_calls_say_what_they_did_and_a_retry_completes_them(
    tmp_path: Path,
) -> None:
    assert interrupted(tuple(CASES), str(SAMPLED), tmp_path) == []


@pytest.mark.long
@pytest.mark.timeout(6_000)
@pytest.mark.parametrize("case", CASES)
def test_a_command_interrupted_at_any_call_says_what_it_did_and_a_retry_completes_it(
    case: str, tmp_path: Path
) -> None:
    assert interrupted((case,), "all", tmp_path) == []


def killed_while_projecting(root: Path, format_name: str, writes: int) -> bool:
    """Kill a projection before one of its writes; return whether it came that far."""
    store = DiesAfter(LocalStore(root), writes)
    try:
        Ledger(LedgerHandle(TableSetting(store, {}, author="me"))).table("shop.t").project(
            format_name
        )
    except Died:
        return True
    return False


@pytest.mark.parametrize("format_name", ["paimon", "iceberg"])
@pytest.mark.parametrize("step", some([4, 1], 1))
def test_what_a_killed_projection_left_at_the_old_place_is_rendered_anew_at_the_new_one(
    format_name: str, step: int, tmp_path: Path
) -> None:
    start, old, new = (tmp_path / name for name in ("start", "old", "new"))
    lake = opened(old)
    lake.create_database("shop")
    options = {"ledger.formats": format_name}
    table = lake.create_table("shop.t", Schema.of({"id": "BIGINT"}, options=options))
    add_rows(table, "data/first.parquet", [{"id": 100}])
    table.project(format_name)
    life(table)
    old.rename(start)
    for writes in range(0, 400, step):
        shutil.rmtree(new, ignore_errors=True)
        shutil.copytree(start, old)
        if not killed_while_projecting(old, format_name, writes):
            assert writes > 4
            return
        old.rename(new)
        code, _, err = command("move", "--ledger", new)
        assert code == 0, err
        assert [path for path, text in texts(new) if str(old) in text] == []
        assert rows(new / "shop.db/t", format_name) == ROWS
        verified(new)
    pytest.fail("it never came to an end")
