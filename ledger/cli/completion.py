"""Completion in a shell: the script that is installed once, and the names that it asks for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cyclopts import App
from cyclopts.completion import ShellDetectionError

from ledger.cli.commands import NAMES, register
from ledger.cli.exits import UsageError
from ledger.cli.plugins import command_names, register_plugin
from ledger.cli.screen import Screen

INSTALL = "--install-completion"
ASKED = "__complete"
"""What an installed script puts before the words that were typed so far."""
SHELLS = ("bash", "zsh", "fish", "powershell")


def answer(app: App, words: Sequence[str]) -> None:
    """Print what the last word may become, as the installed script reads it."""
    named = next((each for each in words if not each.startswith("-")), "")
    _take(app, [named] if named in NAMES else [])
    command, bound, _ = app.parse_args([ASKED, *words])
    command(*bound.args, **bound.kwargs)


def install(app: App, words: Sequence[str]) -> None:
    """Write the script for a shell to where the shell looks for it, and tell the shell.

    Args:
        app: The command line, without commands yet.
        words: The shell's name; none for the shell that this was started from.

    Raises:
        UsageError: There is no such shell, or none can be made out.
    """
    shell: Any = words[0] if words else None
    if len(words) > 1 or shell not in {None, *SHELLS}:
        raise UsageError(f"{' '.join(words)} is no shell that is known; there are: {_known()}")
    _take(app, NAMES)
    try:
        path = app.install_completion(shell=shell)
    except ShellDetectionError:
        raise UsageError(
            f"which shell? write lakeledger {INSTALL} SHELL, one of {_known()}"
        ) from None
    screen = Screen("text")
    screen.line(f"wrote {path}; every shell that begins from now on completes")
    if path.suffix == "" and path.name.startswith("_"):
        screen.line("zsh does once ~/.zshrc has, at its end: autoload -Uz compinit && compinit")


def _known() -> str:
    return ", ".join(SHELLS)


def _take(app: App, own: Sequence[str]) -> None:
    for name in own:
        register(app, name)
    for name in command_names():
        register_plugin(app, name)
