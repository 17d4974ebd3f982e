"""What other packages bring to the command line, found by their entry points.

`ledger` never imports the projections. They say in their package's metadata what they offer, and
it is loaded when it is needed:

- group `lakeledger.commands`: a function that takes the App and adds commands to it;
- group `lakeledger.views`: a function of a table, by the name of what it gives.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from cyclopts import App

from ledger.model.errors import MissingDependencyError

COMMANDS = "lakeledger.commands"
VIEWS = "lakeledger.views"


def add_commands(app: App) -> None:
    """Let every installed plug-in add its commands."""
    # A package that is on the path twice offers everything twice.
    for offered in {each.name: each for each in entry_points(group=COMMANDS)}.values():
        _load(offered)(app)


def view(name: str) -> Any:
    """Return a function that a projection offers.

    Raises:
        MissingDependencyError: No installed package offers it, or it cannot be imported.
    """
    found: Iterable[EntryPoint] = entry_points(group=VIEWS, name=name)
    offered = next(iter(found), None)
    if offered is None:
        raise MissingDependencyError(
            f"nothing that is installed gives {name!r}; install the package itself, which brings "
            "it: pip install lakeledger (in a checkout: pip install -e .)"
        )
    return _load(offered)


def _load(offered: EntryPoint) -> Any:
    try:
        return offered.load()
    except (ImportError, AttributeError) as error:
        raise MissingDependencyError(
            f"{offered.name} ({offered.value}) cannot be loaded: {error}; install lakeledger anew"
        ) from error
