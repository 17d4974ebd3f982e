"""ColumnIndex: what is asked of a table's columns again and again, found once while they stand.

A commit asks a dozen times which column has a name or an id. Most commits change no column, and
those that do share what they made with whoever asks about it next.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any, Final, TypeVar

from attrs import field, frozen

from ledger.model.types import DataField
from ledger.model.types.walk import walk_ids

R = TypeVar("R")

_KEPT: Final = 4
"""Columns before and after a change, of the two tables or states that most work looks at."""


@frozen(eq=False)
class ColumnIndex:
    """The columns of a table, found by what they have.

    Attributes:
        fields: They, in order.
    """

    fields: tuple[DataField, ...]
    _of_names: dict[Callable[[tuple[str, ...]], Any], Any] = field(factory=dict, init=False)

    def of_names(self, ask: Callable[[tuple[str, ...]], R]) -> R:
        """Return what a function says of the names; it is asked once."""
        if ask not in self._of_names:
            self._of_names[ask] = ask(self.names)
        said: R = self._of_names[ask]
        return said

    @cached_property
    def by_id(self) -> Mapping[int, DataField]:
        """The columns by id, in order; of two that share one, the later."""
        return {each.id: each for each in self.fields}

    @cached_property
    def ids(self) -> Mapping[str, int]:
        """Name to id, in order; of columns that share an id, of the later alone."""
        return {each.name: each.id for each in self.by_id.values()}

    @cached_property
    def by_name(self) -> Mapping[str, DataField]:
        """The columns by name, in order."""
        return {each.name: each for each in self.fields}

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Their names, in order."""
        return tuple([each.name for each in self.fields])

    @cached_property
    def roots(self) -> frozenset[str]:
        """The roots of their types."""
        return frozenset([each.type.root for each in self.fields])

    @cached_property
    def nested(self) -> tuple[DataField, ...]:
        """Those with something inside."""
        return tuple([each for each in self.fields if each.type.depth])


# Replaced as a whole, so that threads never meet it half made.
_recent: tuple[ColumnIndex, ...] = ()


def indexed(fields: tuple[DataField, ...]) -> ColumnIndex:
    """Return what was found about these very columns lately, or find it from now on.

    Example:
        >>> from ledger.model.types import IntType
        >>> fields = (DataField(0, "a", IntType()),)
        >>> indexed(fields).names, indexed(fields) is indexed(fields)
        (('a',), True)
    """
    global _recent  # noqa: PLW0603 - the only place that sets it
    for each in _recent:
        if each.fields is fields:
            return each
    found = ColumnIndex(fields)
    _recent = (found, *_recent[: _KEPT - 1])
    return found


def shared(fields: tuple[DataField, ...]) -> tuple[DataField, ...]:
    """Return columns that somebody asked about lately and that are the same, or these.

    What is decided is folded afterwards: both make the same columns. Those asked about may be
    another table's, and types are equal whatever ids they have inside.

    Example:
        >>> from ledger.model.types import ArrayType, IntType
        >>> one, two = ((DataField(0, "a", IntType()),) for _ in range(2))
        >>> indexed(one).names, shared(two) is one
        (('a',), True)
        >>> one, two = ((DataField(0, "a", ArrayType(IntType(), element_id=n)),) for n in (1, 2))
        >>> indexed(one).names, one == two, shared(two) is one
        (('a',), True, False)
    """
    for each in _recent:
        if each.fields == fields and not any(
            mine is not theirs and [*walk_ids(mine.type)] != [*walk_ids(theirs.type)]
            for mine, theirs in zip(fields, each.fields, strict=True)
        ):
            return each.fields
    return fields
