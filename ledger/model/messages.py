"""Excerpts and suggestions for error messages."""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from ledger.model.credentials import find_credentials


def excerpt(value: object) -> str:
    """Return the abbreviated repr of a value, for messages.

    A value that is too long, nests too deep, contains itself, or has too many digits is cut.

    Example:
        >>> excerpt({"a": [1, 2]}), excerpt([10**9999])
        ("{'a': [1, 2]}", '[a huge int]')
    """
    return _EXCERPTS.repr(value)


class _SafeRepr(reprlib.Repr):
    """`reprlib.Repr` without its errors and memory addresses for ints of thousands of digits."""

    def repr_str(self, x: str, level: int) -> str:
        # A password that is cut short would no longer be recognized and removed.
        return super().repr_str(find_credentials(x) or x, level)

    def repr_int(self, x: int, level: int) -> str:
        try:
            repr(x)
        except ValueError:
            return "a huge int"
        return super().repr_int(x, level)


_EXCERPTS: Final = _SafeRepr()


def printable_line(value: object) -> str:
    """Return an untrusted text as one printable line, safe for terminals and logs.

    Each character that is not printable becomes `?`: control characters, line breaks, which could
    forge further lines, and marks that change the direction of the text.

    Example:
        >>> printable_line("a" + chr(27) + "[2Jb"), printable_line("txt." + chr(0x202E) + "exe")
        ('a?[2Jb', 'txt.?exe')
    """
    text = str(value)
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else "?" for each in text)


def counted(count: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun.

    Args:
        count: The count.
        noun: The noun in the singular.
        plural: The noun in the plural; by default with an s.

    Example:
        >>> counted(1, "row"), counted(2000, "row"), counted(0, "entry", "entries")
        ('1 row', '2,000 rows', '0 entries')
    """
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def first_few(values: Iterable[object], most: int = 8) -> str:
    """Return the repr of a list's first items, and the number of the others.

    Example:
        >>> first_few("abc"), first_few(range(99), most=2)
        ("['a', 'b', 'c']", '[0, 1, ... 97 more]')
    """
    every = list(values)
    shown = [repr(each) for each in every[:most]]
    more = [f"... {len(every) - most} more"] if len(every) > most else []
    return f"[{', '.join([*shown, *more])}]"


def is_utf8_encodable(text: str) -> bool:
    """Return whether a text can be encoded as UTF-8; a lone surrogate cannot.

    >>> is_utf8_encodable("ä"), is_utf8_encodable(chr(0xD800))
    (True, False)
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def size(count: int) -> str:
    """Return a number of bytes in a human-readable unit.

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
    """Return a Unix time in milliseconds as text in UTC; the number outside of years 1 to 9999.

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
    """Return rows as an HTML table, all text printable and escaped; None is an empty cell.

    Example:
        >>> html_table(["a"], [["<b>"]], caption="one")
        '<table><caption>one</caption><tr><th>a</th></tr><tr><td>&lt;b&gt;</td></tr></table>'
    """
    from html import escape

    lines = [_html_row("th", header), *(_html_row("td", each) for each in rows)]
    return f"<table><caption>{escape(printable_line(caption))}</caption>{''.join(lines)}</table>"


def _html_row(tag: str, cells: Sequence[object]) -> str:
    from html import escape

    texts = ("" if each is None else escape(printable_line(each)) for each in cells)
    return f"<tr>{''.join(f'<{tag}>{each}</{tag}>' for each in texts)}</tr>"


_MOST_LISTED = 12
_SHORT, _MIDDLE = 3, 8
_PREFIX = 3


def similar_names(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names similar to a misspelled name, nearest first; at most three.

    The edit distance, with transpositions, is at most 1, and 2 for names of eight and more letters;
    case does not count. A prefix of a known name matches it. A name that only shares letters does
    not: no suggestion is better than a wrong one.

    Example:
        >>> (
        ...     similar_names("lgo", ["log", "tag"]),
        ...     similar_names("rename", ["create"]),
        ...     similar_names("Id", ["id"]),
        ... )
        (['log'], [], ['id'])
    """
    folded = name.casefold()
    most = (len(folded) >= _SHORT) + (len(folded) >= _MIDDLE)
    found: list[tuple[int, str]] = []
    for each in known:
        other = each.casefold()
        if abs(len(other) - len(folded)) <= most:
            slips = _edit_distance(folded, other)
            if slips <= most:
                found.append((slips, each))
                continue
        if len(folded) >= _PREFIX and other.startswith(folded):
            found.append((_MIDDLE, each))
    return [each for _, each in sorted(found)[:3]]


def name_hint(name: str, known: Collection[str]) -> str:
    """Return the end of a message about an unknown name: similar names, or the known ones.

    Example:
        >>> name_hint("adr", ["id", "addr"])
        "did you mean 'addr'?"
        >>> name_hint("fax", ["id", "addr"])
        "there are: 'id', 'addr'"
    """
    near = similar_names(name, known)
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    return f"there are: {join_names(known)}" if known else "there are none yet"


def join_names(names: Collection[str]) -> str:
    """Return names as a comma-separated text, at most a dozen and the number of the others.

    Example:
        >>> join_names([str(each) for each in range(100)])[-22:]
        "'10', '11' and 88 more"
    """
    shown = ", ".join(map(repr, [*names][:_MOST_LISTED]))
    more = len(names) - _MOST_LISTED
    return f"{shown} and {more} more" if more > 0 else shown or "none"


def _edit_distance(left: str, right: str) -> int:
    """Return the edit distance between two texts, where swapping neighbours counts as 1."""
    before: list[int] = []
    row = list(range(len(right) + 1))
    for i, a in enumerate(left, 1):
        last, before = before, row
        row = [i]
        for j, b in enumerate(right, 1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == right[j - 2] and left[i - 2] == b:
                best = min(best, last[j - 2] + 1)
            row.append(best)
    return row[-1]
