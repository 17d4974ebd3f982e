"""Commit files: who did what to a table and why, as `DESCRIBE HISTORY` shows it.

Source: the Delta transaction protocol, "Commit Provenance Information"; the names of operations are
those of Delta's own writers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ledger.events import TableEvent
from ledger.events.commit import Transaction
from ledger.events.schema_changes import RemoveOption, SetOption, UpdateComment
from ledger.events.schema_events import (
    ColumnAdded,
    ColumnCommentUpdated,
    ColumnDefaultValueUpdated,
    ColumnDropped,
    ColumnMoved,
    ColumnNullabilityUpdated,
    ColumnRenamed,
    ColumnTypeUpdated,
    ColumnUndropped,
)
from ledger.events.snapshot_events import RolledBack, SnapshotEvent
from ledger.events.table_events import TableCreated
from ledger.model.file_change import FileChange
from projections.delta.log.actions import ENGINE, line

_SNAPSHOTS = {"APPEND": "WRITE", "OVERWRITE": "WRITE", "COMPACT": "OPTIMIZE", "ANALYZE": "ANALYZE"}
_STEPS: dict[type, str] = {
    TableCreated: "CREATE TABLE",
    ColumnAdded: "ADD COLUMNS",
    ColumnUndropped: "ADD COLUMNS",
    ColumnRenamed: "RENAME COLUMN",
    ColumnDropped: "DROP COLUMNS",
    **dict.fromkeys(
        (
            ColumnCommentUpdated,
            ColumnDefaultValueUpdated,
            ColumnMoved,
            ColumnNullabilityUpdated,
            ColumnTypeUpdated,
        ),
        "CHANGE COLUMN",
    ),
    SetOption: "SET TBLPROPERTIES",
    RemoveOption: "UNSET TBLPROPERTIES",
    UpdateComment: "SET TBLPROPERTIES",
}


def commit_info(  # noqa: PLR0913 - what a reader is told
    transaction: Transaction[TableEvent],
    *,
    millis: int,
    version: int,
    ledger_version: int,
    operation: str,
    parameters: Mapping[str, str],
    metrics: Mapping[str, int],
) -> bytes:
    """Return the first line of a commit: who, when, why, and where the ledger has it.

    Args:
        transaction: The ledger's.
        millis: The in-commit timestamp, Unix milliseconds.
        version: Delta's.
        ledger_version: The ledger's, of the commit that holds the transaction.
        operation: What was done, in Delta's words.
        parameters: Of the operation.
        metrics: Of the operation.
    """
    found: dict[str, Any] = {
        "inCommitTimestamp": millis,
        "timestamp": millis,
        "userId": transaction.author,
        "userName": transaction.author,
        "operation": operation,
        "operationParameters": {**parameters, "ledgerVersion": str(ledger_version)},
    }
    if version:
        found["readVersion"] = version - 1
    found |= {
        "isolationLevel": "Serializable",
        "isBlindAppend": operation == "WRITE" and parameters.get("mode") == "Append",
        "operationMetrics": {key: str(value) for key, value in metrics.items()},
    }
    if transaction.message:
        found["userMetadata"] = transaction.message
    found |= {
        "engineInfo": ENGINE,
        "txnId": transaction.id,
        "ledgerVersion": ledger_version,
    }
    return line("commitInfo", found)


def step_operation(events: Sequence[TableEvent]) -> str:
    """Return what Delta calls the events of a schema step; `ALTER TABLE` where they are several."""
    found = {_STEPS.get(type(each), "ALTER TABLE") for each in events}
    return found.pop() if len(found) == 1 else "ALTER TABLE"


def snapshot_operation(
    event: SnapshotEvent, files: Sequence[FileChange], restored: int | None
) -> tuple[str, dict[str, str]]:
    """Return what Delta calls a snapshot, and the operation's parameters.

    Args:
        event: It.
        files: What comes and goes.
        restored: The version that a rollback goes back to, if it still has one.
    """
    said = {"snapshotId": str(event.snapshot_id)}
    if isinstance(event, RolledBack):
        version = {} if restored is None else {"version": str(restored)}
        return "RESTORE", {**version, **said, "targetSnapshotId": str(event.target_snapshot_id)}
    kind = event.commit_kind
    if kind == "OVERWRITE" and all(each.kind == "DELETE" for each in files):
        return "DELETE", said
    operation = _SNAPSHOTS[kind]
    if operation == "WRITE":
        said = {"mode": "Append" if kind == "APPEND" else "Overwrite", **said}
    return operation, said


def metrics_of(files: Sequence[FileChange]) -> dict[str, int]:
    """Return how many files, rows and bytes come and go."""
    come = [each for each in files if each.kind == "ADD"]
    gone = [each for each in files if each.kind == "DELETE"]
    return {
        "numFiles": len(come),
        "numOutputRows": sum(each.record_count for each in come),
        "numOutputBytes": sum(each.file_size_in_bytes for each in come),
        "numRemovedFiles": len(gone),
        "numDeletedRows": sum(each.record_count for each in gone),
    }
