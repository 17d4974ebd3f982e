"""The pool of threads: bounded, with a share for each table, and rejecting before it starts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from projections.rest.requests import RequestError
from projections.rest.worker_pool import PoolLimits, WorkerPool
from tests.projections.rest.application import application, error_of, set_property

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
