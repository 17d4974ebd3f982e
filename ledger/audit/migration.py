"""Migration: the changes that turn one table state into another.

The changes are tried on the earlier state by the same decision as a commit's, so that the result is
what a commit does. Usually one batch is enough. Paimon maps old names to new ones once per batch,
so that some sets of renames need one transaction each; and Paimon checks a dropped column against
the key before the batch, so that a key is removed in an earlier batch.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import attrs
from attrs import frozen
from msgspec import UNSET
from msgspec.structs import replace

from ledger.audit.column_migration import (
    AlignedSchema,
    ColumnMatch,
    ColumnSteps,
    align_schema,
    column_steps,
)
from ledger.decide.format_rules import BoundNames, MemberMisfit, ReadableReach
from ledger.decide.table import PendingTableChanges
from ledger.events import SchemaChange, TableEvent
from ledger.events.commit import FORMAT, Commit, Outside, Transaction
from ledger.events.schema import (
    AddPartitionField,
    DropPrimaryKey,
    RemoveOption,
    RemovePartitionField,
    RenamePartitionField,
    ReplaceSortOrder,
    SetIdentifierFields,
    SetOption,
    SortColumn,
    SpecChange,
    SpecUpdate,
    UpdateComment,
    UpdatePartitionSpec,
)
from ledger.model.errors import InvalidInputError
from ledger.model.file_change import FileChange
from ledger.model.iceberg_layout import PartitionField, PartitionSpec, SortOrder
from ledger.model.schema import Schema
from ledger.model.types import type_places
from ledger.state.columns import PastColumns
from ledger.state.declared_formats import Rules
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.state.table import TableState
from ledger.state.table_builder import TableBuilder

Path = tuple[str, ...]


def layout_changes(
    before: TableState, target: TableState, new_ids: Mapping[int, int]
) -> Iterator[SpecChange]:
    """Yield the changes of partition specs and sort orders.

    If the later specs extend the earlier ones, each of them is created, so that each gets its id.

    Args:
        before: The earlier state.
        target: The later one, its schema in the earlier one's ids.
        new_ids: Replacements of field ids in the later state's layout.
    """
    paths = {
        each.field.id: each.path
        for each in type_places(target.schema.fields)
        if each.field is not None
    }
    sources = {old: paths[new] for old, new in new_ids.items() if new in paths}
    sources |= {key: path for key, path in paths.items() if key not in sources}
    yield from _spec_changes(before, target, sources, new_ids)
    orders = [_order_in_earlier_ids(each, new_ids) for each in target.sort_orders]
    yield from _sort_order_changes(
        before, orders, _order_in_earlier_ids(target.sort_order, new_ids), paths
    )


def _spec_changes(
    before: TableState, target: TableState, sources: Mapping[int, Path], new_ids: Mapping[int, int]
) -> Iterator[SpecChange]:
    current = before.spec
    goes_on = target.specs[: len(before.specs)] == before.specs
    later = target.specs[len(before.specs) :] if goes_on else ()
    for spec in later:
        yield UpdatePartitionSpec(tuple(_spec_field_updates(current, spec, sources, new_ids)))
        current = spec
    if not goes_on:
        kept = _preceding_empty_spec(current, target.spec, new_ids)
        # What is kept has the earlier ids already.
        yield from _spec_update_change(current, kept, sources, {})
        current = kept
    yield from _spec_update_change(current, target.spec, sources, new_ids)


def _preceding_empty_spec(
    before: PartitionSpec, after: PartitionSpec, new_ids: Mapping[int, int]
) -> PartitionSpec:
    """Return a spec without fields that would precede new ones, but should follow them."""
    wanted = [_partition_field_key(each, new_ids) for each in after.fields]
    kept = [each for each in before.fields if _partition_field_key(each, {}) in wanted]
    if [_partition_field_key(each, {}) for each in kept] != wanted[: len(kept)]:
        kept = [
            each
            for each, key in zip(before.fields, wanted, strict=False)
            if _partition_field_key(each, {}) == key
        ]
    return PartitionSpec(before.spec_id, tuple(kept))


def _spec_update_change(
    before: PartitionSpec,
    after: PartitionSpec,
    sources: Mapping[int, Path],
    new_ids: Mapping[int, int],
) -> Iterator[SpecChange]:
    updates = tuple(_spec_field_updates(before, after, sources, new_ids))
    if updates:
        yield UpdatePartitionSpec(updates)


def _partition_field_key(field: PartitionField, new_ids: Mapping[int, int]) -> tuple[int, str]:
    return new_ids.get(field.source_id, field.source_id), field.transform


def _spec_field_updates(
    before: PartitionSpec,
    after: PartitionSpec,
    sources: Mapping[int, Path],
    new_ids: Mapping[int, int],
) -> Iterator[SpecUpdate]:
    old = {_partition_field_key(each, {}): each for each in before.fields}
    new = {_partition_field_key(each, new_ids): each for each in after.fields}
    voids = {each.field_id for each in after.fields if each.transform == "void"}
    for found, each in old.items():
        if found not in new and each.transform != "void":
            yield RemovePartitionField(name=each.name)
    for found, each in new.items():
        there = old.get(found)
        if there is not None:
            if there.name != each.name:
                yield RenamePartitionField(there.name, each.name)
        elif each.field_id not in voids and each.source_id in sources:
            yield AddPartitionField(sources[each.source_id], each.transform, each.name)


def _order_in_earlier_ids(order: SortOrder, new_ids: Mapping[int, int]) -> SortOrder:
    """Return a later order in the ids of the earlier state."""
    fields = (
        replace(each, source_id=new_ids.get(each.source_id, each.source_id))
        for each in order.fields
    )
    return replace(order, fields=tuple(fields))


def _sort_order_changes(
    before: TableState, wanted: Sequence[SortOrder], last: SortOrder, paths: Mapping[int, Path]
) -> Iterator[SpecChange]:
    known = before.sort_orders
    later = wanted[len(known) :] if tuple(wanted[: len(known)]) == known else ()
    current = before.sort_order
    for each in (*later, last):
        if each.fields != current.fields:
            yield ReplaceSortOrder(_sort_columns(each, paths))
        current = each


def _sort_columns(order: SortOrder, paths: Mapping[int, Path]) -> tuple[SortColumn, ...]:
    return tuple(
        SortColumn(paths[each.source_id], each.transform, each.direction, each.null_order)
        for each in order.fields
        if each.source_id in paths
    )


@frozen
class _ColumnsOnlyPast:
    """Past of a table of which only the columns are needed."""

    _past: PastColumns

    def schemas(self, _schema_ids: Collection[int]) -> list[Schema]:
        return []

    def names(self, _state: TableState, _more: Collection[int]) -> BoundNames:
        return BoundNames()

    def holds(self, _state: TableState, _schema_id: int) -> bool:
        return False

    def columns(self, _state: TableState) -> PastColumns:
        return self._past

    def live(self, _state: TableState) -> Collection[FileChange]:
        return ()

    def reach(self, _state: TableState) -> ReadableReach:
        return ReadableReach()

    def member_misfits(
        self, _files: Collection[FileChange], _schemas: Mapping[int, Schema]
    ) -> Iterator[MemberMisfit]:
        return iter(())


def state_after_changes(
    state: TableState,
    changes: Sequence[SchemaChange | SpecChange],
    past: PastColumns | None = None,
) -> TableState:
    """Return the state after a batch of changes, decided by the rules of the state's options.

    Rules of formats about the table's files are not checked.

    Args:
        state: The state.
        changes: One batch.
        past: The columns that the table had; None if they are unknown.

    Raises:
        InvalidChangeError: A rule forbids a change.
    """
    pending_changes = PendingTableChanges(changes, state.schema.highest_field_id)
    return state_after_events(
        state,
        pending_changes.decide(state, Rules.of, _ColumnsOnlyPast(past or PastColumns())).events,
    )


def state_after_events(state: TableState, events: Sequence[TableEvent]) -> TableState:
    """Return the state after events; its version and times have no meaning."""
    if not events:
        return state
    builder = TableBuilder(state)
    transaction: Transaction[TableEvent] = Transaction(
        id="trial",
        asked="",
        outside=Outside() if state.keeps_outside else UNSET,
        events=tuple(events),
    )
    builder.commit(
        Commit(
            format=FORMAT,
            version=state.version + 1,
            time_millis=state.time_millis + 1,
            transactions=(transaction,),
        )
    )
    return builder.freeze()


Change = SchemaChange | SpecChange
Batch = tuple[Change, ...]


@frozen
class Migration:
    """Migration: the changes of schema and layout from one state of a table to another.

    Attributes:
        batches: Batches of changes for `alter`, one transaction each; empty without a difference.
        refusal: The reason why the earlier state's rules reject them; None if they are valid.
        new_ids: Later field id to its replacement, if the id itself cannot be restored.
    """

    batches: tuple[Batch, ...]
    refusal: str | None
    new_ids: Mapping[int, int]

    @property
    def changes(self) -> Batch:
        """The changes of all batches, in order."""
        return tuple(change for batch in self.batches for change in batch)


def default_column_match(before: TableState, after: TableState) -> ColumnMatch:
    """Return the rule to match columns: ids where they mean the same in both states, else names.

    They do in states of one table, and of tables that were imported from one Iceberg table.
    """
    if before.table_id == after.table_id:
        return "id"
    sources = [
        state.origin.table_uuid
        for state in (before, after)
        if isinstance(state.origin, IcebergOrigin) and state.origin.table_uuid is not None
    ]
    return "id" if len(sources) > len(set(sources)) else "name"


def plan_migration(
    before: TableState,
    after: TableState,
    past: PastColumns | None = None,
    match: ColumnMatch | None = None,
) -> Migration:
    """Return the changes of schema and layout that lead from one state to another.

    Snapshots and tags are excluded.

    Args:
        before: The first state.
        after: The second state.
        past: The columns that the table had up to the first state, which can be restored under
            their ids; None to restore none.
        match: The rule to match columns; None for the default of the two states.
    """
    known = PastColumns() if past is None else past
    aligned = align_schema(
        before.schema, after.schema, known, match=match or default_column_match(before, after)
    )
    target = attrs.evolve(after, schema=aligned.schema)
    refusals: list[str] = []
    first: tuple[Batch, ...] = ()
    for plan in (_plan_one_batch, _plan_renames_one_by_one):
        try:
            batches = tuple(plan(before, target, aligned, known))
        except InvalidInputError as error:
            refusals.append(error.message)
            continue
        first = first or batches
        refusal = _refusal_reason(before, target, batches, known)
        if refusal is None:
            return Migration(batches, None, aligned.lost)
        refusals.append(refusal)
    return Migration(first, refusals[0], aligned.lost)


def _plan_one_batch(
    before: TableState, target: TableState, aligned: AlignedSchema, past: PastColumns
) -> Iterator[Batch]:
    steps = _plan_column_steps(before, target, past, renames_first=False)
    columns = (*_primary_key_drop(before, target), *steps.drops, *steps.renames, *steps.rest)
    batch = _complete_batch(before, target, columns, aligned, past)
    if batch:
        yield batch


def _plan_renames_one_by_one(
    before: TableState, target: TableState, aligned: AlignedSchema, past: PastColumns
) -> Iterator[Batch]:
    steps = _plan_column_steps(before, target, past, renames_first=True)
    state = before
    for each in (*_primary_key_drop(before, target), *steps.renames):
        yield (each,)
        state = state_after_changes(state, [each])
    columns = (*steps.drops, *steps.rest)
    batch = _complete_batch(state, target, columns, aligned, past)
    if batch:
        yield batch


def _plan_column_steps(
    before: TableState, target: TableState, past: PastColumns, *, renames_first: bool
) -> ColumnSteps:
    schema = before.schema
    if schema.primary_keys and not target.schema.primary_keys:
        schema = attrs.evolve(schema, primary_keys=())
    return column_steps(schema, target.schema, past, renames_first=renames_first)


def _primary_key_drop(before: TableState, target: TableState) -> Iterator[Change]:
    if before.schema.primary_keys and not target.schema.primary_keys:
        yield DropPrimaryKey()


def _complete_batch(
    before: TableState,
    target: TableState,
    columns: Batch,
    aligned: AlignedSchema,
    past: PastColumns,
) -> Batch:
    """Return a batch of column changes completed by the changes of keys, options and layout."""
    try:
        reached = state_after_changes(before, columns, past).schema if columns else before.schema
    except InvalidInputError:
        # The decision on the whole batch reports the reason.
        reached = before.schema
    wanted = target.schema
    rest: list[Change] = [*_option_changes(reached, wanted), *_key_option_changes(reached, wanted)]
    if reached.comment != wanted.comment:
        rest.append(UpdateComment(wanted.comment))
    if reached.identifier_field_ids != wanted.identifier_field_ids:
        paths = {each.field.id: each.path for each in type_places(wanted.fields) if each.field}
        found = (paths[each] for each in wanted.identifier_field_ids if each in paths)
        rest.append(SetIdentifierFields(tuple(found)))
    return (*columns, *rest, *layout_changes(before, target, aligned.lost))


def _option_changes(before: Schema, after: Schema) -> Iterator[Change]:
    yield from (RemoveOption(key) for key in before.options if key not in after.options)
    for key, value in after.options.items():
        if before.options.get(key) != value:
            yield SetOption(key, value)


def _key_option_changes(before: Schema, after: Schema) -> Iterator[Change]:
    keys = (
        ("partition", before.partition_keys, after.partition_keys),
        ("primary-key", before.primary_keys, after.primary_keys),
    )
    for option, old, new in keys:
        if new and new != old:
            yield SetOption(option, ",".join(new))


def _refusal_reason(
    before: TableState, target: TableState, batches: Sequence[Batch], past: PastColumns
) -> str | None:
    state = before
    try:
        for batch in batches:
            state = state_after_changes(state, batch, past)
    except InvalidInputError as error:
        return error.message
    for what, found, wanted in _compared_aspects(state, target):
        if found != wanted:
            return f"no changes lead to its {what}"
    return None


def _compared_aspects(
    state: TableState, target: TableState
) -> Iterator[tuple[str, object, object]]:
    one, two = state.schema, target.schema
    yield "columns", one.fields, two.fields
    yield "options", one.options, two.options
    yield "primary key", one.primary_keys, two.primary_keys
    yield "partition keys", one.partition_keys, two.partition_keys
    yield "comment", one.comment, two.comment
    yield "identifier fields", one.identifier_field_ids, two.identifier_field_ids
    shape = [(each.name, each.transform) for each in state.spec.fields]
    yield "partition spec", shape, [(each.name, each.transform) for each in target.spec.fields]
    rows = [(each.transform, each.direction, each.null_order) for each in state.sort_order.fields]
    yield (
        "sort order",
        rows,
        [(each.transform, each.direction, each.null_order) for each in target.sort_order.fields],
    )
