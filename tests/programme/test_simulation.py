"""Thousands of schedules of the real commit code, on a store that loses, repeats and dies.

`--long` tries 2,000 of them and every run 500, `LAKELEDGER_SCHEDULES=20000` as many; half of them
are `test_catalog_simulation`'s. `LAKELEDGER_SEED="17 lost answer"` runs the one that a failure
named. A seed that once failed is kept in `kept_seeds.txt` and runs every time.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programme.schedules import GROUPS, cases, examine, kept
from tests.programme.simulation import Case, check, run

KEPT = Path(__file__).parent / "kept_seeds.txt"


def look(case: Case) -> None:
    check(run(case))


@pytest.mark.law
@pytest.mark.parametrize("group", GROUPS)
def test_every_schedule_keeps_the_promises(group: str) -> None:
    for case in cases(group):
        examine(case, look, KEPT)


@pytest.mark.parametrize("line", kept(KEPT))
def test_what_once_failed_stays_right(line: str) -> None:
    examine(Case.of(line), look, KEPT)
