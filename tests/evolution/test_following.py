"""A batch decided on an old schema is decided again on what others made of it meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ledger import (
    AddColumn,
    ColumnExistsError,
    ColumnNotFoundError,
    DropColumn,
    Move,
    RenameColumn,
    Schema,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnPosition,
    UpdateColumnType,
    evolve,
)
from ledger.decide import Decision, decide_schema
from ledger.model import type_from_json

ROW = type_from_json({"type": "ROW", "fields": [{"name": "x", "type": "INT"}]})
BASE = Schema.of({"a": "INT", "b": "INT", "v": ROW})


def decided_again(mine: Sequence[SchemaChange], theirs: Sequence[SchemaChange]) -> Decision:
    first = decide_schema(BASE, mine, has_snapshots=False)
    newer = evolve(BASE, theirs)
    return decide_schema(newer, mine, has_snapshots=False, anchors=first.anchors)


def test_a_path_follows_its_column_through_a_rename() -> None:
    decision = decided_again(
        [UpdateColumnComment(("v", "x"), "deep")],
        [RenameColumn(("v",), "w"), RenameColumn(("w", "x"), "y")],
    )

    assert decision.events[0].field_names == ("w", "y")  # type: ignore[union-attr] # it is a comment


def test_a_drop_never_hits_a_new_column_of_the_same_name() -> None:
    decision = decided_again(
        [DropColumn(("b",))], [DropColumn(("b",)), AddColumn(("b",), "STRING")]
    )

    assert decision.events == ()
    assert decision.schema.names == ("a", "v", "b")


def test_a_change_of_a_column_that_is_gone_names_the_path_that_was_asked_for() -> None:
    with pytest.raises(ColumnNotFoundError, match=r"column v\.x does not exist any more"):
        decided_again([UpdateColumnType(("v", "x"), "BIGINT")], [DropColumn(("v",))])


def test_two_writers_that_add_the_same_column_both_succeed() -> None:
    decision = decided_again(
        [AddColumn(("n",), "INT"), UpdateColumnComment(("n",), "mine")],
        [AddColumn(("n",), "INT")],
    )

    assert [type(each).__name__ for each in decision.events] == ["ColumnCommentUpdated"]
    assert decision.schema.field("n").id == 4


def test_two_writers_that_add_different_columns_of_one_name_conflict() -> None:
    with pytest.raises(ColumnExistsError):
        decided_again([AddColumn(("n",), "INT")], [AddColumn(("n",), "STRING")])


def test_a_rename_that_is_done_already_is_not_done_again() -> None:
    assert decided_again([RenameColumn(("a",), "z")], [RenameColumn(("a",), "z")]).events == ()


def test_ids_given_out_by_the_batch_are_given_out_anew() -> None:
    decision = decided_again(
        [AddColumn(("r",), "INT"), RenameColumn(("r",), "s"), DropColumn(("s",))],
        [AddColumn(("t",), "INT")],
    )

    assert [each.field_id for each in decision.events] == [5, 5, 5]  # type: ignore[union-attr] # all are about columns
    assert decision.anchors[0].assigned == (5,)


def test_a_move_follows_its_reference() -> None:
    decision = decided_again(
        [AddColumn(("n",), "INT", None, Move("n", "AFTER", "a"))], [RenameColumn(("a",), "z")]
    )

    assert decision.schema.names == ("z", "n", "b", "v")


def test_a_move_behind_a_column_that_is_gone_is_refused() -> None:
    with pytest.raises(ColumnNotFoundError):
        decided_again([UpdateColumnPosition(Move("a", "AFTER", "b"))], [DropColumn(("b",))])


def test_a_move_to_where_the_column_stands_by_now_decides_nothing() -> None:
    first = UpdateColumnPosition(Move("b", "FIRST"))

    assert decided_again([first], [first]).events == ()


def test_a_type_that_the_column_has_by_now_decides_nothing() -> None:
    widen = UpdateColumnType(("a",), "BIGINT")

    assert decided_again([widen], [widen]).events == ()


def test_deciding_again_on_the_same_schema_decides_the_same() -> None:
    changes: list[SchemaChange] = [
        AddColumn(("v", "y"), "INT"),
        RenameColumn(("v",), "w"),
        UpdateColumnPosition(Move("y", "FIRST"), ("w", "y")),
        UpdateColumnType(("w", "y"), "BIGINT"),
    ]
    first = decide_schema(BASE, changes, has_snapshots=False)

    assert decide_schema(BASE, changes, has_snapshots=False, anchors=first.anchors) == first


def test_what_a_batch_says_last_of_an_option_stands_though_others_said_it_before() -> None:
    decision = decided_again(
        [SetOption("k", "1"), SetOption("k", "2")], [SetOption("k", "2"), SetOption("n", "3")]
    )

    assert decision.schema.options == {"k": "2", "n": "3"}
    reported = {each.key: each.value for each in decision.events if isinstance(each, SetOption)}
    assert reported == {"k": "2"}
