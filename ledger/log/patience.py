"""Patience: how long whoever waits for a store, or for others, goes on."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

from msgspec import Struct

# Programs give all of their processes one seed, and those would wait as long as one another.
_dice = random.SystemRandom()


def _jitter(low: float, high: float) -> float:
    return _dice.uniform(low, high)


class Patience(Struct, frozen=True):
    """How long a writer goes on.

    Attributes:
        deadline_s: After so many seconds a losing or unanswered writer gives up.
        first_wait_s: The longest first pause; it doubles up to `longest_wait_s`.
        longest_wait_s: The longest pause at all.
        sleep: Waits, in seconds.
        monotonic: A clock for deadlines, in seconds.
        uniform: Jitter: a number between its two arguments.
    """

    deadline_s: float = 60.0
    first_wait_s: float = 0.002
    longest_wait_s: float = 0.5
    sleep: Callable[[float], None] = time.sleep
    monotonic: Callable[[], float] = time.monotonic
    uniform: Callable[[float, float], float] = _jitter

    def pause(self, attempt: int) -> None:
        """Wait a random time, longer with every attempt."""
        longest = min(self.longest_wait_s, self.first_wait_s * 2 ** min(attempt, 12))
        self.sleep(self.uniform(0, longest))

    def attempts(self) -> Iterator[int]:
        """Yield 1, 2, 3, ... until the deadline has passed, with pauses from the third on.

        The second follows at once: whoever holds the lock wins it, and a lost answer is rare.
        """
        give_up = self.monotonic() + self.deadline_s
        attempt = 0
        while attempt == 0 or self.monotonic() <= give_up:
            attempt += 1
            yield attempt
            if attempt > 1:
                self.pause(attempt)
