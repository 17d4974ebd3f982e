"""The same small change in other formats' own libraries, on tables of the same width.

pypaimon is excluded: it pins older pyarrow, pandas and fsspec than the rest of this environment.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

Change = Callable[[int], object]
"""Function that makes a change, given the number of the repeat."""

Start = Callable[[Path, int], Change]
"""Function that creates a table of some width in a folder, and returns the change to make."""

PROMISES = (
    "delta-rs syncs nothing: compare it with the commit without fsync",
    "PyIceberg syncs its SQLite catalog and no metadata file",
    "pypaimon is left out: its pins exclude this environment's pyarrow and pandas",
)


def rivals(change: str) -> dict[str, Start]:
    """Return the change of each installed rival: `property` or `add column`."""
    found: dict[str, Start] = {}
    if find_spec("deltalake") is not None:
        found["delta-rs"] = _delta_property if change == "property" else _delta_column
    if find_spec("pyiceberg") is not None and find_spec("sqlalchemy") is not None:
        found["PyIceberg"] = _iceberg_property if change == "property" else _iceberg_column
    return found


def _delta_property(folder: Path, width: int) -> Change:
    from deltalake import DeltaTable, Field, Schema
    from deltalake.schema import PrimitiveType

    fields = [Field(f"c{nth}", PrimitiveType("string")) for nth in range(width)]
    table = DeltaTable.create(folder, Schema(fields))

    def change(number: int) -> None:
        table.alter.set_table_properties({"team.option": str(number)}, raise_if_not_exists=False)

    return change


def _delta_column(folder: Path, width: int) -> Change:
    from deltalake import DeltaTable, Field, Schema
    from deltalake.schema import PrimitiveType

    fields = [Field(f"c{nth}", PrimitiveType("string")) for nth in range(width)]
    table = DeltaTable.create(folder, Schema(fields))

    def change(number: int) -> None:
        table.alter.add_columns(Field(f"n{number}", PrimitiveType("integer")))

    return change


def _iceberg_table(folder: Path, width: int) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog
    from pyiceberg.schema import Schema
    from pyiceberg.types import NestedField, StringType

    folder.mkdir(parents=True)
    catalog = SqlCatalog(
        "bench", uri=f"sqlite:///{folder}/catalog.db", warehouse=f"file://{folder}/warehouse"
    )
    catalog.create_namespace("bench")
    fields = [NestedField(nth + 1, f"c{nth}", StringType()) for nth in range(width)]
    return catalog.create_table("bench.wide", Schema(*fields))


def _iceberg_property(folder: Path, width: int) -> Change:
    table = _iceberg_table(folder, width)

    def change(number: int) -> None:
        with table.transaction() as transaction:
            transaction.set_properties({"team.option": str(number)})

    return change


def _iceberg_column(folder: Path, width: int) -> Change:
    from pyiceberg.types import IntegerType

    table = _iceberg_table(folder, width)

    def change(number: int) -> None:
        with table.update_schema() as update:
            update.add_column(f"n{number}", IntegerType())

    return change
