"""Signal handling of commands that run until they are stopped.

What a handler raises is lost where Python calls a finaliser, and a handler that takes a lock waits
for ever for the code that it interrupted. So a signal is remembered in a plain attribute, too, and
looked for between two rounds.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

_LOOKS_EVERY_S: Final = 0.1

_Handler = Callable[[int, FrameType | None], object]


class Stop:
    """Whether somebody asked the process to end."""

    def __init__(self) -> None:
        self.asked = False

    def ask(self, *_signal: object) -> None:
        """Remember that somebody did; a handler of signals."""
        self.asked = True

    def interrupt(self, *_signal: object) -> None:
        """Remember it, and leave what is under way; a handler of signals.

        Raises:
            KeyboardInterrupt: Always.
        """
        self.asked = True
        raise KeyboardInterrupt

    def wait(self, seconds: float) -> bool:
        """Return whether somebody asked, at once or within so many seconds."""
        until = time.monotonic() + seconds
        while not self.asked and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _LOOKS_EVERY_S))
        return self.asked

    def sleep(self, seconds: float) -> None:
        """Wait for so many seconds.

        Raises:
            KeyboardInterrupt: Somebody asked, now or at a moment that lost what was raised.
        """
        if self.wait(seconds):
            raise KeyboardInterrupt


@contextmanager
def ends_between_rounds() -> Iterator[Stop]:
    """Yield what SIGINT and SIGTERM ask; what is under way goes on to its end."""
    stop = Stop()
    with _handled(stop.ask, signal.SIGINT, signal.SIGTERM):
        yield stop


@contextmanager
def ends_at_once() -> Iterator[Stop]:
    """Yield what SIGINT asks, which interrupts what is under way."""
    stop = Stop()
    with _handled(stop.interrupt, signal.SIGINT):
        yield stop


@contextmanager
def _handled(handler: _Handler, *signals: signal.Signals) -> Iterator[None]:
    before = {each: signal.signal(each, handler) for each in signals}
    try:
        yield
    finally:
        for each, old in before.items():
            signal.signal(each, old)
