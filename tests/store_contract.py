"""Contract of every store: subclass `StoreContract` in the store's test file."""

from __future__ import annotations

import itertools
import random
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ClassVar

import pytest

from ledger import InvalidInputError, InvalidNameError
from ledger.log import now_millis
from ledger.stores import Store
from ledger.stores.base import Draft

ESCAPES = [
    "",
    "/",
    "/etc/passwd",
    "..",
    ".",
    "../x",
    "a/..",
    "a/../x",
    "a/../../x",
    "./a",
    "a/.",
    "a//b",
    "a/",
    "a\\b",
    "..\\x",
    "a\0b",
    "a\nb",
    "a\n",
    "a\x7f",
    "a\x85b",
    "a\udc80",
]
RESERVED = [".lock", "a/.lock", ".tmp-1", "a/.tmp-1"]
FAIR_NAMES = [
    "...",
    "..a",
    ".a",
    "a..",
    "a b",
    "日本/ü",
    "dt=1/h=2",
    "a.lock",
    ".tmp-/x",
    "a:b",
    "%2e",
]


def everyone_at_once(workers: int, work: Callable[[int], None]) -> None:
    """Run `work(number)` in `workers` threads and raise what any of them raised.

    Threads are switched as often as Python can, so that a check apart from its write gets caught.
    """
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(workers) as pool:
            for future in [pool.submit(work, number) for number in range(workers)]:
                future.result(timeout=60)
    finally:
        sys.setswitchinterval(interval_s)


class StoreContract:
    """A subclass gives the `store` fixture, and raw access that bypasses the code under test."""

    many: ClassVar[int] = 700
    """Keys of a long folder: more than twice as many as the store reads together."""

    @pytest.fixture
    def store(self) -> Store:
        raise NotImplementedError

    def raw_read(self, store: Store, key: str) -> bytes | None:
        raise NotImplementedError

    def raw_write(self, store: Store, key: str, body: bytes) -> None:
        raise NotImplementedError

    def reopen(self, store: Store) -> Store:
        raise NotImplementedError

    def test_the_store_says_whose_clock_knows_the_time(self, store: Store) -> None:
        """None: this machine alone; else the service's, which is asked as often as wanted."""
        clocks = [store.clock(), store.clock(), store.ask_clock()]

        assert len({each is None for each in clocks}) == 1
        for each in clocks:
            assert each is None or abs(each.now_millis() - now_millis()) < 60_000

    def test_a_create_stores_the_body(self, store: Store) -> None:
        assert store.create("a/b/c.json", b"body") is True
        assert self.raw_read(store, "a/b/c.json") == b"body"

    def test_a_second_create_is_refused_and_changes_nothing(self, store: Store) -> None:
        self.raw_write(store, "a/b", b"first")

        assert store.create("a/b", b"second") is False
        assert store.create("a/b", b"first") is False
        assert self.raw_read(store, "a/b") == b"first"

    def test_a_deleted_key_can_be_created_again(self, store: Store) -> None:
        store.create("a", b"1")
        store.delete("a")

        assert store.create("a", b"2") is True
        assert store.read("a") == b"2"

    def test_reading_gives_the_body_and_none_when_absent(self, store: Store) -> None:
        self.raw_write(store, "a/b", b"\0\xff\n")

        for read in (store.read, store.confirm):
            assert read("a/b") == b"\0\xff\n"
            assert read("a/c") is None
            assert read("nowhere/b") is None

    def test_a_folder_and_what_is_below_a_file_are_absent(self, store: Store) -> None:
        self.raw_write(store, "a/b", b"1")

        for key in ("a", "a/b/c"):
            assert store.read(key) is None
            assert store.confirm(key) is None
            assert list(store.read_many([key])) == [None]
            assert not store.exists(key)
            store.delete(key)
        assert store.read("a/b") == b"1"

    @pytest.mark.parametrize("size_bytes", [1, 65_535, 65_536, 65_537, 3_000_000])
    def test_bodies_of_any_size_come_back_whole(self, store: Store, size_bytes: int) -> None:
        body = random.Random(size_bytes).randbytes(size_bytes)

        store.create("created", body)
        store.replace("replaced", body)

        assert store.read("created") == body
        assert list(store.read_many(["replaced"])) == [body]

    def test_an_empty_body_is_refused(self, store: Store) -> None:
        for write in (store.create, store.replace, store.replace_durably):
            with pytest.raises(InvalidInputError, match="'a' is empty"):
                write("a", b"")
        assert not store.exists("a")

    def test_exists_says_what_is_there(self, store: Store) -> None:
        self.raw_write(store, "a/b", b"1")

        assert store.exists("a/b") is True
        assert store.exists("a/c") is False

    def test_a_durable_replacement_overwrites_and_creates_and_leaves_no_draft(
        self, store: Store
    ) -> None:
        self.raw_write(store, "a", b"old")
        store.replace_durably("a", b"new")
        store.replace_durably("folder/b", b"new")

        for key in ("a", "folder/b"):
            assert self.raw_read(store, key) == store.confirm(key) == b"new"
        assert list(store.drafts("")) == []

    def test_replace_overwrites_and_creates(self, store: Store) -> None:
        self.raw_write(store, "a", b"longer than the next")
        store.replace("a", b"new")
        store.replace("folder/b", b"new")

        assert self.raw_read(store, "a") == b"new"
        assert self.raw_read(store, "folder/b") == b"new"

    def test_delete_removes_and_takes_the_absent(self, store: Store) -> None:
        self.raw_write(store, "a/b", b"1")
        store.delete("a/b")
        store.delete("a/b")
        store.delete("nowhere/b")

        assert self.raw_read(store, "a/b") is None

    def test_read_many_keeps_order_repeats_and_gaps(self, store: Store) -> None:
        for number in range(5):
            self.raw_write(store, f"log/{number}", b"%d" % number)

        found = store.read_many(["log/3", "log/0", "log/9", "log/3", "other"])

        assert list(found) == [b"3", b"0", None, b"3", None]
        assert list(store.read_many([])) == []

    def test_read_many_reads_when_the_iterator_gets_there(self, store: Store) -> None:
        self.raw_write(store, "a", b"1")
        found = store.read_many(["a", "b"])
        assert next(found) == b"1"
        self.raw_write(store, "b", b"2")

        assert next(found) == b"2"

    def test_read_many_reads_a_whole_folder_that_comes_to_be_meanwhile(self, store: Store) -> None:
        keys = [f"log/{number}" for number in range(self.many)]
        found = store.read_many(["log/none", "log/0", *keys])
        assert [next(found), next(found)] == [None, None]
        for key in keys[::2]:
            self.raw_write(store, key, key.encode())

        assert list(found) == [key.encode() if at % 2 == 0 else None for at, key in enumerate(keys)]

    def test_keys_lists_a_folder_in_code_point_order(self, store: Store) -> None:
        names = ["a/b", "a-b", "a/b-c", "a/b/c", "a.b/c", "ab", "a/B", "a/é", "a/a/a/a"]
        names.remove("a/b")  # a local file cannot also be a folder
        for name in random.Random(0).sample(names, len(names)):
            store.create(name, b"1")

        assert list(store.keys("")) == sorted(names)
        below = sorted(name for name in names if name.startswith("a/"))
        assert list(store.keys("a")) == list(store.keys("a/")) == below
        assert list(store.keys("nowhere")) == []

    def test_walking_finds_what_is_listed(self, store: Store) -> None:
        for name in ("a/b/c", "a/b/d", "ab", "b/c"):
            store.create(name, b"1")

        for prefix in ("", "a", "a/b/", "nowhere"):
            assert sorted(store.walk(prefix)) == list(store.keys(prefix))

    def test_a_finished_write_leaves_no_draft(self, store: Store) -> None:
        store.create("a/b", b"1")
        store.create("a/b", b"2")
        store.replace("a/c", b"1")

        assert list(store.drafts("")) == list(store.drafts("a/")) == []
        store.discard(Draft("a/.tmp-0123456789abcdef", 0))
        assert list(store.keys("")) == ["a/b", "a/c"]

    def test_keys_never_shows_locks(self, store: Store) -> None:
        store.create("a/b", b"1")
        with store.lock("a/log"):
            assert list(store.keys("")) == ["a/b"]
        assert list(store.keys("")) == ["a/b"]

    @pytest.mark.parametrize("key", ESCAPES)
    def test_a_key_that_could_escape_is_refused_everywhere(self, store: Store, key: str) -> None:
        calls: list[Callable[[], object]] = [
            lambda: store.create(key, b"1"),
            lambda: store.create_many([{key: b"1"}], lambda *_: None),
            lambda: store.read(key),
            lambda: store.confirm(key),
            lambda: list(store.read_many(["fine", key])),
            lambda: store.exists(key),
            lambda: store.replace(key, b"1"),
            lambda: store.delete(key),
            lambda: store.lock(key).__enter__(),
        ]
        if key:
            calls.append(lambda: list(store.keys(f"{key}/")))
        for call in calls:
            with pytest.raises(InvalidNameError, match="cannot be a key"):
                call()

    @pytest.mark.parametrize("key", RESERVED)
    def test_the_names_of_the_store_itself_are_refused(self, store: Store, key: str) -> None:
        with pytest.raises(InvalidNameError, match="reserved"):
            store.create(key, b"1")
        with pytest.raises(InvalidNameError, match="reserved"):
            store.delete(key)

    @pytest.mark.parametrize("key", FAIR_NAMES)
    def test_unusual_names_are_kept_as_they_are(self, store: Store, key: str) -> None:
        store.create(key, b"1")

        assert list(store.keys("")) == [key]
        assert store.read(key) == b"1"

    def test_another_store_of_the_same_url_sees_the_same(self, store: Store) -> None:
        store.create("a", b"1")
        other = self.reopen(store)

        assert other.url == store.url
        assert other.read("a") == b"1"
        assert other.create("a", b"2") is False

    @pytest.mark.parametrize("seed", range(5))
    def test_a_random_history_agrees_with_a_dictionary(self, store: Store, seed: int) -> None:
        rng = random.Random(seed)
        model: dict[str, bytes] = {}
        names = [f"{folder}/{name}" for folder in "xyz" for name in "abcd"]
        for step in range(300):
            key, body = rng.choice(names), b"%d" % step
            match rng.randrange(4):
                case 0:
                    assert store.create(key, body) is (key not in model)
                    model.setdefault(key, body)
                case 1:
                    store.replace(key, body)
                    model[key] = body
                case 2:
                    store.delete(key)
                    model.pop(key, None)
                case _:
                    assert store.read(key) == store.confirm(key) == model.get(key)
                    assert store.exists(key) is (key in model)
        assert list(store.keys("")) == sorted(model)
        assert list(store.read_many(names)) == [model.get(name) for name in names]

    def test_racing_threads_have_one_winner_a_key(self, store: Store) -> None:
        """The stored body is the winner's, and each caller that got False lost."""
        writers, keys = 8, [f"log/{number:020d}" for number in range(200)]
        winners: list[list[bytes]] = [[] for _ in keys]
        barrier = threading.Barrier(writers)

        def race(writer: int) -> None:
            for number, key in enumerate(keys):
                body = b"%d by %d;" % (number, writer) * (1 + number % 50)
                barrier.wait(timeout=30)
                if store.create(key, body):
                    winners[number].append(body)

        everyone_at_once(writers, race)

        assert [len(bodies) for bodies in winners] == [1] * len(keys)
        assert list(store.read_many(keys)) == [body for (body,) in winners]

    def test_many_files_are_created_and_what_stands_is_met(self, store: Store) -> None:
        store.create("a/1", b"before")
        met: list[tuple[str, bytes]] = []
        steps = [{f"a/{n}": b"%d" % n for n in range(20)}, {"b/x": b"x"}, {}, {"b/y": b"y"}]
        store.create_many(steps, lambda key, body: met.append((key, body)))

        assert met == [("a/1", b"1")]
        wanted = {key: body for step in steps for key, body in step.items()} | {"a/1": b"before"}
        assert {key: store.read(key) for key in store.keys("")} == wanted
        assert list(store.drafts("")) == []

    def test_what_is_met_ends_the_steps_to_come(self, store: Store) -> None:
        store.create("b", b"another's")

        def refuse(key: str, _body: bytes) -> None:
            raise LookupError(key)

        with pytest.raises(LookupError, match="b"):
            store.create_many([{"a": b"1"}, {"b": b"2"}, {"c": b"3"}], refuse)
        assert list(store.keys("")) == ["a", "b"]
        assert list(store.drafts("")) == []

    def test_many_files_of_which_one_is_refused_are_not_begun(self, store: Store) -> None:
        with pytest.raises(InvalidInputError, match="empty"):
            store.create_many([{"a": b"1"}, {"b": b""}], lambda *_: None)
        assert not store.exists("b")

    def test_later_steps_show_only_after_earlier_ones(self, store: Store) -> None:
        steps = [{f"{step}/{n}": b"%d" % n for n in range(5)} for step in range(12)]

        def run(role: int) -> None:
            if role == 0:
                store.create_many(steps, lambda *_: None)
                return
            until = time.monotonic() + 120
            for earlier, later in itertools.pairwise(steps):
                while not any(map(store.exists, later)):
                    assert time.monotonic() < until
                assert all(map(store.exists, earlier))

        everyone_at_once(3, run)

    def test_many_files_by_racing_threads_have_one_winner_a_key(self, store: Store) -> None:
        writers, keys = 4, [f"log/{number:020d}" for number in range(40)]
        lost: list[set[str]] = [set() for _ in range(writers)]

        def race(writer: int) -> None:
            bodies = dict.fromkeys(keys, b"%d" % writer)
            store.create_many([bodies], lambda key, _: lost[writer].add(key))

        everyone_at_once(writers, race)

        for key in keys:
            (winner,) = (each for each in range(writers) if key not in lost[each])
            assert store.read(key) == b"%d" % winner

    def test_a_reader_alongside_a_writer_never_sees_a_part(self, store: Store) -> None:
        keys = [f"log/{number:020d}" for number in range(150)]
        body = random.Random(0).randbytes(200_000)

        def run(role: int) -> None:
            if role == 0:
                for key in keys:
                    store.create(key, body)
                return
            until = time.monotonic() + 30
            for key in keys:
                while (found := store.read(key)) is None:
                    assert time.monotonic() < until
                assert found == body

        everyone_at_once(3, run)

    def test_a_reader_alongside_replacements_sees_one_or_the_other(self, store: Store) -> None:
        bodies = {bytes([letter]) * (100_000 + letter) for letter in b"abc"}
        store.replace("hint", next(iter(bodies)))
        done = threading.Event()

        def run(role: int) -> None:
            if role == 0:
                for _ in range(50):
                    for body in bodies:
                        store.replace("hint", body)
                done.set()
                return
            while not done.is_set():
                assert store.read("hint") in bodies

        everyone_at_once(3, run)

    def test_the_lock_lets_one_in_at_a_time(self, store: Store) -> None:
        inside: list[int] = []
        most = []

        def work(writer: int) -> None:
            for _ in range(40):
                with store.lock("table/log"):
                    inside.append(writer)
                    time.sleep(0.0002)
                    most.append(len(inside))
                    inside.pop()

        everyone_at_once(8, work)

        assert most == [1] * 320

    def test_locks_of_different_folders_do_not_wait_for_each_other(self, store: Store) -> None:
        with store.lock("a/log"), store.lock("b/log"), store.lock("log"):
            store.create("a/x", b"1")

    def test_a_lock_is_released_by_an_error(self, store: Store) -> None:
        with pytest.raises(ZeroDivisionError), store.lock("a/log"):
            _ = 1 // 0
        with store.lock("a/log"):
            pass
