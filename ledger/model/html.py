"""A table of text as HTML, for notebooks: everything in it is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def html_table(header: Sequence[str], rows: Iterable[Sequence[object]], *, caption: str) -> str:
    """Return an HTML table; None is an empty cell.

    Example:
        >>> html_table(["a"], [["<b>"]], caption="one")
        '<table><caption>one</caption><tr><th>a</th></tr><tr><td>&lt;b&gt;</td></tr></table>'
    """
    from html import escape

    lines = [_row("th", header), *(_row("td", each) for each in rows)]
    return f"<table><caption>{escape(caption)}</caption>{''.join(lines)}</table>"


def _row(tag: str, cells: Sequence[object]) -> str:
    from html import escape

    texts = ("" if each is None else escape(str(each)) for each in cells)
    return f"<tr>{''.join(f'<{tag}>{each}</{tag}>' for each in texts)}</tr>"
