from __future__ import annotations

import random
from typing import Any, get_args

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import (
    AddColumn,
    InvalidChangeError,
    InvalidInputError,
    InvalidTypeError,
    Move,
    RenameColumn,
    ReplaceSortOrder,
    Schema,
    SchemaChange,
    SetOption,
    UndropColumn,
    UnsupportedError,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
    UpdateComment,
    UpdatePartitionSpec,
    evolve,
    schema_change_from_json,
    schema_change_to_json,
    schema_from_json,
)
from ledger.decide.change_json import normalize_change
from ledger.model import parse_type
from projections.dlf import read
from tests.histories import random_change, start_schema
from tests.lakes import lake_on, memory, orders


@given(seed=st.integers(0, 2**32 - 1), is_paimon=st.booleans())
def test_what_is_written_reads_as_the_same_change(seed: int, *, is_paimon: bool) -> None:
    rng = random.Random(seed)
    change = random_change(rng, start_schema())
    if is_paimon and isinstance(change, UpdateColumnPosition) and change.field_names:
        with pytest.raises(UnsupportedError):
            schema_change_to_json(change, discriminator="action")
        return

    written = schema_change_to_json(change, discriminator="action" if is_paimon else "type")

    assert schema_change_from_json(written) == change


@pytest.mark.parametrize(
    ("obj", "place"),
    [
        ([], r"\$: is \[\], not an object"),
        ({}, r"\$: needs one `type`"),
        ({"type": "dropColumn"}, r"\$\.fieldNames: is missing or empty"),
        ({"type": "dropColumn", "fieldNames": "a"}, r"\$\.fieldNames: is 'a', not a list"),
        ({"type": "dropColumn", "fieldNames": [1]}, r"\$\.fieldNames\[0\]: is 1, not a text"),
        ({"type": "setOption", "key": "k"}, r"\$\.value: is missing"),
        ({"type": "setOption", "key": 1, "value": "v"}, r"\$\.key: is 1, not a text"),
        ({"type": "addColumn", "fieldNames": ["a"]}, r"\$\.dataType: is missing"),
        (
            {
                "type": "addColumn",
                "fieldNames": ["a"],
                "dataType": {"arrayType": {"type": "ARRAY"}},
            },
            r"\$\.dataType\.arrayType\.element: is missing",
        ),
        ({"type": "updateColumnPosition"}, r"\$\.move: is None, not an object"),
        (
            {"type": "updateColumnPosition", "move": {"fieldName": "a", "type": "first"}},
            r"\$\.move\.type: is 'first'; use one of FIRST",
        ),
        (
            {"type": "updateColumnPosition", "move": {"fieldName": "a", "type": "AFTER"}},
            r"\$\.move\.referenceFieldName: is missing",
        ),
    ],
)
def test_an_unreadable_change_says_where(obj: Any, place: str) -> None:
    with pytest.raises(InvalidChangeError, match=place):
        schema_change_from_json(obj)


_MOVE = {"fieldName": "a", "type": "AFTER", "referenceFieldName": "b"}
_PATH = {"fieldNames": ["a"]}
_REQUIRED: list[dict[str, Any]] = [
    {"type": "setOption", "key": "k", "value": "v"},
    {"type": "removeOption", "key": "k"},
    {"type": "addColumn", **_PATH, "dataType": "INT"},
    {"type": "renameColumn", **_PATH, "newName": "b"},
    {"type": "dropColumn", **_PATH},
    {"type": "updateColumnType", **_PATH, "newDataType": "BIGINT"},
    {"type": "updateColumnNullability", **_PATH, "newNullability": True},
    {"type": "updateColumnComment", **_PATH},
    {"type": "updateColumnDefaultValue", **_PATH},
    {"type": "updateColumnPosition", "move": _MOVE},
    {"type": "setIdentifierFields", "fieldNames": [["a"]]},
]
"""The required members of each change; `updateComment` and `dropPrimaryKey` have none."""
_LACKING = [
    pytest.param(change, path, absent, id=f"{change['type']}-{'.'.join(path)}-{absent}")
    for change in _REQUIRED
    for key in change
    for path in [(key,), *([(key, inner) for inner in _MOVE] if key == "move" else [])]
    for absent in ("missing", "null")
]


def _without(obj: dict[str, Any], path: tuple[str, ...], absent: str) -> dict[str, Any]:
    key, *rest = path
    if rest:
        return {**obj, key: _without(obj[key], tuple(rest), absent)}
    left = {name: value for name, value in obj.items() if name != key}
    return left if absent == "missing" else {**left, key: None}


@pytest.mark.parametrize("spelling", ["type", "action"])
@pytest.mark.parametrize(("change", "path", "absent"), _LACKING)
def test_a_change_without_a_required_member_is_rejected_by_its_name(
    change: dict[str, Any], path: tuple[str, ...], absent: str, spelling: str
) -> None:
    lacking = _without(change, path, absent)
    if "type" in lacking:
        lacking[spelling] = lacking.pop("type")
    place = "`type`" if path == ("type",) else rf"\$\.{'.'.join(path)}"
    table = orders(lake_on(memory()))

    schema_change_from_json(change)
    with pytest.raises(InvalidChangeError, match=place):
        schema_change_from_json(lacking)
    with pytest.raises(InvalidInputError, match=place):
        table.alter([lacking])
    with pytest.raises(InvalidInputError, match=path[-1]):
        read(lacking, SchemaChange)
    assert table.state.version == 0


def test_every_change_with_a_required_member_is_listed() -> None:
    needing = {
        kind.__struct_config__.tag
        for kind in get_args(SchemaChange)
        if any(each.required for each in msgspec.structs.fields(kind))
    }

    assert {each["type"] for each in _REQUIRED} == needing


@pytest.mark.parametrize("value", [0, 1, "true", "", [], {}])
def test_a_nullability_that_is_no_boolean_is_rejected(value: Any) -> None:
    change = {"type": "updateColumnNullability", "fieldNames": ["a"], "newNullability": value}

    with pytest.raises(InvalidChangeError, match=r"\$\.newNullability: is .*, neither true"):
        schema_change_from_json(change)


def test_a_restored_column_is_named_by_its_path_or_its_id() -> None:
    table = orders(lake_on(memory()))

    for change in ({"type": "undropColumn"}, {"type": "undropColumn", "fieldNames": []}):
        with pytest.raises(InvalidChangeError, match="fieldNames and fieldId are both missing"):
            table.alter([change])


@pytest.mark.parametrize(
    "change",
    [
        UpdateColumnNullability(("day",), None),  # type: ignore[arg-type]
        AddColumn(("n",), None),  # type: ignore[arg-type]
        AddColumn(None, "INT"),  # type: ignore[arg-type]
        RenameColumn(("day",), None),  # type: ignore[arg-type]
        SetOption("k", None),  # type: ignore[arg-type]
        UpdateColumnPosition(None),  # type: ignore[arg-type]
        UpdateColumnPosition(Move("day", "AFTER")),
    ],
)
def test_a_change_object_without_a_required_member_is_rejected(change: SchemaChange) -> None:
    table = orders(lake_on(memory()))

    with pytest.raises(InvalidInputError):
        table.alter([change])
    assert table.state.version == 0


def test_the_wrappers_of_the_dlf_page_are_read() -> None:
    change = schema_change_from_json(
        {
            "type": "addColumn",
            "fieldNames": ["tags"],
            "dataType": {"arrayType": {"type": "ARRAY", "element": {"primitiveType": "bigint"}}},
        }
    )

    assert schema_change_to_json(change)["dataType"] == {"type": "ARRAY", "element": "BIGINT"}


def test_a_nested_move_is_said_in_the_form_of_the_dlf_page() -> None:
    change = UpdateColumnPosition(Move("x", "FIRST"), ("v", "x"))

    assert schema_change_to_json(change) == {
        "type": "updateColumnPosition",
        "fieldNames": ["v", "x"],
        "move": {"fieldName": "x", "type": "FIRST"},
    }


def test_the_path_of_a_moved_top_level_column_is_its_name() -> None:
    change = schema_change_from_json(
        {
            "type": "updateColumnPosition",
            "fieldNames": ["x"],
            "move": {"fieldName": "x", "type": "FIRST"},
        }
    )

    assert change == UpdateColumnPosition(Move("x", "FIRST"))


@pytest.mark.parametrize("kind", ["addColumn", "undropColumn"])
def test_the_name_in_the_move_of_a_new_column_means_nothing_as_in_paimon(kind: str) -> None:
    move = {"fieldName": "other", "type": "FIRST"}
    change = {"type": kind, "fieldNames": ["q"], "dataType": "INT", "move": move}
    assert isinstance(schema_change_from_json(change), AddColumn | UndropColumn)


def test_the_move_of_another_column_is_rejected() -> None:
    move = {"fieldName": "other", "type": "FIRST"}
    change = {"type": "updateColumnPosition", "fieldNames": ["r", "q"], "move": move}
    with pytest.raises(InvalidChangeError, match=r"^\$\.move\.fieldName: is 'other', but .* 'q'"):
        schema_change_from_json(change)


def test_a_schema_says_where_it_cannot_be_read() -> None:
    obj = {"fields": [{"id": 0, "name": "a", "type": "INT"}, {"id": 1, "name": "b", "type": "LNG"}]}

    with pytest.raises(InvalidChangeError, match=r"\$\.fields\[1\]\.type: cannot read type 'LNG'"):
        schema_from_json(obj)
    with pytest.raises(InvalidChangeError, match=r"\$\.options\.k: is 1, not a text"):
        schema_from_json({"fields": [], "options": {"k": 1}})


def test_a_change_of_the_log_and_one_of_the_wire_are_the_same_value() -> None:
    wire = {"action": "addColumn", "fieldNames": ["a"], "dataType": "int", "comment": None}

    assert schema_change_from_json(wire) == AddColumn(("a",), "INT")


_KINDS = [*get_args(SchemaChange), UpdatePartitionSpec, ReplaceSortOrder]


class _Loud(str):
    """A text of a class of its own, which JSON knows nothing of."""

    __slots__ = ()


@pytest.mark.parametrize("given_", [int, None, 7, b"INT", ["INT"], pa.int64(), object])
@pytest.mark.parametrize("kind", [AddColumn, UpdateColumnType])
@pytest.mark.parametrize("path", ["a.q", ["a", "q"], ("a", "q")])
def test_what_is_no_type_is_rejected_by_the_columns_name(given_: Any, kind: Any, path: Any) -> None:
    wanted = rf"^{kind.__name__} a\.q: .* is not a type, or its text"
    with pytest.raises(InvalidTypeError, match=wanted):
        evolve(Schema.of({"a": "ROW<b INT>"}), [kind(path, given_)])


_odd = st.one_of(
    st.sampled_from([None, True, False, 0, 1, 2.5, b"a", "", "a", "a.b", _Loud("a"), "INT"]),
    st.sampled_from([(), ("a",), ("a", "b"), ["a"], ("a", 1), ("a", None), (("a",),), [["a"]]]),
    st.sampled_from([(_Loud("a"),), parse_type("INT NOT NULL"), {"a": 1}]),
    st.sampled_from([Move("a", "FIRST"), Move("a", "AFTER", "b"), Move("a", "SIDEWAYS")]),  # type: ignore[arg-type]
    st.sampled_from([Move(1, "LAST"), Move("a", "LAST", ("b",)), Move("a", None)]),  # type: ignore[arg-type]
)


@given(kind=st.sampled_from(_KINDS), data=st.data())
def test_a_change_is_taken_as_its_json_would_be_read(kind: Any, data: st.DataObject) -> None:
    """Or rejected: what is taken without being written and read back is the same either way."""
    given_ = kind(**{each: data.draw(_odd, label=each) for each in kind.__struct_fields__})
    try:
        taken = normalize_change(given_)
    except (InvalidChangeError, InvalidTypeError):
        return
    read = msgspec.json.decode(msgspec.json.encode(taken), type=kind)
    assert taken == read
    assert [type(getattr(taken, each)) for each in kind.__struct_fields__] == [
        type(getattr(read, each)) for each in kind.__struct_fields__
    ]


@pytest.mark.parametrize(
    "change",
    [
        SetOption("k", None),  # type: ignore[arg-type]
        RenameColumn(("a",), new_name=True),  # type: ignore[arg-type]
        RenameColumn(("a", 1), "b"),  # type: ignore[arg-type]
        UpdateColumnNullability(("a",), None),  # type: ignore[arg-type]
        UpdateComment(("a",)),  # type: ignore[arg-type]
        UpdateColumnPosition(Move("a", "SIDEWAYS")),  # type: ignore[arg-type]
        UpdateColumnPosition(Move("a", "BEFORE", 1)),  # type: ignore[arg-type]
    ],
)
def test_what_a_field_cannot_be_is_refused_by_name(change: Any) -> None:
    with pytest.raises(InvalidChangeError, match=type(change).__name__):
        normalize_change(change)
