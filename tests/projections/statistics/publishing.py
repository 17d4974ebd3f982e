"""Tables whose statistics are published, and what stands where afterwards."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping

from pyarrow import parquet

from ledger import (
    FileChange,
    Schema,
    Table,
)
from ledger.stores import Store
from ledger.table_handle import handle_of
from projections.iceberg import statistics_files as publish_iceberg
from projections.materialising import outputs_of
from projections.statistics import Kept
from projections.statistics.publishing import Published
from tests.lakes import lake_on, memory, no_time


def a_table(store: Store | None = None, options: Mapping[str, str] | None = None) -> Table:
    lake = lake_on(store or memory(), retry_policy=no_time())
    lake.create_database("shop")
    columns = {"id": "BIGINT", "day": "DATE", "price": "DECIMAL(9, 2)", "name": "STRING"}
    # What expired goes at once, so that what stays is what the log names.
    given = {"ledger.reader-grace": "0", **(options or {})}
    schema = Schema.of(columns, partition_keys=["day"], options=given)
    return lake.create_table("shop.orders", schema)


def a_file(path: str, day: str | None = "2024-01-01", **more: object) -> FileChange:
    given = {"record_count": 5, "file_size_in_bytes": 50, "creation_time": 100, **more}
    partition = more.pop("partition", (day,))
    given.pop("partition", None)
    return FileChange(path=f"{path}.parquet", partition=partition, field_ids=True, **given)  # type: ignore[arg-type]


def published(table: Table, **at: int) -> Published:
    return publish_iceberg.publish_partition_statistics(
        handle_of(table),
        Kept.of(handle_of(table).log),
        table.at(**at),  # type: ignore[arg-type]
    )


def metadata(table: Table) -> dict[str, object]:
    version = int(outputs_of(handle_of(table)).read("metadata/version-hint.text") or b"-1")
    body = outputs_of(handle_of(table)).read(f"metadata/v{version}.metadata.json")
    assert body is not None
    found: dict[str, object] = json.loads(body)
    return found


def rows(table: Table, path: str) -> list[dict[str, object]]:
    body = outputs_of(handle_of(table)).read(path)
    assert body is not None
    found: list[dict[str, object]] = parquet.read_table(io.BytesIO(body)).to_pylist()
    return found
