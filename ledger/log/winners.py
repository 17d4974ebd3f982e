"""Winners: what others landed since somebody looked, and whether it is one's own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from msgspec import UNSET

from ledger.events.commit import Commit
from ledger.log.request import Request
from ledger.log.stream_log import StreamLog
from ledger.model.errors import InvalidInputError

E = TypeVar("E")


MOST_KEPT = 4
"""Whoever asks while a commit is under way looked at one of the last few."""


class KeptCommits(Generic[E]):
    """The newest commits of a stream, as they were landed or read; whoever leads keeps them."""

    def __init__(self) -> None:
        self._by_version: dict[int, Commit[E]] = {}

    def keep(self, commit: Commit[E]) -> None:
        """Keep a commit that stands in the log, and let an old one go."""
        self._by_version[commit.version] = commit
        for version in sorted(self._by_version)[:-MOST_KEPT]:
            del self._by_version[version]

    def get(self, version: int) -> Commit[E] | None:
        """Return a commit, if it is kept."""
        return self._by_version.get(version)


class Winners(Generic[E]):
    """The commits that landed since the bases of those who append.

    Args:
        log: The stream.
        kept: Those that need not be read again.
    """

    def __init__(self, log: StreamLog[Any, E], kept: KeptCommits[E]) -> None:
        self._log = log
        self._kept = kept
        self._commits: dict[int, Commit[E]] = {}
        self._met = self._newest

    @property
    def _newest(self) -> int:
        return self._log.head.state.version if self._log.head else -1

    def look_behind(self, version: int) -> None:
        """Count a commit of this version, and those after it, among the winners."""
        self._met = min(self._met, version - 1)

    def learn(self, commits: Iterable[Commit[E]]) -> None:
        """Take commits that were read already."""
        for each in commits:
            self._take(each)

    def _take(self, commit: Commit[E]) -> None:
        self._commits[commit.version] = commit
        self._kept.keep(commit)

    def since(self, base: int | None) -> list[Commit[E]]:
        """Return the commits after `base`, oldest first; of no base, those after the beginning."""
        first = (self._met if base is None else base) + 1
        wanted = range(first, self._newest + 1)
        missing = [each for each in wanted if not self._has(each)]
        if missing:
            for read in self._log.commits(missing[0], missing[-1]):
                self._take(read.commit)
        return [self._commits[version] for version in wanted]

    def _has(self, version: int) -> bool:
        if version not in self._commits:
            kept = self._kept.get(version)
            if kept is None:
                return False
            self._commits[version] = kept
        return True

    def holding(self, request: Request) -> int | None:
        """Return the version of the one among them that holds a request's transaction.

        Raises:
            InvalidInputError: One has its id, and is something else.
        """
        landed = (each.version for each in self.since(None) if holds(each, request))
        return next(landed, None)


def holds(commit: Commit[E], request: Request) -> bool:
    """Say whether a commit holds a request's transaction.

    Raises:
        InvalidInputError: It holds one of the same id that is something else.
    """
    for transaction in commit.transactions:
        if transaction.id != request.commit_id:
            continue
        asked = None if transaction.asked is UNSET else transaction.asked
        if asked != request.asked:
            raise InvalidInputError(
                f"commit id {request.commit_id!r} was used for something else in version "
                f"{commit.version}; take a new id for a new request"
            )
        return True
    return False
