"""Every JSON document gives a schema or an error of the ledger's own."""

from __future__ import annotations

import contextlib
import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import ledger
from ledger.decide import create_schema
from projections.paimon import schema_from_json, schema_to_json

Json = Any
TABLE: Json = {
    "version": 3,
    "id": 1,
    "fields": [
        {"id": 0, "name": "k", "type": "INT NOT NULL", "description": "c", "defaultValue": "1"},
        {
            "id": 1,
            "name": "v",
            "type": {
                "type": "MAP",
                "key": "STRING NOT NULL",
                "value": {"type": "ROW", "fields": [{"id": 2, "name": "x", "type": "INT"}]},
            },
        },
        {"id": 3, "name": "e", "type": {"type": "VECTOR", "element": "FLOAT", "length": 3}},
    ],
    "highestFieldId": 3,
    "partitionKeys": [],
    "primaryKeys": ["k"],
    "options": {"bucket": "2", "fields.v.ignore-retract": "true"},
    "comment": "c",
    "timeMillis": 5,
}
CHANGES: list[Json] = [
    {
        "action": "addColumn",
        "fieldNames": ["v", "value", "y"],
        "dataType": {"type": "ARRAY", "element": "INT"},
        "comment": "c",
        "move": {"fieldName": "y", "referenceFieldName": "x", "type": "AFTER"},
    },
    {"action": "renameColumn", "fieldNames": ["v"], "newName": "w"},
    {"action": "dropColumn", "fieldNames": ["v", "value", "x"]},
    {
        "action": "updateColumnType",
        "fieldNames": ["v", "value", "x"],
        "newDataType": "BIGINT",
        "keepNullability": True,
    },
    {"action": "updateColumnNullability", "fieldNames": ["v", "value"], "newNullability": False},
    {"action": "updateColumnComment", "fieldNames": ["v"], "newComment": "__BLOB_FIELD"},
    {"action": "updateColumnDefaultValue", "fieldNames": ["k"], "newDefaultValue": "7"},
    {"action": "updateColumnPosition", "move": {"fieldName": "k", "type": "LAST"}},
    {"action": "setOption", "key": "bucket", "value": "4"},
    {"action": "removeOption", "key": "bucket"},
    {"action": "updateComment", "comment": None},
    {"action": "dropPrimaryKey"},
]


def nested(depth: int, wrap: Callable[[Json], Json], innermost: Json) -> Json:
    value = innermost
    for _ in range(depth):
        value = wrap(value)
    return value


def recursive() -> Json:
    circle: dict[str, Json] = {"type": "ARRAY"}
    circle["element"] = circle
    circle["fields"] = [circle]
    return circle


ODD: list[Json] = [
    *(None, True, False, 0, -1, 2**31, 2**63, 10**400, 0.5, float("nan"), float("inf")),
    *("", " ", "x", "INT", "ROW", "\ud800", "a\x00b", "k", "element", "9" * 5000, "__VECTOR_FIELD"),
    *([], {}, [None], [[]], [""], ["k"], ["\ud800"], {"": None}, {"\ud800": 1}, {1: 2}),
    {"type": "ARRAY"},
    nested(5000, lambda inner: {"type": "ARRAY", "element": inner}, "INT"),
    nested(5000, lambda inner: [inner], 1),
    recursive(),
]
plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
odd = st.integers(0, len(ODD) - 1).map(lambda place: ODD[place]) | plain


def places(value: Json, path: tuple[Json, ...] = ()) -> list[tuple[Json, ...]]:
    members: list[tuple[Json, Json]] = []
    if isinstance(value, dict):
        members = list(value.items())
    elif isinstance(value, list):
        members = list(enumerate(value))
    return [path, *(each for key, inner in members for each in places(inner, (*path, key)))]


def replaced(value: Json, path: tuple[Json, ...], new: Json) -> Json:
    if not path:
        return new
    renewed = copy.copy(value)
    renewed[path[0]] = replaced(value[path[0]], path[1:], new)
    return renewed


def without(value: Json, path: tuple[Json, ...]) -> Json:
    renewed = copy.deepcopy(value)
    inner = renewed
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return renewed


def is_answered(act: Callable[[], object]) -> None:
    """Run `act`; any error but the ledger's own fails the test."""
    with contextlib.suppress(ledger.LedgerError):
        act()


def read_file(obj: Json) -> None:
    schema_to_json(schema_from_json(obj))


def create(obj: Json) -> None:
    create_schema(ledger.schema_from_json(obj))


def evolve(obj: Json) -> None:
    change = ledger.schema_change_from_json(obj)
    ledger.evolve(schema_from_json(TABLE), [change], has_snapshots=False)
    ledger.evolve(schema_from_json(TABLE), [change], has_snapshots=True)


DOCUMENTS = [(read_file, TABLE), (create, TABLE), *((evolve, each) for each in CHANGES)]


@pytest.mark.parametrize(("act", "document"), DOCUMENTS)
def test_any_odd_value_at_any_place_is_answered(
    act: Callable[[Json], None], document: Json
) -> None:
    for path in places(document):
        for value in ODD:
            is_answered(lambda p=path, v=value: act(replaced(document, p, v)))  # type: ignore[misc] # bound now
        if path:
            is_answered(lambda p=path: act(without(document, p)))  # type: ignore[misc] # bound now


@given(st.data())
def test_odd_values_at_several_places_are_answered(data: st.DataObject) -> None:
    act, document = data.draw(st.sampled_from(DOCUMENTS))
    value = document
    for _ in range(data.draw(st.integers(1, 4))):
        path = data.draw(st.sampled_from(places(document)))
        # An earlier value may have taken the place away.
        with contextlib.suppress(KeyError, IndexError, TypeError):
            value = replaced(value, path, data.draw(odd))
    is_answered(lambda: act(value))


@given(odd)
def test_any_table_is_evolved_or_refused(value: Json) -> None:
    for path in places(TABLE):
        try:
            given_schema = schema_from_json(replaced(TABLE, path, value))
        except ledger.LedgerError:
            continue
        for change in CHANGES:
            wanted = ledger.schema_change_from_json(change)
            is_answered(lambda s=given_schema, w=wanted: ledger.evolve(s, [w]))  # type: ignore[misc] # bound now


@given(st.binary(max_size=60) | st.text(max_size=60))
def test_any_bytes_are_a_schema_file_or_refused(content: bytes | str) -> None:
    is_answered(lambda: schema_from_json(content))


@pytest.mark.parametrize(
    "content",
    [
        b"\xff",
        '{"a": "\\ud800"}',
        "\ud800",
        b"[" * 100_000,
        b'{"id":' * 100_000,
        json.dumps(TABLE).replace('"id": 1', '"id": 1e400'),
        json.dumps(TABLE).replace('"id": 1', '"id": ' + "9" * 5000),
        b"",
        b"null",
        b"[]",
    ],
)
def test_bytes_that_are_no_schema_file_are_refused(content: bytes | str) -> None:
    with pytest.raises(ledger.LedgerError):
        schema_from_json(content)
