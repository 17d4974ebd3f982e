"""What error messages show of a value that somebody sent: never long, never failing itself."""

from __future__ import annotations

import reprlib


def excerpt(value: object) -> str:
    """Return the beginning of a value as Python writes it.

    A value that nests too deep, holds itself, or has too many digits is cut.

    Example:
        >>> excerpt({"a": [1, 2]}), excerpt(10**9999)
        ("{'a': [1, 2]}", 'a huge int')
    """
    try:
        return reprlib.repr(value)
    except ValueError:
        # Python refuses to write out thousands of digits.
        return f"a huge {type(value).__name__}"


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
