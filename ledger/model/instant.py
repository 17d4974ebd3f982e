"""Instants: the points in time at which a table can be read."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from attrs import frozen

from ledger.model.errors import InvalidInputError


@frozen
class VersionInstant:
    """The state right after the commit `version`; a stream's versions count from 0."""

    version: int

    def __str__(self) -> str:
        return f"version {self.version}"


@frozen
class TimestampInstant:
    """The state that was current at a Unix time in milliseconds."""

    timestamp_millis: int

    def __str__(self) -> str:
        moment = datetime.fromtimestamp(self.timestamp_millis / 1000, UTC)
        return f"timestamp {moment.isoformat(timespec='milliseconds')}"


@frozen
class SnapshotInstant:
    """A snapshot, by its id (1, 2, 3, ...), read with the schema that it was written with."""

    snapshot_id: int

    def __str__(self) -> str:
        return f"snapshot {self.snapshot_id}"


@frozen
class TagInstant:
    """A tagged snapshot, by the tag's name, read with the schema that it was written with."""

    tag_name: str

    def __str__(self) -> str:
        return f"tag {self.tag_name}"


Instant = VersionInstant | TimestampInstant | SnapshotInstant | TagInstant


_FIRST_MILLIS: Final = -62_135_596_800_000
_LAST_MILLIS: Final = 253_402_300_799_999
_HOUR_24: Final = re.compile(r"(?:\d{4}-\d\d-\d\d|\d{8}|\d{4}-?W\d\d(?:-?\d)?).24", re.DOTALL)


def parse_iso_datetime(text: str) -> datetime:
    """Return the datetime of an ISO 8601 text.

    Raises:
        ValueError: The text is not ISO 8601. Hour 24 is rejected under every Python version,
            although Python 3.14 and later read it as the next midnight.

    Example:
        >>> parse_iso_datetime("2013-01-31T12:00:00Z")
        datetime.datetime(2013, 1, 31, 12, 0, tzinfo=datetime.timezone.utc)
    """
    if _HOUR_24.match(text):
        raise ValueError(f"hours go from 0 to 23, not as in {text!r}")
    return datetime.fromisoformat(text)


def millis(moment: datetime | int | str) -> int:
    """Return a point in time as Unix time in milliseconds.

    Args:
        moment: A datetime with a time zone, such a datetime as ISO text, or Unix milliseconds.

    Raises:
        InvalidInputError: A datetime has no time zone and so is ambiguous, a text is not a
            datetime, or a number is before the year 1 or after 9999.

    Example:
        >>> millis(datetime(2013, 1, 1, tzinfo=UTC))
        1356998400000
    """
    if isinstance(moment, str):
        try:
            moment = parse_iso_datetime(moment)
        except ValueError as error:
            raise InvalidInputError(
                f"{moment!r} is no time; write it like 2013-01-31T12:00:00Z"
            ) from error
    if isinstance(moment, int):
        if not _FIRST_MILLIS <= moment <= _LAST_MILLIS:
            raise InvalidInputError(
                f"{moment} is no time in Unix milliseconds: years go from 1 to 9999"
            )
        return moment
    if moment.tzinfo is None:
        raise InvalidInputError(f"{moment.isoformat()} has no time zone; add one, for example UTC")
    return round(moment.timestamp() * 1000)


def instant_from_arguments(
    *,
    version: int | None = None,
    timestamp: int | None = None,
    snapshot: int | None = None,
    tag: str | None = None,
) -> Instant | None:
    """Return the instant that the arguments name; None (the head) without any.

    Args:
        version: A version.
        timestamp: Unix milliseconds.
        snapshot: A snapshot's id.
        tag: A tag's name.

    Raises:
        InvalidInputError: The arguments name more than one instant.

    Example:
        >>> instant_from_arguments(tag="v1")
        TagInstant(tag_name='v1')
    """
    named: list[Instant] = []
    if version is not None:
        named.append(VersionInstant(version))
    if timestamp is not None:
        named.append(TimestampInstant(timestamp))
    if snapshot is not None:
        named.append(SnapshotInstant(snapshot))
    if tag is not None:
        named.append(TagInstant(tag))
    if len(named) > 1:
        both = " and ".join(str(each) for each in named)
        raise InvalidInputError(f"{both} were both named; name one of version, timestamp, ...")
    return named[0] if named else None


@frozen
class ClockCorrection:
    """Correction of commit times that a wrong clock recorded: an upper bound for older commits.

    No commit before `version` took effect later than `true_time_millis`, whatever time it records.

    Attributes:
        version: The commit that makes the correction; it took effect at that time or later.
        true_time_millis: The upper bound, Unix milliseconds.
    """

    version: int
    true_time_millis: int


def corrected_commit_millis(
    corrections: Iterable[ClockCorrection], version: int, millis: int
) -> int:
    """Return the corrected effective time of a commit, Unix milliseconds.

    Times that increase with the version still do after correction, so that bisection works.

    Args:
        corrections: All corrections in the newest known state.
        version: The commit's version.
        millis: The time that the commit records, Unix milliseconds.

    Example:
        >>> corrections = [ClockCorrection(version=7, true_time_millis=500)]
        >>> [
        ...     corrected_commit_millis(corrections, 6, 900),
        ...     corrected_commit_millis(corrections, 7, 900),
        ... ]
        [500, 900]
    """
    for each in corrections:
        if version < each.version and each.true_time_millis < millis:
            millis = each.true_time_millis
    return millis
