"""Instants as texts: one grammar for programs, the command line and Spark.

| text | instant |
|---|---|
| `now`, `HEAD`, `main` | the newest version |
| `7`, `version:7` | the state right after commit 7 |
| `-3`, `HEAD~3` | 3 commits before the newest; `HEAD~` and `HEAD^` are one before |
| `tag:v1`, `snapshot:12`, `branch:audit` | a tagged snapshot, a snapshot, a branch's newest state |
| `2013-01-31`, `2013-01-31T12:00:00Z` | the state at the end of a day or second, in ISO 8601 |
| `yesterday`, `15m ago`, `12h`, `30 days ago`, `2w` | the state at a time before now |
| `1356998400000`, `timestamp:...` | the state at a Unix time in milliseconds, or at any time |

A time without a zone is one of the time zone of the process, as in a shell. `yesterday` is 24 hours
ago.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final, Literal

from attrs import frozen

from ledger.model.errors import InvalidInputError, NotFoundError
from ledger.model.instant import (
    Instant,
    SnapshotInstant,
    TagInstant,
    TimestampInstant,
    VersionInstant,
    millis,
    parse_iso_datetime,
)
from ledger.model.messages import excerpt
from ledger.model.types import whole_number

TIMES: Final = "2013-01-31, 2013-01-31T12:00:00Z, yesterday, 30d, 12h or 15m ago, Unix milliseconds"
"""Forms of times, for error messages and help texts."""

_MILLIS_DIGITS: Final = 12
"""Numbers with as many digits or more are Unix milliseconds: from the year 1973 on."""

_NEWEST: Final = frozenset({"now", "HEAD", "main", "branch:main"})
_BEFORE_HEAD: Final = re.compile(r"HEAD(?:~(?P<commits>[0-9]{0,18})|\^)", re.ASCII)
_AGO: Final = re.compile(
    r"(?P<count>[0-9]{1,6}) ?(?P<unit>m|h|d|w|minutes?|hours?|days?|weeks?)(?: ago)?", re.ASCII
)
_UNITS: Final = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
_DATE_LENGTH: Final = len("2013-01-31")
_LONGEST_NAME: Final = 60
"""Longest text that an error message repeats as a name."""


@frozen
class CommitsAgo:
    """The state a number of commits before the newest version."""

    commits: int

    def __str__(self) -> str:
        return f"HEAD~{self.commits}"


@frozen
class BranchInstant:
    """The newest state of a branch, by its name."""

    branch_name: str

    def __str__(self) -> str:
        return f"branch {self.branch_name}"


ParsedInstant = Instant | CommitsAgo | BranchInstant


def parse_instant(given: str | int | datetime, now_millis: int) -> ParsedInstant | None:
    """Return the instant that a text, a version or a datetime means; None is the newest version.

    Args:
        given: A text of the grammar above, a version or a negative number of commits, or a datetime
            with a time zone.
        now_millis: The current time, Unix milliseconds.

    Raises:
        InvalidInputError: The text is no instant, or a datetime has no time zone.

    Example:
        >>> parse_instant("HEAD~3", 0), parse_instant("tag:v1", 0), parse_instant(7, 0)
        (CommitsAgo(commits=3), TagInstant(tag_name='v1'), VersionInstant(version=7))
        >>> print(parse_instant("15m ago", 1_700_000_000_000))
        timestamp 2023-11-14T21:58:20.000+00:00
    """
    if isinstance(given, datetime):
        return TimestampInstant(millis(given))
    text = str(given)
    if text in _NEWEST:
        return None
    word, colon, rest = text.partition(":")
    if colon and word in _PREFIXES:
        if not rest:
            raise InvalidInputError(f"{text!r} names nothing; write it like {text}7 or {text}v1")
        return _PREFIXES[word](rest, now_millis)
    counted = _parse_count(text)
    if counted is not None:
        return counted
    try:
        return TimestampInstant(parse_time(text, now_millis))
    except InvalidInputError as error:
        named = "" if colon else f"for a tag write tag:{text}, for a branch branch:{text}; "
        raise InvalidInputError(
            f"{excerpt(text)} is not an instant; {named if len(text) < _LONGEST_NAME else ''}"
            "write now, a version such as 7, HEAD~3 or -3, tag:NAME, branch:NAME, snapshot:3, or a "
            f"time: {TIMES}"
        ) from error


def _parse_count(text: str) -> VersionInstant | CommitsAgo | None:
    """Return the version or the number of commits that a text means; None for other texts."""
    before = _BEFORE_HEAD.fullmatch(text)
    if before is not None:
        return CommitsAgo(int(before["commits"] or 1))
    commits = whole_number(text[1:]) if text.startswith("-") else None
    if commits is not None:
        return CommitsAgo(commits)
    version = whole_number(text) if len(text) < _MILLIS_DIGITS else None
    return None if version is None else VersionInstant(version)


def parse_time(
    given: str | int | datetime, now_millis: int, *, date: Literal["begin", "end"] = "end"
) -> int:
    """Return a point in time as Unix time in milliseconds.

    Args:
        given: A text of the grammar above, Unix milliseconds, or a datetime with a time zone.
        now_millis: The current time, Unix milliseconds.
        date: The moment that a date without a time of day means, the day's begin or its end; and a
            time without a fraction, its second's.

    Raises:
        InvalidInputError: The text is no time, or a datetime has no time zone.

    Example:
        >>> parse_time("2013-01-31T12:00:00.000Z", 0), parse_time("2h ago", 7_200_001)
        (1359633600000, 1)
    """
    if not isinstance(given, str):
        return millis(given)
    if given.removeprefix("-").isdecimal() and len(given) >= _MILLIS_DIGITS:
        return millis(int(given[: 2 * _MILLIS_DIGITS]))
    ago = _AGO.fullmatch("1d" if given == "yesterday" else given)
    if ago is not None:
        passed = timedelta(**{_UNITS[ago["unit"][0]]: int(ago["count"])})
        return millis(now_millis - passed // timedelta(milliseconds=1))
    try:
        read = parse_iso_datetime(given)
        if date == "end" and len(given) == _DATE_LENGTH:
            read += timedelta(days=1, milliseconds=-1)
        elif date == "end" and "." not in given and "," not in given:
            # A log shows seconds: the commit of a time that is copied from it is included.
            read += timedelta(milliseconds=999)
        return millis(read if read.tzinfo is not None else read.astimezone())
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(f"{excerpt(given)} is not a time; write {TIMES}") from error


def _number(digits: str) -> int:
    number = whole_number(digits)
    if number is None:
        raise InvalidInputError(f"{excerpt(digits)} is not a whole number of a version or snapshot")
    return number


_PREFIXES: Final[Mapping[str, Callable[[str, int], ParsedInstant]]] = {
    "tag": lambda name, _: TagInstant(name),
    "branch": lambda name, _: BranchInstant(name),
    "snapshot": lambda digits, _: SnapshotInstant(_number(digits)),
    "version": lambda digits, _: VersionInstant(_number(digits)),
    "timestamp": lambda text, now_millis: TimestampInstant(parse_time(text, now_millis)),
}


def resolve_instant(
    given: str | int | datetime, now_millis: int, newest: int
) -> tuple[Instant | None, str | None]:
    """Return the instant that `parse_instant` finds, and the branch that it is one of.

    Args:
        given: As for `parse_instant`.
        now_millis: The current time, Unix milliseconds.
        newest: The table's newest version, from which commits are counted.

    Returns:
        The instant, None for the newest version, and the name of a branch, None for main.

    Raises:
        InvalidInputError: The text is no instant.
        NotFoundError: The table has fewer commits.

    Example:
        >>> resolve_instant("HEAD~2", 0, newest=5), resolve_instant("branch:audit", 0, newest=5)
        ((VersionInstant(version=3), None), (None, 'audit'))
    """
    match parse_instant(given, now_millis):
        case CommitsAgo(commits=commits):
            if commits > newest:
                raise NotFoundError(
                    f"there are only {newest} commits before the newest, not {commits}"
                )
            return VersionInstant(newest - commits), None
        case BranchInstant(branch_name=name):
            return None, name
        case instant:
            return instant, None
