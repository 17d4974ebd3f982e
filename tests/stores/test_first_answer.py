"""An unresponsive address is reported soon, by one error and by no log line of a client."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest

import ledger
from ledger import NotFoundError, StoreError
from ledger.stores.services import wait_for_first_answer

KEY = "c2VjcmV0LWtleS1vZi1ub2JvZHk="


@pytest.fixture(scope="module")
def silent() -> Iterator[str]:
    """The address of a server that accepts connections, and says nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


def options(scheme: str, address: str) -> dict[str, Any]:
    account = f"AccountName=nobody;AccountKey={KEY};BlobEndpoint={address}/nobody"
    return {
        "s3": {"endpoint_url": address, "key": "nobody", "secret": KEY},
        "gs": {"endpoint_url": address, "token": "anon"},
        "abfs": {"connection_string": f"DefaultEndpointsProtocol=http;{account}"},
    }[scheme]


@pytest.mark.parametrize("scheme", ["s3", "gs", "abfs"])
def test_a_server_that_does_not_respond_is_named_in_time(
    silent: str, scheme: str, capfd: pytest.CaptureFixture[str]
) -> None:
    url, given = f"{scheme}://bucket/lake", options(scheme, silent)
    begun = time.monotonic()
    with pytest.raises(StoreError) as raised:
        wait_for_first_answer(lambda: ledger.open(url, given), url, given, timeout_s=0.5)

    assert time.monotonic() - begun < 5
    assert silent in str(raised.value)
    assert "no answer came within 0.5 s; check the network" in str(raised.value)
    assert KEY not in str(raised.value)
    assert capfd.readouterr() == ("", "")


def test_what_the_first_request_finds_wrong_is_raised_as_it_is() -> None:
    def ask() -> None:
        raise NotFoundError("nothing there")

    for url in ("/a/folder", "memory://here", "s3://bucket/lake"):
        with pytest.raises(NotFoundError, match="nothing there"):
            wait_for_first_answer(ask, url, {})


def test_a_clients_own_timeout_is_no_time_that_ran_out_here() -> None:
    def ask() -> None:
        raise TimeoutError("the client's")

    with pytest.raises(TimeoutError, match="the client's"):
        wait_for_first_answer(ask, "s3://bucket/lake", {})
