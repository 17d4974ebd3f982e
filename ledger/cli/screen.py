"""Where output goes: results to stdout, as text or one JSON document; all else to stderr."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

# What prints is imported when there is something to print.
if TYPE_CHECKING:
    from rich.console import Console

Output: TypeAlias = Literal["text", "json", "jsonl"]
Document: TypeAlias = Mapping[str, Any]
Cell: TypeAlias = str | int | None

# Nobody reads a pipe by the window's width, so nothing is cut there.
_PIPE_WIDTH = 4_000


def result_console(width: int | None) -> Console:
    """Return what prints results: texts as they are, never as markup.

    Args:
        width: How wide; None: as the terminal is, or 80 columns where there is none.
    """
    from rich.console import Console

    class ResultConsole(Console):
        """A console that lets a broken pipe rise, so that one place decides what it means."""

        def on_broken_pipe(self) -> None:
            raise  # noqa: PLE0704 - rich calls this while it handles the BrokenPipeError

    return ResultConsole(file=sys.stdout, width=width, markup=False, highlight=False, emoji=False)


class Screen:
    """What a command prints to. Texts from users are shown as they are, never as markup.

    Args:
        output: Whether results are text, one JSON document, or JSON a line.
    """

    def __init__(self, output: Output = "text") -> None:
        self.output = output

    @cached_property
    def _results(self) -> Console:
        return result_console(None if sys.stdout.isatty() else _PIPE_WIDTH)

    @cached_property
    def _notices(self) -> Console:
        from rich.console import Console

        return Console(file=sys.stderr, markup=False, highlight=False, emoji=False, soft_wrap=True)

    def result(self, document: Document, text: Callable[[Screen], None]) -> None:
        """Print a command's result: the document under `--output json`, else what `text` prints.

        Args:
            document: Plain JSON; keys in camelCase.
            text: Prints the same for people, through `line`, `heading` and `table`.
        """
        match self.output:
            case "json":
                sys.stdout.write(as_json(document, indent=2) + "\n")
            case "jsonl":
                sys.stdout.write(as_json(document) + "\n")
            case "text":
                text(self)

    def results(
        self, name: str, documents: Iterable[Document], text: Callable[[Screen], None]
    ) -> None:
        """Print a command's result that is a list: JSON is one document, or a line a member.

        Args:
            name: What the list is called in the one document.
            documents: The members; made only where JSON is wanted.
            text: Prints the same for people.
        """
        if self.output == "jsonl":
            for each in documents:
                sys.stdout.write(as_json(each) + "\n")
            sys.stdout.flush()
        else:
            self.result({name: list(documents)} if self.output == "json" else {}, text)

    def line(self, text: str = "", style: str = "") -> None:
        """Print one line of a result."""
        self._results.print(visible(text), style=style, soft_wrap=True)

    def heading(self, text: str) -> None:
        """Print a heading, with room above."""
        self._results.print()
        self._results.print(visible(text), style="bold")

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
        """Print a table; a column of numbers stands to the right. No rows: nothing is printed."""
        from rich import box
        from rich.table import Table as Grid
        from rich.text import Text

        lines = [tuple(row) for row in rows]
        if not lines:
            return
        grid = Grid(box=box.SIMPLE, pad_edge=False, header_style="dim")
        for index, name in enumerate(columns):
            numbers = all(isinstance(row[index], int | None) for row in lines)
            grid.add_column(name, justify="right" if numbers else "left", overflow="fold")
        for row in lines:
            grid.add_row(*(Text(_cell(each)) for each in row))
        self._results.print(grid)

    def facts(self, rows: Mapping[str, Cell]) -> None:
        """Print names and values, one a line; those without a value are left out."""
        known = {name: value for name, value in rows.items() if value is not None}
        width = max((len(name) for name in known), default=0)
        for name, value in known.items():
            self.line(f"{name:<{width}}  {_cell(value)}")

    def notice(self, text: str) -> None:
        """Say something beside the result, on stderr."""
        self._notices.print(visible(text))

    @contextmanager
    def progress(self, what: str) -> Iterator[Callable[[int, int], None]]:
        """Show a bar on stderr, if that is a terminal; yields what is told (done, of)."""
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
        hidden = not self._notices.is_terminal
        with Progress(*columns, console=self._notices, transient=True, disable=hidden) as bar:
            task = bar.add_task(what, total=None)
            yield lambda done, of: bar.update(task, completed=done, total=of)


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else visible(value)


def visible(text: str) -> str:
    """Return a text from elsewhere without what could steer a terminal.

    Example:
        >>> visible("a" + chr(27) + "[2Jb")
        'a?[2Jb'
    """
    return "".join(each if each.isprintable() or each == "\n" else "?" for each in text)


def as_json(document: Any, indent: int = -1) -> str:
    r"""Return a document as JSON text without what could steer a terminal.

    Example:
        >>> as_json({"a": chr(155) + "2J"})
        '{"a":"\\u009b2J"}'
    """
    import msgspec

    body = msgspec.json.format(msgspec.json.encode(document), indent=indent).decode()
    if body.replace("\n", "").isprintable():
        return body
    return "".join(map(_escaped, body))


def _escaped(char: str) -> str:
    if char.isprintable() or char == "\n":
        return char
    pairs = char.encode("utf-16-be").hex()
    return "".join(f"\\u{pairs[at : at + 4]}" for at in range(0, len(pairs), 4))
