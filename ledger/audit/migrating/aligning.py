"""Which column of one schema is which of another: the later schema said in the earlier one's ids.

Two instants of one table are compared by field id. Ids of two different tables do not mean the same
columns, so those are compared by name, and what is left by id where the type is equal, too.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs
from attrs import define, field, frozen

from ledger.evolution.columns.iceberg_ids import numbered
from ledger.evolution.tree.past import PastColumns
from ledger.model.schema import FieldIdPolicy, Schema
from ledger.model.types import ArrayType, DataField, DataType, MapType, RowType
from ledger.model.types.casting import can_alter
from ledger.model.types.walk import walk_fields, walk_ids


@frozen
class Aligned:
    """The later schema, as the earlier one can come to it.

    Attributes:
        schema: It, with the earlier one's ids where a column is the same, and new ids elsewhere.
        lost: Later id to the id that stands for it, where its own cannot be had: it was given out
            before, and cannot come back, or belongs to another table.
    """

    schema: Schema
    lost: dict[int, int]


def align(before: Schema, after: Schema, past: PastColumns, *, is_one_table: bool) -> Aligned:
    """Return `after` in the ids of `before`.

    Args:
        before: The earlier schema.
        after: The later one.
        past: The columns that the table had up to the earlier one; those can come back.
        is_one_table: Whether both are of one table.

    Example:
        >>> one, two = Schema.of({"a": "INT", "b": "INT"}), Schema.of({"b": "INT", "c": "INT"})
        >>> [each.id for each in align(one, two, PastColumns(), is_one_table=False).schema.fields]
        [1, 2]
    """
    standing = frozenset(
        found for each in before.fields for found in (each.id, *walk_ids(each.type))
    )
    aligner = _Aligner(
        before.highest_field_id, before.field_id_policy, past, standing, is_one_table=is_one_table
    )
    fields = aligner.members(before.fields, after.fields)
    fields = aligner.number(fields)
    highest = max(
        [before.highest_field_id, *(each.id for each in walk_fields(fields))]
        + [each for member in fields for each in walk_ids(member.type)]
    )
    schema = attrs.evolve(
        after,
        fields=fields,
        highest_field_id=highest,
        field_id_policy=before.field_id_policy,
        identifier_field_ids=tuple(
            sorted(aligner.ids.get(each, each) for each in after.identifier_field_ids)
        ),
    )
    return Aligned(schema, {old: new for old, new in aligner.ids.items() if old != new})


@define
class _Aligner:
    highest: int
    policy: FieldIdPolicy
    past: PastColumns
    standing: frozenset[int]
    is_one_table: bool = field(kw_only=True)
    ids: dict[int, int] = field(factory=dict)
    """What became of the later ids."""
    _next: int = 0

    def members(
        self, before: Sequence[DataField], after: Sequence[DataField]
    ) -> tuple[DataField, ...]:
        """Return a struct's members with the ids of those that they continue."""
        pairs = self._pairs(before, after)
        return tuple(self._member(pairs.get(each.id), each) for each in after)

    def _pairs(
        self, before: Sequence[DataField], after: Sequence[DataField]
    ) -> dict[int, DataField]:
        if self.is_one_table:
            old = {each.id: each for each in before}
            return {
                each.id: old[each.id]
                for each in after
                if each.id in old and continues(old[each.id].type, each.type)
            }
        named = {each.name: each for each in before}
        pairs = {
            each.id: named[each.name]
            for each in after
            if each.name in named and continues(named[each.name].type, each.type)
        }
        taken = {each.id for each in pairs.values()}
        left = {each.id: each for each in before if each.id not in taken}
        for each in after:
            twin = left.get(each.id)
            if each.id not in pairs and twin is not None and twin.type == each.type:
                pairs[each.id] = twin
        return pairs

    def _member(self, old: DataField | None, new: DataField) -> DataField:
        if old is not None:
            self.ids[new.id] = old.id
            return attrs.evolve(new, id=old.id, type=self._type(old.type, new.type))
        own = [new.id, *walk_ids(new.type)]
        if self.is_one_table and all(each > self.highest for each in own):
            self.ids |= {each.id: each.id for each in walk_fields([new])}
            return new
        gone = self._gone(new)
        if gone is not None:
            self.ids[new.id] = new.id
            return attrs.evolve(new, type=self._type(gone.type, new.type))
        return attrs.evolve(new, id=_waiting(new.id))

    def _gone(self, column: DataField) -> DataField | None:
        """Return the dropped column that one is, as it comes back; None where it cannot."""
        if not self.is_one_table or column.id > self.highest:
            return None
        found = self.past.by_id(column.id)
        if found is None or not continues(found.field.type, column.type):
            return None
        back = found.returned
        own = {back.id, *walk_ids(back.type)}
        return back if self.standing.isdisjoint(own) else None

    def _type(self, old: DataType, new: DataType) -> DataType:
        match old, new:
            case RowType(fields=before), RowType(fields=after):
                return attrs.evolve(new, fields=self.members(before, after))
            case ArrayType(element=before), ArrayType(element=after):
                element = self._type(before, after)
                return attrs.evolve(new, element=element, element_id=old.element_id)
            case MapType(value=before), MapType(value=after):
                return attrs.evolve(old, nullable=new.nullable, value=self._type(before, after))
            case _:
                return new

    def number(self, fields: tuple[DataField, ...]) -> tuple[DataField, ...]:
        """Return columns where those have new ids that could not have their own."""
        kept = (each for member in fields for each in (member.id, *walk_ids(member.type)))
        self._next = max(self.highest, *kept, 0) + 1 if self.is_one_table else self.highest + 1
        return self._numbered(fields)

    def _numbered(self, fields: tuple[DataField, ...]) -> tuple[DataField, ...]:
        return tuple(map(self._numbered_one, fields))

    def _numbered_one(self, member: DataField) -> DataField:
        if member.id >= 0:
            return attrs.evolve(member, type=self._numbered_type(member.type))
        typed, highest = numbered(member.type, self._next, self.policy)
        fresh = attrs.evolve(member, id=self._next, type=typed)
        self._next = max(highest, self._next) + 1
        own = attrs.evolve(member, id=_waiting(member.id))
        for old, new in zip(walk_fields([own]), walk_fields([fresh]), strict=True):
            self.ids[old.id] = new.id
        return fresh

    def _numbered_type(self, data_type: DataType) -> DataType:
        match data_type:
            case RowType(fields=fields):
                return attrs.evolve(data_type, fields=self._numbered(fields))
            case ArrayType(element=element):
                return attrs.evolve(data_type, element=self._numbered_type(element))
            case MapType(value=value):
                return attrs.evolve(data_type, value=self._numbered_type(value))
            case _:
                return data_type


def _waiting(field_id: int) -> int:
    """Return the mark of a column whose own id cannot be had; of the mark, the id."""
    return -field_id - 1


def continues(before: DataType, after: DataType) -> bool:
    """Return whether changes can lead from one type to the other, as far as their shape goes.

    Example:
        >>> from ledger.model.types import STRING, IntType
        >>> continues(IntType(), STRING), continues(IntType(), ArrayType(IntType()))
        (True, False)
    """
    match before, after:
        case RowType(), RowType():
            return True
        case ArrayType(element=old), ArrayType(element=new):
            return continues(old, new)
        case MapType(key=same, value=old), MapType(key=key, value=new):
            return same == key and continues(old, new)
        case _:
            bare = before.with_nullability(nullable=after.nullable)
            if before.depth and not after.depth:
                return can_alter(before, after, explicit_allowed=True)
            return bare == after or not (before.depth or after.depth)
