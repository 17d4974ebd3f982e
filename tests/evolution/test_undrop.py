"""A dropped column is restored with its ids, as it was last, or rejected with the reason."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ledger import (
    AddColumn,
    ColumnExistsError,
    ColumnNotFoundError,
    CommitConflictError,
    DataField,
    DropColumn,
    FileChange,
    FormatError,
    InvalidChangeError,
    InvalidInputError,
    Ledger,
    Move,
    RenameColumn,
    Schema,
    SchemaChange,
    SetOption,
    Table,
    UndropColumn,
    UpdateColumnComment,
    UpdateColumnType,
    evolve,
)
from ledger.model import parse_type
from ledger.model.types import DataType, RowType, walk_fields
from ledger.stores import Store
from ledger.table_handle import handle_of
from tests.histories import paths, random_change, start_schema
from tests.lakes import lake_on, memory, orders
from tests.thorough import examples

ROW = RowType((DataField(0, "a", parse_type("INT")), DataField(1, "b", parse_type("INT"))))
COLUMNS: dict[str, str | DataType] = {"id": "INT NOT NULL", "x": "INT", "y": "INT", "s": ROW}
B: SchemaChange = UndropColumn(("x",))


def table_of(store: Store | None = None, options: dict[str, str] | None = None) -> Table:
    return orders(lake_on(store or memory()), Schema.of(COLUMNS, options=options or {}))


def file(path: str, schema_id: int = 0) -> FileChange:
    return FileChange(
        path=path, record_count=1, file_size_in_bytes=9, field_ids=True, schema_id=schema_id
    )


@pytest.mark.parametrize("path", [("x",), ("s",), ("s", "a"), ("s", "b"), ("y",)])
def test_a_column_comes_back_as_it_was_and_where_it_was(path: tuple[str, ...]) -> None:
    table = table_of()
    table.alter([UpdateColumnComment(path, "why")])
    before = table.state.schema
    table.alter([DropColumn(path)])

    table.alter([UndropColumn(path)])

    assert table.state.schema.fields == before.fields
    assert table.state.schema.highest_field_id == before.highest_field_id
    assert handle_of(table).again().state == table.state


def test_it_comes_back_by_id_under_another_name_and_place() -> None:
    table = table_of()
    table.alter([DropColumn(("x",)), AddColumn(("x",), "STRING")])

    table.alter([UndropColumn(("old",), 1, Move("old", "FIRST"))])
    assert [(each.id, each.name) for each in table.state.schema.fields] == [
        (1, "old"),
        (0, "id"),
        (2, "y"),
        (3, "s"),
        (6, "x"),
    ]

    table.alter([DropColumn(("old",))])
    table.alter([UndropColumn(field_id=1)])
    assert table.state.schema.field("old").id == 1


def test_the_last_of_several_that_had_a_name_comes_back() -> None:
    table = table_of()
    table.alter([DropColumn(("x",))])
    table.alter([AddColumn(("x",), "STRING")])
    table.alter([DropColumn(("x",))])

    table.alter([UndropColumn(("x",))])

    assert table.state.schema.field("x").id == 6


def test_what_is_around_it_may_have_been_renamed() -> None:
    table = table_of()
    table.alter([DropColumn(("s", "a"))])
    table.alter([RenameColumn(("s",), "t")])
    table.alter([UndropColumn(("s", "a"))])
    table.alter([DropColumn(("t", "b"))])
    table.alter([UndropColumn(("t", "b"))])

    (struct,) = (each for each in table.state.schema.fields if each.name == "t")
    assert [each.id for each in walk_fields([struct])] == [3, 4, 5]


def test_a_batch_may_drop_and_bring_back() -> None:
    table = table_of()
    table.alter([DropColumn(("x",)), RenameColumn(("y",), "x"), UndropColumn(("y",), 1)])

    names = {each.id: each.name for each in table.state.schema.fields}
    assert (names[1], names[2]) == ("y", "x")


@pytest.mark.parametrize("formats", ["paimon,iceberg", "iceberg", "paimon", "delta"])
def test_required_it_stays_only_if_no_row_was_written_without_it(formats: str) -> None:
    options = {"ledger.formats": formats}
    columns = {"id": "INT", "b": "INT NOT NULL"}
    table = orders(lake_on(memory()), Schema.of(columns, options=options))
    table.append([file("1.parquet")])
    table.alter([DropColumn(("b",))])
    table.alter([UndropColumn(("b",))])
    assert not table.state.schema.field("b").type.nullable

    table.alter([DropColumn(("b",))])
    table.append([file("2.parquet", table.state.schema.id)])
    table.alter([UndropColumn(("b",))])
    assert table.state.schema.field("b").type.nullable


@pytest.mark.parametrize(
    ("done", "asked", "kind", "said"),
    [
        ([], UndropColumn(("x",)), InvalidChangeError, "column x was not dropped"),
        ([], UndropColumn(field_id=1), InvalidChangeError, "column x (id 1) was not dropped"),
        ([], UndropColumn(), InvalidChangeError, "both missing"),
        ([], UndropColumn(("z",)), ColumnNotFoundError, "no column z was ever dropped"),
        ([], UndropColumn(field_id=77), ColumnNotFoundError, "no column of id 77"),
        (
            [RenameColumn(("x",), "z")],
            UndropColumn(("x",)),
            InvalidChangeError,
            "renamed, not dropped: it is z now",
        ),
        (
            [RenameColumn(("x",), "z"), DropColumn(("z",))],
            UndropColumn(("x",)),
            ColumnNotFoundError,
            "was called z when it was dropped",
        ),
        (
            [DropColumn(("x",)), AddColumn(("x",), "INT")],
            UndropColumn(field_id=1),
            ColumnExistsError,
            "column x exists already",
        ),
        (
            [DropColumn(("s", "a")), DropColumn(("s",))],
            UndropColumn(("s", "a")),
            InvalidChangeError,
            "was inside id 3, which was dropped, too",
        ),
        (
            [DropColumn(("s", "a"))],
            UndropColumn(("a",), 4),
            InvalidChangeError,
            "columns never change their struct; write s.a",
        ),
    ],
)
def test_what_cannot_be_restored_is_reported(
    done: list[SchemaChange], asked: SchemaChange, kind: type[InvalidInputError], said: str
) -> None:
    table = table_of()
    for each in done:
        table.alter([each])
    version = table.state.version

    with pytest.raises(kind) as caught:
        table.alter([asked])

    assert said in str(caught.value)
    assert table.state.version == version


def test_a_schema_alone_does_not_know_what_was_dropped() -> None:
    with pytest.raises(InvalidChangeError, match="a schema has none: use the table"):
        evolve(Schema.of({"a": "INT"}), [UndropColumn(("b",))])


def test_iceberg_refuses_what_files_hold_of_a_type_that_it_cannot_read_as_the_last_one() -> None:
    table = table_of(options={"ledger.formats": "paimon"})
    table.append([file("1.parquet")])
    table.alter([UpdateColumnType(("x",), "STRING")])
    table.alter([DropColumn(("x",))])
    # Nothing of it can be read, so that it does not matter to Iceberg.
    table.alter([SetOption("ledger.formats", "paimon,iceberg")])

    with pytest.raises(FormatError, match="column x from INT to STRING") as caught:
        table.alter([UndropColumn(("x",))])

    assert caught.value.format == "iceberg"
    refused = {each.format for each in table.plan([UndropColumn(("x",))]).verdicts if each.refusals}
    assert refused == {"iceberg", "delta"}


def test_iceberg_refuses_to_be_declared_where_a_column_came_back_under_another_type() -> None:
    table = table_of(options={"ledger.formats": "paimon"})
    table.append([file("1.parquet")])
    table.alter([UpdateColumnType(("x",), "STRING")])
    table.alter([DropColumn(("x",))])
    table.append([file("2.parquet", table.state.schema.id)])
    table.alter([UndropColumn(("x",))])

    with pytest.raises(FormatError, match="column x from INT to STRING"):
        table.alter([SetOption("ledger.formats", "paimon,iceberg")])


def test_paimon_refuses_a_default_that_older_files_would_have_to_read_as() -> None:
    table = table_of(options={"ledger.formats": "iceberg", "format-version": "3"})
    table.alter([AddColumn(("n",), "INT", default_value="7")])
    table.alter([DropColumn(("n",))])
    table.alter([SetOption("ledger.formats", "paimon,iceberg")])

    with pytest.raises(FormatError, match="column n cannot be added with a default"):
        table.alter([UndropColumn(("n",))])

    table.alter([SetOption("ledger.formats", "iceberg")])
    table.alter([UndropColumn(("n",))])
    assert table.state.schema.field("n").initial_default == "7"


def test_what_options_said_of_a_blob_is_said_again() -> None:
    schema = Schema.of({"id": "INT", "b": "BYTES"}, options={"row-tracking.enabled": "true"})
    options = {
        **schema.options,
        "ledger.formats": "paimon",
        "data-evolution.enabled": "true",
    }
    table = orders(lake_on(memory()), Schema.of({"id": "INT"}, options=options))
    table.alter([AddColumn(("b",), "BYTES", "__BLOB_FIELD; a picture")])
    before = table.state.schema
    table.alter([DropColumn(("b",))])
    assert "blob-field" not in table.state.schema.options

    with pytest.raises(InvalidChangeError, match="found by its name"):
        table.alter([UndropColumn(("c",), before.field("b").id)])
    table.alter([UndropColumn(("b",))])

    assert table.state.schema.options == before.options
    assert table.state.schema.fields == before.fields


# Others meanwhile.


def raced(theirs: list[SchemaChange], mine: list[SchemaChange]) -> Table:
    """Commit changes between the read and the commit of another writer."""
    store = memory()
    first = table_of(store)
    first.alter([DropColumn(("x",))])
    other = lake_on(store).table("shop.orders")
    assert other.state.version == 1
    for each in theirs:
        first.alter([each])
    other.alter(mine)
    return other


def test_two_writers_that_restore_a_column_do_it_once() -> None:
    table = raced([B], [B])

    assert [each.id for each in table.state.schema.fields] == [0, 1, 2, 3]
    kinds = [
        type(fact).__name__
        for commit in table.events(1)
        for transaction in commit.transactions
        for fact in transaction.events
    ]
    assert kinds == ["ColumnDropped", "ColumnUndropped"]


@pytest.mark.parametrize(
    ("theirs", "mine", "said"),
    [
        (AddColumn(("x",), "STRING"), B, "the name x was changed by"),
        (B, AddColumn(("x",), "STRING"), "the name x was changed by"),
        (UndropColumn(("z",), 1), B, "(id 1) was changed by"),
        (RenameColumn(("y",), "x"), B, "the name x was changed by"),
    ],
)
def test_a_name_that_others_took_meanwhile_is_a_conflict(
    theirs: SchemaChange, mine: SchemaChange, said: str
) -> None:
    with pytest.raises(CommitConflictError) as caught:
        raced([theirs], [mine])

    assert said in str(caught.value)


def test_a_restored_column_is_no_conflict_for_a_concurrent_change_of_it() -> None:
    store = memory()
    first = table_of(store)
    other = lake_on(store).table("shop.orders")
    assert other.state.version == 0
    first.alter([DropColumn(("x",))])
    first.alter([UndropColumn(("x",))])

    other.alter([UpdateColumnComment(("x",), "mine")])

    assert other.state.schema.field("x").description == "mine"


def test_its_struct_is_followed_by_id() -> None:
    store = memory()
    first = table_of(store)
    first.alter([DropColumn(("s", "a"))])
    other = lake_on(store).table("shop.orders")
    assert other.state.version == 1
    first.alter([RenameColumn(("s",), "t"), AddColumn(("s",), "INT")])

    other.alter([UndropColumn(("s", "a")), UpdateColumnComment(("s", "a"), "mine")])

    _, member, _ = walk_fields([other.state.schema.field("t")])
    assert (member.id, member.description) == (4, "mine")


# Laws.


def begun(formats: str) -> tuple[Ledger, Table]:
    schema = start_schema()
    options = {"ledger.formats": formats}
    if formats == "paimon":
        options |= schema.options
    lake = lake_on(memory())
    made = Schema.of(
        {each.name: each.type for each in schema.fields},
        partition_keys=schema.partition_keys,
        primary_keys=schema.primary_keys,
        options=options,
    )
    return lake, orders(lake, made)


@settings(deadline=None, max_examples=examples(25))
@given(seed=st.integers(0, 2**32 - 1), formats=st.sampled_from(["paimon", "iceberg"]))
def test_drop_then_undrop_gives_the_same_columns_with_their_ids(seed: int, formats: str) -> None:
    rng = random.Random(seed)
    lake, table = begun(formats)
    for _ in range(8):
        try:
            table.alter([random_change(rng, table.state.schema)])
        except InvalidInputError:
            continue
    before = table.state
    path = rng.choice(list(paths(before.schema.fields)))
    try:
        table.alter([DropColumn(path)])
    except InvalidInputError:
        assume(False)  # noqa: FBT003 - hypothesis's own

    table.alter([UndropColumn(path)])

    now = table.state.schema
    assert now.fields == before.schema.fields
    assert now.highest_field_id == before.schema.highest_field_id
    # A checkpoint and the whole log give the same.
    assert lake.table("shop.orders").state == table.state
    assert table.at(version=table.state.version).state == table.state


def test_several_come_back_in_one_batch() -> None:
    table = table_of()
    before = table.state.schema
    table.alter([DropColumn(("y",)), DropColumn(("s", "b")), DropColumn(("x",))])

    table.alter([UndropColumn(("x",)), UndropColumn(("s", "b")), UndropColumn(field_id=2)])

    assert table.state.schema.fields == before.fields
