"""A diff is a migration: laws over random lives, forwards, backwards and between tables."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import attrs
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import (
    AddColumn,
    DropColumn,
    DropPrimaryKey,
    RenameColumn,
    ReplaceSortOrder,
    Schema,
    SortColumn,
    UndropColumn,
    evolve,
)
from ledger.audit.difference import TableDiff
from ledger.audit.migration import Migration, plan_migration, state_after_changes
from ledger.decide import as_table_change
from ledger.model import type_from_json, type_to_wire
from ledger.state import PastColumns, TableState
from tests.audit.lives import first_state, past_of, random_life
from tests.lakes import data_file, lake_on, memory, orders
from tests.thorough import examples

seeds = st.integers(0, 2**32 - 1)
formats = st.sampled_from(["paimon", "iceberg"])

ROW = type_to_wire(
    type_from_json(
        {"type": "ROW", "fields": [{"name": "a", "type": "INT"}, {"name": "b", "type": "STRING"}]}
    )
)

# Parts that no list of changes can express; each raises an error.
UNSAYABLE = (
    "partition field",  # one that is called as another column is by now
    "no changes lead to its partition spec",  # a source that was dropped
    "no changes lead to its sort order",
    "renames in this batch",
    "is renamed more than once in this batch",
)


def applied(state: TableState, migration: Migration, past: PastColumns | None = None) -> TableState:
    for batch in migration.batches:
        # As JSON, since that is what people keep and send.
        plain = json.loads(msgspec.json.encode(batch))
        state = state_after_changes(state, [as_table_change(each) for each in plain], past)
    return state


@settings(deadline=None, max_examples=examples(40))
@given(seed=seeds, declared=formats, data=st.data())
def test_a_diff_applied_to_the_earlier_state_gives_the_later_one_ids_included(
    seed: int, declared: str, data: st.DataObject
) -> None:
    states = random_life(seed, formats=declared)
    one = data.draw(st.integers(0, len(states) - 1))
    two = data.draw(st.integers(one, len(states) - 1))
    before, after = states[one], states[two]

    migration = plan_migration(before, after, past_of(states[: one + 1]))

    if migration.refusal is not None:
        assert any(each in migration.refusal for each in UNSAYABLE), migration.refusal
        return
    assert not migration.new_ids
    reached = applied(before, migration, past_of(states[: one + 1]))
    assert reached.schema.fields == after.schema.fields
    assert not plan_migration(reached, after).batches
    assert (reached.specs, reached.spec) == (after.specs, after.spec)
    assert (reached.sort_orders, reached.sort_order) == (after.sort_orders, after.sort_order)


@settings(deadline=None, max_examples=examples(40))
@given(seed=seeds, declared=formats, data=st.data())
def test_a_diff_backwards_gives_the_earlier_state_ids_included(
    seed: int, declared: str, data: st.DataObject
) -> None:
    states = random_life(seed, formats=declared, steps=12)
    one = data.draw(st.integers(0, len(states) - 1))
    head, then, past = states[-1], states[one], past_of(states)

    migration = plan_migration(head, then, past)

    if migration.refusal is None:
        reached = applied(head, migration, past)
        assert reached.schema.options == then.schema.options
        assert reached.schema.names == then.schema.names
        if not migration.new_ids:
            assert reached.schema.fields == then.schema.fields
            assert not plan_migration(reached, then).changes


def test_most_diffs_backwards_bring_columns_back() -> None:
    back = refused = lost = 0
    for seed in range(60):
        states = random_life(seed, formats="paimon", steps=12)
        found = plan_migration(states[-1], states[0], past_of(states))
        # A struct that became a STRING is none any more.
        lost += bool(found.new_ids)
        refused += found.refusal is not None
        back += any(isinstance(each, UndropColumn) for each in found.changes)
    assert (back > 20, lost < 10, refused < 40) == (True, True, True), (back, lost, refused)


@settings(deadline=None, max_examples=15)
@given(seed=seeds)
def test_a_state_does_not_differ_from_itself(seed: int) -> None:
    for state in random_life(seed)[-3:]:
        assert not TableDiff(state, state)
        assert TableDiff(state, state).changes == ()


@settings(deadline=None, max_examples=15)
@given(one=seeds, two=seeds)
def test_two_tables_are_compared_by_name(one: int, two: int) -> None:
    first = random_life(one, formats="iceberg", steps=6)[-1]
    second = attrs.evolve(random_life(two, formats="iceberg", steps=6)[-1], table_id="other")

    migration = plan_migration(first, second)

    if migration.refusal is None:
        reached = applied(first, migration)
        assert reached.schema.names == second.schema.names
        assert not plan_migration(reached, second).changes


def test_columns_of_two_tables_that_files_are_sorted_by_are_compared_by_name() -> None:
    lake = lake_on(memory())
    lake.create_database("shop")
    declared = {"ledger.formats": "iceberg"}

    def sorted_by(name: str, *columns: str) -> TableState:
        table = lake.create_table(
            f"shop.{name}", Schema.of(dict.fromkeys(columns, "INT"), options=declared)
        )
        table.alter([ReplaceSortOrder((SortColumn((columns[-1],)),))])
        return table.state

    # The same id is another column's there, and the same column has another id.
    one, two, three = sorted_by("t", "a", "b"), sorted_by("u", "b", "a"), sorted_by("v", "c", "b")

    assert one.sort_order == two.sort_order
    (change,) = (
        each for each in plan_migration(one, two).changes if isinstance(each, ReplaceSortOrder)
    )
    assert [each.source for each in change.columns] == [("a",)]
    wider = state_after_changes(three, [AddColumn(("a",), "INT"), DropColumn(("c",))])
    assert not any(
        isinstance(each, ReplaceSortOrder) for each in plan_migration(one, wider).changes
    )


def test_a_rename_is_a_rename_and_a_swap_needs_a_name_between() -> None:
    before = first_state()
    swapped = [
        RenameColumn(("point",), "x"),
        RenameColumn(("points",), "point"),
        RenameColumn(("x",), "points"),
    ]

    changes = plan_migration(before, state_after_changes(before, swapped)).changes

    assert all(isinstance(each, RenameColumn) for each in changes[:3])
    assert (
        state_after_changes(before, changes).schema.fields
        == state_after_changes(before, swapped).schema.fields
    )


def test_what_is_new_is_not_looked_for_in_the_past() -> None:
    def older() -> Iterator[Schema]:
        read.append("a schema, of the thousands that a log may have had")
        yield Schema.of({"old": "INT"})

    read: list[str] = []
    before = first_state("paimon")
    after = state_after_changes(before, [AddColumn(("new",), "INT")])

    assert len(plan_migration(before, after, PastColumns(older())).changes) == 1
    assert read == []


def test_a_new_column_with_a_value_for_older_rows_is_not_null_at_once() -> None:
    before = first_state("iceberg")
    after = state_after_changes(before, [AddColumn(("new",), "INT NOT NULL", default_value="1")])

    assert plan_migration(before, after).changes == (
        AddColumn(("new",), "INT NOT NULL", default_value="1"),
    )


def test_a_column_keeps_its_id_where_another_one_came_and_went_before_it() -> None:
    before = Schema.of({"a": "INT"})
    went = evolve(before, [AddColumn(("b",), "INT")])
    after = evolve(evolve(went, [DropColumn(("b",))]), [AddColumn(("c",), ROW)])
    typed = type_to_wire(after.field("c").type)

    assert evolve(before, [AddColumn(("c",), typed, field_id=2)]).fields == after.fields


@pytest.mark.parametrize("asked", [0, 1, 20_000])
def test_an_id_that_cannot_be_had_is_the_next_one(asked: int) -> None:
    before = Schema.of({"a": "INT", "b": "INT"})

    after = evolve(before, [AddColumn(("c",), "INT", field_id=asked)])

    assert after.field("c").id == 2


def test_renames_of_which_paimon_takes_one_a_batch_are_transactions_of_their_own() -> None:
    before = first_state("paimon")
    after = state_after_changes(before, [RenameColumn(("point", "p"), "r")])
    after = state_after_changes(after, [RenameColumn(("point", "q"), "s")])

    migration = plan_migration(before, after)

    assert len(migration.batches) == 2
    assert applied(before, migration).schema.fields == after.schema.fields


def test_a_history_of_nested_adds_keeps_its_ids() -> None:
    rng = random.Random(7)
    state = first_state("iceberg")
    before = state
    for number in range(30):
        parent = rng.choice([(), ("point",), ("points", "element")])
        state = state_after_changes(state, [AddColumn((*parent, f"c{number}"), ROW)])

    assert (
        state_after_changes(before, plan_migration(before, state).changes).schema.fields
        == state.schema.fields
    )


def test_rows_of_a_diff_name_tags_and_totals() -> None:
    table = orders(lake_on(memory()))
    before = table.state
    table.append([data_file("a.parquet")])
    table.create_tag("v1")

    rows = {each.what: (each.before, each.after) for each in TableDiff(before, table.state).rows}

    assert rows["tag v1"] == (None, "snapshot 1")
    assert rows["rows"] == ("0", "10")


def test_columns_of_another_table_never_come_back_here() -> None:
    lake = lake_on(memory())
    mine = orders(lake)
    other = lake.create_table("shop.other", Schema.of({"id": "BIGINT NOT NULL", "n": "INT"}))
    for name in "abc":
        other.alter([AddColumn((name,), "INT")])
        other.alter([DropColumn((name,))])

    changes = mine.diff(other, mine).changes

    assert not any(isinstance(each, UndropColumn) for each in changes)


def test_a_key_is_dropped_before_the_columns_that_it_names() -> None:
    lake = lake_on(memory())
    keyed = orders(lake, Schema.of({"id": "BIGINT", "n": "INT"}, primary_keys=["id"]))
    plain = lake.create_table("shop.plain", Schema.of({"n": "INT"}))
    other = lake.create_table("shop.other", Schema.of({"m": "INT"}, primary_keys=["m"]))

    migration = plan_migration(keyed.state, plain.state)

    assert migration.refusal is None
    assert migration.batches == ((DropPrimaryKey(),), (DropColumn(("id",)),))
    reached = applied(keyed.state, migration).schema
    assert (reached.names, reached.primary_keys) == (("n",), ())
    # A key that becomes another one is never gone.
    refused = plan_migration(keyed.state, other.state)
    assert refused.batches == ()
    assert "id is part of a key" in (refused.refusal or "")
