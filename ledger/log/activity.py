"""Activity index: which tables were committed to lately, by time.

After a commit, a background thread writes an announcement, a small file whose name has the table's
id and the version, into the folder of the current slot of five minutes. Readers that follow many
tables list the last slots instead of asking every table. An announcement is a hint: it may be
missing (its process was killed), late, or wrong, so a reader probes the head of the table that it
names, and sometimes those of others.

The first reader creates a marker; without it, writers announce nothing. They look for it once in a
slot, so that announcements are complete from the second slot after the marker's on.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from ledger.log.commit_queue import BackgroundWorker, register_after_fork
from ledger.log.layout import STREAM_FOLDER
from ledger.log.request import NowMillis, now_millis
from ledger.model.errors import StoreError
from ledger.observing.telemetry import warn
from ledger.stores import Store
from ledger.stores.base import is_key
from ledger.stores.concurrency import run_concurrently

FOLDER: Final = f"{STREAM_FOLDER}/activity"
"""Folder of the index, below the ledger's root."""

MARKER: Final = f"{FOLDER}/since"
"""File that asks writers to announce commits; it holds the number of the slot of its creation."""

SLOT_MILLIS: Final = 300_000
"""Length of a slot, in milliseconds: the time that one folder covers."""

KEPT_MILLIS: Final = 30 * 24 * 3_600_000
"""Retention of announcements, in milliseconds."""

_HOUR: Final = 3_600_000 // SLOT_MILLIS
_DAY: Final = 24 * _HOUR
_KEPT: Final = KEPT_MILLIS // SLOT_MILLIS

_INCOMPLETE_SLOTS: Final = 2
"""The marker's own slot, and one of a writer whose clock is behind."""

_MOST_FOLDERS: Final = 6
"""Number of folders, at most, that are listed one by one before a longer unit is taken."""

_INTERVAL_S: Final = 1.0
"""Seconds, at least, between two rounds of writing: commits in between share an announcement."""

_QUIET_S: Final = 0.02
"""Seconds after a commit in which nothing is written: its caller may commit again at once."""

_LOGGER: Final = "ledger.log"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MOST_DIGITS: Final = 18
_NO_DATA: Final = "memory://"


def slot_of(time_millis: int) -> int:
    """Return the number of the slot of a time, Unix milliseconds.

    Example:
        >>> slot_of(299_999), slot_of(300_000)
        (0, 1)
    """
    return time_millis // SLOT_MILLIS


def slot_folder(slot: int) -> str:
    """Return the folder of a slot.

    Example:
        >>> slot_folder(slot_of(1_700_000_000_000))
        '_ledger/activity/20231114/22/10'
    """
    return f"{FOLDER}/{_start_of(slot):%Y%m%d/%H/%M}"


def _start_of(slot: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=slot * SLOT_MILLIS)


def folders_between(first: int, last: int) -> list[str]:
    """Return folders that hold the slots `first` to `last`: slots, else whole hours, else days.

    Example:
        >>> folders_between(5666666, 5666667)
        ['_ledger/activity/20231114/22/10', '_ledger/activity/20231114/22/15']
        >>> folders_between(5666666, 5666680)
        ['_ledger/activity/20231114/22', '_ledger/activity/20231114/23']
    """
    if last - first < _MOST_FOLDERS:
        return [slot_folder(each) for each in range(first, last + 1)]
    if last // _HOUR - first // _HOUR < _MOST_FOLDERS:
        hours = range(first // _HOUR, last // _HOUR + 1)
        return [f"{FOLDER}/{_start_of(each * _HOUR):%Y%m%d/%H}" for each in hours]
    days = range(first // _DAY, last // _DAY + 1)
    return [f"{FOLDER}/{_start_of(each * _DAY):%Y%m%d}" for each in days]


def first_complete_slot(store: Store, slot: int) -> int | None:
    """Return the first slot whose announcements are complete; ask writers for them if nobody did.

    Args:
        store: The ledger's store.
        slot: The current slot.

    Returns:
        None if the marker cannot be created, or holds something else.

    Raises:
        OSError: The store did not answer.
    """
    body = store.read(MARKER)
    if body is None:
        try:
            store.create(MARKER, b"%d\n" % slot)
        except StoreError:
            # The reader may have no permission to write.
            return None
        body = store.read(MARKER) or b""
    text = body.strip()
    if not text.isdigit() or len(text) > _MOST_DIGITS:
        return None
    return int(text) + _INCOMPLETE_SLOTS


def read_activity(store: Store, first: int, last: int, most: int) -> dict[str, int] | None:
    """Return the newest announced version of each table with activity, by table id.

    Activity shortly before the first slot may be included.

    Args:
        store: The ledger's store.
        first: The first slot.
        last: The last slot.
        most: The number of announcements to read, at most.

    Returns:
        None if there are more, or if the index does not reach back to the first slot.

    Raises:
        OSError: The store did not answer.
    """
    if last - first > _KEPT:
        return None
    found: dict[str, int] = {}
    for folder in folders_between(first, last):
        for key in store.walk(folder):
            most -= 1
            if most < 0:
                return None
            table_id, version = _parse_name(key)
            found[table_id] = max(version, found.get(table_id, -1))
    found.pop("", None)
    return found


def _parse_name(key: str) -> tuple[str, int]:
    """Return the table id and the version that a key announces; an empty id for a foreign file."""
    table_id, _, digits = key.rpartition("/")[2].rpartition("-")
    is_version = digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS
    return (table_id, int(digits)) if is_version else ("", -1)


def outdated_announcements(store: Store, now_millis: int) -> Iterator[tuple[str, int]]:
    """Yield the keys of announcements older than `KEPT_MILLIS`, with the end of their day.

    Args:
        store: The ledger's store.
        now_millis: The current time, Unix milliseconds.
    """
    oldest = f"{_start_of(slot_of(now_millis - KEPT_MILLIS)):%Y%m%d}"
    for key in store.walk(FOLDER):
        day = key.removeprefix(f"{FOLDER}/").partition("/")[0]
        if day < oldest and (ended := _end_of_day(day)) is not None:
            yield key, ended


def _end_of_day(day: str) -> int | None:
    try:
        begun = datetime.strptime(day, "%Y%m%d").replace(tzinfo=UTC)
    except ValueError:
        return None
    return round((begun + timedelta(days=1) - _EPOCH) / timedelta(milliseconds=1))


class ActivityWriter:
    """Writes announcements of commits in the background; all handles of a ledger share it.

    At most once a second, the newest version of each table that was committed to is announced, if
    the ledger has a marker. A failure is logged once and loses these announcements; the commits are
    unaffected. What is left when the process exits is written then.

    Args:
        now_millis: The clock that chooses the slots.
    """

    __slots__ = (
        "__weakref__",
        *("_asked_s", "_commits", "_folder", "_has_failed", "_is_asked", "_is_followed"),
        *("_is_hurried", "_looked_slot", "_now_millis", "_worker", "_written", "_written_s"),
    )

    def __init__(self, now_millis: NowMillis = now_millis) -> None:
        self._now_millis = now_millis
        self._worker = BackgroundWorker("ledger-activity")
        self._asked_s = self._written_s = 0.0
        self._has_failed = self._is_hurried = self._is_followed = False
        self._looked_slot: int | None = None
        self.after_fork()
        register_after_fork(self)

    def after_fork(self) -> None:
        """Forget pending announcements: the parent process writes them."""
        self._commits: deque[tuple[Store, str, int]] = deque()
        self._folder, self._written = "", dict[str, str]()
        self._is_asked = False

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._now_millis,)

    def announce(self, store: Store, table_id: str, version: int) -> None:
        """Announce a commit soon, in the background; return at once.

        Args:
            store: The ledger's store; announcements of a ledger in memory have no readers.
            table_id: The table's id.
            version: The commit's version.
        """
        if store.url.startswith(_NO_DATA):
            return
        # Appended before the flag is read; the writer resets the flag before it takes commits.
        self._commits.append((store, table_id, version))
        if not self._is_asked:
            self._is_asked, self._asked_s = True, time.monotonic()
            self._worker.ask(self._write_pending, self._quiet_seconds_left)

    def finish(self, timeout_s: float) -> bool:
        """Write pending announcements now; return False on timeout."""
        self._is_hurried = True
        try:
            return self._worker.wait(timeout_s)
        finally:
            self._is_hurried = False

    def _quiet_seconds_left(self) -> float:
        if self._is_hurried:
            return 0.0
        return max(self._asked_s + _QUIET_S, self._written_s + _INTERVAL_S) - time.monotonic()

    def _write_pending(self) -> bool:
        """Announce the newest pending version of each table; return whether more are pending."""
        self._is_asked = False
        newest: dict[str, tuple[Store, str, int]] = {}
        for _ in range(len(self._commits)):
            each = self._commits.popleft()
            if each[1] not in newest or newest[each[1]][2] < each[2]:
                newest[each[1]] = each
        if not newest:
            return False
        self._written_s = time.monotonic()
        slot = slot_of(self._now_millis())
        if not self._find_marker(next(iter(newest.values()))[0], slot):
            return bool(self._commits)
        folder = slot_folder(slot)
        if folder != self._folder:
            self._folder, self._written = folder, {}
        try:
            run_concurrently(self._write_announcement, newest.values())
        except BaseException as error:  # noqa: BLE001 - a missing announcement harms no commit
            if not self._has_failed:
                self._has_failed = True
                root = next(iter(newest.values()))[0].url
                warn(_LOGGER, "announcing_failed", root=root, error=error)
        return bool(self._commits)

    def _find_marker(self, store: Store, slot: int) -> bool:
        """Return whether a reader has asked for announcements; looked up once in a slot."""
        if not self._is_followed and slot != self._looked_slot:
            self._looked_slot = slot
            # A store that does not answer gets no announcements, either.
            with suppress(BaseException):
                self._is_followed = store.exists(MARKER)
        return self._is_followed

    def _write_announcement(self, commit: tuple[Store, str, int]) -> None:
        store, table_id, version = commit
        key = f"{self._folder}/{table_id}-{version}"
        if "/" in table_id or not is_key(key):
            # An imported log may have any text as its table's id.
            return
        store.replace(key, b"%d\n" % version)
        before = self._written.get(table_id, key)
        self._written[table_id] = key
        if before != key:
            store.delete(before)
