"""Paimon's predicates leave out the partitions that they certainly reject, and no others."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import Schema
from projections.rest.paimon.partition_filter import partition_test
from projections.rest.requests import RequestError

Json = dict[str, Any]
NULL = "__DEFAULT_PARTITION__"
COLUMNS = {"id": "BIGINT", "dt": "STRING", "day": "DATE", "n": "INT", "price": "DECIMAL(9, 2)"}
SCHEMA = Schema.of(COLUMNS, partition_keys=["dt", "day", "n", "price"])


def leaf(function: str, *literals: Any, name: str = "dt") -> Json:
    field = {"index": 0, "name": name, "type": "STRING"}
    return {
        "kind": "LEAF",
        "transform": {"name": "FIELD_REF", "fieldRef": field},
        "function": function,
        "literals": literals,
    }


def both(function: str, *children: Json) -> Json:
    return {"kind": "COMPOUND", "function": function, "children": children}


def passed(predicate: Any, name: str, values: list[str]) -> list[str]:
    spec = {"dt": "a", "day": "19723", "n": "1", "price": "1.00"}
    test = partition_test(json.dumps(predicate), SCHEMA)
    return [each for each in values if test({**spec, name: each})]


@pytest.mark.parametrize(
    ("predicate", "selected"),
    [
        (leaf("EQUAL", "b"), "b"),
        (leaf("NOT_EQUAL", "b"), "ac"),
        (leaf("IN", "a", None, "c"), "ac"),
        (leaf("NOT_IN", "a", None), ""),
        (leaf("BETWEEN", "a", "b"), "ab"),
        (leaf("NOT_BETWEEN", "a", "b"), "c"),
        (leaf("GREATER_OR_EQUAL", "b"), "bc"),
        (leaf("IS_NULL"), "_"),
        (leaf("IS_NOT_NULL"), "abc"),
        (leaf("STARTS_WITH", "a"), "a"),
        (both("OR", leaf("EQUAL", "a"), leaf("IS_NULL")), "a_"),
        (both("AND", leaf("LESS_THAN", "c"), leaf("GREATER_THAN", "a")), "b"),
        (leaf("FALSE"), ""),
        # What a newer client may send passes, as the client tests it again.
        (leaf("SOUNDS_LIKE", "b"), "abc_"),
        (both("AND", leaf("EQUAL", "b"), leaf("SOUNDS_LIKE", "x")), "b"),
        (leaf("EQUAL", 1), "abc_"),
        (leaf("EQUAL", "x", name="id"), "abc_"),
        ({"kind": "OTHER"}, "abc_"),
        ([], "abc_"),
    ],
)
def test_a_text_is_compared(predicate: Any, selected: str) -> None:
    found = passed(predicate, "dt", ["a", "b", "c", NULL])
    assert "".join(each[0] for each in found) == selected


@pytest.mark.parametrize(
    "predicate",
    [
        both("OR", *[leaf("EQUAL", "a")] * 1_000),
        both("AND", leaf("IN", *["a"] * 5_000), leaf("IN", *["b"] * 5_001)),
    ],
)
def test_a_predicate_has_a_bounded_size(predicate: Json) -> None:
    with pytest.raises(RequestError, match="the filter has more than 1000 parts or 10000"):
        passed(predicate, "dt", ["a"])


def test_the_time_of_a_list_does_not_depend_on_its_length() -> None:
    predicate = leaf("IN", *map(str, range(10_000)))
    values = [f"x{each}" for each in range(10_000)]
    begun_s = time.process_time()

    assert passed(predicate, "dt", values) == []
    assert passed({**predicate, "function": "NOT_IN"}, "dt", values) == values
    # Comparisons with each literal take more than ten times as long.
    assert time.process_time() - begun_s < 1


@pytest.mark.parametrize(
    ("literal", "expected"),
    [
        ("2024-01-02", ["19723", NULL]),
        ([2024, 1, 2], ["19723", NULL]),
        (19724, ["19723", "19724", "2024-01-03", NULL]),
        ("yesterday", ["19723", "19724", "2024-01-03", NULL]),
        ([2024], ["19723", "19724", "2024-01-03", NULL]),
    ],
)
def test_a_day_is_compared_in_any_spelling(literal: Any, expected: list[str]) -> None:
    predicate = both("OR", leaf("LESS_THAN", literal, name="day"), leaf("IS_NULL", name="day"))
    assert passed(predicate, "day", ["19723", "19724", "2024-01-03", NULL]) == expected


def test_numbers_are_compared_as_numbers_and_other_types_not_at_all() -> None:
    assert passed(leaf("LESS_THAN", 10, name="n"), "n", ["9", "10", "-5", "x"]) == [
        *("9", "-5"),
        # No value of the type: the client tests it.
        "x",
    ]
    wrong = {**leaf("EQUAL", name="n"), "literals": [True]}
    assert passed(wrong, "n", ["1", "2"]) == ["1", "2"]
    assert passed(leaf("EQUAL", 1, name="price"), "price", ["1.00", "2.00"]) == ["1.00", "2.00"]


_values = st.one_of(st.none(), st.sampled_from(["a", "b", "c"]))
_trees = st.recursive(
    st.builds(
        leaf,
        st.sampled_from(["EQUAL", "NOT_EQUAL", "LESS_THAN", "GREATER_OR_EQUAL", "IN", "NOT_IN"]),
        _values,
    ),
    lambda inner: st.builds(
        lambda function, children: both(function, *children),
        st.sampled_from(["AND", "OR"]),
        st.lists(inner, max_size=3),
    ),
    max_leaves=8,
)


def naive(predicate: Json, value: str | None) -> bool:
    if predicate["kind"] == "COMPOUND":
        found = [naive(each, value) for each in predicate["children"]]
        return all(found) if predicate["function"] == "AND" else any(found)
    (literal,) = predicate["literals"]
    if value is None or literal is None:
        return False
    answers: dict[str, bool] = {
        "EQUAL": value == literal,
        "NOT_EQUAL": value != literal,
        "LESS_THAN": value < literal,
        "GREATER_OR_EQUAL": value >= literal,
        "IN": value == literal,
        "NOT_IN": value != literal,
    }
    return answers[predicate["function"]]


@given(predicate=_trees, value=_values)
def test_what_is_known_is_decided(predicate: Json, value: str | None) -> None:
    text = NULL if value is None else value
    assert bool(passed(predicate, "dt", [text])) == naive(predicate, value)


_junk = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(), st.just("LEAF")),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["kind", "transform", "function", "literals", "children", "fieldRef"]),
            inner,
        ),
    ),
)


@given(_junk)
def test_no_json_fails(predicate: Any) -> None:
    assert isinstance(passed(predicate, "dt", ["a"]), list)


@pytest.mark.parametrize("text", ["{", "", "nul", "[" * 300 + "]" * 300])
def test_what_is_no_json_is_rejected(text: str) -> None:
    with pytest.raises(RequestError):
        partition_test(text, SCHEMA)
