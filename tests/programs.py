"""Pythons that tests start: processes of their own, in the repository's root."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]


def run(
    *arguments: object, timeout_s: float = 120, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Python to its end, however it ends.

    Args:
        arguments: Its command line.
        timeout_s: When it has to have ended.
        environment: What is added to this process's.
    """
    return subprocess.run(
        [sys.executable, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**os.environ, **(environment or {})},
        timeout=timeout_s,
    )


def output_of(
    *arguments: object, timeout_s: float = 120, environment: Mapping[str, str] | None = None
) -> str:
    """Run Python, which has to succeed; return what it prints."""
    done = run(*arguments, timeout_s=timeout_s, environment=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def start(*arguments: object) -> subprocess.Popen[str]:
    """Start a Python that is talked to."""
    return subprocess.Popen(
        [sys.executable, *map(str, arguments)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def race(*commands: Sequence[object], timeout_s: float) -> list[str]:
    """Start a Python a command and release all at once; return what each prints from then on.

    Each prints `ready` and waits for a line.
    """
    processes = [start(*each) for each in commands]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    printed = [process.communicate(timeout=timeout_s)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return printed
