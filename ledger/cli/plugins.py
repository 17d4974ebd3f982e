"""What the projections bring to the command line, found by entry points; see `ledger.plugins`.

- group `lakeledger.commands`: a function that takes the App and adds commands to it;
- group `lakeledger.views`: a function of a table, by the name of what it gives.
"""

from __future__ import annotations

from typing import Any

from cyclopts import App

from ledger.plugins import load, load_all

COMMANDS = "lakeledger.commands"
VIEWS = "lakeledger.views"


def add_commands(app: App) -> None:
    """Let every installed plug-in add its commands."""
    for add in load_all(COMMANDS):
        add(app)


def view(name: str) -> Any:
    """Return a function that a projection offers.

    Raises:
        MissingDependencyError: No installed package offers it, or it cannot be imported.
    """
    return load(VIEWS, name)
