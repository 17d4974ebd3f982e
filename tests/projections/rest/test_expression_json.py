"""Filters of the Iceberg REST protocol are read by the columns' types, within limits."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter
from pyiceberg.expressions import AlwaysTrue, BooleanExpression

from ledger import InvalidInputError, Schema
from ledger.model import types as t
from ledger.planning.expression import (
    FALSE,
    TRUE,
    UNARY,
    And,
    Expression,
    Not,
    Op,
    Or,
    Predicate,
    text_of,
    without_not,
)
from ledger.planning.filter import column_named
from projections.rest.iceberg.expression_json import (
    MAX_DEPTH,
    MAX_TERMS,
    RequestColumns,
    SchemaNames,
    expression_json,
    read_expression,
)

SCHEMA = Schema.of(
    {
        "flag": "BOOLEAN",
        "id": "INT",
        "big": "BIGINT",
        "real": "FLOAT",
        "rate": "DOUBLE",
        "price": "DECIMAL(9, 2)",
        "name": "STRING",
        "key": "UUID",
        "day": "DATE",
        "at": "TIME(6)",
        "ts": "TIMESTAMP(6)",
        "tz": "TIMESTAMP_LTZ(6)",
        "nanos": "TIMESTAMP(9)",
        "code": "BINARY(2)",
        "body": "BYTES",
        "info": t.RowType([t.DataField(100, "zip", t.IntType())]),
        "tags": t.ArrayType(t.IntType()),
        "Name": "STRING",
    }
)
IDS = {each.name: each.id for each in SCHEMA.fields} | {"info.zip": 100, "tags.element": 101}


def columns(*, is_case_sensitive: bool = True) -> RequestColumns:
    return RequestColumns((SchemaNames(SCHEMA, IDS),), is_case_sensitive)


def read(json: Any) -> str:
    return text_of(without_not(read_expression(json, columns(), "$.filter")))


def compare(term: Any, value: Any, kind: str = "eq") -> dict[str, Any]:
    return {"type": kind, "term": term, "value": value}


def bucket(term: str) -> dict[str, str]:
    return {"type": "transform", "transform": "bucket[4]", "term": term}


@pytest.mark.parametrize(
    ("column", "value", "text"),
    [
        ("flag", True, "True"),
        ("id", -7, "-7"),
        ("big", 2**63 - 1, str(2**63 - 1)),
        ("real", 1.5, "1.5"),
        ("rate", 2, "2.0"),
        ("rate", "Infinity", "Infinity"),
        ("price", "14.20", "14.20"),
        ("price", 14.2, "14.20"),
        ("price", "14.2", "14.20"),
        ("name", "a", '"a"'),
        ("key", "eb26bdb1-a1d8-4aa6-990e-da940875492c", "eb26bdb1-a1d8-4aa6-990e-da940875492c"),
        ("day", "2017-12-01", "2017-12-01"),
        ("day", 17501, "2017-12-01"),
        ("at", "22:31:08.123456", "22:31:08.123456"),
        ("at", 1, "00:00:00.000001"),
        ("ts", "2017-11-16T22:31:08.123456", "2017-11-16T22:31:08.123456"),
        ("ts", 1_000_000, "1970-01-01T00:00:01"),
        ("tz", "2017-11-16T22:31:08.000000+00:00", "2017-11-16T22:31:08"),
        ("tz", "2017-11-16T22:31:08+01:00", "2017-11-16T21:31:08"),
        ("nanos", "2017-11-16T22:31:08.123456789", "2017-11-16T22:31:08.123456789"),
        ("nanos", 1, "1970-01-01T00:00:00.000001"),
        ("code", "78AB", '"78ab"'),
        ("body", "", '""'),
        ("info.zip", 3, "3"),
    ],
)
def test_a_literal_is_read_by_the_type_of_its_column(column: str, value: Any, text: str) -> None:
    assert read(compare(column, value)) == f"{column} == {text}"
    assert read({"type": "not-in", "term": column, "values": [value]}) == f"{column} != {text}"


@pytest.mark.parametrize(
    ("json", "text"),
    [
        (True, "true"),
        (False, "false"),
        ({"type": "true"}, "true"),
        ({"type": "false"}, "false"),
        ({"type": "literal", "value": False}, "false"),
        ({"type": "in", "term": "id", "values": []}, "false"),
        ({"type": "not-in", "term": "id", "values": []}, "true"),
        ({"type": "in", "term": "id", "values": [2, 1]}, "id in (1, 2)"),
        ({"type": "is-null", "term": "info"}, "is_null(info)"),
        ({"type": "not-null", "term": "tags"}, "not_null(tags)"),
        ({"type": "is-nan", "term": "rate"}, "is_nan(rate)"),
        ({"type": "not-nan", "term": "real"}, "not_nan(real)"),
        (compare("name", "a", "starts-with"), 'name startsWith "a"'),
        (compare("name", "a", "not-starts-with"), 'name notStartsWith "a"'),
        ({"type": "not", "child": compare("id", 5, "lt")}, "id >= 5"),
        (
            {
                "type": "and",
                "left": {"type": "or", "left": compare("id", 1), "right": compare("id", 2)},
                "right": {"type": "not-null", "term": "name"},
            },
            "(id == 1 or id == 2) and not_null(name)",
        ),
        (compare(bucket("id"), 3), "id == 3"),
        (
            compare({"type": "transform", "transform": "day", "term": "ts"}, "2017-12-01"),
            "ts == 2017-12-01",
        ),
    ],
)
def test_every_kind_of_expression_is_read(json: Any, text: str) -> None:
    assert read(json) == text


@pytest.mark.parametrize("column", ["id", "big", "price"])
def test_numbers_outside_of_a_type_compare_as_such(column: str) -> None:
    above, below = (10**30, -(10**30)) if column != "price" else ("1e9", "-10000000.00")
    for kind in ("lt", "lt-eq"):
        assert read(compare(column, above, kind)) == f"not_null({column})"
        assert read(compare(column, below, kind)) == "false"
    for kind in ("gt", "gt-eq"):
        assert read(compare(column, above, kind)) == "false"
        assert read(compare(column, below, kind)) == f"not_null({column})"
    assert read(compare(column, above)) == "false"
    assert read(compare(column, above, "not-eq")) == "true"
    assert read({"type": "in", "term": column, "values": [above, 1]}).startswith(f"{column} == 1")


@pytest.mark.parametrize(
    ("json", "message"),
    [
        (None, r"\$\.filter: None is no JSON object"),
        ("id = 1", r"\$\.filter: 'id = 1' is no JSON object"),
        ([], r"\$\.filter: \[\] is no JSON object"),
        ({}, r"\$\.filter: type is missing"),
        ({"type": 1}, r"\$\.filter\.type: 1 has another type"),
        ({"type": "like"}, r"\$\.filter\.type: 'like' is no type of expression; there are true"),
        ({"type": "literal", "value": "x"}, r"\$\.filter\.value"),
        ({"type": "and", "left": True}, r"\$\.filter: right is missing"),
        ({"type": "not"}, r"\$\.filter: child is missing"),
        ({"type": "not", "child": {"type": "or", "left": 1, "right": True}}, r"child\.left: 1 is"),
        ({"type": "eq", "value": 1}, r"\$\.filter: term is missing"),
        ({"type": "eq", "term": "id"}, r"\$\.filter: value is missing"),
        ({"type": "in", "term": "id"}, r"\$\.filter: values is missing"),
        ({"type": "in", "term": "id", "values": 1}, r"\$\.filter\.values: 1 has another type"),
        (
            {"type": "in", "term": "id", "values": [1, "x"]},
            r"\$\.filter\.values\[1\]: column id is INT",
        ),
        ({"type": "is-nan", "term": "id"}, r"\$\.filter: column id is neither FLOAT nor DOUBLE"),
        ({"type": "is-null", "term": "nope"}, r"\$\.filter\.term: column nope does not exist"),
        ({"type": "is-null", "term": "NAME"}, r"\$\.filter\.term: column NAME does not exist"),
        ({"type": "is-null", "term": "tags.element"}, r"\$\.filter\.term: .*inside an ARRAY"),
        ({"type": "is-null", "term": 1}, r"\$\.filter\.term: 1 is no JSON object"),
        ({"type": "is-null", "term": {"type": "reference"}}, r"a column name or a transform"),
        (compare({"type": "transform", "transform": "bucket[4]"}, 1), r"term: term is missing"),
        (
            compare({"type": "transform", "transform": "zorder", "term": "id"}, 1),
            r"\$\.filter\.term\.transform: column id INT has no transform 'zorder'",
        ),
        (
            compare({"type": "transform", "transform": "day", "term": "id"}, 1),
            r"column id INT has no transform 'day'",
        ),
        (
            compare({"type": "transform", "transform": "bucket[0]", "term": "id"}, 1),
            r"\$\.filter\.term\.transform: transform bucket\[0\] is out of range",
        ),
        (compare("id", "x"), r"\$\.filter\.value: column id is INT and cannot be compared"),
        (compare("id", value=True), r"column id is INT"),
        (compare("id", 1.5), r"column id is INT"),
        (compare("id", None), r"\$\.filter\.value: column id is compared with NULL"),
        (compare("flag", 1), r"column flag is BOOLEAN"),
        (compare("rate", "x"), r"column rate is DOUBLE"),
        (compare("rate", "NaN"), r"ask for 'is nan'"),
        (compare("price", "1.234"), r"column price is DECIMAL"),
        (compare("price", "x"), r"column price is DECIMAL"),
        (compare("name", 1), r"column name is STRING"),
        (compare("name", 1, "starts-with"), r"column name is STRING"),
        (compare("id", "1", "starts-with"), r"column id is no text"),
        (compare("key", "x"), r"column key is UUID"),
        (compare("day", "2017-13-01"), r"column day is DATE"),
        (compare("day", 2**40), r"column day is DATE"),
        (compare("ts", "2017-11-16T22:31:08+00:00"), r"column ts is TIMESTAMP"),
        (compare("code", "xy"), r"hexadecimal"),
        (compare("body", 1), r"column body is BYTES"),
        (compare("info", {}), r"only 'is null'"),
        (compare("tags", [1]), r"only 'is null'"),
        (compare("id", {"a": 1}), r"column id is INT"),
    ],
)
def test_an_invalid_filter_is_rejected_with_its_place(json: Any, message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        read_expression(json, columns(), "$.filter")


def test_case_matters_unless_the_request_says_otherwise() -> None:
    folded = columns(is_case_sensitive=False)
    found = read_expression(compare("BIG", 1), folded, "$.filter")
    assert text_of(found) == "big == 1"
    with pytest.raises(InvalidInputError, match="name, Name, which differ in case only"):
        read_expression(compare("NAME", "a"), folded, "$.filter")


def nested(depth: int) -> Any:
    json: Any = {"type": "is-null", "term": "id"}
    for each in range(depth):
        kind = ("and", "or")[each % 2]
        json = {"type": kind, "left": json, "right": {"type": "not-null", "term": "name"}}
    return json


def test_a_filter_nests_up_to_a_limit() -> None:
    read(nested(MAX_DEPTH))
    for depth in (MAX_DEPTH + 1, 400):
        with pytest.raises(InvalidInputError, match=f"nest deeper than {MAX_DEPTH}"):
            read(nested(depth))


def test_a_long_chain_of_one_operator_does_not_count_as_nesting() -> None:
    json: Any = compare("id", 0)
    for each in range(1, 900):
        json = {"type": "or", "left": json, "right": compare("id", each)}
    found = read_expression(json, columns(), "$.filter")
    assert isinstance(found, Or)
    assert len(found.parts) == 900
    # A balanced tree, so that clients can read it.
    written = msgspec.json.encode(expression_json(found, "id"))
    assert read_expression(msgspec.json.decode(written), columns(), "$") == found


def test_a_filter_has_terms_up_to_a_limit() -> None:
    few = list(range(MAX_TERMS - 1))
    read({"type": "in", "term": "id", "values": few})
    with pytest.raises(InvalidInputError, match=f"more than {MAX_TERMS} predicates and values"):
        read({"type": "in", "term": "id", "values": [*few, 0]})


LITERALS: dict[str, st.SearchStrategy[Any]] = {
    "flag": st.booleans(),
    "id": st.integers(-(2**31), 2**31 - 1),
    "big": st.integers(-(2**63), 2**63 - 1),
    "real": st.floats(width=32, allow_nan=False),
    "rate": st.floats(allow_nan=False),
    "price": st.integers(-(10**9) + 1, 10**9 - 1),
    "name": st.text(max_size=5),
    "key": st.binary(min_size=16, max_size=16),
    "day": st.integers(-(10**6), 10**7),
    "at": st.integers(0, 86_400 * 10**6 - 1),
    "ts": st.integers(-(10**17), 10**18),
    "tz": st.integers(-(10**17), 10**18),
    "nanos": st.integers(-(2**63), 2**63 - 1),
    "code": st.binary(min_size=2, max_size=2),
    "body": st.binary(max_size=5),
}


@st.composite
def predicates(draw: st.DrawFn) -> Predicate:
    name = draw(st.sampled_from(sorted(LITERALS)))
    column = column_named(SCHEMA, name)
    op = draw(st.sampled_from(sorted(Op, key=str)))
    if op in UNARY:
        is_nan = op in (Op.IS_NAN, Op.NOT_NAN)
        return Predicate(op, column_named(SCHEMA, "rate") if is_nan else column)
    if op in (Op.STARTS_WITH, Op.NOT_STARTS_WITH):
        return Predicate(op, column_named(SCHEMA, "name"), (draw(LITERALS["name"]),))
    is_set = op in (Op.IN, Op.NOT_IN)
    several = st.lists(LITERALS[name], min_size=2, max_size=4, unique_by=lambda each: each)
    values = sorted(draw(several)) if is_set and name != "flag" else [draw(LITERALS[name])]
    if is_set and len(values) == 1:
        op = {Op.IN: Op.EQUAL, Op.NOT_IN: Op.NOT_EQUAL}[op]
    return Predicate(op, column, tuple(values))


EXPRESSIONS = st.recursive(
    predicates(),
    lambda inner: (
        st.lists(inner, min_size=2, max_size=4).map(lambda each: And(tuple(each)))
        | st.lists(inner, min_size=2, max_size=4).map(lambda each: Or(tuple(each)))
        | inner.map(Not)
    ),
    max_leaves=12,
)


@given(EXPRESSIONS)
def test_an_expression_is_read_as_it_was_written(given_one: Expression) -> None:
    expression = without_not(given_one)
    body = msgspec.json.encode(expression_json(expression, "id"))
    found = without_not(read_expression(msgspec.json.decode(body), columns(), "$"))
    assert text_of(found) == text_of(without_not(expression))


def test_what_is_always_true_is_written_as_clients_read_it() -> None:
    json = expression_json(TRUE, "id")
    assert json == {"type": "not-in", "term": "id", "values": []}
    body = msgspec.json.encode(json)
    assert TypeAdapter(BooleanExpression).validate_json(body) == AlwaysTrue()
    assert read_expression(expression_json(FALSE, "id"), columns(), "$") == FALSE
