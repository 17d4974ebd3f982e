"""The commits of a segment that is filling up, as a handle wrote or read them."""

from __future__ import annotations

from collections.abc import Sequence

from ledger.log.segment import MOST_BYTES, segment_of


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
