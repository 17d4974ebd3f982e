"""Whole commands on a local ledger, interrupted at one of the calls that change their store.

`python -m tests.programme.interrupted_commands FOLDER RUNS CASE...` runs the command of each case
undisturbed and counts the calls of its stores that change something. Then it forks a process that
runs the command and is interrupted at one of these calls in one of the ways of `Interruption`, runs
the same command line again in another process, and compares the end with the undisturbed one: RUNS
times, spread over calls and ways, or for `all`. It prints one JSON object a run.

The folder of a run is always the same, since ledgers record their URL.
"""

from __future__ import annotations

import enum
import importlib
import json
import os
import shutil
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from ledger.cli import main as run_command_line
from ledger.cli.exits import INTERRUPTED, UNKNOWN
from ledger.stores import LocalStore
from ledger.stores.concurrency import create_one_by_one
from tests.programme.command_cases import CASES, OUTPUT, Case


class Interruption(enum.Enum):
    """The ways to interrupt a command at a call of its store."""

    KILLED_BEFORE = "killed before"
    KILLED_AFTER = "killed after"
    REQUEST_LOST = "request lost"
    ANSWER_LOST = "answer lost"
    CTRL_C = "Ctrl-C"


KILLS: Final = frozenset({Interruption.KILLED_BEFORE, Interruption.KILLED_AFTER})
PRELOADED: Final = (
    *("cyclopts", "rich.progress", "rich.table", "ledger.cli.app", "ledger.cli.options"),
    *("ledger.cli.commands.verify", "ledger.cli.commands.ledgers"),
    *("projections.delta.materialise", "projections.paimon.materialise"),
    *("projections.iceberg.materialise", "projections.statistics.verification"),
    *("projections.iceberg.importing", "projections.delta.importing"),
    *("projections.paimon.importing", "projections.dlf"),
    *("pyarrow.parquet", "pyarrow.compute", "pyiceberg.io.pyarrow", "pypaimon", "duckdb"),
)
"""Imported before the forks: each process would load them again."""


@frozen
class Ended:
    """The end of a process.

    Attributes:
        code: Its exit code; negative: minus the signal that killed it.
        out: What it wrote to stdout.
        err: What it wrote to stderr.
        calls: How many calls changed its stores; 0 where it was killed.
    """

    code: int
    out: bytes
    err: str
    calls: int


def arm(calls: Iterable[str], fatal: int, how: Interruption | None) -> Callable[[], int]:
    """Interrupt this process at one of the calls to come; return what counts them.

    Args:
        calls: The methods of a store that count.
        fatal: The call's number, from 0 on.
        how: None: count the calls only.
    """
    counted = 0
    # Without a thread of its own a log works in its caller's: one order of all calls.
    start = threading.Thread.start

    def start_in_pool(thread: threading.Thread) -> None:
        if not thread.name.startswith("ThreadPoolExecutor"):
            raise RuntimeError("can't start new thread")
        start(thread)

    threading.Thread.start = start_in_pool  # type: ignore[method-assign,assignment]
    os.fsync = os.fdatasync = lambda _descriptor: None  # type: ignore[assignment]

    def interrupted(call: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any) -> Any:
            nonlocal counted
            counted += 1
            if how is None or counted != fatal + 1:
                return call(*arguments)
            return _interrupted(how, lambda: call(*arguments))

        return step

    for name in calls:
        setattr(LocalStore, name, interrupted(getattr(LocalStore, name)))

    def create_many(store: LocalStore, steps: Any, met: Any) -> None:
        create_one_by_one(store.create, steps, met)

    LocalStore.create_many = create_many  # type: ignore[method-assign,assignment]
    return lambda: counted


def _interrupted(how: Interruption, call: Callable[[], Any]) -> Any:
    match how:
        case Interruption.KILLED_BEFORE:
            os.kill(os.getpid(), signal.SIGKILL)
        case Interruption.KILLED_AFTER:
            call()
            os.kill(os.getpid(), signal.SIGKILL)
        case Interruption.REQUEST_LOST:
            raise OSError("the request was lost")
        case Interruption.ANSWER_LOST:
            call()
            raise OSError("the answer was lost")
        case Interruption.CTRL_C:
            os.kill(os.getpid(), signal.SIGINT)
            return call()
    raise AssertionError("a killed process goes on")


def in_child(work: Callable[[], int], folder: Path) -> Ended:
    """Run some work in a process of its own.

    Args:
        work: It; returns the exit code.
        folder: Where its output goes meanwhile.
    """
    process = os.fork()
    if process == 0:
        code = 1
        try:
            for number, name in ((1, "out"), (2, "err")):
                os.dup2(os.open(folder / name, os.O_CREAT | os.O_WRONLY | os.O_TRUNC), number)
            code = work()
        except BaseException:  # noqa: BLE001 - its parent reads what it was
            traceback.print_exc(limit=-6)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    status = os.waitpid(process, 0)[1]
    counted = folder / "calls"
    calls = int(counted.read_text()) if counted.exists() else 0
    counted.unlink(missing_ok=True)
    return Ended(
        os.waitstatus_to_exitcode(status),
        (folder / "out").read_bytes(),
        (folder / "err").read_text(errors="replace"),
        calls,
    )


@frozen
class Programme:
    """Runs of one case.

    Attributes:
        case: The case.
        folder: Where everything is; nothing else uses it.
    """

    case: Case
    folder: Path

    @property
    def home(self) -> Path:
        """The folder that the command works in, the same for each run."""
        return self.folder / "home"

    def prepare(self) -> None:
        """Make what each run starts with."""
        self.home.mkdir()

        def work() -> int:
            self.case.prepare(self.home)
            return 0

        ended = in_child(work, self.folder)
        if ended.code:
            raise AssertionError(ended.err)
        shutil.copytree(self.home, self.folder / "start", symlinks=True)

    def start_again(self) -> None:
        """Put back what each run starts with."""
        shutil.rmtree(self.home)
        shutil.copytree(self.folder / "start", self.home, symlinks=True)

    def command(self, fatal: int = 0, how: Interruption | None = None) -> Ended:
        """Run the command, interrupted at a call or not at all."""

        def work() -> int:
            counted = arm(self.case.calls, fatal, how)
            os.chdir(self.home)
            try:
                return run_command_line([*self.case.line])
            finally:
                (self.folder / "calls").write_text(str(counted()))

        ended = in_child(work, self.folder)
        (self.folder / OUTPUT).write_bytes(ended.out)
        return ended

    def outcome(self) -> dict[str, Any]:
        """Return what the command has left, in words that do not depend on times and ids.

        Raises:
            AssertionError: The ledger or a reader is not well.
        """

        def work() -> int:
            sys.stdout.write(json.dumps(self.case.outcome(self.home)))
            return 0

        found: dict[str, Any] = json.loads(self._checked(work))
        return found

    def _checked(self, work: Callable[[], int]) -> bytes:
        ended = in_child(work, self.folder)
        if ended.code:
            raise AssertionError(ended.err.strip().splitlines()[-1] if ended.err else "no error")
        return ended.out

    def look_between(self) -> None:
        """Check what an interrupted run has left.

        Raises:
            AssertionError: It is not well.
        """

        def work() -> int:
            self.case.between(self.home)
            return 0

        self._checked(work)

    def run(self, runs: int | None) -> Iterator[dict[str, Any]]:
        """Interrupt the command `times` times; at every call in every way if None."""
        self.prepare()
        undisturbed = self.command()
        assert undisturbed.code == 0, undisturbed.err
        wanted = self.outcome()
        yield {"case": self.case.name, "calls": undisturbed.calls}
        ways = [*Interruption]
        points = [(number, how) for number in range(undisturbed.calls) for how in ways]
        if runs is not None:
            calls = [number * undisturbed.calls // runs for number in range(runs)]
            first = len(self.case.name)
            points = [(call, ways[(first + nth) % len(ways)]) for nth, call in enumerate(calls)]
        for number, how in points:
            self.start_again()
            yield {"name": self.case.name, "call": number, "how": how.value} | self._interrupted(
                number, how, wanted
            )

    def _interrupted(
        self, number: int, how: Interruption, wanted: Mapping[str, Any]
    ) -> dict[str, Any]:
        ended = self.command(number, how)
        facts = {"code": ended.code, "err": ended.err[-300:]}
        try:
            self._refuse_untrue(ended, how, wanted)
            self.look_between()
            again = self.command()
            assert again.code == 0, f"the retry ended with {again.code}: {again.err}"
            assert_same(self.outcome(), wanted)
        except AssertionError as error:
            return facts | {"problem": str(error)}
        return facts | {"problem": None}

    def _refuse_untrue(self, ended: Ended, how: Interruption, wanted: Mapping[str, Any]) -> None:
        """Compare what the interrupted command said with what it has left."""
        if how in KILLS:
            assert ended.code == -signal.SIGKILL, f"it ended with {ended.code}: {ended.err}"
            return
        assert "Traceback" not in ended.err, ended.err
        if ended.code == 0:
            assert_same(self.outcome(), wanted)
        elif ended.code not in (UNKNOWN, INTERRUPTED) and self.case.is_done(self.home):
            assert self.case.admitted in ended.err, (
                f"it said that it failed, and it is done: {ended.err}"
            )


def assert_same(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    """Compare what two runs have left.

    Raises:
        AssertionError: They differ; the message says in what.
    """
    for key in sorted({*found, *wanted}):
        one, two = found.get(key), wanted.get(key)
        assert one == two, f"{key} is {str(one)[:600]} instead of {str(two)[:600]}"


def main(folder: str, runs: str, *cases: str) -> None:
    """Run some cases and print what happened."""
    for each in PRELOADED:
        importlib.import_module(each)
    for name in [each for each in os.environ if each.startswith("LAKELEDGER_")]:
        del os.environ[name]
    os.environ["LAKELEDGER_CONFIG"] = str(Path(folder, "no-profiles.toml"))
    for case in cases:
        below = Path(folder, case)
        below.mkdir()
        for line in Programme(CASES[case], below).run(None if runs == "all" else int(runs)):
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
