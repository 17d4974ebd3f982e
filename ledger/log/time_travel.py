"""Time travel: the state at a version or a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, TypeVar

from msgspec import UNSET

from ledger.events.commit import Commit
from ledger.log.checkpoints import Head
from ledger.log.layout import CHECKPOINT_INTERVAL
from ledger.log.replay import START, Position, Read
from ledger.log.segments import segment_of
from ledger.log.stream_log import StreamLog
from ledger.model.errors import NotFoundError
from ledger.model.instant import ClockCorrection, corrected_commit_millis
from ledger.state.stream import StateLike

S = TypeVar("S", bound=StateLike)
E = TypeVar("E")


def effective_millis(commit: Commit[Any], corrections: Sequence[ClockCorrection] = ()) -> int:
    """Return when a commit took effect: its last transaction's effective time, or its own.

    Args:
        commit: The commit.
        corrections: Clock corrections of a state, to be applied; none: the recorded time.
    """
    imported = commit.transactions[-1].effective_time_millis
    said = commit.time_millis if imported is UNSET else int(imported)
    return corrected_commit_millis(corrections, commit.version, said)


def head_state(log: StreamLog[S, E]) -> S:
    """Return the newest state in memory.

    Raises:
        NotFoundError: The stream has no version 0.
    """
    head = log.head
    if head is None:
        raise NotFoundError(f"{log.store.url}/{log.layout.root} holds no stream")
    return head.state


def at_version(log: StreamLog[S, E], version: int) -> S:
    """Return the state right after a commit.

    Raises:
        NotFoundError: The stream does not have that version.
    """
    newest = head_state(log)
    if version == newest.version:
        return newest
    if not 0 <= version < newest.version:
        raise NotFoundError(f"version {version} does not exist; there are 0 to {newest.version}")
    start = log.checkpoints.nearest(version)
    if start is None or start.state.version < version:
        start = _fold_while(log, start, lambda commit: commit.version <= version)
        log.checkpoints.cache_head(start)
    return start.state


def at_timestamp(log: StreamLog[S, E], timestamp_millis: int) -> S:
    """Return the state of the last commit that was effective at a time, Unix milliseconds.

    Clock corrections of the newest state are applied to the times of commits.

    Raises:
        NotFoundError: The stream begins later.
    """
    newest = head_state(log)
    if newest.effective_millis <= timestamp_millis:
        return newest
    known = newest.corrections
    begun = effective_millis(log.commit_at(0), known)
    if begun > timestamp_millis:
        raise NotFoundError(
            f"nothing was there at {_format_instant(timestamp_millis)}; "
            f"version 0 is of {_format_instant(begun)}"
        )
    return last_state_while(
        log,
        lambda state: (
            corrected_commit_millis(known, state.version, state.effective_millis)
            <= timestamp_millis
        ),
        lambda commit: effective_millis(commit, known) <= timestamp_millis,
    )


_DAY_MILLIS = 86_400_000


def _format_instant(millis: int) -> str:
    try:
        moment = datetime.fromtimestamp(millis / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{millis} (Unix milliseconds)"
    if millis % _DAY_MILLIS == _DAY_MILLIS - 1:
        # A date without a time means the end of that day.
        return f"the end of {moment.date().isoformat()} UTC"
    return moment.isoformat(sep=" ", timespec="milliseconds").replace("+00:00", " UTC")


def last_state_while(
    log: StreamLog[S, E], state_fits: Callable[[S], bool], commit_fits: Callable[[Commit[E]], bool]
) -> S:
    """Return the state after the last commit that fits.

    Both conditions hold for a prefix of the stream and fail after it; version 0 fits.
    """
    return _fold_while(log, last_checkpoint_while(log, state_fits), commit_fits).state


def last_checkpoint_while(log: StreamLog[S, E], state_fits: Callable[[S], bool]) -> Head[S] | None:
    """Return the last checkpoint whose state fits; None when the first does not.

    The condition holds for a prefix of the stream and fails after it. It is called with outlines of
    states; see `Stream.decode_outline`.
    """
    low, high = 0, head_state(log).version // CHECKPOINT_INTERVAL
    found: S | None = None
    stride = 1
    while low < high:
        # Mostly recent times are requested: search back from the end, with growing strides.
        middle = high - high % stride if found is None else _most_trailing_zeros(low, high)
        if middle <= low:
            middle = _most_trailing_zeros(low, high)
        near = log.checkpoints.outline_at_or_before(middle * CHECKPOINT_INTERVAL)
        if near is None or state_fits(near):
            found, low = near or found, middle
        else:
            high, stride = min(middle, near.version // CHECKPOINT_INTERVAL) - 1, stride * 4
    # If its full state cannot be read, an earlier one serves: those before it fit, too.
    return None if found is None else log.checkpoints.at_or_before(found.version)


def _most_trailing_zeros(low: int, high: int) -> int:
    """Return the number above `low` and up to `high` with the most trailing zero bits.

    Searches by it halve the range, and probe the same few numbers again and again.

    Example:
        >>> (
        ...     _most_trailing_zeros(0, 100),
        ...     _most_trailing_zeros(64, 100),
        ...     _most_trailing_zeros(98, 99),
        ... )
        (64, 96, 99)
    """
    while high & (high - 1) > low:
        high &= high - 1
    return high


def _fold_while(
    log: StreamLog[S, E], start: Head[S] | None, fits: Callable[[Commit[E]], bool]
) -> Head[S]:
    builder, digest = (
        log.stream.builder(start.state if start else None),
        _position_after(start).digest,
    )
    for read in commits_after(log, start):
        if not fits(read.commit):
            break
        log.fold(builder, read.commit)
        digest = read.digest
    return Head(builder.freeze(), digest)


def commits_after(log: StreamLog[S, E], start: Head[S] | None) -> Iterator[Read[E]]:
    """Yield the commits after a checkpoint, up to the newest; None: from version 0 on.

    Nearly all callers stop before the next checkpoint. So nothing is read ahead beyond it, or on a
    remote store beyond the end of the segment, before the caller gets there.
    """
    position, newest = _position_after(start), head_state(log).version
    near = _end_of_interval if log.segments.is_near else _end_of_segment
    for read in log.warm_reader.after(position, min(near(position.version + 1), newest)):
        position = Position(read.commit.version, read.digest)
        yield read
    if position.version < newest:
        yield from log.warm_reader.after(position, newest)


def _position_after(start: Head[Any] | None) -> Position:
    return Position(start.state.version, start.digest) if start else START


def _end_of_interval(version: int) -> int:
    return version + -version % CHECKPOINT_INTERVAL


def _end_of_segment(version: int) -> int:
    return segment_of(version)[1]
