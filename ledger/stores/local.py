"""Local store: a POSIX folder with durable, atomic creates and a folder lock.

A file is written under a temporary name in its folder, synced, and linked to its name; `link` fails
for an existing name and never shows a partial file. Then the folder is synced, since otherwise a
loss of power may lose the name.

No descriptor outlives a call, or the iterator or context that a call returns, so threads, forked
children and pickled copies share nothing. A folder that others removed and made again while the
store is open is not synced into its parent again.

A `StoreError` guarantees that nothing was written. If something may have become visible, the error
is an `OSError`: only reading back tells.
"""

# ruff: noqa: PTH100, PTH102, PTH103, PTH108, PTH112, PTH116, PTH120 - a Path costs more than a small read

from __future__ import annotations

import enum
import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from functools import lru_cache
from threading import get_ident
from typing import Final, NamedTuple, Self

from ledger.model.errors import StoreError
from ledger.stores.base import (
    DRAFT_PREFIX,
    LOCK_NAME,
    Draft,
    Turn,
    are_keys,
    check_body,
    check_key,
    folder_of,
    folder_prefix,
    is_key,
)
from ledger.stores.concurrency import run_concurrently

try:
    import fcntl as fcntl  # noqa: PLC0414 - the lock takes it from here
except ImportError:
    # Windows has none, and only a local store needs it.
    fcntl = None  # type: ignore[assignment]

ABSENT: Final = (FileNotFoundError, NotADirectoryError, IsADirectoryError)
"""Errors of opening a path that is not a file."""

# Systems that lack O_DIRECTORY are rejected by `refuse_other_systems` before it is used.
_FOLDER: Final = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_DRAFT: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL
_FEW_BYTES: Final = 16_384
# A single instance: `suppress` has no state.
whatever_happens: Final = suppress(OSError)
"""Context manager that ignores errors of the system, for cleanup on the commit path."""

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
    """Reject a local root on a system that is not POSIX.

    Raises:
        StoreError: The system lacks `flock`, `O_DIRECTORY`, or links relative to a folder.
    """
    if not _IS_POSIX:
        raise StoreError(
            f"{root} cannot hold a ledger: local folders need a POSIX system, such as Linux or "
            f"macOS, and this one is {os.name!r}. Use a bucket, or a system such as WSL",
            "SYSTEM",
        )


def sync(descriptor: int) -> None:
    """Make a file, or a folder's entries, durable: fsync, or its stronger form on macOS."""
    if _FULL_SYNC is None:
        os.fsync(descriptor)
        return
    try:
        fcntl.fcntl(descriptor, _FULL_SYNC)
    except OSError as error:
        if error.errno not in _NO_FULL_SYNC_HERE:
            raise
        # Some network and external file systems support the ordinary fsync only.
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
def create_draft(folder: int) -> Iterator[tuple[str, int]]:
    """Yield the name and descriptor of a new temporary file in `folder`; it is removed afterwards.

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
    """Return a unique name for a temporary file."""
    # From the system each time: a forked process would continue the state of a generator.
    return f"{DRAFT_PREFIX}{os.urandom(8).hex()}"


def open_draft(folder: int, name: str) -> int:
    """Return the descriptor of a new file, which the caller closes."""
    return os.open(name, _DRAFT, 0o666, dir_fd=folder)


def remove_draft(folder: int, name: str) -> None:
    """Remove a draft's name; errors are ignored, as an orphaned draft is harmless."""
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
        path: The path, or the name if a folder is given.
        folder: The descriptor of the folder that it is in.
    """
    try:
        file = os.open(path, os.O_RDONLY, dir_fd=folder)
    except ABSENT:
        return None
    try:
        # Most files are small, and allocating a larger buffer takes as long as reading them.
        body = os.read(file, _FEW_BYTES)
        if len(body) == _FEW_BYTES:
            # Read a longer one in a single call: joining parts would copy it.
            body = os.pread(file, os.fstat(file).st_size, 0)
        # Network file systems may return short reads, so only an empty read is the end.
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
    """Yield the whole files of some names in the folder `path`, None for each missing one."""
    try:
        folder = open_folder(path)
    except (*ABSENT, PermissionError):
        # It may be created during the iteration, or be unreadable while its files are readable.
        yield from (read(f"{path}/{name}") for name in names)
        return
    try:
        for name in names:
            yield read(name, folder)
    finally:
        os.close(folder)


def make_folder(path: str) -> bool:
    """Create the folder `path` below an existing one; False when it exists."""
    try:
        os.mkdir(path)
    except OSError as error:
        # For an existing folder some systems report a missing permission to write instead.
        if os.path.isdir(path):
            return False
        if isinstance(error, FileExistsError):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path) from error
        raise
    return True


def walk(base: str, prefix: str) -> Iterator[str]:
    """Yield the keys of all files in the folder `base + prefix` and below, in no order.

    Names that are not valid keys (foreign files, drafts, locks) are left out.
    """
    # The folder's part of a key is checked once for all of its files.
    is_folder = not prefix or is_key(f"{prefix}a")
    for key, entry in _walk_files(base, prefix):
        name = entry.name
        is_here = is_folder and len(key) == len(prefix) + len(name)
        if (is_key(name) if is_here else is_key(key)) and entry.is_file():
            yield key


def drafts(base: str, prefix: str) -> Iterator[tuple[str, int]]:
    """Yield the drafts in the folder `base + prefix` and below, with their times of last write.

    Yields:
        The path below `base`, and the time in Unix milliseconds.
    """
    for path, entry in _walk_files(base, prefix):
        if _is_draft(entry.name):
            # Its writer may have finished meanwhile.
            with suppress(*ABSENT):
                found = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(found.st_mode):
                    yield path, found.st_mtime_ns // 1_000_000


def _walk_files(base: str, prefix: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield the entries in `base + prefix` and below that are not folders, with their paths."""
    try:
        entries = os.scandir(base + prefix)
    except ABSENT:
        return
    with entries:
        for entry in entries:
            path = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                yield from _walk_files(base, f"{path}/")
            else:
                yield path, entry


class _ErrorAdvice(NamedTuple):
    """Kind and next step of a `StoreError`.

    Attributes:
        kind: The error's `kind`.
        step: The next step, for the message.
    """

    kind: str
    step: str


_NO_SPACE: Final = _ErrorAdvice("NO_SPACE", "free some space or raise the quota")
_READ_ONLY: Final = _ErrorAdvice("READ_ONLY", "mount it for writing, or write to another place")
_NO_PERMISSION: Final = _ErrorAdvice("NO_PERMISSION", "allow this user to write there")
_NO_FOLDER: Final = _ErrorAdvice(
    "NO_FOLDER", "a file is in the place of a folder, or the reverse; inspect it and move it away"
)
_NAME: Final = _ErrorAdvice("NAME_TOO_LONG", "use a shorter path")
_MANY_FILES: Final = _ErrorAdvice(
    "TOO_MANY_FILES", "open fewer files at once or raise the limit (ulimit -n)"
)
_NO_LINKS: Final = _ErrorAdvice(
    "NO_HARD_LINKS",
    "its file system does not support hard links, which make a commit appear atomically; put the "
    "ledger on another one, such as ext4, XFS, Btrfs, APFS or NFS",
)
_OTHER: Final = _ErrorAdvice("STORE", "check the disk")

_BY_ERRNO: Final = {
    errno.ENOSPC: _NO_SPACE,
    errno.EDQUOT: _NO_SPACE,
    errno.EFBIG: _ErrorAdvice("TOO_LARGE", "allow larger files there (ulimit -f)"),
    errno.EROFS: _READ_ONLY,
    errno.EACCES: _NO_PERMISSION,
    errno.EPERM: _NO_PERMISSION,
    errno.ENOTDIR: _NO_FOLDER,
    errno.EEXIST: _NO_FOLDER,
    errno.EISDIR: _NO_FOLDER,
    errno.ELOOP: _NO_FOLDER,
    errno.ENOENT: _ErrorAdvice("STORE", "its folder was removed meanwhile"),
    errno.ENAMETOOLONG: _NAME,
    errno.EMFILE: _MANY_FILES,
    errno.ENFILE: _MANY_FILES,
}
_NO_LINK: Final = frozenset(
    {errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EMLINK, errno.EXDEV}
)
NO_NAME: Final = _NO_LINK | {
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES),
    *(errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.ENAMETOOLONG),
}
"""Errors of linking or renaming a complete file that prove that its name did not become visible."""

NO_PATH: Final = frozenset({errno.ELOOP, errno.ENAMETOOLONG})
"""Errors of reading a file that persist until the folders are changed."""


def refusal(url: str, what: str, error: OSError) -> StoreError:
    """Return the error for a failure after which nothing can have become visible.

    Args:
        url: The store's URL.
        what: The attempted operation, as in `create 'log/0'`.
        error: The system's error.

    Example:
        >>> full = OSError(errno.ENOSPC, "No space left on device")
        >>> refusal("file:///lake", "create 'log/0'", full).kind
        'NO_SPACE'
    """
    return _store_error(url, what, error, _BY_ERRNO.get(error.errno or 0, _OTHER))


def refusal_of_link(url: str, what: str, error: OSError) -> StoreError:
    """Return the error for a failed link of a complete file; see `refusal`."""
    if error.errno in _NO_LINK:
        return _store_error(url, what, error, _NO_LINKS)
    return refusal(url, what, error)


def _store_error(url: str, what: str, error: OSError, advice: _ErrorAdvice) -> StoreError:
    number = error.errno or 0
    said = os.strerror(number) if number else str(error)
    if number in errno.errorcode:
        said = f"{said} ({errno.errorcode[number]})"
    return StoreError(
        f"{url}: cannot {what}: {said}. Nothing was written; {advice.step}, then try again",
        advice.kind,
    )


_held: Final[set[int]] = set()
"""Descriptors of the locks that this process holds or waits for."""

_next: Final[dict[tuple[int, str], Callable[[], None]]] = {}
"""Callbacks for when an announced file becomes visible, by thread and path; see `Turn`."""

_NO_LOCKS_HERE: Final = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EBADF})
_NOT_WRITTEN_BY_ME: Final = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


class FolderLock:
    """Context manager that holds `flock` on a file, created if missing and never removed.

    Each instance opens the file itself, so threads exclude each other as processes do. The kernel
    releases the lock of a killed process. A holder that is stopped, not killed, blocks all others.
    On a file system without `flock` nothing is locked, and on NFS only processes that may write the
    file are.

    Args:
        path: The path of the lock file.
        base: The folder that keys are relative to, with a slash at its end.
        url: The store's URL, for messages.

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
            self._descriptor = _open_and_lock(self._path)
        except OSError as error:
            raise refusal(self._url, f"lock {os.path.dirname(self._path)!r}", error) from error
        return self

    def __exit__(self, *_: object) -> None:
        self._withdraw_announcement()
        self._unlock_file()

    def announce_create(self, key: str) -> None:
        """See `Turn.announce_create`."""
        self._announce_create(key, _do_nothing)

    def announce_last_create(self, key: str) -> None:
        """See `Turn.announce_last_create`."""
        self._announce_create(key, self._unlock_file)

    def _announce_create(self, key: str, shown: Callable[[], None]) -> None:
        self._withdraw_announcement()
        self._created = get_ident(), self._base + key
        _next[self._created] = shown

    def _withdraw_announcement(self) -> None:
        if self._created is not None:
            _next.pop(self._created, None)

    def _unlock_file(self) -> None:
        # Only once: the descriptor's number may be reused for another file afterwards.
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor in _held:
            # Unlock explicitly: a child forked meanwhile shares the lock and would keep it.
            with whatever_happens:
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            _close_descriptor(descriptor)


def lock_while_linking(path: str, folder: int) -> AbstractContextManager[Callable[[], None]]:
    """Return a context manager in which to link a file and make it durable.

    If the file was announced to a `Turn`, the folder is locked meanwhile, so that the next file
    becomes visible only once this one is durable.

    Args:
        path: The file's path.
        folder: The descriptor of its folder.

    Returns:
        A context manager that yields a function to be called once the file is visible.
    """
    shown = _next.pop((get_ident(), path), None) if _next else None
    return _ALONE if shown is None else _hold_folder_lock(folder, shown)


@contextmanager
def _hold_folder_lock(folder: int, shown: Callable[[], None]) -> Iterator[Callable[[], None]]:
    """Lock a folder itself, as announced creates do until its entries are durable."""
    # Where folders cannot be locked, the lock of the turn is held until its end instead.
    then = _do_nothing
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


def _do_nothing() -> None:
    """Do nothing."""


_ALONE: Final = nullcontext(_do_nothing)


def _open_and_lock(path: str) -> int:
    descriptor = _open_creating_folder(path)
    _held.add(descriptor)
    try:
        _lock_exclusively(descriptor)
    except BaseException:
        _close_descriptor(descriptor)
        raise
    return descriptor


def _close_descriptor(descriptor: int) -> None:
    _held.discard(descriptor)
    os.close(descriptor)


def _open_creating_folder(path: str) -> int:
    try:
        return _open_lock_file(path)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return _open_lock_file(path)


def _open_lock_file(path: str) -> int:
    try:
        # NFS needs a file open for writing for an exclusive lock.
        return os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        if error.errno not in _NOT_WRITTEN_BY_ME:
            raise
        return os.open(path, os.O_RDONLY | os.O_CREAT, 0o666)


def _lock_exclusively(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    except OSError as error:
        if error.errno not in _NO_LOCKS_HERE:
            raise


def _close_locks_after_fork() -> None:
    # A forked child must not keep a copy of the descriptors: the locks would outlive their owner.
    for descriptor in [*_held]:
        _close_descriptor(descriptor)
    _next.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_locks_after_fork)


_ONE_BY_ONE: Final = 8
"""Number of files that `read_many` reads by their paths before it opens their folder."""

_TOGETHER: Final = 256
"""Number of files, at most, that `read_many` reads through one descriptor of their folder."""


class Durability(enum.Enum):
    """Durability of a local store's creates once they are acknowledged."""

    FSYNC = "fsync"
    """File and folder are synced: survives a loss of power."""

    NONE = "none"
    """Handed to the kernel: survives a kill of the process. For tests and benchmarks."""


class LocalStore:
    """Store below the local folder `root`, which is created with the first key.

    Symbolic links below the root are followed by reads and writes, and not listed as folders.

    Raises:
        StoreError: The system is not POSIX.

    Example:
        >>> LocalStore("/data/lake").url
        'file:///data/lake'
    """

    def __init__(
        self, root: str | os.PathLike[str], *, durable: Durability = Durability.FSYNC
    ) -> None:
        refuse_other_systems(os.fspath(root))
        # POSIX keeps exactly two leading slashes, which would give one root two URLs.
        self._root = "/" + os.path.abspath(root).lstrip("/")
        self._base = self._root if self._root.endswith("/") else f"{self._root}/"
        self._url = f"file://{self._root}"
        self._durable = durable
        self._durable_folders: set[str] = set()

    def __repr__(self) -> str:
        return f"LocalStore({self._root!r}, durable={self._durable})"

    @property
    def url(self) -> str:
        """URL of the root, `file:///path`, not percent-encoded: engines take it literally."""
        return self._url

    @property
    def is_near(self) -> bool:
        """See `Store.is_near`."""
        return True

    def clock(self) -> None:
        """See `Store.clock`; this machine's is the only one."""

    def ask_clock(self) -> None:
        """See `Store.ask_clock`; this machine's is the only one."""

    def create(self, key: str, body: bytes) -> bool:
        """See `Store.create`."""
        check_key(key)
        check_body(key, body)
        place = self._base + key
        path, _, name = place.rpartition("/")
        may_be_visible = False
        try:
            # Losers return before they pay for an fsync. The link below decides; this check may
            # miss a file for lack of permissions.
            if os.access(place, os.F_OK) and _is_file(place):
                return False
            folder, draft = self._open_durable_folder(path), draft_name()
            try:
                self._write_draft(folder, draft, body)
                may_be_visible = True
                with lock_while_linking(place, folder) as shown:
                    if not self._link_unless_exists(folder, draft, name):
                        return False
                    shown()
                    # Sync through the descriptor that was linked into: certainly the same folder.
                    self._sync(folder)
                return True
            finally:
                remove_draft(folder, draft)
                os.close(folder)
        except OSError as error:
            if may_be_visible:
                raise
            raise refusal(self.url, f"create {key!r}", error) from error

    def create_many(
        self, steps: Sequence[Mapping[str, bytes]], met: Callable[[str, bytes], None]
    ) -> None:
        """See `Store.create_many`.

        Drafts of all steps are written and synced concurrently, then linked in their order, so that
        a folder is synced once. The file system decides which of them survive a loss of power.
        """
        for step in steps:
            for key, body in step.items():
                check_key(key)
                check_body(key, body)
        files = {key: body for step in steps for key, body in step.items()}
        missing = {key: body for key, body in files.items() if not _is_file(self._base + key)}
        with ExitStack() as stack:
            try:
                paths = {os.path.dirname(self._base + key) for key in missing}
                folders = {
                    path: stack.enter_context(self._opened_durable_folder(path))
                    for path in sorted(paths)
                }
                drafts = {
                    key: (folders[os.path.dirname(self._base + key)], draft_name())
                    for key in missing
                }
                for each in drafts.values():
                    stack.callback(remove_draft, *each)
                run_concurrently(lambda key: self._write_draft(*drafts[key], missing[key]), missing)
            except OSError as error:
                raise refusal(self.url, "create files", error) from error
            for step in steps:
                for key, body in step.items():
                    draft = drafts.get(key)
                    if draft is None or not self._link_unless_exists(
                        *draft, key.rpartition("/")[2]
                    ):
                        met(key, body)
            run_concurrently(self._sync, folders.values())

    def _write_draft(self, folder: int, name: str, body: bytes) -> None:
        file = open_draft(folder, name)
        try:
            write(file, body)
            self._sync(file)
        finally:
            os.close(file)

    def read(self, key: str) -> bytes | None:
        """See `Store.read`."""
        check_key(key)
        try:
            return read(self._base + key)
        except OSError as error:
            if error.errno not in NO_PATH:
                raise
            raise refusal(self.url, f"read {key!r}", error) from error

    def confirm(self, key: str) -> bytes | None:
        """See `Store.confirm`."""
        body = self.read(key)
        if body is None:
            return None
        path = os.path.dirname(self._base + key)
        with self._opened_durable_folder(path) as folder:
            self._sync(folder)
        return body

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        """See `Store.read_many`."""
        base = self._base
        # Most callers stop at the first key that does not exist, after few that do.
        for place in range(min(len(keys), _ONE_BY_ONE)):
            check_key(key := keys[place])
            yield read(base + key)
        for begin in range(_ONE_BY_ONE, len(keys), _TOGETHER):
            some = keys[begin : begin + _TOGETHER]
            folder, names = _split_common_folder(some)
            if names:
                yield from read_names(base + folder, names)
            else:
                for key in some:
                    check_key(key)
                    yield read(base + key)

    def exists(self, key: str) -> bool:
        """See `Store.exists`."""
        check_key(key)
        return _is_file(self._base + key)

    def replace(self, key: str, body: bytes) -> None:
        """See `Store.replace`."""
        check_key(key)
        check_body(key, body)
        path, name = os.path.split(self._base + key)
        may_be_visible = False
        try:
            os.makedirs(path, exist_ok=True)
            with opened_folder(path) as folder, create_draft(folder) as (draft, file):
                write(file, body)
                may_be_visible = True
                os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError as error:
            if may_be_visible and error.errno not in NO_NAME:
                raise
            raise refusal(self.url, f"replace {key!r}", error) from error

    def replace_durably(self, key: str, body: bytes) -> None:
        """See `Store.replace_durably`.

        The file is synced before the rename shows it, and its folder after that.
        """
        check_key(key)
        check_body(key, body)
        path, _, name = (self._base + key).rpartition("/")
        may_be_visible = False
        try:
            with self._opened_durable_folder(path) as folder, create_draft(folder) as (draft, file):
                write(file, body)
                self._sync(file)
                may_be_visible = True
                os.replace(draft, name, src_dir_fd=folder, dst_dir_fd=folder)
                self._sync(folder)
        except OSError as error:
            if may_be_visible and error.errno not in NO_NAME:
                raise
            raise refusal(self.url, f"replace {key!r}", error) from error

    def keys(self, prefix: str) -> Iterator[str]:
        """See `Store.keys`."""
        return iter(sorted(self.walk(prefix)))

    def walk(self, prefix: str) -> Iterator[str]:
        """See `Store.walk`."""
        return walk(self._base, folder_prefix(prefix))

    def delete(self, key: str) -> None:
        """See `Store.delete`."""
        check_key(key)
        with suppress(*ABSENT):
            os.unlink(self._base + key)

    def drafts(self, prefix: str) -> Iterator[Draft]:
        """See `Store.drafts`."""
        found = drafts(self._base, folder_prefix(prefix))
        return (Draft(path, modified_millis) for path, modified_millis in found)

    def discard(self, draft: Draft) -> None:
        """See `Store.discard`."""
        with suppress(*ABSENT):
            os.unlink(self._base + draft.path)

    def lock(self, key: str) -> AbstractContextManager[Turn | None]:
        """See `Store.lock`; the file is `.lock` in the folder that `key` is in."""
        return FolderLock(_lock_path(self._base, key), self._base, self._url)

    def _sync(self, descriptor: int) -> None:
        if self._durable is Durability.FSYNC:
            sync(descriptor)

    def _link_unless_exists(self, folder: int, draft: str, name: str) -> bool:
        try:
            self._link(folder, draft, name)
        except FileExistsError:
            # An NFS client that resends a link whose answer was lost gets the error that the name
            # exists. If our own draft has two names, this link succeeded.
            if os.stat(draft, dir_fd=folder).st_nlink == 2:  # noqa: PLR2004 - draft and name
                return True
            self._check_file(folder, name)
            return False
        except OSError as error:
            # One name: the link failed. Two: it succeeded, and its answer was lost.
            if error.errno in NO_NAME and os.stat(draft, dir_fd=folder).st_nlink == 1:
                raise refusal_of_link(self.url, f"create {name!r}", error) from error
            raise
        return True

    def _check_file(self, folder: int, name: str) -> None:
        """Check that an existing name is a file; anything else is an error that persists."""
        try:
            if stat.S_ISREG(os.stat(name, dir_fd=folder).st_mode):
                return
        except OSError:
            # Either a dangling link, or it is gone: then this raises, too.
            os.stat(name, dir_fd=folder, follow_symlinks=False)
        raise StoreError(
            f"{self.url}: cannot create {name!r}: a folder, or a link that leads to no file, has "
            "that name, and no ledger created it. Nothing was written; inspect it and move it "
            "away, then try again"
        )

    def _link(self, folder: int, draft: str, name: str) -> None:
        os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder)

    @contextmanager
    def _opened_durable_folder(self, path: str) -> Iterator[int]:
        folder = self._open_durable_folder(path)
        try:
            yield folder
        finally:
            os.close(folder)

    def _open_durable_folder(self, path: str) -> int:
        if path in self._durable_folders:
            # Opening fails if it was removed.
            try:
                return open_folder(path)
            except ABSENT:
                pass
        self._make_durable(path)
        return open_folder(path)

    def _make_durable(self, path: str) -> None:
        """Create the folder `path`, and make every name from the root down to it durable.

        Existing folders are synced into their parents, too, once: the process that created them may
        not have done so yet, or may have died.
        """
        if path in self._durable_folders and os.path.isdir(path):
            return
        parent = os.path.dirname(path)
        below_root = len(path) > len(self._root)
        # Above the root, only missing folders are created and synced.
        if below_root or not os.path.isdir(parent):
            self._make_durable(parent)
        made = make_folder(path)
        # The parent of an existing root may be unreadable and so cannot be synced.
        if made or below_root or os.access(parent, os.R_OK):
            with opened_folder(parent) as folder:
                self._sync(folder)
        self._durable_folders.add(path)


# Cached: every commit needs it, and streams are few.
@lru_cache(maxsize=256)
def _lock_path(base: str, key: str) -> str:
    folder = folder_of(key)
    return f"{base}{folder}/{LOCK_NAME}" if folder else base + LOCK_NAME


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except ABSENT:
        return False


def _split_common_folder(keys: Sequence[str]) -> tuple[str, list[str]]:
    """Return the common folder of keys and their names in it; no names if there is none."""
    folder = keys[0].rpartition("/")[0]
    front = f"{folder}/"
    names = [each.removeprefix(front) for each in keys]
    are_there = sum(map(len, keys)) == sum(map(len, names)) + len(front) * len(names)
    return (folder, names) if are_there and are_keys([folder]) and are_keys(names) else ("", [])
