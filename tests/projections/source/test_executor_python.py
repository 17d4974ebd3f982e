"""Sessions whose executors run another Python than the program: told by name, and at once."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from projections.source import register
from projections.statistics.executor_python import require_executor_python

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
MINE = f"{sys.version_info.major}.{sys.version_info.minor}"

PROGRAM = """
import sys
from pyspark.sql import SparkSession
from projections.source import register
from projections.statistics.session import spark_session
from projections.statistics.engine import Engines

spark = (SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
         .config("spark.driver.host", "127.0.0.1").getOrCreate())
for call in (lambda: register(spark), spark_session, lambda: Engines("spark", print).session()):
    try:
        call()
    except Exception as error:
        print(f"{type(error).__name__}: {error}")
    else:
        print("fits")
"""


def version_of(command: str) -> str | None:
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        ran = subprocess.run([command, "-c", code], capture_output=True, text=True, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return ran.stdout.strip()


def another_python() -> str:
    """Return a Python of another version."""
    names = [f"python3.{minor}" for minor in range(8, 16)]
    found = [shutil.which(each) for each in names]
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    found += [str(each) for each in sorted(versions.glob("3.*/bin/python3"))]
    for each in found:
        if each is not None and version_of(each) not in {None, MINE}:
            return each
    pytest.skip("no Python of another version is installed")


def said_with(python: str | None, path: str = "") -> list[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": python or ""}
    if python is None:
        del environment["PYSPARK_PYTHON"]
    if path:
        environment["PATH"] = f"{path}{os.pathsep}{environment['PATH']}"
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env=environment,
        timeout=180,
    )
    return ran.stdout.splitlines()


@pytest.mark.spark
def test_executors_of_another_version_are_named_with_the_fix() -> None:
    other = another_python()
    said = said_with(other)
    assert len(said) == 3
    for line in said:
        assert line.startswith(
            f"MissingDependencyError: Spark's executors run {other}, which is Python "
            f"{version_of(other)}; this program runs {sys.executable} (Python {MINE})"
        )
        assert 'os.environ["PYSPARK_PYTHON"] = sys.executable' in line


@pytest.mark.spark
def test_a_python_on_the_path_without_lakeledgers_libraries_is_named(tmp_path: Path) -> None:
    bare = tmp_path / "python3"
    # Of the same version, without the libraries of this environment.
    bare.write_text(f'#!/bin/sh\nexec "{Path(sys.executable).resolve()}" -S "$@"\n')
    bare.chmod(0o755)
    said = said_with(None, str(tmp_path))
    assert len(said) == 3
    for line in said:
        assert f"Spark's executors run {bare}, which does not have msgspec, attrs" in line


@pytest.mark.spark
def test_the_session_that_statistics_start_runs_this_python(spark: SparkSession) -> None:
    assert spark.sparkContext.pythonExec == sys.executable
    require_executor_python(spark)
    register(spark)
