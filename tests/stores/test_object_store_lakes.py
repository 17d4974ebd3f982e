"""Whole ledgers in buckets: several processes, lost answers, forks."""

from __future__ import annotations

import itertools
import json
import multiprocessing
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from attrs import evolve

import ledger
from ledger import AddColumn, FileChange, InvalidNameError, RenameColumn, Schema
from ledger.stores import open_store
from tests.programs import race
from tests.stores.servers.buckets import BUCKET, S3Server, Server, rclone, root
from tests.stores.servers.proxy import losing_proxy

REPOSITORY = Path(__file__).parents[2]
WRITERS, EACH = 4, 10
_numbers = itertools.count()

stored_in = pytest.mark.parametrize("name", ["seaweedfs", "azurite"])


@pytest.fixture
def server(name: str, request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(name)
    return found


def fresh(server: Server) -> str:
    return root(server, f"lakes/{next(_numbers)}")


def shop(url: str, options: Any) -> ledger.Table:
    lake = ledger.open(url, options, author="first")
    lake.create_database("shop")
    return lake.create_table("shop.orders", Schema.of({"id": "BIGINT", "day": "INT"}))


def data_file(number: int) -> FileChange:
    return FileChange(
        path=f"data/{number}.parquet", schema_id=0, record_count=1, file_size_in_bytes=100
    )


@stored_in
def test_a_table_lives_in_a_bucket(server: Server) -> None:
    url = fresh(server)
    table = shop(url, server.options)
    table.alter([AddColumn(("note",), "STRING"), RenameColumn(("day",), "date")])
    # More than a commit holds inline: a file of its own next to the log.
    table.append([data_file(number) for number in range(1_200)])
    table.create_tag("loaded")

    other = ledger.open(f"{url}/", server.options).table("shop.orders")
    assert other.location == f"{url}/shop.db/orders"
    assert other.at().schema.names == ("id", "date", "note")
    assert len(other.at(tag="loaded").files) == 1_200
    assert other.state.version == table.state.version


@stored_in
def test_processes_lose_no_acknowledged_commit(server: Server) -> None:
    url = fresh(server)
    shop(url, server.options)
    arguments = ("-m", "tests.stores.lake_worker", url, json.dumps(server.options))
    commands = [(*arguments, f"w{number}", EACH) for number in range(WRITERS)]
    printed_names = [printed.split() for printed in race(*commands, timeout_s=100)]

    assert [len(each) for each in printed_names] == [EACH] * WRITERS
    table = ledger.open(url, server.options).table("shop.orders")
    names = Counter(table.at().schema.names)
    assert names == Counter(["id", "day", *(name for each in printed_names for name in each)])
    assert table.state.version == WRITERS * EACH


def test_a_lost_answer_commits_once(moto: S3Server) -> None:
    """The client sends the request again and meets its own object: "exists already"."""
    with losing_proxy(moto.endpoint) as proxy:
        lost = itertools.count()
        proxy.loses = lambda method, path: (
            method == "PUT" and "/log/" in path and next(lost) % 2 == 0
        )
        table = shop(fresh(moto), evolve(moto, endpoint=proxy.endpoint).options)
        for number in range(6):
            assert table.alter([AddColumn((f"c{number}",), "INT")]).version == number + 1

        sent = Counter(path for method, path in proxy.seen if method == "PUT" and "/log/" in path)
        assert max(sent.values()) > 1, "no answer was lost"
        assert table.at().schema.names == ("id", "day", *(f"c{number}" for number in range(6)))


def _commit_in_child(table: ledger.Table, name: str) -> None:
    table.alter([AddColumn((name,), "INT")])


@stored_in
def test_a_forked_child_and_its_parent_both_go_on(server: Server) -> None:
    table = shop(fresh(server), server.options)
    forking = multiprocessing.get_context("fork")
    for number in range(2):
        child = forking.Process(target=_commit_in_child, args=[table, f"child{number}"])
        child.start()
        table.alter([AddColumn((f"parent{number}",), "INT")])
        child.join(60)
        assert child.exitcode == 0
    assert sorted(table.state.schema.names) == [
        *("child0", "child1", "day", "id", "parent0", "parent1")
    ]


@stored_in
def test_existing_files_are_added_from_the_bucket(server: Server, tmp_path: Path) -> None:
    table = shop(fresh(server), server.options)
    pq.write_table(pa.table({"id": [1, 2], "day": pa.array([1, 2], pa.int32())}), tmp_path / "a")
    name = table.location.partition("://")[2].partition("/")[2]
    server.write(f"{name}/bucket-0/a.parquet", (tmp_path / "a").read_bytes())

    table.add_files([f"{table.location}/bucket-0"])

    assert [each.path for each in table.at().files] == ["bucket-0/a.parquet"]


@pytest.mark.parametrize("name", ["moto", "azurite", "fake_gcs"])
def test_a_key_is_never_read_as_another(server: Server) -> None:
    """One object under two keys would be two commits in one file; refusing a key is fine."""
    store = open_store(fresh(server), server.options)
    store.create("a", b"a")
    refused = []
    for key in ("a#1", "a?1", "a?versionId=1", "a?versionid=1", "a%23", "a+b", "a&b=c"):
        try:
            assert store.create(key, key.encode()) is True
        except InvalidNameError:
            refused.append(key)
            for call in (store.read, store.exists, store.delete):
                with pytest.raises(InvalidNameError, match="version or a query"):
                    call(key)
        else:
            assert store.read(key) == key.encode()
    assert set(refused) <= {"a?versionId=1", "a?versionid=1"}
    assert store.read("a") == b"a"


def test_a_folder_of_more_than_a_page_is_listed_whole(tmp_path: Path) -> None:
    """Reading is fine on a store that may not be written to."""
    folder = tmp_path / BUCKET / "lake" / "log"
    folder.mkdir(parents=True)
    names = [f"log/{number:05d}" for number in range(1_020)]
    for name in names:
        (folder.parent / name).write_bytes(b"1")
    with rclone(tmp_path) as server, losing_proxy(server.endpoint) as proxy:
        store = open_store(root(server, "lake"), evolve(server, endpoint=proxy.endpoint).options)
        assert list(store.keys("log")) == names
        assert len(proxy.seen) == 2


def test_many_are_read_at_once_and_the_next_one_alone(moto: S3Server) -> None:
    with losing_proxy(moto.endpoint) as proxy:
        store = open_store(fresh(moto), evolve(moto, endpoint=proxy.endpoint).options)
        names = [f"log/{number}" for number in range(40)]
        assert list(itertools.islice(store.read_many(names), 1)) == [None]
        assert len(proxy.seen) == 1

        for name in names[:20]:
            store.replace(name, name.encode())
        del proxy.seen[:]
        until_absent = itertools.takewhile(lambda body: body is not None, store.read_many(names))
        assert list(until_absent) == [name.encode() for name in names[:20]]
        assert len(proxy.seen) == 1 + 2 + 4 + 8 + 16 + 1
