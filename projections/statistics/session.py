"""Spark session of the statistics, and the check for Java."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ledger.model.errors import MissingDependencyError, StoreError
from ledger.model.extras import missing_extra_error
from projections.statistics.executor_python import require_executor_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


OLDEST_JAVA = 17
_ANSWER_WITHIN_S = 30
_HOW = (
    "install Java 17 or newer (Debian and Ubuntu: apt install openjdk-17-jre-headless; macOS: "
    "brew install openjdk@17) and set JAVA_HOME or PATH to it; everything but the Spark "
    "projections works without it"
)


def require_java(environ: Mapping[str, str]) -> int:
    """Return the major version of the Java that Spark will start: JAVA_HOME's, else PATH's.

    Args:
        environ: The process's environment.

    Raises:
        MissingDependencyError: There is none, it does not run, or it is older than 17.
    """
    java = _find_java(environ)
    try:
        answer = subprocess.run(  # noqa: S603 - the same program that Spark will start
            [java, "-version"], capture_output=True, text=True, check=True, timeout=_ANSWER_WITHIN_S
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise MissingDependencyError(f"{java} does not run; {_HOW}") from error
    version = _parse_java_version(answer.stderr + answer.stdout)
    if version is None or version < OLDEST_JAVA:
        found = f"Java {version}" if version else "an unknown Java"
        raise MissingDependencyError(f"{java} is {found}, too old for Spark; {_HOW}")
    return version


def _find_java(environ: Mapping[str, str]) -> str:
    home = environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not java.exists():
            raise MissingDependencyError(f"JAVA_HOME is {home}, which has no bin/java; {_HOW}")
        return str(java)
    # An empty path would make `which` use Python's default search path.
    on_path = shutil.which("java", path=environ.get("PATH") or "/nonexistent")
    if on_path is None:
        raise MissingDependencyError(f"Spark needs Java and none is on PATH; {_HOW}")
    return on_path


def _parse_java_version(answer: str) -> int | None:
    found = re.search(r'version "(?:1\.)?(\d+)', answer)
    return int(found.group(1)) if found else None


_LOCAL: dict[str, str] = {
    "spark.master": "local[*]",
    "spark.app.name": "lakeledger",
    # Without these Spark resolves this machine's host name, which may fail on a laptop.
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "2",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def spark_session(*, class_archive: Path | None = None) -> SparkSession:
    """Return the caller's active Spark session; start a local one of two cores when there is none.

    The new session compiles with C1 only: it starts in half the time and suits jobs of seconds. For
    heavy jobs start your own session first.

    Args:
        class_archive: A file for the JVM's class-data archive (about 140 MB). If it exists, Spark
            starts twice as fast again; otherwise it is written when this process ends. One that
            does not fit this Java or Spark is ignored silently.

    Raises:
        MissingDependencyError: pyspark, pandas or a Java of version 17 or newer is not installed;
            or the executors of the active session run another Python.
        StoreError: Java does not start.
    """
    # pyspark passes Arrow batches to Python only if pandas is installed, but does not require it.
    for package in ("pyspark", "pandas"):
        if find_spec(package) is None:
            raise missing_extra_error(f"statistics at scale need {package}", "spark")
    from pyspark.errors import PySparkRuntimeError
    from pyspark.sql import SparkSession

    active = active_session()
    if active is not None:
        require_executor_python(active)
        return active
    require_java(os.environ)
    # Otherwise workers start the `python3` on PATH, which may be another version.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Spark resolves the host's name before it reads its configuration.
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        **_LOCAL,
        "spark.driver.extraJavaOptions": _java_options(class_archive),
        # Workers import this package too, from the same place as the caller's process.
        "spark.executorEnv.PYTHONPATH": str(Path(__file__).parents[2]),
    }
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as error:
        raise StoreError(f"Spark's Java did not start; see its output above: {error}") from error


def active_session() -> SparkSession | None:
    """Return the caller's running session, including one through Spark Connect.

    None when there is none, or no pyspark.
    """
    try:
        from pyspark.sql import SparkSession
    except ModuleNotFoundError:
        return None
    return SparkSession.getActiveSession()


def parallelism_of(session: SparkSession) -> int:
    """Return the number of tasks that a session is configured to run at once.

    It estimates how long Spark takes, before it is chosen; no job is divided by it, since executors
    come and go. For a cluster that does not state it, it is Spark's own minimum of two.
    """
    stated = session.conf.get("spark.default.parallelism", None)
    if stated is not None:
        return int(stated)
    local = _LOCAL_CORES(session.conf.get("spark.master", "") or "")
    if local is None:
        return _LEAST_PARALLELISM
    return int(local[1]) if local[1].isdigit() else os.cpu_count() or 1


_LEAST_PARALLELISM = 2
_LOCAL_CORES = re.compile(r"local\[(\d+|\*)(?:,\s*\d+)?\]").fullmatch


def _java_options(class_archive: Path | None) -> str:
    quiet = Path(__file__).with_name("log4j2.properties").as_uri()
    options = [
        "-XX:TieredStopAtLevel=1",
        # A hundred statements of SQL fill C1's 48 MB, and then nothing more is compiled.
        "-XX:ReservedCodeCacheSize=240m",
        "-Duser.timezone=UTC",
        f"-Dlog4j2.configurationFile={quiet}",
    ]
    if class_archive is not None:
        flag = "SharedArchiveFile" if class_archive.exists() else "ArchiveClassesAtExit"
        options += [f"-XX:{flag}={class_archive}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    return " ".join(options)
