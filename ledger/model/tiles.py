"""Tiles: how a growing row of things is covered by few pieces, eight of a tier merging into one.

Caches beside the log and manifests both follow it: a piece is written once a tier, so one more
thing costs the same however long the row is.
"""

from __future__ import annotations

from collections.abc import Iterator

FAN_OUT = 8


def covering(count: int) -> Iterator[tuple[int, int]]:
    """Yield the tiles, as half-open ranges of indexes, that cover `count` things; newest first.

    Example:
        >>> list(covering(10))
        [(9, 10), (8, 9), (0, 8)]
    """
    end = count
    while end > 0:
        width = 1
        while end % (width * FAN_OUT) == 0:
            width *= FAN_OUT
        yield end - width, end
        end -= width


def parts(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the tiles of the tier below that merge into one, oldest first; none for a single.

    Example:
        >>> list(parts(0, 8))[:2], list(parts(3, 4))
        ([(0, 1), (1, 2)], [])
    """
    width = (end - start) // FAN_OUT
    if width:
        yield from ((each, each + width) for each in range(start, end, width))
