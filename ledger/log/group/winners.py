"""Winners: what others landed since somebody looked."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

from ledger.events.commit import Commit
from ledger.log.stream_log import StreamLog

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
        head = self._log.head
        return head.state.version if head else -1

    def learn(self, commits: Iterable[Commit[E]]) -> None:
        """Take commits that were read already."""
        for each in commits:
            self._take(each)

    def _take(self, commit: Commit[E]) -> None:
        self._commits[commit.version] = commit
        self._kept.keep(commit)

    def since(self, base: int | None, last: int | None = None) -> list[Commit[E]]:
        """Return the commits after `base`, oldest first; of no base, those after the beginning.

        Args:
            base: A version.
            last: The last one to return; None: the newest.
        """
        first = (self._met if base is None else base) + 1
        wanted = range(first, (self._newest if last is None else last) + 1)
        if not wanted:
            return []
        missing = [each for each in wanted if not self._has(each)]
        if missing:
            for read in self._log.known_commits(missing[0], missing[-1]):
                self._take(read.commit)
        return [self._commits[version] for version in wanted]

    def _has(self, version: int) -> bool:
        if version not in self._commits:
            kept = self._kept.get(version)
            if kept is None:
                return False
            self._commits[version] = kept
        return True
