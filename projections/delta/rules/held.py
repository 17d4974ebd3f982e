"""By what names files hold columns: one for each, since Delta finds a column by one name alone."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterator

from ledger.evolution.declared.format import History, Reach, Refusal
from ledger.evolution.state import TableState
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema
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
    if not come or not schema.id or _was_never_renamed(schema, state, history):
        return
    gone = {each.path for each in files if each.kind == "DELETE"}
    live = {each.schema_id for each in history.live(state) if each.path not in gone}
    for place, reason in clashes(schema, HeldNames.of(history.schemas(live | come))):
        yield Refusal(
            f"column {place.name}",
            f"one name has to find a column in all files, and {reason}",
            "write the files with the names that the older ones hold, or overwrite those",
        )


def past_problems(schema: Schema, reach: Reach, history: History) -> Iterator[Refusal]:
    """Yield the columns that files which can be read hold under several names."""
    used = {each.schema_id for each in reach.files}
    for place, reason in clashes(schema, HeldNames.of(history.schemas(used))):
        yield Refusal(
            f"column {place.name}",
            f"one name has to find a column in all files, and {reason}",
            "overwrite the older files, and expire the snapshots that hold them",
        )


def returning_problems(
    schema: Schema, live: Collection[int], returned: Container[int], history: History
) -> Iterator[Refusal]:
    """Yield the columns that are back, and that live files hold under no one name.

    Args:
        schema: The table's, with them.
        live: The schemas of live files.
        returned: The ids of those columns.
        history: The table's past.
    """
    for place, reason in clashes(schema, HeldNames.of(history.schemas(live))):
        if place.field is not None and place.field.id in returned:
            yield Refusal(
                f"column {place.name}",
                f"one name has to find a column in all files, and {reason}",
                "overwrite the files under one name first",
            )


def _was_never_renamed(schema: Schema, state: TableState, history: History) -> bool:
    """Whether all schemas so far called a column the same, and no two of them alike."""
    seen: set[int] = set()
    for _, meant in history.names(state, range(schema.id + 1)).meant():
        if len(meant) > 1 or meant[0] in seen:
            return False
        seen.add(meant[0])
    return True
