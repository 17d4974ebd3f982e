from __future__ import annotations

import itertools
from typing import Any

import pytest
from attrs import evolve

import ledger
from ledger import StoreError
from ledger.stores import ObjectStore, open_store
from ledger.stores.object_store import PROBE
from tests.stores.servers.buckets import BUCKET, S3Server, Server, root
from tests.stores.servers.proxy import losing_proxy

_numbers = itertools.count()


def fresh(server: Server) -> tuple[str, str]:
    """Return a root's URL and its folder in the bucket."""
    folder = f"self-test/{next(_numbers)}"
    return root(server, folder), folder


@pytest.mark.parametrize("name", ["rclone", "s3rver", "gcp_emulator"])
def test_a_server_that_ignores_the_condition_is_refused(
    name: str, request: pytest.FixtureRequest
) -> None:
    server: Server = request.getfixturevalue(name)
    url, folder = fresh(server)
    with pytest.raises(StoreError, match=r"second write.*commits would get lost.*Use Amazon S3"):
        ledger.open(url, server.options).create_database("shop")

    store = open_store(url, server.options)
    with pytest.raises(StoreError, match="cannot hold a ledger"):
        store.create("a", b"1")
    assert store.read("a") is None
    assert server.read(f"{folder}/{PROBE}") is None


@pytest.mark.parametrize("name", ["rclone", "s3rver"])
def test_one_that_ignores_it_is_refused_although_the_probe_is_there(
    name: str, request: pytest.FixtureRequest
) -> None:
    server: Server = request.getfixturevalue(name)
    url, folder = fresh(server)
    server.write(f"{folder}/{PROBE}", b"left by another store, copied here with the rest")

    with pytest.raises(StoreError, match="cannot hold a ledger"):
        open_store(url, server.options).create("a", b"1")


def test_a_process_tests_a_root_once_and_a_later_one_with_one_write(moto: S3Server) -> None:
    with losing_proxy(moto.endpoint) as proxy:
        options = evolve(moto, endpoint=proxy.endpoint).options
        url, _ = fresh(moto)
        store = open_store(url, options)
        assert store.read("a") is None
        assert list(store.keys("")) == []
        assert proxy.puts("self-test") == 0

        assert store.create("a", b"1") is True
        assert open_store(url, options).create("b", b"1") is True
        assert proxy.puts("self-test") == 2

        # Other options are another client, as in another process.
        assert open_store(url, {**options, "max_concurrency": 3}).create("c", b"1") is True
        assert proxy.puts("self-test") == 3


def test_the_probe_shows_in_no_listing_and_is_nobodys_key(moto: S3Server) -> None:
    url, folder = fresh(moto)
    store = open_store(url, moto.options)
    store.create("_ledger/a", b"1")

    assert moto.read(f"{folder}/{PROBE}") is not None
    assert list(store.keys("")) == ["_ledger/a"]


@pytest.mark.parametrize("name", ["moto", "seaweedfs", "azurite"])
def test_a_bucket_that_does_not_exist_is_named(name: str, request: pytest.FixtureRequest) -> None:
    server: Server = request.getfixturevalue(name)
    url = f"{server.scheme}://nowhere/lake"

    with pytest.raises(StoreError, match="'nowhere'; create it"):
        ledger.open(url, server.options)
    with pytest.raises(StoreError, match="'nowhere'; create it"):
        open_store(url, server.options).create("a", b"1")


def test_a_google_bucket_that_does_not_exist_is_reported_at_the_first_write(
    fake_gcs: Server,
) -> None:
    with pytest.raises(StoreError, match="no such bucket; create it"):
        ledger.open("gs://nowhere/lake", fake_gcs.options).create_database("shop")


def test_wrong_credentials_are_reported_at_once_and_never_quoted(seaweedfs: S3Server) -> None:
    options: dict[str, Any] = {**seaweedfs.options, "secret": "not-the-secret"}
    store = open_store(root(seaweedfs, "denied"), options)

    assert isinstance(store, ObjectStore)
    with pytest.raises(StoreError, match="credentials") as refused:
        store.create("a", b"1")
    with pytest.raises(PermissionError, match=f"{BUCKET}/denied: cannot read 'a'.*403") as failed:
        store.read("a")
    for error in (refused, failed):
        assert "not-the-secret" not in str(error.value)
        assert seaweedfs.key not in str(error.value)


def test_a_bucket_that_goes_away_is_reported_at_once(moto: S3Server) -> None:
    """A refusal, not a silence that a writer would wait for."""
    bucket = "goes-away"
    client = moto.client()
    region = moto.options["client_kwargs"]["region_name"]
    client.create_bucket(Bucket=bucket, CreateBucketConfiguration={"LocationConstraint": region})
    store = open_store(f"s3://{bucket}/lake", moto.options)
    assert store.create("a", b"1") is True
    for each in ("lake/a", f"lake/{PROBE}"):
        client.delete_object(Bucket=bucket, Key=each)
    client.delete_bucket(Bucket=bucket)

    for write in (store.create, store.replace):
        with pytest.raises(StoreError, match=f"no bucket '{bucket}'; create it") as refused:
            write("b", b"1")
        assert refused.value.kind == "NO_BUCKET"
    # Of what was written before, that says nothing.
    with pytest.raises(OSError, match=bucket):
        store.confirm("a")
