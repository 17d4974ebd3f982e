from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ledger import MissingDependencyError
from projections.statistics import spark_session
from projections.statistics.session import require_java
from tests.programs import ROOT, output_of, run

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def a_java(home: Path, answer: str, code: int = 0) -> Path:
    """Put a program in a folder that answers as that Java would."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{answer}' >&2\nexit {code}\n")
    program.chmod(0o755)
    return home


def test_no_java_on_the_path_is_said_with_what_to_install() -> None:
    with pytest.raises(MissingDependencyError, match="none is on PATH; install Java 17"):
        require_java({"PATH": ""})


def test_a_java_home_without_java_is_named(tmp_path: Path) -> None:
    with pytest.raises(MissingDependencyError, match=f"JAVA_HOME is {tmp_path}"):
        require_java({"JAVA_HOME": str(tmp_path), "PATH": os.environ["PATH"]})


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ('openjdk version "11.0.2" 2019', "Java 11, too old"),
        ('java version "1.8.0_392"', "Java 8, too old"),
        ("what?", "an unknown Java"),
    ],
)
def test_a_java_that_is_too_old_is_rejected(tmp_path: Path, answer: str, found: str) -> None:
    with pytest.raises(MissingDependencyError, match=found):
        require_java({"JAVA_HOME": str(a_java(tmp_path, answer))})


def test_a_java_that_does_not_run_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(MissingDependencyError, match="does not run"):
        require_java({"JAVA_HOME": str(a_java(tmp_path, "broken", code=1))})


def test_java_homes_java_comes_before_the_paths(tmp_path: Path) -> None:
    home = a_java(tmp_path / "home", 'openjdk version "21.0.1" 2023')
    path = a_java(tmp_path / "path", 'openjdk version "17.0.1" 2021')

    assert require_java({"JAVA_HOME": str(home), "PATH": str(path / "bin")}) == 21
    assert require_java({"PATH": str(path / "bin")}) == 17


def test_without_java_no_session_starts_and_the_message_is_one_line() -> None:
    program = (
        "from projections.statistics import spark_session\n"
        "from ledger.model.errors import MissingDependencyError\n"
        "try:\n    spark_session()\n"
        "except MissingDependencyError as error:\n    print(error)\n"
    )
    root = Path(__file__).parents[3]

    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PATH": "", "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert "none is on PATH" in done.stdout
    assert done.stdout.count("\n") == 1


@pytest.mark.spark
def test_a_session_of_ours_adds_nothing_to_a_programs_output() -> None:
    program = (
        "from projections.statistics import spark_session\n"
        "session = spark_session()\n"
        "print(session.range(3).count())\n"
        "session.stop()\n"
    )
    assert output_of("-c", program) == "3\n"


def test_a_java_that_exits_at_once_is_an_error_with_its_own_output(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    java = a_java(tmp_path, 'openjdk version "17.0.1" 2021') / "bin" / "java"
    body = java.read_text().replace(
        "exit 0", '[ "$1" = -version ] && exit 0\necho no room for a heap >&2\nexit 1'
    )
    java.write_text(body)
    program = (
        "from projections.statistics import spark_session\n"
        "from ledger.model.errors import StoreError\n"
        "try:\n    spark_session()\n"
        "except StoreError as error:\n    print(error)\n"
    )
    done = run("-c", program, environment={"JAVA_HOME": str(tmp_path)})

    assert done.returncode == 0, done.stderr
    assert "Spark's Java did not start" in done.stdout
    assert "no room for a heap" in done.stderr


def test_importing_the_statistics_does_not_import_spark() -> None:
    program = "import sys, projections.statistics; sys.exit('pyspark' in sys.modules)"
    output_of("-c", program)


def test_the_callers_session_is_used(spark: SparkSession) -> None:
    assert spark_session() is spark


def test_no_library_code_asks_for_a_context_that_connect_has_not() -> None:
    for path in (ROOT / "projections").rglob("*.py"):
        # The check of executors asks each session, and takes its refusal for Spark Connect.
        if path.name != "executor_python.py":
            assert ".sparkContext" not in path.read_text(), path
        assert ".rdd" not in path.read_text(), path
