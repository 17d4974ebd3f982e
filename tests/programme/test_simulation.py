"""Thousands of schedules of the real commit code, on a store that loses, repeats and dies.

`LAKELEDGER_SCHEDULES=20000` asks for more of them; `LAKELEDGER_SEED="17 lost answer"` runs the one
that a failure named. A seed that once failed is kept in `kept_seeds.txt` and runs every time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.programme.simulated import HABITS
from tests.programme.simulation import Case, check, run

SCHEDULES = int(os.environ.get("LAKELEDGER_SCHEDULES", "250"))
KEPT = Path(__file__).parent / "kept_seeds.txt"
GROUPS: dict[str, tuple[str, ...]] = {
    "nothing": (),
    **{each: (each,) for each in HABITS},
    "all": HABITS,
}
# Everything at once is worth as much as all habits one by one.
SHARES = {name: 6 if name == "all" else 1 for name in GROUPS}


def cases(group: str) -> Iterator[Case]:
    count = max(1, SCHEDULES * SHARES[group] // sum(SHARES.values()))
    return (Case(seed, GROUPS[group]) for seed in range(count))


def examine(case: Case) -> None:
    try:
        check(run(case))
    except Exception as error:
        raise AssertionError(
            f'the schedule failed; see it again with LAKELEDGER_SEED="{case}", and keep that line '
            f"in {KEPT.name}: {error!r}"
        ) from error


@pytest.mark.parametrize("group", GROUPS)
def test_every_schedule_keeps_the_promises(group: str) -> None:
    for case in cases(group):
        examine(case)


def kept() -> list[str]:
    named = os.environ.get("LAKELEDGER_SEED", "")
    lines = [named, *KEPT.read_text().splitlines()]
    return [each for each in lines if each.strip() and not each.startswith("#")]


@pytest.mark.parametrize("line", kept())
def test_what_once_failed_stays_right(line: str) -> None:
    examine(Case.of(line))
