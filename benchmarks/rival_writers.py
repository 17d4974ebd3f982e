"""Concurrent additions of columns to one table, in lakeledger and in the formats' own libraries.

Each is used as documented: a handle per process, which is refreshed after a conflict.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from attrs import frozen

import ledger
from ledger import AddColumn, Ledger, Schema
from ledger.ledger_handle import LedgerHandle
from ledger.opening.context import TableSetting
from ledger.stores.local import Durability, LocalStore

NAME = "bench.shared"
LAKELEDGER = "lakeledger"

PROMISES = (
    "lakeledger syncs file and folder before it acknowledges",
    "delta-rs and pypaimon sync nothing: compare them with 'no fsync'",
    "PyIceberg syncs its SQLite catalog and no metadata file",
)


@frozen
class Writer:
    """One process's handle on the table.

    Attributes:
        add: Adds a column, or raises.
        refresh: Reads the table again.
        columns: Returns the names of the table's current columns.
    """

    add: Callable[[str], object]
    refresh: Callable[[], object]
    columns: Callable[[], set[str]]


@frozen
class Contestant:
    """A library: functions that create a table of some width in a folder, and open a writer."""

    create: Callable[[Path, int], object]
    writer: Callable[[Path], Writer]


def contestants() -> dict[str, Contestant]:
    """Return lakeledger, with and without fsync, and the installed rivals."""
    found = {
        LAKELEDGER: Contestant(_lake_create, _lake_writer),
        "lakeledger, no fsync": Contestant(_lake_create, _unsynced_writer),
    }
    if find_spec("deltalake") is not None:
        found["delta-rs"] = Contestant(_delta_create, _delta_writer)
    if find_spec("pyiceberg") is not None and find_spec("sqlalchemy") is not None:
        found["PyIceberg, SQLite"] = Contestant(_iceberg_create, _iceberg_writer)
    if find_spec("pypaimon") is not None:
        found["pypaimon"] = Contestant(_paimon_create, _paimon_writer)
    return found


def _lake_create(folder: Path, width: int) -> None:
    lake = ledger.open(str(folder), author="bench")
    lake.create_database(NAME.split(".", maxsplit=1)[0])
    lake.create_table(NAME, Schema.of({f"c{nth}": "INT" for nth in range(width)}))


def _lake_writer(folder: Path, durable: Durability = Durability.FSYNC) -> Writer:
    setting = TableSetting(
        store=LocalStore(folder, durable=durable),
        storage_options={},
        author="bench",
    )
    table = Ledger(LedgerHandle(setting)).table(NAME)
    return Writer(
        add=lambda name: table.alter([AddColumn((name,), "INT")]),
        refresh=lambda: table.state,
        columns=lambda: {field.name for field in table.state.schema.fields},
    )


def _unsynced_writer(folder: Path) -> Writer:
    return _lake_writer(folder, Durability.NONE)


def _delta_create(folder: Path, width: int) -> None:
    from deltalake import DeltaTable, Field
    from deltalake import Schema as DeltaSchema
    from deltalake.schema import PrimitiveType

    fields = [Field(f"c{nth}", PrimitiveType("integer")) for nth in range(width)]
    DeltaTable.create(folder, DeltaSchema(fields))


def _delta_writer(folder: Path) -> Writer:
    from deltalake import DeltaTable, Field
    from deltalake.schema import PrimitiveType

    table = DeltaTable(folder)

    def columns() -> set[str]:
        table.update_incremental()
        return {field.name for field in table.schema().fields}

    return Writer(
        add=lambda name: table.alter.add_columns(Field(name, PrimitiveType("integer"))),
        refresh=table.update_incremental,
        columns=columns,
    )


def _iceberg_catalog(folder: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    return SqlCatalog(
        "bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse"
    )


def _iceberg_create(folder: Path, width: int) -> None:
    from pyiceberg.schema import Schema as IcebergSchema
    from pyiceberg.types import IntegerType, NestedField

    folder.mkdir(parents=True)
    catalog = _iceberg_catalog(folder)
    catalog.create_namespace("bench")
    fields = [NestedField(nth + 1, f"c{nth}", IntegerType()) for nth in range(width)]
    catalog.create_table(NAME, IcebergSchema(*fields))


def _iceberg_writer(folder: Path) -> Writer:
    from pyiceberg.types import IntegerType

    table = _iceberg_catalog(folder).load_table(NAME)

    def add(name: str) -> None:
        with table.update_schema() as update:
            update.add_column(name, IntegerType())

    def columns() -> set[str]:
        return {field.name for field in table.refresh().schema().fields}

    return Writer(add, table.refresh, columns)


def _paimon_catalog(folder: Path) -> Any:
    from pypaimon import CatalogFactory

    return CatalogFactory.create({"warehouse": str(folder)})


def _paimon_create(folder: Path, width: int) -> None:
    import pyarrow as pa
    from pypaimon import Schema as PaimonSchema

    catalog = _paimon_catalog(folder)
    catalog.create_database("bench", ignore_if_exists=False)
    arrow = pa.schema([(f"c{nth}", pa.int32()) for nth in range(width)])
    catalog.create_table(NAME, PaimonSchema.from_pyarrow_schema(arrow), ignore_if_exists=False)


def _paimon_writer(folder: Path) -> Writer:
    from pypaimon.schema.data_types import AtomicType
    from pypaimon.schema.schema_change import SchemaChange

    catalog = _paimon_catalog(folder)

    def add(name: str) -> None:
        catalog.alter_table(NAME, [SchemaChange.add_column(name, AtomicType("INT"))])

    def columns() -> set[str]:
        return {field.name for field in catalog.get_table(NAME).fields}

    # It reads the newest schema before each change, and retries after a conflict.
    return Writer(add, columns, columns)
