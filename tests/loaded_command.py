"""`lakeledger` as a process that need not import anything: each is forked from one that has.

Its streams, folder, environment and exit code are those of a program that a shell started. Where
it matters that a process of its own begins, and what it imports, the installed command is used.
"""

from __future__ import annotations

import gc
import os
import select
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from struct import pack, unpack
from typing import Final

ROOT: Final = Path(__file__).parents[1]

_ASKING = """#!{python} -IS
import array, os, socket, struct, sys
sent = [os.fsencode(each) for each in (os.getcwd(), str(len(sys.argv)), *sys.argv)]
sent += [name + b"=" + value for name, value in os.environb.items()]
body = b"\\0".join(sent)
streams = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
with socket.socket(socket.AF_UNIX) as loaded:
    loaded.connect({place!r})
    loaded.sendmsg([struct.pack("!I", len(body))], streams)
    loaded.sendall(body)
    code, = struct.unpack("!i", loaded.recv(4))
# A command that a signal ended ends its caller so, too.
if code < 0:
    os.kill(os.getpid(), -code)
sys.exit(code)
"""


@contextmanager
def loaded_command() -> Iterator[Path]:
    """Keep a process from which commands are forked; yields the folder that holds `lakeledger`."""
    with tempfile.TemporaryDirectory(prefix="lakeledger-") as folder:
        place = Path(folder) / "loaded"
        command = Path(folder) / "lakeledger"
        command.write_text(_ASKING.format(python=sys.executable, place=str(place)))
        command.chmod(0o755)
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(str(place))
            # A client that connects before everything is imported waits.
            listening.listen(64)
            loaded = _loaded(listening)
        try:
            yield Path(folder)
        finally:
            loaded.communicate(timeout=60)


def _loaded(listening: socket.socket) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.loaded_command", str(listening.fileno())],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        pass_fds=[listening.fileno()],
    )


def main(listening: socket.socket) -> None:
    """Fork a command for each client, until stdin ends with the process that started this."""
    for package in ("ledger", "projections"):
        for each in walk_packages([str(ROOT / package)], f"{package}."):
            if not each.name.endswith("__main__"):
                import_module(each.name)
    gc.freeze()
    while True:
        ready, _, _ = select.select([listening, sys.stdin], [], [])
        if sys.stdin in ready:
            return _reap(0)
        _reap(os.WNOHANG)
        asking, _ = listening.accept()
        if os.fork() == 0:
            listening.close()
            _answer(asking)
        asking.close()


def _reap(options: int) -> None:
    """Record the children that ended, waiting for none of them or for all."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, options) != (0, 0):
            pass


def _answer(asking: socket.socket) -> None:
    size, streams, _, _ = socket.recv_fds(asking, 4, 3)
    body = asking.recv(unpack("!I", size)[0], socket.MSG_WAITALL)
    child = os.fork()
    if child == 0:
        asking.close()
        _become(body.split(b"\0"), streams)
    for each in streams:
        os.close(each)
    _, status = os.waitpid(child, 0)
    asking.sendall(pack("!i", os.waitstatus_to_exitcode(status)))
    os._exit(0)


def _become(sent: list[bytes], streams: list[int]) -> None:
    """End as the installed command would that was started so."""
    from ledger.cli import main as command

    for number, each in enumerate(streams):
        os.dup2(each, number)
        os.close(each)
    folder, count, *rest = sent
    os.chdir(folder)
    sys.argv[:] = [os.fsdecode(each) for each in rest[: int(count)]]
    os.environb.clear()
    os.environb.update(dict(each.split(b"=", 1) for each in rest[int(count) :]))
    sys.exit(command())


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])))
