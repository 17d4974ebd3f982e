"""Names of files without field ids: each may only ever stand for one field.

Iceberg finds the columns of such files through one name mapping for the whole table, which cannot
tell two fields of one name apart.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ledger.evolution.declared.format import Batch, History, Refusal
from ledger.evolution.declared.names import binding_of, bindings, named_places
from ledger.evolution.state import TableState
from ledger.evolution.table.snapshots import is_named
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema
from ledger.model.types.walk import TypePlace


def file_name_problems(
    schema: Schema, files: Collection[FileChange], state: TableState, history: History
) -> Iterator[Refusal]:
    """Yield the names of files without field ids that mean other fields than the schema's.

    Args:
        schema: The table's schema, which is to be expressible in Iceberg.
        files: What comes and goes.
        state: The table before.
        history: Its past.
    """
    used = {each.schema_id for each in files if is_named(each)} - {schema.id}
    if not used:
        return
    # What is held was compared with the schema when the one or the other came.
    new = {each for each in used if not history.holds(state, each)}
    if not new:
        return
    names = history.names(state, new)
    if names.agree(bindings(schema)) and (
        not names.is_doubtful or names.are_one(history.schemas(new))
    ):
        return
    # Only now, as it reads much: what no readable snapshot holds any more does not count.
    held = history.reach(state).named_schema_ids
    yield from name_clashes(schema, history.schemas(used.union(held) - {schema.id}))


def batch_name_problems(batch: Batch, *, is_new: bool) -> Iterator[Refusal]:
    """Yield the names that a batch binds to another field than files without field ids mean.

    Args:
        batch: The batch.
        is_new: Whether it declares Iceberg, so that all names count and not those alone that it
            binds.
    """
    state = batch.before
    if not state.named_schema_ids:
        return
    bound = bindings(batch.schema)
    if not is_new:
        before = bindings(state.schema)
        bound = {each: meant for each, meant in bound.items() if before.get(each) != meant}
        if not bound:
            return
    names = batch.history.names(state, ())
    if names.agree(bound) and not (is_new and names.is_doubtful):
        return
    # Only now, as it reads much: what no readable snapshot holds any more does not count.
    held = batch.reach.named_schema_ids
    yield from name_clashes(batch.schema, batch.history.schemas(held))


def name_clashes(schema: Schema, named: Iterable[Schema]) -> Iterator[Refusal]:
    """Yield the names that stand for two fields.

    Args:
        schema: The schema as it shall be.
        named: Those whose names files without field ids use.
    """
    bound = bindings(schema)
    for older in named:
        for place, field_id in named_places(older):
            other = bound.setdefault(binding_of(place), field_id)
            if other != field_id:
                yield _clash(place, other, field_id, older.id)


def _clash(place: TypePlace, field_id: int, older_id: int, schema_id: int) -> Refusal:
    return Refusal(
        f"column {place.name}",
        f"the name would stand for field {field_id}, but files without field ids that can still "
        f"be read, of schema {schema_id}, mean field {older_id} by it",
        "take another name, or rewrite those files with field ids and expire the snapshots that "
        "hold them",
    )
