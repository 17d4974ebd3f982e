"""Laws of layouts, over random histories of specs, orders, files and columns."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger import InvalidInputError, RenameColumn, Schema, Table
from ledger.decide.table import LayoutIntent
from ledger.model import PartitionSpec
from ledger.state import LayoutTrail, Rules, TableBuilder, TableStream
from ledger.transforms import Term, bucket, day, hour, identity, truncate, void
from ledger.updates import ReplaceOrder, UpdateSpec
from tests.lakes import data_file, lake_on, memory
from tests.thorough import examples

COLUMNS = {"a": "INT", "b": "STRING", "ts": "TIMESTAMP(6)"}
NAMES = (None, None, None, "p", "q", "a", "b")
STREAM = TableStream()


def terms(column: str) -> list[Term]:
    plain = [identity(column), truncate(column, 4), bucket(column, 4), bucket(column, 8)]
    times = [identity(column), day(column), hour(column)]
    return [*(times if column.startswith("t") else plain), void(column)]


def random_term(rng: random.Random, table: Table) -> Term:
    return rng.choice(terms(rng.choice(table.state.schema.names)))


def random_update(rng: random.Random, table: Table) -> UpdateSpec:
    update = table.update_spec()
    names = [each.name for each in table.state.spec.fields]
    for _ in range(rng.randrange(1, 4)):
        match rng.randrange(4 if names else 1):
            case 0 | 1:
                update = update.add_field(random_term(rng, table), rng.choice(NAMES))
            case 2:
                update = update.remove_field(rng.choice(names))
            case _:
                update = update.rename_field(rng.choice(names), rng.choice(["p", "q", "r"]))
    # In version 1 a spec other than the default one takes places that the next one needs.
    may_stand_beside = table.state.schema.options["format-version"] != "1"
    return update.add_non_default_spec() if may_stand_beside and rng.random() < 0.1 else update


def random_order(rng: random.Random, table: Table) -> ReplaceOrder:
    order = table.replace_sort_order()
    for _ in range(rng.randrange(3)):
        order = rng.choice([order.asc, order.desc])(random_term(rng, table))
    return order


def random_table(seed: int, version: int, steps: int = 40) -> Table:
    rng = random.Random(seed)
    lake = lake_on(memory())
    lake.create_database("db")
    options = {"ledger.formats": "iceberg", "format-version": str(version)}
    keys = rng.choice([(), ("b",)])
    table = lake.create_table("db.t", Schema.of(COLUMNS, options=options, partition_keys=keys))
    for number in range(steps):
        try:
            step(rng, table, number)
        except InvalidInputError:
            continue
    return table


def step(rng: random.Random, table: Table, number: int) -> None:
    match rng.randrange(8):
        case 0 | 1 | 2 | 3:
            random_update(rng, table).commit()
        case 4:
            random_order(rng, table).commit()
        case 5:
            column = rng.choice(table.state.schema.names)
            table.alter([RenameColumn((column,), f"{column[0]}{number}")])
        case _:
            spec = rng.choice(table.state.specs)
            values = tuple(None for _ in spec.fields)
            table.append(
                [replace(data_file(f"f{number}.parquet"), spec_id=spec.spec_id, partition=values)]
            )


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("seed", range(12))
def test_an_id_stands_for_one_transform_of_one_column_for_ever(seed: int, version: int) -> None:
    table = random_table(seed, version)
    meanings: dict[int, set[tuple[int, str]]] = {}
    for spec in table.state.specs:
        ids = [each.field_id for each in spec.fields]
        assert len(set(ids)) == len(ids)
        assert len({each.name for each in spec.fields}) == len(ids)
        for each in spec.fields:
            assert each.field_id <= table.state.last_partition_id
            meanings.setdefault(each.field_id, set()).add((each.source_id, each.transform))
    for found in meanings.values():
        # A field that version 1 removed keeps its id, as the void of the same column.
        (source,) = {source for source, _ in found}
        assert len(found - {(source, "void")} if version == 1 else found) <= 1


@pytest.mark.parametrize("seed", range(12))
def test_version_1_numbers_fields_by_their_places(seed: int) -> None:
    for spec in random_table(seed, 1).state.specs:
        ids = [each.field_id for each in spec.fields]
        assert ids == list(range(1000, 1000 + len(ids)))


@pytest.mark.parametrize("seed", range(12))
def test_no_two_specs_and_no_two_orders_are_the_same(seed: int) -> None:
    state = random_table(seed, 2).state
    shapes = [
        tuple((each.source_id, each.name, each.transform) for each in spec.fields)
        for spec in state.specs
    ]
    orders = [order.fields for order in state.sort_orders]

    assert len(set(shapes)) == len(shapes)
    assert len(set(orders)) == len(orders)
    assert [each.spec_id for each in state.specs] == list(range(len(shapes)))
    assert all((each.order_id == 0) == (not each.fields) for each in state.sort_orders)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("seed", range(8))
def test_replaying_the_events_gives_the_same_layout(seed: int, version: int) -> None:
    table = random_table(seed, version)
    commits = list(table.events())
    cut = random.Random(seed).randrange(1, len(commits) + 1)
    prefix = TableBuilder()
    for commit in commits[:cut]:
        prefix.commit(commit)
    rest = TableBuilder(STREAM.decode_state(STREAM.encode_state(prefix.freeze())))
    for commit in commits[cut:]:
        rest.commit(commit)

    assert rest.freeze() == table.state


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("seed", range(8))
def test_every_spec_that_a_file_names_can_be_found_ever_after(seed: int, version: int) -> None:
    table = random_table(seed, version)
    specs: dict[int, PartitionSpec] = {}
    for number in range(table.state.version + 1):
        then = table.at(version=number)
        for spec in then.state.specs:
            assert specs.setdefault(spec.spec_id, spec) == spec
        for file in then.files:
            spec = then.state.spec_by_id(file.spec_id)
            assert len(spec.fields) == len(file.partition)


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1, 2]))
def test_what_apply_promises_is_what_commit_makes(seed: int, version: int) -> None:
    rng = random.Random(seed)
    table = random_table(seed, version, steps=4)
    update = random_update(rng, table)
    try:
        promised = update.apply()
    except InvalidInputError:
        with pytest.raises(InvalidInputError):
            update.commit()
        return

    update.commit()

    state = table.state
    found = state.spec if update.set_default else state.spec_by_id(promised.spec_id)
    assert found == promised


@settings(max_examples=examples(40), deadline=None)
@given(st.integers(0, 10_000))
def test_an_update_that_somebody_made_already_is_done(seed: int) -> None:
    rng = random.Random(seed)
    table = random_table(seed, 2, steps=4)
    state, change = table.state, random_update(rng, table).change
    rules = Rules.of(state.schema.options)
    intent = LayoutIntent([change], state.schema.highest_field_id)
    layout = LayoutTrail.of(state)
    try:
        events = list(intent.decide(layout, state.schema, rules))
    except InvalidInputError:
        return

    assert list(intent.decide(layout, state.schema, rules)) == []
    assert len(events) <= 1
