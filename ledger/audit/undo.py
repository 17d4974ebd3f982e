"""Undo of one change by a three-way merge of states, matched by field id.

A transaction's changes are the differences between the state before it and the state after it. Each
is reverted if the current value is still that of the transaction. A value that was changed again
since is a conflict: undo the later change first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs
from attrs import define, field, frozen

from ledger.audit.column_migration import longest_increasing_subset
from ledger.audit.migration import Change, Migration, plan_migration
from ledger.decide.changes import CreateTag, DeleteTag, ReplaceTag, TagChange
from ledger.decide.operations import planned_words
from ledger.model.errors import InvalidChangeError
from ledger.model.iceberg_layout import PartitionSpec, SortOrder
from ledger.model.messages import first_few, html_table
from ledger.model.names import quote_path
from ledger.model.schema import Schema, paths_of
from ledger.model.snapshot import Tag
from ledger.model.types import ArrayType, DataField, DataType, MapType, RowType
from ledger.state.columns import PastColumns
from ledger.state.table import TableState


@frozen(repr=False)
class Undoing:
    """Plan of an undo or restore; nothing is written.

    Attributes:
        before: The current state of the table.
        after: The state after the undo, in schema and layout.
        migration: The changes of schema and layout.
        tags: The changes of tags.
        reasons: Reasons why it is not possible; empty if it is.
    """

    before: TableState
    after: TableState
    migration: Migration
    tags: tuple[TagChange, ...]
    reasons: tuple[str, ...]

    def __repr__(self) -> str:
        why = f", but: {'; '.join(self.reasons)}" if self.reasons else ""
        return f"{type(self).__name__}({first_few(map(planned_words, self.changes))}{why})"

    def _repr_html_(self) -> str:
        why = f"it cannot be done: {'; '.join(self.reasons)}" if self.reasons else ""
        rows = [(planned_words(each),) for each in self.changes]
        return html_table(("what would happen",), rows, caption=why or "nothing was written")

    @property
    def is_possible(self) -> bool:
        """True if one commit can make the changes."""
        return not self.reasons

    @property
    def changes(self) -> tuple[Change | TagChange, ...]:
        """The changes of the commit, in order."""
        return (*self.migration.changes, *self.tags)

    def wanted(self, refused: str) -> tuple[Change | TagChange, ...]:
        """Return the changes of the commit, or raise if it is not possible.

        Args:
            refused: The beginning of the error message, before the reasons.

        Raises:
            InvalidChangeError: The undo is not possible.
        """
        if self.reasons:
            raise InvalidChangeError(f"{refused}: {'; '.join(self.reasons)}")
        return self.changes


def plan_transaction_undo(
    before: TableState, after: TableState, head: TableState, past: PastColumns | None = None
) -> Undoing:
    """Return the plan to undo a transaction.

    Args:
        before: The state before the transaction.
        after: The state after the transaction.
        head: The newest state, at or after it.
        past: The columns that the table had up to `head`, which can be restored; None for none.
    """
    merge = _StateMerge()
    target = merge.state(before, after, head)
    tags = tuple(_tag_changes(before, after, head, merge))
    merge.reasons += _irreversible_effects(before, after)
    return _plan_to_target(head, target, tags, merge.reasons, past, merge.reverted)


def plan_state_restore(
    then: TableState, head: TableState, past: PastColumns | None = None
) -> Undoing:
    """Return the plan to restore schema, options and layout of an earlier state.

    Data and tags stay as they are.

    Args:
        then: The state to restore.
        head: The newest state.
        past: The columns that the table had up to `head`, which can be restored; None for none.
    """
    target = attrs.evolve(
        head,
        schema=attrs.evolve(then.schema, highest_field_id=head.schema.highest_field_id),
        specs=then.specs,
        default_spec_id=then.default_spec_id,
        sort_orders=then.sort_orders,
        default_order_id=then.default_order_id,
    )
    return _plan_to_target(head, target, (), [], past)


def _plan_to_target(
    head: TableState,
    target: TableState,
    tags: tuple[TagChange, ...],
    reasons: list[str],
    past: PastColumns | None,
    reverted: Sequence[str] = (),
) -> Undoing:
    # After a conflict the target is not consistent.
    migration = Migration((), None, {}) if reasons else plan_migration(head, target, past)
    if not reasons:
        names = {each: name for name, each in _paths_with_ids(target.schema)}
        reasons += [
            f"column {names[old]} (id {old}) was dropped: {_why_not(past)}, and as a new column it "
            "would be empty"
            for old in migration.new_ids
            if old in names
        ]
        if migration.refusal is not None:
            reasons.append(migration.refusal)
        elif len(migration.batches) > 1:
            reasons.append(
                f"its renames take {len(migration.batches)} transactions, so it cannot be one "
                "change; alter the table step by step"
            )
        elif not migration.batches and not tags:
            since = f": {'; '.join(reverted)} since" if reverted else ""
            reasons.append(f"none of its changes is left to undo{since}")
    return Undoing(head, target, migration, tags, tuple(reasons))


def _why_not(past: PastColumns | None) -> str:
    if past is None:
        return "the columns that the table had are unknown"
    return "its last definition cannot be changed to the earlier one"


def _paths_with_ids(schema: Schema) -> Iterator[tuple[str, int]]:
    return ((quote_path(path), field_id) for path, field_id in paths_of(schema))


def _irreversible_effects(before: TableState, after: TableState) -> Iterator[str]:
    """Yield the effects of a transaction that a later one cannot undo."""
    old, new = before.last_snapshot_id, after.last_snapshot_id
    if new != old:
        way_out = f"roll back to snapshot {old}" if old else "delete its files"
        yield f"it committed snapshot {new}, whose data stays; to undo that, {way_out}"
    yield from _branch_effects(before, after)
    if before.earliest_snapshot_id != after.earliest_snapshot_id:
        yield "it expired snapshots, which are gone"
    published = (before.partition_statistics, before.statistics)
    if published != (after.partition_statistics, after.statistics):
        yield "it published statistics; publish others"
    if before.corrections != after.corrections:
        yield "it corrected the clock, which is no change of the table"
    if after.dropped:
        yield "it dropped the table; to restore it: lakeledger undrop"


def _branch_effects(before: TableState, after: TableState) -> Iterator[str]:
    for name in sorted({*before.branches, *after.branches}):
        old, new = before.branches.get(name), after.branches.get(name)
        if old == new:
            continue
        if old is None:
            yield f"it created branch {name}; delete it"
        elif new is None:
            yield f"it deleted branch {name}, whose snapshots are gone; create a new one"
        elif new.snapshot is not None and old.head_id != new.head_id:
            yield (
                f"it committed snapshot {new.head_id} to branch {name}; to undo that, roll "
                f"the branch back to snapshot {old.head_id}"
            )
        elif new.since_version != old.since_version:
            yield f"it reset branch {name}; reset it to another snapshot"
        elif new.earliest_snapshot_id != old.earliest_snapshot_id:
            yield f"it expired snapshots of branch {name}, which are gone"


@define
class _StateMerge:
    """Three-way merge of states.

    Attributes:
        reasons: Reasons for parts that cannot be reverted.
        reverted: Columns that were restored or dropped again since, in words.
    """

    reasons: list[str] = field(factory=list)
    reverted: list[str] = field(factory=list)

    def state(self, before: TableState, after: TableState, head: TableState) -> TableState:
        """Return the newest state with a transaction's changes of schema and layout reverted."""
        one, two, now = before.schema, after.schema, head.schema
        fields = self._merge_members(one.fields, two.fields, now.fields, ())
        names = {each.id: each.name for each in fields}
        schema = attrs.evolve(
            now,
            fields=fields,
            primary_keys=self._merge_keys(
                "the primary key", (one, two, now), "primary_keys", names
            ),
            partition_keys=self._merge_keys(
                "the partition keys", (one, two, now), "partition_keys", names
            ),
            options=self._merge_options(one, two, now),
            comment=self.merge_setting(
                "the table's comment", one.comment, two.comment, now.comment
            ),
            identifier_field_ids=self.merge_setting(
                "the identifier fields",
                one.identifier_field_ids,
                two.identifier_field_ids,
                now.identifier_field_ids,
            ),
        )
        spec = self.merge_setting("the partition spec", before.spec, after.spec, head.spec)
        order = self.merge_setting(
            "the sort order", before.sort_order, after.sort_order, head.sort_order
        )
        return attrs.evolve(
            head,
            schema=schema,
            default_spec_id=_spec_id_in(spec, head),
            default_order_id=_order_id_in(order, head),
        )

    def merge_setting(self, what: str, before: object, after: object, now: object) -> Any:
        """Return the merged value of one setting, or record a conflict."""
        if before in (after, now):
            return now
        if now != after:
            self.reasons.append(f"{what} was changed again since; undo that change first")
            return now
        return before

    def _merge_keys(
        self, what: str, states: Sequence[Schema], keys: str, names: Mapping[int, str]
    ) -> tuple[str, ...]:
        """Return a merged key in the columns' new names: columns keep their ids."""
        ids = (tuple(each.field(name).id for name in getattr(each, keys)) for each in states)
        wanted: tuple[int, ...] = self.merge_setting(what, *ids)
        return tuple(names[each] for each in wanted if each in names)

    def _merge_options(self, one: Schema, two: Schema, now: Schema) -> Mapping[str, str]:
        options = dict(now.options)
        for key in {**one.options, **two.options}:
            old, new = one.options.get(key), two.options.get(key)
            found = self.merge_setting(f"option {key}", old, new, now.options.get(key))
            if found is None:
                options.pop(key, None)
            else:
                options[key] = found
        return options

    # Columns.

    def _merge_members(
        self,
        before: Sequence[DataField],
        after: Sequence[DataField],
        now: Sequence[DataField],
        path: tuple[str, ...],
    ) -> tuple[DataField, ...]:
        """Return the merged members of one struct."""
        old, new = ({each.id: each for each in some} for some in (before, after))
        there = {each.id: each for each in now}
        self._add_reverted(old, new, there, path)
        found: dict[int, DataField] = {}
        for each in now:
            if each.id in new and each.id not in old:
                if each == new[each.id]:
                    continue
                self._add_changed_reason((*path, each.name))
            twins = old.get(each.id), new.get(each.id)
            found[each.id] = self._merge_field(*twins, each, path)
        gone = [key for key in old if key not in new and key not in there]
        found |= {key: old[key] for key in gone}
        self._add_duplicate_name_reasons(found.values(), path)
        order = self._merge_member_order([*old], [*new], [*there], path)
        behind = {key: index for index, key in enumerate(old)}
        for key in gone:
            earlier = [each for each in order if behind.get(each, len(behind)) < behind[key]]
            at = order.index(max(earlier, key=behind.__getitem__)) + 1 if earlier else 0
            order.insert(at, key)
        return tuple(found[each] for each in order if each in found)

    def _add_reverted(
        self,
        old: Mapping[int, DataField],
        new: Mapping[int, DataField],
        there: Mapping[int, DataField],
        path: tuple[str, ...],
    ) -> None:
        for key, each in there.items():
            if key in old and key not in new:
                name = quote_path((*path, each.name))
                self.reverted.append(f"column {name} (id {key}), which it dropped, was restored")
        for key, each in new.items():
            if key not in old and key not in there:
                name = quote_path((*path, each.name))
                self.reverted.append(f"column {name} (id {key}), which it added, was dropped")

    def _add_changed_reason(self, path: tuple[str, ...]) -> None:
        self.reasons.append(
            f"column {quote_path(path)}, which it added, was changed since; undo that first"
        )

    def _add_duplicate_name_reasons(
        self, found: Iterable[DataField], path: tuple[str, ...]
    ) -> None:
        counts = Counter(each.name for each in found)
        self.reasons += [
            f"the name {quote_path((*path, name))} belongs to another column by now"
            for name, count in counts.items()
            if count > 1
        ]

    def _merge_field(
        self,
        before: DataField | None,
        after: DataField | None,
        now: DataField,
        path: tuple[str, ...],
    ) -> DataField:
        if before is None or after is None:
            return now
        here = (*path, now.name)
        what = f"column {quote_path(here)}"
        return attrs.evolve(
            now,
            name=self.merge_setting(f"the name of {what}", before.name, after.name, now.name),
            type=self._merge_type(before.type, after.type, now.type, here),
            description=self.merge_setting(
                f"the comment of {what}", before.description, after.description, now.description
            ),
            default_value=self.merge_setting(
                f"the default of {what}",
                before.default_value,
                after.default_value,
                now.default_value,
            ),
        )

    def _merge_type(
        self, before: DataType, after: DataType, now: DataType, path: tuple[str, ...]
    ) -> DataType:
        what = f"column {quote_path(path)}"
        nullable = self.merge_setting(
            f"whether {what} may be NULL", before.nullable, after.nullable, now.nullable
        )
        match before, after, now:
            case RowType(fields=old), RowType(fields=new), RowType(fields=there):
                members = self._merge_members(old, new, there, path)
                return attrs.evolve(now, fields=members, nullable=nullable)
            case ArrayType(element=old), ArrayType(element=new), ArrayType(element=there):
                element = self._merge_type(old, new, there, (*path, "element"))
                return attrs.evolve(now, element=element, nullable=nullable)
            case MapType(value=old), MapType(value=new), MapType(value=there):
                value = self._merge_type(old, new, there, (*path, "value"))
                return attrs.evolve(now, value=value, nullable=nullable)
            case _:
                bare = (each.with_nullability(nullable=True) for each in (before, after, now))
                found: DataType = self.merge_setting(f"the type of {what}", *bare)
                return found.with_nullability(nullable=nullable)

    def _merge_member_order(
        self, before: list[int], after: list[int], now: list[int], path: tuple[str, ...]
    ) -> list[int]:
        """Return the order of a struct's members with the moves of a transaction reverted."""
        stayed = set(before) & set(after) & set(now)
        old, new, there = (
            [each for each in some if each in stayed] for some in (before, after, now)
        )
        if old in (new, there):
            return now
        place = {each: index for index, each in enumerate(old)}
        kept = longest_increasing_subset([place[each] for each in new])
        moved = [each for each in old if place[each] not in kept]
        if there != new and any(
            _predecessor_of(there, each) != _predecessor_of(new, each) for each in moved
        ):
            where = f"the members of {quote_path(path)} were" if path else "columns were"
            self.reasons.append(f"{where} moved again since; undo that change first")
            return now
        order = [each for each in now if each not in moved]
        for each in moved:
            earlier = [key for key in order if place.get(key, len(place)) < place[each]]
            at = order.index(max(earlier, key=place.__getitem__)) + 1 if earlier else 0
            order.insert(at, each)
        return order


def _predecessor_of(order: list[int], member: int) -> int | None:
    at = order.index(member)
    return order[at - 1] if at else None


def _spec_id_in(spec: PartitionSpec, head: TableState) -> int:
    return spec.spec_id if spec in head.specs else head.default_spec_id


def _order_id_in(order: SortOrder, head: TableState) -> int:
    return order.order_id if order in head.sort_orders else head.default_order_id


def _tag_changes(
    before: TableState, after: TableState, head: TableState, merge: _StateMerge
) -> Iterator[TagChange]:
    for name in {**before.tags, **after.tags}:
        found = [_tag_values(state.tags.get(name)) for state in (before, after, head)]
        wanted, there = merge.merge_setting(f"tag {name}", *found), found[2]
        if wanted == there:
            continue
        if wanted is None:
            yield DeleteTag(name)
            continue
        if not head.reachable(wanted[0]):
            merge.reasons.append(f"snapshot {wanted[0]}, which tag {name} named, was expired")
        yield (CreateTag if there is None else ReplaceTag)(name, *wanted)


def _tag_values(tag: Tag | None) -> tuple[int, int | None] | None:
    return None if tag is None else (tag.snapshot_id, tag.time_retained_millis)
