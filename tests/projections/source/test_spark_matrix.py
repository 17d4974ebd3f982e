"""One program of a user has one result, however its Spark session is configured."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.util import find_spec
from itertools import combinations, product
from pathlib import Path
from typing import Any

import pytest
from attrs import asdict, evolve, fields

from tests.projections.source.spark_program import Configuration, Work
from tests.projections.source.test_writer_kills import environment
from tests.readers.iceberg_runtime import COORDINATES

ROOT = Path(__file__).parents[3]
NEWFOUNDLAND = "America/St_Johns"

OF_EVERY_RUN = (
    Configuration(place="classic", ansi=False, case_sensitive=True, zone=NEWFOUNDLAND),
    Configuration(place="connect", ansi=True, case_sensitive=False, zone="UTC"),
)
OF_LONG_RUNS = (
    Configuration(
        place="classic", ansi=True, case_sensitive=False, zone="UTC", iceberg=True, delta=True
    ),
    Configuration(
        place="connect",
        ansi=False,
        case_sensitive=True,
        zone=NEWFOUNDLAND,
        iceberg=True,
        delta=True,
    ),
    Configuration(
        place="local-cluster", ansi=False, case_sensitive=False, zone=NEWFOUNDLAND, delta=True
    ),
    Configuration(place="local-cluster", ansi=True, case_sensitive=True, zone="UTC", iceberg=True),
    Configuration(place="standalone", ansi=False, case_sensitive=True, zone="UTC", iceberg=True),
    Configuration(
        place="standalone", ansi=True, case_sensitive=False, zone=NEWFOUNDLAND, delta=True
    ),
)

IDS = {
    # The second batch replaced the rows of its day.
    "2026-01-01": [0, 3, 6, 9, 12, 15, 30],
    "2026-01-02": [19, 22, 25, 28, 31],
    "2026-01-03": [2, 5, 8, 11, 14, 17, 32],
}
EXPECTED: dict[str, Any] = {
    "refused": True,
    "rows": [
        [
            str(number),
            day,
            f"{day} 01:00:00+00:00",
            "2026-01-01 12:00:00.000007",
            "2026-01-01 12:00:00.000007",
            f"{number / 4:.2f}",
            f"{{'path': '/{number}', 'ms': {number}}}",
        ]
        for number, day in sorted((number, day) for day, ids in IDS.items() for number in ids)
    ],
    "log": [
        [0, "ada", "createTable"],
        [1, "ada", "commitSnapshot"],
        [2, "bob", "commitSnapshot"],
        [3, "eve", "commitSnapshot"],
        [4, "fay", "commitSnapshot"],
    ],
    "kept": [[0, "createTable"], *([each, "commitSnapshot"] for each in (1, 2, 3, 4))],
    "snapshots": [[1, "APPEND", 12], [2, "APPEND", 18], [3, "OVERWRITE", 16], [4, "APPEND", 19]],
    "files": [[1, "ADD", 12], [2, "ADD", 6], [3, "ADD", 4], [3, "DELETE", 6], [4, "ADD", 3]],
    "partitions": [[day, day, len(ids)] for day, ids in IDS.items()],
    "tiles": [[day, len(ids)] for day, ids in IDS.items()],
    "commits": [
        [0, "ada", ""],
        [1, "ada", "the first"],
        [2, "bob", ""],
        [3, "eve", ""],
        [4, "fay", ""],
    ],
    "times are local": True,
    "filtered": [[2], [3]],
    "pushed": [[2], [3]],
    "followed": [["shop.empty", 0], *(["shop.visits", each] for each in range(5))],
    "statistics": {
        "version": 4,
        "verified": True,
        "every": [["shop.visits", 4, ""], ["shop.empty", 0, ""]],
        "partitions": [[day, day, len(ids)] for day, ids in IDS.items()],
    },
}


def name_of(configuration: Configuration) -> str:
    ansi = "ansi" if configuration.ansi else "lenient"
    case = "cases" if configuration.case_sensitive else "nocase"
    zone = configuration.zone.rpartition("/")[2]
    jars = [each for each in ("iceberg", "delta") if getattr(configuration, each)]
    return "-".join([configuration.place, ansi, case, zone, *jars])


def test_every_pair_of_values_of_two_settings_is_configured() -> None:
    every = (*OF_EVERY_RUN, *OF_LONG_RUNS)
    for one, other in combinations([each.name for each in fields(Configuration)], 2):
        there = {(getattr(each, one), getattr(each, other)) for each in every}
        ones, others = ({pair[place] for pair in there} for place in (0, 1))
        assert there == set(product(ones, others)), (one, other)


@pytest.mark.spark
@pytest.mark.parametrize("configuration", OF_EVERY_RUN, ids=name_of)
def test_a_program_has_the_same_result_in_this_process_and_through_connect(
    configuration: Configuration, tmp_path: Path
) -> None:
    assert result_of(configuration, tmp_path) == EXPECTED


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("configuration", OF_LONG_RUNS, ids=name_of)
def test_a_program_has_the_same_result_under_every_configuration(
    configuration: Configuration, tmp_path: Path
) -> None:
    spark = ".".join(pytest.importorskip("pyspark").__version__.split(".")[:2])
    if f"-{spark}_" not in COORDINATES:
        # Iceberg and Delta come later than Spark: what else is configured is tried without them.
        configuration = evolve(configuration, iceberg=False, delta=False)
    assert result_of(configuration, tmp_path) == EXPECTED


def result_of(configuration: Configuration, folder: Path) -> Any:
    """Run the program; return its document."""
    pytest.importorskip("pyspark")
    if configuration.place == "connect" and find_spec("grpc") is None:
        pytest.skip("Spark Connect needs grpcio: pip install 'pyspark[connect]'")
    with ExitStack() as stack:
        known = environment(folder)
        match configuration.place:
            case "classic" | "connect":
                # The jars of Spark Connect are found from Spark's own folder.
                known = {each: known[each] for each in known if each != "SPARK_HOME"}
                master = "local[2]"
            case "local-cluster":
                master = "local-cluster[2,1,1024]"
            case "standalone":
                master = stack.enter_context(cluster(folder, known))
        work = Work(
            configuration=configuration,
            master=master,
            folder=str(folder / "work"),
            root=str(ROOT),
        )
        done = subprocess.run(
            [
                *(sys.executable, "-m", "tests.projections.source.spark_program"),
                json.dumps(asdict(work)),
            ],
            env=known,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
    if "unresolved dependency" in done.stderr:
        pytest.skip(
            f"of {', '.join(configuration.jars)} not all are in an Ivy or Maven cache, and Maven "
            "Central does not answer"
        )
    assert done.returncode == 0, done.stderr[-5000:]
    return json.loads(done.stdout.splitlines()[-1])


@contextmanager
def cluster(folder: Path, known: dict[str, str]) -> Iterator[str]:
    """Run a master and a worker of two cores on the loopback interface; yield the master's URL."""
    loopback = ["--host", "127.0.0.1", "--port", "0", "--webui-port", "0"]
    small = {**known, "SPARK_DAEMON_MEMORY": "512m"}
    with ExitStack() as stack:
        log = folder / "master.log"
        stack.enter_context(_daemon(log, small, "master.Master", *loopback))
        master = _wait_for(log, r"Starting Spark master at (spark://127\.0\.0\.1:[0-9]+)")
        log = folder / "worker.log"
        size = ["--cores", "2", "--memory", "2g", "--work-dir", str(folder / "executors")]
        stack.enter_context(_daemon(log, small, "worker.Worker", *loopback, *size, master))
        _wait_for(log, r"(Successfully registered with master)")
        yield master


@contextmanager
def _daemon(log: Path, known: dict[str, str], name: str, *arguments: str) -> Iterator[None]:
    program = str(Path(known["SPARK_HOME"]) / "bin" / "spark-class")
    with log.open("wb") as output:
        started = subprocess.Popen(
            [program, f"org.apache.spark.deploy.{name}", *arguments],
            env=known,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield
    finally:
        # By SIGTERM a worker ends its executors, too.
        started.terminate()
        try:
            started.wait(30)
        except subprocess.TimeoutExpired:
            started.kill()
            started.wait(30)


def _wait_for(log: Path, pattern: str) -> str:
    end = time.monotonic() + 120
    while time.monotonic() < end:
        found = re.search(pattern, log.read_text())
        if found:
            return found[1]
        time.sleep(0.2)
    raise AssertionError(log.read_text()[-5000:])
