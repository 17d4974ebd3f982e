"""Beside: how long work in a thread of the library's own lets commits of its process pass.

Whoever does such work calls `give_way` between parts of a millisecond or so. It costs nothing in a
thread that nobody has asked to be considerate, as that of a user.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, Protocol


class Considerate(Protocol):
    """Knows of commits."""

    def give_way(self) -> None:
        """Return once it is this thread's turn again."""

    @property
    def is_alone(self) -> bool:
        """Whether no commit is to be expected."""


class _Here(threading.local):
    considerate: Considerate | None = None


_here: Final = _Here()


def give_way() -> None:
    """Let commits pass that are under way, if this thread is asked to."""
    found = _here.considerate
    if found is not None:
        found.give_way()


def is_alone() -> bool:
    """Whether nobody minds how much this thread does at a time."""
    found = _here.considerate
    return found is None or found.is_alone


@contextmanager
def giving_way(considerate: Considerate) -> Iterator[None]:
    """Ask this thread to let commits pass in what is done inside."""
    _here.considerate = considerate
    try:
        yield
    finally:
        _here.considerate = None
