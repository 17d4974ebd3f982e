"""Exit codes, error messages and signal handling of commands.

With `--output json` an error is one JSON object on one line of stderr: `error` (the class name),
`kind`, `message`, `exitCode`, and the error's other attributes in camelCase: `commitId`,
`version`, `cell`, `author`, `winner`, `file`, `format`, `rule`, `alternative`.

An exception that a signal handler raises is lost where Python calls a finaliser, and a handler that
takes a lock deadlocks with the code that it interrupted. So commands that run until they are
stopped keep a signal in a plain attribute, too, and check it between two rounds.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from types import FrameType
from typing import Any, Final

from ledger.cli.output import as_json
from ledger.model.errors import (
    AlreadyExistsError,
    CommitConflictError,
    CommitUnknownError,
    DamagedLogError,
    LedgerError,
    MissingDependencyError,
    NotFoundError,
    StoreError,
    UpgradeRequiredError,
)
from ledger.model.messages import printable_line

OK = 0
INVALID_INPUT = 1
USAGE = 2
NAME = 3
CONFLICT = 4
UNKNOWN = 5
DAMAGED = 6
MISSING_DEPENDENCY = 7
STORE = 8
INTERRUPTED = 130
BROKEN_PIPE = 141

MEANINGS: dict[int, str] = {
    OK: "success",
    INVALID_INPUT: "the request was rejected; the message names the rule",
    USAGE: "the command line is invalid",
    NAME: "something does not exist, or already exists",
    CONFLICT: "a concurrent commit changed the same thing first; nothing was written",
    UNKNOWN: "outcome unknown, since the store did not answer; check the log first",
    DAMAGED: "stored data is damaged, or was written by a newer lakeledger",
    MISSING_DEPENDENCY: "a dependency is not installed; the message says how to install it",
    STORE: "the store cannot be used, or failed",
    INTERRUPTED: "interrupted",
    BROKEN_PIPE: "the reader of the output closed the pipe",
}


class UsageError(Exception):
    """The command line is invalid; raised before any I/O."""


_CODES: tuple[tuple[type[Exception], int], ...] = (
    (UsageError, USAGE),
    (NotFoundError, NAME),
    (AlreadyExistsError, NAME),
    (CommitConflictError, CONFLICT),
    (CommitUnknownError, UNKNOWN),
    (DamagedLogError, DAMAGED),
    (UpgradeRequiredError, DAMAGED),
    (MissingDependencyError, MISSING_DEPENDENCY),
    (StoreError, STORE),
    (OSError, STORE),
)


def exit_code_of(error: Exception) -> int:
    """Return the exit code of an error.

    Example:
        >>> exit_code_of(NotFoundError("table shop.orders does not exist"))
        3
    """
    return next((code for kind, code in _CODES if isinstance(error, kind)), INVALID_INPUT)


# From the worst on: what was lost, what is unknown, what an operator has to repair, what a user has
# to correct.
_SEVERITY = (DAMAGED, UNKNOWN, STORE, MISSING_DEPENDENCY, CONFLICT, NAME, USAGE, INVALID_INPUT)


def worst_of(errors: Sequence[Exception]) -> Exception:
    """Return the worst error by exit code, the first one of several.

    Example:
        >>> str(worst_of([NotFoundError("a"), StoreError("b"), StoreError("c")]))
        'b'
    """
    return min(errors, key=lambda error: _SEVERITY.index(exit_code_of(error)))


def run_and_report(command: Callable[[], object], line: Sequence[str]) -> int:
    """Run a command, report an error on stderr, and return the exit code."""
    try:
        command()
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would report the error once more when it closes stdout at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (UsageError, LedgerError, OSError) as error:
        return report_error(error, line)
    return OK


def report_error(error: Exception, line: Sequence[str]) -> int:
    """Report an error on stderr as text or JSON, and return the exit code."""
    code = exit_code_of(error)
    if isinstance(error, OSError):
        message = f"the store failed: {error}"
    else:
        message = str(getattr(error, "message", error))
    return _write_error(message, code, line, _error_facts(error, code))


def interrupted(line: Sequence[str]) -> int:
    """Report an interruption on stderr, and return the exit code."""
    message = "interrupted; a commit in progress was committed as a whole or not at all"
    facts = {"error": "KeyboardInterrupt", "kind": "INTERRUPTED"}
    return _write_error(message, INTERRUPTED, line, facts)


def wants_json(line: Sequence[str]) -> bool:
    """Return whether a command line requests JSON output, even if it is invalid otherwise.

    Example:
        >>> wants_json(["log", "--output", "json"]), wants_json(["log", "--", "--output=json"])
        (True, False)
    """
    words = list(line[: line.index("--")] if "--" in line else line)
    said = {f"{one}={two}" for one, two in pairwise(words)}.union(words)
    return not said.isdisjoint({"--output=json", "--output=jsonl"})


def _write_error(message: str, code: int, line: Sequence[str], facts: Mapping[str, Any]) -> int:
    one_line = printable_line(" ".join(message.split()))
    if wants_json(line):
        document = {**facts, "message": one_line, "exitCode": code}
        sys.stderr.write(f"{as_json(document)}\n")
    else:
        sys.stderr.write(f"lakeledger: {one_line}\n")
    return code


def _error_facts(error: Exception, code: int) -> dict[str, Any]:
    """Return the attributes of an error other than its message, as plain JSON."""
    import msgspec

    known = vars(error) if isinstance(error, LedgerError) else {}
    kind = known.get("kind", getattr(error, "kind", "USAGE" if code == USAGE else "STORE"))
    rest = {
        _to_camel_case(key): msgspec.to_builtins(value, str_keys=True, enc_hook=str)
        for key, value in known.items()
        if key not in {"message", "kind"} and value is not None
    }
    return {"error": type(error).__name__, "kind": kind, **rest}


def _to_camel_case(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)


_LOOKS_EVERY_S: Final = 0.1

_Handler = Callable[[int, FrameType | None], object]


class Stop:
    """Flag that a signal handler sets to end the process."""

    def __init__(self) -> None:
        self.asked = False

    def ask(self, *_signal: object) -> None:
        """Set the flag; a signal handler."""
        self.asked = True

    def interrupt(self, *_signal: object) -> None:
        """Set the flag and interrupt the running call; a signal handler.

        Raises:
            KeyboardInterrupt: Always.
        """
        self.asked = True
        raise KeyboardInterrupt

    def wait(self, seconds: float) -> bool:
        """Wait until the flag is set or the seconds are over; return the flag."""
        until = time.monotonic() + seconds
        while not self.asked and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, _LOOKS_EVERY_S))
        return self.asked

    def sleep(self, seconds: float) -> None:
        """Sleep for a number of seconds.

        Raises:
            KeyboardInterrupt: The flag is set, now or by an interrupt that was swallowed before.
        """
        if self.wait(seconds):
            raise KeyboardInterrupt


@contextmanager
def stop_flag_between_rounds() -> Iterator[Stop]:
    """Yield a flag that SIGINT and SIGTERM set; the running call completes first."""
    stop = Stop()
    with _install_signal_handler(stop.ask, signal.SIGINT, signal.SIGTERM):
        yield stop


@contextmanager
def stop_flag_at_once() -> Iterator[Stop]:
    """Yield a flag that SIGINT sets; the signal also interrupts the running call."""
    stop = Stop()
    with _install_signal_handler(stop.interrupt, signal.SIGINT):
        yield stop


@contextmanager
def _install_signal_handler(handler: _Handler, *signals: signal.Signals) -> Iterator[None]:
    before = {each: signal.signal(each, handler) for each in signals}
    try:
        yield
    finally:
        for each, old in before.items():
            signal.signal(each, old)
