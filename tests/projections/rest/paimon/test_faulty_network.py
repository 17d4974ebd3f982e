"""Clients of Paimon commit through a network that spoils requests, to servers that are killed.

A proxy forwards to two servers on one ledger, which are killed at random. It drops, delays,
truncates and hangs responses, answers 500 and 503 by itself, and delivers some requests late or
never. At the end, what each client believes of each of its commits is compared with the log, and
the table's folder with the newest snapshot.

`LAKELEDGER_SOAK_SECONDS=600` lets the long run work for ten minutes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest

import ledger
from tests.programme.figures import FIGURES
from tests.projections.rest.fault_clients import Attempt, Record
from tests.projections.rest.paimon.fault_clients import (
    TABLES,
    WAREHOUSE,
    FaultyClient,
    change_by_pypaimon,
    java_clients,
    pypaimon_clients,
)
from tests.projections.rest.paimon.java_client import JavaClient
from tests.projections.rest.paimon.java_objects import PaimonJvm
from tests.projections.rest.paimon.paimon_clients import Json, PaimonClient
from tests.projections.rest.paimon.pypaimon_client import PypaimonClient
from tests.projections.rest.test_faulty_network import (
    EACH_FAULT,
    LONG_SECONDS,
    RATE,
    SECONDS,
    Server,
    check_attempts,
    killed_at_random,
)
from tests.stores.servers.network_faults import sometimes
from tests.stores.servers.proxy import losing_proxy

BATCH: Final = 2**63 - 1
_SEED: Final = 50


@contextmanager
def two_servers(lake: Path) -> Iterator[tuple[Server, Server]]:
    """Run two servers on a new ledger that has the tables."""
    ledger.open(str(lake)).init()
    pair = (Server(lake), Server(lake))
    try:
        for each in pair:
            each.start()
        for each in pair:
            each.wait()
        client = _client(pair[0])
        client.create_database()
        for name, spec in TABLES.items():
            client.create_table(name, spec)
        yield pair
    finally:
        for each in pair:
            each.kill()


def _client(server: Server) -> PypaimonClient:
    return PypaimonClient.of_server(f"{server.uri}/paimon", WAREHOUSE)


def work(
    servers: Sequence[Server], seconds: float, clients: Sequence[FaultyClient], hangs_s: float
) -> list[Record]:
    """Let clients commit through a proxy, and return what they believe.

    Args:
        servers: The servers.
        seconds: The time in which attempts begin.
        clients: The clients.
        hangs_s: The longest time that the proxy takes, in seconds.
    """
    with losing_proxy(*(each.uri for each in servers)) as proxy:
        proxy.draws, proxy.hangs_s = sometimes(RATE, _SEED, EACH_FAULT), hangs_s
        until_s = time.monotonic() + seconds
        records = [Record(f"{proxy.endpoint}/paimon", until_s) for _ in clients]
        with killed_at_random(servers, until_s, _SEED) as killed:
            run_together(clients, records)
        proxy.join()
    spoilt = sum(proxy.faults.values())
    assert spoilt > len(proxy.seen) * RATE * 0.5
    assert killed, "no server was killed"
    said = [answer for _, path, answer in proxy.answers if path.endswith("/commit")]
    assert {each.status for each in said} <= {200, 500}
    assert not [each for each in said if each.getheader("Retry-After") is not None]
    FIGURES["network faults"] += spoilt
    FIGURES["kills"] += len(killed)
    return records


def run_together(clients: Sequence[FaultyClient], records: Sequence[Record]) -> None:
    """Run each client with its record, all at the same time."""

    def run(client: FaultyClient, record: Record) -> None:
        try:
            client(record)
        except Exception as error:  # noqa: BLE001 - of a thread, which no test would see
            record.broken.append(repr(error))

    threads = [
        threading.Thread(target=run, args=pair) for pair in zip(clients, records, strict=True)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()


def committed_snapshots(lake: Path, table: str) -> list[Json]:
    """Return the snapshots that the log has, in the order of its commits."""
    rows = ledger.open(str(lake)).table(f"shop.{table}").history()
    return [json.loads(each["event"]) for each in rows if each["kind"] == "commitSnapshot"]


def attempt_of(snapshot: Json) -> str:
    """Return the name of the attempt that committed a snapshot."""
    user, identifier = snapshot["commitUser"], snapshot["commitIdentifier"]
    return str(user.rpartition("_")[0] if identifier == BATCH else f"{user}_{identifier}")


def pieces_of(rows: Sequence[str]) -> Counter[str]:
    """Return how often each row was committed."""
    found: Counter[str] = Counter()
    for each in rows:
        name, _, pieces = each.strip("{}").partition(", ")
        found[name] += int(pieces)
    return found


def missing_files(client: PypaimonClient, table: str) -> list[str]:
    """Return the files that the newest snapshot of a table names and that do not exist."""
    loaded = client.table(table)
    newest = loaded.snapshot_manager().get_latest_snapshot()
    folder = Path(loaded.table_path.removeprefix("file:"))
    lists = [newest.base_manifest_list, newest.delta_manifest_list]
    paths = [folder / "manifest" / each for each in lists]
    for split in loaded.new_read_builder().new_scan().plan().splits():
        paths += [Path(each.removeprefix("file:")) for each in split.file_paths]
    return [str(each) for each in paths if not each.exists()]


def check_table(
    lake: Path, table: str, attempts: Sequence[Attempt], clients: Sequence[PaimonClient]
) -> None:
    """Check the log, the rows and the files of a table, as servers without faults have them."""
    snapshots = committed_snapshots(lake, table)
    in_log = Counter(map(attempt_of, snapshots))
    check_changes(lake, table, attempts, clients)
    attempts = [each for each in attempts if each.kind == "row"]
    for client in clients:
        rows = pieces_of(client.rows(table))
        assert rows == in_log, "rows and commits differ"
        counts = [each[1] for each in client.partitions(table)]
        assert counts == [len(snapshots)] * len(TABLES[table].partition_keys)
        assert [each["id"] for each in client.view(table).snapshots] == [
            *range(1, len(snapshots) + 1)
        ]
    assert max(in_log.values()) == 1, f"commits are there twice: {in_log.most_common(3)}"
    check_attempts(attempts, in_log)
    assert {*in_log} <= {each.name for each in attempts}

    assert sorted(each["snapshotId"] for each in snapshots) == [*range(1, len(snapshots) + 1)]
    versions = [
        each["version"]
        for each in ledger.open(str(lake)).table(f"shop.{table}").history()
        if each["kind"] == "commitSnapshot"
    ]
    assert len({*versions}) == len(snapshots)


def check_changes(
    lake: Path, table: str, attempts: Sequence[Attempt], clients: Sequence[PaimonClient]
) -> None:
    """Check the options and the tags of a table."""
    rows = ledger.open(str(lake)).table(f"shop.{table}").history()
    options = Counter(
        json.loads(each["event"])["key"] for each in rows if each["kind"] == "setOption"
    )
    tags = Counter(json.loads(each["event"])["tagName"] for each in rows if "Tag" in each["kind"])
    check_attempts([each for each in attempts if each.kind == "property"], options)
    check_attempts([each for each in attempts if each.kind == "tag"], tags)
    for client in clients:
        view = client.view(table)
        assert {*options} <= {*view.schemas[-1]["options"]}
        assert {*tags} <= {each["name"] for each in view.tags}


def check_records(
    servers: Sequence[Server],
    lake: Path,
    records: Sequence[Record],
    readers: Sequence[PaimonClient] = (),
) -> None:
    """Check everything, at each server, and that each client has commits.

    Args:
        servers: The servers.
        lake: The ledger's folder.
        records: What the clients believe.
        readers: Further clients that read the tables.
    """
    assert not [each.broken for each in records if each.broken]
    attempts = [attempt for each in records for attempt in each.attempts]
    for server in servers:
        server.wait()
    clients = [_client(each) for each in servers]
    for table in TABLES:
        of_table = [each for each in attempts if table in each.name]
        check_table(lake, table, of_table, [*clients, *readers])
        assert not missing_files(clients[0], table)
    command = [sys.executable, "-m", "ledger", "verify", "--ledger", str(lake)]
    verified = subprocess.run(command, capture_output=True, text=True, check=False)
    assert verified.returncode == 0, verified.stdout + verified.stderr
    for record in records:
        assert record.has_commit, f"a client has no commit: {record.attempts[:3]}"
        FIGURES["commits"] += sum(each.outcome == "acknowledged" for each in record.attempts)


def test_each_client_s_view_of_its_commits_is_true_through_faults_and_kills(
    jvm: PaimonJvm, tmp_path: Path
) -> None:
    _check_faults(jvm, tmp_path / "lake", SECONDS, hangs_s=0.3)


@pytest.mark.long
def test_each_client_s_view_of_its_commits_is_true_for_long(jvm: PaimonJvm, tmp_path: Path) -> None:
    _check_faults(jvm, tmp_path / "lake", LONG_SECONDS, hangs_s=2)


def _check_faults(jvm: PaimonJvm, lake: Path, seconds: float, hangs_s: float) -> None:
    clients = (*pypaimon_clients(), *java_clients(jvm), change_by_pypaimon)
    with two_servers(lake) as servers:
        records = work(servers, seconds, clients, hangs_s)
        servers[0].wait()
        java = JavaClient.of_server(jvm, f"{servers[0].uri}/paimon", WAREHOUSE)
        check_records(servers, lake, records, [java])


def test_writers_at_two_servers_lose_no_commit(tmp_path: Path) -> None:
    lake = tmp_path / "lake"
    with two_servers(lake) as servers:
        until_s = time.monotonic() + SECONDS / 2
        records: list[Record] = []
        clients: list[FaultyClient] = []
        for server in servers:
            clients += pypaimon_clients(f"pypaimon{server.port}")
            records += [Record(f"{server.uri}/paimon", until_s) for _ in range(2)]
        run_together(clients, records)
        check_records(servers, lake, records)
    assert {each.outcome for record in records for each in record.attempts} == {"acknowledged"}
