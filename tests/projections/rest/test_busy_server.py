"""A server under load: a hot table leaves others alone, and a stop leaves no commit half made."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from attrs import define, field

import ledger
from ledger.stores import LocalStore, Store
from projections.rest.worker_pool import PoolLimits
from tests.faults import Wrapped
from tests.projections.rest.application import Application, application
from tests.projections.rest.test_faulty_network import Server
from tests.stores.servers.running import HOST

REQUESTS = 200
OTHERS_WITHIN_S = 20


class SlowTable(Wrapped):
    """Holds commits to shop.slow back until they are released."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.is_slow = threading.Event()
        self.released = threading.Event()

    def create(self, key: str, body: bytes) -> bool:
        if self.is_slow.is_set() and "slow/_ledger/log/" in key:
            assert self.released.wait(120)
        return super().create(key, body)


@define
class Hot:
    """A served ledger with many requests under way for shop.slow.

    Attributes:
        app: The served ledger, with the table shop.orders, too.
        answers: The answers to the requests for shop.slow.
    """

    app: Application
    answers: list[httpx.Response] = field(factory=list)

    def commit(self, number: int) -> None:
        answer = self.app.http.post(
            "/v1/namespaces/shop/tables/slow", json=two_properties(str(number)), timeout=120
        )
        self.answers.append(answer)


def two_properties(name: str) -> dict[str, Any]:
    update = {"action": "set-properties", "updates": {f"first {name}": "1", f"second {name}": "1"}}
    return {"requirements": [], "updates": [update]}


@contextmanager
def hot_table(lake: Path, limits: PoolLimits) -> Iterator[Hot]:
    """Send requests for shop.slow, which are answered when the body has ended."""
    store = SlowTable(LocalStore(str(lake)))
    no_limits = httpx.Limits(max_connections=None)
    with (
        application(store, limits=limits) as served,
        httpx.Client(base_url=served.http.base_url, limits=no_limits, timeout=60) as client,
    ):
        app = Application(served.lake, client)
        app.create("slow")
        app.create("orders")
        hot = Hot(app)
        store.is_slow.set()
        threads = [threading.Thread(target=hot.commit, args=(each,)) for each in range(REQUESTS)]
        for each in threads:
            each.start()
        try:
            yield hot
        finally:
            store.released.set()
            for each in threads:
                each.join()


def test_two_hundred_slow_requests_on_a_table_leave_others_alone(tmp_path: Path) -> None:
    with hot_table(tmp_path / "lake", PoolLimits()) as hot:
        time.sleep(0.5)
        begun_s = time.monotonic()
        loaded = hot.app.get("namespaces/shop/tables/orders")
        committed = hot.app.post("namespaces/shop/tables/orders", two_properties("other"))
        listed = hot.app.get("namespaces/shop/tables")
        took_s = time.monotonic() - begun_s
        under_way = REQUESTS - len(hot.answers)

    assert [each.status_code for each in (loaded, committed, listed)] == [200] * 3
    assert under_way == REQUESTS
    assert took_s < OTHERS_WITHIN_S
    assert [each.status_code for each in hot.answers] == [200] * REQUESTS


def test_requests_beyond_the_limit_are_rejected_before_anything_is_written(tmp_path: Path) -> None:
    limits = PoolLimits(threads=8, share=6, waiting=32, waiting_share=16)
    most = limits.share + limits.waiting_share
    with hot_table(tmp_path / "lake", limits) as hot:
        until_s = time.monotonic() + 60
        while len(hot.answers) < REQUESTS - most and time.monotonic() < until_s:
            time.sleep(0.05)
        rejected = [*hot.answers]
        loaded = hot.app.get("namespaces/shop/tables/orders")
        properties = hot.app.lake.table("shop.slow").state.schema.options

    assert len(rejected) == REQUESTS - most
    assert {each.status_code for each in rejected} == {503}
    assert not [each for each in rejected if "retry-after" in each.headers]
    assert not [each for each in properties if each.startswith(("first", "second"))]
    assert loaded.status_code == 200
    assert [each.status_code for each in hot.answers[len(rejected) :]] == [200] * most


def test_sigterm_during_commits_ends_each_one_whole(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    ledger.open(str(lake)).init()
    server = Server(lake)
    server.start()
    server.wait()
    outcomes: dict[str, int] = {}
    try:
        with httpx.Client(base_url=f"http://{HOST}:{server.port}/v1") as client:
            client.post("namespaces", json={"namespace": ["shop"]})
            schema = {"type": "struct", "fields": []}
            client.post("namespaces/shop/tables", json={"name": "orders", "schema": schema})
        threads = [
            threading.Thread(target=commit_until_it_ends, args=(server.port, each, outcomes))
            for each in range(8)
        ]
        for each in threads:
            each.start()
        while len(outcomes) < 50:
            time.sleep(0.01)
        assert server.process is not None
        server.process.send_signal(signal.SIGTERM)
        code = server.process.wait(60)
        for each in threads:
            each.join()
    finally:
        server.kill()

    rows = ledger.open(str(lake)).table("shop.orders").history()
    set_in: dict[str, int] = {
        json.loads(each["event"])["key"]: each["version"]
        for each in rows
        if each["kind"] == "setOption"
    }
    firsts = {each.removeprefix("first ") for each in set_in if each.startswith("first ")}
    assert code == 0
    assert {each.removeprefix("second ") for each in set_in if each.startswith("second")} == firsts
    assert {name for name, status in outcomes.items() if status == 200} <= firsts
    assert {status for status in outcomes.values() if status} == {200}


def commit_until_it_ends(port: int, writer: int, outcomes: dict[str, int]) -> None:
    """Commit to shop.orders until the server does not answer; 0 is the status of no answer."""
    with httpx.Client(base_url=f"http://{HOST}:{port}/v1", timeout=60) as client:
        for number in range(10_000):
            name = f"{writer} {number}"
            body = two_properties(name)
            try:
                answer = client.post("namespaces/shop/tables/orders", json=body)
            except httpx.HTTPError:
                outcomes[name] = 0
                return
            outcomes[name] = answer.status_code
