"""The reaction of each client to each status, with the commit made or not: a table, executed.

The statuses are the server's own: another process, the store or the number of requests cause them.
A client that gets a status below 500 may delete its files, so nothing was committed then.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import duckdb
import pyarrow as pa
import pytest
from attrs import define, frozen
from pyiceberg.catalog.rest import RestCatalog

from ledger.log.request import RetryPolicy
from ledger.stores import LocalStore, Store
from projections.rest.worker_pool import PoolLimits
from tests.faults import LosesRequests, RacesBefore, Wrapped
from tests.projections.rest.application import Application, application, set_property
from tests.projections.rest.fault_clients import PATH
from tests.readers.engines import duckdb_connection
from tests.readers.iceberg_runtime import rest_catalog
from tests.stores.servers.proxy import Proxy, losing_proxy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SOON: Final = RetryPolicy(deadline_s=0.2)
ALONE: Final = PoolLimits(threads=1, share=1, waiting=0, waiting_share=0)
NO_RETRIES: Final = {"commit.retry.num-retries": "0"}


@define
class Scene:
    """A table behind a proxy, with a fault that begins when it is armed."""

    lake: Path
    app: Application
    proxy: Proxy
    armed: threading.Event


Arrange = Callable[[Path], AbstractContextManager[Scene]]


class GoesDown(Wrapped):
    """Applies a create, and answers nothing from then on."""

    def __init__(self, inner: Store, on: Callable[[str], bool]) -> None:
        super().__init__(inner)
        self.is_down = False
        self._on = on

    def create(self, key: str, body: bytes) -> bool:
        self._check()
        answer = super().create(key, body)
        self.is_down = self._on(key)
        self._check()
        return answer

    def read(self, key: str) -> bytes | None:
        self._check()
        return super().read(key)

    def confirm(self, key: str) -> bytes | None:
        self._check()
        return super().confirm(key)

    def _check(self) -> None:
        if self.is_down:
            raise OSError("the store does not answer")


@contextmanager
def scene(
    lake: Path,
    store: Callable[[Store, Callable[[str], bool]], Store] = lambda inner, _: inner,
    *,
    limits: PoolLimits | None = None,
    most_body_bytes: int = 1 << 20,
) -> Iterator[Scene]:
    """Serve a ledger with the table shop.orders.

    Args:
        lake: The ledger's folder.
        store: Returns the faulty store around one; takes the condition for keys that it hits.
        limits: The limits of the server's pool.
        most_body_bytes: Size beyond which the server rejects a body.
    """
    armed = threading.Event()

    def is_hit(key: str) -> bool:
        return armed.is_set() and "orders/_ledger/log/" in key

    with application(lake) as app:
        app.create(properties=NO_RETRIES)
    with (
        application(
            store(LocalStore(str(lake)), is_hit),
            retry_policy=SOON,
            limits=limits,
            most_body_bytes=most_body_bytes,
        ) as app,
        losing_proxy(str(app.http.base_url)) as proxy,
    ):
        yield Scene(lake, app, proxy, armed)


def large_body(lake: Path) -> AbstractContextManager[Scene]:
    return scene(lake, most_body_bytes=64)


@contextmanager
def dropped_table(lake: Path) -> Iterator[Scene]:
    with scene(lake) as found:
        found.proxy.loses = before_commit(lambda: drop(lake))
        yield found


def drop(lake: Path) -> None:
    """Drop the table as another process does."""
    with application(lake) as app:
        assert app.delete("namespaces/shop/tables/orders").status_code == 204


@contextmanager
def moved_branch(lake: Path) -> Iterator[Scene]:
    with scene(lake) as found:
        found.proxy.loses = before_commit(lambda: race(lake))
        yield found


def race(lake: Path) -> None:
    """Commit rows as another process does."""
    with application(lake) as app:
        append(str(app.http.base_url), "raced")


def before_commit(action: Callable[[], object]) -> Callable[[str, str], bool]:
    """Return a function for a proxy that loses nothing, and acts before the first commit."""
    begun: list[str] = []

    def act(method: str, path: str) -> bool:
        if method == "POST" and path == PATH and not begun:
            begun.append(path)
            action()
        return False

    return act


def lost_request(lake: Path) -> AbstractContextManager[Scene]:
    return scene(lake, lambda inner, on: LosesRequests(inner, on=on))


def store_that_goes_down(lake: Path) -> AbstractContextManager[Scene]:
    return scene(lake, GoesDown)


@contextmanager
def too_many_requests(lake: Path) -> Iterator[Scene]:
    """Let a commit to another table take the only thread when a client commits."""
    running, ended = threading.Event(), threading.Event()

    def wait() -> None:
        running.set()
        assert ended.wait(90)

    def block(inner: Store, _on: Callable[[str], bool]) -> Store:
        return RacesBefore(inner, wait, on=lambda key: "slow/_ledger/log/" in key)

    with application(lake) as app:
        app.create("slow")
    with scene(lake, block, limits=ALONE) as found:
        body = {"requirements": [], "updates": [set_property("a", "b")]}
        path = "/v1/namespaces/shop/tables/slow"
        slow = threading.Thread(
            target=lambda: found.app.http.post(path, json=body, timeout=90), daemon=True
        )

        def take_thread() -> None:
            slow.start()
            assert running.wait(60)

        found.proxy.loses = before_commit(take_thread)
        yield found
        ended.set()
        slow.join()


@contextmanager
def lost_answer(lake: Path) -> Iterator[Scene]:
    """Close the connection of the first commit, when it was made."""
    with scene(lake) as found:
        found.proxy.loses = first_commit()
        yield found


def first_commit() -> Callable[[str, str], bool]:
    """Return a function for a proxy that loses the answer to the first commit."""
    seen: list[str] = []

    def is_first(method: str, path: str) -> bool:
        if method != "POST" or path != PATH:
            return False
        seen.append(path)
        return len(seen) == 1

    return is_first


@frozen
class Case:
    """A cause, the status that clients get for it, and whether the commit was made."""

    arrange: Arrange
    status: int
    is_applied: bool


CASES: Final = [
    Case(large_body, 400, is_applied=False),
    Case(dropped_table, 404, is_applied=False),
    Case(moved_branch, 409, is_applied=False),
    Case(lost_request, 500, is_applied=False),
    Case(store_that_goes_down, 500, is_applied=True),
    Case(too_many_requests, 503, is_applied=False),
    Case(lost_answer, 0, is_applied=True),
]
EACH_CASE: Final = pytest.mark.parametrize("case", CASES, ids=lambda each: each.arrange.__name__)


@frozen
class Reaction:
    """The text of a client's error, empty for success, and the kinds of its files that are left."""

    error: str
    left: frozenset[str]


DATA: Final = frozenset({".parquet"})
ALL: Final = DATA | {".avro"}
NOTHING: Final[frozenset[str]] = frozenset()


def append(uri: str, marker: str = "tried") -> None:
    rows = pa.table({"id": [1], "name": ["x"]}, pa.schema(_COLUMNS))
    table = RestCatalog("rest", uri=uri).load_table("shop.orders")
    table.append(rows, snapshot_properties={"marker": marker})


_COLUMNS: Final = [pa.field("id", pa.int64(), nullable=False), pa.field("name", pa.string())]


def pyiceberg_error(uri: str) -> str:
    try:
        append(uri)
    except Exception as error:  # noqa: BLE001 - the table has its class
        return type(error).__name__
    return ""


def duckdb_error(uri: str) -> str:
    with duckdb_connection("httpfs", "avro", "iceberg") as connection:
        name = f"outcome{uri.rpartition(':')[2]}"
        where = f"(TYPE iceberg, ENDPOINT '{uri}', AUTHORIZATION_TYPE 'none')"
        connection.execute(f"ATTACH 'x' AS {name} {where}")
        try:
            connection.execute(f"INSERT INTO {name}.shop.orders VALUES (1, 'x')")  # noqa: S608
        except duckdb.Error as error:
            return str(error)
        finally:
            connection.execute(f"DETACH {name}")
    return ""


def spark_error(session: SparkSession, catalog: str) -> str:
    try:
        session.sql(f"INSERT INTO {catalog}.shop.orders VALUES (1, 'x')")  # noqa: S608
    except Exception as error:  # noqa: BLE001 - Spark's, with Iceberg's in its text
        return str(error)
    return ""


def check(case: Case, lake: Path, client: Callable[[str], str], expected: Reaction) -> None:
    """Let a client commit, and check its status, the log, its error and its files."""
    with case.arrange(lake) as found:
        found.armed.set()
        error = client(found.proxy.endpoint)
        answers = [each for method, path, each in found.proxy.answers if (method, path) == COMMIT]
    log = "".join(each.read_text() for each in lake.rglob("_ledger/log/*.json"))
    commits = log.count('"type":"addSnapshot"') - log.count('"marker":"raced"')
    # A client that gets no answer may send the commit again, which finds the first one.
    assert {each.status for each in answers} <= {case.status or 200}
    assert all(each.getheader("Retry-After") is None for each in answers)
    assert commits == case.is_applied
    assert expected.error in error
    assert bool(expected.error) == bool(error)
    assert files_of_client(lake) == expected.left, error


COMMIT: Final = ("POST", PATH)


def files_of_client(lake: Path) -> frozenset[str]:
    """Return the kinds of files that are left of a client's commit."""
    raced = (
        1 if any("raced" in each.read_text() for each in lake.rglob("_ledger/log/*.json")) else 0
    )
    kinds = Counter(each.suffix for each in lake.rglob("*") if each.suffix in ALL)
    of_others = {".parquet": raced, ".avro": 2 * raced}
    return frozenset(each for each in ALL if kinds[each] > of_others[each])


PYICEBERG: Final = {
    400: Reaction("BadRequestError", ALL),
    404: Reaction("RESTError", ALL),
    409: Reaction("CommitFailedException", DATA),
    500: Reaction("CommitStateUnknownException", ALL),
    503: Reaction("ServiceUnavailableError", ALL),
    0: Reaction("ConnectionError", ALL),
}


@EACH_CASE
def test_pyiceberg_keeps_the_files_of_what_may_be_committed(case: Case, tmp_path: Path) -> None:
    check(case, tmp_path / "lake", pyiceberg_error, PYICEBERG[case.status])


DUCKDB: Final = {
    400: Reaction("BadRequest_400", frozenset({".avro"})),
    404: Reaction("NotFound_404", frozenset({".avro"})),
    409: Reaction("Conflict_409", frozenset({".avro"})),
    500: Reaction("HTTP 500", frozenset({".avro"})),
    503: Reaction("HTTP 503", frozenset({".avro"})),
    0: Reaction("", ALL),
}
"""DuckDB 1.5.5 deletes its data files after any failure, an unknown outcome included: later ones
keep them then (duckdb-iceberg, pull request 1120). It sends a commit again after 500, 503, 504 and
lost answers, three times by default, and the server finds the first commit by its snapshot."""


@EACH_CASE
def test_duckdb_sends_again_what_may_be_committed_and_then_deletes_its_files(
    case: Case, tmp_path: Path
) -> None:
    check(case, tmp_path / "lake", duckdb_error, DUCKDB[case.status])


JAVA: Final = {
    (400, False): Reaction("BadRequestException", NOTHING),
    (404, False): Reaction("NoSuchTableException", NOTHING),
    (409, False): Reaction("CommitFailedException", NOTHING),
    (500, False): Reaction("CommitStateUnknownException", ALL),
    (500, True): Reaction("", ALL),
    (503, False): Reaction("CommitStateUnknownException", ALL),
    (0, True): Reaction("RESTException", ALL),
}
"""Java deletes its files after a status below 500, and loads the table after others: it finds its
snapshot if the commit was made."""


@pytest.mark.long
@EACH_CASE
def test_java_keeps_the_files_of_what_may_be_committed(
    case: Case, spark: SparkSession, tmp_path: Path
) -> None:
    def commit(uri: str) -> str:
        name = f"outcome{uri.rpartition(':')[2]}"
        with rest_catalog(spark, uri, name) as session:
            return spark_error(session, name)

    check(case, tmp_path / "lake", commit, JAVA[case.status, case.is_applied])
