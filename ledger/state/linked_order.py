"""LinkedOrder: an order of ids whose changes cost the same at any length."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class LinkedOrder:
    """Order of distinct ids, none negative; adding, moving and removing one takes constant time.

    Args:
        ids: The ids, in order.

    Example:
        >>> order = LinkedOrder([1, 2, 3])
        >>> order.remove(3)
        >>> order.insert(3, None)
        >>> [*order], order.before(None), order.after(3)
        ([3, 1, 2], 2, 1)
    """

    __slots__ = ("_after", "_before")

    def __init__(self, ids: Iterable[int] = ()) -> None:
        some = tuple(ids)
        # None is before the first and after the last id.
        self._after: dict[int | None, int | None] = dict(
            zip((None, *some), (*some, None), strict=True)
        )
        self._before: dict[int | None, int | None] = dict(
            zip((*some, None), (None, *some), strict=True)
        )

    def __contains__(self, member: int) -> bool:
        return member in self._after

    def __len__(self) -> int:
        return len(self._after) - 1

    def __iter__(self) -> Iterator[int]:
        after = self._after
        found = after[None]
        while found is not None:
            yield found
            found = after[found]

    def before(self, member: int | None) -> int | None:
        """Return the id directly before another one, or before the end; None for the first."""
        return self._before[member]

    def after(self, member: int | None) -> int | None:
        """Return the id directly after another one, or after the start; None for the last."""
        return self._after[member]

    def copy(self) -> LinkedOrder:
        """Return a copy."""
        copied = LinkedOrder()
        copied._after, copied._before = self._after.copy(), self._before.copy()
        return copied

    def insert(self, member: int, behind: int | None) -> None:
        """Add an id that is not in the order behind another one; None: at the beginning."""
        following = self._after[behind]
        self._after[behind] = self._before[following] = member
        self._before[member], self._after[member] = behind, following

    def remove(self, member: int) -> None:
        """Remove an id."""
        behind, following = self._before.pop(member), self._after.pop(member)
        self._after[behind], self._before[following] = following, behind
