"""The clock that times a commit, with servers that date their responses."""

from __future__ import annotations

import itertools
import json
import re
import time
from importlib import import_module
from pathlib import Path

import pytest
from attrs import evolve

import ledger
from ledger import StoreError
from ledger.cli import exits, main
from ledger.log import millis_ahead, now_millis
from ledger.log.request import RetryPolicy
from ledger.stores import LocalStore, MemoryStore, ObjectStore, object_store, open_store
from ledger.stores.base import Clock, clock_from_date
from ledger.stores.services import root_of, service_of
from tests.lakes import lake_on, no_time
from tests.stores.servers.buckets import S3Server, Server, root
from tests.stores.servers.proxy import losing_proxy

A_DAY = 86_400_000
_numbers = itertools.count()

on_every_server = pytest.mark.parametrize("name", ["seaweedfs", "moto", "azurite", "fake_gcs"])


@pytest.fixture
def server(name: str, request: pytest.FixtureRequest) -> Server:
    found: Server = request.getfixturevalue(name)
    return found


def fresh(server: Server) -> str:
    return root(server, f"clocks/{next(_numbers)}")


def lake_at(server: Server, url: str, seconds_ahead: int) -> ledger.Ledger:
    clock = lambda: now_millis() + seconds_ahead * 1000  # noqa: E731 - a clock that is off
    return ledger.open(url, server.options, clock=clock)


@on_every_server
def test_a_clock_a_minute_off_is_refused_before_anything_is_committed(server: Server) -> None:
    url = fresh(server)
    said = r"clock says (\S+ \S+) UTC, that of \S+ (\S+ \S+) UTC: 6[123]\.\d s apart.*set this"
    for off in (62, -62):
        with pytest.raises(StoreError, match=said) as refused:
            lake_at(server, url, off).create_database("shop")

        found = re.search(said, str(refused.value))
        assert found is not None
        assert (found[1] > found[2]) is (off > 0)
    assert [key for key in open_store(url, server.options).keys("") if "/log/" in key] == []

    lake_at(server, url, 0).create_database("shop")
    assert lake_at(server, url, 62).databases() == ["shop"]


@on_every_server
def test_a_clock_a_little_off_is_not(server: Server) -> None:
    url = fresh(server)
    lake_at(server, url, 58).create_database("shop")
    lake_at(server, url, -1).create_database("stock")
    assert lake_at(server, fresh(server), -58).create_database("shop") is not None
    assert lake_at(server, url, 0).databases() == ["shop", "stock"]


def test_a_clock_that_jumps_after_the_first_commit_is_refused_too(moto: S3Server) -> None:
    jumps = [0]
    lake = ledger.open(fresh(moto), moto.options, clock=lambda: now_millis() + jumps[0])
    lake.create_database("shop")
    jumps[0] = A_DAY
    with pytest.raises(StoreError, match=r"86[34]\d\d\.\d s apart"):
        lake.create_database("stock")

    jumps[0] = 0
    lake.create_database("stock")


def test_a_machine_that_slept_asks_again_before_it_doubts_its_clock(moto: S3Server) -> None:
    with losing_proxy(moto.endpoint) as proxy:
        server = evolve(moto, endpoint=proxy.endpoint)
        url = fresh(server)
        lake_at(server, url, 0).create_database("shop")
        store = open_store(url, server.options)
        assert isinstance(store, ObjectStore)
        # While a machine sleeps, its monotonic clock stands still.
        object_store._proven[store._place] = Clock(now_millis() - A_DAY, time.monotonic())
        asked = proxy.puts("self-test")
        lake_at(server, url, 0).create_database("stock")
        lake_at(server, url, 0).create_database("sales")

        assert proxy.puts("self-test") == asked + 1


class Silent(ObjectStore):
    """Does not answer a number of times when it is asked for the time."""

    times = 0

    def clock(self) -> Clock | None:
        self.times -= 1
        if self.times >= 0:
            raise OSError("no answer")
        return super().clock()


def test_a_store_that_does_not_return_the_time_is_asked_again(moto: S3Server) -> None:
    service = service_of("s3")
    assert service is not None
    url = fresh(moto)
    store = Silent(root_of(service, url.removeprefix("s3://"), moto.options))
    lake = lake_on(store, now_millis, no_time())
    store.times = 3
    lake.create_database("shop")
    assert store.times < 0

    store.times = 1_000
    # Nothing was sent, so that the outcome is known.
    with pytest.raises(StoreError, match="no answer; nothing was committed"):
        lake.create_database("stock")
    assert lake.databases() == ["shop"]


def test_only_stores_with_a_clock_of_their_own_are_compared(tmp_path: Path) -> None:
    wrong = lambda: now_millis() + A_DAY  # noqa: E731 - a clock that is off
    for store in (MemoryStore("clock"), LocalStore(tmp_path)):
        assert millis_ahead(store, wrong, RetryPolicy()) is None
        lake_on(store, wrong).create_database("shop")


@on_every_server
def test_the_servers_clock_is_this_machines_to_the_second(server: Server) -> None:
    ahead = millis_ahead(open_store(fresh(server), server.options), now_millis, RetryPolicy())
    assert ahead is not None
    assert abs(ahead) < 5_000


@pytest.mark.parametrize("date", [None, "", "soon", "Sun, 99 Nov 1994 08:49:37 GMT", "0"])
def test_a_response_without_a_readable_date_gives_no_time(date: str | None) -> None:
    assert clock_from_date(date) is None


def test_doctor_reports_how_far_the_clock_is_off(
    moto: S3Server, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", moto.key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", moto.secret)
    module = import_module("ledger.cli.commands.ledgers")
    command = ["doctor", fresh(moto), f"--storage-option=endpoint_url={moto.endpoint}"]
    assert main([*command, "--output", "json"]) == exits.OK
    assert abs(json.loads(capsys.readouterr().out)["clock_millis_ahead"]) < 5_000

    monkeypatch.setattr(module, "now_millis", lambda: now_millis() - 90_000)
    assert main([*command, "--output", "json"]) == exits.STORE
    said = capsys.readouterr()
    assert json.loads(said.out)["healthy"] is False
    assert "set this machine's clock" in said.err
    assert main(command) == exits.STORE
    assert re.search(r"(89|9\d) s behind the store's", capsys.readouterr().out)
