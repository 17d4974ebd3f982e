"""Whatever comes in, what comes out is metadata or one of the ledger's errors, soon."""

from __future__ import annotations

import contextlib
import copy
import gzip
import json
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import InvalidInputError, LedgerError
from projections.iceberg import (
    read_after,
    read_metadata,
    requirement_from_json,
    table_update_from_json,
    write_metadata,
)
from projections.iceberg.metadata_schema import primitive_type
from projections.iceberg.schema_json import DEEPEST, schema_from_json
from tests.projections.iceberg.metadata.cases import DATA
from tests.thorough import examples

TABLE = (DATA / "generated/java-life/v3/12.metadata.json").read_bytes()
UPDATES = [
    update
    for commit in json.loads((DATA / "generated/java-life/v3/commits.json").read_bytes())
    for update in commit["updates"]
]
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["int", "struct", "list", "decimal(9,2)", "bucket[0]", "main", 2**63, 2**31])
)
JSON = st.recursive(
    SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=8), inner)
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the path of everything inside of a JSON value."""
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    inside = [each for key, inner in items for each in places(inner, (*path, key))]
    return [*((*path, key) for key, _ in items), *inside]


def with_one_changed(original: Any, path: tuple[Any, ...], replacement: Any) -> Any:
    changed = copy.deepcopy(original)
    holder = changed
    for key in path[:-1]:
        holder = holder[key]
    holder[path[-1]] = replacement
    return changed


def answers(read: Any, content: Any) -> None:
    """Read, and accept a value or one of the ledger's errors within ten seconds."""
    begun = time.monotonic()
    with contextlib.suppress(LedgerError):
        read(content)
    assert time.monotonic() - begun < 10


@settings(deadline=None)
@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_garbage_is_rejected_by_name(content: bytes) -> None:
    with pytest.raises(InvalidInputError):
        read_metadata(content)


@settings(deadline=None)
@given(JSON)
def test_garbage_is_no_update_no_requirement_no_schema(value: Any) -> None:
    for read in (
        table_update_from_json,
        requirement_from_json,
        schema_from_json,
    ):
        with pytest.raises(InvalidInputError):
            read(value)


@settings(deadline=None, max_examples=examples(100))
@given(st.sampled_from(places(json.loads(TABLE))), JSON)
def test_a_table_with_one_value_changed_is_read_or_refused(
    path: tuple[Any, ...], value: Any
) -> None:
    changed = with_one_changed(json.loads(TABLE), path, value)

    def round_trip(content: bytes) -> None:
        metadata = read_metadata(content)
        assert read_metadata(write_metadata(metadata)) == metadata

    answers(round_trip, json.dumps(changed).encode())


@settings(deadline=None, max_examples=examples(60))
@given(st.sampled_from(places(UPDATES)), JSON)
def test_updates_with_one_value_changed_are_read_or_refused(
    path: tuple[Any, ...], value: Any
) -> None:
    for update in with_one_changed(UPDATES, path, value):
        answers(table_update_from_json, update)


@settings(deadline=None, max_examples=examples(60))
@given(st.integers(0, len(TABLE.rstrip()) - 1))
def test_a_file_cut_anywhere_is_rejected(end: int) -> None:
    with pytest.raises(InvalidInputError):
        read_metadata(TABLE[:end])


@settings(deadline=None, max_examples=examples(60))
@given(st.data())
def test_compressed_bytes_cut_or_changed_are_rejected_or_read(data: st.DataObject) -> None:
    packed = gzip.compress(TABLE, mtime=0)
    end = data.draw(st.integers(1, len(packed) - 1))
    with pytest.raises(InvalidInputError):
        read_metadata(packed[:end])
    changed = bytearray(packed)
    changed[end] ^= 0xFF
    answers(read_metadata, bytes(changed))


@pytest.mark.parametrize("depth", [DEEPEST + 2, 300, 100_000])
def test_deep_nesting_is_rejected(depth: int) -> None:
    opened = '{"type":"list","element-id":1,"element-required":true,"element":' * depth
    content = json.loads(TABLE) | {"schemas": ["HERE"]}
    nested = f'{{"type":"struct","fields":[{{"id":1,"name":"a","required":true,"type":{opened}'
    nested += '"int"' + "}" * depth + "}]}"
    with pytest.raises(InvalidInputError):
        read_metadata(json.dumps(content).replace('"HERE"', nested))
    with pytest.raises(InvalidInputError):
        read_metadata("[" * depth)


@settings(deadline=None)
@given(st.text() | st.from_regex(r"(decimal|fixed|geometry|geography)[\[(][^\])]*[\])]"))
def test_a_text_is_a_type_or_is_rejected(text: str) -> None:
    answers(primitive_type, text)


@pytest.mark.parametrize("compress", [bytes, gzip.compress])
@pytest.mark.parametrize("place", [b'"format-version"', b'"summary"', b'"name"'])
def test_metadata_that_is_not_utf_8_is_rejected_wherever_the_byte_is(
    place: bytes, compress: Callable[[bytes], bytes]
) -> None:
    known = read_after(TABLE, None)
    spoilt = compress(TABLE.replace(place, place[:3] + b"\xed" + place[3:], 1))
    for before in (None, known):
        with pytest.raises(InvalidInputError, match="is not UTF-8"):
            read_after(spoilt, before)
