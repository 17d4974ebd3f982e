"""Tables that begin with a partition spec and a sort order of their own."""

from __future__ import annotations

import pytest

from ledger import (
    AddPartitionField,
    ColumnNotFoundError,
    FormatError,
    InvalidInputError,
    Ledger,
    Schema,
    SortColumn,
)
from ledger.model import PartitionField, SortField, SortOrder, read_type
from ledger.transforms import bucket, day
from tests.lakes import lake_on, memory

COLUMNS = {
    "id": "BIGINT",
    "ts": "TIMESTAMP(6)",
    "name": "STRING",
    "s": "ROW<city STRING>",
    "l": "ARRAY<ROW<x INT>>",
    "data": "INT",
}
SCHEMA = Schema.of({name: read_type(text) for name, text in COLUMNS.items()})
ICEBERG = SCHEMA.with_options({"ledger.formats": "iceberg"})


def lake() -> Ledger:
    made = lake_on(memory())
    made.create_database("shop")
    return made


def test_partition_fields_get_the_names_that_icebergs_builder_gives() -> None:
    fields = [
        AddPartitionField(("id",), "bucket[8]"),
        AddPartitionField(("name",), "truncate[4]"),
        AddPartitionField(("ts",), "day"),
        AddPartitionField(("s", "city")),
        AddPartitionField(("data",), "void"),
        AddPartitionField(("id",), "identity", "shard"),
    ]

    state = lake().create_table("shop.t", ICEBERG, partition_spec=fields).state

    assert [(each.field_id, each.name, each.transform) for each in state.spec.fields] == [
        (1000, "id_bucket", "bucket[8]"),
        (1001, "name_trunc", "truncate[4]"),
        (1002, "ts_day", "day"),
        (1003, "s.city", "identity"),
        (1004, "data_null", "void"),
        (1005, "shard", "identity"),
    ]
    assert (state.spec.spec_id, state.last_partition_id) == (0, 1005)


def test_transforms_can_be_given_as_for_update_spec() -> None:
    made = lake().create_table(
        "shop.t", ICEBERG, partition_spec=[day("ts"), bucket("id", 4)], sort_order=[bucket("id", 4)]
    )

    assert [each.name for each in made.state.spec.fields] == ["ts_day", "id_bucket"]
    assert made.state.sort_order.fields == (
        SortField(transform="bucket[4]", source_id=0, direction="asc", null_order="nulls-first"),
    )


def test_a_sorted_table_begins_with_order_one_and_others_with_none() -> None:
    columns = [SortColumn(("id",)), SortColumn(("name",), "truncate[2]", "desc")]

    state = lake().create_table("shop.t", SCHEMA, sort_order=columns).state

    assert state.sort_orders == (
        SortOrder(
            1,
            (
                SortField(
                    transform="identity", source_id=0, direction="asc", null_order="nulls-first"
                ),
                SortField(
                    transform="truncate[2]", source_id=2, direction="desc", null_order="nulls-last"
                ),
            ),
        ),
    )
    assert lake().create_table("shop.t", SCHEMA).state.sort_orders == (SortOrder(0),)


def test_sources_are_followed_to_the_ids_that_iceberg_gives() -> None:
    fields = [AddPartitionField(("s", "city"))]

    made = lake().create_table("shop.t", ICEBERG, field_id_policy="iceberg", partition_spec=fields)

    assert made.state.schema.field_id_policy == "iceberg"
    assert made.state.schema.field("id").id == 1
    assert made.state.spec.fields == (PartitionField("s.city", "identity", 7, field_id=1000),)


@pytest.mark.parametrize(
    ("field", "message"),
    [
        (AddPartitionField(("nope",)), "nope does not exist"),
        (AddPartitionField(("l", "element", "x")), "one row has many values"),
        (AddPartitionField(("name",), "day"), "does not accept column name"),
        (AddPartitionField(("id",), "zorder"), "is unknown"),
        (AddPartitionField(("id",), "bucket[4]", "data"), "name of a column"),
        (AddPartitionField(("id",), "bucket[4]", "id"), "name of a column"),
        (AddPartitionField(("id",), "identity", "data"), "name of another column"),
    ],
)
def test_a_field_that_no_table_can_begin_with_is_refused(
    field: AddPartitionField, message: str
) -> None:
    made = lake()
    with pytest.raises((InvalidInputError, ColumnNotFoundError), match=message):
        made.create_table("shop.t", ICEBERG, partition_spec=[field])
    assert made.tables("shop") == []


def test_two_times_of_one_column_are_refused() -> None:
    fields = [AddPartitionField(("ts",), "day"), AddPartitionField(("ts",), "hour")]

    with pytest.raises(InvalidInputError, match="two time units of one column"):
        lake().create_table("shop.t", ICEBERG, partition_spec=fields)


def test_where_paimon_reads_the_spec_keeps_the_partition_keys() -> None:
    schema = Schema.of({"id": "INT", "day": "DATE"}, partition_keys=["day"])
    only_bucket = [AddPartitionField(("id",), "bucket[4]")]
    both = [AddPartitionField(("day",)), *only_bucket]

    with pytest.raises(FormatError, match=r"identity\(day\)"):
        lake().create_table("shop.t", schema, partition_spec=only_bucket)
    state = lake().create_table("shop.t", schema, partition_spec=both).state
    assert [each.name for each in state.spec.fields] == ["day", "id_bucket"]


def test_creating_again_under_the_same_id_is_the_same_only_with_the_same_layout() -> None:
    made = lake()
    first = made.create_table("shop.t", SCHEMA, sort_order=[SortColumn(("id",))], commit_id="k")

    again = made.create_table("shop.t", SCHEMA, sort_order=[SortColumn(("id",))], commit_id="k")

    assert again.state.table_id == first.state.table_id
    with pytest.raises(InvalidInputError, match="used for something else"):
        made.create_table("shop.t", SCHEMA, commit_id="k")


def test_what_a_format_cannot_express_is_rejected_at_creation() -> None:
    with pytest.raises(FormatError):
        lake().create_table("shop.t", Schema.of({"m": "INT MULTISET"}))
    only_paimon = Schema.of({"m": "INT MULTISET"}, options={"ledger.formats": "paimon"})
    assert lake().create_table("shop.t", only_paimon).state.schema.names == ("m",)
