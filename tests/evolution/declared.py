"""Tables that declare formats, and the changes that are rejected."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from ledger import (
    AddColumn,
    DataField,
    FileChange,
    FormatError,
    Ledger,
    RenameColumn,
    Schema,
    SchemaChange,
    Table,
)
from ledger.events import SpecChange
from ledger.model.types import DataType, RowType
from tests.lakes import data_file, lake_on, memory

BOTH = "paimon,iceberg"
MAY_REQUIRE = {"alter-column-null-to-not-null.disabled": "false"}
Change = SchemaChange | SpecChange


def lake() -> Ledger:
    made = lake_on(memory())
    made.create_database("shop")
    return made


def table_of(
    columns: dict[str, str | DataType],
    formats: str = BOTH,
    partition_keys: Sequence[str] = (),
    **options: str,
) -> Table:
    declared = {"ledger.formats": formats, **MAY_REQUIRE}
    declared |= {key.replace("_", "-"): value for key, value in options.items()}
    schema = Schema.of(columns, partition_keys=partition_keys, options=declared)
    return lake().create_table("shop.t", schema)


def row(*members: tuple[str, DataType]) -> RowType:
    return RowType([DataField(0, name, each) for name, each in members])


def unnamed(name: str, *, schema_id: int = 0) -> FileChange:
    """A file without field ids."""
    return replace(
        data_file(name if "." in name else f"{name}.parquet"), partition=(), schema_id=schema_id
    )


def refused(table: Table, changes: Sequence[Change]) -> FormatError:
    version = table.state.version
    with pytest.raises(FormatError) as caught:
        table.alter(changes)
    assert table.state.version == version
    assert caught.value.rule in caught.value.message
    assert caught.value.alternative in caught.value.message
    return caught.value


REUSED: list[Change] = [RenameColumn(("v",), "old"), AddColumn(("v",), "INT")]
