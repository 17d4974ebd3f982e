"""Concurrent changes of one table, in lakeledger, in the formats' own libraries, and in SQLite.

Each is used as documented: a handle per process, which is refreshed after a conflict.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from attrs import frozen

import ledger
from ledger import AddColumn, Ledger, Schema, SetOption
from ledger.ledger_handle import LedgerHandle
from ledger.opening.context import TableSetting
from ledger.stores.local import Durability, LocalStore

NAME = "bench.shared"
LAKELEDGER = "lakeledger"
SQLITE = "SQLite, full sync"
"""A database's commits, as a lower bound: one row a change, and no file that others read."""

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
        set_option: Sets an option, or raises.
        refresh: Reads the table again.
        names: Returns the names of the table's current columns and options.
    """

    add: Callable[[str], object]
    set_option: Callable[[str], object]
    refresh: Callable[[], object]
    names: Callable[[], set[str]]


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
    found[SQLITE] = Contestant(_sqlite_create, _sqlite_writer)
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

    def names() -> set[str]:
        schema = table.state.schema
        return {*schema.names, *schema.options}

    return Writer(
        add=lambda name: table.alter([AddColumn((name,), "INT")]),
        set_option=lambda name: table.alter([SetOption(name, "x")]),
        refresh=lambda: table.state,
        names=names,
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

    def names() -> set[str]:
        table.update_incremental()
        columns = {field.name for field in table.schema().fields}
        return columns | set(table.metadata().configuration)

    return Writer(
        add=lambda name: table.alter.add_columns(Field(name, PrimitiveType("integer"))),
        set_option=lambda name: table.alter.set_table_properties(
            {name: "x"}, raise_if_not_exists=False
        ),
        refresh=table.update_incremental,
        names=names,
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

    def set_option(name: str) -> None:
        with table.transaction() as transaction:
            transaction.set_properties({name: "x"})

    def names() -> set[str]:
        columns = {field.name for field in table.refresh().schema().fields}
        return columns | set(table.properties)

    return Writer(add, set_option, table.refresh, names)


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

    def set_option(name: str) -> None:
        catalog.alter_table(NAME, [SchemaChange.set_option(name, "x")])

    def names() -> set[str]:
        schema = catalog.get_table(NAME).table_schema
        return {field.name for field in schema.fields} | set(schema.options)

    # It reads the newest schema before each change, and retries after a conflict.
    return Writer(add, set_option, names, names)


def _sqlite_connection(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "changes.db", timeout=60, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    return connection


def _sqlite_create(folder: Path, width: int) -> None:
    folder.mkdir(parents=True)
    connection = _sqlite_connection(folder)
    connection.execute("CREATE TABLE names (name TEXT PRIMARY KEY)")
    connection.executemany("INSERT INTO names VALUES (?)", [(f"c{nth}",) for nth in range(width)])
    connection.close()


def _sqlite_writer(folder: Path) -> Writer:
    connection = _sqlite_connection(folder)

    def add(name: str) -> None:
        connection.execute("INSERT INTO names VALUES (?)", (name,))

    def names() -> set[str]:
        return {name for (name,) in connection.execute("SELECT name FROM names")}

    return Writer(add, add, names, names)
