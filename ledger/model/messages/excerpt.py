"""What messages and notebooks show of a value: never long, never failing itself."""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from ledger.model.messages.credentials import credentials_in


def excerpt(value: object) -> str:
    """Return the beginning of a value as Python writes it.

    A value that nests too deep, holds itself, or has too many digits is cut.

    Example:
        >>> excerpt({"a": [1, 2]}), excerpt([10**9999])
        ("{'a': [1, 2]}", '[a huge int]')
    """
    return _EXCERPTS.repr(value)


class _Excerpt(reprlib.Repr):
    """Python's own excerpts, which for thousands of digits raise, or give an address in memory."""

    def repr_str(self, x: str, level: int) -> str:
        # Cut short, a password would no longer be known for one.
        return super().repr_str(credentials_in(x) or x, level)

    def repr_int(self, x: int, level: int) -> str:
        try:
            repr(x)
        except ValueError:
            return "a huge int"
        return super().repr_int(x, level)


_EXCERPTS: Final = _Excerpt()


def visible(value: object) -> str:
    """Return a text from elsewhere on one line, in the order in which its characters are stored.

    Each character that is not printable becomes `?`: control characters, which steer terminals,
    ends of lines, which forge further ones, and marks that change the direction of the text.

    Example:
        >>> visible("a" + chr(27) + "[2Jb"), visible("txt." + chr(0x202E) + "exe")
        ('a?[2Jb', 'txt.?exe')
    """
    text = str(value)
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else "?" for each in text)


def first_few(values: Iterable[object], most: int = 8) -> str:
    """Return the beginning of a list as Python writes it, and how many more there are.

    Example:
        >>> first_few("abc"), first_few(range(99), most=2)
        ("['a', 'b', 'c']", '[0, 1, ... 97 more]')
    """
    every = list(values)
    shown = [repr(each) for each in every[:most]]
    more = [f"... {len(every) - most} more"] if len(every) > most else []
    return f"[{', '.join([*shown, *more])}]"


def is_storable(text: str) -> bool:
    """Return whether a text can be written as UTF-8, which half of a surrogate pair cannot.

    >>> is_storable("ä"), is_storable(chr(0xD800))
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def size(count: int) -> str:
    """Return a number of bytes as people read it.

    Example:
        >>> size(999), size(419_001)
        ('999 B', '419.0 kB')
    """
    amount = float(count)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if amount < 1000 or unit == "TB":  # noqa: PLR2004 - SI units step by a thousand
            break
        amount /= 1000
    return f"{count} B" if unit == "B" else f"{amount:,.1f} {unit}"


def moment(time_millis: int) -> str:
    """Return a Unix time in milliseconds as text, in UTC; the number itself outside of 1 to 9999.

    Example:
        >>> moment(1_356_998_400_000), moment(10**18)
        ('2013-01-01 00:00:00', '1000000000000000000 ms')
    """
    try:
        found = datetime.fromtimestamp(time_millis / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return f"{time_millis} ms"
    return found.strftime("%Y-%m-%d %H:%M:%S")


def html_table(header: Sequence[str], rows: Iterable[Sequence[object]], *, caption: str) -> str:
    """Return text as an HTML table, all of it `visible` and escaped; None is an empty cell.

    Example:
        >>> html_table(["a"], [["<b>"]], caption="one")
        '<table><caption>one</caption><tr><th>a</th></tr><tr><td>&lt;b&gt;</td></tr></table>'
    """
    from html import escape

    lines = [_row("th", header), *(_row("td", each) for each in rows)]
    return f"<table><caption>{escape(visible(caption))}</caption>{''.join(lines)}</table>"


def _row(tag: str, cells: Sequence[object]) -> str:
    from html import escape

    texts = ("" if each is None else escape(visible(each)) for each in cells)
    return f"<tr>{''.join(f'<{tag}>{each}</{tag}>' for each in texts)}</tr>"
