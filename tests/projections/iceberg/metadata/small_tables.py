"""Small tables in memory, and commits to them."""

from __future__ import annotations

from typing import Any

from projections.iceberg import TableMetadata, apply_updates, table_update_from_json
from projections.iceberg.metadata_schema import NestedField, PlainType, Schema
from tests.projections.iceberg.metadata.cases import UUID
from tests.projections.iceberg.metadata.creation import NewTable, creating

SCHEMA = Schema(
    0,
    (
        NestedField(1, "id", PlainType("long"), required=True),
        NestedField(2, "day", PlainType("date"), required=False),
    ),
)
START_MS = 1_700_000_000_000


def table(**values: Any) -> TableMetadata:
    """Return a new table with what is given."""
    new = NewTable(uuid=UUID, location="mem:/t", schema=SCHEMA, **values)
    return apply_updates(None, creating(new), now_ms=START_MS)


def commit(base: TableMetadata | None, *batch: dict[str, Any], at: int = 9) -> TableMetadata:
    """Return the table after a commit `at` milliseconds after the start."""
    return apply_updates(
        base, [table_update_from_json(each) for each in batch], now_ms=START_MS + at
    )


def added(number: int, parent: int | None = None, **values: Any) -> dict[str, Any]:
    snapshot = {
        "sequence-number": number,
        "snapshot-id": number,
        "timestamp-ms": START_MS + number,
        "summary": {"operation": "append"},
        "manifest-list": f"mem:/t/snap-{number}.avro",
        **({"parent-snapshot-id": parent} if parent else {}),
        **values,
    }
    return {"action": "add-snapshot", "snapshot": snapshot}


def pointed(
    name: str, number: int, kind: str = "branch", retention: dict[str, int] | None = None
) -> dict[str, Any]:
    ref = {"ref-name": name, "snapshot-id": number, "type": kind}
    return {"action": "set-snapshot-ref", **ref, **(retention or {})}


def three() -> TableMetadata:
    """Return a table of three snapshots in a row, committed one by one."""
    base = commit(table(), added(1), pointed("main", 1))
    base = commit(base, added(2, 1), pointed("main", 2))
    return commit(base, added(3, 2), pointed("main", 3))
