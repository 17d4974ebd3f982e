"""Iceberg's rules of a spec update, beyond its own cases: on the ledger's tables."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ledger import (
    ColumnNotFoundError,
    FormatError,
    InvalidChangeError,
    InvalidInputError,
    RemovePartitionField,
    RenameColumn,
    Schema,
    SetOption,
    Table,
    UpdatePartitionSpec,
)
from ledger.events import PartitionSpecUpdated, SortOrderReplaced
from ledger.transforms import bucket, day, hour, identity, month, truncate, void, year
from tests.lakes import data_file, lake_on, memory

COLUMNS = {"id": "BIGINT", "ts": "TIMESTAMP(6)", "kind": "STRING", "note": "STRING"}


def table_of(version: int = 2, **schema: Any) -> Table:
    options = {"ledger.formats": "iceberg", "format-version": str(version)}
    lake = lake_on(memory())
    lake.create_database("shop")
    return lake.create_table("shop.t", Schema.of(COLUMNS, options=options, **schema))


def fields(table: Table) -> list[tuple[int, str, str]]:
    return [(each.field_id, each.name, each.transform) for each in table.state.spec.fields]


@pytest.mark.parametrize("version", [1, 2, 3])
def test_default_names_are_icebergs(version: int) -> None:
    table = table_of(version)
    update = table.update_spec().add_field("kind").add_field(bucket("id", 8))
    update.add_field(truncate("note", 4)).add_field(month("ts")).add_field(void("id")).commit()

    assert fields(table) == [
        (1000, "kind", "identity"),
        (1001, "id_bucket_8", "bucket[8]"),
        (1002, "note_trunc_4", "truncate[4]"),
        (1003, "ts_month", "month"),
        (1004, "id_null", "void"),
    ]
    assert table.state.last_partition_id == 1004


def test_version_1_leaves_a_void_in_the_place_of_a_removed_field() -> None:
    table = table_of(1)
    table.update_spec().add_field("kind").add_field(day("ts")).commit()
    table.update_spec().remove_field("kind").commit()
    assert fields(table) == [(1000, "kind", "void"), (1001, "ts_day", "day")]

    table.update_spec().add_field("kind").commit()

    assert fields(table) == [
        (1000, "kind_1000", "void"),
        (1001, "ts_day", "day"),
        (1002, "kind", "identity"),
    ]


def test_version_1_renames_a_void_field_when_another_takes_its_name() -> None:
    table = table_of(1)
    table.update_spec().add_field("kind", "a").add_field("note", "b").commit()
    table.update_spec().remove_field("a").commit()
    table.update_spec().rename_field("b", "a").commit()

    assert fields(table) == [(1000, "a_1000", "void"), (1001, "a", "identity")]


@pytest.mark.parametrize("version", [2, 3])
def test_a_removed_field_comes_back_with_its_id_and_its_name(version: int) -> None:
    table = table_of(version)
    table.update_spec().add_field(bucket("id", 8), "shard").add_field("kind").commit()
    table.update_spec().remove_field("shard").commit()
    table.update_spec().add_field(bucket("id", 8)).commit()
    assert fields(table) == [(1001, "kind", "identity"), (1000, "shard", "bucket[8]")]

    table.update_spec().remove_field(bucket("id", 8)).commit()
    table.update_spec().add_field(bucket("id", 8), "other").commit()
    assert fields(table) == [(1001, "kind", "identity"), (1002, "other", "bucket[8]")]


@pytest.mark.parametrize("version", [1, 2])
def test_a_field_that_one_batch_removes_and_adds_stays(version: int) -> None:
    table = table_of(version)
    table.update_spec().add_field("kind").add_field("note").commit()
    before = table.state

    table.update_spec().remove_field("kind").add_field("kind").commit()
    assert table.state.specs == before.specs
    table.update_spec().remove_field("kind").add_field("kind", "sort").commit()
    assert fields(table) == [(1000, "sort", "identity"), (1001, "note", "identity")]


def test_an_upgraded_table_does_not_give_a_voids_id_to_a_second_field() -> None:
    table = table_of(1)
    table.append([replace(data_file("a.parquet"), partition=())])
    table.update_spec().add_field("kind").commit()
    table.update_spec().remove_field("kind").commit()
    table.alter([SetOption("format-version", "2")])

    table.update_spec().add_field("kind").commit()

    assert fields(table) == [(1000, "kind_1000", "void"), (1001, "kind", "identity")]


def test_names_may_be_swapped_in_one_batch() -> None:
    table = table_of()
    table.update_spec().add_field("kind", "a").add_field("note", "b").commit()
    table.update_spec().rename_field("a", "b").rename_field("b", "a").commit()

    assert fields(table) == [(1000, "b", "identity"), (1001, "a", "identity")]


def test_a_spec_that_is_not_the_default_is_kept_and_used_later() -> None:
    table = table_of()
    table.update_spec().add_field("kind").add_non_default_spec().commit()
    assert (table.state.default_spec_id, len(table.state.specs)) == (0, 2)
    again = table.update_spec().add_field("kind").add_non_default_spec()
    assert again.apply().spec_id == 1

    table.update_spec().add_field("kind").commit()

    assert (table.state.default_spec_id, len(table.state.specs)) == (1, 2)


def test_an_update_that_changes_nothing_is_no_event() -> None:
    table = table_of()
    table.update_spec().add_field("kind").commit()
    table.replace_sort_order().asc("id").commit()
    first = table.state.version + 1

    table.update_spec().commit()
    table.update_spec().rename_field("kind", "kind").commit()
    table.update_spec().remove_field("kind").add_field("kind").commit()
    table.replace_sort_order().asc("id").commit()

    later = [each for commit in table.events(first) for each in commit.transactions]
    assert [each.events for each in later] == [(), (), (), ()]


@pytest.mark.parametrize(
    ("update", "message"),
    [
        (lambda u: u.add_field("kind"), "identity of kind already"),
        (lambda u: u.add_field("note").add_field("note", "n"), "identity of note already"),
        (lambda u: u.add_field("note", "kind"), "would be called kind"),
        (lambda u: u.add_field("note", "x").add_field("id", "x"), "would be called x"),
        (lambda u: u.rename_field("kind", "shard"), "would be called shard"),
        (lambda u: u.rename_field("kind", ""), "empty name"),
        (lambda u: u.rename_field("kind", "note"), "name of another column"),
        (lambda u: u.remove_field("kind").rename_field("kind", "x"), "is removed by this batch"),
        (lambda u: u.rename_field("kind", "x").remove_field("kind"), "is renamed by this batch"),
        (lambda u: u.add_field("note").remove_field("note"), "is added by this batch"),
        (lambda u: u.add_field("note").remove_field(identity("note")), "is added by this batch"),
        (lambda u: u.remove_field(bucket("id", 9)), r"that is bucket\[9\] of id does not exist"),
        (lambda u: u.add_field(day("ts")).add_field(year("ts")), "two time units of one column"),
        (lambda u: u.add_field(hour("kind")), "does not accept column kind STRING"),
        (lambda u: u.add_field("nothing"), "column nothing does not exist"),
    ],
)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_what_iceberg_forbids_is_refused_and_leaves_nothing(
    version: int, update: Any, message: str
) -> None:
    table = table_of(version)
    table.update_spec().add_field("kind").add_field(bucket("id", 8), "shard").commit()
    before = table.state

    with pytest.raises(InvalidChangeError, match=message):
        update(table.update_spec()).commit()
    with pytest.raises(InvalidChangeError, match=message):
        update(table.update_spec()).apply()

    assert table.state == before


def test_a_transform_that_nobody_can_write_is_refused() -> None:
    change = {
        "type": "updatePartitionSpec",
        "updates": [{"type": "addPartitionField", "source": ["id"], "transform": "zorder[2]"}],
    }
    with pytest.raises(InvalidChangeError, match=r"transform 'zorder\[2\]' is unknown"):
        table_of().alter([change])
    with pytest.raises(InvalidInputError, match=r"bucket\[0\] is out of range"):
        bucket("id", 0)


def test_a_removal_says_one_thing() -> None:
    update = RemovePartitionField("kind", ("kind",), "identity")
    with pytest.raises(InvalidChangeError, match="give one of the two"):
        table_of().alter([UpdatePartitionSpec((update,))])


def test_a_fields_name_outlives_the_renaming_of_its_column() -> None:
    table = table_of()
    table.update_spec().add_field("kind").commit()
    table.alter([RenameColumn(("kind",), "sort")])
    table.update_spec().add_field(day("ts")).commit()
    assert fields(table) == [(1000, "kind", "identity"), (1001, "ts_day", "day")]

    with pytest.raises(FormatError, match="identity of field 2, has that name"):
        table.alter([RenameColumn(("note",), "kind")])
    table.alter([SetOption("ledger.formats", "paimon"), RenameColumn(("note",), "kind")])
    with pytest.raises(InvalidChangeError, match="name of another column than its source sort"):
        table.update_spec().add_field(bucket("id", 8)).commit()
    with pytest.raises(ColumnNotFoundError, match="column note does not exist"):
        table.replace_sort_order().asc("note").commit()


@pytest.mark.parametrize("what", ["partition spec", "sort order"])
def test_keys_by_options_are_refused_once_the_layout_was_changed(what: str) -> None:
    table = table_of()
    spec, order = table.update_spec().add_field("id"), table.replace_sort_order().asc("id")
    (spec if what == "partition spec" else order).commit()

    with pytest.raises(InvalidChangeError, match="keys cannot be set by options any more"):
        table.alter([SetOption("partition", "note")])


def test_keys_by_options_are_the_first_spec_of_an_unchanged_layout() -> None:
    table = table_of()
    table.alter([SetOption("partition", "kind")])

    assert [each.spec_id for each in table.state.specs] == [0]
    assert fields(table) == [(1000, "kind", "identity")]


def test_keys_and_a_spec_may_change_in_one_transaction() -> None:
    table = table_of()
    update = table.update_spec().add_field(bucket("id", 8))

    table.alter([SetOption("partition", "kind"), update.change])

    assert fields(table) == [(1000, "kind", "identity"), (1001, "id_bucket_8", "bucket[8]")]


def test_the_log_keeps_what_was_asked_and_what_it_became() -> None:
    table = table_of()
    table.update_spec().add_field(day("ts")).commit()
    table.replace_sort_order().desc(truncate("kind", 2)).commit()
    spec, order = (each.transactions[0].events[0] for each in table.events(table.state.version - 1))

    assert isinstance(spec, PartitionSpecUpdated)
    assert spec.updates == table.update_spec().add_field(day("ts")).updates
    assert (spec.spec_id, spec.fields[0].source_id, spec.fields[0].field_id) == (1, 1, 1000)
    assert isinstance(order, SortOrderReplaced)
    assert order.columns == table.replace_sort_order().desc(truncate("kind", 2)).columns
    assert (order.order_id, order.fields[0].null_order) == (1, "nulls-last")


def test_files_keep_the_spec_that_they_were_written_with() -> None:
    table = table_of(partition_keys=["kind"])
    table.append([data_file("a.parquet", "x")])
    table.update_spec().remove_field("kind").commit()

    (file,) = table.at().files
    spec = table.state.spec_by_id(file.spec_id)

    assert ([each.name for each in spec.fields], file.partition) == (["kind"], ("x",))


@pytest.mark.parametrize("nulls", ["none", "nulls-first"])
def test_a_place_for_nulls_is_first_or_last(nulls: Any) -> None:
    with pytest.raises(InvalidInputError, match="give first or last"):
        table_of().replace_sort_order().asc("id", nulls=nulls)
