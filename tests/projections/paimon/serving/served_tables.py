"""Tables that engines own, and their commits, without an engine: manifests do not exist."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ledger import Ledger, Schema
from ledger.model.names import Identifier
from ledger.table_handle import TableHandle, handle_of
from projections.dlf.objects import PartitionStatistics
from projections.paimon import served
from projections.paimon.served_commits import SnapshotRequest, commit_snapshot
from projections.paimon.served_partitions import read_partitions, statistics_event
from projections.paimon.snapshot_file import snapshot_of_request


def served_table(lake: Ledger, keys: Sequence[str] = ("dt",)) -> TableHandle:
    """Create the table shop.orders."""
    lake.create_database("shop")
    schema = Schema.of({"id": "BIGINT", "dt": "STRING"}, partition_keys=keys)
    return served.create_table(handle_of(lake), Identifier("shop", "orders"), schema)


def deltas(**records: int) -> list[PartitionStatistics]:
    """Return one file's worth of statistics a partition, by the values of `dt`."""
    return [
        PartitionStatistics(
            spec={"dt": each.removeprefix("_")},
            record_count=count,
            file_size_in_bytes=10 * count,
            file_count=1 if count > 0 else -1,
        )
        for each, count in records.items()
    ]


def commit(table: TableHandle, number: int, statistics: Sequence[PartitionStatistics]) -> None:
    """Commit a snapshot as an engine does, with statistics."""
    document: dict[str, Any] = {
        "version": 3,
        "id": number,
        "schemaId": 0,
        "uuid": f"uuid-{number}",
        "baseManifestList": f"base-{number}",
        "deltaManifestList": f"delta-{number}",
        "commitUser": "u",
        "commitIdentifier": number,
        "commitKind": "APPEND",
        "timeMillis": table.setting.now_millis(),
        "totalRecordCount": number,
        "deltaRecordCount": 1,
    }
    snapshot = snapshot_of_request(document)
    event = statistics_event(table, table.state, statistics, number)
    assert commit_snapshot(
        table,
        SnapshotRequest(
            table_id=table.state.table_id,
            snapshot=snapshot,
            base_snapshot_uuid=None if number == 1 else f"uuid-{number - 1}",
            events=() if event is None else (event,),
        ),
    )


def records(
    table: TableHandle, *, version: int | None = None, branch: str | None = None
) -> dict[str, int | None]:
    """Return the rows of each partition, by its value of `dt`."""
    return read_partitions(
        table,
        lambda index: {each.spec["dt"]: each.records for each in index.descending()},
        version=version,
        branch=branch,
    )
