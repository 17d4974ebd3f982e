"""Small tables folded event by event, without a store."""

from __future__ import annotations

from typing import Any

from ledger.events import (
    PartitionSpecUpdated,
    SchemaRecord,
    SnapshotCommitted,
    SortOrderReplaced,
    TableCreated,
    TableEvent,
    TableName,
)
from ledger.log import Commit, Transaction
from ledger.model import FieldObject, PartitionField, SortField
from ledger.state import TableBuilder

NAME = TableName("db", "t")

DELTA: dict[str, Any] = {"delta_file_count": 1, "delta_file_size_in_bytes": 100}


def commit(version: int, *events: TableEvent, **more: Any) -> Commit[TableEvent]:
    transaction = Transaction[TableEvent](
        asked="", id=f"t{version}", author="ann", events=events, **more
    )
    return Commit(
        format=3, version=version, time_millis=version * 100 + 100, transactions=(transaction,)
    )


def snapshot(number: int, **facts: Any) -> SnapshotCommitted:
    more = {"total_record_count": number * 10, "schema_id": 0, "commit_kind": "APPEND", **facts}
    return SnapshotCommitted(
        snapshot_id=number, commit_user="job", delta_record_count=10, **DELTA, **more
    )


def grown(*events: TableEvent) -> TableBuilder:
    """A table of one column with what these events did to it, one commit each."""
    record = SchemaRecord((FieldObject(0, "id", "INT"),), highest_field_id=0)
    created = TableCreated(identifier=NAME, table_id="t", path="db.db/t", schema=record)
    builder = TableBuilder()
    for version, event in enumerate((created, *events)):
        builder.commit(commit(version, event))
    return builder


def spec(number: int, transform: str = "identity") -> PartitionSpecUpdated:
    field = PartitionField("id", transform, 0, field_id=1000)
    return PartitionSpecUpdated(updates=(), set_default=True, spec_id=number, fields=(field,))


def order(number: int, null_order: Any = "nulls-first") -> SortOrderReplaced:
    field = SortField(transform="identity", source_id=0, direction="asc", null_order=null_order)
    return SortOrderReplaced(columns=(), order_id=number, fields=(field,))
