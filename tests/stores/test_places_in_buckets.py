"""Ledgers in buckets that are found elsewhere: moved, copied, or reached by another name."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ledger
from ledger import AddColumn, FileChange, InvalidChangeError, Ledger, Schema, SetOption, Table
from ledger.ledger_handle import LedgerHandle
from ledger.opening.context import TableSetting
from ledger.stores import Store, open_store
from ledger.table_handle import handle_of
from projections.iceberg import ICEBERG
from tests.faults import Wrapped
from tests.stores.servers.buckets import S3Server, root

_numbers = itertools.count()


@pytest.fixture
def server(name: str, request: pytest.FixtureRequest) -> S3Server:
    found: S3Server = request.getfixturevalue(name)
    return found


def fresh(server: S3Server) -> str:
    return root(server, f"places/{next(_numbers)}")


def made(url: str, options: Any) -> Table:
    """Return a table with one file by a relative path and one by a whole URL, projected."""
    lake = ledger.open(url, options, author="me")
    lake.create_database("shop")
    schema = Schema.of({"id": "BIGINT"}, options={"ledger.formats": "iceberg"})
    table = lake.create_table("shop.t", schema)
    for number, path in enumerate(("data/1.parquet", f"{table.location}/data/2.parquet"), 1):
        sink = pa.BufferOutputStream()
        rows = pa.Table.from_pylist([{"id": number}], schema=table.at().schema.to_arrow())
        pq.write_table(rows, sink)
        body = sink.getvalue().to_pybytes()
        handle_of(table).log.store.create(f"{handle_of(table).path}/data/{number}.parquet", body)
        file = FileChange(path=path, record_count=1, file_size_in_bytes=len(body), field_ids=True)
        table.append([file])
    ICEBERG.project(handle_of(table))
    return table


def copied(server: S3Server, url: str) -> str:
    """Copy all that is at a URL to another; return that."""
    other = fresh(server)
    here, there = open_store(url, server.options), open_store(other, server.options)
    for key in here.keys(""):
        there.create(key, here.read(key) or b"")
    return other


def ids(table: Table) -> list[int]:
    return sorted(each["id"] for each in table.at().to_arrow().to_pylist())


@pytest.mark.parametrize("name", ["seaweedfs"])
def test_a_copied_bucket_is_reported_and_goes_its_own_way_once_it_is_declared(
    server: S3Server,
) -> None:
    url = fresh(server)
    original = made(url, server.options)
    other = copied(server, url)
    lake = ledger.open(other, server.options, author="me")
    found = lake.inspect_location()
    assert (found.recorded, found.verdict) == (url, "copied")
    assert {each.kind for each in found.ties} == {"projection", "paths"}
    with pytest.raises(InvalidChangeError, match="lakeledger move"):
        lake.table("shop.t").alter([AddColumn(("n",), "INT")])
    with pytest.raises(InvalidChangeError, match="no alias"):
        lake.record_alias()
    with pytest.raises(InvalidChangeError, match="--rewrite"):
        lake.record_move()

    lake.record_move(rewrites=True)
    table = ledger.open(other, server.options, author="me").table("shop.t")
    original.alter([SetOption("at", "home")])
    table.alter([AddColumn(("n",), "INT")])
    ICEBERG.project(handle_of(table))
    assert ICEBERG.verify(handle_of(table)).is_empty
    assert ids(table) == ids(original) == [1, 2]
    assert [each.path for each in table.at().files] == ["data/1.parquet", "data/2.parquet"]
    assert ledger.open(other, server.options).inspect_location().verdict == "here"
    assert "at" not in table.at().schema.options


class Alias(Wrapped):
    """A bucket under another name, as an access point has one."""

    def __init__(self, inner: Store, url: str) -> None:
        super().__init__(inner)
        self._alias = url

    @property
    def url(self) -> str:
        return self._alias


@pytest.mark.parametrize("name", ["moto", "seaweedfs"])
def test_another_name_of_a_bucket_is_an_alias_once_it_is_said(server: S3Server) -> None:
    url = fresh(server)
    table = made(url, server.options)

    def reached() -> Ledger:
        store = Alias(open_store(url, server.options), "s3://an-access-point/lake")
        return Ledger(LedgerHandle(TableSetting(store, dict(server.options), author="me")))

    lake = reached()
    found = lake.inspect_location()
    assert (found.verdict, found.next_step) == ("alias", "lakeledger move --alias")
    with pytest.raises(InvalidChangeError, match="move --alias"):
        lake.table("shop.t").alter([AddColumn(("n",), "INT")])
    with pytest.raises(InvalidChangeError, match="the same storage"):
        lake.record_copy()
    lake.record_alias()
    other = reached()
    assert other.inspect_location().verdict == "here"
    other.table("shop.t").alter([AddColumn(("n",), "INT")])
    assert other.table("shop.t").location == table.location
    ICEBERG.project(handle_of(other.table("shop.t")))
    assert ICEBERG.verify(handle_of(ledger.open(url, server.options).table("shop.t"))).is_empty


@pytest.mark.parametrize("name", ["moto"])
def test_other_schemes_of_one_bucket_are_one_place(server: S3Server) -> None:
    url = fresh(server)
    made(url, server.options)
    lake = ledger.open(url.replace("s3://", "s3a://"), server.options, author="me")
    assert lake.inspect_location().verdict == "here"
    lake.table("shop.t").alter([AddColumn(("n",), "INT")])
