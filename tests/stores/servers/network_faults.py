"""Faults of a network on a request and on its response."""

from __future__ import annotations

import enum
import random
import threading
from collections.abc import Callable, Sequence
from typing import Final

from attrs import frozen


class Answer(enum.Enum):
    """The responses that a client gets instead of the server's."""

    DROPPED = "dropped"
    """The connection is closed."""

    HANGING = "hanging"
    """Nothing, for a while; then the connection is closed."""

    INTERNAL_ERROR = "500 InternalError"
    UNAVAILABLE = "503 ServiceUnavailable"

    TRUNCATED = "truncated"
    """Half of the server's response; then the connection is closed."""

    DELAYED = "delayed"
    """The server's response, after a while."""


class Moment(enum.Enum):
    """The time at which the server executes the request."""

    NEVER = "never"
    BEFORE = "before"
    LATE = "late"
    """A while after the client got the failure."""


@frozen
class Fault:
    """The fault of one request."""

    answer: Answer
    applied: Moment


LOST: Final = Fault(Answer.DROPPED, Moment.BEFORE)
"""The server executed the request, and the client gets no response."""

_OF_RESPONSES: Final = (Answer.TRUNCATED, Answer.DELAYED)
FAULTS: Final = tuple(
    Fault(answer, applied) for answer in Answer if answer not in _OF_RESPONSES for applied in Moment
)
"""Faults after which the client has nothing of the server's response."""

RESPONSE_FAULTS: Final = tuple(Fault(answer, Moment.BEFORE) for answer in _OF_RESPONSES)
"""Faults of the response alone."""


def sometimes(
    rate: float, seed: int, faults: Sequence[Fault] = FAULTS
) -> Callable[[], Fault | None]:
    """Return what spoils requests at that rate, with any fault, drawn in their order."""
    rng = random.Random(seed)
    guard = threading.Lock()
    # A hanging request takes most of the time.
    weights = [1 if each.answer is Answer.HANGING else 4 for each in faults]

    def draw() -> Fault | None:
        with guard:
            return rng.choices(faults, weights)[0] if rng.random() < rate else None

    return draw
