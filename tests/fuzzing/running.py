"""Runs one input: it is read as a user's program would, and what came of it is classified.

Allowed are success, a LedgerError and an OSError. Anything else is a finding: another exception, a
file written although the input was rejected, a file opened outside of the source folder, a host
called, a command started, more time or memory than the limits.
"""

from __future__ import annotations

import gc
import io
import signal
import sys
import sysconfig
import tempfile
import threading
import traceback
import zoneinfo
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pyarrow as pa
import pytest
from attrs import define, field, frozen

from ledger import Ledger, LedgerError, Table
from ledger.opening.ledger_file import ROOT_KEY
from ledger.relocation.importing import import_lines
from ledger.stores import MemoryStore
from ledger.table_handle import handle_of
from tests.faults import Inline
from tests.fuzzing.cases import LOCATION, Case, laid_out
from tests.lakes import lake_on, no_time, ticking

SECONDS: Final = 10
"""Limit of one input's processor time; of its wall time the fourfold, on a busy machine."""

_NOW: Final = 4_000_000_000_000
"""Later than what the seeds say, which an import would reject otherwise."""

_CHECKOUT: Final = str(Path(__file__).parents[2])
_LIBRARIES: Final = (
    *{*sysconfig.get_paths().values(), *zoneinfo.TZPATH, sys.prefix, sys.base_prefix, "/proc/"},
    *([sys.pycache_prefix] if sys.pycache_prefix else []),
)
_FORBIDDEN: Final = (
    *("socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec"),
    *("os.posix_spawn", "os.fork", "os.spawn"),
)


@frozen
class Outcome:
    """The outcome of an input.

    Attributes:
        kind: `accepted`, `rejected`, or `finding`.
        what: The class of the error, and where it was raised or which rule was broken; the same
            for all inputs of one cause.
        detail: The traceback, for people.
    """

    kind: str
    what: str
    detail: str = ""


class TooSlowError(BaseException):
    """An input takes longer than its limit; no handler of the code under test catches it."""


@define
class _Watch:
    """Notes files that are opened, hosts that are called and commands that are started.

    Attributes:
        allowed: Path prefixes that may be opened; None while no input runs.
        mine: The thread that runs the input, and threads that it started; others end what
            earlier tests began.
        broken: The rules that were broken.
        path: The file outside of the source that was opened, for people.
    """

    allowed: tuple[str, ...] | None = None
    mine: set[int] = field(factory=set)
    broken: list[str] = field(factory=list)
    path: str = ""

    def begin(self, allowed: tuple[str, ...]) -> None:
        """Watch from now on, whatever thread acts that the input could have started."""
        gc.collect()  # What earlier tests left may open files when it is freed.
        self.mine = {threading.get_ident()}
        self.broken.clear()
        self.path = ""
        self.allowed = allowed

    def event(self, name: str, args: tuple[Any, ...]) -> None:
        """Take an audit event of Python's."""
        if self.allowed is None or threading.get_ident() not in self.mine:
            return
        if name in _FORBIDDEN:
            self.broken.append(f"{name} was called")
        elif name == "open" and isinstance(args[0], str | bytes):
            path = args[0].decode(errors="replace") if isinstance(args[0], bytes) else args[0]
            if not path.startswith(self.allowed):
                self.broken.append("a file outside of the source was opened")
                self.path = path


_WATCH: Final = _Watch()
_is_installed: list[bool] = []


def _install() -> None:
    """Install the audit hook, which Python keeps to its end."""
    if not _is_installed:
        _is_installed.append(True)
        sys.addaudithook(_WATCH.event)


def run(case: Case) -> Outcome:
    """Run one input and return what came of it."""
    _install()
    with tempfile.TemporaryDirectory() as root, laid_out(case, Path(root)) as folder:
        bodies = MemoryStore("fuzzing")._memory.bodies
        bodies.clear()
        lake = lake_on(MemoryStore("fuzzing"), ticking(_NOW), no_time())
        # A compressed file still has the stand-in of the folder's path, which leads nowhere.
        _WATCH.begin((str(folder), LOCATION, _CHECKOUT, *_LIBRARIES))
        try:
            with _worker_of_caller(), _time_limit():
                _TARGETS[case.target](lake, folder, bodies)
            found = Outcome("accepted", "")
        except (LedgerError, OSError) as error:
            found = Outcome("rejected", _place_of(error))
        except (Exception, TooSlowError) as error:  # noqa: BLE001 - these are what is looked for
            detail = "".join(traceback.format_exception(error))
            found = Outcome("finding", _place_of(error), detail[-20_000:])
        finally:
            _WATCH.allowed = None
        if _WATCH.broken:
            return Outcome("finding", _WATCH.broken[0], f"{_WATCH.path}\n{found.detail}")
        return found


def _place_of(error: BaseException) -> str:
    """Return an error's class and the innermost function of the code under test."""
    name, frame = "", error.__traceback__
    while frame is not None:
        code = frame.tb_frame.f_code
        if code.co_filename.startswith((f"{_CHECKOUT}/ledger", f"{_CHECKOUT}/projections")):
            name = f"{code.co_filename.removeprefix(_CHECKOUT)[1:]} {code.co_name}"
        frame = frame.tb_next
    return f"{type(error).__name__} in {name}"


@contextmanager
def _worker_of_caller() -> Iterator[None]:
    """Save caches in the calling thread, and watch the threads that an input starts."""
    begin = threading.Thread.start

    def start(thread: threading.Thread) -> None:
        is_mine = threading.get_ident() in _WATCH.mine
        begin(thread)
        if is_mine and thread.ident is not None:
            _WATCH.mine.add(thread.ident)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ledger.log.stream_log.BackgroundWorker", Inline)
        patch.setattr(threading.Thread, "start", start)
        yield


@contextmanager
def _time_limit() -> Iterator[None]:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TooSlowError

    before = [signal.signal(each, stop) for each in (signal.SIGPROF, signal.SIGALRM)]
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    signal.setitimer(signal.ITIMER_REAL, 4 * SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGPROF, before[0])
        signal.signal(signal.SIGALRM, before[1])


class WrittenError(Exception):
    """A rejected input left something in the ledger."""


Bodies = dict[str, bytes]


def _import(format_name: str) -> Callable[[Ledger, Path, Bodies], None]:
    def read(lake: Ledger, folder: Path, bodies: Bodies) -> None:
        lake.create_database("d")
        before = dict(bodies)
        name, source = "d.t", str(folder)
        try:
            lake.plan_import(name, source, format_name=format_name)
        except (LedgerError, OSError):
            _refuse_written(before, bodies, "a plan that was rejected")
            with _expected():
                lake.import_table(name, source, format_name=format_name)
            _refuse_written(before, bodies, "an import that was rejected")
            raise
        _refuse_written(before, bodies, "a plan")
        lake.import_table(name, source, format_name=format_name)
        _look(lake.table(name))
        lake.import_table(name, source, format_name=format_name)
        with _expected():
            lake.tables_to_import(str(folder.parent), format_name=format_name)
        with _expected():
            lake.plan_promotion(name)

    return read


@contextmanager
def _expected() -> Iterator[None]:
    """Pass over the errors that are allowed."""
    try:
        yield
    except (LedgerError, OSError):
        return


def _refuse_written(before: Bodies, bodies: Bodies, what: str) -> None:
    if before != bodies:
        names = sorted({*bodies} ^ {*before})
        raise WrittenError(f"{what} left {names[:3]}")


def _look(table: Table) -> None:
    """Read what came in, as pages and commands do."""
    for read in (table.entries, table.at, table.blame, table.report, lambda: table.diff(0)):
        with _expected():
            found = read()
            for each in found if isinstance(found, Iterator) else [found]:
                each if isinstance(each, str) else each._repr_html_()


def _export(lake: Ledger, folder: Path, bodies: Bodies) -> None:
    lines = (folder / "ledger.jsonl").read_bytes() if (folder / "ledger.jsonl").exists() else b""
    try:
        import_lines(handle_of(lake).setting, io.BytesIO(lines))
    except (LedgerError, OSError):
        if ROOT_KEY in bodies:
            raise WrittenError("a rejected export can be opened as a ledger") from None
        raise
    for name in lake.tables():
        with _expected():
            _look(lake.table(name))
    with _expected():
        lake.report()


_COLUMNS: Final = [("id", pa.int64()), ("name", pa.string()), ("s", pa.list_(pa.int64()))]


def _parquet(lake: Ledger, folder: Path, bodies: Bodies) -> None:
    del bodies
    lake.create_database("d")
    table = lake.create_table("d.t", pa.schema(_COLUMNS))
    table.add_files([str(each) for each in sorted(folder.rglob("*.parquet"))])
    _look(table)


_TARGETS: Final[dict[str, Callable[[Ledger, Path, Bodies], None]]] = {
    **{each: _import(each) for each in ("iceberg", "delta", "paimon")},
    "export": _export,
    "parquet": _parquet,
}
