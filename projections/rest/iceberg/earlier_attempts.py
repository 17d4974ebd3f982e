"""Earlier attempts of a request, whose table lost its name or exists already.

A client that got no answer sends its request again. Meanwhile another client may have renamed or
dropped the table, or the first attempt may have created it. An answer that
nothing was applied makes the client delete the files that its first attempt committed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import frozen

from ledger.log.request import CommitOptions, digest_of
from ledger.model.names import Identifier
from ledger.opening.creation import may_be_renamed
from ledger.state.catalog import TableEntry
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.iceberg.rest_updates import (
    AddSnapshot,
    AssertTableUuid,
    AssignUuid,
    TableRequirement,
    TableUpdate,
)
from projections.rest.iceberg.catalog import IcebergCatalog
from projections.rest.iceberg.errors import no_such_table, unknown_outcome
from projections.rest.requests import RequestError


@frozen
class Traces:
    """Facts of a request that its commit leaves in a table.

    Attributes:
        commit_id: The idempotency key; None without one.
        uuid: The uuid of the table that it changes, in lower case; None if it does not say.
        snapshot_ids: The ids of the snapshots that it adds.
    """

    commit_id: str | None
    uuid: str | None
    snapshot_ids: frozenset[int]

    @classmethod
    def of(
        cls,
        requirements: Sequence[TableRequirement],
        updates: Sequence[TableUpdate],
        options: CommitOptions,
    ) -> Traces:
        """Return the traces of a commit."""
        uuids = [each.uuid.lower() for each in requirements if isinstance(each, AssertTableUuid)]
        added = (each.snapshot for each in updates if isinstance(each, AddSnapshot))
        return cls(
            options.get("commit_id"),
            uuids[0] if uuids else None,
            frozenset(each.snapshot_id for each in added),
        )

    def are_in(self, table: TableHandle, state: TableState) -> bool:
        """Return whether a table has one of them, and so the commit of the request."""
        if self.uuid not in {None, _uuid_of(state)}:
            return False
        if self.commit_id is not None and table.find_commit(self.commit_id) is not None:
            return True
        origin = state.origin
        return isinstance(origin, IcebergOrigin) and not self.snapshot_ids.isdisjoint(
            origin.added_in
        )


def _uuid_of(state: TableState) -> str:
    origin = state.origin
    found = origin.table_uuid if isinstance(origin, IcebergOrigin) else None
    return (found or state.table_id).lower()


def table_of_attempt(catalog: IcebergCatalog, name: Identifier, traces: Traces) -> TableHandle:
    """Return the table that a commit to a name is for: that of its earlier attempt, if it moved.

    Raises:
        RequestError: There is no such table: 404 if there was no earlier attempt, and 500 if its
            table was dropped, or if that cannot be known.
    """
    try:
        table = catalog.table(name)
    except RequestError:
        found = _find_attempt(catalog, name, traces)
        if found is None:
            raise
        return found
    # A uuid never changes, so the state in memory has it.
    state = table.state if table.log.head is None else table.log.head.state
    if traces.uuid in {None, _uuid_of(state)}:
        return table
    return _find_attempt(catalog, name, traces) or table


def dropped_table_error(catalog: IcebergCatalog, name: Identifier, traces: Traces) -> RequestError:
    """Return the error for a commit to a table that was dropped since the request began.

    Raises:
        RequestError: As of `table_of_attempt`.
    """
    _find_attempt(catalog, name, traces)
    return no_such_table(str(name))


def _find_attempt(catalog: IcebergCatalog, name: Identifier, traces: Traces) -> TableHandle | None:
    """Return the renamed table with the commit of an earlier attempt; None if there is none.

    Raises:
        RequestError: The table was dropped, or the key may be in a log that does not exist any
            more.
    """
    if traces.commit_id is None and not traces.snapshot_ids:
        return None
    for entry in _entries_without(catalog, name):
        table = TableHandle(entry.identifier, entry.path, catalog.handle.setting)
        state = table.log.refresh()
        if state is None:
            if traces.commit_id is not None and entry.identifier == name:
                raise unknown_outcome(f"the log of table {name}, which was dropped, is gone")
        elif traces.are_in(table, state):
            if state.dropped or entry.table_id in catalog.state.dropped:
                raise unknown_outcome(
                    f"an earlier attempt was committed to table {entry.identifier}, which was "
                    "dropped since"
                )
            return catalog.table(entry.identifier)
    return None


def _entries_without(catalog: IcebergCatalog, name: Identifier) -> Iterator[TableEntry]:
    """Yield the tables that may have had a name and do not have it, the last dropped first."""
    state = catalog.state
    for gone in reversed([*state.dropped.values()]):
        yield gone.entry
    for entry in state.tables.values():
        if entry.identifier != name and may_be_renamed(entry):
            yield entry


def created_before(
    catalog: IcebergCatalog,
    name: Identifier,
    updates: Sequence[TableUpdate],
    options: CommitOptions,
) -> TableHandle | None:
    """Return the table that an earlier attempt of a creation without a key made; None if none.

    Raises:
        RequestError: The table has the uuid or a snapshot of the updates, and another request
            created it.
    """
    entry = catalog.state.tables.get(name)
    if entry is None:
        return None
    table = catalog.table(name)
    state = table.state
    uuids = {each.uuid.lower() for each in updates if isinstance(each, AssignUuid)}
    if _uuid_of(state) not in uuids and not Traces.of((), updates, {}).are_in(table, state):
        return None
    created = catalog.handle.log.commit_at(entry.created_version)
    digest = digest_of(options.get("asked"))
    if all(each.asked != digest for each in created.transactions):
        raise unknown_outcome(
            f"table {name} has the uuid or a snapshot of this creation, and another request "
            "created it"
        )
    return table
