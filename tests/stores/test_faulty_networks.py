"""Eight processes at a table in a bucket, through a network that spoils a quarter of all requests.

A request is dropped, left hanging, or answered with 500 or 503, and the server does what was asked
before that, a while after it, or never. Half of the processes have clients that try again by
themselves, the other half leave it to the ledger.

`LAKELEDGER_SOAK_SECONDS=600` lets them work for ten minutes.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

import ledger
from ledger.history.verifying import Subject, Verification
from ledger.stores import open_store
from ledger.table_handle import handle_of
from tests.lakes import orders
from tests.programme.checker import check_log, check_observations, read_log
from tests.programme.clients import Client, azure_options, s3_options
from tests.programme.crew import Crew
from tests.programme.figures import FIGURES
from tests.programme.simulation import ROOT, replayed
from tests.programme.workload import digest_of
from tests.stores.servers.buckets import AzureServer, S3Server, root
from tests.stores.servers.network_faults import FAULTS, sometimes
from tests.stores.servers.proxy import losing_proxy

SECONDS = float(os.environ.get("LAKELEDGER_SOAK_SECONDS", "10"))
RATE, HALF = 0.25, 4
PAUSE_S = 0.6
AT_LEAST: dict[Client, int] = {"patient": 2, "resigned": 1}
"""So many calls of each process have to be acknowledged, by its client."""
_numbers = itertools.count()


def through(server: S3Server | AzureServer, endpoint: str) -> Mapping[str, Any]:
    """Return what a client takes to reach a server at another address."""
    options = evolve(server, endpoint=endpoint).options
    return s3_options(options) if isinstance(server, S3Server) else azure_options(options)


@pytest.mark.parametrize("name", ["seaweedfs", pytest.param("azurite", marks=pytest.mark.long)])
def test_eight_processes_lose_nothing_on_a_network_that_spoils_a_quarter(
    name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    server: S3Server | AzureServer = request.getfixturevalue(name)
    url = root(server, f"faulty/{next(_numbers)}")
    orders(ledger.open(url, server.options))
    with losing_proxy(server.endpoint) as proxy:
        proxy.draws = sometimes(RATE, seed=180)
        options = through(server, proxy.endpoint)
        crew = Crew(tmp_path, url, SECONDS, options)
        for client, calls in AT_LEAST.items():
            crew.start("write", HALF, client=client, pause_s=PAUSE_S, at_least=calls)
        crew.done(within_s=180)
        proxy.join()
    assert sum(proxy.faults.values()) > len(proxy.seen) * RATE * 0.8
    assert set(proxy.faults) == set(FAULTS), "not every fault happened"
    FIGURES["network faults"] += sum(proxy.faults.values())

    store = open_store(url, server.options)
    bodies = {key: store.read(key) or b"" for key in store.keys("")}
    log, history = read_log(bodies, ROOT), crew.history()
    check_log(history, log)
    states = replayed(bodies, log, {each.version for each in history.observations})
    FIGURES["reads checked"] += check_observations(history, lambda each: digest_of(states[each]))
    acknowledged = {e.name for e in history.attempts if e.outcome == "acknowledged"}
    FIGURES["commits"] += len(acknowledged)
    writers = Counter(each.partition("-")[0] for each in acknowledged)
    assert len(writers) == 2 * HALF, f"somebody starves: {writers}"

    table = ledger.open(url, server.options).table("shop.orders")
    subject: Subject[Any, Any] = Subject("shop.orders", handle_of(table).log, has_files=True)
    failures = [each for each in Verification(subject).run() if each.fails]
    assert not failures, failures
