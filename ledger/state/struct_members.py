"""StructMembers: the members of a struct, whatever holds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from ledger.model.types import DataField
from ledger.state.columns import Members, member_named


class StructMembers(Protocol):
    """Members of one struct, in order; a struct has at least one."""

    def __len__(self) -> int: ...

    def __iter__(self) -> Iterator[DataField]: ...

    @property
    def first(self) -> DataField:
        """The first member."""

    @property
    def last(self) -> DataField:
        """The last member."""

    def has_name(self, name: str) -> bool:
        """Return whether a member has that name."""

    def named(self, name: str) -> DataField | None:
        """Return the member of that name, or None."""

    def with_id(self, field_id: int) -> DataField | None:
        """Return the member of that id, or None."""

    def before(self, field_id: int) -> int | None:
        """Return the id of the member directly before another one; None for the first."""


class RowMembers:
    """Members of a ROW type."""

    __slots__ = ("_members",)

    def __init__(self, members: Members) -> None:
        self._members = members

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[DataField]:
        return iter(self._members)

    @property
    def first(self) -> DataField:
        """The first member."""
        return self._members[0]

    @property
    def last(self) -> DataField:
        """The last member."""
        return self._members[-1]

    def has_name(self, name: str) -> bool:
        """Return whether a member has that name."""
        return self.named(name) is not None

    def named(self, name: str) -> DataField | None:
        """Return the member of that name, or None."""
        return member_named(self._members, name)

    def with_id(self, field_id: int) -> DataField | None:
        """Return the member of that id, or None."""
        return next((each for each in self._members if each.id == field_id), None)

    def before(self, field_id: int) -> int | None:
        """Return the id of the member directly before another one; None for the first."""
        ids = [each.id for each in self._members]
        place = ids.index(field_id)
        return ids[place - 1] if place else None
