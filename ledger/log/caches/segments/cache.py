"""One stream's sealed segments: a cache that makes reading a long log cheap.

Nothing that a segment says is believed for its own sake. Its lines have to hash along the chain up
to its last commit, and that one has to be the file that stands in the log: so the log itself
vouches for every line. One that does not fit is passed over, and the log's files are read.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, NamedTuple

import msgspec
from msgspec import Struct

from ledger.log.caches.segments.file import MOST_BYTES, read_segment, segment_of, write_segment
from ledger.log.codec import digest
from ledger.log.layout import Layout
from ledger.observing.notices import warn
from ledger.stores import Store


class Lines:
    """Keeps the files of a segment's commits from its first one on, without a gap.

    So whoever completes a segment has nothing to read, which on an object store takes seconds.

    Example:
        >>> lines = Lines()
        >>> for version in range(800, 803):
        ...     if lines.wants(version):
        ...         lines.take(version, b"%d" % version)
        >>> lines.of(801, 802), lines.of(0, 800)
        ([b'801', b'802'], None)
    """

    def __init__(self) -> None:
        self._first = 0
        self._bodies: list[bytes] = []
        self._size = 0

    def wants(self, version: int) -> bool:
        """Whether a commit begins a segment, or follows those that are kept."""
        follows = bool(self._bodies) and version == self._first + len(self._bodies)
        return follows or version == segment_of(version)[0]

    def take(self, version: int, body: bytes) -> None:
        """Keep the file of a commit that is wanted."""
        if version == segment_of(version)[0]:
            self._first, self._bodies, self._size = version, [], 0
        self._bodies.append(body)
        self._size += len(body)
        if self._size > MOST_BYTES:
            # Its segment will not be sealed, so that nothing of it is needed.
            self._bodies = []

    def of(self, first: int, last: int) -> Sequence[bytes] | None:
        """Return the files of a segment's commits; None unless all are here."""
        if first != self._first or last >= first + len(self._bodies):
            return None
        return self._bodies[: last + 1 - first]


AHEAD: Final = 16
"""So many segments are asked for at a time."""

WORTH: Final = 200
"""Of a segment of which fewer commits are wanted, the log's own files are read."""

_LOGGER = "ledger.log"


class Vouched(NamedTuple):
    """The files of commits one after the other, for which the log vouches.

    Attributes:
        bodies: Their bytes.
        digests: The digest of each.
    """

    bodies: Sequence[bytes]
    digests: Sequence[str]

    def part(self, begin: int, count: int) -> Vouched:
        """Return so many of them."""
        end = begin + count
        return Vouched(self.bodies[begin:end], self.digests[begin:end])


class _Link(Struct):
    """As much of a commit as its place in the chain."""

    parent: str = ""


_LINKS: Final = msgspec.json.Decoder(_Link)
_PARENT: Final = b'"parent":"%s"'
_HEAD: Final = 192
"""Within so many bytes a commit's line says its parent: only numbers stand before."""


class Segments:
    """One stream's segments.

    Args:
        store: Where they are.
        layout: Under which keys.
    """

    def __init__(self, store: Store, layout: Layout) -> None:
        self._store = store
        self._layout = layout
        self._asked = 0

    @property
    def is_near(self) -> bool:
        """Whether the log's files are cheap to read."""
        return self._store.is_near

    def save(self, version: int, lines: Sequence[bytes] | None = None) -> None:
        """Keep the segment that ends at a checkpoint's version, if one does.

        Where each file is a request, only one whose commits are at hand: its writer would be held
        up for seconds. Maintenance makes the others.

        Args:
            version: The checkpoint's version.
            lines: The files of the segment's commits, where they are at hand.

        Raises:
            OSError: It could not be kept; that harms nothing.
        """
        span = segment_of(version)
        if span[1] != version or (lines is None and not self.is_near):
            return
        body = self.made(*span) if lines is None else self._of(span, lines)
        if body is not None:
            self._store.replace(self._key(span), body)

    def made(self, first: int, last: int) -> bytes | None:
        """Return the segment of the commits `first` to `last` as the log's files make it.

        None where there is to be none: they are too long together, or do not fit together.
        """
        lines: list[bytes] = []
        size = 0
        for line in self._store.read_many(self._layout.commits(range(first, last + 1))):
            if line is None:
                return None
            lines.append(line)
            size += len(line)
            if size > MOST_BYTES:
                return None
        return self._of((first, last), lines)

    def _of(self, span: tuple[int, int], lines: Sequence[bytes]) -> bytes | None:
        try:
            _chained(lines, lines[-1])
            return write_segment(lines)
        except ValueError as error:
            # Whoever reads the damaged commit is told.
            warn(_LOGGER, "segment_skipped", file=self._key(span), error=str(error))
            return None

    def read(self, wanted: Sequence[tuple[int, int]]) -> Iterator[Vouched | None]:
        """Yield for each stretch of versions its commits, or None: read the log's files.

        Args:
            wanted: Stretches that lie in one segment each, in order. Those that are short are not
                looked for.
        """
        asked = [segment_of(last) for first, last in wanted if last - first + 1 >= WORTH]
        if not self._pays(len(asked)):
            yield from (None for _ in wanted)
            return
        keys = (key for each in asked for key in (self._layout.commit(each[1]), self._key(each)))
        bodies = self._store.read_many(list(keys))
        is_beyond = False
        for first, last in wanted:
            if is_beyond or last - first + 1 < WORTH:
                yield None
                continue
            vouching = next(bodies)
            # The first segment that is not complete is the last one that the log has.
            is_beyond = vouching is None
            body = None if vouching is None else next(bodies)
            found = None if body is None else self._vouched(segment_of(last), body, vouching)
            begin = first - segment_of(last)[0]
            yield None if found is None else found.part(begin, last - first + 1)

    def _pays(self, count: int) -> bool:
        """Whether so many segments are cheaper to read than the log's files.

        Small files of a local disk are cheap, and loading Parquet's library takes as long as
        reading ten thousand of them: whoever asks again and again has asked for as many.
        """
        is_loaded = "pyarrow" in sys.modules
        self._asked += count
        return count > 0 and (is_loaded or self._asked >= AHEAD or not self.is_near)

    def _key(self, span: tuple[int, int]) -> str:
        return self._layout.segment(*span)

    def _vouched(
        self, span: tuple[int, int], body: bytes, vouching: bytes | None
    ) -> Vouched | None:
        """Return a segment's commits if the commit that stands at its end vouches for them."""
        try:
            return _chained(read_segment(body, *span), vouching)
        except ValueError as error:
            warn(
                _LOGGER,
                "segment_passed_over",
                file=self._key(span),
                error=str(error),
                advice="make it again with: lakeledger verify --repair",
            )
            return None


def _chained(bodies: Sequence[bytes], vouching: bytes | None) -> Vouched:
    """Return commits' files with their digests.

    Raises:
        ValueError: The last is another than the one that vouches for all, or one does not name the
            one before it.
    """
    if bodies[-1] != vouching:
        raise ValueError("it ends with another commit than the log has there")
    digests = [*map(digest, bodies)]
    place = 0
    for body, before in zip(islice(bodies, 1, None), digests, strict=False):
        parent = _PARENT % before.encode()
        # It stands where it stood in the line before, unless a number has one more digit.
        if not body.startswith(parent, place):
            place = body.find(parent, 0, _HEAD)
            if place < 0:
                _refuse_other_parent(body, before)
    return Vouched(bodies, digests)


def _refuse_other_parent(body: bytes, before: str) -> None:
    """Check that a commit names the one before it, wherever in its line it does.

    Raises:
        ValueError: It names another, or is no commit.
    """
    try:
        parent = _LINKS.decode(body).parent
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError(f"it holds something that is no commit: {error}") from error
    if parent != before:
        raise ValueError("its commits do not follow one another")
