"""The laws of the audit over tables that Iceberg's own library made, and that were imported.

Nested columns, swaps of names, drops, and older schemas that are made current again.
"""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable
from pathlib import Path

import attrs
import msgspec
import pytest
from pyiceberg.schema import Schema
from pyiceberg.table import Table as IcebergTable
from pyiceberg.table.update import SetCurrentSchemaUpdate
from pyiceberg.types import (
    IntegerType,
    ListType,
    LongType,
    NestedField,
    PrimitiveType,
    StringType,
    StructType,
)

import ledger
from ledger import DataField, Table
from ledger.audit.blame import blame_columns, flatten_blames
from ledger.audit.column_history import RequestedHistories, column_histories
from ledger.audit.entries import EntryFilter, entries
from ledger.audit.migration import Migration, plan_migration, state_after_changes
from ledger.audit.undo import plan_state_restore, plan_transaction_undo
from ledger.decide import as_table_change
from ledger.model.types import walk_fields
from ledger.state import PastColumns, TableState
from ledger.table_handle import handle_of
from tests.audit.lives import past_of
from tests.projections.iceberg.importing.writing import created

SEEDS = range(6)
STEPS = 14
COLUMNS = Schema(
    NestedField(1, "id", LongType(), required=False),
    NestedField(2, "name", StringType(), required=False),
    NestedField(
        3,
        "address",
        StructType(
            NestedField(5, "zip", IntegerType(), required=False),
            NestedField(6, "city", StringType(), required=False),
        ),
        required=False,
    ),
    NestedField(4, "tags", ListType(7, StringType(), element_required=False), required=False),
)


def paths(table: IcebergTable) -> list[tuple[str, ...]]:
    return [
        tuple(name.split("."))
        for name in table.schema()._name_to_id
        if "element" not in name and name != "id"
    ]


def change(table: IcebergTable, rng: random.Random) -> None:
    known = paths(table)
    path = rng.choice(known) if known else ("id",)
    unused = f"c{table.metadata.last_column_id + 1}"
    match rng.randrange(8):
        case 0:
            around = path[:1] if len(path) > 1 and rng.randrange(2) else ()
            with table.update_schema() as update:
                update.add_column((*around, unused), IntegerType(), doc=rng.choice((None, "d")))
        case 1:
            inner = StructType(NestedField(99, "x", IntegerType(), required=False))
            with table.update_schema() as update:
                update.add_column(unused, inner)
        case 2:
            with table.update_schema() as update:
                update.rename_column(path, f"{path[-1]}r")
        case 3 if len(known) > 2:
            with table.update_schema() as update:
                update.delete_column(path)
        case 4:
            with table.update_schema() as update:
                update.move_first(path)
        case 5:
            found = table.schema().find_field(".".join(path))
            if isinstance(found.field_type, PrimitiveType):
                with table.update_schema() as update:
                    update.update_column(path, doc=f"about {rng.randrange(3)}")
        case 6:
            swap(table, rng)
        case _:
            chosen = rng.choice(table.metadata.schemas).schema_id
            if chosen != table.metadata.current_schema_id:
                back = SetCurrentSchemaUpdate.model_validate({"schema-id": chosen})
                table.catalog.commit_table(table, (), (back,))
                table.refresh()


def swap(table: IcebergTable, rng: random.Random) -> None:
    """Give two columns one another's names, by way of a third."""
    names = [each.name for each in table.schema().fields if each.name != "id"]
    if len(names) > 1:
        one, two = rng.sample(names, 2)
        for old, new in ((one, "between"), (two, one), ("between", two)):
            with table.update_schema() as update:
                update.rename_column(old, new)


ColumnHistory = tuple[Table, tuple[TableState, ...]]
"""An imported table, and its state at each version."""


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], ColumnHistory]:
    """Give a function that returns the life of a seed."""
    return functools.cache(lambda seed: taken_over(tmp_path_factory.mktemp("theirs"), seed))


def taken_over(folder: Path, seed: int) -> ColumnHistory:
    theirs, rng = created(folder / "theirs", COLUMNS), random.Random(seed)
    for _ in range(STEPS):
        change(theirs, rng)
    lake = ledger.open(f"memory://imported-laws-{seed}", allowed_locations=[str(folder)])
    lake.import_table("a.b", theirs.metadata_location)
    table = lake.table("a.b")
    newest = table.state.version
    return table, tuple(table.at(version=each).state for each in range(newest + 1))


def by_id(fields: tuple[DataField, ...]) -> dict[int, DataField]:
    return {each.id: each for each in walk_fields(fields)}


def applied(state: TableState, migration: Migration, past: PastColumns) -> TableState:
    for batch in migration.batches:
        plain = json.loads(msgspec.json.encode(batch))
        state = state_after_changes(state, [as_table_change(each) for each in plain], past)
    return state


def shape(state: TableState) -> tuple[DataField, ...]:
    return state.schema.fields


@pytest.mark.parametrize("seed", SEEDS)
def test_a_log_filtered_by_a_column_finds_exactly_what_diffs_show_for_it(
    life: Callable[[int], ColumnHistory], seed: int
) -> None:
    table, states = life(seed)
    columns = [by_id(shape(each)) for each in states]
    for watched in sorted({key for each in columns for key in each}):
        found = entries(handle_of(table).log, "a.b", EntryFilter(column_id=watched))
        shown = [
            version
            for version, at in enumerate(columns)
            if at.get(watched) != (columns[version - 1].get(watched) if version else None)
        ]
        # Where a column stands among others no diff of the column itself shows.
        touched = sorted({each.version for each in found})
        moved = {v for v in touched if v and order(states[v]) != order(states[v - 1])}
        assert set(shown) <= set(touched)
        assert set(touched) - moved <= set(shown)


def order(state: TableState) -> list[int]:
    return [each.id for each in walk_fields(shape(state))]


@pytest.mark.parametrize("seed", SEEDS)
def test_blame_names_the_current_state_and_the_version_since_which_it_holds(
    life: Callable[[int], ColumnHistory], seed: int
) -> None:
    table, states = life(seed)
    now = by_id(shape(states[-1]))
    blamed = [
        *flatten_blames(
            blame_columns(
                column_histories(handle_of(table).log, len(states) - 1, RequestedHistories())
            )
        )
    ]
    assert {each.field_id for each in blamed} == set(now)
    for blame in blamed:
        assert blame.field_id is not None
        for origin in blame.origins:
            said = [aspect_of(each, blame.field_id, origin.aspect) for each in states]
            if said[-1] is not UNSAID:
                since = origin.cause.version
                assert all(each == said[-1] for each in said[since:])
                assert since == 0 or said[since - 1] != said[-1]


UNSAID = object()


def aspect_of(state: TableState, field_id: int, aspect: str) -> object:
    """Return what a state says of one aspect of a column; None where there is no such column."""
    column = by_id(shape(state)).get(field_id)
    values = {"name": "name", "comment": "description"}
    if aspect not in values:
        return UNSAID
    return "gone" if column is None else getattr(column, values[aspect])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_diff_applied_to_one_instant_gives_the_other_ids_included(
    life: Callable[[int], ColumnHistory], seed: int
) -> None:
    _, states = life(seed)
    rng, reached = random.Random(seed), 0
    for _ in range(12):
        one, two = sorted(rng.sample(range(len(states)), 2))
        for before, after in ((states[one], states[two]), (states[two], states[one])):
            # A later instant's columns are no past of an earlier one.
            past = past_of(states[: two + 1] if before is states[two] else states[: one + 1])
            migration = plan_migration(before, after, past)
            if migration.refusal is None and not migration.new_ids:
                found = applied(before, migration, past)
                assert shape(found) == shape(after)
                reached += 1
    assert reached > 6


@pytest.mark.parametrize("seed", SEEDS)
def test_restoring_gives_an_instants_schema_and_undoing_an_undo_gives_it_back(
    life: Callable[[int], ColumnHistory], seed: int
) -> None:
    _, states = life(seed)
    head, past, reached = states[-1], past_of(states), 0
    for then in states:
        found = plan_state_restore(then, head, past)
        if found.is_possible:
            assert shape(applied(head, found.migration, past)) == shape(then)
            reached += 1
    assert reached > len(states) / 2
    for number in range(1, len(states)):
        one = plan_transaction_undo(states[number - 1], states[number], head, past)
        if not one.is_possible:
            continue
        back = applied(head, one.migration, past)
        again = plan_transaction_undo(head, back, back, past_of([*states, back]))
        if again.is_possible:
            last = applied(back, again.migration, past_of([*states, back]))
            assert shape(last) == shape(head)
            assert attrs.asdict(last.schema)["options"] == attrs.asdict(head.schema)["options"]
