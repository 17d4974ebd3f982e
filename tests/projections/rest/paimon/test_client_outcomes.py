"""The reaction of Paimon's clients to each answer, with the commit made or not: a table, executed.

After every failure a client keeps its files, loads the newest snapshot, looks for its own, and
commits again unless it is there. Clients up to 1.3 delete the manifests of an attempt that was
answered with `{"success": false}`, so nothing was committed then. The answers are the server's own:
another process, the store or the number of requests cause them; or those of a gateway before it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from attrs import define, frozen

from ledger.stores import LocalStore, Store
from projections.rest.authentication import Authenticate, Caller, RequestHead
from projections.rest.requests import RequestError
from tests.faults import LosesRequests, RacesBefore
from tests.projections.rest.application import application
from tests.projections.rest.paimon.java_client import JavaClient
from tests.projections.rest.paimon.java_objects import PaimonJvm
from tests.projections.rest.paimon.paimon_application import PaimonApplication, paimon_application
from tests.projections.rest.paimon.paimon_clients import TableSpec
from tests.projections.rest.paimon.pypaimon_client import PypaimonClient
from tests.projections.rest.paimon.test_faulty_network import committed_snapshots, missing_files
from tests.projections.rest.test_client_outcomes import ALONE, SOON, GoesDown
from tests.stores.servers.network_faults import LOST, Answer, Fault, Moment
from tests.stores.servers.proxy import Proxy, losing_proxy

TABLE: Final = "orders"
COMMIT: Final = ("POST", f"/paimon/v1/lakeledger/databases/shop/tables/{TABLE}/commit")
SPEC: Final = TableSpec({"id": "INT", "name": "STRING"})
WAREHOUSE: Final = "any"


@define
class Scene:
    """A table behind a proxy, with a fault that begins when it is armed."""

    lake: Path
    app: PaimonApplication
    proxy: Proxy
    armed: threading.Event


Arrange = Callable[[Path], AbstractContextManager[Scene]]


@contextmanager
def scene(
    lake: Path,
    store: Callable[[Store, Callable[[str], bool]], Store] = lambda inner, _: inner,
    **settings: Any,
) -> Iterator[Scene]:
    """Serve a ledger with the table shop.orders.

    Args:
        lake: The ledger's folder.
        store: Returns the faulty store around one; takes the condition for keys that it hits.
        settings: Those of the application.
    """
    armed = threading.Event()

    def is_hit(key: str) -> bool:
        return armed.is_set() and f"{TABLE}/_ledger/log/" in key

    with application(lake) as app:
        client = pypaimon(str(app.http.base_url))
        client.create_database()
        client.create_table(TABLE, SPEC)
        client.create_table("slow", SPEC)
    with (
        paimon_application(
            store(LocalStore(str(lake)), is_hit), retry_policy=SOON, **settings
        ) as served,
        losing_proxy(str(served.http.base_url)) as proxy,
    ):
        yield Scene(lake, served, proxy, armed)


def pypaimon(uri: str) -> PypaimonClient:
    return PypaimonClient.of_server(f"{uri.rstrip('/')}/paimon", WAREHOUSE)


def acting(
    before: Callable[[], object], after: Callable[[], object] = lambda: None
) -> Callable[[str, str], bool]:
    """Return a function for a proxy that acts before the first commit, and before what follows."""
    begun: list[str] = []

    def act(method: str, path: str) -> bool:
        if begun:
            after()
        elif (method, path) == COMMIT:
            begun.append(path)
            before()
        return False

    return act


def spoiling(proxy: Proxy, fault: Fault) -> None:
    """Let a proxy spoil the first commit."""
    drawn: list[Fault] = []
    proxy.loses = acting(lambda: drawn.append(fault))
    proxy.draws = lambda: drawn.pop() if drawn else None


def large_body(lake: Path) -> AbstractContextManager[Scene]:
    return scene(lake, most_body_bytes=64)


def rejecting(status: int) -> Authenticate:
    """Return an authentication that accepts no commits."""

    def authenticate(head: RequestHead) -> Caller:
        if head.path.endswith(f"/{TABLE}/commit"):
            raise RequestError(status, "rejected")
        return Caller(None)

    return authenticate


def expired_token(lake: Path) -> AbstractContextManager[Scene]:
    return scene(lake, authenticate=rejecting(401))


def no_permission(lake: Path) -> AbstractContextManager[Scene]:
    return scene(lake, authenticate=rejecting(403))


def drop(lake: Path) -> None:
    """Drop the table as another process does."""
    with application(lake) as app:
        pypaimon(str(app.http.base_url)).drop_table(TABLE)


def replace(lake: Path) -> None:
    """Drop the table, and create another one, as another process does."""
    with application(lake) as app:
        client = pypaimon(str(app.http.base_url))
        client.drop_table(TABLE)
        client.create_table(TABLE, SPEC)


def race(lake: Path) -> None:
    """Commit a row as another process does."""
    with application(lake) as app:
        client = pypaimon(str(app.http.base_url))
        client.write(TABLE, [(2, "raced")], {"commit.user-prefix": "raced"})


@contextmanager
def dropped_table(lake: Path) -> Iterator[Scene]:
    with scene(lake) as found:
        found.proxy.loses = acting(lambda: drop(lake))
        yield found


@contextmanager
def replaced_table(lake: Path) -> Iterator[Scene]:
    with scene(lake) as found:
        found.proxy.loses = acting(lambda: replace(lake))
        yield found


@contextmanager
def moved_table(lake: Path) -> Iterator[Scene]:
    with scene(lake) as found:
        found.proxy.loses = acting(lambda: race(lake))
        yield found


def lost_requests(lake: Path) -> AbstractContextManager[Scene]:
    return scene(lake, lambda inner, on: LosesRequests(inner, on=on))


@contextmanager
def store_that_goes_down(lake: Path) -> Iterator[Scene]:
    """Let the store apply a commit, and answer nothing until the next request."""
    stores: list[GoesDown] = []

    def going_down(inner: Store, on: Callable[[str], bool]) -> Store:
        stores.append(GoesDown(inner, on))
        return stores[0]

    def recover() -> None:
        stores[0].is_down = False

    with scene(lake, going_down) as found:
        found.proxy.loses = acting(lambda: None, recover)
        yield found


@contextmanager
def too_many_requests(lake: Path) -> Iterator[Scene]:
    """Let a commit to another table take the only thread until the client got its answer."""
    running, ended = threading.Event(), threading.Event()

    def wait() -> None:
        running.set()
        assert ended.wait(90)

    def block(inner: Store, _on: Callable[[str], bool]) -> Store:
        return RacesBefore(inner, wait, on=lambda key: "slow/_ledger/log/" in key)

    with scene(lake, block, limits=ALONE) as found:
        change = {"action": "setOption", "key": "a", "value": "b"}
        path, body = found.app.url("databases/shop/tables/slow"), {"changes": [change]}
        slow = threading.Thread(target=lambda: found.app.http.post(path, json=body, timeout=90))

        def take_thread() -> None:
            slow.start()
            assert running.wait(60)

        def release_thread() -> None:
            ended.set()
            slow.join()

        found.proxy.loses = acting(take_thread, release_thread)
        yield found
        release_thread()


@contextmanager
def lost_answer(lake: Path) -> Iterator[Scene]:
    with scene(lake) as found:
        spoiling(found.proxy, LOST)
        yield found


@contextmanager
def lost_request(lake: Path) -> Iterator[Scene]:
    with scene(lake) as found:
        spoiling(found.proxy, Fault(Answer.DROPPED, Moment.NEVER))
        yield found


@contextmanager
def truncated_answer(lake: Path) -> Iterator[Scene]:
    with scene(lake) as found:
        spoiling(found.proxy, Fault(Answer.TRUNCATED, Moment.BEFORE))
        yield found


@contextmanager
def gateway_500(lake: Path) -> Iterator[Scene]:
    with scene(lake) as found:
        spoiling(found.proxy, Fault(Answer.INTERNAL_ERROR, Moment.BEFORE))
        yield found


@contextmanager
def gateway_503(lake: Path) -> Iterator[Scene]:
    with scene(lake) as found:
        spoiling(found.proxy, Fault(Answer.UNAVAILABLE, Moment.BEFORE))
        yield found


@frozen
class Case:
    """A cause, the status that the server answers for it, and whether it applied that attempt."""

    arrange: Arrange
    status: int
    is_applied: bool


CASES: Final = [
    Case(large_body, 400, is_applied=False),
    Case(expired_token, 401, is_applied=False),
    Case(no_permission, 403, is_applied=False),
    Case(dropped_table, 404, is_applied=False),
    Case(replaced_table, 404, is_applied=False),
    Case(moved_table, 200, is_applied=False),
    Case(lost_requests, 500, is_applied=False),
    Case(store_that_goes_down, 500, is_applied=True),
    Case(too_many_requests, 503, is_applied=False),
    Case(lost_answer, 0, is_applied=True),
    Case(lost_request, 0, is_applied=False),
    Case(truncated_answer, 0, is_applied=True),
    Case(gateway_500, 0, is_applied=True),
    Case(gateway_503, 0, is_applied=True),
]
EACH_CASE: Final = pytest.mark.parametrize("case", CASES, ids=lambda each: each.arrange.__name__)


@frozen
class Reaction:
    """Reaction of a client.

    Attributes:
        error: The text of its error; empty if the user is told that the commit was made.
        sent: How often it sends the commit.
        left: The number of manifest lists that it leaves and that no snapshot has; those of an
            attempt are two.
    """

    error: str
    sent: int
    left: int


def check(case: Case, lake: Path, write: Callable[[str], None], expected: Reaction) -> None:
    """Let a client commit, and check the answer, the log, its error and its files."""
    with case.arrange(lake) as found:
        found.armed.set()
        error = ""
        try:
            write(f"{found.proxy.endpoint}/paimon")
        except Exception as raised:  # noqa: BLE001 - the table has its text
            error = f"{type(raised).__name__}: {raised}"
        answers = [each for method, path, each in found.proxy.answers if (method, path) == COMMIT]
        sent = found.proxy.seen.count(COMMIT)
        found.armed.clear()
        is_gone = case.arrange is dropped_table
        snapshots = [] if is_gone else committed_snapshots(lake, TABLE)
        own = [each for each in snapshots if each["commitUser"].startswith("tried")]
        is_committed = bool(own)
        if own:
            assert not missing_files(pypaimon(str(found.app.http.base_url)), TABLE)

    if case.status:
        assert answers[0].status == case.status
    assert all(each.getheader("Retry-After") is None for each in answers)
    assert len(own) <= 1
    assert is_committed == (not error)
    assert is_committed or not case.is_applied
    assert not is_committed or case.is_applied or sent > 1
    assert bool(expected.error) == bool(error), error
    assert expected.error in error
    named = {each[f"{kind}ManifestList"] for each in snapshots for kind in ("base", "delta")}
    (folder,) = {each.parent for each in lake.rglob("manifest-list-*")} or {lake}
    there = {each.name for each in folder.iterdir() if each.name.startswith("manifest-list-")}
    assert Reaction(expected.error, sent, len(there - named)) == expected
    # The data files are those of every attempt.
    assert any("raced" not in each.name for each in lake.rglob("data-*"))


OPTIONS: Final[Mapping[str, str]] = {"commit.user-prefix": "tried", "commit.max-retries": "1"}
ROWS: Final = [(1, "x")]

PYPAIMON: Final[Mapping[Arrange, Reaction]] = {
    large_body: Reaction("RuntimeError: Commit failed 1", 2, 4),
    expired_token: Reaction("RuntimeError: Commit failed 1", 2, 4),
    no_permission: Reaction("RuntimeError: Commit failed 1", 2, 4),
    dropped_table: Reaction("Table shop.orders does not exist", 1, 2),
    replaced_table: Reaction("RuntimeError: Commit failed 1", 2, 4),
    moved_table: Reaction("", 2, 2),
    lost_requests: Reaction("RuntimeError: Commit failed 1", 2, 4),
    store_that_goes_down: Reaction("", 1, 0),
    too_many_requests: Reaction("", 2, 2),
    lost_answer: Reaction("", 1, 0),
    lost_request: Reaction("", 2, 2),
    truncated_answer: Reaction("", 1, 0),
    gateway_500: Reaction("", 1, 0),
    gateway_503: Reaction("", 1, 0),
}
"""pypaimon 2.1 sends no commit again below its own retries."""


@EACH_CASE
def test_pypaimon_keeps_what_may_be_committed_and_commits_once(case: Case, tmp_path: Path) -> None:
    def write(uri: str) -> None:
        PypaimonClient.of_server(uri, WAREHOUSE).write(TABLE, ROWS, OPTIONS)

    check(case, tmp_path / "lake", write, PYPAIMON[case.arrange])


JAVA: Final[Mapping[Arrange, Reaction]] = {
    **PYPAIMON,
    large_body: Reaction("RuntimeException", 2, 4),
    expired_token: Reaction("RuntimeException", 2, 4),
    no_permission: Reaction("RuntimeException", 2, 4),
    replaced_table: Reaction("RuntimeException", 2, 4),
    lost_requests: Reaction("RuntimeException", 2, 4),
    too_many_requests: Reaction("", 2, 0),
    gateway_503: Reaction("", 2, 0),
}
"""Java's client of 1.4 sends the same commit again after 503, and gets the first result."""


@EACH_CASE
def test_java_keeps_what_may_be_committed_and_commits_once(
    case: Case, jvm: PaimonJvm, tmp_path: Path
) -> None:
    def write(uri: str) -> None:
        JavaClient.of_server(jvm, uri, WAREHOUSE).write(TABLE, ROWS, OPTIONS)

    check(case, tmp_path / "lake", write, JAVA[case.arrange])
