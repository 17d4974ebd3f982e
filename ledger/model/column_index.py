"""Index of a table's columns by id and name, shared by the steps that decide and fold a commit.

Most commits leave the columns as they are, and most others add columns at the end: then the new
index extends that of the columns before, and no column is looked at again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ledger.model.types import DataField, walk_ids

NameFilter = Callable[[tuple[str, ...]], tuple[str, ...]]
"""Function that returns those of some column names that it is about, each judged by itself."""

_KEPT: Final = 4
"""Number of cached column indexes: before and after a change, for two tables or states."""

_FEW: Final = 8
"""Number of columns that are compared in any case."""


class ColumnIndex:
    """Index of a table's columns, each part built on first use.

    Args:
        fields: The columns, in order.
    """

    __slots__ = (
        "_by_id",
        "_by_name",
        "_ids",
        "_names",
        "_nested_at",
        "_passed",
        "_roots",
        "fields",
    )

    def __init__(self, fields: tuple[DataField, ...]) -> None:
        self.fields = fields
        self._by_id: dict[int, DataField] | None = None
        self._by_name: dict[str, DataField] | None = None
        self._ids: dict[str, int] | None = None
        self._names: tuple[str, ...] | None = None
        self._nested_at: tuple[int, ...] | None = None
        self._roots: frozenset[str] | None = None
        self._passed: dict[NameFilter, tuple[str, ...]] = {}

    def extended_to(self, fields: tuple[DataField, ...]) -> ColumnIndex:
        """Return the index of columns that begin with these; extends the parts built so far."""
        index, first = ColumnIndex(fields), len(self.fields)
        added = fields[first:]
        by_id = {each.id: each for each in added}
        there = self._by_id
        if there is None or len(by_id) < len(added) or not there.keys().isdisjoint(by_id):
            # An id that occurs twice hides the earlier column.
            return index
        names = tuple([each.name for each in added])
        index._by_id = {**there, **by_id}
        if self._ids is not None:
            index._ids = {**self._ids, **dict(zip(names, by_id, strict=True))}
        if self._by_name is not None:
            index._by_name = {**self._by_name, **dict(zip(names, added, strict=True))}
        if self._names is not None:
            index._names = self._names + names
        if self._roots is not None:
            index._roots = self._roots.union([each.type.root for each in added])
        if self._nested_at is not None:
            nested = [place for place, each in enumerate(added, first) if each.type.depth]
            index._nested_at = (*self._nested_at, *nested)
        for select, passed in self._passed.items():
            index._passed[select] = passed + select(names)
        return index

    def names_by(self, select: NameFilter) -> tuple[str, ...]:
        """Return the column names that a filter selects, in order; cached by the function."""
        found = self._passed.get(select)
        if found is None:
            found = self._passed[select] = select(self.names)
        return found

    @property
    def by_id(self) -> Mapping[int, DataField]:
        """The columns by id, in order; of two with the same id, the later."""
        if self._by_id is None:
            self._by_id = {each.id: each for each in self.fields}
        return self._by_id

    @property
    def ids(self) -> Mapping[str, int]:
        """Name to id, in order; of two columns with the same id, only the later."""
        if self._ids is None:
            self._ids = {each.name: each.id for each in self.by_id.values()}
        return self._ids

    @property
    def by_name(self) -> Mapping[str, DataField]:
        """The columns by name, in order."""
        if self._by_name is None:
            self._by_name = {each.name: each for each in self.fields}
        return self._by_name

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        if self._names is None:
            self._names = tuple([each.name for each in self.fields])
        return self._names

    @property
    def roots(self) -> frozenset[str]:
        """The set of the columns' type names without parameters (`DataType.root`)."""
        if self._roots is None:
            self._roots = frozenset([each.type.root for each in self.fields])
        return self._roots

    @property
    def nested_at(self) -> tuple[int, ...]:
        """The places of the columns of constructed types: ROW, ARRAY, MAP, MULTISET, VECTOR."""
        if self._nested_at is None:
            fields = enumerate(self.fields)
            self._nested_at = tuple([place for place, each in fields if each.type.depth])
        return self._nested_at

    @property
    def nested(self) -> tuple[DataField, ...]:
        """The columns of constructed types."""
        return tuple([self.fields[place] for place in self.nested_at])

    def is_start_of(self, fields: tuple[DataField, ...]) -> bool:
        """Return whether columns begin with these, ids of members included."""
        count = len(self.fields)
        if not count or count > len(fields):
            return False
        mine, last = self.fields, count - 1
        if count > _FEW and mine[0] is not fields[0] and mine[last] is not fields[last]:
            # Of another table or handle, whose columns are equal at best: comparing those takes as
            # long as an index, and comparing the same objects next to nothing.
            return False
        if mine != (fields if count == len(fields) else fields[:count]):
            return False
        # Equality of types ignores the ids inside.
        return not self.nested_at or all(
            mine[each] is fields[each]
            or [*walk_ids(mine[each].type)] == [*walk_ids(fields[each].type)]
            for each in self.nested_at
        )


# Replaced as a whole, so that threads never see a partial update.
_recent: tuple[ColumnIndex, ...] = ()


def column_index_of(fields: tuple[DataField, ...]) -> ColumnIndex:
    """Return the cached index of a tuple of columns, by identity; create it if there is none.

    Example:
        >>> from ledger.model.types import IntType
        >>> fields = (DataField(0, "a", IntType()),)
        >>> column_index_of(fields).names, column_index_of(fields) is column_index_of(fields)
        (('a',), True)
    """
    global _recent  # noqa: PLW0603 - the only place that sets it
    for each in _recent:
        if each.fields is fields:
            return each
    before = next((each for each in _recent if each.is_start_of(fields)), None)
    found = ColumnIndex(fields) if before is None else before.extended_to(fields)
    _recent = (found, *_recent[: _KEPT - 1])
    return found


def reuse_indexed_columns(fields: tuple[DataField, ...]) -> tuple[DataField, ...]:
    """Return the equal tuple of columns that was indexed recently, or the given one.

    A decided event is folded afterwards, and both steps build the same columns: sharing one tuple
    lets them share its index. The cached columns may be another table's, and equality of types
    ignores the ids inside, so those are compared, too.

    Example:
        >>> from ledger.model.types import ArrayType, IntType
        >>> one, two = ((DataField(0, "a", IntType()),) for _ in range(2))
        >>> column_index_of(one).names, reuse_indexed_columns(two) is one
        (('a',), True)
        >>> one, two = ((DataField(0, "a", ArrayType(IntType(), element_id=n)),) for n in (1, 2))
        >>> column_index_of(one).names, one == two, reuse_indexed_columns(two) is one
        (('a',), True, False)
    """
    for each in _recent:
        if len(each.fields) == len(fields) and each.is_start_of(fields):
            return each.fields
    return fields


def columns_around(
    fields: tuple[DataField, ...], field_ids: Iterable[int]
) -> tuple[DataField, ...]:
    """Return the columns that have some ids; if one is none's, those that may have it inside, too.

    For rules about few fields of a wide table.

    Example:
        >>> from ledger.model.types import IntType, RowType
        >>> row = RowType((DataField(2, "x", IntType()),))
        >>> fields = (DataField(0, "a", IntType()), DataField(1, "b", row))
        >>> [[each.name for each in columns_around(fields, ids)] for ids in ([0], [0, 2])]
        [['a'], ['a', 'b']]
    """
    index, wanted = column_index_of(fields), set(field_ids)
    found = {each: index.by_id[each] for each in wanted if each in index.by_id}
    if len(found) < len(wanted):
        found |= {each.id: each for each in index.nested}
    return tuple(found.values())
