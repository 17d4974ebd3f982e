"""Output of commands: results to stdout as text or JSON, messages to stderr."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ledger.model.messages import visible

if TYPE_CHECKING:
    from rich.console import Console


# What prints is imported when there is something to print.

Output: TypeAlias = Literal["text", "json", "jsonl"]
Document: TypeAlias = Mapping[str, Any]
Cell: TypeAlias = str | int | None

# Nobody reads a pipe by the window's width, so nothing is cut there.
_PIPE_WIDTH = 4_000

# Texts from users are no markup.
_PLAIN: Any = {"markup": False, "highlight": False, "emoji": False}

# Longer words are torn: paths, hashes, values of nested columns.
_LONGEST_WORD = 16
_BETWEEN = 3

_FIRST_NOTICE_S = 2.0
_NOTICE_S = 10.0


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

    return ResultConsole(file=sys.stdout, width=width, **_PLAIN, color_system=colours())


def colours() -> Literal["auto"] | None:
    """Return what colours there are, as rich takes it: with NO_COLOR none, and nothing bold."""
    return None if os.environ.get("NO_COLOR") else "auto"


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

        return Console(file=sys.stderr, soft_wrap=True, **_PLAIN, color_system=colours())

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

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[Cell]],
        numbers: Collection[str] = (),
    ) -> None:
        """Print a table; a column of numbers stands to the right. No rows: nothing is printed.

        Where there is no room for whole words, each row is a list of names and values instead.

        Args:
            columns: Their names.
            rows: The cells of each; whole numbers get commas.
            numbers: Columns whose texts are numbers, too.
        """
        from rich import box
        from rich.table import Table as Grid
        from rich.text import Text

        lines = [tuple(row) for row in rows]
        if not lines:
            return
        # By column, which is how wide they have to be.
        wanted = {name: [*each] for name, *each in zip(columns, *lines, strict=True)}
        if self._lacks(wanted):
            wanted = {name: each for name, each in wanted.items() if any(map(_cell, each))}
        if self._lacks(wanted):
            self._records(wanted)
            return
        grid = Grid(box=box.SIMPLE, pad_edge=False, header_style="dim")
        for name, each in wanted.items():
            is_number = name in numbers or all(isinstance(cell, int | None) for cell in each)
            justify: Literal["left", "right"] = "right" if is_number else "left"
            least = _least(name, each)
            grid.add_column(visible(name), justify=justify, overflow="fold", min_width=least)
        for row in zip(*wanted.values(), strict=True):
            grid.add_row(*(Text(_cell(each)) for each in row))
        self._results.print(grid)

    def _lacks(self, columns: Mapping[str, Sequence[Cell]]) -> bool:
        """Return whether there is no room for the words of some columns beside each other."""
        least = sum(_least(name, each) + _BETWEEN for name, each in columns.items())
        return least > self._results.width

    def _records(self, columns: Mapping[str, Sequence[Cell]]) -> None:
        """Print rows below each other; what says nothing is left out."""
        self.line()
        for row in zip(*columns.values(), strict=True):
            said = {name: _cell(each) for name, each in zip(columns, row, strict=True)}
            self.facts({name: text for name, text in said.items() if text})
            self.line()

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

        text = TextColumn("{task.description}", markup=False)
        columns = (text, BarColumn(), MofNCompleteColumn())
        hidden = not self._notices.is_terminal
        with Progress(*columns, console=self._notices, transient=True, disable=hidden) as bar:
            task = bar.add_task(visible(what), total=None)
            yield lambda done, of: bar.update(task, completed=done, total=of)


def progress_notices(screen: Screen, text: str) -> Callable[[str, int, int], None]:
    """Return a callback that prints on stderr how far a long command is.

    The first notice comes after 2 seconds, the next ones 10 seconds apart, none at the end.

    Args:
        screen: Where to print.
        text: Template of a notice, formatted with what is processed, how much is done, of how much.
    """
    due = time.monotonic() + _FIRST_NOTICE_S

    def report(what: str, done: int, of: int) -> None:
        nonlocal due
        now = time.monotonic()
        if now >= due and done < of:
            screen.notice(text.format(what, done, of))
            due = now + _NOTICE_S

    return report


def _least(name: str, cells: Iterable[Cell]) -> int:
    """Return how wide a column has to be so that no word is torn but one that is very long."""
    words = (word for text in (name, *map(_cell, cells)) for word in text.split())
    longest = max(map(len, words), default=0)
    return min(longest, _LONGEST_WORD)


def _cell(value: Cell) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else visible(value)


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
