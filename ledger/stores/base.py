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
    """A store's clock that was read once and advances with this machine's monotonic clock.

    After this machine slept, it has to be read again.

    Attributes:
        read_millis: Its time when it was read, Unix milliseconds, to half a second.
        read_s: This machine's monotonic clock when it was read, in seconds.
    """

    read_millis: int
    read_s: float

    @classmethod
    def at(cls, moment: datetime) -> Clock:
        """Return a clock whose time now is `moment`, which is exact to the second."""
        return cls(int(moment.timestamp()) * 1000 + _HALF_A_SECOND, time.monotonic())

    def now_millis(self) -> int:
        """Return its current time, Unix milliseconds."""
        return self.read_millis + round((time.monotonic() - self.read_s) * 1000)


def clock_from_date(date: str | None) -> Clock | None:
    """Return the clock of a server by its response's `Date` header; None without a valid one.

    Args:
        date: The header of a response just received; its unit is the second (RFC 9110, 5.6.7).

    Example:
        >>> (
        ...     clock_from_date("Sun, 06 Nov 1994 08:49:37 GMT").read_millis,
        ...     clock_from_date("yesterday"),
        ... )
        (784111777500, None)
    """
    # Imported here: only writers to object stores need it.
    from email.utils import parsedate_to_datetime

    try:
        return Clock.at(parsedate_to_datetime(date or ""))
    except ValueError:
        return None


class Draft(NamedTuple):
    """A temporary file of a create: a partial file, or a second name of a complete one.

    Attributes:
        path: Its path, relative to the store's root.
        modified_millis: Time of the last write, Unix milliseconds by the file system's clock.
    """

    path: str
    modified_millis: int


class Turn(Protocol):
    """A held lock that can be released before the created file is durable.

    Files that successive holders create become visible in their order, and each only after the one
    before it is durable, so that a loss of power leaves no file without its predecessors.
    """

    def announce_create(self, key: str) -> None:
        """Announce that this thread creates `key` next and keeps the lock afterwards."""

    def announce_last_create(self, key: str) -> None:
        """Announce that this thread creates `key` next; the lock is released once it is visible.

        The file is not durable by then, so it counts as created only when `create` returns. If the
        key exists already, the lock is kept. It is released at the end of the body at the latest.
        """


class Store(Protocol):
    """Store of bytes under keys below a root URL, with an atomic put-if-absent.

    Keys are relative POSIX paths; see `check_key`. Every method raises `InvalidNameError` for any
    other key, before it has any effect.

    No method retries. A rejection by the store is a `StoreError`: no space, no permission,
    read-only, a name too long, no such bucket. It is raised at once, guarantees that this call
    wrote nothing, names the reason, and its `kind` names it for programs. A missing answer is an
    `OSError`: the write may have been applied or not, and only reading back tells.

    Readers never see a part of a body, whatever happens to the writer. No body is empty, so an
    empty file is damage and never valid data.
    """

    @property
    def url(self) -> str:
        """Canonical URL of the root; opening it again gives the same data."""

    @property
    def is_near(self) -> bool:
        """True for a local store: small bodies are read in microseconds, without a request."""

    def clock(self) -> Clock | None:
        """Return the store's own clock as last read; a process reads it at most once for this.

        None for a store without a clock of its own, and where responses are not dated.

        Raises:
            StoreError: The store cannot be written to.
            OSError: It did not answer.
        """

    def ask_clock(self) -> Clock | None:
        """Read the store's own clock now and return it; raises as `clock`."""

    def create(self, key: str, body: bytes) -> bool:
        """Put `body` under `key` unless the key exists; one of all racing callers wins.

        True: this call created it, durably. False: the key existed and nothing was written.
        Any exception but those below: the outcome is unknown. Find it out with `confirm`; sending
        the same body to the same key again is safe.

        Raises:
            InvalidInputError: The body is empty; nothing was written.
            StoreError: The store rejects it; this call wrote nothing. An earlier call with the same
                body that got no answer may have: see `confirm`.
            OSError: The outcome is unknown.
        """

    def create_many(
        self, steps: Sequence[Mapping[str, bytes]], met: Callable[[str, bytes], None]
    ) -> None:
        """Create many files, each as `create` does, and faster than one by one.

        Files of one step become visible in any order, and those of the next step only after all of
        them. When it returns, all are durable. When it raises, any of them may have been created
        except those of steps after the one that failed.

        Args:
            steps: Bodies by key, step by step.
            met: Called with the key and body of a file whose key existed, before the next step; an
                exception from it ends the call. Never called by two threads at once.

        Raises:
            InvalidInputError: A body is empty.
            StoreError: The store rejects one of them.
            OSError: The outcome is unknown.
        """

    def read(self, key: str) -> bytes | None:
        """Return the body under `key`, or None when there is none.

        Needs no permission to write.
        """

    def confirm(self, key: str) -> bytes | None:
        """Read `key` and return its body once it is durable, or None when there is none.

        For a writer that finds its own commit by reading: the call that wrote it may have died
        between making it visible and making it durable. It writes nothing and needs no permission
        to write. All earlier creations, durable replacements and deletions in the key's folder are
        durable afterwards, too.

        Raises:
            OSError: It failed; never a `StoreError`, which would mean that nothing was written.
        """

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        """Yield the bodies under `keys` in their order, each read at the latest when it is due."""

    def exists(self, key: str) -> bool:
        """Return whether `key` has a body."""

    def replace(self, key: str, body: bytes) -> None:
        """Put `body` under `key`, replacing any other, atomically; for caches only.

        A loss of power may undo it or leave the file empty; a kill of the process may not.

        Raises:
            InvalidInputError: The body is empty; nothing was written.
            StoreError: The store rejects it; nothing was written.
            OSError: The outcome is unknown.
        """

    def replace_durably(self, key: str, body: bytes) -> None:
        """Put `body` under `key`, replacing any other, atomically and durably.

        After a loss of power the key has the whole old body or the whole new one, and the new one
        once the call has returned.

        Raises:
            InvalidInputError: The body is empty; nothing was written.
            StoreError: The store rejects it; nothing was written.
            OSError: The outcome is unknown; the same call again is safe.
        """

    def keys(self, prefix: str) -> Iterator[str]:
        """List every key in the folder `prefix` and below, sorted by code point.

        `prefix` may end in a slash or not; `""` is the whole store. Not a snapshot: with concurrent
        writers, later keys may appear while earlier ones are missing. Never on the commit path.
        """

    def walk(self, prefix: str) -> Iterator[str]:
        """Yield the keys that `keys` lists, in any order, without holding all of them if possible.

        For long logs: sorting holds every name in memory.
        """

    def delete(self, key: str) -> None:
        """Remove `key`; does nothing if it is absent."""

    def drafts(self, prefix: str) -> Iterator[Draft]:
        """Yield temporary files in a folder and below, including those of writers at work.

        A store that makes no drafts has none.
        """

    def discard(self, draft: Draft) -> None:
        """Remove a draft; does nothing if it is absent.

        Its writer, if it is still at work, gets the error that the outcome is unknown, finds
        nothing under the key, and sends the body again.
        """

    def lock(self, key: str) -> AbstractContextManager[Turn | None]:
        """Return a context manager that holds the lock of the folder that `key` is in.

        It excludes other threads and processes. Advisory, and only an optimisation: `create` alone
        decides races, and a store that cannot lock excludes nobody. Not reentrant. The lock of a
        killed holder is released. The context is None for a store whose creates become visible only
        once durable.

        Raises:
            StoreError: The store rejects it, and the body did not run.
        """


DRAFT_PREFIX: Final = ".tmp-"
"""Name prefix of temporary files; reserved, so that no key's last segment may begin with it."""

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
    """Return whether `text` can be a key.

    Example:
        >>> [is_key(text) for text in ("shop.db/orders/snapshot/LATEST", "../x", "a/.tmp-1")]
        [True, False, False]
    """
    return _is_key(text) is not None


def check_key(key: str) -> None:
    """Reject a key that could escape the root or collide with a store's own files.

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
    """Return True if all texts are valid keys by a quick check; False: check each on its own.

    Example:
        >>> are_keys(["log/1", "log/2"]), are_keys(["log/1", "../x"]), are_keys([".lock-free"])
        (True, False, False)
    """
    joined = "/".join(texts)
    # Each segment of a text is a segment of the joined path; an empty text makes an empty segment.
    return DRAFT_PREFIX not in joined and LOCK_NAME not in joined and _is_path(joined) is not None


def check_path(path: str) -> None:
    """Reject a path that could escape the root; reserved names are valid.

    Raises:
        InvalidNameError: The path is not one.
    """
    if _is_path(path) is None:
        raise InvalidNameError(f"{path!r} cannot be a key: {_RULE}; rename it")


def folder_of(path: str) -> str:
    """Return the folder that contains `path`, `""` for the root.

    Example:
        >>> folder_of("_ledger/log"), folder_of("log")
        ('_ledger', '')

    Raises:
        InvalidNameError: The path is not one.
    """
    check_path(path)
    return path.rpartition("/")[0]


def folder_prefix(prefix: str) -> str:
    """Return the common prefix of all keys in the folder `prefix` and below.

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
    """Reject an empty body.

    Some stores create an empty object without the condition, and an empty file looks like one that
    a crash left behind.

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
