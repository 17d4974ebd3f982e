"""A turn at a local log ends once its file shows; the next shows once that one is durable."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from ledger.stores import LocalStore, Turn

LOCK = "t/lock"
FIRST, SECOND = "t/log/1", "t/log/2"


class Disk(LocalStore):
    """Calls `at_sync` when the folder of the log is synced, once `FIRST` shows."""

    at_sync: Callable[[], object] = staticmethod(lambda: None)

    def _sync(self, descriptor: int) -> None:
        if self.exists(FIRST) and is_log(descriptor, Path(self._base)):
            self.at_sync()
        super()._sync(descriptor)


def is_log(descriptor: int, root: Path) -> bool:
    return os.path.samestat(os.fstat(descriptor), (root / "t/log").stat())


def disk(folder: Path) -> Disk:
    made = Disk(folder)
    assert made.create("t/log/0", b"0")
    return made


@contextmanager
def turn_of(store: LocalStore) -> Iterator[Turn]:
    with store.lock(LOCK) as turn:
        assert turn is not None
        yield turn


def is_free(store: LocalStore) -> bool:
    """Return whether another writer would get the lock at once."""
    descriptor = os.open(store._base + "t/.lock", os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True


def test_others_are_let_in_once_a_file_shows_and_before_it_is_durable(tmp_path: Path) -> None:
    store, seen = disk(tmp_path), []
    store.at_sync = lambda: seen.append((store.read(FIRST), is_free(store)))

    with turn_of(store) as turn:
        turn.announce_last_create(FIRST)
        assert not is_free(store)
        assert store.create(FIRST, b"1")
        assert is_free(store)

    assert seen == [(b"1", True)]


def test_a_continuing_writer_holds_the_lock_to_its_end(tmp_path: Path) -> None:
    store, seen = disk(tmp_path), []
    store.at_sync = lambda: seen.append(is_free(store))

    with turn_of(store) as turn:
        turn.announce_create(FIRST)
        assert store.create(FIRST, b"1")
        assert not is_free(store)
        turn.announce_last_create(SECOND)
        assert store.create(SECOND, b"2")

    assert seen == [False, True]
    assert is_free(store)


def test_nobody_is_let_in_where_the_key_exists_or_is_another(tmp_path: Path) -> None:
    store = disk(tmp_path)

    with turn_of(store) as turn:
        turn.announce_last_create("t/log/0")
        assert not store.create("t/log/0", b"mine")
        assert not is_free(store)
        turn.announce_last_create(FIRST)
        assert store.create(SECOND, b"2")
        assert not is_free(store)
        turn.announce_last_create("t/log/3")
        assert store.create(FIRST, b"1"), "what was said last counts"
        assert not is_free(store)

    assert is_free(store)


def test_what_another_thread_creates_ends_no_turn_of_this_one(tmp_path: Path) -> None:
    store = disk(tmp_path)

    with turn_of(store) as turn, ThreadPoolExecutor(1) as other:
        turn.announce_last_create(FIRST)
        assert other.submit(store.create, FIRST, b"1").result(10)
        assert not is_free(store)


def test_a_turn_that_is_over_ends_no_later_one(tmp_path: Path) -> None:
    store = disk(tmp_path)

    with turn_of(store) as turn:
        turn.announce_last_create(FIRST)
        assert store.create(FIRST, b"1")
        later = store.lock(LOCK)
        # Most likely under the number that the first one's file had.
        later.__enter__()
    assert not is_free(store)
    later.__exit__(None, None, None)

    with turn_of(store) as turn:
        turn.announce_last_create(SECOND)
    with store.lock(LOCK):
        assert store.create(SECOND, b"2")
        assert not is_free(store), "what the turn before was to end with"


def test_a_file_shows_in_a_turn_only_once_the_one_before_it_is_durable(tmp_path: Path) -> None:
    store, others = disk(tmp_path), LocalStore(tmp_path)
    next_one: list[Future[bool]] = []

    def create(key: str, of: LocalStore) -> bool:
        with turn_of(of) as turn:
            turn.announce_last_create(key)
            return of.create(key, b"x")

    def at_sync() -> None:
        next_one.append(pool.submit(create, SECOND, others))
        # The next one's draft is written meanwhile.
        while len([*(tmp_path / "t/log").glob(".tmp-*")]) < 2:
            assert not next_one[0].done()
        time.sleep(0.1)
        assert not store.exists(SECOND)

    with ThreadPoolExecutor(1) as pool:
        store.at_sync = at_sync
        assert create(FIRST, store)
        assert next_one[0].result(10)
    assert store.exists(SECOND)


def test_where_folders_cannot_be_locked_a_turn_lasts_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, real = disk(tmp_path), fcntl.flock

    def of_files_alone(descriptor: int, operation: int) -> None:
        if is_log(descriptor, tmp_path):
            raise OSError(errno.EBADF, "a folder")
        real(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", of_files_alone)

    with turn_of(store) as turn:
        turn.announce_last_create(FIRST)
        assert store.create(FIRST, b"1")
        assert not is_free(store)
    assert is_free(store)


def test_a_child_forked_while_its_parent_waits_for_the_disk_keeps_nobody_waiting(
    tmp_path: Path,
) -> None:
    store, others = disk(tmp_path), LocalStore(tmp_path)
    ends, waits = os.pipe()
    children: list[int] = []

    def at_sync() -> None:
        store.at_sync = lambda: None
        child = os.fork()
        if not child:
            os.close(waits)
            os.read(ends, 1)
            os._exit(0)
        children.append(child)

    store.at_sync = at_sync
    with turn_of(store) as turn:
        turn.announce_last_create(FIRST)
        assert store.create(FIRST, b"1")
    try:
        with turn_of(others) as turn:
            turn.announce_last_create(SECOND)
            assert others.create(SECOND, b"2")
        assert os.waitpid(children[0], os.WNOHANG) == (0, 0), "the child is there"
    finally:
        os.close(waits)
        os.waitpid(children[0], 0)
        os.close(ends)


def test_a_lock_excludes_where_only_what_is_open_for_writing_can_be_locked_as_on_nfs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, real = disk(tmp_path), fcntl.flock

    def as_nfs(descriptor: int, operation: int) -> None:
        may_write = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE != os.O_RDONLY
        if operation & fcntl.LOCK_EX and not may_write:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        real(descriptor, operation)

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", as_nfs)
        turn = store.lock(LOCK)
        held = turn.__enter__()
        assert held is not None
        held.announce_last_create(FIRST)
        assert store.create(FIRST, b"1")
    assert not is_free(store), "a folder cannot be locked there, so that it lasts to its end"
    turn.__exit__(None, None, None)
    assert is_free(store)


def test_a_lock_that_somebody_else_made_is_waited_for_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, real = disk(tmp_path), os.open
    (tmp_path / "t/.lock").touch(0o444)

    def as_nobody(path: str, flags: int, *rest: int, **names: int) -> int:
        if str(path).endswith(".lock") and flags & os.O_ACCMODE != os.O_RDONLY:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return real(path, flags, *rest, **names)

    monkeypatch.setattr(os, "open", as_nobody)

    with store.lock(LOCK):
        assert not is_free(store)
    assert is_free(store)


def test_where_nothing_can_be_locked_nobody_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = disk(tmp_path)

    def refuse(_descriptor: int, _operation: int) -> None:
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))

    monkeypatch.setattr(fcntl, "flock", refuse)

    with turn_of(store) as one, turn_of(store):
        one.announce_last_create(FIRST)
        assert store.create(FIRST, b"1")
