from __future__ import annotations

import random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from ledger import (
    AddColumn,
    DataField,
    DropColumn,
    RenameColumn,
    Schema,
    SchemaChange,
    UpdateColumnPosition,
    UpdateColumnType,
    evolve,
)
from ledger.decide import decide_schema
from ledger.events import SchemaEvent
from ledger.model.types import walk_fields
from ledger.state import SchemaBuilder
from tests.histories import random_changes, start_schema

seeds = st.integers(0, 2**32 - 1)
codec = msgspec.json.Decoder(tuple[SchemaEvent, ...])


def folded(schema: Schema, events: tuple[SchemaEvent, ...], *, schema_id: int) -> Schema:
    builder = SchemaBuilder(schema)
    for event in events:
        builder.apply(event)
    return builder.freeze(schema_id=schema_id, time_millis=schema.time_millis)


def history(seed: int, length: int = 12) -> list[SchemaChange]:
    rng = random.Random(seed)
    return random_changes(rng, start_schema(), length=length)


@given(seed=seeds)
def test_folding_what_was_decided_gives_what_was_decided(seed: int) -> None:
    schema = start_schema()
    for change in history(seed):
        decision = decide_schema(schema, [change], has_snapshots=False)
        events = codec.decode(msgspec.json.encode(decision.events))

        assert folded(schema, events, schema_id=schema.id + 1) == decision.schema
        schema = decision.schema


@given(seed=seeds, cut=st.integers(0, 12))
def test_folding_a_prefix_and_then_the_rest_is_folding_everything(seed: int, cut: int) -> None:
    schema = start_schema()
    events: list[SchemaEvent] = []
    for change in history(seed):
        decision = decide_schema(schema, [change], has_snapshots=False)
        events.extend(decision.events)
        schema = decision.schema

    middle = folded(start_schema(), tuple(events[:cut]), schema_id=1)

    assert folded(middle, tuple(events[cut:]), schema_id=schema.id) == schema


@given(seed=seeds)
def test_an_id_never_means_two_fields(seed: int) -> None:
    schema = start_schema()
    given_out = {each.id for each in walk_fields(schema.fields)}
    for change in history(seed, length=20):
        before = {each.id for each in walk_fields(schema.fields)}
        schema = evolve(schema, [change])
        now = {each.id for each in walk_fields(schema.fields)}

        assert not (now - before) & given_out
        assert max(now) <= schema.highest_field_id
        given_out |= now


@given(seed=seeds)
def test_a_change_of_one_column_changes_no_other(seed: int) -> None:
    """Iceberg's four guarantees: adding, dropping, updating and moving have no side effects."""
    schema = start_schema()
    for change in history(seed):
        after = evolve(schema, [change])
        if isinstance(
            change,
            AddColumn | DropColumn | RenameColumn | UpdateColumnType | UpdateColumnPosition,
        ):
            path = change.field_names or (change.move.field_name,)  # type: ignore[union-attr] # only a position has no fieldNames, and it has a move
            assert others(schema, path[0]) == others(after, path[0], renamed=change)
        schema = after


def others(
    schema: Schema, touched: str, *, renamed: SchemaChange | None = None
) -> dict[int, DataField]:
    names = {touched}
    if isinstance(renamed, RenameColumn) and len(renamed.field_names) == 1:
        names = {renamed.new_name}
    return {each.id: each for each in schema.fields if each.name not in names}


def test_a_dropped_name_comes_back_with_a_new_id() -> None:
    schema = Schema.of({"a": "INT", "b": "INT"})

    dropped = evolve(schema, [DropColumn(("b",))])
    added = evolve(dropped, [AddColumn(("b",), "INT")])

    assert schema.field("b").id == 1
    assert added.field("b").id == 2
