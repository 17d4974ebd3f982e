"""The command line as a whole: commands, the order of options, errors to exit codes."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

from cyclopts import (
    App,
    CycloptsError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
)

from ledger.cli.commands import NAMES, outline, register
from ledger.cli.exits import BROKEN_PIPE, MEANINGS, OK, UsageError, told
from ledger.cli.plugins import command_names, outline_plugins, register_plugin
from ledger.cli.version import version
from ledger.model.errors import LedgerError
from ledger.model.messages.similar import similar

_EPILOGUE = "\n".join(
    [
        "Exit codes:",
        "",
        *(f"- {code}: {meaning}" for code, meaning in MEANINGS.items()),
        "",
        "With --output json an error is one JSON object on stderr: error, kind, message, exitCode.",
        "",
        "--install-completion [SHELL] lets Tab complete commands, options, tables, tags.",
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
        return told(_usage(error), line)
    except BrokenPipeError:
        # Python would complain once more when it closes stdout on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except (UsageError, LedgerError, OSError) as error:
        return told(error, line)
    return OK


def app_for(line: Sequence[str]) -> App:
    """Return the app for a command line: with the command that it names, or an outline of all.

    Raises:
        UsageError: It names a command that there is not.
    """
    app = _bare()
    name = line[0] if line else ""
    if name in NAMES:
        register(app, name)
    elif not name or name.startswith("-"):
        # What draws Markdown takes longer to import than all else that the outline needs.
        app.help_format = "plaintext"
        outline(app)
        outline_plugins(app)
    elif name in (installed := command_names()):
        register_plugin(app, name)
    else:
        raise _no_command((), name, [*NAMES, *installed])
    return app


def _bare() -> App:
    return App(
        name="lakeledger",
        help="One append-only ledger of table changes; every format's metadata is a projection.",
        help_epilogue=_EPILOGUE,
        version=version,
        version_flags=["--version"],
        print_error=False,
        exit_on_error=False,
        help_format="markdown",
    )


def _usage(error: CycloptsError) -> UsageError:
    """Return what is wrong with a command line, in our words where cyclopts guesses at random."""
    words = tuple(error.command_chain or ())
    see = " ".join(["lakeledger", *words, "--help"])
    if isinstance(error, UnknownOptionError):
        option = (error.token.keyword or error.token.value).partition("=")[0]
        known = [name for each in error.argument_collection for name in each.names]
        near = similar(option, [each for each in known if each.startswith("--")])
        hint = f": did you mean {near[0]}?" if near else ""
        return UsageError(f"there is no option {option}{hint}; see: {see}")
    if isinstance(error, UnknownCommandError) and error.unused_tokens and error.app:
        known = [each for each in error.app if not each.startswith("-")]
        return _no_command(words, error.unused_tokens[0], known)
    if isinstance(error, UnusedCliTokensError):
        extra = ", ".join(map(repr, error.unused_tokens or ()))
        return UsageError(f"'{' '.join(words)}' has no use for {extra}; see: {see}")
    said = _GUESS.sub("", str(error)).rstrip(". ")
    return UsageError(f"{said}; see: {see}")


def _no_command(before: Sequence[str], name: str, known: Sequence[str]) -> UsageError:
    near = [_OTHER_WORDS[name]] if not before and name in _OTHER_WORDS else similar(name, known)
    here = " ".join(before)
    hint = f": did you mean '{f'{here} {near[0]}'.strip()}'?" if near else ""
    if before and not near:
        what = f"before {name} stands one of" if "." in name else "there are"
        hint = f"; {what}: {', '.join(sorted(known))}"
    see = " ".join(["lakeledger", *before, "--help"])
    return UsageError(f"there is no command '{f'{here} {name}'.strip()}'{hint}; see: {see}")


_GUESS = re.compile(r" Did you mean [^?]*\?")

# What other programs call what is here.
_OTHER_WORDS = {
    **dict.fromkeys(("list", "tables", "databases"), "ls"),
    **dict.fromkeys(("rm", "remove", "delete"), "drop"),
    **dict.fromkeys(("append", "register"), "add-files"),
    **dict.fromkeys(("restore",), "rollback"),
    **dict.fromkeys(("describe", "desc", "schema"), "show"),
    **dict.fromkeys(("select", "query", "scan", "cat"), "head"),
    **dict.fromkeys(("check", "fsck"), "verify"),
    **dict.fromkeys(("gc", "vacuum"), "maintain"),
    "history": "log",
    "mv": "rename",
    "own": "promote",
}


def _run(argv: Sequence[str]) -> None:
    if argv and argv[0] in _COMPLETIONS:
        from ledger.cli.completion import INSTALL, answer, install

        does = install if argv[0] == INSTALL else answer
        does(_bare(), argv[1:])
        return
    line = command_first(argv)
    command, bound, _ = app_for(line).parse_args(line)
    command(*bound.args, **bound.kwargs)


def command_first(argv: Sequence[str]) -> list[str]:
    """Return a command line whose options before the command stand behind it.

    `help show` is `show --help`.

    Example:
        >>> command_first(["--ledger", "./lake", "show", "shop.orders"])
        ['show', '--ledger', './lake', 'shop.orders']
        >>> command_first(["help", "show"])
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


_COMPLETIONS = ("--install-completion", "__complete")
_FLAGS = frozenset({"--", "--help", "-h", "--version"})
