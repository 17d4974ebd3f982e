"""Values that Paimon derives silently are facts of their own; corrupting changes are rejected."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from ledger import (
    AddColumn,
    DataField,
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
    evolve,
)
from ledger.decide import decide_schema
from ledger.events import (
    ColumnAdded,
    ColumnDropped,
    ColumnNullabilityUpdated,
    ColumnRenamed,
    UpdateKeys,
)
from ledger.model import TypeObject, parse_type, type_from_json

ROW = type_from_json(
    {"type": "ROW", "fields": [{"name": "x", "type": "INT"}, {"name": "y", "type": "INT"}]}
)
ARRAY = type_from_json({"type": "ARRAY", "element": "INT"})
MAP = type_from_json({"type": "MAP", "key": "STRING", "value": "INT"})
PLAIN = Schema.of({"a": "INT", "b": "INT", "v": ROW, "arr": ARRAY, "m": MAP})
KEYED = Schema.of(
    {"k": "INT NOT NULL", "v": "INT", "w": "INT"},
    primary_keys=["k"],
    options={"bucket": "2", "bucket-key": "k", "sequence.field": "v"},
)
EVOLVING = {"data-evolution.enabled": "true", "row-tracking.enabled": "true"}


def refusal(schema: Schema, changes: Sequence[SchemaChange], *, has_snapshots: bool = False) -> str:
    with pytest.raises(InvalidChangeError) as refused:
        evolve(schema, changes, has_snapshots=has_snapshots)
    return refused.value.kind


def test_a_directive_becomes_a_type_a_comment_and_an_option() -> None:
    schema = Schema.of({"k": "INT"}, options=EVOLVING)
    changes = [AddColumn(("pic",), "BYTES", "__BLOB_FIELD; of the item")]

    decision = decide_schema(schema, changes, has_snapshots=False)

    assert decision.events == (
        SetOption("blob-field", "pic"),
        ColumnAdded(field_names=("pic",), data_type="BLOB", comment="of the item", field_id=1),
    )


def test_a_vector_directive_re_types_an_array() -> None:
    array = TypeObject("ARRAY", element="FLOAT")
    changes = [AddColumn(("e",), array, "__VECTOR_FIELD;3")]

    added = evolve(PLAIN, changes)

    assert added.field("e").type.root == "VECTOR"
    assert added.field("e").description is None
    assert added.options == {"vector-field": "e"}


def test_dropping_a_blob_column_forgets_it_in_the_options() -> None:
    schema = Schema.of(
        {"k": "INT", "p": "BLOB", "q": "BLOB"}, options={**EVOLVING, "blob-field": "p,q"}
    )

    decision = decide_schema(schema, [DropColumn(("p",))], has_snapshots=False)

    assert decision.events == (
        ColumnDropped(field_names=("p",), field_id=1),
        SetOption("blob-field", "q"),
    )


def test_a_rename_carries_its_options_along_as_facts() -> None:
    decision = decide_schema(KEYED, [RenameColumn(("v",), "z")], has_snapshots=True)

    assert decision.events == (
        ColumnRenamed(field_names=("v",), new_name="z", field_id=1),
        SetOption("sequence.field", "z"),
    )


def test_a_primary_key_set_as_an_option_becomes_keys_and_not_null() -> None:
    decision = decide_schema(PLAIN, [SetOption("primary-key", "a")], has_snapshots=False)

    assert decision.events[1:] == (
        RemoveOption("primary-key"),
        UpdateKeys(primary_keys=("a",)),
        ColumnNullabilityUpdated(field_names=("a",), new_nullability=False, field_id=0),
    )
    assert decision.schema.primary_keys == ("a",)
    assert dict(decision.schema.options) == {}


def test_a_primary_key_given_twice_is_refused() -> None:
    assert refusal(KEYED, [SetOption("primary-key", "v")]) == "RUNTIME"
    free = KEYED.with_options({})
    assert evolve(free, [DropPrimaryKey(), SetOption("primary-key", "v")]).primary_keys == ("v",)


def test_a_nested_column_moves_by_its_path() -> None:
    moved = evolve(PLAIN, [UpdateColumnPosition(Move("y", "FIRST"), ("v", "y"))])

    assert [each.name for each in moved.field("v").type.fields] == ["y", "x"]  # type: ignore[attr-defined] # v is a ROW


SWAP = [RenameColumn(("a",), "t"), RenameColumn(("b",), "a"), RenameColumn(("t",), "b")]


def test_a_swap_of_names_swaps_aggregations() -> None:
    schema = Schema.of(
        {"k": "INT NOT NULL", "a": "INT", "b": "INT"},
        primary_keys=["k"],
        options={
            "merge-engine": "aggregation",
            "fields.a.aggregate-function": "sum",
            "fields.b.aggregate-function": "max",
        },
    )

    swapped = evolve(schema, SWAP)

    assert swapped.options["fields.b.aggregate-function"] == "sum"
    assert swapped.options["fields.a.aggregate-function"] == "max"


def test_options_that_go_with_renamed_columns_go_in_the_order_of_their_names() -> None:
    columns = {"k": "INT NOT NULL", **{f"c{each}": "INT" for each in range(8)}}
    options = {f"fields.c{each}.aggregate-function": "sum" for each in range(8)}
    schema = Schema.of(
        columns, primary_keys=["k"], options={"merge-engine": "aggregation", **options}
    )
    renames = [RenameColumn((f"c{each}",), f"d{each}") for each in range(8)]

    events = decide_schema(schema, renames, has_snapshots=False).events

    assert [each.key for each in events if isinstance(each, RemoveOption)] == sorted(options)


CHAIN: list[SchemaChange] = [RenameColumn(("v",), "x"), RenameColumn(("x",), "y")]
KEY_CHAIN: list[SchemaChange] = [RenameColumn(("k",), "x"), RenameColumn(("x",), "y")]
REFUSED: dict[str, tuple[Schema, list[SchemaChange], str]] = {
    "dropping an element": (PLAIN, [DropColumn(("arr", "element"))], "ILLEGAL_ARGUMENT"),
    "renaming an element": (PLAIN, [RenameColumn(("arr", "element"), "e")], "ILLEGAL_ARGUMENT"),
    "a comment on a value": (
        PLAIN,
        [UpdateColumnComment(("m", "value"), "c")],
        "ILLEGAL_ARGUMENT",
    ),
    "a default on an element": (
        PLAIN,
        [UpdateColumnDefaultValue(("arr", "element"), "1")],
        "ILLEGAL_ARGUMENT",
    ),
    "adding below a primitive": (PLAIN, [AddColumn(("a", "x"), "INT")], "ILLEGAL_ARGUMENT"),
    "a map key": (
        PLAIN,
        [UpdateColumnNullability(("m", "key"), new_nullability=True)],
        "ILLEGAL_ARGUMENT",
    ),
    "a wrapper by another name": (
        PLAIN,
        [UpdateColumnType(("arr", "item"), "BIGINT")],
        "ILLEGAL_ARGUMENT",
    ),
    "an option that would name another column": (
        KEYED,
        [*CHAIN, RenameColumn(("w",), "x")],
        "ILLEGAL_ARGUMENT",
    ),
    "an option that would name nothing": (KEYED, CHAIN, "ILLEGAL_ARGUMENT"),
    "a key renamed twice": (KEYED, KEY_CHAIN, "ILLEGAL_STATE"),
    "a key that another column would slip into": (
        KEYED.with_options({}),
        [*KEY_CHAIN, RenameColumn(("v",), "x")],
        "ILLEGAL_STATE",
    ),
    "a key dropped under its new name": (
        KEYED,
        [RenameColumn(("k",), "x"), DropColumn(("x",))],
        "ILLEGAL_STATE",
    ),
    "two renames that begin alike": (
        PLAIN,
        [RenameColumn(("v", "x"), "p"), RenameColumn(("v", "y"), "q")],
        "ILLEGAL_STATE",
    ),
    "a nested rename that would rewrite an option": (
        Schema.of({"v": ROW, "z": "INT"}, options={"fields.v.ignore-retract": "true"}),
        [RenameColumn(("v", "x"), "z")],
        "ILLEGAL_ARGUMENT",
    ),
    "an empty path": (PLAIN, [DropColumn(())], "ILLEGAL_ARGUMENT"),
    "a directive on an existing column": (
        PLAIN,
        [UpdateColumnComment(("a",), "__BLOB_FIELD")],
        "ILLEGAL_ARGUMENT",
    ),
    "an unknown directive": (PLAIN, [AddColumn(("n",), "BYTES", "__BLOBS")], "ILLEGAL_ARGUMENT"),
    "a nested directive": (
        PLAIN,
        [AddColumn(("v", "n"), "BYTES", "__BLOB_FIELD")],
        "ILLEGAL_ARGUMENT",
    ),
    "null to not null": (
        PLAIN,
        [UpdateColumnNullability(("a",), new_nullability=False)],
        "UNSUPPORTED",
    ),
    "a nullable key": (
        KEYED,
        [UpdateColumnNullability(("k",), new_nullability=True)],
        "UNSUPPORTED",
    ),
}


@pytest.mark.parametrize(("schema", "changes", "kind"), REFUSED.values(), ids=REFUSED)
def test_what_would_corrupt_is_refused(
    schema: Schema, changes: list[SchemaChange], kind: str
) -> None:
    assert refusal(schema, changes) == kind


LOCKED: dict[str, tuple[dict[str, str], SchemaChange]] = {
    "an immutable option set": ({}, SetOption("merge-engine", "first-row")),
    "an immutable option removed": ({}, RemoveOption("bucket-key")),
    "buckets from -1": ({}, SetOption("bucket", "4")),
    "buckets to -1": ({"bucket": "4"}, SetOption("bucket", "-1")),
    "buckets reset": ({"bucket": "4"}, RemoveOption("bucket")),
    "deletion vectors": ({}, SetOption("deletion-vectors.enabled", "true")),
    "deletion vectors reset": (
        {"deletion-vectors.enabled": "true"},
        RemoveOption("deletion-vectors.enabled"),
    ),
    "ignore-delete": ({"ignore-delete": "true"}, SetOption("ignore-delete", "false")),
    "ignore-update-before": (
        {"ignore-update-before": "true"},
        SetOption("ignore-update-before", "false"),
    ),
    "clustering": (
        {"pk-clustering-override": "true", "clustering.columns": "v"},
        SetOption("clustering.columns", "k"),
    ),
    "the table type": ({}, SetOption("type", "format-table")),
    "the primary key": ({}, DropPrimaryKey()),
}


@pytest.mark.parametrize(("options", "change"), LOCKED.values(), ids=LOCKED)
def test_a_table_with_snapshots_locks(options: dict[str, str], change: SchemaChange) -> None:
    schema = KEYED.with_options(options)

    assert refusal(schema, [change], has_snapshots=True) == "UNSUPPORTED"


def test_fixed_buckets_may_change_with_snapshots() -> None:
    assert evolve(KEYED, [SetOption("bucket", "8")], has_snapshots=True).options["bucket"] == "8"


def test_unchanged_means_as_before_the_batch() -> None:
    schema = PLAIN.with_options({"k": "old"})

    kept = evolve(schema, [SetOption("k", "new"), SetOption("k", "old")])
    removed = evolve(schema, [RemoveOption("k"), SetOption("k", "old")])

    assert kept.options == {"k": "new"}
    assert removed.options == {}


def test_a_schema_that_gives_one_id_twice_is_not_changed() -> None:
    broken = Schema((DataField(0, "a", parse_type("INT")), DataField(0, "b", parse_type("INT"))))
    with pytest.raises(InvalidChangeError, match="two columns have one field id"):
        evolve(broken, [SetOption("k", "v")])
