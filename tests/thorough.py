"""The share of a space of inputs that a run tests: a part in `.ci/run`, all in `.ci/long`.

A law that hypothesis draws inputs for runs in both, with fewer of them in `.ci/run`. Where inputs
are parameters, seeds above all, the first ones run in `.ci/run` and the rest in `.ci/long`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pytest
from hypothesis import settings

PART: Final = 4
"""`.ci/run` draws one of this many inputs of a law."""

DRAWN: Final = 100
"""Inputs of a law that asks for no number of its own, in `.ci/long`."""


def examples(count: int) -> int:
    """Return how many inputs this run draws for a law that wants `count` of them in all."""
    return max(1, count * settings().max_examples // DRAWN)


def some(values: Iterable[Any], first: int) -> list[Any]:
    """Return values for `parametrize`: the first ones for every run, the rest for long ones."""
    every = list(values)
    rest = [pytest.param(each, marks=pytest.mark.long) for each in every[first:]]
    return [*every[:first], *rest]
