"""The advisory lock of a local folder: writers take turns instead of wasting fsyncs."""
# ruff: noqa: PTH103, PTH120 - taken for every commit; a Path costs more than the lock

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from threading import get_ident
from typing import Final, Self

from ledger.stores.posix import fcntl, whatever_happens
from ledger.stores.refusals import refusal

_held: Final[set[int]] = set()
"""The descriptors of this process's locks, and of those that it waits for."""

_next: Final[dict[tuple[int, str], Callable[[], None]]] = {}
"""The files that threads create in their turns, each with what is done once it shows."""

_NO_LOCKS_HERE: Final = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF})
_NOT_WRITTEN_BY_ME: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


class FolderLock:
    """Holds `flock` on the file `path`, made if missing and never removed, while a body runs.

    Each one opens the file anew, so threads exclude each other as processes do. The kernel
    releases the lock of a killed process. A holder that is stopped, not killed, keeps everybody
    waiting. On a file system without `flock` nobody waits, and on NFS only who may write the file.

    Args:
        path: The lock's file.
        base: What keys are below, with a slash at its end.
        url: The store's, for messages.

    Raises:
        StoreError: The file cannot be opened or locked; the body did not run.
    """

    def __init__(self, path: str, base: str, url: str) -> None:
        self._path = path
        self._base = base
        self._url = url
        self._descriptor = -1
        self._created: tuple[int, str] | None = None

    def __enter__(self) -> Self:
        try:
            self._descriptor = _locked(self._path)
        except OSError as error:
            raise refusal(self._url, f"lock {os.path.dirname(self._path)!r}", error) from error
        return self

    def __exit__(self, *_: object) -> None:
        self._forget()
        self._let_in()

    def goes_on_with(self, key: str) -> None:
        """See `Turn.goes_on_with`."""
        self._creates(key, _nothing)

    def ends_with(self, key: str) -> None:
        """See `Turn.ends_with`."""
        self._creates(key, self._let_in)

    def _creates(self, key: str, shown: Callable[[], None]) -> None:
        self._forget()
        self._created = get_ident(), self._base + key
        _next[self._created] = shown

    def _forget(self) -> None:
        if self._created is not None:
            _next.pop(self._created, None)

    def _let_in(self) -> None:
        # Once only: the number is another file's afterwards.
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor in _held:
            # A child forked meanwhile shares the lock and would keep it past our close.
            with whatever_happens:
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            _let_go(descriptor)


def in_order(path: str, folder: int) -> AbstractContextManager[Callable[[], None]]:
    """Show a file inside, and make it durable; in a turn, after all that was shown before it.

    Args:
        path: The file.
        folder: The descriptor of its folder, of which no other file is shown meanwhile in a turn.

    Returns:
        Enters what is to be called once the file shows.
    """
    shown = _next.pop((get_ident(), path), None) if _next else None
    return _ALONE if shown is None else _folder_locked(folder, shown)


@contextmanager
def _folder_locked(folder: int, shown: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Hold a folder itself locked, which whoever syncs its names does in a turn."""
    # Where no folder can be locked, the others wait for the turn's end.
    then = _nothing
    _held.add(folder)
    try:
        with suppress(OSError):
            fcntl.flock(folder, fcntl.LOCK_EX)
            then = shown
        yield then
    finally:
        if folder in _held:
            _held.discard(folder)
            with suppress(OSError):
                fcntl.flock(folder, fcntl.LOCK_UN)


def _nothing() -> None:
    """Do nothing."""


_ALONE: Final = nullcontext(_nothing)


def _locked(path: str) -> int:
    descriptor = _open(path)
    _held.add(descriptor)
    try:
        _lock(descriptor)
    except BaseException:
        _let_go(descriptor)
        raise
    return descriptor


def _let_go(descriptor: int) -> None:
    _held.discard(descriptor)
    os.close(descriptor)


def _open(path: str) -> int:
    try:
        return _opened(path)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return _opened(path)


def _opened(path: str) -> int:
    try:
        # NFS locks for one alone only what is open for writing; all others lock either.
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        if error.errno not in _NOT_WRITTEN_BY_ME:
            raise
        return os.open(path, os.O_RDONLY | os.O_CREAT, 0o666)


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in _NO_LOCKS_HERE:
            raise


def _leave_to_the_parent() -> None:
    # Whoever holds a copy of its descriptor keeps a lock whose owner was killed.
    for descriptor in [*_held]:
        _let_go(descriptor)
    _next.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_the_parent)
