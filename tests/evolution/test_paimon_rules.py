"""Small cases of Paimon's rules; every expectation came from running Paimon's own Java classes."""

from __future__ import annotations

from typing import Any

import pytest

import ledger
from ledger.decide import create_schema
from projections.paimon import schema_from_json, schema_to_json

ARGUMENT, STATE, UNSUPPORTED, RUNTIME = (
    "ILLEGAL_ARGUMENT",
    "ILLEGAL_STATE",
    "UNSUPPORTED",
    "RUNTIME",
)
TYPES: dict[str, Any] = {
    "k": "INT NOT NULL",
    "p": "STRING NOT NULL",
    "v": "INT",
    "w": "STRING",
    "b": "BYTES",
    "dec": "DECIMAL(30, 2)",
    "ts": "TIMESTAMP(9)",
    "us": "TIMESTAMP(6)",
    "arr": {"type": "ARRAY", "element": "INT"},
    "m": {"type": "MAP", "key": "STRING NOT NULL", "value": "INT"},
    "c": {"type": "MAP", "key": "CHAR(3) NOT NULL", "value": "INT"},
    "r": {"type": "ROW", "fields": [{"id": 50, "name": "x", "type": "INT"}]},
}
KEYED = {"primaryKeys": ["k"]}
BUCKETS = {**KEYED, "options": {"bucket": "2"}}
APPEND: dict[str, Any] = {}
PARTS = {"primaryKeys": ["k", "p"], "partitionKeys": ["p"]}
SHREDDED = {"fields.m.map.storage-layout": "shared-shredding"}
SORTED = {"deletion-vectors.enabled": "true", "bucket": "2"}
CHAIN = {
    "chain-table.enabled": "true",
    "bucket": "2",
    "sequence.field": "v",
    "partition.timestamp-pattern": "$p",
    "partition.timestamp-formatter": "yyyyMMdd",
}


def table(keys: dict[str, Any], **types: Any) -> dict[str, Any]:
    columns = {**TYPES, **types}
    return {
        "version": 3,
        "id": 0,
        "fields": [
            {"id": i, "name": name, "type": columns[name]} for i, name in enumerate(columns)
        ],
        "highestFieldId": 50,
        "partitionKeys": [],
        "primaryKeys": [],
        "options": {},
        **keys,
    }


def options(**given: str) -> list[dict[str, str]]:
    return [{"action": "setOption", "key": key, "value": value} for key, value in given.items()]


OPTIONS: list[tuple[dict[str, Any], dict[str, str], str | None]] = [
    # Bucket keys are looked at before anything else.
    (KEYED, {"bucket-key": "zz"}, RUNTIME),
    (KEYED, {"bucket-key": "v"}, RUNTIME),
    (KEYED, {"bucket-key": "k"}, ARGUMENT),
    (APPEND, {"bucket": "2", "bucket-key": "arr"}, RUNTIME),
    (APPEND, {"bucket": "99999999999"}, ARGUMENT),
    (APPEND, {"full-compaction.delta-commits": "x"}, ARGUMENT),
    (APPEND, {"full-compaction.delta-commits": "0"}, RUNTIME),
    # Enumerations are compared in any case, and in no other spelling.
    (KEYED, {"merge-engine": "First-Row"}, None),
    (KEYED, {"merge-engine": "first_row"}, ARGUMENT),
    (KEYED, {"changelog-producer": "full_compaction"}, ARGUMENT),
    (KEYED, {"scan.mode": " latest"}, ARGUMENT),
    (KEYED, {"scan.snapshot-id": "x"}, ARGUMENT),
    (KEYED, {"ignore-delete": "maybe"}, ARGUMENT),
    (APPEND, {"ignore-delete": "maybe"}, None),
    (KEYED, {"fields": "x"}, RUNTIME),
    (KEYED, {"fields.": "x"}, RUNTIME),
    (KEYED, {"fields.r.x.aggregate-function": "sum"}, ARGUMENT),
    # File formats and what they hold.
    (APPEND, {"file.format": "bogus"}, RUNTIME),
    (APPEND, {"file.format": "csv"}, UNSUPPORTED),
    (APPEND, {"file.format": "json"}, None),
    (APPEND, {"file.format": "text"}, ARGUMENT),
    (APPEND, {"file.format.per.level": "x"}, ARGUMENT),
    (APPEND, {"file.block-size": "x"}, ARGUMENT),
    (APPEND, {"file.block-size": "64 mb"}, None),
    (APPEND, {"read.batch-size": "x"}, ARGUMENT),
    (APPEND, {"vector.file.format": "bogus"}, RUNTIME),
    (APPEND, {"metadata.iceberg.storage": "bogus"}, ARGUMENT),
    # File indexes.
    (APPEND, {"file-index.bloom-filter.columns": "v, w"}, None),
    (APPEND, {"file-index.bloom-filter.columns": "zz"}, ARGUMENT),
    (APPEND, {"file-index.bloom-filter.columns": "v,,w"}, ARGUMENT),
    (APPEND, {"file-index.bloom-filter.columns": "m[key]"}, None),
    (APPEND, {"file-index.bloom-filter.columns": "w[key]"}, ARGUMENT),
    (APPEND, {"file-index.bloom-filter.columns": "m"}, ARGUMENT),
    (APPEND, {"file-index.bitmap.columns": "dec"}, ARGUMENT),
    (APPEND, {"file-index.bsi.columns": "dec"}, None),
    (APPEND, {"file-index.bsi.columns": "w"}, ARGUMENT),
    (APPEND, {"file-index.range-bitmap.columns": "ts"}, ARGUMENT),
    (APPEND, {"file-index.range-bitmap.columns": "us"}, None),
    (APPEND, {"file-index.bogus.columns": "v"}, RUNTIME),
    (APPEND, {"file-index.bloom-filter.v.items": "5"}, ARGUMENT),
    (APPEND, {"file-index.bitmap.columns": "v", "file-index.bitmap.v.version": "2"}, None),
    (APPEND, {**SHREDDED, "file-index.bitmap.columns": "m[key]"}, ARGUMENT),
    # Primary-key indexes.
    (KEYED, {**SORTED, "pk-btree.index.columns": "v"}, None),
    (KEYED, {**SORTED, "pk-btree.index.columns": "b"}, UNSUPPORTED),
    (KEYED, {**SORTED, "pk-multivalue.index.columns": "arr"}, None),
    (KEYED, {**SORTED, "pk-multivalue.index.columns": "v"}, ARGUMENT),
    # Maps and variants in columns of their own.
    (APPEND, SHREDDED, None),
    (APPEND, {"fields.c.map.storage-layout": "shared-shredding"}, ARGUMENT),
    (APPEND, {"fields.m.map.storage-layout": "bogus"}, ARGUMENT),
    (APPEND, {**SHREDDED, "fields.m.map.shared-shredding.max-columns": "0"}, ARGUMENT),
    (APPEND, {**SHREDDED, "file.compression": "snappy"}, ARGUMENT),
    (APPEND, {**SHREDDED, "changelog-file.format": "avro"}, ARGUMENT),
    (KEYED, {"bucket": "-2"}, None),
    (KEYED, {**SHREDDED, "bucket": "-2"}, ARGUMENT),
    (APPEND, {"variant.shredding.maxInferBufferRow": "0"}, ARGUMENT),
    (APPEND, {"variant.shredding.minFieldCardinalityRatio": "2"}, ARGUMENT),
    (APPEND, {"variant.shredding.adaptive.retentionRatio": "0.5"}, None),
    (
        APPEND,
        {
            "variant.shredding.inferenceMode": "adaptive",
            "variant.shredding.adaptive.retentionRatio": "0.5",
        },
        ARGUMENT,
    ),
    # Chain tables.
    (PARTS, CHAIN, None),
    (KEYED, CHAIN, ARGUMENT),
    (PARTS, {**CHAIN, "bucket": "-1"}, ARGUMENT),
    (PARTS, {**CHAIN, "changelog-producer": "lookup"}, ARGUMENT),
    (PARTS, {**CHAIN, "chain-table.chain-partition-keys": "k"}, ARGUMENT),
    (PARTS, {**CHAIN, "chain-table.chain-partition-keys": "p"}, None),
    (
        PARTS,
        {
            **CHAIN,
            "partition.expiration-time": "1 d",
            "partition.expiration-strategy": "update-time",
        },
        ARGUMENT,
    ),
]


@pytest.mark.parametrize(("keys", "wanted", "kind"), OPTIONS)
def test_options_are_judged_as_in_paimon(
    keys: dict[str, Any], wanted: dict[str, str], kind: str | None
) -> None:
    given = schema_from_json(table(keys))
    changes = [ledger.schema_change_from_json(each) for each in options(**wanted)]

    if kind is None:
        assert ledger.evolve(given, changes).options == wanted
        return
    with pytest.raises(ledger.InvalidChangeError) as refused:
        ledger.evolve(given, changes)
    assert refused.value.kind == kind


GEO: list[tuple[str, dict[str, str], str | None]] = [
    ("GEOMETRY", {}, None),
    ("GEOMETRY", {"metadata.iceberg.storage": "table-location"}, ARGUMENT),
    ("GEOGRAPHY('a,b')", {}, None),
    (
        "GEOMETRY",
        {"metadata.iceberg.storage": "table-location", "metadata.iceberg.format-version": "3"},
        None,
    ),
    (
        "GEOMETRY",
        {"metadata.iceberg.storage": "rest-catalog", "metadata.iceberg.format-version": "3"},
        ARGUMENT,
    ),
    (
        "GEOGRAPHY('a,b')",
        {"metadata.iceberg.storage": "hive-catalog", "metadata.iceberg.format-version": "3"},
        ARGUMENT,
    ),
]


@pytest.mark.parametrize(("geo_type", "wanted", "kind"), GEO)
def test_shapes_in_iceberg_metadata_are_judged_as_in_paimon(
    geo_type: str, wanted: dict[str, str], kind: str | None
) -> None:
    asked = ledger.schema_from_json(table({"options": wanted}, geo=geo_type))

    if kind is None:
        assert create_schema(asked).options == wanted
        return
    with pytest.raises(ledger.InvalidChangeError) as refused:
        create_schema(asked)
    assert refused.value.kind == kind


def retyped(new: Any) -> dict[str, Any]:
    return {
        "action": "updateColumnType",
        "fieldNames": ["g"],
        "newDataType": new,
        "keepNullability": False,
    }


CHANGES: list[tuple[dict[str, Any], dict[str, Any], bool, str]] = [
    (KEYED, {"action": "setOption", "key": "bucket", "value": "x"}, True, ARGUMENT),
    (BUCKETS, {"action": "setOption", "key": "bucket", "value": " 3"}, True, ARGUMENT),
    (KEYED, {"action": "setOption", "key": "bucket", "value": "4"}, True, UNSUPPORTED),
    (KEYED, retyped("GEOMETRY"), False, STATE),
    (KEYED, retyped("GEOMETRY('EPSG:3857')"), False, STATE),
    (
        KEYED,
        {"action": "updateColumnDefaultValue", "fieldNames": ["w"], "newDefaultValue": "'"},
        False,
        RUNTIME,
    ),
    (
        KEYED,
        {"action": "updateColumnDefaultValue", "fieldNames": ["m"], "newDefaultValue": "{a=1}"},
        False,
        RUNTIME,
    ),
]


@pytest.mark.parametrize(("keys", "change", "has_snapshots", "kind"), CHANGES)
def test_a_change_is_refused_as_in_paimon(
    keys: dict[str, Any],
    change: dict[str, Any],
    has_snapshots: bool,  # noqa: FBT001 - pytest passes it by name
    kind: str,
) -> None:
    given = schema_from_json(table(keys, g="GEOMETRY"))

    with pytest.raises(ledger.InvalidChangeError) as refused:
        ledger.evolve(given, [ledger.schema_change_from_json(change)], has_snapshots=has_snapshots)

    assert refused.value.kind == kind


@pytest.mark.parametrize("text", ["{a -> 1, b -> null}", "MAP(a, 1)", "null"])
def test_a_map_default_is_written_with_arrows_or_as_a_call(text: str) -> None:
    change = {
        "action": "updateColumnDefaultValue",
        "fieldNames": ["m"],
        "newDefaultValue": text,
    }

    after = ledger.evolve(schema_from_json(table(KEYED)), [ledger.schema_change_from_json(change)])

    written = {each["name"]: each for each in schema_to_json(after)["fields"]}
    assert written["m"]["defaultValue"] == text


def test_a_primary_key_of_partition_keys_alone_is_refused() -> None:
    asked = table({"primaryKeys": ["k"], "partitionKeys": ["k", "p"]})

    with pytest.raises(ledger.InvalidChangeError) as refused:
        create_schema(ledger.schema_from_json(asked))

    assert refused.value.kind == STATE


def test_keys_are_judged_before_the_orders_in_comments() -> None:
    asked = table({"primaryKeys": ["zz"]})
    asked["fields"][2]["description"] = "__BLOB_FIELD"

    with pytest.raises(ledger.InvalidChangeError) as refused:
        create_schema(ledger.schema_from_json(asked))

    assert refused.value.kind == STATE
