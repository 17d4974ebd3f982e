"""Registration of command groups such as `view create`, and of other packages' commands and views.

Entry points, see `ledger.model.plugins`:

- group `lakeledger.commands`: by a command's name, a function that takes the App and adds the
  command to it. The first line of its docstring is the command's summary, so that listing commands
  takes no more than importing the function's module.
- group `lakeledger.views`: a function of a table, by the name of what it gives.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ledger.model.plugins import load, load_all_plugins, names

if TYPE_CHECKING:
    from cyclopts import App


def family(app: App, name: str, *, text: str, example: str) -> App:
    """Return the command group of a name in an app; add it if it is missing.

    Args:
        app: Application.
        name: First word of the group's commands.
        text: Help text of the group.
        example: Example command line.
    """
    if name not in app:
        # The overview of the commands, which imports this module, starts without cyclopts.
        from cyclopts import App

        epilogue = f"Example:\n\n    {example}\n"
        app.command(App(name=name, help=text, help_epilogue=epilogue))
    return app[name]


def add(app: App, name: str, command: Callable[..., None]) -> None:
    """Add a command to an app or a group, with its help from its docstring."""
    text, example = help_and_example(command)
    app.command(command, name=name, help=text, help_epilogue=example)


def help_and_example(command: Callable[..., None]) -> tuple[str, str]:
    """Return the help text of a command, and its example as Markdown.

    The docstring ends in a section `Example:` of indented command lines.
    """
    text, _, example = inspect.getdoc(command).partition("\nExample:\n")  # type: ignore[union-attr]  # commands have one
    return text.strip(), f"Example:\n\n{example.strip(chr(10))}\n"


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
    commands = load_all_plugins(COMMANDS)
    return {name: (add.__doc__ or "").partition("\n")[0] for name, add in commands.items()}


def view(name: str) -> Any:
    """Return a function that a projection offers.

    Raises:
        MissingDependencyError: No installed package offers it, or it cannot be imported.
    """
    return load(VIEWS, name)
