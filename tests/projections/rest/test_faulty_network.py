"""Four kinds of client commit through a network that spoils a quarter of all requests.

A proxy forwards to two servers on one ledger, which are killed at random. It drops, delays,
truncates and hangs responses, answers 500 and 503 by itself, and delivers some requests late or
never. At the end, what each client believes of each of its commits is compared with the log.

`LAKELEDGER_SOAK_SECONDS=600` lets the long run work for ten minutes.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pyarrow as pa
import pytest
from attrs import define, field
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.schema import Schema
from pyiceberg.types import NestedField, StringType

import ledger
from tests.programme.figures import FIGURES
from tests.projections.rest.fault_clients import (
    CLIENTS,
    NAMESPACE,
    TABLE,
    Attempt,
    Client,
    Record,
    commit_by_duckdb,
    spark_client,
)
from tests.readers.iceberg_runtime import rest_catalog
from tests.stores.servers.network_faults import FAULTS, RESPONSE_FAULTS, Answer, sometimes
from tests.stores.servers.proxy import losing_proxy
from tests.stores.servers.running import HOST, answers, free_port

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RATE = 0.25
ENGINES = {"duckdb", "spark"}
EACH_FAULT = (*FAULTS, *RESPONSE_FAULTS)
RESENT = tuple(each for each in EACH_FAULT if each.answer is not Answer.TRUNCATED)
"""The faults after which DuckDB sends a commit again. After others, and when it gives up, DuckDB
1.5.5 deletes its files although it cannot know the outcome; later ones keep them."""

STARTS_WITHIN_S = 60
SECONDS = 6.0
LONG_SECONDS = float(os.environ.get("LAKELEDGER_SOAK_SECONDS", "120"))


@define
class Server:
    """A server process on a ledger, which can be killed and started again."""

    lake: Path
    port: int = field(factory=free_port)
    process: subprocess.Popen[bytes] | None = None

    @property
    def uri(self) -> str:
        return f"http://{HOST}:{self.port}"

    def start(self) -> None:
        command = ["-m", "ledger", "serve", str(self.lake), "--port", str(self.port)]
        with (self.lake.parent / f"server-{self.port}.txt").open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, *command, "--log-level", "warning"], stdout=output, stderr=output
            )

    def wait(self) -> None:
        until = time.monotonic() + STARTS_WITHIN_S
        while not answers(f"{self.uri}/health")():
            assert time.monotonic() < until, "the server does not start"
            time.sleep(0.05)

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()


@contextmanager
def two_servers(lake: Path) -> Iterator[tuple[Server, Server]]:
    """Run two servers on a new ledger that has the table."""
    ledger.open(str(lake)).init()
    pair = (Server(lake), Server(lake))
    try:
        for each in pair:
            each.start()
        for each in pair:
            each.wait()
        catalog = RestCatalog("rest", uri=pair[0].uri)
        catalog.create_namespace(NAMESPACE)
        made = catalog.create_table(TABLE, Schema(NestedField(1, "name", StringType())))
        made.append(pa.table({"name": ["first"]}), snapshot_properties={"marker": "first"})
        yield pair
    finally:
        for each in pair:
            each.kill()


@contextmanager
def killed_at_random(servers: Sequence[Server], until_s: float, seed: int) -> Iterator[list[int]]:
    """Kill one server after another, and start each again; yields the ports of those killed."""
    rng = random.Random(seed)
    killed: list[int] = []

    def kill() -> None:
        while (left_s := until_s - time.monotonic()) > 0:
            time.sleep(min(left_s, rng.uniform(0.5, 2)))
            chosen = rng.choice(servers)
            chosen.kill()
            killed.append(chosen.port)
            time.sleep(rng.uniform(0, 0.5))
            chosen.start()
            chosen.wait()

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield killed
    finally:
        thread.join()


def work(
    servers: Sequence[Server],
    seconds: float,
    clients: Callable[[str], Sequence[Client]],
    hangs_s: float,
) -> list[Record]:
    """Let clients commit through proxies, and return what they believe.

    Args:
        servers: The servers.
        seconds: The time in which attempts begin.
        clients: Returns the clients of a catalog's URI.
        hangs_s: The longest time that a proxy takes, in seconds.
    """
    uris = [each.uri for each in servers]
    with losing_proxy(*uris) as proxy, losing_proxy(*uris) as resending:
        chosen = [
            *((proxy, each) for each in clients(proxy.endpoint)),
            (resending, commit_by_duckdb),
        ]
        for each, faults in ((proxy, EACH_FAULT), (resending, RESENT)):
            each.draws = sometimes(RATE, 49, faults)
            each.hangs_s = hangs_s
        until_s = time.monotonic() + seconds
        records = [Record(each.endpoint, until_s) for each, _ in chosen]
        with killed_at_random(servers, until_s, 49) as killed:
            threads = [
                threading.Thread(target=client, args=(record,))
                for (_, client), record in zip(chosen, records, strict=True)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        for each in (proxy, resending):
            each.join()
    spoilt = sum(sum(each.faults.values()) for each in (proxy, resending))
    assert spoilt > (len(proxy.seen) + len(resending.seen)) * RATE * 0.5
    FIGURES["network faults"] += spoilt
    assert killed, "no server was killed"
    FIGURES["kills"] += len(killed)
    return records


def changes_in_log(lake: Path) -> Counter[str]:
    """Return how often the log of the table makes each change, by the names of attempts."""
    rows = ledger.open(str(lake)).table(TABLE).history()
    return Counter(_name_of(row["kind"], json.loads(row["event"])) for row in rows)


def _name_of(kind: str, event: dict[str, Any]) -> str:
    if kind == "addSnapshot":
        return str(event["snapshot"]["summary"].get("marker", ""))
    if kind == "addColumn":
        return str(event["fieldNames"][0])
    return str(event.get("key") or event.get("refName", ""))


def check_attempts(attempts: Sequence[Attempt], found: Mapping[str, int]) -> None:
    """Check what clients believe: nothing is lost, committed twice, or wrongly rejected."""
    lost = [each for each in attempts if each.outcome == "acknowledged" and not found[each.name]]
    twice = [each for each in attempts if found[each.name] > 1]
    lies = [each for each in attempts if each.outcome == "rejected" and found[each.name]]
    assert not lost, f"{len(lost)} acknowledged commits are lost: {lost[:3]}"
    assert not twice, f"{len(twice)} commits are there twice: {twice[:3]}"
    assert not lies, f"{len(lies)} rejected commits were made: {lies[:3]}"


def check_table(uri: str, lake: Path, attempts: Sequence[Attempt]) -> None:
    """Check the log, the rows and the files of the table, as a server without faults has them."""
    table = RestCatalog("rest", uri=uri).load_table(TABLE)
    in_log = changes_in_log(lake)
    rows = Counter(table.scan().to_arrow().column("name").to_pylist())
    # Engines name no row in their snapshots.
    check_attempts([each for each in attempts if each.client not in ENGINES], in_log)
    check_attempts([each for each in attempts if each.kind == "row"], rows)

    snapshots = table.metadata.snapshots
    added = sum(int((each.summary or {}).get("added-records") or 0) for each in snapshots)
    assert sum(rows.values()) == added, "some snapshot's rows are not read, or read twice"
    tried = {each.name for each in attempts if each.kind == "row"}
    assert {*rows} <= {*tried, "first"}

    named = {each.manifest_list for each in snapshots}
    named |= {*table.inspect.all_manifests().column("path").to_pylist()}
    named |= {*table.inspect.all_files().column("file_path").to_pylist()}
    gone = [each for each in named if not Path(urlsplit(each).path).exists()]
    assert not gone, f"{len(gone)} live files are deleted: {gone[:3]}"


def check_records(servers: Sequence[Server], lake: Path, records: Sequence[Record]) -> None:
    """Check everything, at each server, and that each client has commits."""
    assert not [each.broken for each in records if each.broken]
    attempts = [attempt for each in records for attempt in each.attempts]
    for server in servers:
        server.wait()
        check_table(server.uri, lake, attempts)
    command = [sys.executable, "-m", "ledger", "verify", "--ledger", str(lake)]
    verified = subprocess.run(command, capture_output=True, text=True, check=False)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    for record in records:
        assert record.has_commit, f"a client has no commit: {record.attempts[:3]}"
        FIGURES["commits"] += sum(each.outcome == "acknowledged" for each in record.attempts)


def test_each_client_s_view_of_its_commits_is_true_through_faults_and_kills(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with two_servers(lake) as servers:
        check_records(servers, lake, work(servers, SECONDS, lambda _: CLIENTS, hangs_s=0.3))


@pytest.mark.long
def test_engines_views_of_their_commits_are_true_for_long(
    spark: SparkSession, tmp_path: Path
) -> None:
    lake = tmp_path / "lake"
    with ExitStack() as stack:

        def clients(uri: str) -> Sequence[Client]:
            session = stack.enter_context(rest_catalog(spark, uri, "faulty"))
            # The catalog is there before there are faults.
            session.sql(f"DESCRIBE faulty.{TABLE}")
            return [*CLIENTS, spark_client(session, "faulty")]

        servers = stack.enter_context(two_servers(lake))
        check_records(servers, lake, work(servers, LONG_SECONDS, clients, hangs_s=2))
