"""The advisory lock of a local folder: writers take turns instead of wasting fsyncs."""
# ruff: noqa: PTH103, PTH120 - taken for every commit; a Path costs more than the lock

from __future__ import annotations

import errno
import os
from contextlib import suppress
from typing import Final

from ledger.stores.posix import fcntl
from ledger.stores.refusals import refusal

_held: Final[set[int]] = set()
"""The descriptors of this process's locks, and of those that it waits for."""

_NO_LOCKS_HERE: Final = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})


class FolderLock:
    """Holds `flock` on the file `path`, made if missing and never removed, while a body runs.

    Each one opens the file anew, so threads exclude each other as processes do. The kernel
    releases the lock of a killed process. A holder that is stopped, not killed, keeps everybody
    waiting. On a file system without `flock` nobody waits.

    Args:
        path: The lock's file.
        url: The store's, for messages.

    Raises:
        StoreError: The file cannot be opened or locked; the body did not run.
    """

    def __init__(self, path: str, url: str) -> None:
        self._path = path
        self._url = url
        self._descriptor = -1

    def __enter__(self) -> None:
        try:
            self._descriptor = _locked(self._path)
        except OSError as error:
            raise refusal(self._url, f"lock {os.path.dirname(self._path)!r}", error) from error

    def __exit__(self, *_: object) -> None:
        if self._descriptor in _held:
            # A child forked meanwhile shares the lock and would keep it past our close.
            with suppress(OSError):
                fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            _let_go(self._descriptor)


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
    flags = os.O_RDONLY | os.O_CREAT
    try:
        return os.open(path, flags, 0o666)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return os.open(path, flags, 0o666)


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


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_leave_to_the_parent)
