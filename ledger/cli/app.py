"""The command line as a whole: commands, the order of options, errors to exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError

from ledger.cli import commands, exits, plugins, version
from ledger.cli.exits import MEANINGS, UsageError
from ledger.cli.similar import meant
from ledger.model.errors import LedgerError

_EPILOGUE = "\n".join(
    [
        "Exit codes:",
        "",
        *(f"- {code}: {meaning}" for code, meaning in MEANINGS.items()),
        "",
        "With --output json an error is one JSON object on stderr: error, kind, message, exitCode.",
        "",
        "Example:",
        "",
        "    lakeledger quickstart",
    ]
)


def run(line: Sequence[str]) -> int:
    """Run one command line, and tell what ended it; return the exit code."""
    try:
        _run(line)
        sys.stdout.flush()
    except CycloptsError as error:
        return exits.told(UsageError(f"{str(error).rstrip('. ')}. See: lakeledger --help"), line)
    except BrokenPipeError:
        # Python would complain once more when it closes stdout on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return exits.BROKEN_PIPE
    except (UsageError, LedgerError, OSError) as error:
        return exits.told(error, line)
    return exits.OK


def app_for(line: Sequence[str]) -> App:
    """Return the app for a command line: with the command that it names, or an outline of all.

    Raises:
        UsageError: It names a command that there is not.
    """
    app = App(
        name="lakeledger",
        help="One append-only ledger of table changes; every format's metadata is a projection.",
        help_epilogue=_EPILOGUE,
        version=version,
        version_flags=["--version"],
        print_error=False,
        exit_on_error=False,
        help_format="markdown",
    )
    name = line[0] if line else ""
    if name in commands.NAMES:
        commands.register(app, name)
    elif not name or name.startswith("-"):
        # What draws Markdown takes longer to import than all else that the outline needs.
        app.help_format = "plaintext"
        commands.outline(app)
        plugins.outline(app)
    elif name in (installed := plugins.command_names()):
        plugins.register(app, name)
    else:
        raise UsageError(
            f"there is no command {name!r}{meant(name, [*commands.NAMES, *installed])}; "
            "see: lakeledger --help"
        )
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
