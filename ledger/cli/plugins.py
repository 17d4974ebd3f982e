"""Commands and views of other packages, found by entry points; see `ledger.model.plugins`.

- group `lakeledger.commands`: by a command's name, a function that takes the App and adds the
  command to it. Its docstring's first line is the command's summary, so that listing a command
  takes no more than importing the function's module.
- group `lakeledger.views`: a function of a table, by the name of what it gives.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ledger.model.plugins import load, load_all, names

if TYPE_CHECKING:
    from cyclopts import App

COMMANDS = "lakeledger.commands"
VIEWS = "lakeledger.views"


def command_names() -> list[str]:
    """Return the names of the commands that installed plug-ins add, sorted."""
    return sorted(names(COMMANDS))


def register_plugin(app: App, name: str) -> None:
    """Let a plug-in add its command."""
    load(COMMANDS, name)(app)


def command_summaries() -> dict[str, str]:
    """Return what each command that plug-ins add does, in a line, by its name."""
    commands = load_all(COMMANDS)
    return {name: (add.__doc__ or "").partition("\n")[0] for name, add in commands.items()}


def view(name: str) -> Any:
    """Return a function that a projection offers.

    Raises:
        MissingDependencyError: No installed package offers it, or it cannot be imported.
    """
    return load(VIEWS, name)
