"""The advisory lock of a local folder: writers take turns instead of wasting fsyncs."""
# ruff: noqa: PTH103, PTH120 - taken for every commit; a Path costs more than the lock

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_NO_LOCKS_HERE: Final = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP})


@contextmanager
def folder_lock(path: str) -> Iterator[None]:
    """Hold `flock` on the file `path`, made if missing and never removed, while the body runs.

    Each call opens the file anew, so threads exclude each other as processes do. The kernel
    releases the lock of a killed process. A holder that is stopped, not killed, keeps everybody
    waiting. On a file system without `flock` nobody waits.

    Raises:
        OSError: The file cannot be opened.
    """
    descriptor = _open(path)
    try:
        _lock(descriptor)
        try:
            yield
        finally:
            # A child forked meanwhile shares the lock and would keep it past our close.
            _unlock(descriptor)
    finally:
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


def _unlock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    except OSError as error:
        if error.errno not in _NO_LOCKS_HERE:
            raise
