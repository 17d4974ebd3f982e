"""Defaults that Iceberg cannot write are rejected when they are set, where it has any."""

from __future__ import annotations

import pytest
from attrs import evolve

from ledger import (
    AddColumn,
    FileChange,
    FormatError,
    Schema,
    SetOption,
    Table,
    UpdateColumnDefaultValue,
)
from ledger.table_handle import handle_of
from projections.iceberg import ICEBERG
from tests.lakes import lake_on, memory
from tests.projections.iceberg.older_logs import record

WRONG = UpdateColumnDefaultValue(("day",), "2024-02-30")
"""Paimon reads it as the month's last day."""

VERSION_3 = SetOption("format-version", "3")
PAIMON = SetOption("ledger.formats", "paimon")
BOTH = SetOption("ledger.formats", "paimon,iceberg")


def table_of(format_version: str) -> Table:
    lake = lake_on(memory())
    lake.create_database("d")
    columns = {"id": "BIGINT", "day": "DATE"}
    options = {"format-version": format_version}
    return lake.create_table("d.t", Schema.of(columns, options=options))


def test_a_default_that_is_no_value_of_icebergs_is_refused() -> None:
    table = table_of("3")
    with pytest.raises(FormatError, match="column day: its default '2024-02-30' is not a DATE"):
        table.alter([WRONG])
    planned = table.plan([WRONG]).refusals
    assert [each.message.partition(";")[0] for each in planned] == [
        "column day: its default '2024-02-30' is not a DATE that Iceberg can write"
    ]
    alone = SetOption("ledger.formats", "iceberg")
    with pytest.raises(FormatError, match="column at: its default"):
        table.alter([alone, AddColumn(("at",), "DATE", default_value="2024-02-30")])
    table.alter([UpdateColumnDefaultValue(("day",), "2024-02-29")])
    ICEBERG.project(handle_of(table))


def test_a_table_cannot_begin_with_such_a_default() -> None:
    lake = lake_on(memory())
    lake.create_database("d")
    schema = Schema.of({"day": "DATE"}, options={"format-version": "3"})
    day = evolve(schema.fields[0], default_value="2024-02-30")
    schema = evolve(schema, fields=(day,))
    with pytest.raises(FormatError, match="column day: its default"):
        lake.create_table("d.t", schema)


def test_versions_without_defaults_take_any_and_refuse_it_once_they_would_write_it() -> None:
    table = table_of("2")
    table.alter([WRONG])
    ICEBERG.project(handle_of(table))
    with pytest.raises(FormatError, match="column day: its default"):
        table.alter([VERSION_3])
    table.alter([UpdateColumnDefaultValue(("day",), "2024-02-29"), VERSION_3])
    ICEBERG.project(handle_of(table))


def test_what_an_older_schema_had_as_its_default_is_no_obstacle_to_version_3() -> None:
    table = table_of("2")
    table.alter([WRONG])
    table.append([FileChange(path="f.parquet", schema_id=1, record_count=1, file_size_in_bytes=9)])
    table.alter([UpdateColumnDefaultValue(("day",), None)])
    table.alter([VERSION_3])
    ICEBERG.project(handle_of(table))


def test_a_default_that_stood_before_is_not_held_against_another_change() -> None:
    table = table_of("3")
    record(table, WRONG)
    table.alter([AddColumn(("n",), "INT"), SetOption("owner", "etl")])
    with pytest.raises(FormatError, match="column day: its default"):
        table.alter([UpdateColumnDefaultValue(("day",), "2024-02-31")])


def test_declaring_iceberg_asks_about_defaults_of_schemas_that_can_be_read() -> None:
    table = table_of("3")
    table.alter([PAIMON])
    table.alter([WRONG])
    table.append([FileChange(path="f.parquet", schema_id=2, record_count=1, file_size_in_bytes=9)])
    table.alter([UpdateColumnDefaultValue(("day",), None)])
    with pytest.raises(FormatError, match="column day: its default"):
        table.alter([BOTH])
    table.append([FileChange(path="g.parquet", schema_id=3, record_count=1, file_size_in_bytes=9)])
    table.delete_files(["f.parquet"])
    table.expire_snapshots(before=3)
    table.alter([BOTH])
    ICEBERG.project(handle_of(table))
