from __future__ import annotations

import json
import pickle
import string
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import InvalidTypeError
from ledger.model import (
    FieldObject,
    TypeObject,
    field_from_json,
    field_from_wire,
    field_to_json,
    field_to_wire,
    format_type,
    parse_type,
    type_from_json,
    type_from_wire,
    type_to_json,
    type_to_wire,
)
from ledger.model import types as t
from ledger.model.types import assign_field_ids, walk_fields

CASES = json.loads(
    (Path(__file__).parent.parent / "data" / "paimon" / "types.json").read_text("utf-8")
)

lengths = st.integers(1, t.MAX_LENGTH)
precisions = st.integers(0, 9)
references = st.text(string.printable, min_size=1).filter(str.strip)
atomic_types = st.one_of(
    st.builds(t.CharType, lengths, nullable=st.booleans()),
    st.builds(t.VarCharType, lengths | st.just(t.MAX_LENGTH), nullable=st.booleans()),
    st.builds(t.BinaryType, lengths, nullable=st.booleans()),
    st.builds(t.VarBinaryType, lengths | st.just(t.MAX_LENGTH), nullable=st.booleans()),
    st.integers(1, 38).flatmap(lambda p: st.builds(t.DecimalType, st.just(p), st.integers(0, p))),
    st.builds(t.TimeType, precisions, nullable=st.booleans()),
    st.builds(t.TimestampType, precisions, nullable=st.booleans()),
    st.builds(t.LocalZonedTimestampType, precisions, nullable=st.booleans()),
    st.builds(t.GeometryType, references, nullable=st.booleans()),
    st.builds(t.GeographyType, references, st.sampled_from(t.GEOGRAPHY_ALGORITHMS)),
    *(
        st.builds(plain, nullable=st.booleans())
        for plain in (
            *(t.BooleanType, t.TinyIntType, t.SmallIntType, t.IntType, t.BigIntType),
            *(t.FloatType, t.DoubleType, t.DateType, t.VariantType, t.BlobType, t.UuidType),
        )
    ),
    st.just(t.UnknownType()),
)
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5).filter(str.strip)
texts = st.none() | st.text(st.characters(codec="utf-8"), max_size=5)


def _constructed(inner: st.SearchStrategy[t.DataType]) -> st.SearchStrategy[t.DataType]:
    fields = st.builds(t.DataField, st.integers(0, 1000), names, inner, texts, texts)
    return st.one_of(
        st.builds(t.ArrayType, inner, nullable=st.booleans()),
        st.builds(t.MultisetType, inner, nullable=st.booleans()),
        st.builds(t.MapType, inner, inner, nullable=st.booleans()),
        st.builds(t.VectorType, st.builds(t.FloatType), lengths, nullable=st.booleans()),
        st.builds(
            t.RowType,
            st.lists(fields, max_size=4, unique_by=lambda each: each.name),
            nullable=st.booleans(),
        ),
    )


all_types = st.recursive(atomic_types, _constructed, max_leaves=8)


@pytest.mark.parametrize("case", CASES["parse"], ids=lambda case: json.dumps(case["input"])[:60])
def test_types_are_read_and_written_as_paimon_does(case: dict[str, Any]) -> None:
    if "error" in case["expect"]:
        with pytest.raises(InvalidTypeError):
            type_from_json(case["input"])
        return
    read = type_from_json(case["input"])
    assert type_to_json(read) == case["expect"]["json"]
    assert format_type(read) == case["expect"]["sql"]


@pytest.mark.parametrize("case", CASES["reassignFieldIds"])
def test_ids_are_given_anew_in_paimons_order(case: dict[str, Any]) -> None:
    numbered, highest = assign_field_ids(type_from_json(case["type"]), case["highestFieldIdBefore"])
    assert type_to_json(numbered) == case["expect"]["type"]
    assert highest == case["expect"]["highestFieldIdAfter"]


@given(atomic_types)
def test_an_atomic_types_text_reads_back_as_the_type(data_type: t.DataType) -> None:
    assert parse_type(format_type(data_type)) == data_type


@given(all_types)
def test_json_reads_back_as_the_type(data_type: t.DataType) -> None:
    assert type_from_json(json.loads(json.dumps(type_to_json(data_type)))) == data_type


@given(all_types, texts, texts)
def test_a_columns_wire_bytes_read_back_as_the_column(
    data_type: t.DataType, description: str | None, default: str | None
) -> None:
    column = t.DataField(3, "c", data_type, description, default)
    stored = msgspec.json.encode(field_to_wire(column))
    assert field_from_wire(msgspec.json.decode(stored, type=FieldObject)) == column
    assert field_from_json(json.loads(stored)) == column
    assert field_to_json(column) == json.loads(stored)
    assert type_from_wire(type_to_wire(data_type)) == data_type


@given(all_types, st.integers(-1, 100))
def test_new_ids_are_dense_and_change_nothing_else(data_type: t.DataType, highest: int) -> None:
    numbered, after = assign_field_ids(data_type, highest)
    given_out = [each.id for each in walk_fields([t.DataField(-1, "c", numbered)])][1:]
    assert sorted(given_out) == list(range(highest + 1, after + 1))
    assert assign_field_ids(numbered, highest) == (numbered, after)
    assert format_type(numbered) == format_type(data_type)


@given(all_types)
def test_a_type_survives_pickling(data_type: t.DataType) -> None:
    copy = pickle.loads(pickle.dumps(data_type))  # noqa: S301 - bytes made one call earlier
    assert copy == data_type
    assert hash(copy) == hash(data_type)
    assert copy.depth == data_type.depth


def test_constructors_default_to_what_the_bare_name_means() -> None:
    for name in ("CHAR", "VARCHAR", "BINARY", "VARBINARY", "DECIMAL", "TIME", "TIMESTAMP"):
        data_type = parse_type(name)
        assert data_type == type(data_type)()
    assert parse_type("timestamp_ltz") == t.LocalZonedTimestampType()


def test_nullability_is_the_only_thing_with_nullability_changes() -> None:
    assert t.DecimalType(5, 2).with_nullability(nullable=False) == t.DecimalType(
        5, 2, nullable=False
    )
    deep = t.ArrayType(t.ArrayType(t.IntType())).with_nullability(nullable=False)
    assert (deep.depth, deep.nullable) == (2, False)


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("bool", "BOOLEAN"),
        ("LONG", "BIGINT"),
        ("text", "STRING"),
        ("MAP<INT, INT>", "JSON object"),
        ("TIMESTAMP WITH TIME ZONE", "position 15: LOCAL"),
        ("INT INT", "position 4"),
        ("DECIMAL(9, 2, 1)", "')' is missing"),
        ("VARCHAR()", "a whole number is missing"),
        ("STRING(5)", "nothing may follow"),
        ("VARCHAR(" + "9" * 5000 + ")", "out of range"),
        ("GEOGRAPHY(OGC:CRS84, flat)", "spherical, vincenty"),
        ("UNKNOWN NOT NULL", "cannot be NOT NULL"),
        ("INT ARRAY ARRAY", "nothing may follow"),
        ("GEOMETRY(3857)", "a name is missing"),
        ("VECTOR<" * 5000, "cannot hold a VECTOR"),
        ("VECTOR<STRING, 3>", "cannot hold VARCHAR"),
    ],
)
def test_a_refused_text_says_what_to_write_instead(text: str, hint: str) -> None:
    with pytest.raises(InvalidTypeError) as refused:
        parse_type(text)
    assert hint in str(refused.value)
    assert text[:100] in str(refused.value)
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize(
    ("text", "data_type"),
    [
        ("INT NOT NULL MULTISET", t.MultisetType(t.IntType(nullable=False))),
        ("INT\u2003NOT NULL", t.IntType(nullable=False)),
        (" vector < double not null , 3 > ", t.VectorType(t.DoubleType(nullable=False), 3)),
        ("geometry('EPSG:3857')", t.GeometryType("EPSG:3857")),
        ("GEOGRAPHY(OGC:CRS84, KARNEY)", t.GeographyType(algorithm="karney")),
        ("uuid", t.UuidType()),
        ("numeric(5)", t.DecimalType(5, 0)),
    ],
)
def test_other_spellings_mean_the_same_type(text: str, data_type: t.DataType) -> None:
    assert parse_type(text) == data_type


def _row(*fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "ROW", "fields": list(fields)}


@pytest.mark.parametrize(
    ("obj", "place"),
    [
        (_row({"id": 0, "name": "a", "type": "LONG"}), "$.fields[0].type: "),
        (_row({"id": 0, "type": "INT"}), "$.fields[0].name: is missing"),
        (_row({"id": True, "name": "a", "type": "INT"}), "$.fields[0].id: True"),
        (_row({"id": -1, "name": "a", "type": "INT"}), "$.fields[0].id: -1"),
        ({"type": "ARRAY"}, "$.element: is missing"),
        ({"type": "MAP", "key": "INT", "value": {"type": "ARRAY"}}, "$.value.element"),
        ({"type": "VECTOR", "element": "INT", "length": "3"}, "$.length: '3'"),
        ({"type": "array", "element": "INT"}, "$.type: 'array'"),
        ({"type": "INT"}, "write an atomic type as plain text"),
        ({"element": "INT"}, "found none"),
        ({"primitiveType": "INT", "rowType": _row()}, "primitiveType and rowType"),
        ({"arrayType": {"type": "ARRAY", "element": {"primitiveType": "INTT"}}}, "$.element: "),
        (None, "$: None"),
    ],
)
def test_a_refused_object_names_the_place(obj: object, place: str) -> None:
    with pytest.raises(InvalidTypeError) as refused:
        type_from_json(obj)
    assert place in str(refused.value)


def test_a_refused_wire_object_names_the_place() -> None:
    wire = TypeObject("MAP", key="INT", value=TypeObject("ARRAY"))
    with pytest.raises(InvalidTypeError, match=r"^\$\.value\.element: is missing"):
        type_from_wire(wire)


def test_dlf_wrappers_mean_what_they_wrap() -> None:
    members = [{"id": 7, "name": "x", "type": {"primitiveType": "INT NOT NULL"}}]
    wrapped = {
        "primitiveType": None,
        "mapType": {
            "type": "MAP NOT NULL",
            "key": {"primitiveType": "STRING"},
            "value": {"rowType": {"type": "ROW", "fields": members}},
        },
    }
    row = t.RowType((t.DataField(7, "x", t.IntType(nullable=False)),))
    assert type_from_json(wrapped) == t.MapType(t.STRING, row, nullable=False)


def test_rows_without_ids_are_numbered_in_reading_order() -> None:
    inner = _row({"name": "x", "type": "INT"}, {"name": "y", "type": "INT"})
    read = type_from_json(_row({"name": "a", "type": inner}, {"name": "b", "type": "INT"}))
    assert isinstance(read, t.RowType)
    assert {each.name: each.id for each in walk_fields(read.fields)} == {
        "a": 0,
        "x": 1,
        "y": 2,
        "b": 3,
    }


def test_ids_are_given_for_all_fields_or_for_none() -> None:
    with_id, without = {"id": 1, "name": "a", "type": "INT"}, {"name": "b", "type": "INT"}
    for fields in ((with_id, without), (without, with_id)):
        with pytest.raises(InvalidTypeError, match="partial ids"):
            type_from_json(_row(*fields))
    with pytest.raises(InvalidTypeError, match=r"^\$\.fields\[2\]\.id: is missing"):
        field_from_json(without, path="$.fields[2]")


def test_unknown_keys_and_nulls_read_as_absent() -> None:
    obj = {"id": 1, "name": "a", "type": "INT", "description": None, "nullable": True}
    assert field_from_json(obj) == t.DataField(1, "a", t.IntType())


def test_pythons_paimon_client_writes_the_element_into_the_name_too() -> None:
    assert type_from_json({"type": "ARRAY<INT>", "element": "INT"}) == t.ArrayType(t.IntType())


def test_nesting_has_a_limit_instead_of_a_crash() -> None:
    obj: object = "INT"
    wire: str | TypeObject = "INT"
    for _ in range(5000):
        obj, wire = {"type": "ARRAY", "element": obj}, TypeObject("ARRAY", element=wire)
    with pytest.raises(InvalidTypeError, match="deeper than 100"):
        type_from_json(obj)
    with pytest.raises(InvalidTypeError, match="deeper than 100"):
        type_from_wire(wire)
    with pytest.raises(InvalidTypeError, match="at most 100"):
        type_from_json(_arrays("INT ARRAY"))


def _arrays(innermost: object) -> object:
    obj = innermost
    for _ in range(t.MAX_DEPTH):
        obj = {"type": "ARRAY", "element": obj}
    return obj


def test_a_reference_system_is_quoted_where_it_is_no_plain_word() -> None:
    texts = ["GEOMETRY('EPSG 4326')", "GEOMETRY('1.2')", "GEOGRAPHY(EPSG:4326, spherical)"]
    assert [format_type(parse_type(each)) for each in texts] == texts


def test_a_hundred_levels_are_read() -> None:
    obj = _arrays("INT")
    deepest = type_from_json(obj)
    assert deepest.depth == t.MAX_DEPTH
    assert type_to_json(deepest) == obj
