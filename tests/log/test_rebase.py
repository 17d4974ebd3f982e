"""The result of two writers' changes."""

from __future__ import annotations

import pytest

from ledger import (
    AddColumn,
    CommitConflictError,
    DataField,
    DropColumn,
    Move,
    RenameColumn,
    Schema,
    SetOption,
    Table,
    UpdateColumnComment,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
)
from ledger.model import parse_type, type_to_wire
from ledger.model.types import RowType
from tests.lakes import data_file, lake_on, memory, orders

INT = parse_type("INT")
ROW = type_to_wire(RowType((DataField(0, "a", INT),)))
NESTED = Schema(
    (
        DataField(0, "id", INT),
        DataField(1, "s", RowType((DataField(2, "a", INT), DataField(3, "b", INT)))),
    )
)


def two_handles(schema: Schema | None = None) -> tuple[Table, Table]:
    """Two writers that both saw version 0."""
    store = memory()
    mine = orders(lake_on(store), schema)
    return mine, lake_on(store).table("shop.orders")


def test_adding_a_nested_name_that_an_older_column_took_is_a_conflict() -> None:
    mine, theirs = two_handles(NESTED)
    theirs.alter([RenameColumn(("s", "a"), "n")])
    with pytest.raises(CommitConflictError):
        mine.alter([AddColumn(("s", "n"), "INT")])


def test_an_overwrite_of_an_empty_partition_sees_what_others_add_to_it() -> None:
    mine, theirs = two_handles()
    theirs.append([data_file("a.parquet", "2013-01-01")])
    with pytest.raises(CommitConflictError):
        mine.overwrite([], where={"day": "2013-01-01"})


def test_ids_that_a_batch_gives_out_are_no_cells_of_somebody_else() -> None:
    mine, theirs = two_handles(Schema.of({"id": "INT"}))
    theirs.alter([AddColumn(("t",), ROW), AddColumn(("t", "x"), "STRING")])
    done = mine.alter([AddColumn(("s",), ROW), AddColumn(("s", "x"), "INT")])
    assert done.state.schema.names == ("id", "t", "s")


def test_a_move_inside_a_struct_of_the_same_batch_survives_a_race() -> None:
    mine, theirs = two_handles(Schema.of({"id": "INT"}))
    theirs.alter([AddColumn(("w",), "INT")])
    move = Move("b", "AFTER", "a")
    done = mine.alter([AddColumn(("s",), ROW), AddColumn(("s", "b"), "INT", move=move)])
    assert done.state.schema.names == ("id", "w", "s")


@pytest.mark.parametrize("action", ["create", "delete"])
def test_an_equal_tag_is_success(action: str) -> None:
    mine, theirs = two_handles()
    mine.append([data_file("a.parquet")])
    if action == "delete":
        mine.create_tag("v", snapshot=1)
    theirs.at()
    for table in (theirs, mine):
        if action == "create":
            table.create_tag("v", snapshot=1)
        else:
            table.delete_tag("v")
    assert ("v" in mine.state.tags) == (action == "create")


@pytest.mark.parametrize(("theirs_before", "mine_before"), [(7, 5), (3, 5)])
def test_two_expiries_commute(theirs_before: int, mine_before: int) -> None:
    mine, theirs = two_handles()
    for number in range(8):
        mine.append([data_file(f"f{number}.parquet")])
    theirs.at()
    theirs.expire_snapshots(before=theirs_before)
    mine.expire_snapshots(before=mine_before)
    assert mine.state.earliest_snapshot_id == max(theirs_before, mine_before)


def test_renames_of_two_columns_that_one_option_names_commute() -> None:
    schema = Schema.of(
        {"id": "INT NOT NULL", "u": "INT", "v": "INT"},
        primary_keys=["id"],
        options={"sequence.field": "u,v", "bucket": "1"},
    )
    mine, theirs = two_handles(schema)
    theirs.alter([RenameColumn(("u",), "u2")])
    done = mine.alter([RenameColumn(("v",), "v2")])
    assert done.state.schema.options["sequence.field"] == "u2,v2"


def test_a_new_type_does_not_take_back_a_not_null_that_it_did_not_see() -> None:
    options = {"alter-column-null-to-not-null.disabled": "false"}
    mine, theirs = two_handles(Schema.of({"id": "INT", "x": "INT"}, options=options))
    theirs.alter([UpdateColumnNullability(("x",), new_nullability=False)])
    with pytest.raises(CommitConflictError):
        mine.alter([UpdateColumnType(("x",), "BIGINT")])


def test_equal_columns_at_two_places_are_a_conflict() -> None:
    mine, theirs = two_handles(Schema.of({"id": "INT", "x": "INT"}))
    theirs.alter([AddColumn(("n",), "INT", move=Move("n", "FIRST"))])
    with pytest.raises(CommitConflictError):
        mine.alter([AddColumn(("n",), "INT", move=Move("n", "AFTER", "id"))])


def test_a_conflict_names_the_commit_that_dropped_the_reference_not_the_last() -> None:
    mine, theirs = two_handles(Schema.of({"id": "INT", "r": "INT", "x": "INT"}))
    theirs.alter([DropColumn(("r",))], author="dropper")
    theirs.alter([SetOption("k", "v")], author="bystander")
    with pytest.raises(CommitConflictError) as caught:
        mine.alter([UpdateColumnPosition(Move("x", "AFTER", "r"))])
    assert (caught.value.author, caught.value.version) == ("dropper", 1)


def test_a_conflict_names_the_commit_that_dropped_the_struct_not_the_last() -> None:
    mine, theirs = two_handles(NESTED)
    theirs.alter([DropColumn(("s",))], author="dropper")
    theirs.alter([SetOption("k", "v")], author="bystander")
    with pytest.raises(CommitConflictError) as caught:
        mine.alter([UpdateColumnComment(("s", "a"), "c")])
    assert (caught.value.author, caught.value.version) == ("dropper", 1)


def test_anothers_struct_stands_for_ones_own_unless_one_goes_on_inside_of_it() -> None:
    mine, theirs = two_handles()
    theirs.alter([AddColumn(("a",), ROW)])
    own, inside = AddColumn(("a",), ROW), AddColumn(("a", "b"), "INT")
    with pytest.raises(CommitConflictError, match="column a exists already"):
        mine.alter([own, inside, RenameColumn(("a", "b"), "c")])

    # A comment goes to the column at its path's end, and says nothing of what is around it.
    mine, theirs = two_handles()
    commented = AddColumn(("a",), ROW, comment="theirs")
    theirs.alter([commented])
    comment = UpdateColumnComment(("a", "b"), "mine")
    there = mine.alter([commented, inside, comment]).state.schema.field("a").type
    assert isinstance(there, RowType)
    assert [(each.name, each.description) for each in there.fields] == [("a", None), ("b", "mine")]
