"""Commits of snapshots, and rollbacks.

A conflicting commit is no error, but `{"success": false}`: only a commit that was certainly not
applied is answered so, since engines of Paimon up to 1.3 delete the manifests of the attempt then.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from attrs import evolve
from msgspec import UNSET

from ledger.model.errors import NotFoundError
from ledger.model.instant import SnapshotInstant
from ledger.model.messages import excerpt
from projections.dlf.objects import (
    CommitTableRequest,
    CommitTableResponse,
    PartitionStatistics,
    RollbackSchemaRequest,
    RollbackTableRequest,
)
from projections.dlf.reading import read
from projections.paimon.served_commits import SnapshotRequest, commit_snapshot
from projections.paimon.served_partitions import statistics_event
from projections.paimon.served_rollback import rollback_schema, rollback_table
from projections.paimon.snapshot_file import snapshot_of_request
from projections.rest.paimon.catalog import PaimonCatalog
from projections.rest.paimon.earlier_attempts import was_committed
from projections.rest.paimon.errors import TABLE, no_such_snapshot, no_such_tag, not_found
from projections.rest.paimon.lines import Line, missing_as_table, open_line
from projections.rest.paimon.requests import (
    EMPTY,
    commit_options,
    decode,
    document_of,
    reply,
    table_of,
)
from projections.rest.requests import Call, Endpoint, Reply, RequestError

_BASE: Final = "baseSnapshotUuid"
_STATISTICS: Final = "statistics"
_NOT_FOUND: Final = 404


def commit_table(catalog: PaimonCatalog, call: Call) -> Reply:
    """Commit a snapshot to a table, or to a branch of it."""
    document: Any = document_of(call)
    wanted = read(document, CommitTableRequest)
    snapshot = snapshot_of_request(document["snapshot"])
    # An engine of an older version says no base, which is not the same as that there is none.
    base = wanted.base_snapshot_uuid if _BASE in document else UNSET
    # Without a list it is unknown which partitions changed; an empty one says that none did.
    reported = None if document.get(_STATISTICS) is None else wanted.statistics
    request = SnapshotRequest(table_id=wanted.table_id, snapshot=snapshot, base_snapshot_uuid=base)
    try:
        success = _commit(catalog, call, request, reported)
    except RequestError as error:
        branch = table_of(call).branch
        if error.status != _NOT_FOUND or not was_committed(
            catalog, wanted.table_id, snapshot, branch
        ):
            raise
        success = True
    return reply(CommitTableResponse(success))


def _commit(
    catalog: PaimonCatalog,
    call: Call,
    request: SnapshotRequest,
    reported: Sequence[PartitionStatistics] | None,
) -> bool:
    """Commit a snapshot with what its engine says about partitions; return whether it is there."""
    line, snapshot = open_line(catalog, call), request.snapshot
    _check_table_id(line, request.table_id)
    statistics = statistics_event(line.table, line.state, reported, snapshot.id)
    events = () if statistics is None else (statistics,)
    options = commit_options(catalog, call, "commitTable", dict(snapshot.properties or {}))
    try:
        return commit_snapshot(
            line.table, evolve(request, events=events), branch=line.branch, **options
        )
    except NotFoundError as error:
        _check_table_id(open_line(catalog, call), request.table_id)
        # The snapshot's schema; clients take 404 for the table.
        raise RequestError(400, str(error)) from error


def _check_table_id(line: Line, table_id: str) -> None:
    """Check that an engine commits to the table that it loaded.

    Raises:
        RequestError: Another table has its name.
    """
    found = line.whole.table_id
    if found != table_id:
        raise not_found(
            TABLE,
            line.identifier.name,
            f"Table {line.identifier} has the id {found}, not {excerpt(table_id)}; load it again.",
        )


def roll_back_table(catalog: PaimonCatalog, call: Call) -> Reply:
    """Remove the snapshots after that of an id or of a tag."""
    wanted = decode(call, RollbackTableRequest)
    line = open_line(catalog, call)
    options = commit_options(catalog, call, "rollbackTable")
    try:
        with missing_as_table(line.identifier):
            rollback_table(
                line.table,
                wanted.instant,
                from_snapshot=wanted.from_snapshot,
                branch=line.branch,
                **options,
            )
    except NotFoundError as error:
        if isinstance(wanted.instant, SnapshotInstant):
            raise no_such_snapshot(wanted.instant.snapshot_id, line.identifier) from error
        raise no_such_tag(wanted.instant.tag_name, line.identifier) from error
    return EMPTY


def roll_back_schema(catalog: PaimonCatalog, call: Call) -> Reply:
    """Remove the schemas after one."""
    wanted = decode(call, RollbackSchemaRequest)
    line = open_line(catalog, call)
    options = commit_options(catalog, call, "rollbackSchema")
    try:
        with missing_as_table(line.identifier):
            rollback_schema(line.table, wanted.schema_id, branch=line.branch, **options)
    except NotFoundError as error:
        # Clients take 404 for a table that does not exist.
        raise RequestError(400, str(error)) from error
    return EMPTY


_ONE: Final = "/v1/{prefix}/databases/{database}/tables/{table}"

ENDPOINTS: Final[tuple[Endpoint[PaimonCatalog], ...]] = (
    Endpoint("POST", f"{_ONE}/commit", commit_table, "write"),
    Endpoint("POST", f"{_ONE}/rollback", roll_back_table, "write"),
    Endpoint("POST", f"{_ONE}/rollback-schema", roll_back_schema, "write"),
)
