"""The pool of threads: bounded, with a share for each table, and rejecting before it starts."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from projections.rest.requests import RequestError
from projections.rest.worker_pool import PoolLimits, WorkerPool
from tests.projections.rest.application import Application, application, error_of, set_property

LIMITS = PoolLimits(threads=4, share=3, waiting=4, waiting_share=2)


class Gate:
    """Calls that wait until they are released; counts those that run."""

    def __init__(self) -> None:
        self.opened = threading.Event()
        self.running = threading.Semaphore(0)

    def call(self) -> str:
        self.running.release()
        assert self.opened.wait(10)
        return "done"


async def submit(
    pool: WorkerPool, key: str, call: Callable[[], str], times: int
) -> list[asyncio.Task[str]]:
    tasks = [asyncio.create_task(pool.run(key, call)) for _ in range(times)]
    await asyncio.sleep(0.05)
    return tasks


def test_a_hot_table_leaves_threads_and_places_for_others() -> None:
    gate = Gate()

    async def main() -> None:
        pool = WorkerPool(LIMITS)
        hot = await submit(pool, "hot", gate.call, 5)
        with pytest.raises(RequestError, match="too many waiting requests") as refused:
            await pool.run("hot", lambda: "more")
        other = await asyncio.wait_for(pool.run("other", lambda: "at once"), 5)

        assert refused.value.status == 503
        assert other == "at once"
        gate.opened.set()
        assert await asyncio.gather(*hot) == ["done"] * 5
        assert await pool.run("hot", lambda: "again") == "again"
        assert pool.close(5)

    asyncio.run(main())


def test_the_number_of_waiting_calls_is_bounded_over_all_tables() -> None:
    gate = Gate()

    async def main() -> None:
        pool = WorkerPool(LIMITS)
        tasks = [task for key in "abcd" for task in await submit(pool, key, gate.call, 2)]
        with pytest.raises(RequestError, match="too many waiting"):
            await pool.run("e", lambda: "more")
        gate.opened.set()
        assert await asyncio.gather(*tasks) == ["done"] * 8

    asyncio.run(main())


def test_an_error_of_a_call_is_raised_and_frees_its_place() -> None:
    def fail() -> str:
        raise ValueError("no")

    async def main() -> None:
        pool = WorkerPool(PoolLimits(threads=1, share=1, waiting=0, waiting_share=0))
        for _ in range(3):
            with pytest.raises(ValueError, match="no"):
                await pool.run("a", fail)
        assert await pool.run("a", lambda: "yes") == "yes"

    asyncio.run(main())


def test_closing_waits_for_running_calls_and_says_if_they_did_not_end() -> None:
    gate = Gate()

    async def main() -> None:
        pool = WorkerPool(LIMITS)
        (task,) = await submit(pool, "a", gate.call, 1)
        assert not pool.close(0.05)
        gate.opened.set()
        assert await task == "done"
        assert pool.close(5)

    asyncio.run(main())


def test_a_request_that_finds_no_place_is_rejected_before_it_commits(tmp_path: Path) -> None:
    limits = PoolLimits(threads=1, share=1, waiting=0, waiting_share=0)
    with application(tmp_path / "lake", limits=limits) as app:
        app.create()
        table = app.lake.table("shop.orders")
        answers = []
        threads = [
            threading.Thread(
                target=lambda n=number: answers.append(app.commit(set_property(f"p{n}", "x")))
            )
            for number in range(8)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
        committed = sum(each.status_code == 200 for each in answers)
        rejected = [each for each in answers if each.status_code != 200]

        assert table.state.version == committed
        assert {error_of(each)[:2] for each in rejected} <= {(503, "ServiceUnavailableException")}


@contextmanager
def half_sent(app: Application, body: bytes, missing: int = 1) -> Iterator[socket.socket]:
    """Send a commit to shop.orders without the last bytes of its body."""
    host, port = app.http.base_url.host, app.http.base_url.port
    head = (
        f"POST /v1/namespaces/shop/tables/orders HTTP/1.1\r\nHost: {host}\r\n"
        f"Content-Length: {len(body) + missing}\r\n\r\n"
    )
    with socket.create_connection((host, port or 0), timeout=30) as sent:
        sent.sendall(head.encode() + body)
        yield sent


def status_beside(app: Application, bodies: int) -> int:
    """Commit while requests for bodies of 950 bytes are under way, and return the status."""
    with ExitStack() as sent:
        for _ in range(bodies):
            sent.enter_context(half_sent(app, b" " * 950))
        # They arrive over other connections.
        time.sleep(0.1)
        return app.commit(set_property("a", "b" * 500)).status_code


def test_a_request_counts_as_waiting_before_its_body_has_come(tmp_path: Path) -> None:
    limits = PoolLimits(threads=1, share=1, waiting=0, waiting_share=0)
    with application(tmp_path / "lake", limits=limits) as app:
        app.create()
        assert any(status_beside(app, 1) == 503 for _ in range(50))
        assert any(status_beside(app, 0) == 200 for _ in range(50))


def test_the_bodies_of_all_requests_are_bounded(tmp_path: Path) -> None:
    with application(tmp_path / "lake", most_body_bytes=1000) as app:
        app.create()
        assert any(status_beside(app, 8) == 503 for _ in range(50))
        assert any(status_beside(app, 7) == 200 for _ in range(50))


def test_a_body_that_comes_too_slowly_is_rejected(tmp_path: Path) -> None:
    with application(tmp_path / "lake", body_timeout_s=0.2) as app:
        app.create()
        with half_sent(app, b"{") as sent:
            answer = sent.recv(4096)
        version = app.lake.table("shop.orders").state.version

    assert answer.startswith(b"HTTP/1.1 400 ")
    assert version == 0
