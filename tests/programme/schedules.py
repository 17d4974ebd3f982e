"""The schedules of a run: some seeds under each habit, and more under all at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from tests.programme.simulated import HABITS
from tests.programme.simulation import Case
from tests.thorough import examples

SCHEDULES: Final = int(os.environ.get("LAKELEDGER_SCHEDULES", "0")) or examples(2_000)
"""Of both kinds together."""

KINDS: Final = 2

GROUPS: Final[dict[str, tuple[str, ...]]] = {
    "nothing": (),
    **{each: (each,) for each in HABITS},
    "all": HABITS,
}
# Everything at once is worth as much as all habits one by one.
_SHARES: Final = {name: 6 if name == "all" else 1 for name in GROUPS}


def cases(group: str) -> Iterator[Case]:
    """Yield the cases of a group."""
    count = max(1, SCHEDULES // KINDS * _SHARES[group] // sum(_SHARES.values()))
    return (Case(seed, GROUPS[group]) for seed in range(count))


def kept(path: Path) -> list[str]:
    """Return the cases that once failed, and the one that the environment names."""
    named = os.environ.get("LAKELEDGER_SEED", "")
    lines = [named, *path.read_text().splitlines()]
    return [each for each in lines if each.strip() and not each.startswith("#")]


def examine(case: Case, look: Callable[[Case], None], keep_in: Path) -> None:
    """Run the schedule of a case; a failure names the case.

    Raises:
        AssertionError: It broke a promise.
    """
    try:
        look(case)
    except Exception as error:
        raise AssertionError(
            f'the schedule failed; see it again with LAKELEDGER_SEED="{case}", and keep that line '
            f"in {keep_in.name}: {error!r}"
        ) from error
