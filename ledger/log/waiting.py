"""Waiting: entries on their way to a commit, and whose turn it is to lead."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable
from itertools import pairwise
from typing import Any, Generic, TypeVar

from ledger.log.entry import Entry

S = TypeVar("S")
E = TypeVar("E")


class Waiting(Generic[S, E]):
    """Gathers what threads ask for while a commit is under way.

    One of them leads at a time: it commits for all that have gathered. Then the first that came
    meanwhile leads, and those that are settled go on, one waking the next: if all woke at once,
    the new leader would wait for each of them to give up Python's lock before it reached the
    store.
    """

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._entries: deque[Entry[S, E]] = deque()
        self._leader: Entry[S, E] | None = None
        self._taken: list[Entry[S, E]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __reduce__(self) -> tuple[Any, ...]:
        # Whoever waits stays in its process.
        return Waiting, ()

    def come(self, entry: Entry[S, E]) -> None:
        """Wait until the entry is settled, or has to lead."""
        try:
            with self._guard:
                self._entries.append(entry)
                if self._leader is None:
                    self._leader = entry
                    entry.wake()
            entry.wait()
        except BaseException:
            self._leave(entry)
            raise
        finally:
            self._go_on(entry)

    def gathered(self) -> list[Entry[S, E]]:
        """Take all that wait; only for the one who leads."""
        with self._guard:
            taken = list(self._entries)
            self._taken += taken
            self._entries.clear()
        return taken

    def hand_over(self, settled: Iterable[Entry[S, E]]) -> None:
        """Let the first that waits lead, and those that are settled go on.

        Whom the leader took and did not settle waits again, before all others: he was killed.
        """
        with self._guard:
            self._next()
            chain = [each for each in settled if not each.gone]
            for each, following in pairwise(chain):
                each.following = following
            if chain:
                chain[0].wake()

    def left(self, entry: Entry[S, E]) -> None:
        """Say that an entry's thread is gone; who was killed while he handed over still leads."""
        if self._leader is entry:
            with self._guard:
                entry.gone = True
                self._next()

    def _go_on(self, entry: Entry[S, E]) -> None:
        with self._guard:
            entry.gone = True
            if entry.following is not None:
                entry.following.wake()

    def _next(self) -> None:
        for each in reversed(self._taken):
            if not (each.settled or each.gone or each in self._entries):
                each.unsure = each.tried
                self._entries.appendleft(each)
        self._taken = []
        # Who was killed before it was his turn is still among them.
        while self._entries and self._entries[0].gone:
            self._entries.popleft()
        self._leader = self._entries[0] if self._entries else None
        if self._leader is not None:
            self._leader.wake()

    def _leave(self, entry: Entry[S, E]) -> None:
        """Forget the entry of a thread that was interrupted while it waited."""
        with self._guard:
            entry.gone = True
            # One that was taken already lands, or not, as if its thread were there.
            if entry in self._entries:
                self._entries.remove(entry)
            if self._leader is entry:
                self._next()
