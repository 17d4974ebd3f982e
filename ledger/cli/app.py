"""The command line application: registration, parsing errors, completion, version."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from cyclopts import (
    App,
    Argument,
    CycloptsError,
    Group,
    MissingArgumentError,
    UnknownCommandError,
    UnknownOptionError,
    UnusedCliTokensError,
    ValidationError,
)
from cyclopts.completion import ShellDetectionError

from ledger.cli.commands import NAMES, register
from ledger.cli.exits import UsageError
from ledger.cli.families import command_names, register_plugin
from ledger.cli.output import Screen, colour_system
from ledger.cli.quoting import advise_quotes
from ledger.model.errors import InvalidInputError
from ledger.model.messages import similar_names


def run(line: Sequence[str]) -> None:
    """Run a command line that names a command.

    Raises:
        UsageError: The command line is invalid.
        LedgerError: The command failed.
    """
    try:
        command, bound, _ = app_for(line).parse_args(line)
        command(*bound.args, **bound.kwargs)
    except CycloptsError as error:
        raise _usage_error_of(error, line) from None


def complete(argv: Sequence[str]) -> None:
    """Install a shell completion script, or print completions for it.

    Raises:
        UsageError: The shell is not supported or cannot be detected.
    """
    does = write_completion_script if argv[0] == INSTALL else print_completions
    does(_app_without_commands(), argv[1:])


def app_for(line: Sequence[str]) -> App:
    """Return the app for a command line, with the command that it names.

    Raises:
        UsageError: There is no such command.
    """
    app = _app_without_commands()
    name = line[0]
    if name in NAMES:
        register(app, name)
    elif name in (installed := command_names()):
        register_plugin(app, name)
    else:
        raise unknown_command_error((), name, [*NAMES, *installed])
    return app


def _app_without_commands() -> App:
    # cyclopts would still print bold text without colours.
    plain = None
    if colour_system() is None:
        from rich.console import Console

        plain = Console(color_system=None)
    return App(
        name="lakeledger",
        version_flags=[],
        print_error=False,
        exit_on_error=False,
        help_format="markdown",
        console=plain,
    )


def _usage_error_of(error: CycloptsError, line: Sequence[str]) -> UsageError:
    """Translate a parsing error; cyclopts' own hints can be misleading."""
    words = tuple(error.command_chain or ())
    see = " ".join(["lakeledger", *words, "--help"])
    if isinstance(error, UnknownOptionError):
        option = (error.token.keyword or error.token.value).partition("=")[0]
        known = [name for each in error.argument_collection for name in each.names]
        near = similar_names(option, [each for each in known if each.startswith("--")])
        near += [each for each in _OTHER_OPTIONS.get(option, ()) if each.split()[0] in known]
        hint = f": did you mean {near[0]}?" if near else ""
        return UsageError(f"there is no option {option}{hint}; see: {see}")
    if isinstance(error, UnknownCommandError) and error.unused_tokens and error.app:
        known = [each for each in error.app if not each.startswith("-")]
        return unknown_command_error(words, error.unused_tokens[0], known)
    if isinstance(error, UnusedCliTokensError):
        tokens = list(error.unused_tokens or ())
        extra = ", ".join(map(repr, tokens))
        own = _specific_options(error)
        hint = f"; its options are {', '.join(own)}" if own else ""
        if "--at" in own and len(tokens) == 1 and _is_instant(tokens[0]):
            hint = f"; an instant is an option: --at {tokens[0]}"
        rule = f"'{' '.join(words)}' does not take {extra}{hint}"
        return UsageError(f"{advise_quotes(line, tokens) or rule}; see: {see}")
    if isinstance(error, MissingArgumentError) and error.argument is not None:
        if error.keyword is not None:
            return UsageError(f"{error.keyword} needs a value; see: {see}")
        return UsageError(f"'{' '.join(words)}' needs {error.argument.name}; see: {see}")
    if isinstance(error, ValidationError) and error.argument is not None:
        value = error.argument.value
        # Each value of an option that can be repeated was given by itself.
        error.value = ", ".join(value) if isinstance(value, tuple) else value
    said = _GUESS.sub("", str(error)).rstrip(". ")
    return UsageError(f"{said}; see: {see}")


def _is_instant(text: str) -> bool:
    from ledger.model.instant_text import parse_instant

    try:
        return parse_instant(text, 0) is not None
    except InvalidInputError:
        return False


def _specific_options(error: CycloptsError) -> list[str]:
    """Return the options of a command, without those that most commands share."""
    if error.app is None or error.target is None:
        return []
    return [
        name
        for each in error.app.assemble_argument_collection()
        for name in each.names
        if name.startswith("--") and not _help_group_names(each) & _OF_MANY
    ]


def _help_group_names(argument: Argument) -> set[str]:
    group = argument.parameter.group
    several = [group] if group is None or isinstance(group, str | Group) else group
    return {str(getattr(each, "name", each)) for each in several}


def unknown_command_error(before: Sequence[str], name: str, known: Sequence[str]) -> UsageError:
    """Return the error of a command line that names an unknown command.

    Args:
        before: Words of the group of commands; empty for `lakeledger` itself.
        name: The unknown command.
        known: Names of the commands that there are.
    """
    if before and name.startswith("-"):
        words = " ".join(before)
        return UsageError(
            f"'{words}' needs a command before {name}; choose one of: {', '.join(sorted(known))}; "
            f"see: lakeledger {words} --help"
        )
    near = (
        [_OTHER_WORDS[name]] if not before and name in _OTHER_WORDS else similar_names(name, known)
    )
    here = " ".join(before)
    hint = f": did you mean '{f'{here} {near[0]}'.strip()}'?" if near else ""
    if before and not near:
        what = f"before {name} write one of" if "." in name else "choose one of"
        hint = f"; {what}: {', '.join(sorted(known))}"
    see = " ".join(["lakeledger", *before, "--help"])
    return UsageError(f"there is no command '{f'{here} {name}'.strip()}'{hint}; see: {see}")


_OF_MANY = frozenset({"Ledger and output", "Commit"})

# Options of other commands and programs, and the option here that does the same.
_OTHER_OPTIONS = {
    "--add-column": ("--add",),
    "--drop-column": ("--drop",),
    "--rename-column": ("--rename",),
    "--partition-by": ("--partition-key",),
    "--as-of": ("--at", "--to"),
    "--at": ("--until", "--to"),
    "--branch": ("--at branch:NAME",),
    "--by": ("--author",),
    "--delete": ("--drop",),
    "--filter": ("--where",),
    "--partition": ("--where",),
    "--select": ("--columns",),
    "--snapshot": ("--at snapshot:ID", "--to snapshot:ID"),
    "--snapshot-id": ("--at snapshot:ID", "--to snapshot:ID"),
    "--table": ("--like",),
    "--tag": ("--at tag:NAME", "--to tag:NAME"),
    "--top": ("--limit",),
    "--url": ("--ledger",),
    "--version": ("--at", "--to"),
    "-m": ("--message",),
    "-n": ("--limit",),
    "-o": ("--output",),
}

_GUESS = re.compile(r" Did you mean [^?]*\?")

# Commands of other programs, and the command here that does the same.
_OTHER_WORDS = {
    **dict.fromkeys(("list", "tables", "databases"), "ls"),
    **dict.fromkeys(("rm", "remove", "delete"), "drop"),
    **dict.fromkeys(("insert", "load", "write"), "append"),
    **dict.fromkeys(("register", "add"), "add-files"),
    **dict.fromkeys(("create-database", "create-table", "mkdb", "new"), "create"),
    **dict.fromkeys(("drop-table", "drop-database"), "drop"),
    **dict.fromkeys(("describe", "desc", "schema"), "show"),
    **dict.fromkeys(("select", "query"), "sql"),
    **dict.fromkeys(("scan", "cat"), "head"),
    **dict.fromkeys(("check", "fsck"), "verify"),
    **dict.fromkeys(("gc", "vacuum"), "maintain"),
    "checkout": "show",
    "history": "log",
    "mv": "rename",
    "own": "promote",
    "reset": "restore",
    "revert": "undo",
}


INSTALL = "--install-completion"
ASKED = "__complete"
"""First word that an installed completion script passes, before the words typed so far."""
SHELLS = ("bash", "zsh", "fish", "powershell")


def print_completions(app: App, words: Sequence[str]) -> None:
    """Print the completions of the last word in the format of the installed script."""
    named = next((each for each in words if not each.startswith("-")), "")
    _register_commands(app, [named] if named in NAMES else [])
    command, bound, _ = app.parse_args([ASKED, *words])
    command(*bound.args, **bound.kwargs)


def write_completion_script(app: App, words: Sequence[str]) -> None:
    """Install the completion script of a shell where the shell looks for it.

    Args:
        app: The command line, without commands yet.
        words: The shell's name; empty to detect the current shell.

    Raises:
        UsageError: The shell is not supported or cannot be detected.
    """
    shell: Any = words[0] if words else None
    if len(words) > 1 or shell not in {None, *SHELLS}:
        raise UsageError(f"unsupported shell {' '.join(words)}; choose one of: {_shells()}")
    _register_commands(app, NAMES)
    try:
        path = app.install_completion(shell=shell)
    except ShellDetectionError:
        raise UsageError(
            f"the shell cannot be detected; write lakeledger {INSTALL} SHELL, one of {_shells()}"
        ) from None
    screen = Screen("text")
    screen.line(f"wrote {path}; new shells complete lakeledger commands")
    if path.suffix == "" and path.name.startswith("_"):
        screen.line("zsh also needs this at the end of ~/.zshrc: autoload -Uz compinit && compinit")


def _shells() -> str:
    return ", ".join(SHELLS)


def _register_commands(app: App, own: Sequence[str]) -> None:
    for name in own:
        register(app, name)
    for name in command_names():
        register_plugin(app, name)
