from __future__ import annotations

import itertools
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from ledger import InvalidNameError
from ledger.stores import MemoryStore, Store
from ledger.stores.memory import _memories
from tests.store_contract import StoreContract

_numbers = itertools.count()


class TestMemoryStore(StoreContract):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore(f"contract-{next(_numbers)}")

    def raw_read(self, store: Store, key: str) -> bytes | None:
        return _memories[store.url.removeprefix("memory://")].bodies.get(key)

    def raw_write(self, store: Store, key: str, body: bytes) -> None:
        _memories[store.url.removeprefix("memory://")].bodies[key] = body

    def reopen(self, store: Store) -> MemoryStore:
        return MemoryStore(store.url.removeprefix("memory://"))


class TestMemoryStoreInAFolder(TestMemoryStore):
    @pytest.fixture
    def store(self) -> MemoryStore:
        return MemoryStore(f"contract-{next(_numbers)}/deep/folder")

    def raw_read(self, store: Store, key: str) -> bytes | None:
        name = store.url.removeprefix("memory://").partition("/")[0]
        return _memories[name].bodies.get(f"deep/folder/{key}")

    def raw_write(self, store: Store, key: str, body: bytes) -> None:
        name = store.url.removeprefix("memory://").partition("/")[0]
        _memories[name].bodies[f"deep/folder/{key}"] = body


def test_other_names_are_other_stores() -> None:
    MemoryStore("one-name").create("a", b"1")

    assert MemoryStore("other-name").read("a") is None
    assert list(MemoryStore("one-nam").keys("")) == []


def test_a_store_below_another_is_its_folder() -> None:
    MemoryStore("outer/x").create("a/b", b"1")

    assert MemoryStore("outer").read("x/a/b") == b"1"
    assert MemoryStore("outer/x/a").create("b", b"2") is False
    assert list(MemoryStore("outer/x/a").keys("")) == ["b"]


def test_the_lock_is_the_folders_whichever_root_it_is_reached_from() -> None:
    outer, inner = MemoryStore("locks"), MemoryStore("locks/x")
    with outer.lock("x/log"):
        turn = inner._memory.folder_locks["x"]
        assert turn.locked()
    with inner.lock("log"):
        assert turn.locked()
    assert list(inner._memory.folder_locks) == ["x"]


@pytest.mark.parametrize("name", ["", "/", "..", "a/../b", "a//b"])
def test_a_name_that_is_no_path_is_refused(name: str) -> None:
    with pytest.raises(InvalidNameError):
        MemoryStore(name)


def test_nobody_gets_between_the_look_and_the_write() -> None:
    """The threads' race finds a missing guard only sometimes; this always does."""
    store = MemoryStore("between")
    won: list[str] = []

    def create(writer: str) -> None:
        if store.create("a", writer.encode()):
            won.append(writer)

    other = threading.Thread(target=create, args=["other"])

    class LetsTheOtherTry(dict[str, bytes]):
        def _let(self) -> None:
            if threading.current_thread() is not other and not other.ident:
                other.start()
                other.join(timeout=20)

        def __contains__(self, key: object) -> bool:
            found = super().__contains__(key)
            self._let()
            return found

        def setdefault(self, key: str, default: bytes = b"") -> bytes:
            self._let()
            return super().setdefault(key, default)

    store._memory.bodies = LetsTheOtherTry()
    create("first")
    other.join()

    assert len(won) == 1
    assert store.read("a") == won[0].encode()


@pytest.mark.parametrize("body", [b"1", b"the same"])
def test_the_same_bytes_win_once(body: bytes) -> None:
    """Python interns short bytes; a caller that passes the same object twice is not the winner."""
    store = MemoryStore(f"once-{len(body)}")

    assert [store.create("a", body), store.create("a", body)] == [True, False]
    assert store.read("a") == body
    assert type(store.read("a")) is bytes


@pytest.mark.parametrize(
    "stopped",
    [
        lambda store: store.create("b", b"2"),
        lambda store: store.replace("a", b"2"),
        lambda store: store.read("a"),
        lambda store: store.exists("a"),
        lambda store: list(store.keys("")),
        lambda store: store.delete("a"),
        lambda store: store.lock("a").__enter__(),
        lambda _: MemoryStore("another"),
    ],
    ids=["create", "replace", "read", "exists", "keys", "delete", "lock", "open"],
)
def test_a_thread_stopped_in_the_store_blocks_no_other(
    stopped: Callable[[MemoryStore], object],
) -> None:
    """A signal handler waits for what other threads commit while its own thread is in here."""
    store = MemoryStore("stopped")
    store.create("a", b"1")
    waits: list[bool] = []

    def commit() -> None:
        other = MemoryStore("stopped/x")
        with other.lock("log"):
            other.create("log", b"1")
            other.replace("log", b"2")
            list(other.keys(""))
            other.delete("log")

    def handler(frame: FrameType, event: str, _: object) -> Any:
        if frame.f_code.co_filename.endswith("stores/memory.py") and event == "line":
            sys.settrace(None)
            thread = threading.Thread(target=commit, daemon=True)
            thread.start()
            thread.join(timeout=2)
            waits.append(thread.is_alive())
            sys.settrace(None if waits[-1] else handler)
        return handler

    before = sys.gettrace()
    sys.settrace(handler)
    try:
        stopped(store)
    finally:
        sys.settrace(before)
    assert waits
    assert not any(waits)
