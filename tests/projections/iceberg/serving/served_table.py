"""A table that engines own, as an engine (PyIceberg) and the library see it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC, PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

import ledger
from ledger import Ledger, Table
from ledger.table_handle import handle_of
from tests.projections.iceberg.serving.catalog import ServedCatalog

COLUMNS = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "day", StringType(), required=False),
)
BY_DAY = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day"))
ARROW = pa.schema([pa.field("id", pa.int64()), pa.field("day", pa.string())])

Rows = list[dict[str, Any]]


class Served:
    """A table that engines own, as an engine and the library see it."""

    def __init__(self, lake: Ledger) -> None:
        self.lake = lake
        self.catalog = ServedCatalog(handle_of(lake))
        self.table: Table = lake.table("a.b")

    @classmethod
    def created(cls, folder: Path, version: int = 2, spec: PartitionSpec | None = None) -> Served:
        """Return a new table."""
        lake = ledger.open(folder / "lake")
        lake.create_database("a")
        ServedCatalog(handle_of(lake)).create_table(
            "a.b",
            COLUMNS,
            partition_spec=spec or UNPARTITIONED_PARTITION_SPEC,
            properties={"format-version": str(version)},
        )
        return cls(lake)

    def engine(self) -> Any:
        return self.catalog.load_table("a.b")

    def engine_appends(self, *ids: int, day: str = "x") -> None:
        rows = pa.Table.from_pylist([{"id": each, "day": day} for each in ids], ARROW)
        self.engine().append(rows)

    def file(self, name: str, *ids: int, day: str = "x") -> str:
        """Write a data file with field ids; return its URL."""
        fields = [
            pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"}),
            pa.field("day", pa.string(), metadata={"PARQUET:field_id": "2"}),
        ]
        rows = pa.Table.from_pylist([{"id": i, "day": day} for i in ids], pa.schema(fields))
        path = Path(self.table.location.removeprefix("file://")) / "data" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(rows, path)
        return f"file://{path}"

    def rows(self, **instant: Any) -> list[int]:
        """Return the ids that the library reads."""
        return sorted(self.table.at(**instant).to_arrow()["id"].to_pylist())

    def rows_of_engine(self, snapshot_id: int | None = None) -> list[int]:
        found = self.engine().scan(snapshot_id=snapshot_id).to_arrow()
        return sorted(found["id"].to_pylist())

    def paths(self) -> list[str]:
        return sorted(each.path for each in self.table.at().files)
