"""The SchemaChanges derived between two schemas fold to exactly the later one."""

from __future__ import annotations

import random
from itertools import pairwise
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import DataField, Identifier, Schema, SchemaChange, evolve
from ledger.events import ColumnUndropped, SchemaReplaced
from ledger.model import field_from_wire, field_to_wire
from ledger.model.types import ArrayType, IntType, RowType
from ledger.sql.statement import requested_changes
from ledger.state import SchemaBuilder
from projections.importing.deriving import derive_schema_events
from tests.histories import random_changes, start_schema
from tests.thorough import examples

seeds = st.integers(0, 2**32 - 1)


def schemas(seed: int) -> list[Schema]:
    """The schemas of a random life, oldest first."""
    found = [start_schema()]
    for each in random_changes(random.Random(seed), found[0], length=10):
        found.append(evolve(found[-1], [each]))
    return found


def folded(before: Schema, after: Schema) -> tuple[SchemaBuilder, bool]:
    events = derive_schema_events(before, after.fields, after.identifier_field_ids)
    builder = SchemaBuilder(before)
    for each in events:
        if isinstance(each, SchemaReplaced):
            fields = tuple(map(field_from_wire, each.fields))
            builder.replace(fields, each.identifier_field_ids)
        else:
            builder.apply(each)
    return builder, any(isinstance(each, SchemaReplaced) for each in events)


def wire(fields: object) -> list[object]:
    return [field_to_wire(each) for each in fields]  # type: ignore[attr-defined] # columns


@settings(max_examples=examples(40))
@given(seeds)
def test_a_step_of_any_history_folds_to_the_later_schema(seed: int) -> None:
    life = schemas(seed)
    for before, after in pairwise(life):
        builder, _ = folded(before, after)
        assert wire(builder.columns.values()) == wire(after.fields)


@settings(max_examples=examples(40))
@given(seeds, st.data())
def test_a_step_over_many_versions_or_back_folds_to_its_target_schema(
    seed: int, data: st.DataObject
) -> None:
    life = schemas(seed)
    before, after = data.draw(st.permutations(life).map(lambda some: some[:2]))
    builder, _ = folded(before, after)
    assert wire(builder.columns.values()) == wire(after.fields)
    assert builder.highest_field_id >= before.highest_field_id


def test_each_kind_of_change_is_derived_as_the_same_kind() -> None:
    row = RowType([DataField(0, "x", IntType()), DataField(1, "y", ArrayType(IntType()))])
    base = Schema.of({"a": "INT", "b": row, "c": "STRING"})
    for change in (
        "ADD COLUMN z BIGINT FIRST",
        "ADD COLUMN b.w INT AFTER x",
        "RENAME COLUMN b.x TO xx",
        "DROP COLUMN a",
        "ALTER COLUMN a TYPE BIGINT",
        "ALTER COLUMN c FIRST",
        "ALTER COLUMN a COMMENT 'x'",
    ):
        after = evolve(base, sql(change))
        builder, is_replaced = folded(base, after)
        assert wire(builder.columns.values()) == wire(after.fields)
        assert not is_replaced, change


def sql(change: str) -> list[SchemaChange]:
    return cast(
        "list[SchemaChange]", requested_changes(f"ALTER TABLE a.t {change}", Identifier("a", "t"))
    )


def test_names_that_change_places_are_one_replacement() -> None:
    base = Schema.of({"a": "INT", "b": "INT"})
    swapped = Schema((DataField(0, "b", IntType()), DataField(1, "a", IntType())))
    builder, is_replaced = folded(base, swapped)
    assert is_replaced
    assert builder.names == {"b": 0, "a": 1}


def test_a_column_that_comes_back_under_its_own_id_is_undropped() -> None:
    inner = RowType([DataField(0, "x", IntType()), DataField(1, "y", IntType())])
    whole = Schema.of({"a": "INT", "b": inner, "c": "STRING"})
    for gone in ("DROP COLUMN a", "DROP COLUMN b.y", "DROP COLUMN b", "DROP COLUMN c"):
        less = evolve(whole, sql(gone))
        (back,) = derive_schema_events(less, whole.fields, ())
        assert isinstance(back, ColumnUndropped)
        builder, is_replaced = folded(less, whole)
        assert not is_replaced
        assert wire(builder.columns.values()) == wire(whole.fields)
        assert builder.highest_field_id == less.highest_field_id
