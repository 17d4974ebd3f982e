"""A partition is shown alike whatever became of the columns since."""

from __future__ import annotations

import pytest

from ledger import AddColumn, DropColumn, RenameColumn, Schema, SchemaChange
from ledger.transforms import day, identity
from projections.statistics.partition_rendering import PartitionRendering
from tests.lakes import lake_on, memory

WAS = {
    "BIGINT": "[-5]",
    "STRING": '["2013-01-01"]',
    "DATE": '["2013-01-01"]',
    "DECIMAL(9, 2)": '["1.50"]',
    "TIMESTAMP(6)": '["2013-01-01T10:20:30.5"]',
    "BOOLEAN": "[true]",
}
BECOMES = ("DATE", "STRING", "INT", "TIMESTAMP(3)", "TIMESTAMP_LTZ(6)", "BOOLEAN")


@pytest.mark.parametrize("now", BECOMES)
@pytest.mark.parametrize("was", WAS)
def test_another_column_of_a_fields_name_changes_nothing(was: str, now: str) -> None:
    shown = renderings(was, [DropColumn(("s",)), AddColumn(("s",), now)])
    assert len(set(shown)) == 1
    assert shown[0] == f"s={WAS[was][1:-1].strip(chr(34)).replace(':', '%3A')}"


@pytest.mark.parametrize("was", WAS)
def test_a_renamed_column_changes_nothing(was: str) -> None:
    assert len(set(renderings(was, [RenameColumn(("s",), "t"), AddColumn(("u",), "DATE")]))) == 1


def renderings(was: str, changes: list[SchemaChange]) -> list[str]:
    """Return the path of a partition by a field of `s`, after each of some changes."""
    lake = lake_on(memory())
    lake.create_database("shop")
    schema = Schema.of({"id": "BIGINT", "s": was}, options={"ledger.formats": "iceberg"})
    table = lake.create_table("shop.t", schema, partition_spec=[identity("s")])
    shown = [path_of(table.state.schema, table.state.specs, WAS[was])]
    table.update_spec().remove_field("s").commit()
    for change in changes:
        table.alter([change])
        shown.append(path_of(table.state.schema, table.state.specs, WAS[was]))
    return shown


def path_of(schema: Schema, specs: object, partition: str) -> str:
    assert isinstance(specs, tuple)
    return PartitionRendering.of(schema, specs).spec(0, partition).path


def test_a_date_that_is_no_partition_key_is_no_number() -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    schema = Schema.of({"ts": "TIMESTAMP(6)", "d": "DATE"}, options={"ledger.formats": "iceberg"})
    table = lake.create_table("shop.t", schema, partition_spec=[identity("d"), day("ts")])
    shown = path_of(table.state.schema, table.state.specs, '["2013-01-01", "2013-01-02"]')
    assert shown == "d=2013-01-01/ts_day=2013-01-02"


def test_partition_keys_are_shown_as_paimon_has_them() -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    schema = Schema.of({"id": "BIGINT", "d": "DATE"}, partition_keys=["d"])
    table = lake.create_table("shop.t", schema)
    schema, specs = table.state.schema, table.state.specs
    assert PartitionRendering.paimon(schema, specs).spec(0, '["2013-01-01"]').path == "d=15706"
    assert path_of(schema, specs, '["2013-01-01"]') == "d=2013-01-01"
