"""A store in a POSIX folder: whole files that appear at once and stay after a loss of power.

A file is written under a temporary name beside its place, synced, and linked to its name; `link`
refuses an existing name and never shows a part. Then the folder is synced, since a name is as
lost as its content without that.

No descriptor outlives a call, or what a call goes through, so threads, forked children and
pickled copies share nothing. A folder that was removed and made again by others behind an open
store is not synced into its parent again.
"""
# ruff: noqa: PTH100, PTH103, PTH108, PTH112, PTH116, PTH120 - a Path costs more than a small read

from __future__ import annotations

import enum
import os
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from functools import lru_cache
from typing import Final

import ledger.stores.posix as posix  # noqa: PLR0402 - the door of this room imports this file
from ledger.model.errors import StoreError
from ledger.stores.base import Draft, Turn
from ledger.stores.folder_lock import FolderLock, in_order
from ledger.stores.key import (
    LOCK_NAME,
    are_keys,
    check_body,
    check_key,
    folder_of,
    folder_prefix,
)
from ledger.stores.refusals import NO_NAME, NO_PATH, refusal, refusal_of_link
from ledger.stores.several import do_each

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
        posix.refuse_other_systems(os.fspath(root))
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
            folder, draft = self._open_durable(path), posix.draft_name()
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
                posix.remove_draft(folder, draft)
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
                    key: (folders[os.path.dirname(self._base + key)], posix.draft_name())
                    for key in missing
                }
                for each in drafts.values():
                    stack.callback(posix.remove_draft, *each)
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
        file = posix.open_draft(folder, name)
        try:
            posix.write(file, body)
            self._sync(file)
        finally:
            os.close(file)

    def read(self, key: str) -> bytes | None:
        """See `Store.read`."""
        check_key(key)
        try:
            return posix.read(self._base + key)
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
                yield from posix.read_names(base + folder, names)
            else:
                for key in some:
                    check_key(key)
                    yield posix.read(base + key)
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
            with posix.opened_folder(path) as folder, posix.draft(folder) as (draft, file):
                posix.write(file, body)
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
            with self._durable_folder(path) as folder, posix.draft(folder) as (draft, file):
                posix.write(file, body)
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
        return posix.walk(self._base, folder_prefix(prefix))

    def delete(self, key: str) -> None:
        """See `Store.delete`."""
        check_key(key)
        with suppress(*posix.ABSENT):
            os.unlink(self._base + key)

    def drafts(self, prefix: str) -> Iterator[Draft]:
        """See `Store.drafts`."""
        found = posix.drafts(self._base, folder_prefix(prefix))
        return (Draft(path, modified_millis) for path, modified_millis in found)

    def discard(self, draft: Draft) -> None:
        """See `Store.discard`."""
        with suppress(*posix.ABSENT):
            os.unlink(self._base + draft.path)

    def lock(self, key: str) -> AbstractContextManager[Turn | None]:
        """See `Store.lock`; the file is `.lock` in the folder that `key` is in."""
        return FolderLock(_lock_path(self._base, key), self._base, self._url)

    def _sync(self, descriptor: int) -> None:
        if self._durable is Durability.FSYNC:
            posix.sync(descriptor)

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
                return posix.open_folder(path)
            except posix.ABSENT:
                pass
        self._make_durable(path)
        return posix.open_folder(path)

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
        made = posix.make_folder(path)
        # Nobody can sync the unreadable parent of a root that an administrator made.
        if made or below_root or os.access(parent, os.R_OK):
            with posix.opened_folder(parent) as folder:
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
    except posix.ABSENT:
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
