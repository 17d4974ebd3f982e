"""What was meant by a name that is none: the few names that a slip of the hand makes of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable

_MOST_LISTED = 12
_SHORT, _MIDDLE = 3, 8
_PREFIX = 3


def similar(name: str, known: Iterable[str]) -> list[str]:
    """Return the known names that were meant by a name, nearest first; at most three.

    One letter may be wrong, too many, missing or swapped with its neighbour, in names of eight and
    more two; case does not count, and a beginning stands for the whole. Nothing is better than a
    name that only shares letters.

    Example:
        >>> similar("lgo", ["log", "tag"]), similar("rename", ["create"]), similar("Id", ["id"])
        (['log'], [], ['id'])
    """
    folded = name.casefold()
    most = (len(folded) >= _SHORT) + (len(folded) >= _MIDDLE)
    found: list[tuple[int, str]] = []
    for each in known:
        other = each.casefold()
        if abs(len(other) - len(folded)) <= most:
            slips = _slips(folded, other)
            if slips <= most:
                found.append((slips, each))
                continue
        if len(folded) >= _PREFIX and other.startswith(folded):
            found.append((_MIDDLE, each))
    return [each for _, each in sorted(found)[:3]]


def meant(name: str, known: Collection[str]) -> str:
    """Return how a message about an unknown name ends: what was meant, or what there is.

    Example:
        >>> meant("adr", ["id", "addr"])
        "did you mean 'addr'?"
        >>> meant("fax", ["id", "addr"])
        "there are: 'id', 'addr'"
    """
    near = similar(name, known)
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    return f"there are: {listed(known)}" if known else "there are none yet"


def listed(names: Collection[str]) -> str:
    """Return names as text, the first dozen of many.

    Example:
        >>> listed([str(each) for each in range(100)])[-22:]
        "'10', '11' and 88 more"
    """
    shown = ", ".join(map(repr, [*names][:_MOST_LISTED]))
    more = len(names) - _MOST_LISTED
    return f"{shown} and {more} more" if more > 0 else shown or "none"


def _slips(left: str, right: str) -> int:
    """Return how many letters are wrong, too many, missing or swapped between two texts."""
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
