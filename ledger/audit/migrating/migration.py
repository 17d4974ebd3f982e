"""From one state of a table to another: the changes that `alter` takes.

They are tried out on the earlier state, by the same decision that a commit meets, so that what is
promised here is what a commit does. Mostly one batch is enough. Paimon maps old names to new ones
once a batch, so that some sets of renames need a transaction each; and a column is dropped by the
key that the table had before its batch, so that a key goes first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import attrs
from attrs import frozen

from ledger.audit.migrating.aligning import Aligned, align
from ledger.audit.migrating.columns import ColumnSteps, column_steps
from ledger.audit.migrating.layout import layout_changes
from ledger.audit.migrating.trial import tried
from ledger.events import SchemaChange, SpecChange
from ledger.events.schema_changes import (
    DropPrimaryKey,
    RemoveOption,
    SetIdentifierFields,
    SetOption,
    UpdateComment,
)
from ledger.evolution.state import TableState
from ledger.evolution.tree.past import PastColumns
from ledger.model.errors import InvalidInputError
from ledger.model.schema import Schema
from ledger.model.types.walk import type_places

Change = SchemaChange | SpecChange
Batch = tuple[Change, ...]


@frozen
class Migration:
    """What leads from one state of a table to another.

    Attributes:
        batches: Changes that `alter` takes, one transaction each; none where nothing differs.
        refusal: Why the rules of the earlier state do not take them; None where they do.
        new_ids: Later field id to the one that stands for it, where its own cannot come again.
    """

    batches: tuple[Batch, ...]
    refusal: str | None
    new_ids: Mapping[int, int]

    @property
    def changes(self) -> Batch:
        """All of them, in order."""
        return tuple(change for batch in self.batches for change in batch)


def migrate(before: TableState, after: TableState, past: PastColumns | None = None) -> Migration:
    """Return the changes of schema and layout that lead from one state to another.

    Columns of one table are the same where their field ids are, whatever they are called; those of
    two tables where their names are. Snapshots and tags are no part of it.

    Args:
        before: The one state.
        after: The other.
        past: The columns that the table had up to the one, which can come back under their ids;
            None where none shall.
    """
    known = PastColumns() if past is None else past
    is_one_table = before.table_id == after.table_id
    aligned = align(before.schema, after.schema, known, is_one_table=is_one_table)
    target = attrs.evolve(after, schema=aligned.schema)
    refusals: list[str] = []
    first: tuple[Batch, ...] = ()
    for plan in (_in_one, _one_by_one):
        try:
            batches = tuple(plan(before, target, aligned, known))
        except InvalidInputError as error:
            refusals.append(error.message)
            continue
        first = first or batches
        refusal = _refusal(before, target, batches, known)
        if refusal is None:
            return Migration(batches, None, aligned.lost)
        refusals.append(refusal)
    return Migration(first, refusals[0], aligned.lost)


def _in_one(
    before: TableState, target: TableState, aligned: Aligned, past: PastColumns
) -> Iterator[Batch]:
    steps = _steps(before, target, past, renames_first=False)
    columns = (*_keyless(before, target), *steps.drops, *steps.renames, *steps.rest)
    batch = _completed(before, target, columns, aligned, past)
    if batch:
        yield batch


def _one_by_one(
    before: TableState, target: TableState, aligned: Aligned, past: PastColumns
) -> Iterator[Batch]:
    steps = _steps(before, target, past, renames_first=True)
    state = before
    for each in (*_keyless(before, target), *steps.renames):
        yield (each,)
        state = tried(state, [each])
    columns = (*steps.drops, *steps.rest)
    batch = _completed(state, target, columns, aligned, past)
    if batch:
        yield batch


def _steps(
    before: TableState, target: TableState, past: PastColumns, *, renames_first: bool
) -> ColumnSteps:
    schema = before.schema
    if schema.primary_keys and not target.schema.primary_keys:
        schema = attrs.evolve(schema, primary_keys=())
    return column_steps(schema, target.schema, past, renames_first=renames_first)


def _keyless(before: TableState, target: TableState) -> Iterator[Change]:
    if before.schema.primary_keys and not target.schema.primary_keys:
        yield DropPrimaryKey()


def _completed(
    before: TableState, target: TableState, columns: Batch, aligned: Aligned, past: PastColumns
) -> Batch:
    """Return a batch with what else differs once its columns are as they should be."""
    try:
        reached = tried(before, columns, past).schema if columns else before.schema
    except InvalidInputError:
        # Whoever tries the whole batch is told why.
        reached = before.schema
    wanted = target.schema
    rest: list[Change] = [*_options(reached, wanted), *_keys(reached, wanted)]
    if reached.comment != wanted.comment:
        rest.append(UpdateComment(wanted.comment))
    if reached.identifier_field_ids != wanted.identifier_field_ids:
        paths = {each.field.id: each.path for each in type_places(wanted.fields) if each.field}
        found = (paths[each] for each in wanted.identifier_field_ids if each in paths)
        rest.append(SetIdentifierFields(tuple(found)))
    return (*columns, *rest, *layout_changes(before, target, aligned.lost))


def _options(before: Schema, after: Schema) -> Iterator[Change]:
    yield from (RemoveOption(key) for key in before.options if key not in after.options)
    for key, value in after.options.items():
        if before.options.get(key) != value:
            yield SetOption(key, value)


def _keys(before: Schema, after: Schema) -> Iterator[Change]:
    keys = (
        ("partition", before.partition_keys, after.partition_keys),
        ("primary-key", before.primary_keys, after.primary_keys),
    )
    for option, old, new in keys:
        if new and new != old:
            yield SetOption(option, ",".join(new))


def _refusal(
    before: TableState, target: TableState, batches: Sequence[Batch], past: PastColumns
) -> str | None:
    state = before
    try:
        for batch in batches:
            state = tried(state, batch, past)
    except InvalidInputError as error:
        return error.message
    for what, found, wanted in _aspects(state, target):
        if found != wanted:
            return f"no changes lead to its {what}"
    return None


def _aspects(state: TableState, target: TableState) -> Iterator[tuple[str, object, object]]:
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
