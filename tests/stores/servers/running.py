"""Servers for the tests: started on this machine's loopback, ended by their process."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import NoReturn

import pytest

HOST = "127.0.0.1"
_STARTS_WITHIN_S = 40.0
_PORTS = range(10_000, 22_000)


def program(name: str, package: str) -> str:
    """Return where a program is; without it the test is skipped, and fails in CI."""
    beside = Path(sys.executable).parent
    found = shutil.which(name, path=os.pathsep.join([str(beside), os.environ.get("PATH", "")]))
    if found is None:
        missing(f"{name} is not on the path; it comes with {package}")
    return found


def missing(reason: str) -> NoReturn:
    """Skip the test for this reason; in CI everything has to be there, so fail."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def free_port(*, also: int = 0) -> int:
    """Return a port without a listener; the port `also` above it is free, too.

    Both are below those that a system gives to clients: a server that begins to listen a
    moment later would find such a one taken.
    """
    while True:
        port = secrets.choice(_PORTS)
        with closing(socket.socket()) as one, closing(socket.socket()) as other:
            try:
                one.bind((HOST, port))
                other.bind((HOST, port + also if also else 0))
            except OSError:
                continue
            return port


@contextmanager
def running(
    command: Sequence[str],
    folder: Path,
    is_up: Callable[[], bool],
    starts_within_s: float = _STARTS_WITHIN_S,
    /,
    **environment: str,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server while the body runs; its output is in `folder`."""
    with (folder / "output.txt").open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env={**os.environ, **environment},
        )
        try:
            _wait(process, folder, is_up, starts_within_s)
            yield process
        finally:
            # What it stored is thrown away; an orderly end would take some of them ten seconds.
            process.kill()
            process.wait()


def _wait(
    process: subprocess.Popen[bytes], folder: Path, is_up: Callable[[], bool], within_s: float
) -> None:
    until = time.monotonic() + within_s
    while not is_up():
        if process.poll() is not None or time.monotonic() > until:
            said = (folder / "output.txt").read_text(errors="replace")[-2000:]
            pytest.fail(f"{process.args!r} did not start:\n{said}")
        time.sleep(0.05)


def answers(url: str) -> Callable[[], bool]:
    """Return a check for whether a server answers requests at all, whatever it says."""

    def is_up() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=2):  # noqa: S310 - a loopback URL
                return True
        except urllib.error.HTTPError as answer:
            answer.close()
            return True
        except OSError:
            return False

    return is_up
