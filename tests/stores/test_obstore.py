"""The faster client keeps the contract that the other one keeps, on real servers."""

from __future__ import annotations

import itertools
import multiprocessing
from collections.abc import Mapping
from multiprocessing.queues import SimpleQueue
from typing import Any

import pytest
from attrs import frozen

import ledger
from ledger import AddColumn, InvalidInputError, Schema, StoreError
from ledger.log import millis_ahead, now_millis
from ledger.log.request import RetryPolicy
from ledger.stores import ObjectStore, open_store
from ledger.stores.object_store import ObstoreBucket, obstore_options
from ledger.table_handle import handle_of
from tests.stores.servers.buckets import S3Server, Server, root
from tests.stores.test_object_store import ObjectStoreContract

pytest.importorskip("obstore", reason="the extra obstore is not installed")
_numbers = itertools.count()


@frozen
class Faster:
    """A server that is asked through obstore."""

    inner: Server

    @property
    def scheme(self) -> str:
        return self.inner.scheme

    @property
    def options(self) -> Mapping[str, Any]:
        return {**self.inner.options, "client": "obstore"}

    def read(self, name: str) -> bytes | None:
        return self.inner.read(name)

    def write(self, name: str, body: bytes) -> None:
        self.inner.write(name, body)


class TestSeaweedFSThroughObstore(ObjectStoreContract):
    @pytest.fixture
    def server(self, seaweedfs: Server) -> Server:
        return Faster(seaweedfs)


class TestAzuriteThroughObstore(ObjectStoreContract):
    @pytest.fixture
    def server(self, azurite: Server) -> Server:
        return Faster(azurite)


def fresh(server: Server) -> str:
    return root(server, f"obstore/{next(_numbers)}")


@pytest.mark.parametrize("name", ["seaweedfs", "azurite"])
def test_a_ledger_is_the_same_through_either_client(
    name: str, request: pytest.FixtureRequest
) -> None:
    server: Server = request.getfixturevalue(name)
    url, faster = fresh(server), Faster(server).options
    lake = ledger.open(url, faster)
    lake.create_database("shop")
    table = lake.create_table("shop.orders", Schema.of({"id": "BIGINT"}))
    store = handle_of(table).log.store
    assert isinstance(store, ObjectStore)
    assert isinstance(store._bucket, ObstoreBucket)
    table.alter([AddColumn(("a",), "INT")])

    slower = ledger.open(url, server.options).table("shop.orders")
    slower.alter([AddColumn(("b",), "INT")])
    assert table.alter([AddColumn(("c",), "INT")]).state.schema.names == ("id", "a", "b", "c")


@pytest.mark.parametrize("name", ["seaweedfs", "azurite"])
def test_it_returns_the_servers_clock(name: str, request: pytest.FixtureRequest) -> None:
    server = Faster(request.getfixturevalue(name))
    store = open_store(fresh(server), server.options)
    ahead = millis_ahead(store, now_millis, RetryPolicy())
    assert ahead is not None
    assert abs(ahead) < 5_000
    with pytest.raises(StoreError, match="s apart"):
        ledger.open(
            fresh(server), server.options, clock=lambda: now_millis() + 70_000
        ).create_database("shop")


@pytest.mark.parametrize("name", ["rclone", "s3rver"])
def test_a_server_that_ignores_the_condition_is_refused(
    name: str, request: pytest.FixtureRequest
) -> None:
    server = Faster(request.getfixturevalue(name))
    with pytest.raises(StoreError, match="commits would get lost"):
        open_store(fresh(server), server.options).create("a", b"1")


def test_wrong_credentials_are_reported_and_never_quoted(seaweedfs: S3Server) -> None:
    options = {**Faster(seaweedfs).options, "secret": "not-the-secret"}
    store = open_store(fresh(seaweedfs), options)
    with pytest.raises(StoreError, match="credentials") as refused:
        store.create("a", b"1")
    with pytest.raises(PermissionError, match="cannot read 'a'") as failed:
        store.read("a")
    for error in (refused, failed):
        assert "not-the-secret" not in str(error.value)
        assert seaweedfs.key not in str(error.value)


def test_a_bucket_that_does_not_exist_is_reported_at_the_first_write(seaweedfs: S3Server) -> None:
    with pytest.raises(StoreError, match="no such bucket; create it"):
        open_store("s3://nowhere/lake", Faster(seaweedfs).options).create("a", b"1")


def _read_in_child(store: ObjectStore, answers: SimpleQueue[str]) -> None:
    try:
        answers.put(str(store.read("a")))
    except StoreError as error:
        answers.put(str(error))


@pytest.mark.filterwarnings("ignore:.*use of fork:DeprecationWarning")
@pytest.mark.parametrize(("start", "said"), [("fork", "start processes with"), ("spawn", "b'1'")])
def test_a_forked_child_raises_instead_of_hanging_and_a_spawned_one_reads(
    seaweedfs: S3Server, start: str, said: str
) -> None:
    store = open_store(fresh(seaweedfs), Faster(seaweedfs).options)
    assert isinstance(store, ObjectStore)
    store.create("a", b"1")
    context: Any = multiprocessing.get_context(start)
    answers: SimpleQueue[str] = context.SimpleQueue()
    child = context.Process(target=_read_in_child, args=(store, answers))
    child.start()
    assert said in answers.get()
    child.join()


def test_options_without_a_counterpart_are_refused_by_name() -> None:
    with pytest.raises(StoreError, match="does not support the storage_option 'profile'"):
        obstore_options("s3", {"profile": "mine"})
    with pytest.raises(StoreError, match="no client 'boto'"):
        open_store("s3://bucket/lake", {"client": "boto"})
    with pytest.raises(StoreError, match="s3, abfs only"):
        open_store("gs://bucket/lake", {"client": "obstore"})
    with pytest.raises(StoreError, match="takes no storage_options"):
        open_store("/lake", {"client": "obstore"})
    with pytest.raises(InvalidInputError):
        open_store("s3://bucket/lake", {"client": "obstore", "anon": True}).create("a", b"")
    with pytest.raises(StoreError, match=r"obstore rejected .*'access_key_id'"):
        open_store("s3://bucket/lake", {"client": "obstore", "key": "a"})
