"""Events of a change: no more than was asked, and what is left out has a meaning."""

from __future__ import annotations

import attrs
import pytest

from ledger import (
    AddColumn,
    CommitConflictError,
    DropColumn,
    DropPrimaryKey,
    FormatError,
    InvalidChangeError,
    RemoveOption,
    RemovePartitionField,
    RenameColumn,
    Schema,
    SchemaChange,
    SetOption,
    UndropColumn,
    UpdateColumnType,
    UpdatePartitionSpec,
    evolve,
)
from ledger.decide import decide_schema, with_policy
from ledger.decide.column_draft import CommentDirective, listing_option_edits
from ledger.events import ColumnDropped
from ledger.model import TypeObject, read_type, type_to_wire
from ledger.model.types import walk_ids
from ledger.state import Rules
from ledger.transforms import bucket
from tests.lakes import lake_on, memory, orders

ICEBERG = Rules(frozenset({"iceberg"}))
BLOBS = Schema.of(
    {"k": "INT", "b": "BLOB"},
    options={"blob-field": "b", "data-evolution.enabled": "true", "row-tracking.enabled": "true"},
)


@pytest.mark.parametrize("value", ["table", "TABLE"])
def test_the_type_of_a_table_that_says_none_is_table(value: str) -> None:
    assert evolve(Schema.of({"a": "INT"}), [SetOption("type", value)]).options == {}
    said = Schema.of({"a": "INT"}, options={"type": "Table"})
    assert evolve(said, [SetOption("type", value)]).options == {"type": "Table"}


def test_a_schema_on_its_own_has_no_snapshots() -> None:
    keyed = Schema.of({"k": "INT NOT NULL", "v": "INT"}, primary_keys=["k"])

    assert evolve(keyed, [DropPrimaryKey()]).primary_keys == ()
    with pytest.raises(InvalidChangeError):
        evolve(keyed, [DropPrimaryKey()], has_snapshots=True)


def test_where_paimon_does_not_read_its_options_stay_as_they_are() -> None:
    def options_without(rules: Rules) -> str | None:
        dropped = decide_schema(BLOBS, [DropColumn(("b",))], has_snapshots=False, rules=rules)
        return dropped.schema.options.get("blob-field")

    assert options_without(ICEBERG) == "b"
    assert options_without(Rules(frozenset({"paimon"}))) is None


def test_a_directive_names_the_column_that_it_does_not_fit() -> None:
    with pytest.raises(InvalidChangeError, match="column e"):
        evolve(Schema.of({"a": "INT"}), [AddColumn(("e",), "INT", "__VECTOR_FIELD;3")])


@pytest.mark.parametrize(
    ("change", "verb"),
    [
        (RenameColumn(("v",), "w"), "renamed"),
        (DropColumn(("v",)), "dropped"),
        (UpdateColumnType(("v",), "BIGINT"), "re-typed"),
    ],
)
def test_a_column_of_paimons_index_stays_as_it_is(change: SchemaChange, verb: str) -> None:
    options = {"pk-btree.index.columns": "v"}
    indexed = Schema.of({"k": "INT NOT NULL", "v": "INT"}, primary_keys=["k"], options=options)

    text = f"^column v is listed in pk-btree.index.columns; it cannot be {verb}$"
    with pytest.raises(InvalidChangeError, match=text):
        evolve(indexed, [change])
    decide_schema(indexed, [change], has_snapshots=False, rules=ICEBERG)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("MAP<INT, INT>", "MAP<INT, BIGINT>"),
        ("MAP<INT, ARRAY<INT>>", "MAP<INT, ARRAY<BIGINT>>"),
        ("ARRAY<MAP<STRING, FLOAT>>", "ARRAY<MAP<STRING, DOUBLE>>"),
    ],
)
def test_what_a_map_holds_is_widened_in_its_place(before: str, after: str) -> None:
    schema = with_policy(Schema.of({"m": read_type(before)}), "iceberg")
    wider = UpdateColumnType(("m",), type_to_wire(read_type(after)))

    widened = decide_schema(schema, [wider], has_snapshots=True, rules=ICEBERG).schema.field("m")

    assert widened.type == read_type(after)
    assert list(walk_ids(widened.type)) == list(walk_ids(schema.field("m").type))


def test_where_paimon_counts_ids_a_list_is_written_anew_as_a_whole() -> None:
    schema = Schema.of({"l": read_type("ARRAY<INT>")})
    wider = UpdateColumnType(("l",), TypeObject("ARRAY", element="BIGINT"))

    decided = decide_schema(schema, [wider], has_snapshots=True, rules=ICEBERG)

    assert [each.field_names for each in decided.events] == [("l",)]  # type: ignore[union-attr]  # it is a type
    assert decided.schema.field("l").type == read_type("ARRAY<BIGINT>")


def test_a_map_whose_key_would_change_is_refused_by_name() -> None:
    schema = with_policy(Schema.of({"m": read_type("MAP<INT, INT>")}), "iceberg")
    other = UpdateColumnType(("m",), TypeObject("MAP", key="BIGINT", value="BIGINT"))

    with pytest.raises(InvalidChangeError, match="^column m"):
        decide_schema(schema, [other], has_snapshots=True, rules=ICEBERG)


def test_a_partition_field_is_removed_by_its_source_alone_if_it_is_the_identity() -> None:
    table = orders(
        lake_on(memory()),
        Schema.of({"id": "INT", "k": "INT"}, options={"ledger.formats": "iceberg"}),
    )
    table.update_spec().add_field("k").add_field(bucket("k", 4)).commit()

    table.alter([UpdatePartitionSpec((RemovePartitionField(source=("k",)),))])

    assert [each.transform for each in table.state.spec.fields] == ["bucket[4]"]


def test_the_rules_are_those_of_the_options_after_the_batch() -> None:
    options = {"ledger.formats": "iceberg", "format-version": "3"}
    table = orders(lake_on(memory()), Schema.of({"id": "INT"}, options=options))
    column = AddColumn(("n",), "INT", default_value="7")

    with pytest.raises(FormatError, match="in Paimon"):
        table.alter([column, RemoveOption("ledger.formats")])
    with pytest.raises(FormatError, match="in Paimon"):
        table.alter([column, SetOption("ledger.formats", "paimon,iceberg")])
    assert table.alter([column]).state.schema.field("n").initial_default == "7"


def test_what_no_longer_fits_says_on_what_it_was_asked_and_what_came() -> None:
    store = memory()
    mine = orders(lake_on(store), Schema.of({"id": "INT", "x": "INT"}))
    theirs = lake_on(store).table("shop.orders")
    theirs.alter([SetOption("k", "v")], author="ann")
    theirs.alter([DropColumn(("id",))], author="bob")
    theirs.alter([SetOption("k", "w")], author="carol")

    with pytest.raises(CommitConflictError) as caught:
        mine.alter([DropColumn(("x",))])

    text = "(it was possible at version 0, which this was based on; version 2 by bob, 2023-11-14T"
    assert text in str(caught.value)
    assert (caught.value.cell, caught.value.version) == ("ILLEGAL_ARGUMENT", 2)
    assert caught.value.author == "bob"
    assert isinstance(caught.value.winner, ColumnDropped)


def test_the_commit_that_made_it_impossible_is_found_behind_facts_that_older_formats_lack() -> None:
    store = memory()
    mine = orders(lake_on(store), Schema.of({"id": "INT", "x": "INT", "n": "INT"}))
    mine.alter([DropColumn(("n",))])
    theirs = lake_on(store).table("shop.orders")
    theirs.alter([UndropColumn(("n",))], author="ann")
    theirs.alter([DropColumn(("id",))], author="bob")
    theirs.alter([DropColumn(("n",))], author="carol")

    with pytest.raises(CommitConflictError, match="version 4 by carol") as caught:
        mine.alter([DropColumn(("x",))])

    assert (caught.value.version, caught.value.author) == (4, "carol")


def test_a_column_is_listed_under_the_newer_key_where_both_are_there() -> None:
    directive = CommentDirective("blob-descriptor-field", None)
    older, newer = {"blob.stored-descriptor-fields": "o"}, {"blob-descriptor-field": "p"}
    assert listing_option_edits(directive, "q", {**newer, **older}) == [
        ("blob-descriptor-field", "p,q")
    ]
    assert listing_option_edits(directive, "q", older) == [
        ("blob.stored-descriptor-fields", None),
        ("blob-descriptor-field", "o,q"),
    ]


def test_identifiers_are_in_the_order_of_their_new_ids_whatever_order_they_were_given_in() -> None:
    schema = Schema.of({"a": "INT NOT NULL", "b": "INT NOT NULL"})
    made = with_policy(attrs.evolve(schema, identifier_field_ids=(1, 0)), "iceberg")
    assert made.identifier_field_ids == (1, 2)
