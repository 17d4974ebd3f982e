"""Paimon's rules hold where Paimon reads a table, Iceberg's alone where it does not."""

from __future__ import annotations

import pytest
from attrs import evolve

from ledger import (
    AddColumn,
    DataField,
    DropColumn,
    DropPrimaryKey,
    FormatError,
    InvalidChangeError,
    InvalidTypeError,
    RenameColumn,
    Schema,
    SchemaChange,
    SetIdentifierFields,
    SetOption,
    UpdateColumnComment,
    UpdateColumnNullability,
    UpdateColumnType,
)
from ledger.decide import create_schema, decide_schema, with_policy
from ledger.model import read_type, type_to_wire
from ledger.model.types import ArrayType, walk_ids
from ledger.state import PAIMON_RULES, Rules

ICEBERG = Rules(frozenset({"iceberg"}))
INCOMPATIBLE = Rules(frozenset({"iceberg"}), allow_incompatible=True)
KEYED = Schema.of(
    {"id": "INT NOT NULL", "day": "INT", "v": "INT"},
    partition_keys=["day"],
    primary_keys=["id", "day"],
)


def after(schema: Schema, rules: Rules, *changes: SchemaChange) -> Schema:
    return decide_schema(schema, changes, has_snapshots=True, rules=rules).schema


@pytest.mark.parametrize(
    "change",
    [
        AddColumn(("x",), "INT NOT NULL"),
        UpdateColumnNullability(("v",), new_nullability=False),
        UpdateColumnType(("v",), "INT NOT NULL"),
    ],
)
def test_what_older_rows_may_lack_is_asked_for_explicitly(change: SchemaChange) -> None:
    for rules in (ICEBERG, PAIMON_RULES):
        with pytest.raises(InvalidChangeError):
            after(KEYED, rules, change)
    changed = after(KEYED, INCOMPATIBLE, change)
    assert changed.fields[-1].type == read_type("INT NOT NULL")


def test_a_required_column_with_a_default_needs_no_leave() -> None:
    added = after(KEYED, ICEBERG, AddColumn(("x",), "INT NOT NULL", default_value="7")).field("x")

    assert (added.initial_default, added.default_value) == ("7", "7")
    with pytest.raises(InvalidChangeError, match="cannot be read as INT"):
        after(KEYED, ICEBERG, AddColumn(("x",), "INT", default_value="seven"))
    with pytest.raises(FormatError):
        after(KEYED, PAIMON_RULES, AddColumn(("x",), "INT", default_value="7"))


@pytest.mark.parametrize(
    "change",
    [
        SetOption("bucket", "4"),
        SetOption("merge-engine", "no-such-engine"),
        SetOption("type", "format-table"),
        DropPrimaryKey(),
        UpdateColumnType(("day",), "BIGINT"),
        UpdateColumnComment(("v",), "__BLOB_FIELD; a plain comment"),
    ],
)
def test_paimons_own_guards_do_not_hold_where_paimon_does_not_read(change: SchemaChange) -> None:
    with pytest.raises(InvalidChangeError):
        after(KEYED, PAIMON_RULES, change)
    assert after(KEYED, ICEBERG, change).id == 1


@pytest.mark.parametrize(
    "change",
    [
        SetOption("partition", "v"),
        DropColumn(("day",)),
        RenameColumn(("day",), "date"),
        UpdateColumnNullability(("id",), new_nullability=True),
        UpdateColumnType(("v",), "STRING"),
        UpdateColumnType(("v",), "TINYINT"),
    ],
)
def test_what_no_format_can_have_is_refused_in_every_table(change: SchemaChange) -> None:
    with pytest.raises(InvalidChangeError):
        after(KEYED, INCOMPATIBLE, change)


def test_a_list_whose_element_is_widened_keeps_its_ids() -> None:
    nested = {"l": read_type("ARRAY<ARRAY<INT>>"), "m": read_type("MAP<INT, ROW<x INT>>")}
    schema = with_policy(Schema.of(nested), "iceberg")
    wider = type_to_wire(read_type("ARRAY<ARRAY<BIGINT>>"))

    widened = after(schema, ICEBERG, UpdateColumnType(("l",), wider)).field("l")

    assert widened.type == read_type("ARRAY<ARRAY<BIGINT>>")
    assert list(walk_ids(widened.type)) == list(walk_ids(schema.field("l").type))
    other = type_to_wire(read_type("MAP<INT, ROW<x BIGINT>>"))
    with pytest.raises(InvalidChangeError, match="cannot become"):
        after(schema, ICEBERG, UpdateColumnType(("m",), other))


def test_an_identifier_field_stays_what_it_has_to_be() -> None:
    schema = after(KEYED, ICEBERG, SetIdentifierFields((("id",),)), DropPrimaryKey())

    for change in (
        DropColumn(("id",)),
        UpdateColumnNullability(("id",), new_nullability=True),
    ):
        with pytest.raises(InvalidChangeError, match="identifier field"):
            after(schema, ICEBERG, change)
        reset = SetIdentifierFields(())
        assert after(schema, ICEBERG, change, reset) == after(schema, ICEBERG, reset, change)


@pytest.mark.parametrize(
    ("path", "rule"),
    [
        (("d",), "inexact"),
        (("n",), "may be NULL"),
        (("s", "x"), "s may be NULL"),
        (("l", "element", "x"), "inside a ARRAY"),
        (("t",), "no single value"),
    ],
)
def test_what_cannot_identify_a_row_is_refused(path: tuple[str, ...], rule: str) -> None:
    columns = {
        "d": "DOUBLE NOT NULL",
        "n": "INT",
        "s": "ROW<x INT NOT NULL>",
        "l": "ARRAY<ROW<x INT NOT NULL>> NOT NULL",
        "t": "ROW<x INT> NOT NULL",
    }
    schema = Schema.of({name: read_type(text) for name, text in columns.items()})

    with pytest.raises(InvalidChangeError, match=rule):
        after(schema, PAIMON_RULES, SetIdentifierFields((path,)))


def test_a_new_column_is_numbered_as_the_tables_policy_says() -> None:
    wanted = type_to_wire(read_type("MAP<INT, ARRAY<ROW<x INT>>>"))
    paimon = after(KEYED, ICEBERG, AddColumn(("x",), wanted))
    iceberg = after(with_policy(KEYED, "iceberg"), ICEBERG, AddColumn(("x",), wanted))

    assert list(walk_ids(paimon.field("x").type)) == [4]
    # Key and value, then what is inside the value.
    assert list(walk_ids(iceberg.field("x").type)) == [5, 6, 7, 8]


def test_a_paimon_table_never_has_ids_of_elements() -> None:
    given = type_to_wire(ArrayType(read_type("INT"), element_id=77))

    assert (
        list(walk_ids(after(KEYED, PAIMON_RULES, AddColumn(("x",), given)).field("x").type)) == []
    )


def test_icebergs_ids_are_kept_or_given_anew_but_never_mixed() -> None:
    numbered = with_policy(Schema.of({"a": "INT", "l": read_type("ARRAY<INT>")}), "iceberg")
    without = Schema(fields=numbered.fields[:1], field_id_policy="iceberg", highest_field_id=9)

    assert with_policy(numbered, None) == numbered
    assert create_schema(without).highest_field_id == 9
    with pytest.raises(InvalidChangeError, match="counted by Iceberg"):
        with_policy(numbered, "paimon")
    with pytest.raises(InvalidChangeError, match="field_id_policy is 'delta'"):
        with_policy(numbered, "delta")  # type: ignore[arg-type]


def test_an_id_given_to_an_element_and_a_column_is_refused() -> None:
    twice = Schema(
        fields=with_policy(Schema.of({"l": read_type("ARRAY<INT>")}), "iceberg").fields
        + with_policy(Schema.of({"x": "INT", "y": "INT"}), "iceberg").fields[1:],
        field_id_policy="iceberg",
    )

    with pytest.raises(InvalidChangeError, match=r"field ids \[2\]"):
        create_schema(twice)


def test_unknown_is_never_required() -> None:
    with pytest.raises(InvalidTypeError):
        after(KEYED, INCOMPATIBLE, AddColumn(("x",), "UNKNOWN NOT NULL"))


def test_a_new_tables_comments_are_orders_where_paimon_reads_it_alone() -> None:
    floats = ArrayType(read_type("FLOAT"))
    said = Schema(fields=(DataField(0, "v", floats, "__VECTOR_FIELD;3;of it"),))

    assert create_schema(said, ICEBERG).fields == said.fields
    ordered = create_schema(said, PAIMON_RULES)
    assert (ordered.field("v").type.root, ordered.field("v").description) == ("VECTOR", "of it")
    assert ordered.options == {"vector-field": "v"}


def test_identifier_fields_follow_their_columns_and_have_to_be_some() -> None:
    named = evolve(KEYED, identifier_field_ids=(0,))

    assert with_policy(named, "iceberg").identifier_field_ids == (1,)
    with pytest.raises(InvalidChangeError, match=r"identifier field ids \[7\] are no columns"):
        with_policy(evolve(KEYED, identifier_field_ids=(0, 7)), "iceberg")
