"""What the projections bring to the command line, by entry points; see `ledger.model.installed`.

- group `lakeledger.commands`: by a command's name, a function that takes the App and adds the
  command to it. Its docstring's first line is the command's summary, so that listing a command
  takes no more than importing the function's module.
- group `lakeledger.views`: a function of a table, by the name of what it gives.
"""

from __future__ import annotations

import inspect
from typing import Any

from cyclopts import App

from ledger.model.installed import load, load_all, names

COMMANDS = "lakeledger.commands"
VIEWS = "lakeledger.views"


def command_names() -> list[str]:
    """Return the names of the commands that installed plug-ins add, sorted."""
    return sorted(names(COMMANDS))


def register_plugin(app: App, name: str) -> None:
    """Let a plug-in add its command."""
    load(COMMANDS, name)(app)


def outline_plugins(app: App) -> None:
    """Add every plug-in's command to the app by its summary alone."""
    for name, add in load_all(COMMANDS).items():
        summary = inspect.getdoc(add) or ""
        app.command(_never, name=name, help=summary.partition("\n")[0])


def _never() -> None:
    """Stand for a command that is listed and not called."""


def view(name: str) -> Any:
    """Return a function that a projection offers.

    Raises:
        MissingDependencyError: No installed package offers it, or it cannot be imported.
    """
    return load(VIEWS, name)
