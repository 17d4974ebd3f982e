"""Figures of the programme in this run, printed at its end."""

from __future__ import annotations

from collections import Counter
from typing import Final

FIGURES: Final[Counter[str]] = Counter()
"""Counts by what was counted; `lost` is there from the beginning."""

NAMES: Final = (
    "schedules",
    "steps",
    "faults",
    "network faults",
    "crashes",
    "kills",
    "power losses",
    "commits",
    "reads checked",
    "decoder inputs",
    "lost",
)


def lines() -> list[str]:
    """Return the figures as text, in a fixed order; nothing when nothing ran."""
    if not any(FIGURES.values()):
        return []
    return [", ".join(f"{name} {FIGURES[name]:,}" for name in NAMES)]
