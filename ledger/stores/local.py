"""Local store: a POSIX folder with durable, atomic creates and a folder lock.

A file is written under a temporary name beside its place, synced, and linked to its name; `link`
refuses an existing name and never shows a part. Then the folder is synced, since a name is as
lost as its content without that.

No descriptor outlives a call, or what a call goes through, so threads, forked children and
pickled copies share nothing. A folder that was removed and made again by others behind an open
store is not synced into its parent again.

A refusal says for sure that nothing was written, so it is a `StoreError`. What leaves it open
whether something became visible stays an `OSError`: silence, which only reading back ends.
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
from ledger.stores.concurrency import do_each

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
def create_draft(folder: int) -> Iterator[tuple[str, int]]:
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


class _Advice(NamedTuple):
    """What programs and people are told of a refusal.

    Attributes:
        kind: The error's `kind`.
        step: What to do.
    """

    kind: str
    step: str


_NO_SPACE: Final = _Advice("NO_SPACE", "free some space or raise the quota")
_READ_ONLY: Final = _Advice("READ_ONLY", "mount it for writing, or write to another place")
_NO_PERMISSION: Final = _Advice("NO_PERMISSION", "allow this user to write there")
_NO_FOLDER: Final = _Advice(
    "NO_FOLDER", "something else stands where a folder has to be; look at it and move it away"
)
_NAME: Final = _Advice("NAME_TOO_LONG", "take a shorter path")
_MANY_FILES: Final = _Advice("TOO_MANY_FILES", "let fewer files be open at once (ulimit -n)")
_NO_LINKS: Final = _Advice(
    "NO_HARD_LINKS",
    "its file system refuses hard links, without which a commit cannot appear at once; put the "
    "ledger on another one, such as ext4, XFS, Btrfs, APFS or NFS",
)
_OTHER: Final = _Advice("STORE", "look at the disk")

_BY_ERRNO: Final = {
    errno.ENOSPC: _NO_SPACE,
    errno.EDQUOT: _NO_SPACE,
    errno.EFBIG: _Advice("TOO_LARGE", "allow larger files there (ulimit -f)"),
    errno.EROFS: _READ_ONLY,
    errno.EACCES: _NO_PERMISSION,
    errno.EPERM: _NO_PERMISSION,
    errno.ENOTDIR: _NO_FOLDER,
    errno.EEXIST: _NO_FOLDER,
    errno.EISDIR: _NO_FOLDER,
    errno.ELOOP: _NO_FOLDER,
    errno.ENOENT: _Advice("STORE", "its folder was taken away meanwhile"),
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
"""What a whole file is refused its name with; after any other error it may have got it."""

NO_PATH: Final = frozenset({errno.ELOOP, errno.ENAMETOOLONG})
"""Of reading a file: no path leads to it, and none will before somebody changes the folders."""


def refusal(url: str, what: str, error: OSError) -> StoreError:
    """Return what to raise where nothing can have become visible.

    Args:
        url: The store's.
        what: What was tried, as in `create 'log/0'`.
        error: What the system said.

    Example:
        >>> full = OSError(errno.ENOSPC, "No space left on device")
        >>> refusal("file:///lake", "create 'log/0'", full).kind
        'NO_SPACE'
    """
    return _refusal(url, what, error, _BY_ERRNO.get(error.errno or 0, _OTHER))


def refusal_of_link(url: str, what: str, error: OSError) -> StoreError:
    """Return what to raise where a whole file was refused its second name; see `refusal`."""
    if error.errno in _NO_LINK:
        return _refusal(url, what, error, _NO_LINKS)
    return refusal(url, what, error)


def _refusal(url: str, what: str, error: OSError, advice: _Advice) -> StoreError:
    number = error.errno or 0
    said = os.strerror(number) if number else str(error)
    if number in errno.errorcode:
        said = f"{said} ({errno.errorcode[number]})"
    return StoreError(
        f"{url}: cannot {what}: {said}. Nothing was written; {advice.step}, then try again",
        advice.kind,
    )


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


_TOGETHER: Final = 256
"""So many files are asked for at a time, where somebody reads many."""


class Durability(enum.Enum):
    """What a local store has done by the time that it acknowledges a create."""

    FSYNC = "fsync"
    """File and folder are synced: survives a loss of power."""

    NONE = "none"
    """Handed to the kernel: survives a kill of the process. For tests and benchmarks."""


class LocalStore:
    """A store below the folder `root`, made when the first key is written.

    Symbolic links below the root are followed by reads and writes, and not listed as folders.

    Raises:
        StoreError: This is no POSIX system.

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
        """The root as `file:///path`, not percent-encoded: lake engines take it literally."""
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
            # Losers leave before they pay for a sync. Only the link below decides; whoever cannot
            # look, or looks with another user's rights, finds out there.
            if os.access(place, os.F_OK) and _is_file(place):
                return False
            folder, draft = self._open_durable(path), draft_name()
            try:
                self._write_draft(folder, draft, body)
                may_be_visible = True
                with in_order(place, folder) as shown:
                    if not self._publish(folder, draft, name):
                        return False
                    shown()
                    # Through the descriptor that was linked into: no other folder is synced.
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

        Drafts of all steps are written and synced at the same time, then linked in their order, so
        that a folder is synced once. What a loss of power leaves of them, the file system says.
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
                    path: stack.enter_context(self._durable_folder(path)) for path in sorted(paths)
                }
                drafts = {
                    key: (folders[os.path.dirname(self._base + key)], draft_name())
                    for key in missing
                }
                for each in drafts.values():
                    stack.callback(remove_draft, *each)
                do_each(lambda key: self._write_draft(*drafts[key], missing[key]), missing)
            except OSError as error:
                raise refusal(self.url, "create files", error) from error
            for step in steps:
                for key, body in step.items():
                    draft = drafts.get(key)
                    if draft is None or not self._publish(*draft, key.rpartition("/")[2]):
                        met(key, body)
            do_each(self._sync, folders.values())

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
        with self._durable_folder(path) as folder:
            self._sync(folder)
        return body

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        """See `Store.read_many`."""
        base = self._base
        begin, size = 0, 1
        while begin < len(keys):
            # Most ask for one and look whether it is there.
            some = keys[begin : begin + size]
            folder, names = _in_one_folder(some)
            if names:
                yield from read_names(base + folder, names)
            else:
                for key in some:
                    check_key(key)
                    yield read(base + key)
            begin, size = begin + size, min(8 * size, _TOGETHER)

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
            with self._durable_folder(path) as folder, create_draft(folder) as (draft, file):
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

    def _publish(self, folder: int, draft: str, name: str) -> bool:
        try:
            self._link(folder, draft, name)
        except FileExistsError:
            # An NFS client that resends a link whose answer was lost is told that the name
            # exists. The second name of our own draft tells that this was us.
            if os.stat(draft, dir_fd=folder).st_nlink == 2:  # noqa: PLR2004 - draft and name
                return True
            self._check_file(folder, name)
            return False
        except OSError as error:
            # One name: that of the draft. Two: an answer before this one was lost.
            if error.errno in NO_NAME and os.stat(draft, dir_fd=folder).st_nlink == 1:
                raise refusal_of_link(self.url, f"create {name!r}", error) from error
            raise
        return True

    def _check_file(self, folder: int, name: str) -> None:
        """Check that what stands in a name's place is a file; nothing else goes away by waiting."""
        try:
            if stat.S_ISREG(os.stat(name, dir_fd=folder).st_mode):
                return
        except OSError:
            # Either a link that leads nowhere, or it is gone: then this raises, too.
            os.stat(name, dir_fd=folder, follow_symlinks=False)
        raise StoreError(
            f"{self.url}: cannot create {name!r}: a folder, or a link that leads to no file, "
            "stands in its place, and no ledger put it there. Nothing was written; look at it and "
            "move it away, then try again"
        )

    def _link(self, folder: int, draft: str, name: str) -> None:
        os.link(draft, name, src_dir_fd=folder, dst_dir_fd=folder)

    @contextmanager
    def _durable_folder(self, path: str) -> Iterator[int]:
        folder = self._open_durable(path)
        try:
            yield folder
        finally:
            os.close(folder)

    def _open_durable(self, path: str) -> int:
        if path in self._durable_folders:
            # Opening asks as well whether it is still there.
            try:
                return open_folder(path)
            except ABSENT:
                pass
        self._make_durable(path)
        return open_folder(path)

    def _make_durable(self, path: str) -> None:
        """Make the folder `path`, and make every name from the root down to it durable.

        Folders that exist are synced into their parents too, once: whoever made them may not
        have come that far yet, or may have died.
        """
        if path in self._durable_folders and os.path.isdir(path):
            return
        parent = os.path.dirname(path)
        below_root = len(path) > len(self._root)
        # Above the root only what is missing is ours to make.
        if below_root or not os.path.isdir(parent):
            self._make_durable(parent)
        made = make_folder(path)
        # Nobody can sync the unreadable parent of a root that an administrator made.
        if made or below_root or os.access(parent, os.R_OK):
            with opened_folder(parent) as folder:
                self._sync(folder)
        self._durable_folders.add(path)


# Every commit asks, and streams are few.
@lru_cache(maxsize=256)
def _lock_path(base: str, key: str) -> str:
    folder = folder_of(key)
    return f"{base}{folder}/{LOCK_NAME}" if folder else base + LOCK_NAME


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except ABSENT:
        return False


def _in_one_folder(keys: Sequence[str]) -> tuple[str, list[str]]:
    """Return the folder that several keys are in and their names there; no names: ask for each."""
    if len(keys) == 1:
        return "", []
    folder = keys[0].rpartition("/")[0]
    front = f"{folder}/"
    names = [each.removeprefix(front) for each in keys]
    are_there = sum(map(len, keys)) == sum(map(len, names)) + len(front) * len(names)
    return (folder, names) if are_there and are_keys([folder]) and are_keys(names) else ("", [])
