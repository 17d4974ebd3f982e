"""The file operations under the local store, on descriptors and bytes instead of file objects."""
# ruff: noqa: PTH102, PTH112 - a Path costs more than opening and reading a small file does

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from ledger.model.errors import StoreError
from ledger.stores.key import DRAFT_PREFIX, is_key

try:
    import fcntl as fcntl  # noqa: PLC0414 - the lock takes it from here
except ImportError:
    # Windows has none, and only a local store needs it.
    fcntl = None  # type: ignore[assignment]

ABSENT: Final = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
"""What a path raises that holds no file."""

# Where a system lacks it, `refuse_other_systems` comes before anybody asks for it.
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_DRAFT: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_FEW_BYTES: Final = 16_384
# One serves all: `suppress` keeps nothing of those who enter it.
whatever_happens: Final = suppress(OSError)
"""Lets go of what every commit enters, whatever the system says."""

_is_draft = re.compile(rf"{re.escape(DRAFT_PREFIX)}[0-9a-f]{{16}}").fullmatch

_IS_POSIX: Final = all(
    (hasattr(fcntl, "flock"), _FOLDER != os.O_RDONLY, {os.link, os.open} <= os.supports_dir_fd)
)
# On macOS fsync leaves the bytes in the disk's own cache, and this command empties that.
_FULL_SYNC: Final = getattr(fcntl, "F_FULLFSYNC", None)
_NO_FULL_SYNC_HERE: Final = frozenset(
    {errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOTTY, errno.ENOSYS}
)


def refuse_other_systems(root: str) -> None:
    """Refuse a local root where the system lacks what a local store is made of.

    Raises:
        StoreError: It is no POSIX system.
    """
    if not _IS_POSIX:
        raise StoreError(
            f"{root} cannot hold a ledger: local folders need a POSIX system, such as Linux or "
            f"macOS, and this one is {os.name!r}. Use a bucket, or a system such as WSL",
            "SYSTEM",
        )


def sync(descriptor: int) -> None:
    """Return once a file, or a folder's names, would survive a loss of power."""
    if _FULL_SYNC is None:
        os.fsync(descriptor)
        return
    try:
        fcntl.fcntl(descriptor, _FULL_SYNC)
    except OSError as error:
        if error.errno not in _NO_FULL_SYNC_HERE:
            raise
        # Some file systems of other machines and disks know the ordinary one only.
        os.fsync(descriptor)


def open_folder(path: str) -> int:
    """Return a descriptor of the folder `path`, which the caller closes."""
    return os.open(path, _FOLDER)


@contextmanager
def opened_folder(path: str) -> Iterator[int]:
    """Yield a descriptor of the folder `path`, closed afterwards."""
    folder = open_folder(path)
    try:
        yield folder
    finally:
        os.close(folder)


@contextmanager
def draft(folder: int) -> Iterator[tuple[str, int]]:
    """Yield the name and descriptor of a new file in `folder`; the name is gone afterwards.

    Only a kill leaves the file behind.
    """
    name = draft_name()
    file = open_draft(folder, name)
    try:
        try:
            yield name, file
        finally:
            os.close(file)
    finally:
        remove_draft(folder, name)


def draft_name() -> str:
    """Return a name that no other draft has."""
    # Of the system each time: a process that was copied goes on with whatever it kept.
    return f"{DRAFT_PREFIX}{os.urandom(8).hex()}"


def open_draft(folder: int, name: str) -> int:
    """Return the descriptor of a new file, which the caller closes."""
    return os.open(name, _DRAFT, 0o666, dir_fd=folder)


def remove_draft(folder: int, name: str) -> None:
    """Take a draft's name away; an orphan does no harm, and fails no write that was made."""
    with whatever_happens:
        os.unlink(name, dir_fd=folder)


def write(file: int, body: bytes) -> None:
    """Write all of `body`; the kernel may take it in parts."""
    written = os.write(file, body)
    while written < len(body):
        written += os.write(file, memoryview(body)[written:])


def read(path: str, folder: int | None = None) -> bytes | None:
    """Return the whole file `path`, or None when there is no file.

    Args:
        path: Where it is; a name where a folder is given.
        folder: The descriptor of the folder that it is in.
    """
    try:
        file = os.open(path, os.O_RDONLY, dir_fd=folder)
    except ABSENT:
        return None
    try:
        # Most files are small, and room for more takes as long as reading them.
        body = os.read(file, _FEW_BYTES)
        if len(body) == _FEW_BYTES:
            # A longer one in one piece: what is put together of parts is copied as often.
            body = os.pread(file, os.fstat(file).st_size, 0)
        # Network file systems may answer short, so only an empty answer is the end.
        if not os.pread(file, 1, len(body)):
            return body
        with open(file, "rb", buffering=0, closefd=False) as rest:
            rest.seek(len(body))
            return b"".join((body, rest.readall()))
    except IsADirectoryError:
        return None
    finally:
        os.close(file)


def read_names(path: str, names: Iterable[str]) -> Iterator[bytes | None]:
    """Yield the whole files of some names in the folder `path`, None for each that is not there."""
    try:
        folder = open_folder(path)
    except (*ABSENT, PermissionError):
        # It may come to be while others are asked for, or be closed to lists alone.
        yield from (read(f"{path}/{name}") for name in names)
        return
    try:
        for name in names:
            yield read(name, folder)
    finally:
        os.close(folder)


def make_folder(path: str) -> bool:
    """Make the folder `path` below an existing one; False when it was there."""
    try:
        os.mkdir(path)
    except OSError as error:
        # Systems differ in what they say first: that it exists, or that nobody may write there.
        if os.path.isdir(path):
            return False
        if isinstance(error, FileExistsError):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from error
        raise
    return True


def walk(base: str, prefix: str) -> Iterator[str]:
    """Yield the keys of all files in the folder `base + prefix` and below, in no order.

    Names that no key can have are foreign, drafts or locks, and left out.
    """
    # What a folder's name makes of its keys is the same for all of them.
    is_folder = not prefix or is_key(f"{prefix}a")
    for key, entry in _entries(base, prefix):
        name = entry.name
        is_here = is_folder and len(key) == len(prefix) + len(name)
        if (is_key(name) if is_here else is_key(key)) and entry.is_file():
            yield key


def drafts(base: str, prefix: str) -> Iterator[tuple[str, int]]:
    """Yield the drafts in the folder `base + prefix` and below, and when each was last written.

    Returns:
        The path below `base`, and Unix milliseconds.
    """
    for path, entry in _entries(base, prefix):
        if _is_draft(entry.name):
            # Whoever wrote it may have finished meanwhile.
            with suppress(*ABSENT):
                found = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(found.st_mode):
                    yield path, found.st_mtime_ns // 1_000_000


def _entries(base: str, prefix: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield what is no folder in `base + prefix` and below, with its path below `base`."""
    try:
        entries = os.scandir(base + prefix)
    except ABSENT:
        return
    with entries:
        for entry in entries:
            path = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from _entries(base, f"{path}/")
            else:
                yield path, entry
