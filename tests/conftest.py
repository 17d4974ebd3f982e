"""Fixtures and options of all tests."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from hypothesis import HealthCheck, is_hypothesis_test, settings

from ledger.log.commit_queue import BackgroundWorker
from tests.faults import Inline
from tests.loaded_command import loaded_command
from tests.programme.figures import FIGURES, lines
from tests.thorough import DRAWN, PART

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.stores.servers.buckets import S3Server


# How fast a machine draws inputs that does much else meanwhile says nothing of a law.
settings.register_profile(
    "laws",
    deadline=None,
    max_examples=DRAWN // PART,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("laws in full", settings.get_profile("laws"), max_examples=DRAWN)
settings.load_profile("laws")

# gcsfs would ask by gRPC of what kind a bucket is; no fake speaks that, and it asks for minutes.
os.environ.setdefault("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")

# Only modules that pytest collects explain their failed asserts unless they are named.
pytest.register_assert_rewrite("tests.store_contract")

# pyspark leaves the closing of its sockets to Python's garbage collector.
_SOCKETS = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Take `--long`."""
    parser.addoption("--long", action="store_true", help="run only what `.ci/long` runs")


def pytest_configure(config: pytest.Config) -> None:
    """Let laws draw all of their inputs where there is time, and files run in their order."""
    # By the number of their tests, files with a few long ones would come last.
    config.option.loadscopereorder = False
    if config.getoption("--long"):
        settings.load_profile("laws in full")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what starts a JVM, and part what takes long from the rest; laws belong to both."""
    for item in items:
        if isinstance(item, pytest.Function) and "spark" in item.fixturenames:
            item.add_marker(pytest.mark.spark)
            item.add_marker(_SOCKETS)
    is_part = _is_of_long_runs if config.getoption("--long") else _is_of_every_run
    chosen: list[pytest.Item] = []
    left: list[pytest.Item] = []
    for item in items:
        (chosen if is_part(item) else left).append(item)
    config.hook.pytest_deselected(items=left)
    items[:] = chosen


def pytest_collection_finish() -> None:
    """Let the collector pass over twenty thousand collected tests, which stay to the end.

    It looked at all that is old time and again: up to a seventh of what the tests take. What is
    young is collected as ever, so that what a test leaves open is found in its own time.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*gc.get_threshold()[:2], 100)


@pytest.fixture(scope="module")
def nothing_old_to_collect() -> None:
    """Let benchmarks, which collect before every measurement, pass over what other tests left.

    After ten thousand tests that is most of a second each time.
    """
    gc.collect()
    gc.freeze()


def _is_of_every_run(item: pytest.Item) -> bool:
    return item.get_closest_marker("long") is None


def _is_of_long_runs(item: pytest.Item) -> bool:
    """Return whether a test is for long runs alone, or draws fewer of its inputs in others."""
    draws = isinstance(item, pytest.Function) and is_hypothesis_test(item.obj)
    return draws or any(item.get_closest_marker(each) is not None for each in ("long", "law"))


@pytest.fixture(scope="session", autouse=True)
def caches_are_saved_by_the_committing_writer() -> Iterator[None]:
    """Let what a test reads be there: a boundary's caches are saved before its commit returns.

    Tests of the saving itself, marked `own_keeper`, leave it to the handle's own thread.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ledger.log.stream_log.BackgroundWorker", Inline)
        yield


@pytest.fixture(autouse=True)
def caches_have_a_keeper(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a test that is marked so the handle's own thread back."""
    if "own_keeper" in request.keywords:
        monkeypatch.setattr("ledger.log.stream_log.BackgroundWorker", BackgroundWorker)


@pytest.fixture(autouse=True)
def logs_are_as_nobody_configured_them() -> Iterator[None]:
    """Let what a test captures of logs be its own."""
    yield
    structlog.reset_defaults()


@pytest.fixture(scope="session", name="loaded_command")
def _loaded_command(request: pytest.FixtureRequest) -> Iterator[Path]:
    """The folder of a `lakeledger` that imports nothing anew; with `--long`, the installed one."""
    if request.config.getoption("--long"):
        yield Path(sys.executable).parent
        return
    with loaded_command() as folder:
        yield folder


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """One local Spark for the whole run; LAKELEDGER_CLASS_ARCHIVE names a file to start faster."""
    from projections.statistics import spark_session

    archive = os.environ.get("LAKELEDGER_CLASS_ARCHIVE")
    folder = tmp_path_factory.mktemp("warehouse")
    with pytest.MonkeyPatch.context() as patch:
        # Tables of Spark's own catalog would be in the working directory.
        warehouse = f"--conf spark.sql.warehouse.dir={folder} pyspark-shell"
        patch.setenv("PYSPARK_SUBMIT_ARGS", warehouse)
        session = spark_session(class_archive=Path(archive) if archive else None)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def seaweedfs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real, distributed object store on this machine."""
    from tests.stores.servers import buckets

    with buckets.seaweedfs(tmp_path_factory.mktemp("seaweedfs")) as server:
        yield server


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Hand the programme's figures over to the process that prints them, if that is another."""
    output = getattr(session.config, "workeroutput", None)
    if output is not None:
        output["programme"] = dict(FIGURES)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Add the figures of a process that did a part of the run."""
    del error
    FIGURES.update(getattr(node, "workeroutput", {}).get("programme", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the programme's figures at the end of every run that holds a part of it."""
    for line in lines():
        terminalreporter.write_sep("=", "the programme")
        terminalreporter.write_line(line)
