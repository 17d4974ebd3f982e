"""Iceberg tables that PyIceberg writes into a folder, one metadata file a commit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog import Catalog, load_catalog
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import CommitTableResponse, StaticTable, Table
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import TableRequirement, TableUpdate, update_table_metadata
from pyiceberg.types import LongType, NestedField, StringType
from pyiceberg.utils.config import Config

from ledger.log import fresh_id

COLUMNS = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "name", StringType(), required=False),
)


class FolderCatalog(NoopCatalog):
    """The least catalog that PyIceberg can commit to: each commit is one more metadata file."""

    def commit_table(
        self,
        table: Table,
        requirements: tuple[TableRequirement, ...],
        updates: tuple[TableUpdate, ...],
    ) -> CommitTableResponse:
        for each in requirements:
            each.validate(table.metadata)
        metadata = update_table_metadata(
            table.metadata, updates, metadata_location=table.metadata_location
        )
        number = len(list(_folder(metadata.location).glob("*.metadata.json")))
        location = f"{metadata.location}/metadata/{number:05d}-{fresh_id()}.metadata.json"
        ToOutputFile.table_metadata(metadata, table.io.new_output(location))
        return CommitTableResponse.model_validate(
            {"metadata": metadata, "metadata-location": location}
        )

    def load_table(self, identifier: Any) -> Table:
        folder = Path(self.properties["warehouse"]) / identifier[-1]
        newest = max((folder / "metadata").glob("*.metadata.json"))
        read = StaticTable.from_metadata(str(newest))
        return Table(identifier, read.metadata, f"file://{newest}", read.io, self)


def _folder(location: str) -> Path:
    return Path(re.sub("^file:/+", "/", location)) / "metadata"


def created(
    folder: Path,
    schema: Schema = COLUMNS,
    *,
    version: int = 2,
    spec: Any = None,
    order: Any = None,
    scheme: str = "file://",
) -> Table:
    """A new table in a folder, whose files' names begin with the scheme."""
    metadata = new_table_metadata(
        schema=schema,
        partition_spec=spec or UNPARTITIONED_PARTITION_SPEC,
        sort_order=order or UNSORTED_SORT_ORDER,
        location=f"{scheme}{folder}",
        properties={"format-version": str(version)},
    )
    io = load_file_io()
    location = f"{scheme}{folder}/metadata/00000-{fresh_id()}.metadata.json"
    ToOutputFile.table_metadata(metadata, io.new_output(location))
    catalog = FolderCatalog("folders", warehouse=str(folder.parent))
    return Table(("s", folder.name), metadata, location, io, catalog)


def appended(table: Table, *ids: int, **columns: list[Any]) -> int:
    """Append rows; return their snapshot."""
    rows = pa.table({"id": pa.array(ids, pa.int64()), **columns})
    table.append(rows, snapshot_properties={"user": "ann"})
    snapshot = table.current_snapshot()
    assert snapshot is not None
    return snapshot.snapshot_id


def rows(table: Table, snapshot_id: int | None = None) -> list[dict[str, Any]]:
    """All rows at a snapshot, in an order of their own."""
    found = table.scan(snapshot_id=snapshot_id).to_arrow().to_pylist()
    return sorted(found, key=str)


def sql_catalog(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Catalog:
    """Return a catalog named `here` that PyIceberg's own configuration knows, with a namespace."""
    pytest.importorskip("sqlalchemy", reason="PyIceberg's catalog in a file needs it")
    for key, value in {
        "TYPE": "sql",
        "URI": f"sqlite:///{folder}/catalog.db",
        "WAREHOUSE": f"file://{folder}/warehouse",
    }.items():
        monkeypatch.setenv(f"PYICEBERG_CATALOG__HERE__{key}", value)
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    catalog = load_catalog("here")
    catalog.create_namespace("s")
    return catalog
