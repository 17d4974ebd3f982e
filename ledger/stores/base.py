"""Contract of a store, its keys, and the clock of a storage service."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ledger.model.errors import InvalidInputError, InvalidNameError

if TYPE_CHECKING:
    from datetime import datetime


_HALF_A_SECOND: Final = 500


class Clock(NamedTuple):
    """A clock that was read once and goes on at the pace of this machine's monotonic one.

    A machine that slept meanwhile has to read it anew.

    Attributes:
        read_millis: What it said, Unix time in milliseconds, to half a second.
        read_s: When that was, in seconds by this machine's monotonic clock.
    """

    read_millis: int
    read_s: float

    @classmethod
    def at(cls, moment: datetime) -> Clock:
        """Return a clock that has just said `moment`, to the second."""
        return cls(int(moment.timestamp()) * 1000 + _HALF_A_SECOND, time.monotonic())

    def now_millis(self) -> int:
        """Return what it says now."""
        return self.read_millis + round((time.monotonic() - self.read_s) * 1000)


def clock_of(date: str | None) -> Clock | None:
    """Return the clock by which an answer was dated that has just come; None if it was not.

    Args:
        date: The answer's `Date` header; its unit is the second (RFC 9110, 5.6.7).

    Example:
        >>> clock_of("Sun, 06 Nov 1994 08:49:37 GMT").read_millis, clock_of("yesterday")
        (784111777500, None)
    """
    # Only who writes to an object store needs it.
    from email.utils import parsedate_to_datetime

    try:
        return Clock.at(parsedate_to_datetime(date or ""))
    except ValueError:
        return None


class Draft(NamedTuple):
    """A half-written file, or a second name of a whole one.

    Attributes:
        path: Where it is, relative to the store's root.
        modified_millis: When it was last written, Unix milliseconds by the file system's clock.
    """

    path: str
    modified_millis: int


class Turn(Protocol):
    """A lock that is held, of a store where others need not wait for the disk.

    What is created in turns shows in their order, and each file only once the one before it is
    durable, so that a loss of power leaves no file without those that it goes on from.
    """

    def goes_on_with(self, key: str) -> None:
        """Say that this thread creates `key` next, and goes on holding the lock."""

    def ends_with(self, key: str) -> None:
        """Say that this thread creates `key` next, and let others in once they see its file.

        It is not durable by then, so nobody is told of it before `create` returns. Where the key
        exists nobody is let in. The turn ends with its body at the latest.
        """


class Store(Protocol):
    """Bytes under keys below one root URL, with an atomic put-if-absent.

    Keys are relative POSIX paths; `ledger.stores.base` says which. Every method raises
    `InvalidNameError` for any other, before it touches anything.

    No method retries. What a store refuses is a `StoreError`: no space, no permission, read-only,
    a name too long, no such bucket. It is told at once, says for sure that this call wrote nothing,
    names the reason, and `kind` names it for programs. Silence is an `OSError`: it says nothing
    about whether a write was applied, and only reading back ends it.

    Readers never see a part of a body, whatever happens to the writer. No body is empty, so an
    empty file is damage and never somebody's data.
    """

    @property
    def url(self) -> str:
        """The root's canonical URL; opening it again gives the same data."""

    @property
    def is_near(self) -> bool:
        """Whether a small body is read without a request to another machine, in microseconds."""

    def clock(self) -> Clock | None:
        """Return the store's own clock as it was told last, asked for at most once a process.

        None where nobody but this machine knows the time, and where answers are not dated.

        Raises:
            StoreError: The store cannot be written to.
            OSError: It did not answer.
        """

    def ask_clock(self) -> Clock | None:
        """Return the store's own clock as it is told now; raises as `clock`."""

    def create(self, key: str, body: bytes) -> bool:
        """Put `body` under `key` unless the key exists; one of all racing callers wins.

        True: this call created it, durably. False: the key existed and nothing was written.
        Any exception but those below: the outcome is unknown. Find out with `confirm`; sending
        the same body to the same key again is safe.

        Raises:
            InvalidInputError: The body is empty; nothing was written.
            StoreError: The store refuses; this call wrote nothing. An earlier call of the same
                body may have: whoever had no answer before asks `confirm`.
            OSError: Applied or not, nobody knows.
        """

    def create_many(
        self, steps: Sequence[Mapping[str, bytes]], met: Callable[[str, bytes], None]
    ) -> None:
        """Create many files, each as `create` does, and faster than one by one.

        Files of one step show in any order, and those of the next only once all of it are there.
        When it returns, all are durable. When it raises, any of them may have been created but
        those of later steps than the one that failed.

        Args:
            steps: Bodies by key, step after step.
            met: Called with what was to be created where a key existed, before the next step; what
                it raises ends the call. Never called by two threads at once.

        Raises:
            InvalidInputError: A body is empty.
            StoreError: The store refuses one of them.
            OSError: Applied or not, nobody knows.
        """

    def read(self, key: str) -> bytes | None:
        """Return the body under `key`, or None when there is none.

        Works where nothing may be written.
        """

    def confirm(self, key: str) -> bytes | None:
        """Read `key`, and return only once what was read would survive a loss of power.

        A writer that finds its own commit by reading acknowledges it; the call that wrote it may
        have died between making it visible and making it durable. It writes nothing, and works
        where nothing may be written. Everything else that was created, replaced durably or deleted
        in the key's folder before the call is durable, too.

        Raises:
            OSError: Nobody knows, never a `StoreError`: that would say that nothing was written.
        """

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        """Read `keys` in their order, each when the iterator gets there."""

    def exists(self, key: str) -> bool:
        """Say whether `key` has a body."""

    def replace(self, key: str, body: bytes) -> None:
        """Put `body` under `key` whatever was there, atomically; for caches only.

        A loss of power may take it back or leave the file empty; a kill of the process may not.

        Raises:
            InvalidInputError: The body is empty; nothing was written.
            StoreError: The store refuses; nothing was written.
            OSError: Applied or not, nobody knows.
        """

    def replace_durably(self, key: str, body: bytes) -> None:
        """Put `body` under `key` whatever was there, atomically and durably.

        After a loss of power the key holds the whole old body or the whole new one, and the new
        one once the call has returned.

        Raises:
            InvalidInputError: The body is empty; nothing was written.
            StoreError: The store refuses; nothing was written.
            OSError: Applied or not, nobody knows; the same call again is safe.
        """

    def keys(self, prefix: str) -> Iterator[str]:
        """List every key in the folder `prefix` and below, sorted by code point.

        `prefix` may end in a slash or not; `""` is the whole store. Not a snapshot: beside
        writers, later keys may show while earlier ones are missing. Never on the commit path.
        """

    def walk(self, prefix: str) -> Iterator[str]:
        """Yield what `keys` lists, in any order, and without holding all of it where it can.

        For long logs: sorting holds every name in memory.
        """

    def delete(self, key: str) -> None:
        """Remove `key`; one that is absent is fine."""

    def drafts(self, prefix: str) -> Iterator[Draft]:
        """Yield what writers left behind in a folder and below, those at work included.

        A store that makes no drafts has none.
        """

    def discard(self, draft: Draft) -> None:
        """Remove a draft; one that is gone is fine.

        A writer that comes back to it is told that the outcome is unknown, finds nothing under the
        key, and sends the body again.
        """

    def lock(self, key: str) -> AbstractContextManager[Turn | None]:
        """Take turns with every other holder, thread or process, in the folder that `key` is in.

        Advisory, and only an optimisation: `create` stays the truth, and a store that cannot lock
        lets everybody in. Not reentrant. A holder that is killed lets go. None is entered where a
        create shows nothing before it is durable.

        Raises:
            StoreError: The store refuses, and the body did not run.
        """


DRAFT_PREFIX: Final = ".tmp-"
"""What the names of half-written files begin with; no key's last segment may."""

LOCK_NAME: Final = ".lock"
"""The lock file of a folder; no key's last segment may be it."""

_SEGMENT = r"(?!\.{1,2}(?:/|\Z))[^/\\\x00-\x1f\x7f-\x9f\ud800-\udfff]++"
_RESERVED = rf"(?:{re.escape(DRAFT_PREFIX)}|{re.escape(LOCK_NAME)}\Z)"
_is_path = re.compile(rf"{_SEGMENT}(?:/{_SEGMENT})*+").fullmatch
_is_key = re.compile(rf"(?:{_SEGMENT}/)*+(?!{_RESERVED}){_SEGMENT}").fullmatch

_RULE = (
    "a key is a relative path of segments joined by '/', none of them empty, '.' or '..', "
    "without backslashes and control characters"
)


def is_key(text: str) -> bool:
    """Say whether `text` can be a key.

    Example:
        >>> [is_key(text) for text in ("shop.db/orders/snapshot/LATEST", "../x", "a/.tmp-1")]
        [True, False, False]
    """
    return _is_key(text) is not None


def check_key(key: str) -> None:
    """Refuse a key that could escape the root or collide with a store's own files.

    Raises:
        InvalidNameError: The key is not one.
    """
    if _is_key(key) is None:
        check_path(key)
        raise InvalidNameError(
            f"the key {key!r} is reserved: names that begin with {DRAFT_PREFIX!r} and the name "
            f"{LOCK_NAME!r} belong to the store; choose another name"
        )


def are_keys(texts: Sequence[str]) -> bool:
    """Say whether all of some texts can be keys, as a quick look tells; False: ask for each.

    Example:
        >>> are_keys(["log/1", "log/2"]), are_keys(["log/1", "../x"]), are_keys([".lock-free"])
        (True, False, False)
    """
    joined = "/".join(texts)
    # Every segment of theirs is one of this path's, and a text that is empty makes an empty one.
    return DRAFT_PREFIX not in joined and LOCK_NAME not in joined and _is_path(joined) is not None


def check_path(path: str) -> None:
    """Refuse a path that could escape the root; reserved names pass.

    Raises:
        InvalidNameError: The path is not one.
    """
    if _is_path(path) is None:
        raise InvalidNameError(f"{path!r} cannot be a key: {_RULE}; rename it")


def folder_of(path: str) -> str:
    """Return the folder that `path` stands in, `""` for the root.

    Example:
        >>> folder_of("_ledger/log"), folder_of("log")
        ('_ledger', '')

    Raises:
        InvalidNameError: The path is not one.
    """
    check_path(path)
    return path.rpartition("/")[0]


def folder_prefix(prefix: str) -> str:
    """Return what every key in the folder `prefix` and below begins with.

    Example:
        >>> folder_prefix("shop.db"), folder_prefix("shop.db/"), folder_prefix("")
        ('shop.db/', 'shop.db/', '')

    Raises:
        InvalidNameError: The prefix is not a folder's path.
    """
    if not prefix:
        return ""
    folder = prefix.removesuffix("/")
    check_path(folder)
    return f"{folder}/"


def check_body(key: str, body: bytes) -> None:
    """Refuse an empty body.

    Some stores create an empty object without the condition, and an empty file could not be told
    from one that a crash left behind.

    Raises:
        InvalidInputError: The body is empty.
    """
    if not body:
        raise InvalidInputError(
            f"the body of {key!r} is empty; a stored body has at least one byte"
        )


@contextmanager
def held(turn: threading.Lock) -> Iterator[None]:
    """Hold a lock of this process, for stores that have no other."""
    with turn:
        yield
