"""Order of renames inside one struct: each takes a name that is free at its point."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from heapq import heapify, heappop, heappush
from itertools import count

from ledger.model.errors import InvalidChangeError

Rename = tuple[int, str]
"""A member's field id, and its new name."""


def order_renames(
    names: Mapping[int, str],
    wanted: Mapping[int, str],
    reserved: Collection[str],
    blockers: Collection[int] = (),
) -> Iterator[Rename]:
    """Yield the renames of a struct's members, in the order of `wanted` where that is possible.

    Members in the way get temporary names: the blockers first, and one of each cycle.

    Args:
        names: The current names by field id.
        wanted: The target names by field id, of members that stay.
        reserved: Names that no temporary name may be.
        blockers: Members without a target name whose names others want.

    Raises:
        InvalidChangeError: Two members have one target name.

    Example:
        >>> list(order_renames({0: "a", 1: "b"}, {0: "b", 1: "c"}, {"b", "c"}))
        [(1, 'c'), (0, 'b')]
        >>> list(order_renames({0: "a", 1: "b"}, {0: "b", 1: "a"}, {"a", "b"}))
        [(0, 'a__0'), (1, 'a'), (0, 'b')]
    """
    renames = _PendingRenames(names, wanted, reserved)
    for each in blockers:
        yield renames.rename(each, renames.temporary_name(each))
    waiting: set[int] = set()
    while renames.pending:
        ready = renames.next_ready()
        if ready is not None:
            yield renames.rename(ready, renames.pending.pop(ready))
            continue
        blocked = next((each for each in renames.pending if each not in waiting), None)
        if blocked is None:
            name = next(iter(renames.pending.values()))
            raise InvalidChangeError(f"two columns cannot both be called {name}")
        waiting.add(blocked)
        yield renames.rename(blocked, renames.temporary_name(blocked))


class _PendingRenames:
    """Renames still to make, and the names that are taken now."""

    def __init__(
        self, names: Mapping[int, str], wanted: Mapping[int, str], reserved: Collection[str]
    ) -> None:
        self.pending = {each: name for each, name in wanted.items() if names[each] != name}
        self._names = dict(names)
        self._taken = set(names.values())
        self._reserved = reserved
        self._places = {each: place for place, each in enumerate(self.pending)}
        self._seekers: defaultdict[str, list[int]] = defaultdict(list)
        for each, name in self.pending.items():
            self._seekers[name].append(each)
        self._candidates = [(place, each) for each, place in self._places.items()]
        heapify(self._candidates)

    def next_ready(self) -> int | None:
        """Return the first member whose target name is free; None where there is none."""
        while self._candidates:
            _, found = heappop(self._candidates)
            # One whose name is taken becomes a candidate again when that name is given up.
            if found in self.pending and self.pending[found] not in self._taken:
                return found
        return None

    def rename(self, field_id: int, name: str) -> Rename:
        """Record a rename."""
        given_up = self._names[field_id]
        self._taken.remove(given_up)
        self._taken.add(name)
        self._names[field_id] = name
        for each in self._seekers.get(given_up, ()):
            heappush(self._candidates, (self._places[each], each))
        return field_id, name

    def temporary_name(self, field_id: int) -> str:
        """Return a name that no member has or will have."""
        some = (f"{self._names[field_id]}__{number}" for number in count())
        return next(each for each in some if each not in self._taken and each not in self._reserved)
