"""Concurrent requests to a store."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeVar

AT_ONCE: Final = 8
"""Number of concurrent requests, at most, unless a caller has many small ones."""

T = TypeVar("T")
A = TypeVar("A")


def run_concurrently(do: Callable[[T], None], things: Iterable[T], at_once: int = AT_ONCE) -> None:
    """Call `do` for each thing, in no order, up to `at_once` at a time in threads.

    Returns once all threads are done, or raises the error of the first call that failed. The
    calling thread works, too, so that it also works at exit, when no thread can be started.
    """
    left = deque(things)
    failures: list[BaseException] = []

    def work() -> None:
        while not failures:
            try:
                thing = left.popleft()
            except IndexError:
                return
            try:
                do(thing)
            except BaseException as error:  # noqa: BLE001 - raised again in the calling thread
                failures.append(error)

    helpers = [
        threading.Thread(target=work, name="lakeledger-several", daemon=True)
        for _ in range(min(at_once, len(left)) - 1)
    ]
    started = []
    for each in helpers:
        with suppress(RuntimeError):
            each.start()
            started.append(each)
    try:
        work()
    finally:
        left.clear()
        for each in started:
            each.join()
    if failures:
        raise failures[0]


def answers(ask: Callable[[T], A], things: Sequence[T], at_once: int = AT_ONCE) -> list[A]:
    """Return the results of `ask` for each thing, in order, computed `at_once` at a time.

    Raises the error of the first call that failed.

    Example:
        >>> answers(str.upper, ["a", "b", "c"])
        ['A', 'B', 'C']
    """
    found: dict[int, A] = {}

    def ask_for(place: int) -> None:
        found[place] = ask(things[place])

    run_concurrently(ask_for, range(len(things)), at_once)
    return [found[place] for place in range(len(things))]


def create_one_by_one(
    create: Callable[[str, bytes], bool],
    steps: Sequence[Mapping[str, bytes]],
    met: Callable[[str, bytes], None],
) -> None:
    """Implement `Store.create_many` by single creates, one after the other."""
    for step in steps:
        for key, body in step.items():
            if not create(key, body):
                met(key, body)
