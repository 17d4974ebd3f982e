"""The faults have the habit that they are named for, and no other."""

from __future__ import annotations

from http.client import HTTPConnection, RemoteDisconnected
from urllib.parse import urlsplit

import pytest

from ledger.stores import MemoryStore
from tests.faults import DeliversTwice, Died, DiesAfter, LosesAnswers, LosesRequests, RacesBefore
from tests.stores.servers.buckets import BUCKET, S3Server
from tests.stores.servers.network_faults import FAULTS, Answer, Fault, Moment
from tests.stores.servers.proxy import losing_proxy


@pytest.fixture
def inner(request: pytest.FixtureRequest) -> MemoryStore:
    return MemoryStore(f"faults-{request.node.name}")


def test_a_lost_answer_was_applied(inner: MemoryStore) -> None:
    store = LosesAnswers(inner, times=1)
    with pytest.raises(OSError, match="lost"):
        store.create("a", b"1")

    assert inner.read("a") == b"1"
    assert store.create("b", b"1") is True
    assert store.hits == 1


def test_a_lost_request_was_not_applied(inner: MemoryStore) -> None:
    store = LosesRequests(inner, on=lambda key: key == "b")
    assert store.create("a", b"1") is True
    for _ in range(2):
        with pytest.raises(OSError, match="lost"):
            store.create("b", b"1")

    assert list(inner.keys("")) == ["a"]


def test_a_create_delivered_twice_reports_a_loss_to_the_winner(inner: MemoryStore) -> None:
    assert DeliversTwice(inner).create("a", b"1") is False
    assert inner.read("a") == b"1"


def test_the_other_writer_is_faster_once(inner: MemoryStore) -> None:
    store = RacesBefore(inner, lambda: inner.create("a", b"theirs"))

    assert store.create("a", b"mine") is False
    assert inner.read("a") == b"theirs"
    assert store.create("b", b"mine") is True
    assert store.hits == 1


@pytest.mark.parametrize("writes", [0, 1, 2, 3])
def test_the_dead_do_nothing_more(inner: MemoryStore, writes: int) -> None:
    store = DiesAfter(inner, writes)
    for number in range(writes):
        store.replace(f"{number}", b"1")
    assert store.exists("0") is (writes > 0)

    with pytest.raises(Died):
        store.create("x", b"1")
    with pytest.raises(Died):
        store.read("0")
    with pytest.raises(Died):
        store.delete("0")
    assert len(list(inner.keys(""))) == writes


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: f"{fault.answer}, {fault.applied}")
def test_a_fault_of_the_network_spoils_the_answer_and_nothing_else(
    fault: Fault, moto: S3Server
) -> None:
    name = f"{fault.answer.name}-{fault.applied.name}"
    with losing_proxy(moto.endpoint) as proxy:
        proxy.hangs_s = 0.3
        proxy.draws = lambda: fault
        connection = HTTPConnection(urlsplit(proxy.endpoint).netloc, timeout=10)
        connection.request("PUT", f"/{BUCKET}/{name}", b"body", {"Host": "localhost"})
        if fault.answer in (Answer.INTERNAL_ERROR, Answer.UNAVAILABLE):
            assert connection.getresponse().status == int(fault.answer.value[:3])
        else:
            with pytest.raises(RemoteDisconnected):
                connection.getresponse()
        connection.close()
        if fault.applied is not Moment.LATE:
            assert (moto.read(name) == b"body") is (fault.applied is Moment.BEFORE)
        proxy.join()
        assert (moto.read(name) == b"body") is (fault.applied is not Moment.NEVER)
    assert proxy.faults == {fault: 1}
