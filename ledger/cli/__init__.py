"""The `lakeledger` command line."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from functools import partial
from typing import Literal

Asked = Literal["command", "completion", "overview", "version", "nothing"]

_COMPLETIONS = ("--install-completion", "__complete")
_FLAGS = frozenset({"--", "--help", "-h", "--version"})


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command.

    Args:
        argv: The command line without the program's name; the process's own when None.

    Returns:
        The exit code: 0 when done, else the reason (see `exits`).
    """
    if argv is None:
        # Imported objects are never garbage. Collecting them takes 5 % of startup, and as long
        # again at exit.
        gc.set_threshold(200_000, 20, 20)
        atexit.register(gc.freeze)
    line = sys.argv[1:] if argv is None else list(argv)
    _redirect_closed_streams()
    try:
        if argv is None and asked(line) == "command":
            _print_warnings_as_text()
        return _run_command_line(line)
    except KeyboardInterrupt:
        from ledger.cli.exits import interrupted

        return interrupted(line)


def _print_warnings_as_text() -> None:
    from ledger.model.messages import printable_line
    from ledger.observing.telemetry import show_warnings

    show_warnings(lambda text: sys.stderr.write(f"lakeledger: warning: {printable_line(text)}\n"))


def _redirect_closed_streams() -> None:
    """Redirect streams that the caller closed to the null device, as `print` does."""
    # Otherwise a file of the ledger could get the stream's descriptor number.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115, PTH123 - open to the end
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115, PTH123


def _run_command_line(line: Sequence[str]) -> int:
    """Run a command line; import only the modules that it needs."""
    about = asked(line)
    if about == "version":
        sys.stdout.write(f"{_installed_version()}\n")
        return 0

    from ledger.cli.exits import UsageError, report_error, run_and_report

    match about:
        case "overview":
            from ledger.cli.overview import print_overview

            return run_and_report(print_overview, line)
        case "nothing":
            return report_error(UsageError("no command given; see: lakeledger --help"), line)
        case "completion":
            from ledger.cli.app import complete

            return run_and_report(partial(complete, line), line)
        case "command":
            from ledger.cli.app import run

            return run_and_report(partial(run, move_options_behind_command(line)), line)


def _installed_version() -> str:
    from importlib import metadata

    try:
        return metadata.version("lakeledger")
    except metadata.PackageNotFoundError:
        return "not installed"


def asked(line: Sequence[str]) -> Asked:
    """Return the kind of a command line.

    Example:
        >>> asked(["log", "--help"]), asked([]), asked(["--ledger", "lake", "--help"])
        ('command', 'overview', 'overview')
        >>> asked(["--ledger", "lake"])
        'nothing'
    """
    if line and line[0] in _COMPLETIONS:
        return "completion"
    first = move_options_behind_command(line)
    if first and not first[0].startswith("-"):
        return "command"
    if not first or not {"--help", "-h"}.isdisjoint(first):
        return "overview"
    return "version" if "--version" in first else "nothing"


def move_options_behind_command(argv: Sequence[str]) -> list[str]:
    """Return a command line with the options before the command moved behind it.

    `help show` is `show --help`.

    Example:
        >>> move_options_behind_command(["--ledger", "./lake", "show", "shop.orders"])
        ['show', '--ledger', './lake', 'shop.orders']
        >>> move_options_behind_command(["help", "show"])
        ['show', '--help']
    """
    if argv and argv[0] == "help":
        return [*argv[1:], "--help"]
    position = 0
    while position < len(argv) and argv[position] not in _FLAGS and argv[position].startswith("--"):
        position += 1 if "=" in argv[position] else 2
    if position == 0 or position >= len(argv) or argv[position] in _FLAGS:
        return list(argv)
    return [argv[position], *argv[:position], *argv[position + 1 :]]


__all__ = ["main"]
