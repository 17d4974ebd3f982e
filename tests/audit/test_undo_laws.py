"""Undoing keeps what came later: laws over random lives."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import AddColumn, DropColumn, RenameColumn, UpdateColumnComment
from ledger.audit.migration import migrate
from ledger.audit.trial import tried
from ledger.audit.undoing import reverted, undone
from ledger.evolution.state import TableState
from ledger.model.types.walk import walk_fields
from tests.audit.lives import first_state, random_life

seeds = st.integers(0, 2**32 - 1)
formats = st.sampled_from(["paimon", "iceberg"])


def taken_back(before: TableState, after: TableState, head: TableState) -> TableState | None:
    found = undone(before, after, head)
    return tried(head, found.migration.changes) if found.is_possible else None


@settings(deadline=None, max_examples=40)
@given(seed=seeds, declared=formats)
def test_undoing_the_newest_change_gives_the_schema_before(seed: int, declared: str) -> None:
    before, after = random_life(seed, formats=declared, steps=12)[-2:]

    reached = taken_back(before, after, after)

    if reached is not None:
        assert not migrate(reached, before).changes


@settings(deadline=None, max_examples=40)
@given(seed=seeds, declared=formats, data=st.data())
def test_undoing_an_undo_gives_the_schema_back(
    seed: int, declared: str, data: st.DataObject
) -> None:
    states = random_life(seed, formats=declared)
    number = data.draw(st.integers(1, len(states) - 1))
    head = states[-1]
    reached = taken_back(states[number - 1], states[number], head)
    if reached is None:
        return

    again = undone(head, reached, reached)

    if again.is_possible:
        assert tried(reached, again.migration.changes).schema.fields == head.schema.fields
    else:
        # What was added by the change was dropped by its undoing, and cannot come back.
        lost = len(ids(head)) > len(ids(reached))
        assert lost or any(each in again.reasons[0] for each in ("cannot", "no changes lead to"))


@settings(deadline=None, max_examples=40)
@given(seed=seeds, declared=formats, data=st.data())
def test_undoing_keeps_every_column_that_the_change_did_not_touch(
    seed: int, declared: str, data: st.DataObject
) -> None:
    states = random_life(seed, formats=declared)
    number = data.draw(st.integers(1, len(states) - 1))
    before, after, head = states[number - 1], states[number], states[-1]
    reached = taken_back(before, after, head)
    if reached is None:
        return
    one, two = ({each.id: each for each in s.schema.fields} for s in (before, after))
    now = {each.id: each for each in reached.schema.fields}

    for column in head.schema.fields:
        if one.get(column.id) == two.get(column.id):
            assert now[column.id] == column


@settings(deadline=None, max_examples=40)
@given(seed=seeds, declared=formats, data=st.data())
def test_reverting_to_an_instant_gives_its_schema_or_says_why_not(
    seed: int, declared: str, data: st.DataObject
) -> None:
    states = random_life(seed, formats=declared, steps=12)
    then = states[data.draw(st.integers(0, len(states) - 1))]
    found = reverted(then, states[-1])

    if found.is_possible:
        reached = tried(states[-1], found.migration.changes)
        assert reached.schema.fields == then.schema.fields
        assert reached.schema.options == then.schema.options
    else:
        assert found.reasons[0]


def ids(state: TableState) -> set[int]:
    return {each.id for each in walk_fields(state.schema.fields)}


def test_a_rename_is_undone_under_changes_that_came_later() -> None:
    before = first_state()
    after = tried(before, [RenameColumn(("price",), "cost")])
    head = tried(after, [UpdateColumnComment(("cost",), "in cents"), AddColumn(("new",), "INT")])

    reached = taken_back(before, after, head)

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
        (DropColumn(("point",)), AddColumn(("x",), "INT"), "column point (id 3) was dropped"),
    ],
)
def test_what_cannot_be_undone_says_why(change: object, later: object, reason: str) -> None:
    before = first_state()
    after = tried(before, [change])  # type: ignore[list-item]  # one of several kinds
    head = tried(after, [later])  # type: ignore[list-item]  # one of several kinds

    found = undone(before, after, head)

    assert not found.is_possible
    assert reason in found.reasons[0]
