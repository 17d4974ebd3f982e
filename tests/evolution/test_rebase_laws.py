"""Laws of two writers: what the second asks has its effect on the columns that it meant."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from ledger import (
    AddColumn,
    CommitConflictError,
    DataField,
    DropColumn,
    InvalidInputError,
    LedgerError,
    Move,
    RemoveOption,
    RenameColumn,
    Schema,
    SchemaChange,
    SetOption,
    Table,
    UpdateColumnComment,
    UpdateColumnPosition,
    UpdateColumnType,
)
from ledger.decide import Decision, decide_schema
from ledger.decide.table_options import COLUMN_OPTIONS, ColumnNames, split_option_columns
from ledger.model import parse_type, type_to_wire
from ledger.model import types as t
from ledger.model.types import ArrayType, DataType, RowType, walk_fields
from ledger.state import Rules
from tests.lakes import lake_on, memory, orders
from tests.thorough import examples

INT = parse_type("INT")
ROW = RowType((DataField(0, "x", INT), DataField(1, "y", INT)))
COLUMNS: dict[str, str | DataType] = {
    "id": "INT NOT NULL",
    "a": "INT",
    "b": "INT",
    "c": "INT",
    "s": ROW,
    "r": ArrayType(ROW),
}
KEYED = Schema.of(COLUMNS, primary_keys=["id"], options={"bucket": "1", "ledger.formats": "paimon"})
PLAIN = Schema.of(COLUMNS, options={"ledger.formats": "paimon"})
LAKE = Schema.of(COLUMNS, options={"ledger.formats": "iceberg"})

NAMES = st.sampled_from("abcdtuv")
PATHS = st.one_of(
    NAMES.map(lambda name: (name,)),
    st.sampled_from([("s",), ("s", "x"), ("s", "y"), ("s", "t"), ("r", "element", "x")]),
)
LISTS = st.lists(NAMES, min_size=1, max_size=2, unique=True).map(",".join)
NAMING = st.one_of(
    st.tuples(
        st.sampled_from(
            ["sequence.field", "clustering.columns", "primary-key", "partition", "bucket-key"]
        ),
        LISTS,
    ),
    st.tuples(st.just("record-level.time-field"), NAMES),
    st.tuples(NAMES.map(lambda name: f"fields.{name}.ignore-retract"), st.just("true")),
    st.tuples(NAMES.map(lambda name: f"fields.{name}.sequence-group"), LISTS),
    st.tuples(NAMES.map(lambda name: f"file-index.bitmap.{name}.items"), st.just("1")),
    st.tuples(st.just("file-index.bitmap.columns"), LISTS),
    st.tuples(
        PATHS.map(lambda path: f"write.metadata.metrics.column.{'.'.join(path)}"), st.just("full")
    ),
    st.tuples(st.just("fields.r.nested-key"), st.sampled_from(["x", "y", "x,y"])),
)
OPTIONS: st.SearchStrategy[SchemaChange] = NAMING.map(lambda pair: SetOption(*pair))
REMOVALS: st.SearchStrategy[SchemaChange] = NAMING.map(lambda pair: RemoveOption(pair[0]))
EDITS: st.SearchStrategy[SchemaChange] = st.one_of(
    st.builds(RenameColumn, PATHS, NAMES),
    st.builds(DropColumn, PATHS),
    st.builds(AddColumn, PATHS, st.sampled_from(["INT", "STRING"])),
    st.builds(lambda path: UpdateColumnType(path, "BIGINT"), PATHS),
    st.builds(UpdateColumnComment, PATHS, st.sampled_from(["p", "q"])),
    st.builds(lambda name, near: UpdateColumnPosition(Move(name, "AFTER", near)), NAMES, NAMES),
    st.just(AddColumn(("t",), type_to_wire(ROW))),
)
SWAPS = st.permutations("abc").map(
    lambda names: [
        RenameColumn((names[0],), "tmp"),
        RenameColumn((names[1],), names[0]),
        RenameColumn(("tmp",), names[1]),
    ]
)
REPLACED = NAMES.map(lambda name: [DropColumn((name,)), AddColumn((name,), "INT")])
THEIRS = st.one_of(SWAPS, REPLACED, st.lists(st.one_of(EDITS, OPTIONS), min_size=1, max_size=4))
MINE = st.lists(st.one_of(OPTIONS, REMOVALS, EDITS), min_size=1, max_size=4)


def decided(schema: Schema, changes: list[SchemaChange]) -> Decision:
    """Decide a batch, or say that hypothesis shall look for another."""
    rules = Rules.of(schema.options)
    try:
        return decide_schema(schema, changes, has_snapshots=False, rules=rules)
    except InvalidInputError:
        assume(condition=False)
        raise


def by_id(schema: Schema) -> dict[int, DataField]:
    return {each.id: each for each in walk_fields(schema.fields)}


def touched(events: Iterable[object], highest: int) -> set[int]:
    """The columns up to an id that some facts are about."""
    ids = (getattr(each, "field_id", -1) for each in events)
    return {each for each in ids if 0 <= each <= highest}


def meaning(schema: Schema) -> dict[str, str]:
    """Options that name columns, with ids for names."""
    lists = {"primary-key": schema.primary_keys, "partition": schema.partition_keys}
    options = dict(schema.options) | {key: ",".join(each) for key, each in lists.items() if each}
    said: dict[str, str] = {}
    for key, value in options.items():
        option = split_option_columns(key, value)
        if option is not None:
            ids = ColumnNames(schema.fields).resolve(option)
            meant, to = option.said(f"#{each}" for each in ids)
            said[meant] = str(to)
    return said


@pytest.mark.parametrize("schema", [KEYED, PLAIN, LAKE], ids=["keyed", "plain", "lake"])
# Most drawn changes are rejected on these columns; the others are drawn in full number.
@settings(
    max_examples=examples(100),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
@given(theirs=THEIRS, mine=MINE)
def test_a_rebased_commit_is_about_the_columns_that_were_meant(
    schema: Schema, theirs: list[SchemaChange], mine: list[SchemaChange]
) -> None:
    alone, between = decided(schema, mine), decided(schema, theirs)
    store = memory()
    first = orders(lake_on(store), schema)
    second = lake_on(store).table("shop.orders")
    assert second.state.schema.fields == schema.fields
    try:
        first.alter(theirs)
    except InvalidInputError:
        assume(condition=False)
    try:
        after = second.alter(mine).state.schema
    except LedgerError:
        return
    highest = schema.highest_field_id
    events = [each for commit in second.events(2) for each in commit.transactions[-1].events]

    assert touched(events, highest) <= touched([*alone.events], highest)
    new, now = by_id(between.schema), by_id(after)
    for field_id in new.keys() - by_id(schema).keys():
        assert field_id in now
        assert (now[field_id].name, now[field_id].type.root) == (
            new[field_id].name,
            new[field_id].type.root,
        )
    before, wanted, there = meaning(schema), meaning(alone.schema), meaning(after)
    for key, value in wanted.items():
        ids = ids_in(key + value)
        if before.get(key) != value and "" not in ids and all(int(each) <= highest for each in ids):
            assert there.get(key) == value


def ids_in(text: str) -> list[str]:
    """Return the ids in a meaning; empty texts for names of no column."""
    return ["".join(_digits(part)) for part in text.split("#")[1:]]


def _digits(text: str) -> Iterable[str]:
    for each in text:
        if not each.isdigit():
            return
        yield each


def two(columns: dict[str, str], **schema: object) -> tuple[Table, Table]:
    store = memory()
    mine = orders(lake_on(store), Schema.of(columns, **schema))  # type: ignore[arg-type] # as given
    return mine, lake_on(store).table("shop.orders")


OWN: dict[str, list[SchemaChange]] = {
    "dropped": [AddColumn(("x",), "INT"), DropColumn(("x",)), AddColumn(("y",), "INT")],
    "renamed": [AddColumn(("x",), "INT"), RenameColumn(("x",), "y")],
    "re-typed": [AddColumn(("x",), "INT"), UpdateColumnType(("x",), "BIGINT")],
    "moved": [AddColumn(("x",), "INT"), UpdateColumnPosition(Move("x", "FIRST"))],
}


@pytest.mark.parametrize("what", OWN)
def test_a_column_of_somebody_else_never_stands_for_an_own_one_that_is(what: str) -> None:
    mine, theirs = two({"id": "INT"})
    there = theirs.alter([AddColumn(("x",), "INT")]).state.schema

    with pytest.raises(CommitConflictError, match="column x exists already"):
        mine.alter(OWN[what])
    assert mine.at().schema.fields == there.fields


def test_a_comment_of_somebody_elses_column_is_not_written_over() -> None:
    mine, theirs = two({"id": "INT"})
    theirs.alter([AddColumn(("x",), "INT", "a")])
    with pytest.raises(CommitConflictError):
        mine.alter([AddColumn(("x",), "INT", "a"), UpdateColumnComment(("x",), "b")])


def test_a_name_that_a_winner_used_on_the_way_is_free() -> None:
    mine, theirs = two({"id": "INT", "a": "INT", "c": "INT"})
    theirs.alter(
        [RenameColumn(("a",), "tmp"), RenameColumn(("c",), "a"), RenameColumn(("tmp",), "c")]
    )
    theirs.alter([AddColumn(("n",), "INT"), DropColumn(("n",))])
    done = mine.alter([AddColumn(("tmp",), "INT"), AddColumn(("n",), "STRING")]).state.schema

    assert done.names == ("id", "c", "a", "tmp", "n")


def test_two_writers_that_mean_one_column_by_its_old_and_its_new_name_agree() -> None:
    mine, theirs = two({"id": "INT", "a": "INT", "c": "INT"}, options={"ledger.formats": "paimon"})
    theirs.alter([RenameColumn(("a",), "b"), SetOption("clustering.columns", "b")])
    assert mine.alter([SetOption("clustering.columns", "a")]).state.schema.options[
        "clustering.columns"
    ] == ("b")


def test_two_writers_that_mean_two_columns_by_one_name_conflict() -> None:
    mine, theirs = two({"id": "INT", "a": "INT", "c": "INT"}, options={"ledger.formats": "paimon"})
    swap = [RenameColumn(("a",), "t"), RenameColumn(("c",), "a"), RenameColumn(("t",), "c")]
    theirs.alter([*swap, SetOption("clustering.columns", "a")], author="ann")

    message = r"^option clustering.columns was changed by ann in version 1 \(.*Z\) to 'a', and you "
    with pytest.raises(CommitConflictError, match=message + "asked for 'c'"):
        mine.alter([SetOption("clustering.columns", "a")])


def test_an_option_whose_column_was_replaced_is_a_conflict() -> None:
    mine, theirs = two({"id": "INT", "a": "INT"}, options={"ledger.formats": "paimon"})
    theirs.alter([DropColumn(("a",)), AddColumn(("a",), "INT")], author="ann")
    with pytest.raises(CommitConflictError, match=r"column a \(id 1\) was dropped by ann"):
        mine.alter([SetOption("write.metadata.metrics.column.a", "full")])


def test_every_row_of_the_table_takes_its_own_examples_apart() -> None:
    for row in COLUMN_OPTIONS:
        key = row.key.replace("{columns}", "a").replace("{column}", "a").replace("{path}", "a.x")
        key = key.replace("**", "some.thing").replace("*", "bitmap")
        option = split_option_columns(key, "a")
        assert option is not None
        assert option.mentions
        texts = [each.text for each in option.mentions]
        assert option.said(texts) == (key, "a")


def test_a_taken_name_is_attributed_to_the_commit_that_holds_it_now() -> None:
    mine, theirs = two({"id": "INT", "a": "INT"})
    theirs.alter([RenameColumn(("a",), "n")], author="ann")
    theirs.alter([RenameColumn(("n",), "m")], author="bob")
    theirs.alter([AddColumn(("n",), "STRING")], author="carol")

    with pytest.raises(CommitConflictError, match="^the name n was changed by carol in version 3"):
        mine.alter([AddColumn(("n",), "INT")])


@pytest.mark.parametrize(
    ("key", "value", "named"),
    [
        ("fields.items.nested-key", "y", (0, 2)),
        ("fields.items.nested-key", "items", (0, None)),
        ("write.metadata.metrics.column.items.element.x", "none", (1,)),
        ("write.metadata.metrics.column.y", "none", (None,)),
    ],
)
def test_an_option_names_what_is_nested_by_its_column(
    key: str, value: str, named: tuple[int | None, ...]
) -> None:
    inner = t.RowType((t.DataField(1, "x", t.IntType()), t.DataField(2, "y", t.IntType())))
    names = ColumnNames((t.DataField(0, "items", t.ArrayType(inner)),))

    said = split_option_columns(key, value)
    assert said is not None
    assert names.resolve(said) == named
