from __future__ import annotations

import pytest

from ledger import InvalidChangeError, Schema
from ledger.decide import create_schema
from ledger.model import type_from_json

ARRAY = type_from_json({"type": "ARRAY", "element": "INT"})
ROW = type_from_json({"type": "ROW", "fields": [{"name": "x", "type": "INT"}]})
APPEND = Schema.of(
    {"a": "INT", "b": "STRING", "arr": ARRAY, "r": ROW, "ts": "TIMESTAMP(9)", "pic": "INT"}
)
KEYED = Schema.of(
    {"k": "INT NOT NULL", "p": "STRING NOT NULL", "v": "INT", "w": "STRING"},
    partition_keys=["p"],
    primary_keys=["k", "p"],
)
CROSS = Schema.of({"k": "INT", "p": "INT", "v": "INT"}, partition_keys=["p"], primary_keys=["k"])

ARGUMENT, STATE, UNSUPPORTED, RUNTIME = (
    "ILLEGAL_ARGUMENT",
    "ILLEGAL_STATE",
    "UNSUPPORTED",
    "RUNTIME",
)
PARTIAL = {"merge-engine": "partial-update"}
BROKEN: list[tuple[Schema, dict[str, str], str]] = [
    (APPEND, {"primary-key.nullable": "true"}, ARGUMENT),
    (APPEND, {"bucket": "0"}, RUNTIME),
    (APPEND, {"bucket": "-2"}, RUNTIME),
    (APPEND, {"bucket": "x"}, ARGUMENT),
    (APPEND, {"bucket": "2"}, RUNTIME),
    (APPEND, {"bucket-key": "a"}, ARGUMENT),
    (APPEND, {"full-compaction.delta-commits": "3"}, RUNTIME),
    (APPEND, {"bucket": "2", "bucket-key": "zz"}, RUNTIME),
    (APPEND, {"bucket": "2", "bucket-key": "arr"}, RUNTIME),
    (KEYED, {"bucket": "2", "bucket-key": "v"}, RUNTIME),
    (KEYED, {"bucket": "2", "bucket-key": "p"}, RUNTIME),
    (APPEND, {"fields.zz.aggregate-function": "sum"}, ARGUMENT),
    (APPEND, {"fields.r.x.aggregate-function": "sum"}, ARGUMENT),
    (KEYED, {"sequence.field": "zz"}, ARGUMENT),
    (KEYED, {"sequence.field": "v,v"}, ARGUMENT),
    (KEYED, {"sequence.field": "v", "fields.v.aggregate-function": "sum"}, ARGUMENT),
    (KEYED, {"sequence.field": "v", "merge-engine": "first-row"}, ARGUMENT),
    (CROSS, {"sequence.field": "v"}, ARGUMENT),
    (KEYED, {"merge-engine": "magic"}, ARGUMENT),
    (APPEND, {"changelog-producer": "input"}, UNSUPPORTED),
    (KEYED, {"changelog-producer": "lookup", "streaming-read-overwrite": "true"}, UNSUPPORTED),
    (
        KEYED,
        {"changelog-producer": "lookup", "full-compaction.delta-commits": "2"},
        UNSUPPORTED,
    ),
    (APPEND, {"streaming-read-overwrite": "true"}, RUNTIME),
    (APPEND, {"target-file-row-num": "0"}, ARGUMENT),
    (APPEND, {"snapshot.num-retained.min": "0"}, ARGUMENT),
    (APPEND, {"snapshot.num-retained.max": "9"}, ARGUMENT),
    (APPEND, {"changelog.num-retained.min": "3", "changelog.num-retained.max": "2"}, ARGUMENT),
    (APPEND, {"scan.mode": "from-snapshot"}, ARGUMENT),
    (APPEND, {"scan.mode": "latest", "scan.snapshot-id": "1"}, ARGUMENT),
    (APPEND, {"scan.snapshot-id": "1", "scan.tag-name": "t"}, ARGUMENT),
    (APPEND, {"scan.timestamp-millis": "1", "scan.snapshot-id": "1"}, ARGUMENT),
    (APPEND, {"scan.mode": "sideways"}, ARGUMENT),
    (APPEND, {"scan.fallback-branch": "x", "scan.primary-branch": "y"}, ARGUMENT),
    (KEYED, {"merge-engine": "first-row", "changelog-producer": "input"}, ARGUMENT),
    (KEYED, {"merge-engine": "first-row", "deletion-vectors.enabled": "true"}, ARGUMENT),
    (
        KEYED,
        {"changelog-producer": "full-compaction", "deletion-vectors.enabled": "true"},
        ARGUMENT,
    ),
    (KEYED, {"rowkind.field": "zz"}, ARGUMENT),
    (KEYED, {"record-level.time-field": "zz"}, ARGUMENT),
    (KEYED, {"record-level.time-field": "w"}, ARGUMENT),
    (KEYED, {"row-tracking.enabled": "true"}, ARGUMENT),
    (APPEND, {"data-evolution.enabled": "true"}, ARGUMENT),
    (APPEND, {"blob-field": "pic"}, ARGUMENT),
    (APPEND, {"blob-view-field": "pic"}, ARGUMENT),
    (APPEND, {"vector-field": "a"}, STATE),
    (APPEND, {"vector-field": "zz"}, ARGUMENT),
    (APPEND, {"sequence.snapshot-ordering": "true"}, ARGUMENT),
    (KEYED, {"sequence.snapshot-ordering": "true"}, ARGUMENT),
    (
        KEYED,
        {"sequence.snapshot-ordering": "true", "write-only": "true", "sequence.field": "v"},
        ARGUMENT,
    ),
    (APPEND, {"file.format": "avro"}, ARGUMENT),
    (APPEND, {"file.format.per.level": "0:avro"}, ARGUMENT),
    (
        KEYED,
        {"merge-engine": "aggregation", "fields.v.aggregate-function": "guess"},
        RUNTIME,
    ),
    (KEYED, {**PARTIAL, "fields.v.aggregate-function": "sum"}, ARGUMENT),
    (KEYED, {**PARTIAL, "fields.v.sequence-group": "zz"}, ARGUMENT),
    (KEYED, {**PARTIAL, "fields.v.sequence-group": "k"}, ARGUMENT),
    (
        KEYED,
        {**PARTIAL, "ignore-delete": "true", "partial-update.remove-record-on-delete": "true"},
        STATE,
    ),
    (KEYED, {"fields.v.map.storage-layout": "shared-shredding"}, ARGUMENT),
    (KEYED, {"pk-clustering-override": "true"}, ARGUMENT),
    (
        KEYED,
        {"pk-clustering-override": "true", "clustering.columns": "v"},
        UNSUPPORTED,
    ),
    (KEYED, {"pk-btree.index.columns": "v"}, ARGUMENT),
    (
        KEYED,
        {"pk-btree.index.columns": "v", "deletion-vectors.enabled": "true"},
        ARGUMENT,
    ),
    (KEYED, {"pk-btree.index.columns": "v", "pk-bitmap.index.columns": "v"}, ARGUMENT),
    (APPEND, {"auto-create": "true"}, ARGUMENT),
    (KEYED, {"primary-key": "k"}, RUNTIME),
]


@pytest.mark.parametrize(("schema", "options", "kind"), BROKEN)
def test_options_that_contradict_the_table_are_refused(
    schema: Schema, options: dict[str, str], kind: str
) -> None:
    with pytest.raises(InvalidChangeError) as refused:
        create_schema(schema.with_options(options))

    assert refused.value.kind == kind


FINE: list[tuple[Schema, dict[str, str]]] = [
    (APPEND, {}),
    (APPEND, {"bucket": "2", "bucket-key": "a,b"}),
    (APPEND, {"scan.mode": "from-snapshot", "scan.watermark": "3"}),
    (APPEND, {"scan.mode": "default", "scan.timestamp": "2024-01-01"}),
    (APPEND, {"file.format": "orc"}),
    (APPEND, {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}),
    (KEYED, {"bucket": "-2"}),
    (KEYED, {"bucket": "2", "bucket-key": "k", "sequence.field": "v"}),
    (KEYED, {"merge-engine": "FIRST-ROW", "changelog-producer": "lookup"}),
    (KEYED, {"merge-engine": "aggregation", "fields.default-aggregate-function": "sum"}),
    (
        KEYED,
        {**PARTIAL, "fields.v.sequence-group": "w", "fields.w.aggregate-function": "max"},
    ),
    (KEYED, {"sequence.snapshot-ordering": "true", "write-only": "true"}),
    (
        KEYED,
        {"bucket": "1", "deletion-vectors.enabled": "true", "pk-btree.index.columns": "v"},
    ),
    (KEYED, {"record-level.time-field": "v"}),
]


@pytest.mark.parametrize(("schema", "options"), FINE)
def test_options_that_fit_the_table_are_kept(schema: Schema, options: dict[str, str]) -> None:
    assert create_schema(schema.with_options(options)).options == options


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        (Schema.of({"rowkind": "STRING"}), STATE),
        (Schema.of({"_KEY_a": "STRING"}), STATE),
        (Schema.of({" ": "STRING"}), ARGUMENT),
        (Schema.of({"a": ARRAY}, partition_keys=["a"]), UNSUPPORTED),
        (Schema.of({"a": "INT"}, primary_keys=["zz"]), STATE),
        (Schema.of({"a": "INT"}, partition_keys=["a"], primary_keys=["a"]), STATE),
        (Schema.of({"a": "INT", "pic": "BLOB"}), ARGUMENT),
    ],
)
def test_columns_that_no_table_can_have_are_refused(schema: Schema, kind: str) -> None:
    with pytest.raises(InvalidChangeError) as refused:
        create_schema(schema)

    assert refused.value.kind == kind


def test_an_id_given_twice_is_a_broken_schema() -> None:
    schema = Schema.of({"a": "INT", "b": "INT"})
    twice = Schema(fields=[schema.fields[0], schema.fields[1].__class__(0, "b", ARRAY)])

    with pytest.raises(InvalidChangeError, match="broken schema") as refused:
        create_schema(twice)

    assert refused.value.kind == RUNTIME


def test_nullable_primary_keys_stay_nullable() -> None:
    options = {"primary-key.nullable": "true"}

    assert create_schema(KEYED.with_options(options)).field("k").type.nullable
