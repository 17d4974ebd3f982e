"""Order of columns: one batch of changes gives the order that a list of names gives."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import (
    AddColumn,
    DropColumn,
    Move,
    RenameColumn,
    Schema,
    SchemaChange,
    UpdateColumnPosition,
    evolve,
)
from ledger.audit.rename_order import order_renames
from ledger.events.schema import MoveType
from tests.thorough import examples

KINDS: tuple[MoveType, ...] = ("FIRST", "LAST", "AFTER", "BEFORE")


def position(names: list[str], kind: str, reference: str) -> int:
    """Return the place that a move gives among the other names."""
    if kind in {"FIRST", "LAST"}:
        return 0 if kind == "FIRST" else len(names)
    return names.index(reference) + (kind == "AFTER")


@settings(deadline=None, max_examples=examples(200))
@given(data=st.data())
def test_a_batch_orders_columns_as_the_same_changes_of_a_list(data: st.DataObject) -> None:
    names = [f"c{each}" for each in range(data.draw(st.integers(2, 6)))]
    schema = Schema.of(dict.fromkeys(names, "INT"))
    batch: list[SchemaChange] = []
    for number in range(data.draw(st.integers(1, 12))):
        verb = data.draw(st.sampled_from(["add", "append", "move", "drop", "rename"]))
        kind = data.draw(st.sampled_from(KINDS))
        name = data.draw(st.sampled_from(names))
        others = [each for each in names if each != name]
        reference = data.draw(st.sampled_from(others))
        named = reference if kind in {"AFTER", "BEFORE"} else None
        if verb == "add":
            batch.append(AddColumn((f"n{number}",), "INT", None, Move(f"n{number}", kind, named)))
            names.insert(position(names, kind, reference), f"n{number}")
        elif verb == "append":
            batch.append(AddColumn((f"n{number}",), "INT"))
            names.append(f"n{number}")
        elif verb == "move" and (kind, name) not in {("FIRST", names[0]), ("LAST", names[-1])}:
            batch.append(UpdateColumnPosition(Move(name, kind, named)))
            names = others
            names.insert(position(names, kind, reference), name)
        elif verb == "drop" and len(names) > 2:
            batch.append(DropColumn((name,)))
            names = others
        elif verb == "rename" and name in schema.names:
            # Renames of a batch start from names before it, as in Paimon.
            batch.append(RenameColumn((name,), f"r{number}"))
            names[names.index(name)] = f"r{number}"

    after = evolve(schema, batch)

    assert list(after.names) == names
    one_by_one = schema
    for change in batch:
        one_by_one = evolve(one_by_one, [change])
    assert one_by_one.fields == after.fields


@settings(deadline=None, max_examples=examples(200))
@given(data=st.data())
def test_renames_in_order_reach_every_target_without_two_columns_of_one_name(
    data: st.DataObject,
) -> None:
    count = data.draw(st.integers(1, 7))
    names = dict(enumerate(data.draw(st.permutations("abcdefghij"))[:count]))
    targets = data.draw(st.permutations("abcdefghij"))
    wanted = {each: targets[each] for each in names if data.draw(st.booleans())}
    blockers = [
        each for each, name in names.items() if each not in wanted and name in wanted.values()
    ]

    now = dict(names)
    for field_id, name in order_renames(names, wanted, set(wanted.values()), blockers):
        assert name not in now.values()
        now[field_id] = name

    assert {each: now[each] for each in wanted} == wanted
    assert all(now[each] == names[each] for each in names.keys() - wanted.keys() - {*blockers})
