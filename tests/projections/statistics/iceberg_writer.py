"""A table that PyIceberg writes, and its snapshots recorded in a ledger by their manifest lists."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import CommitTableResponse
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.snapshots import Operation
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import DateType, LongType, NestedField, StringType

import ledger
from ledger import Schema, SnapshotPlan, Table
from ledger.files.partition_values import DEFAULT_NAME
from ledger.model import CommitKind
from tests.projections.statistics.paimon_writer import Partitions, Row

NAME = "shop.visits"
COLUMNS = pa.schema([("id", pa.int64()), ("day", pa.date32()), ("kind", pa.string())])
_KINDS: dict[Operation, CommitKind] = {
    Operation.APPEND: "APPEND",
    Operation.REPLACE: "COMPACT",
    Operation.OVERWRITE: "OVERWRITE",
    Operation.DELETE: "OVERWRITE",
}


class OneTable(NoopCatalog):
    """The least catalog that PyIceberg can commit to: it keeps each metadata file, and no more."""

    files = 0

    def commit_table(
        self,
        table: IcebergTable,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        for each in requirements:
            each.validate(table.metadata)
        metadata = update_table_metadata(table.metadata, updates)
        self.files += 1
        location = f"{metadata.location}/metadata/{self.files:05d}-0.metadata.json"
        ToOutputFile.table_metadata(metadata, table.io.new_output(location))
        return CommitTableResponse.model_validate(
            {"metadata": metadata, "metadata-location": location}
        )


class IcebergWriter:
    """Writes with PyIceberg into a ledger table's own place."""

    def __init__(self, root: Path, *, format_version: int = 2) -> None:
        lake = ledger.open(str(root))
        lake.init()
        if "shop" not in lake.databases():
            lake.create_database("shop")
        columns = {"id": "BIGINT", "day": "DATE", "kind": "STRING"}
        options = {"ledger.formats": "iceberg"}
        schema = Schema.of(columns, partition_keys=["day"], options=options)
        self.table: Table = lake.create_table(NAME, schema)
        fields = (LongType(), DateType(), StringType())
        theirs = IcebergSchema(
            *(
                NestedField(number, each.name, kind, required=False)
                for number, (each, kind) in enumerate(zip(COLUMNS, fields, strict=True), 1)
            )
        )
        metadata = new_table_metadata(
            schema=theirs,
            partition_spec=PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "day")),
            sort_order=UNSORTED_SORT_ORDER,
            location=self.table.location,
            properties={"format-version": str(format_version)},
        )
        self.theirs = IcebergTable(
            ("shop", "visits"),
            metadata,
            f"{self.table.location}/metadata/00000-0.metadata.json",
            PyArrowFileIO(),
            OneTable("none"),
        )

    def record(self) -> None:
        """Commit PyIceberg's newest snapshots to the ledger, each by its manifest list."""
        known = self.table.state.last_snapshot_id
        for each in self.theirs.metadata.snapshots[known:]:
            assert each.summary is not None
            kind = _KINDS[each.summary.operation]
            facts = {"base_manifest_list": each.manifest_list}
            self.table.commit_snapshot(SnapshotPlan(kind, commit_user="pyiceberg", facts=facts))

    def append(self, rows: list[Row]) -> None:
        columns = [list(each) for each in zip(*rows, strict=True)]
        self.theirs.append(pa.table(columns, schema=COLUMNS))
        self.record()

    def delete(self, where: str) -> None:
        self.theirs.delete(where)
        self.record()

    def overwrite(self, rows: list[Row], where: str) -> None:
        columns = [list(each) for each in zip(*rows, strict=True)]
        self.theirs.overwrite(pa.table(columns, schema=COLUMNS), overwrite_filter=where)
        self.record()

    def partitions(self, snapshot_id: int) -> Partitions:
        """Return what PyIceberg's own partitions table says of one of the ledger's snapshots."""
        theirs = self.theirs.metadata.snapshots[snapshot_id - 1].snapshot_id
        found: dict[str, Any] = {}
        for row in self.theirs.inspect.partitions(theirs).to_pylist():
            found[_day(row.get("partition", {}).get("day"))] = (
                row["record_count"],
                row["total_data_file_size_in_bytes"],
                row["file_count"],
            )
        return {(day,): counts for day, counts in found.items()}


def _day(value: dt.date | None) -> str:
    return (
        DEFAULT_NAME if value is None else str(value.toordinal() - dt.date(1970, 1, 1).toordinal())
    )
