"""A command's help from its docstring: the text first, the example last, below the options."""

from __future__ import annotations

import inspect
from collections.abc import Callable


def help_and_example(command: Callable[..., None]) -> tuple[str, str]:
    """Return a command's help text, and its example as Markdown.

    The docstring ends in a section `Example:` of indented command lines.
    """
    text, _, example = inspect.getdoc(command).partition("\nExample:\n")  # type: ignore[union-attr]  # commands have one
    return text.strip(), f"Example:\n\n{example.strip(chr(10))}\n"
