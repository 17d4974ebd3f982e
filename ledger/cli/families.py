"""Commands and families of them, such as `view create`; their help is in their docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from cyclopts import App


def family(app: App, name: str, *, text: str, example: str) -> App:
    """Return the family of that name in an app; it is added if it is not there yet.

    Args:
        app: The whole command line.
        name: The first word.
        text: What all of its commands are about.
        example: One command line.
    """
    if name not in app:
        epilogue = f"Example:\n\n    {example}\n"
        app.command(App(name=name, help=text, help_epilogue=epilogue))
    return app[name]


def add(app: App, name: str, command: Callable[..., None]) -> None:
    """Add a command to an app or a family, its help from its docstring."""
    text, example = help_and_example(command)
    app.command(command, name=name, help=text, help_epilogue=example)


def help_and_example(command: Callable[..., None]) -> tuple[str, str]:
    """Return a command's help text, and its example as Markdown.

    The docstring ends in a section `Example:` of indented command lines.
    """
    text, _, example = inspect.getdoc(command).partition("\nExample:\n")  # type: ignore[union-attr]  # commands have one
    return text.strip(), f"Example:\n\n{example.strip(chr(10))}\n"
