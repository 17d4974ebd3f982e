"""Blame names exactly the facts whose removal would change the column."""

from __future__ import annotations

import random
from pathlib import Path

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import (
    AddColumn,
    ColumnNotFoundError,
    DataField,
    DropColumn,
    InvalidInputError,
    RemoveOption,
    RenameColumn,
    SetOption,
    Table,
    UndropColumn,
    UpdateColumnType,
)
from ledger.audit.blame import blame_column, blame_columns, blame_settings, flatten_blames
from ledger.audit.column_history import ColumnHistories, RequestedHistories
from ledger.audit.column_history import column_histories as read_histories
from ledger.events import ColumnAdded, ColumnUndropped, SchemaEvent, TableEvent
from ledger.events.schema import ColumnNullabilityUpdated, ColumnTypeUpdated
from ledger.log import Codec
from ledger.model import paths_of as paths_of_schema
from ledger.model import type_from_wire, type_to_wire
from ledger.model.types import ArrayType, IntType, RowType, walk_fields, walk_ids
from ledger.state import SchemaBuilder, TableBuilder
from ledger.table_handle import handle_of
from tests.audit.lives import random_changes
from tests.audit.removal import ContradictionError, Step, paths_of, without
from tests.histories import start_schema
from tests.lakes import data_file, lake_on, memory, orders
from tests.thorough import examples

seeds = st.integers(0, 2**32 - 1)


def random_table(seed: int, formats: str, steps: int) -> Table:
    rng = random.Random(seed)
    schema = start_schema()
    options = {"ledger.formats": formats}
    if formats == "paimon":
        options |= schema.options
    table = orders(lake_on(memory()), attrs.evolve(schema, options=options))
    for _ in range(steps):
        try:
            table.alter(random_changes(rng, table.state))
        except InvalidInputError:
            continue
    return table


def steps_of(table: Table) -> tuple[list[Step], list[object]]:
    """Return every fact about columns after the creation, with what it met."""
    builder = SchemaBuilder(table.at(version=0).schema)
    steps: list[Step] = []
    for commit in table.events(1):
        for transaction in commit.transactions:
            for fact in transaction.events:
                if isinstance(fact, SchemaEvent):
                    steps.append(Step(fact, paths_of(tuple(builder.columns.values()))))
                    builder.apply(fact)
    return steps, [each.fact for each in steps]


def undone_by_their_own_transaction(table: Table) -> set[int]:
    """Return the facts that a later one of the same transaction may undo: only that one counts."""
    found: set[int] = set()
    start = 0
    for commit in table.events(1):
        for transaction in commit.transactions:
            mine = [each for each in transaction.events if isinstance(each, SchemaEvent)]
            typed = [
                (start + place, each.field_id)
                for place, each in enumerate(mine)
                if isinstance(each, ColumnTypeUpdated | ColumnNullabilityUpdated)
            ]
            ids = [field_id for _, field_id in typed]
            found |= {place for place, field_id in typed if ids.count(field_id) > 1}
            start += len(mine)
    return found


EVERYTHING = RequestedHistories(newest=10**6)


def column_histories(table: Table, asked: RequestedHistories = EVERYTHING) -> ColumnHistories:
    return read_histories(handle_of(table).log, table.state.version, asked)


def by_id(fields: tuple[DataField, ...]) -> dict[int, DataField]:
    return {each.id: each for each in walk_fields(fields)}


@settings(deadline=None, max_examples=examples(40))
@given(seed=seeds, formats=st.sampled_from(["paimon", "iceberg"]))
def test_blame_names_exactly_the_facts_whose_removal_would_change_the_column(
    seed: int, formats: str
) -> None:
    table = random_table(seed, formats, steps=14)
    start = table.at(version=0).schema
    steps, facts = steps_of(table)
    now = by_id(without(start, steps, None))
    assert now == by_id(table.state.schema.fields)
    differing: dict[int, set[int]] = {each: set() for each in now}
    unsure: set[int] = set()
    for index in range(len(steps)):
        try:
            other = by_id(without(start, steps, index))
        except ContradictionError:
            unsure.add(index)
            continue
        for field_id, column in now.items():
            if other.get(field_id) != column:
                differing[field_id].add(index)

    for blame in flatten_blames(blame_columns(column_histories(table))):
        assert blame.field_id is not None
        named = {
            index
            for index, fact in enumerate(facts)
            for each in blame.causes
            if each.fact == fact and each.version > 0
        }
        same = {i for i, fact in enumerate(facts) if facts.count(fact) > 1}
        # Not said yet: a column came by which another was placed, and is gone by now.
        gone = {
            i for i, e in enumerate(facts) if isinstance(e, ColumnAdded) and e.field_id not in now
        }
        # A column that comes back was created earlier; nothing depends on that event any more.
        back = {
            each
            for fact in facts
            if isinstance(fact, ColumnUndropped)
            for each in (fact.field_id, *walk_ids(type_from_wire(fact.data_type)))
        }
        made = {i for i, e in enumerate(facts) if isinstance(e, ColumnAdded) and e.field_id in back}
        skipped = unsure | same | gone | made | undone_by_their_own_transaction(table)
        assert named - skipped == differing[blame.field_id] - skipped, blame.subject


@settings(deadline=None, max_examples=examples(20))
@given(seed=seeds)
def test_every_column_that_is_there_is_blamed_at_its_path(seed: int) -> None:
    table = random_table(seed, "iceberg", steps=14)

    found = {
        each.field_id: each.path for each in flatten_blames(blame_columns(column_histories(table)))
    }

    assert found == paths_of(table.state.schema.fields)


@settings(deadline=None, max_examples=examples(20))
@given(seed=seeds, data=st.data())
def test_a_log_filtered_by_a_column_finds_exactly_what_diffs_show_for_it(
    seed: int, data: st.DataObject
) -> None:
    table = random_table(seed, "iceberg", steps=12)
    ids = sorted({each.id for s in table.schemas() for each in walk_fields(s.fields)})
    watched = data.draw(st.sampled_from(ids))
    states = [table.at(version=each).schema for each in range(table.state.version + 1)]
    columns = [by_id(each.fields).get(watched) for each in states]
    shown = [
        version
        for version, column in enumerate(columns)
        if column != (columns[version - 1] if version else None)
    ]

    transactions_changing = [
        version
        for version, _ in column_histories(
            table, RequestedHistories(column=watched)
        ).transactions_changing(watched)
    ]

    moved = {
        commit.version
        for commit in table.events()
        for transaction in commit.transactions
        for fact in transaction.events
        if type(fact).__name__ == "ColumnMoved"
    }
    # A swap that a later change of the same commit reverts is logged, and no diff shows it.
    assert set(shown) <= set(transactions_changing)
    assert set(transactions_changing) - moved <= set(shown) | several(table)


def several(table: Table) -> set[int]:
    return {
        commit.version
        for commit in table.events()
        if sum(len(each.events) for each in commit.transactions) > 1
    }


def test_settings_are_blamed_and_a_dropped_column_is_found_by_its_name() -> None:
    table = orders(lake_on(memory()))
    table.alter([SetOption("k", "1")], author="ann", message="because")
    table.alter([SetOption("k", "2")], author="bob")
    for author in ("ann", "bob"):
        table.alter([SetOption("twice", "1")], author=author)
    table.alter([RenameColumn(("amount",), "total")])
    table.alter([DropColumn(("total",))], author="eve")
    lives = column_histories(table, RequestedHistories(path=("amount",)))

    found = {each.subject: each for each in blame_settings(lives)}
    assert [(c.author, c.version) for c in found["option k"].causes] == [("bob", 2)]
    # Without either of the two it would be the same.
    assert found["option twice"].causes == ()
    assert [each.repeats for each in found["option twice"].origins] == [1]
    gone = blame_column(lives, ("amount",))
    assert gone.died is not None
    assert gone.died.author == "eve"
    with pytest.raises(ColumnNotFoundError, match="was ever called nope"):
        blame_column(lives, ("nope",))


def test_of_columns_that_had_one_name_the_one_that_is_there_is_found() -> None:
    table = orders(lake_on(memory()))
    table.alter([AddColumn(("note",), "INT")], author="ann")
    table.alter([DropColumn(("note",))], author="ann")
    table.alter([AddColumn(("note",), "STRING")], author="bob")

    found = blame_column(column_histories(table, RequestedHistories(path=("note",))), ("note",))

    assert found.died is None
    assert found.origins[0].cause.author == "bob"


def test_what_was_inside_a_column_goes_with_its_type() -> None:
    table = orders(lake_on(memory()))
    table.alter([SetOption("ledger.formats", "paimon")])
    table.alter([AddColumn(("tags",), type_to_wire(ArrayType(IntType())))], author="ann")
    table.alter([UpdateColumnType(("tags", "element"), "BIGINT")], author="bob")
    table.alter([UpdateColumnType(("tags",), "STRING")], author="eve")

    life = column_histories(table).by_id[table.state.schema.field("tags").id]
    assert [key for key in life.aspects if "element" in key] == []
    blamed = blame_column(column_histories(table), ("tags",))
    assert {each.author for each in blamed.causes} == {"ann", "eve"}


@pytest.mark.parametrize("inside", [(), ("deep",)])
def test_whatever_changes_a_columns_type_touches_it_and_what_it_is_in(
    inside: tuple[str, ...],
) -> None:
    table = orders(lake_on(memory()))
    table.alter([SetOption("ledger.formats", "paimon")])
    if inside:
        table.alter([AddColumn(inside, type_to_wire(RowType(())))])
    path = (*inside, "n")
    created = table.alter([AddColumn(path, "INT")]).version
    # The second one changes nothing.
    types = ("BIGINT", "BIGINT", "DECIMAL(20, 0)", "STRING")
    changes = [UpdateColumnType(path, each, keep_nullability=True) for each in types]
    wider, _, exact, text = (table.alter([each]).version for each in changes)

    for column in {path, path[:1]}:
        transactions_changing = [each.version for each in table.entries(column=column)]
        assert transactions_changing[: transactions_changing.index(created) + 1] == [
            text,
            exact,
            wider,
            created,
        ]


def test_blame_of_a_table_imported_from_iceberg_follows_columns_that_return() -> None:
    codec: Codec[TableEvent] = Codec(TableEvent)
    lines = (Path(__file__).parents[1] / "data/born/commits.jsonl").read_bytes().splitlines()
    commits = [codec.decode(each, "a line") for each in lines]
    lives, builder = ColumnHistories(RequestedHistories()), TableBuilder()
    for commit in commits:
        lives.take([commit])
        builder.commit(commit)

        now = paths_of(builder.freeze().schema.fields)
        assert {each.field_id: each.path for each in flatten_blames(blame_columns(lives))} == now

    settings_ = {each.subject: each.origins[0].value for each in blame_settings(lives)}
    assert settings_["ref main"] == "branch at snapshot 7000000000000000001"
    assert settings_["option owner"] == "ann"


def test_a_restored_member_has_its_whole_history_when_only_its_struct_is_requested() -> None:
    table = orders(lake_on(memory()), attrs.evolve(start_schema(), options={}))
    table.alter([DropColumn(("point", "p"))])
    table.alter([UndropColumn(("point", "p"))])
    table.alter([RenameColumn(("point",), "place")])

    lives = column_histories(table, RequestedHistories(path=("point",)))
    (member,) = (
        each for each in blame_column(lives, ("point",)).members if each.subject.endswith(".p")
    )

    assert [each.version for each in member.causes] == [0, 2]
    assert [each.cause.version for each in member.origins if each.aspect == "created"] == [0]


def test_a_column_that_was_restored_before_it_got_a_name_has_its_whole_history_by_it() -> None:
    table = orders(lake_on(memory()), attrs.evolve(start_schema(), options={}))
    table.alter([DropColumn(("price",))])
    table.alter([UndropColumn(("price",))])
    table.alter([RenameColumn(("price",), "cost")])
    table.alter([DropColumn(("cost",))])

    lives = column_histories(table, RequestedHistories(path=("cost",)))

    assert [each.version for each in blame_column(lives, ("cost",)).causes] == [0, 2, 3, 4]


@settings(deadline=None, max_examples=examples(30))
@given(seed=seeds, formats=st.sampled_from(["iceberg", "paimon"]), data=st.data())
def test_only_unrequested_parts_of_a_log_are_dropped_from_memory(
    seed: int, formats: str, data: st.DataObject
) -> None:
    table = random_table(seed, formats, steps=25)
    whole = column_histories(table)
    there = frozenset(key for _, key in paths_of_schema(table.state.schema))

    few = column_histories(table, RequestedHistories(ids=there))
    assert list(flatten_blames(blame_columns(few))) == list(flatten_blames(blame_columns(whole)))
    assert set(few.by_id) <= there
    assert column_histories(table, RequestedHistories(newest=2)).count == len(whole.by_id)

    # Every path that could ever be read leads to the column of the whole that it led to.
    paths = {path for each in table.schemas() for path, _ in paths_of_schema(each)}
    path = data.draw(st.sampled_from(sorted(paths)))
    one, other = (
        column_histories(table, RequestedHistories(path=path, newest=newest))
        for newest in (0, 10**6)
    )
    if other.find(path) is not None:
        assert blame_column(one, path) == blame_column(other, path)
    for field_id in whole.by_id:
        asked = RequestedHistories(column=field_id)
        narrow, wide = (
            column_histories(table, asked),
            column_histories(table, attrs.evolve(asked, newest=10**6)),
        )
        assert narrow.transactions_changing(field_id) == wide.transactions_changing(field_id)


def test_a_column_asked_for_by_a_later_name_has_its_older_transactions() -> None:
    table = orders(lake_on(memory()))
    name = table.schema.names[0]
    field_id = table.schema.field(name).id
    table.alter([RenameColumn((name,), "later")])
    found = column_histories(table, RequestedHistories(path=("later",))).find(("later",))
    assert found is not None
    again = column_histories(table, RequestedHistories(column=field_id))
    assert [version for version, _ in again.transactions_changing(field_id)] == [0, 1]


def test_what_is_kept_of_a_log_goes_with_the_columns_not_with_the_changes() -> None:
    """Columns that come, are renamed, and go; options and tags that are set and taken away."""
    table = orders(lake_on(memory()))
    table.append([data_file("a.parquet")])

    def churn(times: int) -> tuple[int, ...]:
        for _ in range(times):
            at = table.state.version
            table.alter([AddColumn((f"c{at}",), "INT"), RenameColumn(("amount",), f"a{at}")])
            table.alter([DropColumn((f"c{at}",)), RenameColumn((f"a{at}",), "amount")])
            table.create_tag(f"t{at}")
            table.delete_tag(f"t{at}")
            table.alter([SetOption(f"k{at}", "1")])
            table.alter([RemoveOption(f"k{at}")])
        ids = frozenset(key for _, key in paths_of_schema(table.state.schema))
        sizes = []
        for asked in (
            RequestedHistories(ids=ids),
            RequestedHistories(path=("c1",)),
            RequestedHistories(ids=ids, newest=20),
        ):
            lives = column_histories(table, asked)
            names = sum(len(each.names) for each in lives.by_id.values())
            sizes += [len(lives.by_id), names, len(lives.settings)]
        return tuple(sizes)

    assert churn(30) == churn(60)
