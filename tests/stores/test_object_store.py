"""Every object store keeps the contract that local folders keep, on real servers."""

from __future__ import annotations

import itertools
import threading

import pytest

from ledger.stores import ObjectStore, Store, open_store
from tests.store_contract import StoreContract, everyone_at_once
from tests.stores.servers.buckets import BUCKET, Server, root

_numbers = itertools.count()


def opened(server: Server, url: str) -> ObjectStore:
    store = open_store(url, server.options)
    assert isinstance(store, ObjectStore)
    return store


# Clients send more than a megabyte as one piece, which aiohttp warns about.
@pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")
class ObjectStoreContract(StoreContract):
    """A subclass gives the `server` fixture; each test has a root of its own."""

    many = 100

    @pytest.fixture
    def server(self) -> Server:
        raise NotImplementedError

    @pytest.fixture
    def store(self, server: Server) -> ObjectStore:
        self.now = server
        return opened(server, root(server, f"contract/{next(_numbers)}"))

    def name(self, store: Store, key: str) -> str:
        return f"{store.url.partition(f'//{BUCKET}/')[2]}/{key}"

    def raw_read(self, store: Store, key: str) -> bytes | None:
        return self.now.read(self.name(store, key))

    def raw_write(self, store: Store, key: str, body: bytes) -> None:
        self.now.write(self.name(store, key), body)

    def reopen(self, store: Store) -> ObjectStore:
        return opened(self.now, store.url)

    # A round trip takes a hundred times as long as a local link, and some servers let losers
    # wait for seconds.

    def test_racing_threads_have_one_winner_a_key(self, store: Store) -> None:
        keys = [f"log/{number:020d}" for number in range(8)]
        winners: list[list[bytes]] = [[] for _ in keys]
        barrier = threading.Barrier(4)

        def race(writer: int) -> None:
            for number, key in enumerate(keys):
                body = b"%d by %d;" % (number, writer) * 100
                barrier.wait(timeout=30)
                if store.create(key, body):
                    winners[number].append(body)

        everyone_at_once(4, race)

        assert [len(bodies) for bodies in winners] == [1] * len(keys)
        assert list(store.read_many(keys)) == [body for (body,) in winners]

    @pytest.mark.parametrize("seed", range(1))
    def test_a_random_history_agrees_with_a_dictionary(self, store: Store, seed: int) -> None:
        super().test_a_random_history_agrees_with_a_dictionary(store, seed)


class TestSeaweedFS(ObjectStoreContract):
    @pytest.fixture
    def server(self, seaweedfs: Server) -> Server:
        return seaweedfs


class TestMoto(ObjectStoreContract):
    # Its threads look whether a key is there, and put it, in two steps: two of them may win.
    test_racing_threads_have_one_winner_a_key = None  # type: ignore[assignment]
    test_many_files_by_racing_threads_have_one_winner_a_key = None  # type: ignore[assignment]
    # Bytes in one process's memory: torn reads could not show, and it is the slowest.
    test_a_random_history_agrees_with_a_dictionary = None  # type: ignore[assignment]
    test_a_reader_alongside_a_writer_never_sees_a_part = None  # type: ignore[assignment]  # left out
    test_a_reader_alongside_replacements_sees_one_or_the_other = None  # type: ignore[assignment]

    @pytest.fixture
    def server(self, moto: Server) -> Server:
        return moto


class TestAzurite(ObjectStoreContract):
    @pytest.fixture
    def server(self, azurite: Server) -> Server:
        return azurite


class TestFakeGcs(ObjectStoreContract):
    @pytest.fixture
    def server(self, fake_gcs: Server) -> Server:
        return fake_gcs
