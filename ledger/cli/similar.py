"""What was meant by a word that is none."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def meant(word: str, known: Iterable[str]) -> str:
    """Return a hint such as `: did you mean 'log'?`, or nothing where no word is alike."""
    found = get_close_matches(word, known, n=1)
    return f": did you mean {found[0]!r}?" if found else ""
