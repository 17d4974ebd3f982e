from __future__ import annotations

import pickle
import re
from collections.abc import MutableMapping
from copy import copy
from typing import cast

import msgspec
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from ledger import DamagedLogError, InvalidTypeError, RenameColumn
from ledger.model import Tag
from ledger.state import TableState, TableStream
from ledger.state import records as table_record
from tests.lakes import lake_on, memory, orders

STREAM = TableStream()
NAMES = st.sampled_from(["a", "b", 'quoted "a"', "\n", "ä", "snapshotId"])
STEPS = st.lists(st.tuples(st.sampled_from(["set", "delete", "has", "get", "copy"]), NAMES))


def tagged(names: set[str]) -> TableState:
    tags = {name: Tag(name, at, 1_000 + at) for at, name in enumerate(sorted(names), 1)}
    return evolve(orders(lake_on(memory())).state, tags=tags)


def read_again(state: TableState) -> MutableMapping[str, Tag]:
    tags = STREAM.decode_state(STREAM.encode_state(state)).tags
    return cast("MutableMapping[str, Tag]", tags)


@given(st.sets(NAMES), STEPS)
def test_tags_of_a_record_that_is_read_late_are_as_a_mapping_of_them(
    names: set[str], steps: list[tuple[str, str]]
) -> None:
    state = tagged(names)
    model, read = dict(state.tags), read_again(state)
    for number, (step, name) in enumerate(steps):
        match step:
            case "set":
                model[name] = read[name] = Tag(name, 7, number)
            case "delete" if name in model:
                del model[name], read[name]
            case "has":
                assert (name in read) == (name in model)
            case "copy":
                # What is done to a copy leaves what it was made of as it is.
                other, read = read, copy(read)
                read["new"] = Tag("new", 1, 1)
                assert "new" not in other
                del read["new"]
            case _:
                assert read.get(name) == model.get(name)
    assert read == model
    assert list(read) == list(model)
    assert len(read) == len(model)


def test_a_second_look_up_of_tags_searches_their_record_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    state = tagged({"a", "b"})
    searched: list[object] = []

    def stands(name: object, record: Raw) -> bool:
        searched.append(name)
        return real(name, record)

    real = table_record._may_contain_name
    monkeypatch.setattr(table_record, "_may_contain_name", stands)

    tags = read_again(state)
    for each in ("new", "a", "newer", "b"):
        assert (each in tags) == (each in state.tags)
    assert searched == ["new"]

    # As each commit does that continues from a state.
    begin, searched[:] = read_again(state), []
    for each in ("x", "y", "z"):
        following = copy(begin)
        assert each not in following
        following[each] = Tag(each, 1, 1)
    assert searched == ["x"]
    assert dict(begin) == state.tags


@given(st.sets(NAMES))
def test_a_record_gives_the_state_that_it_was_made_of(names: set[str]) -> None:
    state = tagged(names)
    record = STREAM.encode_state(state)
    read = STREAM.decode_state(record)
    assert STREAM.encode_state(read) == record
    assert pickle.loads(pickle.dumps(STREAM.decode_state(record))) == state  # noqa: S301 - own
    assert read == state


@pytest.mark.parametrize("tags", [b'{"a":1}', b'{"a":{}}', b"[]", b'"a"'])
def test_invalid_tags_are_reported_when_they_are_read(tags: bytes) -> None:
    state = tagged({"a"})
    own = msgspec.json.encode({"a": state.tags["a"]})
    record = STREAM.encode_state(state)
    assert own in record
    with pytest.raises(DamagedLogError, match="Delete the folder caches"):
        dict(STREAM.decode_state(record.replace(own, tags)).tags)


def test_states_that_are_read_share_the_columns_that_stand_in_both() -> None:
    table = orders(lake_on(memory()))
    older = STREAM.encode_state(table.state)
    table.alter([RenameColumn(("id",), "number")])
    newer = STREAM.encode_state(table.state)

    one, other = STREAM.decode_state(older).schema, STREAM.decode_state(newer).schema

    assert (one, other) == (table.at(version=0).schema, table.state.schema)
    shared = [each for each in one.fields if any(each is some for some in other.fields)]
    assert [each.name for each in shared] == [each.name for each in one.fields if each.name != "id"]


def test_an_invalid_column_of_a_record_is_reported_though_others_were_read() -> None:
    record = STREAM.encode_state(orders(lake_on(memory())).state)
    STREAM.decode_state(record)
    for wrong in (b'"type":"INTEGERS"', b'"type":7'):
        with pytest.raises((msgspec.DecodeError, InvalidTypeError)):
            STREAM.decode_state(re.sub(rb'"type":"INT"', wrong, record, count=1))
