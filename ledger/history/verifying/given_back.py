"""Commits that are gone from a log's folder and that sealed segments give back, byte for byte.

A segment is believed as far as the log vouches for it: the commit behind a gap names the digest of
the last one in it, that one the digest of the one before, and so on. Behind the log's end each line
has to name the commit that the log ends with. Nothing that stands is rewritten.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import UNSET

from ledger.history.verifying.finding import Finding
from ledger.history.verifying.spans.chain import Gap, extent
from ledger.history.verifying.subject import Subject
from ledger.log.caches.segments.file import read_segment, segment_of
from ledger.log.codec import digest
from ledger.log.landing import Committed, LogFile, land
from ledger.log.patience import Patience
from ledger.model.errors import DamagedLogError, UpgradeRequiredError

_Lines = list[tuple[int, bytes]]
"""Versions, and the files of their commits."""


def given_back(subject: Subject[Any, Any], patience: Patience) -> Iterator[Finding]:
    """Write what is missing in a log and stands in its segments; yield a finding for each stretch.

    Args:
        subject: The stream.
        patience: How long to go on where the store gives no answer.

    Raises:
        OSError: The store failed; asking again goes on.
        StoreError: The store refuses to be written to.
    """
    found = extent(subject)
    for gap in reversed(found.gaps):
        for lines in _inside(subject, gap):
            yield from _written(subject, lines, patience)
    for lines in _behind(subject, found.last):
        yield from _written(subject, lines, patience)


def _inside(subject: Subject[Any, Any], gap: Gap) -> Iterator[_Lines]:
    """Yield what fits of a gap, a segment after the other, the newest first."""
    first, last = gap
    behind = subject.store.read(subject.layout.commit(last + 1))
    wanted = None if behind is None else _parent(subject, behind, last + 1)
    while wanted is not None and last >= first:
        span = segment_of(last)
        held = _held(subject, span)
        fitting: _Lines = []
        for version in range(last, max(first, span[0]) - 1, -1) if held else ():
            line = held[version - span[0]]
            if digest(line) != wanted:
                break
            fitting.append((version, line))
            wanted = _parent(subject, line, version)
        yield fitting[::-1]
        if len(fitting) < last - max(first, span[0]) + 1:
            return
        last = span[0] - 1


def _behind(subject: Subject[Any, Any], last: int) -> Iterator[_Lines]:
    """Yield what goes on where the log ends, a segment after the other."""
    newest = subject.store.read(subject.layout.commit(last)) if last >= 0 else b""
    if newest is None:
        return
    before = digest(newest) if newest else ""
    while True:
        span = segment_of(last + 1)
        held = _held(subject, span)
        fitting: _Lines = []
        for version in range(last + 1, span[1] + 1) if held else ():
            line = held[version - span[0]]
            if _parent(subject, line, version) != before:
                break
            fitting.append((version, line))
            before = digest(line)
        yield fitting
        if not fitting or fitting[-1][0] < span[1]:
            return
        last = span[1]


def _held(subject: Subject[Any, Any], span: tuple[int, int]) -> Sequence[bytes]:
    """Return the lines of a segment; none where there is no usable one."""
    body = subject.store.read(subject.layout.segment(*span))
    try:
        return [] if body is None else read_segment(body, *span)
    except ValueError:
        # That it is none is told when caches are compared.
        return []


def _parent(subject: Subject[Any, Any], line: bytes, version: int) -> str | None:
    """Return what a commit names as its parent, "" for none; None where it is not that commit."""
    try:
        commit = subject.log.codec.decode(line, subject.layout.commit(version))
    except (DamagedLogError, UpgradeRequiredError):
        return None
    if commit.version != version:
        return None
    return "" if commit.parent is UNSET else commit.parent


def _written(subject: Subject[Any, Any], lines: _Lines, patience: Patience) -> Iterator[Finding]:
    """Write commits; yield what was missing, unless others had written all of them meanwhile."""
    mine = [
        version
        for version, line in lines
        if land(subject.store, LogFile(subject.layout.commit(version), line, version), patience)
        == Committed(version)
    ]
    if mine:
        said = "the commit was missing, and a segment held it"
        if len(mine) > 1:
            said = (
                f"{len(mine):,} commits up to version {mine[-1]} were missing; a segment held them"
            )
        key = subject.layout.commit(mine[0])
        yield Finding("damage", said, key, mine[0], "find out what removed them")
