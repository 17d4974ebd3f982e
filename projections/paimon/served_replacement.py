"""Replacement of a served table: all rows are deleted, and another schema is the newest.

Snapshots and schemas before stay, so that older ones can be read.

Source: Paimon's AbstractCatalog.replaceTable.
"""

from __future__ import annotations

from functools import partial
from typing import Final, Unpack

from attrs import evolve

from ledger.events import TableEvent
from ledger.log.request import Appended, CommitOptions, fresh_id
from ledger.model.errors import CommitConflictError, InvalidChangeError, UnsupportedError
from ledger.model.schema import Schema
from ledger.opening.creation import new_table
from ledger.state.declared_formats import FORMATS_OPTION
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.importing.trial import PlanningState
from projections.paimon.importing import is_same_schema, schema_events
from projections.paimon.schema_file import schema_to_json
from projections.paimon.served import PATH_OPTION, refuse_ledger_options
from projections.paimon.served_files import outputs_of_engines, write_committed_files
from projections.paimon.served_folder import record_folder
from projections.paimon.served_origin import served_origin
from projections.paimon.snapshot_event import snapshot_event
from projections.paimon.truncation import Truncation, truncate

_TYPE: Final = "type"
_TABLE: Final = "table"
_MOST_ATTEMPTS: Final = 20


class _NewerSnapshotError(InvalidChangeError):
    """An engine committed a snapshot after the truncation was made."""


def replace_table(
    table: TableHandle, schema: Schema, **commit: Unpack[CommitOptions]
) -> Appended[TableState]:
    """Delete all rows of a table and replace its schema, by one commit; its files exist then.

    Args:
        table: The table.
        schema: The new schema; field ids are kept, and may be those of other columns before.
        commit: See CommitOptions.

    Raises:
        InvalidInputError: Paimon has no table with that schema, or it sets an option of the ledger.
        InvalidChangeError: Engines of Paimon do not own the table.
        UnsupportedError: The partition keys differ, or a table of files alone would be replaced.
        CommitConflictError: Engines committed again and again meanwhile.
        CommitUnknownError: The store did not answer, so the commit may have been made.
    """
    wanted = _checked_schema(schema)
    asked = ["paimonReplace", {**schema_to_json(wanted), "timeMillis": 0}]
    user = f"replace-table-{fresh_id()}"
    for _ in range(_MOST_ATTEMPTS):
        state = record_folder(table)
        check_replaceable(state, wanted)
        now = table.setting.now_millis()
        truncation = truncate(table, state, user, now)
        if truncation is not None:
            steps = [truncation.manifests, truncation.lists]
            outputs_of_engines(table, state).put_many(steps)
        decide = partial(
            replacement_events,
            seen=state,
            truncation=truncation,
            wanted=wanted,
            now_millis=now,
        )
        try:
            done = table.commit_events(asked, decide, **commit)
        except _NewerSnapshotError:
            _remove(table, state, truncation)
            continue
        write_committed_files(table, done.state)
        return done
    raise CommitConflictError(
        f"engines committed to {table.identifier} {_MOST_ATTEMPTS} times while it was to be "
        "replaced; stop them, then retry. Nothing was committed",
        "snapshot",
        table.state.version,
    )


def _checked_schema(schema: Schema) -> Schema:
    refuse_ledger_options(schema.options)
    options = {key: each for key, each in schema.options.items() if key != PATH_OPTION}
    new_table(evolve(schema, options={**options, FORMATS_OPTION: "paimon"}, id=0))
    return evolve(schema, options=options)


def check_replaceable(state: TableState, wanted: Schema) -> None:
    """Check that a table can be replaced.

    Raises:
        InvalidChangeError: Engines of Paimon do not own it.
        UnsupportedError: The partition keys differ, or it is, or would be, a table of files alone.
    """
    served_origin(state)
    had, has = (each.options.get(_TYPE, _TABLE) for each in (state.schema, wanted))
    if (had, has) != (_TABLE, _TABLE):
        raise UnsupportedError(
            f"a table of type {had} cannot be replaced by one of type {has}; drop it, and create "
            "another one"
        )
    if state.schema.partition_keys != wanted.partition_keys:
        raise UnsupportedError(
            f"the table has the partition keys {list(state.schema.partition_keys)}, and a "
            f"replacement cannot have {list(wanted.partition_keys)}; drop it, and create another "
            "one"
        )


def replacement_events(
    state: TableState,
    seen: TableState,
    truncation: Truncation | None,
    wanted: Schema,
    now_millis: int,
) -> tuple[TableEvent, ...]:
    """Return the events of a replacement on a state.

    Args:
        state: The state.
        seen: The state that the truncation was made of.
        truncation: The snapshot without rows; None if there are none.
        wanted: The new schema.
        now_millis: The current time, Unix milliseconds.

    Raises:
        InvalidChangeError: An engine committed meanwhile.
    """
    check_replaceable(state, wanted)
    if (state.snapshot, state.schema.id) != (seen.snapshot, seen.schema.id):
        raise _NewerSnapshotError("the table changed while it was to be replaced", kind="STALE")
    number = max(served_origin(state).schemas) + 1
    named = evolve(wanted, id=number)
    events = (
        *(() if truncation is None else (snapshot_event(truncation.snapshot),)),
        *schema_events(state.schema, named),
    )
    moment = max(now_millis, state.time_millis, state.effective_millis)
    after = PlanningState(state, moment).after(events, moment, "")
    if not is_same_schema(after.schema, named):
        raise UnsupportedError(
            "the ledger cannot hold this schema in the place of the table's; drop the table, and "
            "create another one"
        )
    return events


def _remove(table: TableHandle, state: TableState, truncation: Truncation | None) -> None:
    """Remove the files of a truncation that was not committed."""
    if truncation is not None:
        outputs = outputs_of_engines(table, state)
        for path in (*truncation.lists, *truncation.manifests):
            outputs.remove(path)
