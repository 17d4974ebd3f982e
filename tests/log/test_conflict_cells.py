"""Each aspect of a table is a cell of its own: only two values for one cell are a conflict."""

from __future__ import annotations

from itertools import combinations

import pytest

from ledger import (
    AddColumn,
    CommitConflictError,
    DataField,
    DropPrimaryKey,
    Move,
    RemoveOption,
    RenameColumn,
    Schema,
    SchemaChange,
    SetIdentifierFields,
    SetOption,
    Table,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
)
from ledger.model import parse_type
from ledger.model.types import DataType, RowType
from tests.lakes import lake_on, memory, orders

PAIMON = {"ledger.formats": "paimon", "alter-column-null-to-not-null.disabled": "false"}
ICEBERG = {"ledger.formats": "iceberg"}
ROW = RowType((DataField(0, "a", parse_type("INT")),))


def two_handles(options: dict[str, str]) -> tuple[Table, Table]:
    """Two writers that both saw ids 0 to 4 in version 0: id, x, y, and s with its member a."""
    store = memory()
    columns: dict[str, str | DataType] = {"id": "INT NOT NULL", "x": "INT", "y": "INT", "s": ROW}
    mine = orders(lake_on(store), Schema.of(columns, options={"k": "0", **options}))
    return mine, lake_on(store).table("shop.orders")


CONFLICTS: dict[str, tuple[dict[str, str], SchemaChange, SchemaChange]] = {
    "comment": (PAIMON, UpdateComment("a"), UpdateComment("b")),
    "option k": (PAIMON, RemoveOption("k"), SetOption("k", "1")),
    "column 1 comment": (
        PAIMON,
        UpdateColumnComment(("x",), "a"),
        UpdateColumnComment(("x",), "b"),
    ),
    "column 1 default": (
        PAIMON,
        UpdateColumnDefaultValue(("x",), "1"),
        UpdateColumnDefaultValue(("x",), "2"),
    ),
    "column 1 nullability": (
        PAIMON,
        UpdateColumnNullability(("x",), new_nullability=False),
        UpdateColumnType(("x",), "BIGINT"),
    ),
    "column 1 type": (
        PAIMON,
        UpdateColumnType(("x",), "BIGINT", keep_nullability=True),
        UpdateColumnType(("x",), "DOUBLE", keep_nullability=True),
    ),
    "column 2 position": (
        PAIMON,
        UpdateColumnPosition(Move("y", "AFTER", "id")),
        UpdateColumnPosition(Move("y", "FIRST")),
    ),
    "primaryKey": (PAIMON, SetOption("primary-key", "id"), DropPrimaryKey()),
    "identifierFields": (ICEBERG, SetIdentifierFields((("id",),)), SetIdentifierFields(())),
    "name 3 n": (PAIMON, AddColumn(("s", "n"), "INT"), AddColumn(("s", "n"), "STRING")),
    "name -1 n": (PAIMON, RenameColumn(("x",), "n"), RenameColumn(("y",), "n")),
}


MESSAGES = {
    "comment": ("the table's comment", "'a'", "'b'"),
    "option k": ("option k", "none", "'1'"),
    "column 1 comment": ("the comment of column x (id 1)", "'a'", "'b'"),
    "column 1 default": ("the default of column x (id 1)", "'1'", "'2'"),
    "column 1 nullability": ("the nullability of column x (id 1)", "NOT NULL", "NULL"),
    "column 1 type": ("the type of column x (id 1)", "BIGINT", "DOUBLE"),
    "column 2 position": ("the position of column y (id 2)", "AFTER column id (id 0)", "FIRST"),
    "primaryKey": ("the primary key", "['id']", "[]"),
    "identifierFields": ("the set of identifier fields", "column id (id 0)", "none"),
    "name 3 n": ("the name n inside column s (id 3)", "a new column, INT", "a new column, STRING"),
    "name -1 n": (
        "the name n",
        "the name of column x (id 1)",
        "the name of column y (id 2)",
    ),
}
"""The cell in words, the winner's value and the loser's value, by cell."""


@pytest.mark.parametrize("cell", CONFLICTS)
def test_a_conflict_names_the_column_both_values_the_winner_and_its_time(cell: str) -> None:
    options, theirs_asks, mine_asks = CONFLICTS[cell]
    mine, theirs = two_handles(options)
    theirs.alter([theirs_asks], author="ann")

    with pytest.raises(CommitConflictError) as caught:
        mine.alter([mine_asks])

    what, there, here = MESSAGES[cell]
    assert str(caught.value) == (
        f"{what} was changed by ann in version 1 (2023-11-14T22:13:21Z) to {there}, and you asked "
        f"for {here}; check it, then retry"
    )
    assert (caught.value.cell, caught.value.version) == (cell, 1)


def test_a_winner_without_a_name_is_somebody() -> None:
    mine, theirs = two_handles(PAIMON)
    theirs.alter([SetOption("k", "1")], author="")

    with pytest.raises(CommitConflictError, match="^option k was changed by somebody in version 1"):
        mine.alter([SetOption("k", "2")])


EQUAL: tuple[SchemaChange, ...] = (
    UpdateComment("a"),
    RemoveOption("k"),
    UpdateColumnComment(("x",), "a"),
    UpdateColumnDefaultValue(("x",), "1"),
    UpdateColumnNullability(("x",), new_nullability=False),
    UpdateColumnType(("x",), "BIGINT NOT NULL"),
    UpdateColumnPosition(Move("y", "AFTER", "id")),
    UpdateColumnPosition(Move("y", "FIRST")),
    AddColumn(("s", "n"), "INT"),
)


@pytest.mark.parametrize("both_ask", EQUAL)
def test_an_equal_value_of_any_cell_is_success(both_ask: SchemaChange) -> None:
    mine, theirs = two_handles(PAIMON)
    there = theirs.alter([both_ask]).state.schema
    done = mine.alter([both_ask]).state.schema

    assert (done.fields, done.options, done.comment) == (there.fields, there.options, there.comment)


def test_identifier_fields_that_both_ask_for_are_success() -> None:
    mine, theirs = two_handles(ICEBERG)
    for table in (theirs, mine):
        table.alter([SetIdentifierFields((("id",),))])

    assert mine.state.schema.identifier_field_ids == (0,)


ASPECTS: dict[str, SchemaChange] = {
    "a name": RenameColumn(("x",), "z"),
    "a type": UpdateColumnType(("x",), "BIGINT", keep_nullability=True),
    "a nullability": UpdateColumnNullability(("x",), new_nullability=False),
    "a comment": UpdateColumnComment(("x",), "c"),
    "a default": UpdateColumnDefaultValue(("x",), "1"),
    "a position": UpdateColumnPosition(Move("x", "FIRST")),
    "a neighbour": UpdateColumnComment(("y",), "d"),
    "an option": SetOption("k", "1"),
    "another option": SetOption("l", "2"),
    "the table's comment": UpdateComment("t"),
    "a member": AddColumn(("s", "n"), "INT"),
}


def schema_after(first: SchemaChange, second: SchemaChange) -> tuple[object, ...]:
    """Return the schema after two concurrent writers committed in this order."""
    mine, theirs = two_handles(PAIMON)
    theirs.alter([first])
    schema = mine.alter([second]).state.schema
    return schema.fields, schema.options, schema.comment


@pytest.mark.parametrize(("one", "other"), list(combinations(ASPECTS, 2)))
def test_two_aspects_are_committed_in_any_order(one: str, other: str) -> None:
    assert schema_after(ASPECTS[one], ASPECTS[other]) == schema_after(ASPECTS[other], ASPECTS[one])


def test_one_name_at_two_places_is_two_cells() -> None:
    mine, theirs = two_handles(PAIMON)
    theirs.alter([AddColumn(("s", "n"), "INT")])
    done = mine.alter([AddColumn(("n",), "STRING")]).state.schema

    assert (done.field("n").id, done.highest_field_id) == (6, 6)


def test_a_new_columns_aspects_are_no_cells_of_somebody_elses_new_column() -> None:
    mine, theirs = two_handles(PAIMON)
    theirs.alter([AddColumn(("n",), "INT"), UpdateColumnComment(("n",), "theirs")])
    done = mine.alter([AddColumn(("m",), "INT"), UpdateColumnComment(("m",), "mine")])

    described = {each.name: each.description for each in done.state.schema.fields[-2:]}
    assert described == {"n": "theirs", "m": "mine"}


def test_positions_next_to_two_writers_own_new_columns_are_two_values() -> None:
    mine, theirs = two_handles(PAIMON)
    theirs.alter([AddColumn(("n",), "INT"), UpdateColumnPosition(Move("x", "AFTER", "n"))])

    with pytest.raises(CommitConflictError) as caught:
        mine.alter([AddColumn(("m",), "INT"), UpdateColumnPosition(Move("x", "AFTER", "m"))])

    assert caught.value.cell == "column 1 position"
