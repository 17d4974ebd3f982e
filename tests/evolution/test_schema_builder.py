from __future__ import annotations

import pytest

from ledger import DataField, InvalidChangeError, Move, Schema
from ledger.events import (
    ColumnAdded,
    ColumnCommentUpdated,
    ColumnDropped,
    ColumnMoved,
    ColumnRenamed,
    ColumnTypeUpdated,
    SchemaEvent,
    UpdateKeys,
)
from ledger.model import FieldObject, TypeObject, parse_type
from ledger.model.types import ArrayType, RowType
from ledger.state import SchemaBuilder

ROW = RowType((DataField(0, "x", parse_type("INT")), DataField(1, "y", parse_type("INT"))))


def builder() -> SchemaBuilder:
    """Columns id 0, v 1 (x 2, y 3), vs 4 (x 5, y 6), day 7."""
    return SchemaBuilder(
        Schema.of(
            {"id": "INT", "v": ROW, "vs": ArrayType(ROW), "day": "DATE"},
            partition_keys=["day"],
            primary_keys=["id"],
        )
    )


CONTRADICTIONS: dict[str, SchemaEvent] = {
    "an id given out before": ColumnAdded(field_names=("n",), data_type="INT", field_id=7),
    "a taken name": ColumnAdded(field_names=("v",), data_type="INT", field_id=8),
    "a taken name inside": ColumnAdded(field_names=("v", "x"), data_type="INT", field_id=8),
    "another parent": ColumnAdded(field_names=("v", "z"), data_type="INT", field_id=8, parent_id=4),
    "an inner id given out before": ColumnAdded(
        field_names=("n",),
        data_type=TypeObject("ROW", fields=(FieldObject(3, "x", "INT"),)),
        field_id=8,
    ),
    "one new id twice": ColumnAdded(
        field_names=("n",),
        data_type=TypeObject("ROW", fields=(FieldObject(8, "x", "INT"),)),
        field_id=8,
    ),
    "a missing column": ColumnRenamed(field_names=("w",), new_name="n", field_id=1),
    "another column's id": ColumnRenamed(field_names=("v",), new_name="n", field_id=4),
    "another member's id": ColumnRenamed(field_names=("v", "x"), new_name="n", field_id=3),
    "a renamed partition key": ColumnRenamed(field_names=("day",), new_name="n", field_id=7),
    "a dropped key": ColumnDropped(field_names=("id",), field_id=0),
    "a missing member": ColumnDropped(field_names=("v", "z"), field_id=2),
    "an unknown wrapper": ColumnDropped(field_names=("vs", "key", "x"), field_id=5),
    "a place around another field": ColumnTypeUpdated(
        field_names=("vs", "element", "x"), new_data_type="BIGINT", field_id=4
    ),
    "a comment inside a wrapper": ColumnCommentUpdated(
        field_names=("vs", "element"), new_comment="c", field_id=4
    ),
    "a move behind nothing": ColumnMoved(move=Move("v", "AFTER", "w"), field_id=1),
    "a move behind another id": ColumnMoved(
        move=Move("v", "AFTER", "vs"), field_id=1, reference_id=7
    ),
    "a move behind itself": ColumnMoved(move=Move("v", "AFTER", "v"), field_id=1),
    "a key of no column": UpdateKeys(primary_keys=("nope",)),
}


@pytest.mark.parametrize("event", CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_a_fact_that_contradicts_the_state_is_refused_and_changes_nothing(
    event: SchemaEvent,
) -> None:
    fold = builder()
    before = fold.freeze(schema_id=0, time_millis=0)

    with pytest.raises(InvalidChangeError):
        fold.apply(event)

    assert fold.freeze(schema_id=0, time_millis=0) == before


def test_a_renamed_key_column_is_renamed_in_the_key() -> None:
    fold = builder()

    fold.apply(ColumnRenamed(field_names=("id",), new_name="key", field_id=0))

    assert fold.primary_keys == ("key",)
    assert [each.name for each in fold.columns.values()] == ["key", "v", "vs", "day"]


def test_nested_facts_rebuild_only_their_column() -> None:
    fold = builder()
    before = fold.columns

    fold.apply(ColumnAdded(field_names=("vs", "element", "z"), data_type="INT", field_id=8))
    fold.apply(ColumnMoved(field_names=("v", "y"), move=Move("y", "BEFORE", "x"), field_id=3))

    after = fold.columns
    assert after[0] is before[0]
    assert after[7] is before[7]
    assert isinstance(after[1].type, RowType)
    assert [each.id for each in after[1].type.fields] == [3, 2]
    assert fold.highest_field_id == 8
