"""Registration of an existing Paimon table as one that engines own.

Its whole history becomes version 0: every schema, snapshot, tag and branch in its folder, with the
ids and times that they have there. Its files stay where they are.

Source: Paimon's RESTCatalog, registerTable.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Unpack

from attrs import evolve
from msgspec.structs import replace

from ledger.events import TableEvent
from ledger.events.imported import SchemaNamed
from ledger.events.snapshots import SnapshotCommitted, TagCreated
from ledger.ledger_handle import LedgerHandle
from ledger.ledger_writes import create_recorded_table
from ledger.log.request import CommitOptions
from ledger.model.errors import UnsupportedError
from ledger.model.names import Identifier
from ledger.model.snapshot import Snapshot
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.importing.trial import PlanningState
from projections.locations import check_location, check_unowned_folder
from projections.paimon.importing import creation_of, open_source, plan_transactions
from projections.paimon.served_files import write_committed_files
from projections.paimon.source import PaimonSource


def register_table(
    ledger: LedgerHandle, name: Identifier, location: str, **commit: Unpack[CommitOptions]
) -> TableHandle:
    """Create a table that engines own from the folder of an existing one, by one commit.

    Args:
        ledger: The ledger.
        name: The table's name; its database exists.
        location: The table's folder.
        commit: See CommitOptions.

    Raises:
        AlreadyExistsError: A table or view of that name exists.
        NotFoundError: The database does not exist, or the folder holds no table of Paimon.
        InvalidInputError: A file of the table is damaged, or the location is not one.
        InvalidChangeError: The folder meets another table's; see `check_unowned_folder`.
        CommitConflictError: Another request registers it at the same time.
        UnsupportedError: The location is not allowed, or the ledger cannot hold the table.
        CommitUnknownError: The store did not answer, so the commit may have been made.
    """
    check_location(ledger, location, "path")
    source = open_source(location, ledger.setting.file_access())
    if source.fence is not None:
        raise UnsupportedError(
            f"{source.location} is written by a ledger's table and rejects other writers: commit "
            "there, or import it"
        )
    creation = creation_of(source)
    trial = PlanningState(creation.state(), ledger.setting.now_millis())
    start = trial.state
    steps = [*plan_transactions(trial, source)]
    source.check_files_exist()
    events = tuple(_with_times(source, (each for step in steps for each in step.events)))
    _check_same(PlanningState(start, trial.now_millis).after(events, 0, ""), trial.state)
    facts = {**creation.facts(), "protocol": "paimon", "events": events}
    commit.setdefault("asked", ["paimonRegister", str(name), source.location])
    check = partial(check_unowned_folder, ledger, location=source.location)
    table = create_recorded_table(ledger, name, facts, commit, check)
    write_committed_files(table)
    return table


def _with_times(source: PaimonSource, events: Iterable[TableEvent]) -> Iterator[TableEvent]:
    """Yield the events of a history, with the times that its files have."""
    tags = source.tags
    expired = {each.snapshot.id: each.snapshot for each in tags.values()}
    for each in events:
        if isinstance(each, SchemaNamed):
            yield replace(each, time_millis=source.schema(each.schema_id).time_millis)
        elif isinstance(each, SnapshotCommitted):
            number = each.snapshot_id
            is_live = number in source.snapshot_ids
            found = source.snapshot(number) if is_live else expired[number]
            yield replace(each, time_millis=found.time_millis)
        elif isinstance(each, TagCreated) and tags[each.tag_name].create_time_millis is not None:
            yield replace(each, create_time_millis=tags[each.tag_name].create_time_millis)
        else:
            yield each


def _check_same(made: TableState, planned: TableState) -> None:
    """Check that the events lead to the same table in one transaction as one by one."""

    def shape(state: TableState) -> object:
        origin = state.origin_of_kind(PaimonOrigin)
        tags = {name: (t.snapshot_id, t.time_retained_millis) for name, t in state.tags.items()}
        snapshots = {key: _without_time(each) for key, each in origin.readable_snapshots.items()}
        return snapshots, {*origin.snapshots}, {*origin.schemas}, tags, origin.branches

    if shape(made) != shape(planned):
        raise UnsupportedError(
            f"the ledger cannot hold the history of {made.origin.source} in one commit; import it "
            "(lakeledger import paimon)"
        )


def _without_time(snapshot: Snapshot) -> Snapshot:
    return evolve(snapshot, time_millis=0)
