"""By what names files hold columns: one for each, since Delta finds a column by one name alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ledger.evolution.declared.format import Batch, History, Refusal
from ledger.evolution.state import TableState
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema
from ledger.model.types.walk import type_places
from projections.delta.table.columns import CalledInFiles
from projections.delta.table.mapping import HeldNames, clashes


def arriving_problems(
    schema: Schema, files: Collection[FileChange], state: TableState, history: History
) -> Iterator[Refusal]:
    """Yield the columns that live files would hold under several names once files have come.

    Args:
        schema: The table's.
        files: What comes and goes.
        state: The table before.
        history: Its past.
    """
    come = {each.schema_id for each in files if each.kind == "ADD"}
    if not come or not schema.id or _is_plain(schema, state, history):
        return
    gone = {each.path for each in files if each.kind == "DELETE"}
    live = {each.schema_id for each in history.live(state) if each.path not in gone}
    for place, reason in clashes(schema, _held(state, history, live | come)):
        yield Refusal(
            f"column {place.name}",
            f"one name has to find a column in all files, and {reason}",
            "write the files with the names that the older ones hold, or overwrite those",
        )


def past_problems(batch: Batch) -> Iterator[Refusal]:
    """Yield the columns that files which can be read hold under several names."""
    used = {each.schema_id for each in batch.reach.files}
    held = _held(batch.before, batch.history, used)
    for place, reason in clashes(batch.schema, held):
        yield Refusal(
            f"column {place.name}",
            f"one name has to find a column in all files, and {reason}",
            "overwrite the older files, and expire the snapshots that hold them",
        )


def returning_problems(batch: Batch) -> Iterator[Refusal]:
    """Yield the columns that are back, and that live files hold under no one name."""
    live = {each.schema_id for each in batch.history.live(batch.before)}
    held = _held(batch.before, batch.history, live)
    for place, reason in clashes(batch.schema, held):
        if place.field is not None and place.field.id in batch.returned:
            yield Refusal(
                f"column {place.name}",
                f"one name has to find a column in all files, and {reason}",
                "overwrite the files under one name first",
            )


def _held(state: TableState, history: History, schema_ids: Collection[int]) -> HeldNames:
    called = CalledInFiles.of(state)
    return HeldNames.of(map(called.schema, history.schemas(schema_ids)))


def _is_plain(schema: Schema, state: TableState, history: History) -> bool:
    """Whether all files surely call columns as the schema does."""
    called = CalledInFiles.of(state)
    is_named = any(
        place.field is not None
        and called.names.get(place.field.id, place.field.name) != place.field.name
        for place in type_places(schema.fields)
    )
    return not is_named and _was_never_renamed(schema, state, history)


def _was_never_renamed(schema: Schema, state: TableState, history: History) -> bool:
    """Whether all schemas so far called a column the same, and no two of them alike."""
    seen: set[int] = set()
    for _, meant in history.names(state, range(schema.id + 1)).meant():
        if len(meant) > 1 or meant[0] in seen:
            return False
        seen.add(meant[0])
    return True
