"""Missing segments: those that a log should have, made again from its commits."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from attrs import field, frozen

from ledger.history.verifying.subject import Subject
from ledger.log.segments import segment_of

_segment_of = re.compile(r"(\d{20})-(\d{20})\.parquet").fullmatch


def sealed_last(name: str) -> int | None:
    """Return the version that a segment ends at, by its name below `segments/`; None: no segment.

    Example:
        >>> sealed_last(f"{801:020d}-{1600:020d}.parquet"), sealed_last("notes.txt")
        (1600, None)
    """
    found = _segment_of(name)
    if found is None or (span := (int(found[1]), int(found[2]))) != segment_of(span[1]):
        return None
    return span[1]


@frozen
class Unsealed:
    """A segment that is not there, and that its log makes.

    Attributes:
        path: Where it belongs, below the store's root.
        first: Its first version.
        last: Its last version.
        body: The segment.
    """

    path: str
    first: int
    last: int
    body: bytes = field(repr=False)


def unsealed(subject: Subject[Any, Any]) -> Iterator[Unsealed]:
    """Yield the segments that a stream lacks, oldest first.

    Raises:
        DamagedLogError: The newest commits cannot be read.
    """
    log, layout = subject.log, subject.layout
    folder = layout.segment(0, 0).rpartition("/")[0]
    there = set(subject.store.walk(folder))
    state = log.refresh()
    first, last = segment_of(0)
    while state is not None and last <= state.version:
        path = layout.segment(first, last)
        body = None if path in there else log.segments.made(first, last)
        if body is not None:
            yield Unsealed(path, first, last, body)
        first, last = segment_of(last + 1)
