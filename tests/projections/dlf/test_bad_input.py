"""Whatever comes in, what comes out is a view or one of the ledger's errors, soon."""

from __future__ import annotations

import copy
import inspect
import json
import sys
import time
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import (
    DataField,
    Identifier,
    InvalidInputError,
    LedgerError,
    Move,
    Schema,
    SchemaChange,
    ViewSchema,
)
from ledger.events import FunctionChange, ViewChange
from ledger.model import Snapshot
from ledger.model.functions import FunctionDefinition, FunctionFileResource
from ledger.model.types import DataType
from projections.dlf import ApiInstant, GetTableResponse, Style, read, render
from projections.dlf.keys import VIEWS
from projections.dlf.objects import RenameRequest
from tests.thorough import examples

JAVA: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "data/paimon/rest_objects.json").read_text(encoding="utf-8")
)
NAMED: dict[str, Any] = {each.__name__: each for each in VIEWS} | {
    "Identifier": Identifier,
    "RenameTableRequest": RenameRequest,
}
KINDS: list[Any] = [
    *sorted(VIEWS, key=lambda each: each.__name__),
    *(Identifier, Schema, Snapshot, ViewSchema, DataField, DataType, Move),
    *(ApiInstant, SchemaChange, ViewChange, FunctionChange, FunctionDefinition),
    *(*get_args(FunctionChange), *get_args(FunctionDefinition), FunctionFileResource),
]
SECONDS = 2.0

KEYS = st.sampled_from(
    [
        *("type", "action", "fields", "id", "name", "element", "key", "value", "spec", "schema"),
        *("fieldNames", "dataType", "move", "primitiveType", "arrayType", "rowType", "mapType"),
        *("identifier", "database", "object", "snapshot", "changes", "options", "instant"),
    ]
) | st.text(max_size=4)
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(st.characters(exclude_categories=[]), max_size=6)
    | st.sampled_from(["INT", "ARRAY", "ROW", "MAP NOT NULL", "addColumn", "snapshot", "file"])
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=5),
    max_leaves=20,
)


def read_or_refuse(obj: object, kind: Any) -> Any:
    """Return the view, or the refusal, which has to name a place in one short line."""
    began = time.perf_counter()
    result = caught(obj, kind)
    assert time.perf_counter() - began < SECONDS
    if isinstance(result, LedgerError):
        assert isinstance(result, InvalidInputError)
        assert str(result).startswith("$")
        assert len(str(result)) < 2000
    return result


def caught(obj: object, kind: Any) -> Any:
    try:
        return read(obj, kind)
    except LedgerError as refused:
        return refused


@settings(deadline=None)
@given(JSON, st.sampled_from(KINDS))
def test_any_json_gives_a_view_or_a_typed_refusal(obj: Any, kind: Any) -> None:
    read_or_refuse(obj, kind)


@settings(deadline=None)
@given(st.text(max_size=30) | st.binary(max_size=30), st.sampled_from(KINDS))
def test_any_text_gives_a_view_or_a_typed_refusal(text: str | bytes, kind: Any) -> None:
    read_or_refuse(text, kind)


@settings(deadline=None)
@given(st.sampled_from(sorted(JAVA)), st.data())
def test_a_cut_document_is_rejected_as_no_json(name: str, data: st.DataObject) -> None:
    text = json.dumps(JAVA[name]["json"])
    cut = text[: data.draw(st.integers(0, len(text) - 1))]

    with pytest.raises(InvalidInputError, match=r"^\$: not JSON: "):
        read(cut, NAMED[JAVA[name]["javaClass"]])


def places(obj: Any) -> list[tuple[Any, Any]]:
    """Return every container of a document with each of its keys or indexes."""
    here: list[tuple[Any, Any]] = []
    if isinstance(obj, dict):
        here = [(obj, key) for key in obj]
    elif isinstance(obj, list):
        here = [(obj, index) for index in range(len(obj))]
    return [*here, *(place for container, key in here for place in places(container[key]))]


@settings(deadline=None, max_examples=examples(300))
@given(st.sampled_from(sorted(JAVA)), JSON, st.data())
def test_any_one_wrong_member_gives_a_view_that_prints_or_a_typed_refusal(
    name: str, wrong: Any, data: st.DataObject
) -> None:
    document = copy.deepcopy(JAVA[name]["json"])
    where = places(document)
    if where:
        container, key = data.draw(st.sampled_from(where))
        container[key] = wrong
    kind = NAMED[JAVA[name]["javaClass"]]

    view = read_or_refuse(document, kind)

    if not isinstance(view, InvalidInputError):
        assert read(json.dumps(render(view, Style.PAIMON_REST)), kind) == view


def nested(depth: int, inner: Any, key: str | None) -> Any:
    for _ in range(depth):
        inner = [inner] if key is None else {key: inner}
    return inner


@pytest.mark.parametrize("kind", KINDS, ids=lambda each: getattr(each, "__name__", str(each)[:40]))
@pytest.mark.parametrize("key", [None, "type", "element", "arrayType", "schema", "fields"])
def test_ten_thousand_levels_are_rejected_and_not_followed(kind: Any, key: str | None) -> None:
    deep = nested(10_000, "INT", key)

    assert isinstance(read_or_refuse(deep, kind), InvalidInputError)
    assert isinstance(read_or_refuse({"fields": [deep], "dataType": deep}, kind), InvalidInputError)


@pytest.mark.parametrize("text", ["[" * 10_000, '{"a":' * 10_000, "[" * 10_000 + "]" * 10_000])
def test_ten_thousand_levels_of_text_are_rejected_and_not_followed(text: str) -> None:
    assert isinstance(read_or_refuse(text, Schema), InvalidInputError)


def an_array(depth: int, style: Style) -> Any:
    inner: Any = {"primitiveType": "INT"} if style is Style.DLF else "INT"
    for _ in range(depth):
        inner = {"type": "ARRAY", "element": inner}
        inner = {"arrayType": inner} if style is Style.DLF else inner
    return inner


def a_row(depth: int, style: Style) -> Any:
    inner: Any = {"primitiveType": "INT"} if style is Style.DLF else "INT"
    for number in range(depth):
        inner = {"type": "ROW", "fields": [{"id": number, "name": "a", "type": inner}]}
        inner = {"rowType": inner} if style is Style.DLF else inner
    return inner


# The model's reader counts the wrapper of the innermost primitive type as a level.
@pytest.mark.parametrize(("style", "greatest"), [(Style.DLF, 99), (Style.PAIMON_REST, 100)])
@pytest.mark.parametrize("build", [an_array, a_row])
def test_types_of_the_greatest_depth_pass_and_deeper_ones_are_rejected(
    build: Any, style: Style, greatest: int
) -> None:
    column = {"id": 1000, "name": "deep", "type": build(greatest, style)}

    assert render(read({"fields": [column]}, Schema), style)["fields"] == [column]
    with pytest.raises(InvalidInputError, match="nest"):
        read({"fields": [{**column, "type": build(101, style)}]}, Schema)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (2**63, "$.createdAt: has more than 64 bits; send a smaller number"),
        (-(2**63) - 1, "$.createdAt: has more than 64 bits; send a smaller number"),
        (10**5000, "$.createdAt: has more than 64 bits; send a smaller number"),
        (1e300, "$.createdAt: 1e+300 is not a whole number"),
        (float("nan"), "$.createdAt: nan is not a whole number"),
        ("\ud800", "$.createdAt: has half a character; send whole Unicode"),
        ({1: 2}, "$.createdAt: has a key that is not a text; JSON's keys are texts"),
        ((1,), "$.createdAt: tuple is not a JSON type; give decoded JSON"),
        (object, "$.createdAt: type is not a JSON type; give decoded JSON"),
    ],
    ids=lambda each: str(each)[:30] if not isinstance(each, int) else "number",
)
def test_what_no_json_decoder_gives_is_rejected_by_its_place(value: object, message: str) -> None:
    document = {**JAVA["getTableResponse"]["json"], "createdAt": value}

    with pytest.raises(InvalidInputError) as refused:
        read(document, GetTableResponse)

    assert str(refused.value) == message


def test_the_longest_numbers_of_64_bits_are_read() -> None:
    document = JAVA["getTableResponse"]["json"]

    for value in (2**63 - 1, -(2**63)):
        assert (
            read(json.dumps({**document, "createdAt": value}), GetTableResponse).created_at == value
        )


def test_a_deep_type_is_rejected_where_the_stack_is_nearly_used_up() -> None:
    def further_down(calls: int) -> Any:
        if calls:
            return further_down(calls - 1)
        return read_or_refuse({"fields": [column]}, Schema)

    column = {"id": 1000, "name": "deep", "type": a_row(99, Style.DLF)}
    room = sys.getrecursionlimit() - len(inspect.stack()) - 300

    refused = further_down(room)

    assert isinstance(refused, InvalidInputError)
    assert "nests too deep for the stack left here" in str(refused)


def test_a_document_that_holds_itself_is_rejected() -> None:
    document: dict[str, Any] = {"fields": []}
    document["fields"] += [document, document]

    assert isinstance(read_or_refuse(document, Schema), InvalidInputError)


@pytest.mark.parametrize(
    "text", ["", " ", "nul", '{"a": 1,}', "{'a': 1}", '{"a": NaN}', b"\xff\xfe", '"\ud800"', "{}{}"]
)
def test_text_that_is_no_json_is_rejected_as_such(text: str | bytes) -> None:
    with pytest.raises(InvalidInputError, match=r"^\$: not JSON: .*; send one whole JSON document"):
        read(text, Identifier)


def test_a_number_of_five_thousand_digits_is_rejected_in_text_as_well() -> None:
    with pytest.raises(InvalidInputError, match="out of range"):
        read(f'{{"databaseName": {"1" * 5000}}}', Identifier)


@pytest.mark.parametrize("thing", [None, 5, "orders", object(), {"a": 1}, [1]])
def test_only_objects_of_the_api_are_rendered(thing: object) -> None:
    with pytest.raises(InvalidInputError, match="is not an object of the metadata API"):
        render(thing)


def test_a_place_with_an_odd_key_stays_readable() -> None:
    schema = {"fields": [], "options": {"a.b c": 2**64}}

    with pytest.raises(InvalidInputError) as refused:
        read({"schema": schema}, GetTableResponse)

    assert str(refused.value).startswith("$.schema.options['a.b c']: ")


def test_explicit_nulls_of_optional_keys_read_as_absent() -> None:
    document = JAVA["getTableResponse"]["json"]
    schema = {**document["schema"], "comment": None, "options": None, "primaryKeys": None}
    column = {"id": 0, "name": "a", "type": "INT", "description": None, "defaultValue": None}

    table = read({**document, "owner": None, "schema": schema}, GetTableResponse)

    assert (table.owner, table.schema.comment, table.schema.options) == (None, None, {})
    assert read(column, DataField).description is None


@pytest.mark.parametrize("key", ["id", "name", "path", "isExternal", "schemaId", "schema"])
def test_nulls_of_required_keys_are_rejected_by_name(key: str) -> None:
    with pytest.raises(InvalidInputError) as refused:
        read({**JAVA["getTableResponse"]["json"], key: None}, GetTableResponse)

    assert str(refused.value) == f"$.{key}: is missing"
