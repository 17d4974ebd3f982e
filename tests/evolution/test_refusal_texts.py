"""A refusal names what it is about, the rule, and where there is one the way out."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ledger import (
    AddColumn,
    DropColumn,
    DropPrimaryKey,
    InvalidChangeError,
    Move,
    RemoveOption,
    RenameColumn,
    Schema,
    SchemaChange,
    SetOption,
    UpdateColumnComment,
    UpdateColumnDefaultValue,
    UpdateColumnNullability,
    UpdateColumnPosition,
    UpdateColumnType,
)
from ledger.decide import decide_schema
from ledger.model import TypeObject, parse_type, type_from_json
from ledger.model.types import ArrayType
from ledger.state import Rules

ROW = type_from_json({"type": "ROW", "fields": [{"name": "x", "type": "INT"}]})
PLAIN = Schema.of({"a": "INT", "s": "STRING", "v": ROW, "arr": ArrayType(parse_type("INT"))})
KEYED = Schema.of(
    {"k": "INT NOT NULL", "p": "INT NOT NULL", "v": "INT"},
    primary_keys=["k", "p"],
    partition_keys=["p"],
    options={"bucket": "2"},
)
BLOBS = Schema.of(
    {"k": "INT", "b": "BLOB"},
    options={"blob-field": "b", "data-evolution.enabled": "true", "row-tracking.enabled": "true"},
)
_KEPT = (
    "partition column p cannot be {}: partition keys are a table's for good; create another table "
    "with the keys that you want, and write the rows there"
)
REFUSED: dict[str, tuple[Schema, Sequence[SchemaChange], str]] = {
    "a renamed partition key": (
        KEYED,
        [RenameColumn(("p",), "q")],
        _KEPT.format("renamed"),
    ),
    "a dropped partition key": (
        KEYED,
        [DropColumn(("p",))],
        _KEPT.format("dropped"),
    ),
    "a dropped key": (KEYED, [DropColumn(("k",))], "primary-key column k cannot be dropped"),
    "a re-typed key": (
        KEYED,
        [UpdateColumnType(("k",), "BIGINT")],
        "primary-key column k cannot be re-typed",
    ),
    "a key re-typed under its new name": (
        KEYED,
        [RenameColumn(("k",), "x"), UpdateColumnType(("x",), "BIGINT")],
        "primary-key column x cannot be re-typed, renamed or not",
    ),
    "a key dropped under its new name": (
        KEYED,
        [RenameColumn(("k",), "x"), DropColumn(("x",))],
        "column x is in the primary key under its new name",
    ),
    "a nullable key": (
        KEYED,
        [UpdateColumnNullability(("k",), new_nullability=True)],
        "primary-key column k cannot be made nullable",
    ),
    "a key renamed twice": (
        KEYED,
        [RenameColumn(("k",), "x"), RenameColumn(("x",), "y")],
        r"primary key \['k', 'p'\] is renamed more than once .* one transaction a rename",
    ),
    "a renamed BLOB": (BLOBS, [RenameColumn(("b",), "c")], "column b holds BLOBs"),
    "a re-typed BLOB": (
        BLOBS,
        [UpdateColumnType(("b",), "STRING")],
        "column b: no type becomes a BLOB, or stops being one",
    ),
    "a cast that loses": (
        PLAIN,
        [UpdateColumnType(("s",), TypeObject("ARRAY", element="INT"))],
        "column s: STRING cannot be converted to ARRAY without losing",
    ),
    "a cast of a member": (
        PLAIN,
        [UpdateColumnType(("v", "x"), TypeObject("ARRAY", element="INT"))],
        r"column v\.x: INT cannot be converted to ARRAY without losing",
    ),
    "a default that does not fit": (
        PLAIN,
        [UpdateColumnDefaultValue(("v", "x"), "seven")],
        r"column v\.x: default 'seven' cannot be read as INT",
    ),
    "a directive on what is there": (
        PLAIN,
        [UpdateColumnComment(("a",), "__BLOB_FIELD")],
        "column a exists: a directive works on new columns only",
    ),
    "a directive inside": (
        PLAIN,
        [AddColumn(("v", "n"), "BYTES", "__BLOB_FIELD")],
        r"column v\.n is nested: a comment directive works on top only",
    ),
    "the last member": (
        PLAIN,
        [DropColumn(("v", "x"))],
        r"column v\.x is the last of its struct; drop the whole instead",
    ),
    "a member of a primitive": (PLAIN, [AddColumn(("a", "n"), "INT")], r"column a\.n .*a is INT"),
    "a column behind nothing": (
        PLAIN,
        [AddColumn(("n",), "INT", move=Move("n", "AFTER", "q"))],
        "column q does not exist: n cannot go AFTER it",
    ),
    "a move of another": (
        PLAIN,
        [UpdateColumnPosition(Move("a", "FIRST"), ("v", "x"))],
        r"move\.fieldName a must be the end of v\.x",
    ),
    "a move of nothing": (
        PLAIN,
        [UpdateColumnPosition(Move("q", "FIRST"))],
        "column q to move was not found",
    ),
    "a move behind nothing": (
        PLAIN,
        [UpdateColumnPosition(Move("a", "BEFORE", "q"))],
        "column q to move BEFORE was not found",
    ),
    "a move to where it stands": (
        PLAIN,
        [UpdateColumnPosition(Move("a", "FIRST"))],
        "column a cannot move FIRST itself",
    ),
    "a column that older rows lack": (
        PLAIN,
        [AddColumn(("n",), "INT NOT NULL")],
        "column n cannot be added as NOT NULL: older rows have no value for it",
    ),
    "a column that may hold NULL": (
        PLAIN,
        [UpdateColumnNullability(("v", "x"), new_nullability=False)],
        r"column v\.x may hold NULL already; set alter-column-null-to-not-null.disabled=false",
    ),
    "a type that is there": (
        Schema.of({"f": "BOOLEAN"}),
        [UpdateColumnType(("f",), "BOOLEAN")],
        "column f is BOOLEAN already, and Paimon converts no BOOLEAN to itself; leave this change",
    ),
    "a type that is there but for NULL": (
        Schema.of({"f": "BOOLEAN NOT NULL"}),
        [UpdateColumnType(("f",), "BOOLEAN")],
        "column f is BOOLEAN NOT NULL already, .* change by itself whether it may be NULL",
    ),
    "another ROW for a ROW": (
        PLAIN,
        [UpdateColumnType(("v",), TypeObject(type="ROW", fields=()))],
        "column v: a ROW is not converted as a whole; change what is inside it by its path",
    ),
    "an option without a key": (PLAIN, [SetOption("", "v")], "the key of an option is empty"),
    "the type set": (PLAIN, [SetOption("type", "format-table")], "option type can never change"),
    "the type removed": (PLAIN, [RemoveOption("type")], "option type can never be removed"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_refusal_says_what_and_why(case: str) -> None:
    schema, changes, text = REFUSED[case]

    with pytest.raises(InvalidChangeError, match=f"^{text}"):
        decide_schema(schema, changes, has_snapshots=False)


def test_a_primary_key_is_dropped_before_the_first_snapshot_only() -> None:
    changes: list[SchemaChange] = [DropPrimaryKey(), RemoveOption("bucket")]
    assert decide_schema(KEYED, changes, has_snapshots=False).schema.primary_keys == ()

    with pytest.raises(InvalidChangeError, match="^the primary key cannot be dropped while"):
        decide_schema(KEYED, changes, has_snapshots=True)


ICEBERG = Rules(frozenset({"iceberg"}))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (AddColumn(("n",), "INT NOT NULL"), "column n cannot be added as NOT NULL.* a default, or"),
        (
            UpdateColumnNullability(("a",), new_nullability=False),
            r"column a may hold NULL already; call update_schema\(\).allow_incompatible",
        ),
        (UpdateColumnType(("s",), "INT"), "column s: STRING cannot become INT; Iceberg 2"),
    ],
)
def test_icebergs_refusals_say_what_and_why(change: SchemaChange, text: str) -> None:
    with pytest.raises(InvalidChangeError, match=f"^{text}"):
        decide_schema(PLAIN, [change], has_snapshots=False, rules=ICEBERG)


def test_where_paimon_does_not_read_a_blob_column_may_be_renamed() -> None:
    decided = decide_schema(BLOBS, [RenameColumn(("b",), "c")], has_snapshots=False, rules=ICEBERG)

    assert decided.schema.names == ("k", "c")
