"""Undoing keeps what came later: laws over random lives."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import AddColumn, DropColumn, InvalidInputError, RenameColumn, UpdateColumnComment
from ledger.audit.migration import plan_migration, state_after_changes
from ledger.audit.undo import plan_state_restore, plan_transaction_undo
from ledger.state import TableState
from tests.audit.lives import first_state, past_of, random_life
from tests.histories import paths
from tests.lakes import data_file, lake_on, memory, orders
from tests.thorough import examples

seeds = st.integers(0, 2**32 - 1)
formats = st.sampled_from(["paimon", "iceberg"])


def taken_back(
    states: Sequence[TableState], number: int, head: TableState | None = None
) -> TableState | None:
    """Return what taking back the step to a state of a life gives at its end."""
    last, past = head or states[-1], past_of(states)
    found = plan_transaction_undo(states[number - 1], states[number], last, past)
    return state_after_changes(last, found.migration.changes, past) if found.is_possible else None


@settings(deadline=None, max_examples=examples(40))
@given(seed=seeds, declared=formats)
def test_undoing_the_newest_change_gives_the_schema_before(seed: int, declared: str) -> None:
    states = random_life(seed, formats=declared, steps=12)

    reached = taken_back(states, len(states) - 1)

    if reached is not None:
        assert reached.schema.fields == states[-2].schema.fields
        assert not plan_migration(reached, states[-2]).changes


@pytest.mark.parametrize("declared", ["paimon", "iceberg"])
def test_a_drop_is_always_undone(declared: str) -> None:
    """A lone drop that comes last: the column is back under its ids, where it was."""
    drops = 0
    for seed in range(40):
        states = random_life(seed, formats=declared, steps=6)
        schema = states[-1].schema
        path = random.Random(seed).choice(list(paths(schema.fields)))
        try:
            states.append(state_after_changes(states[-1], [DropColumn(path)]))
        except InvalidInputError:
            continue
        reached = taken_back(states, len(states) - 1)
        assert reached is not None
        assert reached.schema.fields == schema.fields
        assert reached.schema.options == schema.options
        drops += 1
    assert drops > 10


@settings(deadline=None, max_examples=examples(40))
@given(seed=seeds, declared=formats, data=st.data())
def test_undoing_an_undo_gives_the_schema_back(
    seed: int, declared: str, data: st.DataObject
) -> None:
    states = random_life(seed, formats=declared)
    number = data.draw(st.integers(1, len(states) - 1))
    head = states[-1]
    reached = taken_back(states, number)
    if reached is None:
        return

    lived = [*states, reached]
    again = plan_transaction_undo(head, reached, reached, past_of(lived))

    if again.is_possible:
        back = state_after_changes(reached, again.migration.changes, past_of(lived))
        assert back.schema.fields == head.schema.fields
        assert back.schema.options == head.schema.options
    else:
        # What was taken back may be nothing that rules allow forwards: a narrower type, a key.
        assert any(each in again.reasons[0] for each in ("cannot", "no changes lead to"))
        assert "was dropped" not in again.reasons[0]


@settings(deadline=None, max_examples=examples(40))
@given(seed=seeds, declared=formats, data=st.data())
def test_undoing_keeps_every_column_that_the_change_did_not_touch(
    seed: int, declared: str, data: st.DataObject
) -> None:
    states = random_life(seed, formats=declared)
    number = data.draw(st.integers(1, len(states) - 1))
    before, after, head = states[number - 1], states[number], states[-1]
    reached = taken_back(states, number)
    if reached is None:
        return
    one, two = ({each.id: each for each in s.schema.fields} for s in (before, after))
    now = {each.id: each for each in reached.schema.fields}

    for column in head.schema.fields:
        if one.get(column.id) == two.get(column.id):
            assert now[column.id] == column


@settings(deadline=None, max_examples=examples(40))
@given(seed=seeds, declared=formats, data=st.data())
def test_restoring_an_instant_gives_its_schema_or_says_why_not(
    seed: int, declared: str, data: st.DataObject
) -> None:
    states = random_life(seed, formats=declared, steps=12)
    then = states[data.draw(st.integers(0, len(states) - 1))]
    found = plan_state_restore(then, states[-1], past_of(states))

    if found.is_possible:
        reached = state_after_changes(states[-1], found.migration.changes, past_of(states))
        assert reached.schema.fields == then.schema.fields
        assert reached.schema.options == then.schema.options
    else:
        assert found.reasons[0]


def test_a_rename_is_undone_under_changes_that_came_later() -> None:
    before = first_state()
    after = state_after_changes(before, [RenameColumn(("price",), "cost")])
    head = state_after_changes(
        after, [UpdateColumnComment(("cost",), "in cents"), AddColumn(("new",), "INT")]
    )

    reached = taken_back([before, after], 1, head)

    assert reached is not None
    assert reached.schema.field("price").description == "in cents"
    assert "new" in reached.schema.names
    assert reached.schema.options["sequence.field"] == "price"


@pytest.mark.parametrize(
    ("change", "later", "reason"),
    [
        (
            RenameColumn(("price",), "cost"),
            RenameColumn(("cost",), "amount"),
            "the name of column amount was changed again since",
        ),
        (
            AddColumn(("new",), "INT"),
            UpdateColumnComment(("new",), "mine"),
            "column new, which it added, was changed since",
        ),
        (
            RenameColumn(("point",), "place"),
            AddColumn(("point",), "INT"),
            "the name point belongs to another column by now",
        ),
        (
            DropColumn(("point",)),
            AddColumn(("x",), "INT"),
            "column point (id 3) was dropped: the columns that the table had are unknown",
        ),
    ],
)
def test_an_impossible_undo_raises_with_the_reason(
    change: object, later: object, reason: str
) -> None:
    before = first_state()
    after = state_after_changes(before, [change])  # type: ignore[list-item]  # one of several kinds
    head = state_after_changes(after, [later])  # type: ignore[list-item]  # one of several kinds

    found = plan_transaction_undo(before, after, head)

    assert not found.is_possible
    assert reason in found.reasons[0]


def test_undoing_a_drop_brings_the_column_back_and_its_undoing_drops_it_again() -> None:
    table = orders(lake_on(memory()))
    before = table.state.schema
    table.append([data_file("1.parquet")])
    table.alter([DropColumn(("amount",))], author="eve")
    table.alter([AddColumn(("note",), "STRING")])
    dropped = table.state.version - 1

    plan = table.plan_undo(dropped)
    assert plan.is_possible
    table.undo(dropped)
    assert table.state.schema.field("amount") == before.field("amount")
    assert "note" in table.state.schema.names

    table.undo(table.state.version)
    assert "amount" not in table.state.schema.names
    table.restore(1)
    assert table.state.schema.fields == before.fields


def test_a_diff_across_a_drop_is_a_migration_that_keeps_ids() -> None:
    table = orders(lake_on(memory()))
    table.alter([DropColumn(("amount",)), AddColumn(("note",), "STRING")])

    plain = table.diff(table.state.version, 0).to_json()
    assert {"type": "undropColumn", "fieldNames": ["amount"], "fieldId": 2} in [
        {key: value for key, value in each.items() if key != "move"} for each in plain
    ]
    table.alter(plain)

    assert table.state.schema.fields == table.at(version=0).schema.fields
    assert not table.diff(0).changes
