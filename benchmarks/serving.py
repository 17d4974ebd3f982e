"""Throughput of `lakeledger serve`, compared with Iceberg's reference REST server.

Clients set properties of tables through both servers, in turn: one client on one table, eight on
one, 64 on a hundred. Both keep their metadata files on the same disk; the reference server keeps
its pointers in SQLite. A rejected commit is tried again after a reload; only accepted ones count.
Ratios are medians of rounds, p99 is that of all rounds together. Loads with If-None-Match are
answered by 304 at histories of several lengths. On S3 (SeaweedFS, 8 ms away) 64 clients commit
to one table, compared with one client.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import cyclopts
from attrs import field, frozen

import ledger
from benchmarks.bucket import place_for
from benchmarks.distance import at_distance
from benchmarks.measure import WORKDIR, Figure, Output, Report, question_of, show
from benchmarks.rest_clients import Client, Load, add_snapshots, commit_for, table_path
from tests.projections.rest.rest_servers import (
    RestServer,
    class_path,
    ledger_server,
    reference_server,
)

OURS, REFERENCE = "lakeledger", "reference"
HISTORIES = (10, 1_000, 10_000)
ROUND_TRIP_MS = 8.0
P99_SHARE = 0.6
CPU_SHARE = 0.6
FLAT = 2.0
TOGETHER_ON_S3 = 8.0
_LOADS = 100
_S3_CLIENTS = 64


@frozen
class Scenario:
    """Clients that commit to tables at the same time.

    Attributes:
        clients: Number of clients.
        tables: Number of tables.
        times: Least ratio of commits per second to the reference server's.
    """

    clients: int
    tables: int
    times: float

    @property
    def name(self) -> str:
        """Name of the scenario."""
        return f"{_plural(self.clients, 'client')}, {_plural(self.tables, 'table')}"

    def names(self) -> list[str]:
        """Return the names of its tables."""
        return [f"t{self.clients}_{nth}" for nth in range(self.tables)]


SCENARIOS = (Scenario(1, 1, 2.0), Scenario(8, 1, 4.0), Scenario(64, 100, 3.0))


@frozen
class Results:
    """Loads of a scenario, by server, one for each round."""

    scenario: Scenario
    loads: Mapping[str, list[Load]] = field(factory=lambda: {OURS: [], REFERENCE: []})

    def ratio(self, of: Callable[[Load], float]) -> float:
        """Return the median of the rounds' ratios of this server to the reference."""
        pairs = zip(self.loads[OURS], self.loads[REFERENCE], strict=True)
        return statistics.median(of(ours) / max(of(theirs), 1e-9) for ours, theirs in pairs)

    def p99_ms(self, server: str) -> float:
        """Return the 99th percentile of the latency of a server, milliseconds."""
        return _percentile([ms for each in self.loads[server] for ms in each.took_ms], 99)

    def row(self, server: str) -> str:
        """Return the results of a server as a line below `HEADER`."""
        loads = self.loads[server]
        took = [ms for each in loads for ms in each.took_ms]
        counted = [
            sum(getattr(each, name) for each in loads)
            for name in ("kept", "lost", "retries", "given_up")
        ]
        return (
            f"{self.scenario.name:<24} {server:<11} "
            f"{statistics.median(each.rate for each in loads):>8.1f} "
            f"{_percentile(took, 50):>8.1f} {_percentile(took, 99):>9.1f} "
            f"{statistics.median(each.cpu_ms for each in loads):>8.2f} "
            f"{' '.join(f'{each:>7}' for each in counted)}"
        )


HEADER = (
    f"{'scenario':<24} {'server':<11} {'kept/s':>8} {'p50 ms':>8} {'p99 ms':>9} {'cpu ms':>8} "
    f"{'kept':>7} {'lost':>7} {'retries':>7} {'gave up':>7}"
)


def run(
    workdir: Path,
    *,
    seconds: float,
    rounds: int,
    scenarios: Sequence[Scenario] = SCENARIOS,
    histories: Sequence[int] = HISTORIES,
    s3_clients: int = _S3_CLIENTS,
) -> Report:
    workdir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=workdir) as folder, ExitStack() as stack:
        place = Path(folder)
        servers = {
            OURS: stack.enter_context(_ours(place / OURS)),
            REFERENCE: stack.enter_context(_reference(place / REFERENCE)),
        }
        results = _commits(servers, scenarios, seconds, rounds)
        loads = _unchanged_loads(servers, histories, rounds)
    s3 = _on_s3(workdir, seconds, rounds, s3_clients) if s3_clients else []
    lost = sum(load.lost for each in results for load in each.loads[OURS])
    lost += sum(load.lost for pair in s3 for load in pair)
    return Report(
        question_of(__doc__),
        f"scenarios={[each.scenario.name for each in results]} lost={lost}",
        (*_commit_figures(results), *_load_figures(loads), *_s3_figures(s3, s3_clients)),
        (
            HEADER,
            *(each.row(server) for each in results for server in servers),
            *_load_rows(loads),
        ),
    )


@contextmanager
def _ours(folder: Path) -> Iterator[RestServer]:
    folder.mkdir()
    url = str(folder / "ledger")
    ledger.open(url).init()
    with ledger_server(folder, url, "--log-level", "warning") as server:
        _create_namespace(server.uri)
        yield server


@contextmanager
def _reference(folder: Path) -> Iterator[RestServer]:
    folder.mkdir()
    with reference_server(folder, class_path(folder)) as server:
        _create_namespace(server.uri)
        yield server


def _commits(
    servers: Mapping[str, RestServer],
    scenarios: Sequence[Scenario],
    seconds: float,
    rounds: int,
) -> list[Results]:
    results = [Results(each) for each in scenarios]
    for each in results:
        for server in servers.values():
            _create(server.uri, each.scenario.names())
            # Java compiles what is used often; neither server is measured while it warms up.
            _load(server, each.scenario, seconds)
    for nth in range(rounds):
        for each in results:
            # Neither is always the first.
            for name in sorted(servers, reverse=nth % 2 == 1):
                each.loads[name].append(_load(servers[name], each.scenario, seconds))
    return results


def _load(server: RestServer, scenario: Scenario, seconds: float) -> Load:
    return commit_for(
        server.uri, server.pid, scenario.names(), clients=scenario.clients, seconds=seconds
    )


def _create_namespace(uri: str) -> None:
    client = Client(uri)
    client.create_namespace()
    client.close()


def _create(uri: str, names: Sequence[str]) -> None:
    client = Client(uri)
    for each in names:
        client.create_table(each)
    client.close()


def _commit_figures(results: Sequence[Results]) -> Iterator[Figure]:
    for each in results:
        name = each.scenario.name
        rate = each.ratio(lambda load: load.rate)
        yield Figure(f"{name}: kept/s, / reference", rate, "x", at_least=each.scenario.times)
        p99 = each.p99_ms(OURS) / each.p99_ms(REFERENCE)
        yield Figure(f"{name}: p99, / reference", p99, "x", at_most=P99_SHARE)
        cpu = each.ratio(lambda load: load.cpu_ms)
        yield Figure(f"{name}: CPU a kept commit, / reference", cpu, "x", at_most=CPU_SHARE)


def _unchanged_loads(
    servers: Mapping[str, RestServer], histories: Sequence[int], rounds: int
) -> dict[str, dict[int, list[float]]]:
    """Return the latencies of loads that are answered by 304, milliseconds."""
    clients = {name: Client(each.uri) for name, each in servers.items()}
    etags: dict[tuple[str, int], str] = {}
    for name, client in clients.items():
        for length in histories:
            client.create_table(f"long{length}")
            add_snapshots(client, f"long{length}", length)
            status, _, etag = client.request("GET", table_path(f"long{length}"))
            assert status == 200
            assert etag is not None, f"{name} sends no ETag"
            etags[name, length] = etag
    took: dict[str, dict[int, list[float]]] = {
        name: {length: [] for length in histories} for name in servers
    }
    for _ in range(rounds):
        for (name, length), etag in etags.items():
            # Untimed, for a server that closed an idle connection.
            clients[name].request("GET", table_path(f"long{length}"), etag=etag)
            for _ in range(_LOADS // rounds + 1):
                start = time.perf_counter()
                status, _, _ = clients[name].request("GET", table_path(f"long{length}"), etag=etag)
                took[name][length].append((time.perf_counter() - start) * 1e3)
                assert status == 304, f"{name} answers {status} for an unchanged table"
    for client in clients.values():
        client.close()
    return took


def _load_figures(loads: Mapping[str, Mapping[int, list[float]]]) -> Iterator[Figure]:
    medians = {length: statistics.median(took) for length, took in loads[OURS].items()}
    if medians:
        ratio = medians[max(medians)] / medians[min(medians)]
        name = f"load by 304, {max(medians):,} snapshots / {min(medians):,}"
        yield Figure(name, ratio, "x", at_most=FLAT)


def _load_rows(loads: Mapping[str, Mapping[int, list[float]]]) -> Iterator[str]:
    for server, by_length in loads.items():
        medians = (
            f"{statistics.median(took):.2f} ms at {length:,}" for length, took in by_length.items()
        )
        yield f"load by 304, {server}: {', '.join(medians)}"


def _on_s3(workdir: Path, seconds: float, rounds: int, clients: int) -> list[tuple[Load, Load]]:
    """Return the loads of one client and of many on one table, for each round."""
    with (
        tempfile.TemporaryDirectory(dir=workdir) as folder,
        place_for(None) as (url, options),
        at_distance(options, ROUND_TRIP_MS) as far,
    ):
        ledger.open(url, options).init()
        environment = {
            "AWS_ACCESS_KEY_ID": str(options["key"]),
            "AWS_SECRET_ACCESS_KEY": str(options["secret"]),
            "AWS_DEFAULT_REGION": str(options["client_kwargs"]["region_name"]),
        }
        flags = (
            "--log-level",
            "warning",
            "--storage-option",
            f"endpoint_url={far['endpoint_url']}",
        )
        with ledger_server(Path(folder), url, *flags, **environment) as server:
            _create_namespace(server.uri)
            alone, together = Scenario(1, 1, 0), Scenario(clients, 1, TOGETHER_ON_S3)
            for each in {alone.names()[0], together.names()[0]}:
                _create(server.uri, [each])
            _load(server, together, seconds)
            return [
                (_load(server, alone, seconds), _load(server, together, seconds))
                for _ in range(rounds)
            ]


def _s3_figures(pairs: Sequence[tuple[Load, Load]], clients: int) -> Iterator[Figure]:
    if pairs:
        one = statistics.median(alone.rate for alone, _ in pairs)
        many = statistics.median(together.rate for _, together in pairs)
        ratio = statistics.median(together.rate / alone.rate for alone, together in pairs)
        yield Figure("S3, 1 client, 1 table", one, "commits/s")
        yield Figure(f"S3, {clients} clients, 1 table", many, "commits/s")
        name = f"S3: {clients} clients / 1 client"
        yield Figure(name, ratio, "x", at_least=TOGETHER_ON_S3)


def _percentile(values: Sequence[float], percent: int) -> float:
    if len(values) < 2:
        return values[0] if values else 0.0
    return statistics.quantiles(values, n=100, method="inclusive")[percent - 1]


def _plural(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count > 1 else ''}"


def main(
    *, seconds: float = 4.0, rounds: int = 5, workdir: Path = WORKDIR, output: Output = "text"
) -> None:
    """Commit through both servers.

    Args:
        seconds: Length of each load.
        rounds: Number of rounds; the median counts.
        workdir: The folder whose file system is measured.
        output: text or json.
    """
    show(run(workdir, seconds=seconds, rounds=rounds), output)


if __name__ == "__main__":
    cyclopts.run(main)
