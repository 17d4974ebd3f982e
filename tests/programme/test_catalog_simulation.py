"""Thousands of schedules in which tables, views and databases come, change and go, while others
commit to the tables; on the same store, and with the same switches, as `test_simulation`.

What is promised of the two streams: names are unique, and each location is given out once; a table
that the catalog has can be opened; a stream ends before the catalog forgets its table, and any
process that finds that half done finishes it; what was acknowledged is there exactly once, and did
what was asked.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programme.catalog_simulation import check, run
from tests.programme.schedules import GROUPS, cases, examine, kept
from tests.programme.simulation import Case

KEPT = Path(__file__).parent / "kept_catalog_seeds.txt"


def look(case: Case) -> None:
    check(run(case))


@pytest.mark.law
@pytest.mark.parametrize("group", GROUPS)
def test_every_schedule_keeps_the_promises_of_both_streams(group: str) -> None:
    for case in cases(group):
        examine(case, look, KEPT)


@pytest.mark.parametrize("line", kept(KEPT))
def test_what_once_failed_stays_right(line: str) -> None:
    examine(Case.of(line), look, KEPT)
