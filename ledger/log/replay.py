"""Reading commits in order, along the hash chain.

Long ways go through sealed segments, short ones and the newest commits through the log's files.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Generic, TypeVar

from attrs import frozen
from msgspec import UNSET

from ledger.events.commit import Commit
from ledger.log.codec import Codec, digest
from ledger.log.layout import Layout
from ledger.log.segment import stretches
from ledger.log.segments import AHEAD, Line, Segments
from ledger.model.errors import DamagedLogError
from ledger.stores import Store

E = TypeVar("E")

_FIRST_CHUNK = 128
"""A reader that looks for the newest commits looks for segments only after so many."""

_STRIDES = (1, 2, 4, 8, 16, 32, 64, 100)


@frozen
class Position:
    """Where a reader stands: after commit `version`, whose file has this digest.

    Before version 0 it is `Position(-1, "")`. An empty digest is not checked.
    """

    version: int
    digest: str


START = Position(-1, "")


@frozen
class Read(Generic[E]):
    """One commit read, its file, and that file's digest."""

    commit: Commit[E]
    body: bytes
    digest: str


class Reader(Generic[E]):
    """Reads one stream's commits."""

    def __init__(self, store: Store, layout: Layout, codec: Codec[E]) -> None:
        self._store = store
        self._layout = layout
        self._codec = codec
        self._segments = Segments(store, layout)

    def after(self, position: Position, last: int | None = None) -> Iterator[Read[E]]:
        """Yield the commits after `position`, in order.

        Args:
            position: Where to begin.
            last: The last version to read, which must exist; None to read until there is no next.

        Raises:
            DamagedLogError: A commit is missing, torn, or does not follow the one before.
            UpgradeRequiredError: A commit was written by a newer version.
        """
        parent = position.digest
        for version, line in enumerate(
            self._lines(position.version + 1, last), position.version + 1
        ):
            if line is None:
                self._refuse_gap(version, last)
                return
            found = self._checked(line, version, parent)
            yield found
            parent = found.digest

    def _lines(self, version: int, last: int | None) -> Iterator[Line | bytes | None]:
        """Yield the commits' files from `version` on; None for one that is not there."""
        if last is None:
            yield from self._files(version, version + _FIRST_CHUNK - 1)
            version += _FIRST_CHUNK
        parts = stretches(version, last)
        # Of a log whose end is not known, more each time.
        ahead = 1 if last is None else AHEAD
        while some := list(islice(parts, ahead)):
            for (first, end), lines in zip(some, self._segments.read(some), strict=True):
                yield from self._files(first, end) if lines is None else lines
            ahead = min(ahead * 2, AHEAD)

    def _files(self, first: int, last: int) -> Iterator[bytes | None]:
        return self._store.read_many([*map(self._layout.commit, range(first, last + 1))])

    def _checked(self, line: Line | bytes, version: int, parent: str) -> Read[E]:
        body, known = (line.body, line.digest) if isinstance(line, Line) else (line, None)
        key = self._layout.commit(version)
        commit = self._codec.decode(body, key)
        if commit.version != version:
            raise DamagedLogError(f"{key} says it is version {commit.version}", key)
        if parent and commit.parent != parent:
            before = self._layout.commit(version - 1)
            raise DamagedLogError(
                f"{key} names another parent than {before} is: one of the two was changed after "
                "it was written. Compare both with a backup",
                before,
            )
        if version == 0 and commit.parent is not UNSET:
            raise DamagedLogError(f"{key} is version 0 and names a parent", key)
        return Read(commit, body, known or digest(body))

    def _refuse_gap(self, version: int, last: int | None) -> None:
        missing = self._layout.commit(version)
        if last is not None:
            raise DamagedLogError(f"{missing} is missing, but version {last} exists", missing)

    def refuse_hole(self, version: int, strides: Sequence[int] = _STRIDES) -> None:
        """Check that nothing follows `version`, the first that does not exist.

        Looks a few steps ahead with growing strides, since listing a long log costs more than
        the commit that it would protect; `verify` lists.

        Raises:
            DamagedLogError: A later commit exists.
        """
        missing = self._layout.commit(version)
        for ahead in strides:
            later = self._layout.commit(version + ahead)
            # In this order: a writer may have created both since `version` was found missing.
            if self._store.exists(later) and not self._store.exists(missing):
                raise DamagedLogError(
                    f"{missing} is missing, but {later} exists: the log has a gap. Restore the "
                    "file from a backup; nothing was skipped",
                    missing,
                )
