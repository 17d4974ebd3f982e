"""Changes of layout rebased over concurrent changes."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from ledger import (
    AddColumn,
    CommitConflictError,
    DropColumn,
    InvalidChangeError,
    InvalidInputError,
    RenameColumn,
    Schema,
    SetOption,
    Table,
    UpdateColumnType,
)
from ledger.transforms import bucket, day, month, truncate
from tests.lakes import data_file, lake_on, memory, orders

COLUMNS = {"id": "BIGINT", "ts": "TIMESTAMP(6)", "kind": "STRING"}


def two_handles(**schema: Any) -> tuple[Table, Table]:
    """Two writers that both saw version 0."""
    store = memory()
    lake = lake_on(store)
    lake.create_database("shop")
    wanted = Schema.of(COLUMNS, options={"ledger.formats": "iceberg"}, **schema)
    mine = lake.create_table("shop.t", wanted)
    return mine, lake_on(store).table("shop.t")


def names(table: Table) -> list[str]:
    return [each.name for each in table.state.spec.fields]


def test_the_same_spec_asked_for_twice_is_made_once() -> None:
    mine, theirs = two_handles()
    for table in (theirs, mine):
        table.update_spec().add_field(day("ts")).commit()

    assert [len(each.fields) for each in mine.state.specs] == [0, 1]
    assert names(mine) == ["ts_day"]


CHANGED_BY_ANN = (
    r"the partition spec was changed by ann in version 1 .* to day of column ts \(id 1\), "
    r"and you asked for month of column ts \(id 1\)"
)


def test_another_spec_is_a_conflict_that_names_the_winner() -> None:
    mine, theirs = two_handles()
    theirs.update_spec().add_field(day("ts")).commit(author="ann")

    with pytest.raises(CommitConflictError, match=CHANGED_BY_ANN) as caught:
        mine.update_spec().add_field(month("ts")).commit()

    assert (caught.value.cell, caught.value.author) == ("partitionSpec", "ann")
    assert names(mine) == ["ts_day"]


def test_a_non_default_spec_conflicts_with_the_same_one_as_default() -> None:
    mine, theirs = two_handles()
    theirs.update_spec().add_field("kind").add_non_default_spec().commit()

    with pytest.raises(CommitConflictError):
        mine.update_spec().add_field("kind").commit()


@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_the_same_order_is_success_and_another_a_conflict(direction: str) -> None:
    mine, theirs = two_handles()
    theirs.replace_sort_order().asc("id").commit()
    order = mine.replace_sort_order()

    if direction == "asc":
        order.asc("id").commit()
    else:
        with pytest.raises(CommitConflictError, match="the sort order was changed"):
            order.desc("id").commit()

    assert [each.order_id for each in mine.state.sort_orders] == [0, 1]


def test_sources_follow_columns_that_others_rename() -> None:
    mine, theirs = two_handles()
    theirs.alter([RenameColumn(("kind",), "sort"), AddColumn(("kind",), "STRING")])
    mine.update_spec().add_field(truncate("kind", 2), "prefix").commit()

    (field,) = mine.state.spec.fields
    assert (field.source_id, field.name) == (2, "prefix")

    theirs.at()
    theirs.alter([RenameColumn(("id",), "number")])
    mine.replace_sort_order().asc("id").commit()
    assert [each.source_id for each in mine.state.sort_order.fields] == [0]


def test_the_default_name_is_that_of_the_column_as_it_is_called_by_then() -> None:
    mine, theirs = two_handles()
    theirs.alter([RenameColumn(("kind",), "sort")])
    mine.update_spec().add_field("kind").commit()

    assert names(mine) == ["sort"]


@pytest.mark.parametrize("what", ["spec", "order"])
def test_a_source_that_others_drop_is_a_conflict(what: str) -> None:
    mine, theirs = two_handles()
    theirs.alter([DropColumn(("kind",))], author="ann")

    spec, order = mine.update_spec().add_field("kind"), mine.replace_sort_order().asc("kind")
    change = spec if what == "spec" else order

    with pytest.raises(CommitConflictError, match=r"column kind \(id 2\) was dropped by ann"):
        change.commit()


@pytest.mark.parametrize("what", ["partition field", "sort order"])
def test_a_column_that_others_made_a_source_cannot_be_dropped_unseen(what: str) -> None:
    mine, theirs = two_handles()
    if what == "partition field":
        theirs.update_spec().add_field("kind").commit()
    else:
        theirs.replace_sort_order().asc("kind").commit()

    with pytest.raises(CommitConflictError, match=f"cannot be dropped; .*{what} first"):
        mine.alter([DropColumn(("kind",))])

    assert "kind" in mine.state.schema.names


def test_a_type_that_others_gave_to_a_source_has_to_fit_the_transform() -> None:
    store = memory()
    lake = lake_on(store)
    lake.create_database("shop")
    options = {"ledger.formats": "paimon"}
    mine = lake.create_table("shop.t", Schema.of(COLUMNS, options=options))
    theirs = lake_on(store).table("shop.t")
    theirs.alter([UpdateColumnType(("ts",), "STRING")])

    with pytest.raises(CommitConflictError, match="day does not accept column ts STRING"):
        mine.update_spec().add_field(day("ts")).commit()


def test_a_source_of_the_same_transaction_has_the_id_that_it_gets_in_the_end() -> None:
    mine, theirs = two_handles()
    theirs.alter([AddColumn(("x",), "INT"), AddColumn(("y",), "INT")])
    update = mine.update_spec().add_field(bucket("shop", 4))
    mine.alter([AddColumn(("shop",), "INT"), update.change])

    (field,) = mine.state.spec.fields
    assert field.source_id == mine.state.schema.field("shop").id == 5


def test_an_equal_looking_spec_over_another_new_column_is_a_conflict() -> None:
    mine, theirs = two_handles()
    theirs.alter([AddColumn(("x",), "INT"), theirs.update_spec().add_field("x", "p").change])

    with pytest.raises(
        CommitConflictError,
        match=r"to identity of column x \(id 3\), and you asked for identity of your new column",
    ):
        mine.alter([AddColumn(("y",), "INT"), mine.update_spec().add_field("y", "p").change])


def test_a_layout_and_files_and_columns_commute() -> None:
    mine, theirs = two_handles()
    theirs.append([replace(data_file("a.parquet"), partition=())])
    theirs.alter([AddColumn(("x",), "INT")])
    mine.update_spec().add_field("kind").commit()
    theirs.append([replace(data_file("b.parquet"), partition=())])

    assert {each.spec_id for each in mine.at().files} == {0}
    assert names(mine) == ["kind"]


def test_keys_by_options_lose_to_a_spec_and_a_spec_is_decided_again_on_keys() -> None:
    mine, theirs = two_handles()
    theirs.update_spec().add_field("kind").commit()
    with pytest.raises(CommitConflictError, match="keys cannot be set by options"):
        mine.alter([SetOption("partition", "kind")])

    mine, theirs = two_handles()
    theirs.alter([SetOption("partition", "kind")])
    mine.update_spec().add_field(day("ts")).commit()
    assert names(mine) == ["kind", "ts_day"]


def test_an_overwrite_asks_each_file_by_its_own_spec() -> None:
    mine, _ = two_handles(partition_keys=["kind"])
    mine.append([data_file("a.parquet", "x"), data_file("b.parquet", "y")])
    mine.update_spec().add_field(bucket("id", 4)).remove_field("kind").add_field("kind").commit()
    mine.update_spec().remove_field("kind").commit()
    mine.update_spec().add_field("kind", "sort").commit()
    assert [each.name for each in mine.state.spec.fields] == ["id_bucket_4", "sort"]
    spec_id = mine.state.default_spec_id
    new = [replace(data_file(name), spec_id=spec_id, partition=(3, name[0])) for name in "xy"]
    mine.append(new)

    mine.overwrite([], where={"kind": "x"})
    assert {each.path for each in mine.at().files} == {"b.parquet", "y"}
    mine.overwrite([], where={"sort": "y"})
    assert mine.at().files == ()
    with pytest.raises(InvalidInputError, match="'ts' is no partition key; there are"):
        mine.overwrite([], where={"ts": "y"})


def test_an_overwrite_refuses_files_whose_spec_does_not_say() -> None:
    mine, _ = two_handles()
    mine.append([replace(data_file("a.parquet"), partition=())])
    mine.update_spec().add_field("kind").add_field(month("ts")).commit()
    new = replace(data_file("b.parquet"), spec_id=1, partition=("x", 575))
    mine.append([new])

    with pytest.raises(
        InvalidChangeError, match=r"file a.parquet was written with partition spec 0.*\[\]"
    ):
        mine.overwrite([], where={"kind": "x"})
    mine.delete_files(["a.parquet"])
    mine.overwrite([], where={"kind": "x", "ts_month": 574})
    assert [each.path for each in mine.at().files] == ["b.parquet"]
    mine.overwrite([], where={"ts_month": 575})
    assert mine.at().files == ()


@pytest.mark.parametrize("kind", ["x", "y"])
def test_an_overwrite_sees_what_others_add_under_another_spec(kind: str) -> None:
    mine, theirs = two_handles(partition_keys=["kind"])
    theirs.update_spec().remove_field("kind").add_field(bucket("id", 4)).commit()
    theirs.update_spec().add_field("kind").commit()
    spec_id = theirs.state.default_spec_id
    theirs.append([replace(data_file("n.parquet"), spec_id=spec_id, partition=(3, kind))])

    if kind == "x":
        with pytest.raises(CommitConflictError, match="file n.parquet was added"):
            mine.overwrite([], where={"kind": "x"})
    else:
        mine.overwrite([], where={"kind": "x"})


def test_an_overwrite_conflicts_with_a_file_whose_new_spec_does_not_say() -> None:
    mine, theirs = two_handles(partition_keys=["kind"])
    theirs.update_spec().remove_field("kind").commit()
    theirs.append([replace(data_file("n.parquet"), spec_id=1, partition=())])

    with pytest.raises(CommitConflictError, match="file n.parquet was added"):
        mine.overwrite([], where={"kind": "x"})


@pytest.mark.parametrize("what", ["spec", "order"])
def test_equal_layouts_of_a_table_with_one_column_are_one(what: str) -> None:
    store = memory()
    mine = orders(lake_on(store), Schema.of({"id": "INT"}))
    theirs = lake_on(store).table("shop.orders")
    for table in (theirs, mine):
        if what == "spec":
            table.update_spec().add_field(bucket("id", 4)).commit()
        else:
            table.replace_sort_order().asc("id").commit()

    assert len(mine.state.specs) + len(mine.state.sort_orders) == 3
