"""Detection of Java for Spark."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ledger.model.errors import MissingDependencyError

OLDEST_JAVA = 17
_ANSWER_WITHIN_S = 30
_HOW = (
    "install Java 17 or newer (Debian and Ubuntu: apt install openjdk-17-jre-headless; macOS: "
    "brew install openjdk@17) and set JAVA_HOME or PATH to it; everything but the Spark "
    "projections works without"
)


def require_java(environ: Mapping[str, str]) -> int:
    """Return the major version of the Java that Spark will start: JAVA_HOME's, else PATH's.

    Args:
        environ: The process's environment.

    Raises:
        MissingDependencyError: There is none, it does not run, or it is older than 17.
    """
    java = _find(environ)
    try:
        answer = subprocess.run(  # noqa: S603 - the very program that Spark is about to start
            [java, "-version"], capture_output=True, text=True, check=True, timeout=_ANSWER_WITHIN_S
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise MissingDependencyError(f"{java} does not run; {_HOW}") from error
    version = _major(answer.stderr + answer.stdout)
    if version is None or version < OLDEST_JAVA:
        found = f"Java {version}" if version else "an unknown Java"
        raise MissingDependencyError(f"{java} is {found}, too old for Spark; {_HOW}")
    return version


def _find(environ: Mapping[str, str]) -> str:
    home = environ.get("JAVA_HOME")
    if home:
        java = Path(home) / "bin" / "java"
        if not java.exists():
            raise MissingDependencyError(f"JAVA_HOME is {home}, which has no bin/java; {_HOW}")
        return str(java)
    # An empty path would make `which` look where Python was told to look by default.
    on_path = shutil.which("java", path=environ.get("PATH") or "/nonexistent")
    if on_path is None:
        raise MissingDependencyError(f"Spark needs Java and none is on PATH; {_HOW}")
    return on_path


def _major(answer: str) -> int | None:
    found = re.search(r'version "(?:1\.)?(\d+)', answer)
    return int(found.group(1)) if found else None
