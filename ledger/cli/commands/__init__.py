"""The commands, one module each; a command is a function whose parameters are its options."""

from __future__ import annotations

from collections.abc import Callable

from cyclopts import App

from ledger.cli.commands import view
from ledger.cli.commands.add_files import add_files
from ledger.cli.commands.alter import alter
from ledger.cli.commands.correct_clock import correct_clock
from ledger.cli.commands.create import create
from ledger.cli.commands.doctor import doctor
from ledger.cli.commands.expire import expire
from ledger.cli.commands.head import head
from ledger.cli.commands.init import init
from ledger.cli.commands.log import log
from ledger.cli.commands.maintain import maintain
from ledger.cli.commands.plan import plan
from ledger.cli.commands.quickstart import quickstart
from ledger.cli.commands.rollback import rollback
from ledger.cli.commands.show import show
from ledger.cli.commands.snapshots import snapshots
from ledger.cli.commands.sql import sql
from ledger.cli.commands.tag import tag
from ledger.cli.commands.upgrade import upgrade
from ledger.cli.commands.verify import verify
from ledger.cli.example import help_and_example

_COMMANDS: dict[str, Callable[..., None]] = {
    "quickstart": quickstart,
    "init": init,
    "create": create,
    "alter": alter,
    "plan": plan,
    "sql": sql,
    "add-files": add_files,
    "show": show,
    "head": head,
    "log": log,
    "snapshots": snapshots,
    "tag": tag,
    "rollback": rollback,
    "expire": expire,
    "doctor": doctor,
    "verify": verify,
    "maintain": maintain,
    "upgrade": upgrade,
    "correct-clock": correct_clock,
}

NAMES: tuple[str, ...] = (*_COMMANDS, "view")
"""The names of the commands, in the order of the help."""


def register(app: App) -> None:
    """Add every command to the app."""
    for position, (name, function) in enumerate(_COMMANDS.items()):
        text, example = help_and_example(function)
        app.command(function, name=name, help=text, help_epilogue=example, sort_key=position)
    view.register(app, len(_COMMANDS))


__all__ = ["NAMES", "register"]
