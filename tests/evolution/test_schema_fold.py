"""Facts about columns change the schema, at the top and inside, each for its own column."""

from __future__ import annotations

import pytest

from ledger import DataField, DropPrimaryKey, InvalidChangeError, Move, Schema
from ledger.events import (
    ColumnAdded,
    ColumnCommentUpdated,
    ColumnDefaultValueUpdated,
    ColumnDropped,
    ColumnMoved,
    ColumnNullabilityUpdated,
    ColumnRenamed,
    ColumnTypeUpdated,
    IdentifierFieldsSet,
    SchemaEvent,
    UpdateKeys,
)
from ledger.model import FieldObject, TypeObject, format_type, parse_type
from ledger.model.types import ArrayType, DataType, RowType
from ledger.state import SchemaBuilder

ROW = RowType((DataField(0, "x", parse_type("INT")), DataField(1, "y", parse_type("INT"))))


def folded(*events: SchemaEvent) -> Schema:
    """Columns id 0, v 1 (x 2, y 3), vs 4 (x 5, y 6), one ROW (z 8) as w 7; and then the facts."""
    one = RowType((DataField(0, "z", parse_type("INT")),))
    columns: dict[str, str | DataType] = {
        "id": "INT NOT NULL",
        "v": ROW,
        "vs": ArrayType(ROW),
        "w": one,
    }
    builder = SchemaBuilder(Schema.of(columns, primary_keys=["id"]))
    for each in events:
        builder.apply(each)
    return builder.freeze(schema_id=1, time_millis=0)


def members(schema: Schema, name: str) -> tuple[DataField, ...]:
    found = schema.field(name).type
    found = found.element if isinstance(found, ArrayType) else found
    assert isinstance(found, RowType)
    return found.fields


NEW = {"data_type": "INT", "comment": "why", "default_value": "7", "field_id": 9}
PLACES: dict[str, tuple[tuple[str, ...], Move | None, list[str]]] = {
    "last": (("n",), None, ["id", "v", "vs", "w", "n"]),
    "said to be last": (("n",), Move("n", "LAST"), ["id", "v", "vs", "w", "n"]),
    "first": (("n",), Move("n", "FIRST"), ["n", "id", "v", "vs", "w"]),
    "after": (("n",), Move("n", "AFTER", "v"), ["id", "v", "n", "vs", "w"]),
    "before": (("n",), Move("n", "BEFORE", "v"), ["id", "n", "v", "vs", "w"]),
    "last inside": (("v", "n"), None, ["x", "y", "n"]),
    "first inside": (("v", "n"), Move("n", "FIRST"), ["n", "x", "y"]),
}


@pytest.mark.parametrize("case", PLACES)
def test_a_new_column_has_all_that_its_fact_says_wherever_it_stands(case: str) -> None:
    path, move, names = PLACES[case]
    schema = folded(ColumnAdded(field_names=path, move=move, **NEW))  # type: ignore[arg-type]  # as said

    siblings = schema.fields if len(path) == 1 else members(schema, "v")
    assert [each.name for each in siblings] == names
    added = next(each for each in siblings if each.name == "n")
    assert added == DataField(9, "n", parse_type("INT"), "why", "7", "7")
    assert schema.highest_field_id == 9


def test_a_default_set_later_leaves_what_older_rows_read() -> None:
    schema = folded(
        ColumnAdded(field_names=("n",), **NEW),  # type: ignore[arg-type]  # as said
        ColumnDefaultValueUpdated(field_names=("n",), new_default_value="8", field_id=9),
        ColumnDefaultValueUpdated(field_names=("v", "x"), new_default_value="9", field_id=2),
    )

    there = schema.field("n")
    assert (there.default_value, there.initial_default) == ("8", "7")
    inside = members(schema, "v")[0]
    assert (inside.default_value, inside.initial_default) == ("9", None)


@pytest.mark.parametrize("path", [("vs",), ("w", "z")])
def test_a_type_written_anew_gives_out_its_ids(path: tuple[str, ...]) -> None:
    wanted = TypeObject("ROW", fields=(FieldObject(9, "p", "INT"), FieldObject(10, "q", "INT")))
    owner = {"vs": 4, "z": 8}[path[-1]]
    schema = folded(ColumnTypeUpdated(field_names=path, new_data_type=wanted, field_id=owner))

    there = schema.field("vs").type if len(path) == 1 else members(schema, "w")[0].type
    assert isinstance(there, RowType)
    assert [each.id for each in there.fields] == [9, 10]
    assert schema.highest_field_id == 10


@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("path", [("id",), ("v", "x"), ("vs", "element")])
def test_a_new_type_keeps_whether_it_may_be_null_if_asked(
    path: tuple[str, ...], *, keep: bool
) -> None:
    field_id = {"id": 0, "x": 2, "element": 4}[path[-1]]
    none = ColumnNullabilityUpdated(field_names=path, new_nullability=False, field_id=field_id)
    retyped = ColumnTypeUpdated(
        field_names=path, new_data_type="STRING", keep_nullability=keep, field_id=field_id
    )
    schema = folded(none, retyped)

    match path:
        case ("id",):
            there = schema.field("id").type
        case ("v", "x"):
            there = members(schema, "v")[0].type
        case _:
            holder = schema.field("vs").type
            assert isinstance(holder, ArrayType)
            there = holder.element
    assert format_type(there) == ("STRING NOT NULL" if keep else "STRING")


def test_keys_and_identifiers_are_set_as_said() -> None:
    keyed = folded(UpdateKeys(primary_keys=("v", "id"), partition_keys=("id",)))
    assert (keyed.primary_keys, keyed.partition_keys) == (("v", "id"), ("id",))

    bare = folded(DropPrimaryKey(), IdentifierFieldsSet(field_names=(("id",),), field_ids=(0,)))
    assert (bare.primary_keys, bare.identifier_field_ids) == ((), (0,))


SEEN = TypeObject("ROW", fields=(FieldObject(5, "x", "INT"),))
CONTRADICTIONS: dict[str, tuple[SchemaEvent, str]] = {
    "a new column without a path": (
        ColumnAdded(field_names=(), data_type="INT", field_id=9),
        "fieldNames is empty",
    ),
    "an id that is not new": (
        ColumnAdded(field_names=("n",), data_type="INT", field_id=8),
        "n: id 8 is not new; ids up to 8 were assigned",
    ),
    "inner ids that are not new": (
        ColumnAdded(field_names=("n",), data_type=SEEN, field_id=9),
        r"n: ids \[5, 9\] must be new .* up to 8 were",
    ),
    "a type with ids that are not new": (
        ColumnTypeUpdated(field_names=("v",), new_data_type=SEEN, field_id=1),
        r"v: ids \[5\] must be new .* up to 8 were",
    ),
    "another parent": (
        ColumnAdded(field_names=("v", "n"), data_type="INT", field_id=9, parent_id=4),
        "column v has id 1, but the event says 4",
    ),
    "a place in another column": (
        ColumnTypeUpdated(field_names=("v", "x"), new_data_type="BIGINT", field_id=3),
        r"column v\.x has id 2, but the event says 3",
    ),
    "another member's id": (
        ColumnRenamed(field_names=("v", "x"), new_name="n", field_id=3),
        r"column v\.x has id 2, but the event says 3",
    ),
    "a member's name that is taken": (
        ColumnRenamed(field_names=("vs", "element", "x"), new_name="y", field_id=5),
        r"column vs\.element\.y exists already",
    ),
    "the last member": (
        ColumnDropped(field_names=("w", "z"), field_id=8),
        r"w\.z is the last member of its ROW",
    ),
    "a member of no ROW": (
        ColumnCommentUpdated(field_names=("id", "x"), new_comment="c", field_id=0),
        r"id\.x",
    ),
    "a key that goes": (ColumnDropped(field_names=("id",), field_id=0), "id is part of a key"),
    "a member behind nothing": (
        ColumnMoved(field_names=("v", "x"), move=Move("x", "AFTER", "q"), field_id=2),
        "column q does not exist; x cannot go AFTER it",
    ),
    "a member before itself": (
        ColumnMoved(field_names=("v", "x"), move=Move("x", "BEFORE", "x"), field_id=2),
        "x cannot move BEFORE itself",
    ),
    "a column after itself": (
        ColumnMoved(move=Move("v", "AFTER", "v"), field_id=1),
        "v cannot move AFTER itself",
    ),
}


@pytest.mark.parametrize("case", CONTRADICTIONS)
def test_a_fact_that_contradicts_says_what(case: str) -> None:
    event, message = CONTRADICTIONS[case]

    with pytest.raises(InvalidChangeError, match=message):
        folded(event)
