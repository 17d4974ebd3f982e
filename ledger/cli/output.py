"""Output of commands: results to stdout as text or JSON, messages to stderr."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from ledger.model.messages import printable_line

if TYPE_CHECKING:
    from rich.console import Console


# rich is imported only to print.

Output: TypeAlias = Literal["text", "json", "jsonl"]
Document: TypeAlias = Mapping[str, Any]
Cell: TypeAlias = str | int | None

# A pipe has no window width, so no cell is broken there.
_PIPE_WIDTH = 1 << 30

# User texts are never parsed as markup.
_PLAIN: Any = {"markup": False, "highlight": False, "emoji": False}

# Longer words are broken: paths, hashes, values of nested columns.
_LONGEST_WORD = 16
_BETWEEN = 3

_FIRST_NOTICE_S = 2.0
_NOTICE_S = 10.0


def result_console(width: int | None) -> Console:
    """Return the console for results; it prints texts verbatim, never as markup.

    Args:
        width: Width in columns; None for the terminal's, or 80 without a terminal.
    """
    from rich.console import Console

    class ResultConsole(Console):
        """Console that raises BrokenPipeError, so that one place handles it."""

        def on_broken_pipe(self) -> None:
            raise  # noqa: PLE0704 - rich calls this while it handles the BrokenPipeError

    return ResultConsole(file=sys.stdout, width=width, **_PLAIN, color_system=colour_system())


def colour_system() -> Literal["auto"] | None:
    """Return rich's colour system; None if NO_COLOR is set, which also disables bold."""
    return None if os.environ.get("NO_COLOR") else "auto"


class Screen:
    """Output of a command; prints user texts verbatim, never as markup.

    Args:
        output: Format of results: text, one JSON document, or JSON lines.
    """

    def __init__(self, output: Output = "text") -> None:
        self.output = output

    @cached_property
    def _result_console(self) -> Console:
        return result_console(None if sys.stdout.isatty() else _PIPE_WIDTH)

    @cached_property
    def _stderr_console(self) -> Console:
        from rich.console import Console

        return Console(file=sys.stderr, soft_wrap=True, **_PLAIN, color_system=colour_system())

    def result(self, document: Document, text: Callable[[Screen], None]) -> None:
        """Print the result of a command, as JSON or as text.

        Args:
            document: Plain JSON; keys in camelCase.
            text: Prints the same as text through `line`, `heading` and `table`.
        """
        match self.output:
            case "json":
                sys.stdout.write(as_json(document, indent=2) + "\n")
            case "jsonl":
                sys.stdout.write(as_json(document) + "\n")
            case "text":
                text(self)

    def results(
        self,
        name: str,
        documents: Iterable[Document],
        text: Callable[[Screen], None],
        about: Document | None = None,
    ) -> None:
        """Print the result of a command that is a list, as JSON, JSON lines or text.

        Args:
            name: Key of the list in the JSON document.
            documents: Members; evaluated only for JSON output.
            text: Prints the same as text.
            about: Keys of the JSON document before the list; JSON lines do not repeat them.
        """
        if self.output == "jsonl":
            for each in documents:
                sys.stdout.write(as_json(each) + "\n")
            sys.stdout.flush()
        else:
            self.result(
                {**(about or {}), name: list(documents)} if self.output == "json" else {}, text
            )

    def line(self, text: str = "", style: str = "") -> None:
        """Print one line of a result."""
        self._result_console.print(printable_line(text), style=style, soft_wrap=True)

    def heading(self, text: str) -> None:
        """Print a heading after an empty line."""
        self._result_console.print()
        self._result_console.print(printable_line(text), style="bold")

    def table(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[Cell]],
        numbers: Collection[str] = (),
    ) -> None:
        """Print a table with numbers right-aligned; print nothing if there are no rows.

        If words do not fit the width, each row is printed as a list of names and values.

        Args:
            columns: Column names.
            rows: Cells by row; whole numbers get thousands separators.
            numbers: Names of further columns whose texts are numbers.
        """
        lines = [tuple(row) for row in rows]
        if not lines:
            return
        # By column, since widths are computed by column.
        wanted = {name: [*each] for name, *each in zip(columns, *lines, strict=True)}
        right = {
            name
            for name, each in wanted.items()
            if name in numbers or all(isinstance(cell, int | None) for cell in each)
        }
        if self._print_unfolded(wanted, right):
            return
        if self._is_too_narrow_for(wanted):
            wanted = {name: each for name, each in wanted.items() if any(map(_format_cell, each))}
        if self._is_too_narrow_for(wanted):
            self._print_records(wanted)
        else:
            self._print_folded(wanted, right)

    def _print_unfolded(
        self, columns: Mapping[str, Sequence[Cell]], right: Collection[str]
    ) -> bool:
        """Print a table whose rows fit the width, line by line; return False if they do not fit.

        The layout is that of `_print_folded`, which takes 20 times as long.
        """
        from rich.cells import cell_len

        texts = [[printable_line(name), *map(_format_cell, each)] for name, each in columns.items()]
        lengths = [[*map(cell_len, each)] for each in texts]
        widths = [max(each) for each in lengths]
        console = self._result_console
        if sum(widths) + _BETWEEN * len(widths) - 1 > console.width or console.options.ascii_only:
            return False
        padded = [
            [f"{' ' * (width - length)}{text}" for text, length in zip(some, each, strict=True)]
            if name in right
            else [
                f"{text}{' ' * (width - length)}" for text, length in zip(some, each, strict=True)
            ]
            for name, some, each, width in zip(columns, texts, lengths, widths, strict=True)
        ]
        rows = zip(*padded, strict=True)
        edge = " " * (sum(widths) + _BETWEEN * len(widths) - 1)
        console.print(edge)
        console.print(f" {(' ' * _BETWEEN).join(next(rows))} ", style="dim", soft_wrap=True)
        console.print(f" {'─' * (len(edge) - 2)} ", soft_wrap=True)
        for row in rows:
            console.file.write(f" {(' ' * _BETWEEN).join(row)} \n")
        console.print(edge)
        return True

    def _print_folded(self, columns: Mapping[str, Sequence[Cell]], right: Collection[str]) -> None:
        """Print a table whose cells are folded to fit the width."""
        from rich import box
        from rich.table import Table as Grid
        from rich.text import Text

        grid = Grid(box=box.SIMPLE, pad_edge=False, header_style="dim")
        for name, each in columns.items():
            justify: Literal["left", "right"] = "right" if name in right else "left"
            least = _minimal_width(name, each)
            grid.add_column(printable_line(name), justify=justify, overflow="fold", min_width=least)
        for row in zip(*columns.values(), strict=True):
            grid.add_row(*(Text(_format_cell(each)) for each in row))
        self._result_console.print(grid)

    def _is_too_narrow_for(self, columns: Mapping[str, Sequence[Cell]]) -> bool:
        """Return whether the columns are too wide for the console without breaking words."""
        least = sum(_minimal_width(name, each) + _BETWEEN for name, each in columns.items())
        return least > self._result_console.width

    def _print_records(self, columns: Mapping[str, Sequence[Cell]]) -> None:
        """Print rows as lists of names and values, without empty values."""
        self.line()
        for row in zip(*columns.values(), strict=True):
            said = {name: _format_cell(each) for name, each in zip(columns, row, strict=True)}
            self.facts({name: text for name, text in said.items() if text})
            self.line()

    def facts(self, rows: Mapping[str, Cell]) -> None:
        """Print names and values, one per line, without empty values."""
        known = {name: value for name, value in rows.items() if value is not None}
        width = max((len(name) for name in known), default=0)
        for name, value in known.items():
            self.line(f"{name:<{width}}  {_format_cell(value)}")

    def notice(self, text: str) -> None:
        """Print a notice on stderr."""
        self._stderr_console.print(printable_line(text))

    @contextmanager
    def progress(self, what: str) -> Iterator[Callable[[int, int], None]]:
        """Show a progress bar if stderr is a terminal; yields its update function (done, total)."""
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        text = TextColumn("{task.description}", markup=False)
        columns = (text, BarColumn(), MofNCompleteColumn())
        hidden = not self._stderr_console.is_terminal
        with Progress(
            *columns, console=self._stderr_console, transient=True, disable=hidden
        ) as bar:
            task = bar.add_task(printable_line(what), total=None)
            yield lambda done, of: bar.update(task, completed=done, total=of)


def progress_reports(screen: Screen, text: str) -> Callable[[str, int, int], None]:
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


def _minimal_width(name: str, cells: Iterable[Cell]) -> int:
    """Return the minimal width of a column that breaks only very long words."""
    words = (word for text in (name, *map(_format_cell, cells)) for word in text.split())
    longest = max(map(len, words), default=0)
    return min(longest, _LONGEST_WORD)


def id_cell(number: int | None) -> str | None:
    """Return the cell of an id, without separators so that it can be copied.

    Example:
        >>> id_cell(1845738650335276097)
        '1845738650335276097'
    """
    return None if number is None else str(number)


def _format_cell(value: Cell) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else printable_line(value)


def as_json(document: Any, indent: int = -1) -> str:
    r"""Return a document as JSON text without terminal control characters.

    Example:
        >>> as_json({"a": chr(155) + "2J"})
        '{"a":"\\u009b2J"}'
    """
    import msgspec

    body = msgspec.json.format(msgspec.json.encode(document), indent=indent).decode()
    if body.replace("\n", "").isprintable():
        return body
    return "".join(map(_escape_char, body))


def _escape_char(char: str) -> str:
    if char.isprintable() or char == "\n":
        return char
    pairs = char.encode("utf-16-be").hex()
    return "".join(f"\\u{pairs[at : at + 4]}" for at in range(0, len(pairs), 4))
