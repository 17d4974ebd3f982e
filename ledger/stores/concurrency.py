"""Concurrent requests to a store."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, TypeVar

AT_ONCE: Final = 8
"""How many are done at a time, at most."""

T = TypeVar("T")
A = TypeVar("A")


def do_each(do: Callable[[T], None], things: Iterable[T]) -> None:
    """Do something with each of several things, in no order, `AT_ONCE` at a time.

    Returns, or raises what the first to fail raised, once nobody is at work any more. The caller
    works, too, so it goes on where a process that ends gives out no more threads.
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
            except BaseException as error:  # noqa: BLE001 - raised again where it was asked for
                failures.append(error)

    helpers = [
        threading.Thread(target=work, name="lakeledger-several", daemon=True)
        for _ in range(min(AT_ONCE, len(left)) - 1)
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


def answers(ask: Callable[[T], A], things: Sequence[T]) -> list[A]:
    """Ask for each of several things, `AT_ONCE` at a time, and return the answers in their order.

    Raises what the first to fail raised.

    Example:
        >>> answers(str.upper, ["a", "b", "c"])
        ['A', 'B', 'C']
    """
    found: dict[int, A] = {}

    def ask_for(place: int) -> None:
        found[place] = ask(things[place])

    do_each(ask_for, range(len(things)))
    return [found[place] for place in range(len(things))]


def create_one_by_one(
    create: Callable[[str, bytes], bool],
    steps: Sequence[Mapping[str, bytes]],
    met: Callable[[str, bytes], None],
) -> None:
    """Do what `Store.create_many` says by one create after the other."""
    for step in steps:
        for key, body in step.items():
            if not create(key, body):
                met(key, body)
