"""What may interrupt a thread between any two of its steps, and how Ctrl-C is put off meanwhile.

What a signal's handler raises, it raises in the main thread, wherever that is just then. Most
programs have one handler, Python's own of Ctrl-C, and that can wait until something short is done.
Where a program has handlers of its own, which raise anything and may want a commit themselves,
where a debugger follows each line, and in all other threads, into which exceptions are injected,
what must not be interrupted is done in a thread of its own (`worker`).
"""

from __future__ import annotations

import os
import sys

# Those of `signal` look for a name of each handler that they meet, 2 microseconds each time.
from _signal import getsignal, signal  # type: ignore[import-not-found]
from signal import SIGINT, default_int_handler, valid_signals
from threading import get_ident, main_thread
from time import monotonic
from types import FrameType
from typing import Final, Self

INSISTS_AFTER_S: Final = 1.0
"""Who presses Ctrl-C again after so long is heard at once: what is short takes long this time."""

_SIGNALS: Final = tuple(sorted(map(int, valid_signals())))


def only_ctrl_c_interrupts() -> bool:
    """Whether nothing interrupts this thread but Ctrl-C, in the way in which Python has it.

    Exceptions that somebody injects into the main thread are not foreseen.
    """
    if get_ident() != main_thread().ident or sys.gettrace() is not None:
        return False
    handlers = sum(map(callable, map(getsignal, _SIGNALS)))
    return handlers == (getsignal(SIGINT) is default_int_handler)


class CtrlC:
    """Ctrl-C while something short is done that it must not interrupt; raised when that is done.

    For a thread that nothing else interrupts.

    Example:
        >>> with CtrlC() as ctrl_c:
        ...     ctrl_c.put_off()
        ...     # From here on nothing is left half done.
    """

    __slots__ = ("_came_s", "_is_put_off")

    def __init__(self) -> None:
        self._is_put_off = False
        self._came_s: float | None = None

    def __enter__(self) -> Self:
        return self

    def put_off(self) -> None:
        """Let it wait until the body has ended, and whatever is entered inside is left again."""
        if getsignal(SIGINT) is default_int_handler:
            self._is_put_off = True
            signal(SIGINT, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        if self._came_s is None:
            self._came_s = monotonic()
        elif monotonic() - self._came_s >= INSISTS_AFTER_S:
            raise KeyboardInterrupt

    def __exit__(self, *_error: object) -> None:
        if self._is_put_off:
            signal(SIGINT, default_int_handler)
        if self._came_s is not None:
            raise KeyboardInterrupt


def _put_off_no_longer() -> None:
    # A child that another thread forked meanwhile would never hear of it again.
    if isinstance(getattr(getsignal(SIGINT), "__self__", None), CtrlC):
        signal(SIGINT, default_int_handler)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_put_off_no_longer)
