"""The command line as a whole: commands, the order of options, errors to exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import structlog
from cyclopts import App, CycloptsError

from ledger.cli import commands, exits, plugins
from ledger.cli.exits import MEANINGS, UsageError, code_of
from ledger.cli.screen import visible
from ledger.model.errors import LedgerError

_EPILOGUE = "\n".join(
    [
        "Exit codes:",
        "",
        *(f"- {code}: {meaning}" for code, meaning in MEANINGS.items()),
        "",
        "Example:",
        "",
        "    lakeledger quickstart",
    ]
)


def main(argv: Sequence[str] | None = None) -> int:  # noqa: PLR0911 - one exit a kind of error
    """Run one command.

    Args:
        argv: The command line without the program's name; the process's own when None.

    Returns:
        The exit code: 0 when done, else the reason (see `exits`).
    """
    line = sys.argv[1:] if argv is None else list(argv)
    _log_to_stderr()
    try:
        _run(line)
        sys.stdout.flush()
    except UsageError as error:
        return _said(str(error), exits.USAGE)
    except CycloptsError as error:
        return _said(f"{str(error).rstrip('. ')}. See: lakeledger --help", exits.USAGE)
    except LedgerError as error:
        return _said(error.message, code_of(error))
    except KeyboardInterrupt:
        return _said(
            "interrupted; a commit under way has landed whole or not at all", exits.INTERRUPTED
        )
    except BrokenPipeError:
        # Python would complain once more when it closes stdout on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.BROKEN_PIPE
    except OSError as error:
        return _said(f"the store failed: {error}", exits.STORE)
    return exits.OK


def app_for(line: Sequence[str]) -> App:
    """Return the app for a command line; plug-ins are loaded unless a command of ours is named."""
    app = App(
        name="lakeledger",
        help="One append-only ledger of table changes; every format's metadata is a projection.",
        help_epilogue=_EPILOGUE,
        help_format="markdown",
        version=_version,
        version_flags=["--version"],
        print_error=False,
        exit_on_error=False,
    )
    commands.register(app)
    if not line or line[0] not in commands.NAMES:
        plugins.add_commands(app)
    return app


def _run(argv: Sequence[str]) -> None:
    line = command_first(argv)
    command, bound, _ = app_for(line).parse_args(line)
    command(*bound.args, **bound.kwargs)


def command_first(argv: Sequence[str]) -> list[str]:
    """Return a command line whose options before the command stand behind it.

    Example:
        >>> command_first(["--ledger", "./lake", "show", "shop.orders"])
        ['show', '--ledger', './lake', 'shop.orders']
    """
    position = 0
    while position < len(argv) and argv[position] not in _FLAGS and argv[position].startswith("--"):
        position += 1 if "=" in argv[position] else 2
    if position == 0 or position >= len(argv) or argv[position] in _FLAGS:
        return list(argv)
    return [argv[position], *argv[:position], *argv[position + 1 :]]


_FLAGS = frozenset({"--", "--help", "-h", "--version"})


def _version() -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("lakeledger")
    except PackageNotFoundError:
        return "not installed"


def _said(message: str, code: int) -> int:
    one_line = " ".join(visible(message).split())
    sys.stderr.write(f"lakeledger: {one_line}\n")
    return code


def _log_to_stderr() -> None:
    # structlog's own default is stdout, where it would stand inside JSON documents.
    if not structlog.is_configured():
        structlog.configure(logger_factory=lambda *_: structlog.PrintLogger(sys.stderr))
