"""Each of Paimon's rules of options rejects its case with its own message."""

from __future__ import annotations

import pytest

from ledger import InvalidChangeError, Schema
from ledger.decide.schema_rules import validate_schema
from ledger.model.types import (
    STRING,
    ArrayType,
    BlobType,
    DataType,
    FloatType,
    GeometryType,
    IntType,
    MapType,
    MultisetType,
    TimeType,
    VariantType,
    VectorType,
)

Columns = dict[str, str | DataType]

KEY: Columns = {"k": "INT NOT NULL", "p": "STRING NOT NULL", "v": "INT", "w": "STRING"}
PLAIN: Columns = {"a": "INT", "p": "STRING", "w": "STRING"}
VECTOR: Columns = {**KEY, "e": VectorType(FloatType(), 3)}
BLOB: Columns = {**KEY, "b": BlobType()}
LIST: Columns = {**KEY, "l": ArrayType(IntType()), "g": ArrayType(GeometryType())}

INDEXED = {"bucket": "2", "deletion-vectors.enabled": "true"}
BY_VECTOR = {**INDEXED, "pk-vector.index.columns": "e", "fields.e.pk-vector.index.type": "hnsw"}
BY_TEXT = {**INDEXED, "pk-full-text.index.columns": "w"}
SORTED = {**INDEXED, "pk-btree.index.columns": "v"}
CLUSTERED = {
    "pk-clustering-override": "true",
    "clustering.columns": "v",
    "deletion-vectors.enabled": "true",
}
INCREMENTAL = {"clustering.incremental": "true", "clustering.columns": "a"}
FIXED = {**INCREMENTAL, "bucket": "2", "bucket-key": "a"}
TRACKED = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}


def schema(columns: Columns, options: dict[str, str]) -> Schema:
    is_keyed = "k" in columns
    return Schema.of(
        columns,
        primary_keys=["k", "p"] if is_keyed else [],
        partition_keys=["p"] if is_keyed else [],
        options=options,
    )


BROKEN: list[tuple[Columns, dict[str, str], str]] = [
    (VECTOR, {**BY_VECTOR, "pk-vector.index.columns": "e,v"}, "takes one column"),
    (VECTOR, {**INDEXED, "pk-vector.index.columns": "e"}, "needs option fields.e.pk-vector.index"),
    (VECTOR, {**BY_VECTOR, "fields.e.pk-vector.index.type": " "}, "needs option fields.e.pk-vec"),
    (VECTOR, {**BY_VECTOR, "deletion-vectors.enabled": "false"}, "needs deletion-vectors.enabled"),
    (VECTOR, {**BY_VECTOR, "deletion-vectors.merge-on-read": "true"}, "merge-on-read=false"),
    (VECTOR, {**BY_VECTOR, "bucket": "-1"}, "needs a fixed or postponed number of buckets"),
    (
        VECTOR,
        {**BY_VECTOR, "pk-clustering-override": "true", "clustering.columns": "v"},
        "does not go with pk-clustering-override",
    ),
    (
        VECTOR,
        {**INDEXED, "pk-vector.index.columns": "v", "fields.v.pk-vector.index.type": "hnsw"},
        "names v, which is not a VECTOR column",
    ),
    (
        {**KEY, "e": VectorType(IntType(), 3)},
        BY_VECTOR,
        "e must hold FLOAT elements",
    ),
    (VECTOR, {**BY_VECTOR, "fields.e.pk-vector.distance.metric": "far"}, "e is measured by one of"),
    (KEY, {**BY_TEXT, "pk-full-text.index.columns": "v,w"}, "takes one column"),
    (KEY, {**BY_TEXT, "deletion-vectors.enabled": "false"}, "needs deletion-vectors.enabled"),
    (KEY, {**BY_TEXT, "pk-full-text.index.columns": "zz"}, "names zz, which is not a column"),
    (KEY, {**BY_TEXT, "pk-full-text.index.columns": "v"}, "v must be CHAR, VARCHAR or STRING"),
    (KEY, {**SORTED, "deletion-vectors.enabled": "false"}, "needs deletion-vectors.enabled"),
    (PLAIN, {"deletion-vectors.enabled": "true", "pk-btree.index.columns": "a"}, "a primary key"),
    (LIST, {**INDEXED, "pk-btree.index.columns": "l"}, "l holds ARRAY, which has no order"),
    (KEY, {**INDEXED, "pk-multivalue.index.columns": "v"}, "v, which is not an ARRAY column"),
    (LIST, {**INDEXED, "pk-multivalue.index.columns": "g"}, "holds GEOMETRY, which has no order"),
    (KEY, {**SORTED, "pk-bitmap.index.columns": "v"}, "column v is listed in"),
    (KEY, INCREMENTAL, "does not go with a primary key"),
    (PLAIN, FIXED, "needs bucket-append-ordered=false"),
    (
        PLAIN,
        {**FIXED, "bucket-append-ordered": "false", "deletion-vectors.enabled": "true"},
        "with fixed buckets does not go with deletion vectors",
    ),
    (KEY, {"pk-clustering-override": "true"}, "needs clustering.columns"),
    (KEY, {**CLUSTERED, "deletion-vectors.enabled": "false"}, "needs deletion-vectors.enabled"),
    (KEY, {**CLUSTERED, "record-level.expire-time": "1 d"}, "go with record-level.expire-time"),
    (KEY, {**CLUSTERED, "merge-engine": "partial-update"}, "with merge-engine partial-update"),
    (KEY, {**CLUSTERED, "sequence.field": "v"}, "does not go with sequence.field"),
    (KEY, {**CLUSTERED, "changelog-producer": "lookup"}, "changelog-producer none or input only"),
    (PLAIN, {"table-read.sequence-number.enabled": "true"}, "needs a primary key"),
    (PLAIN, {"manifest-sort.enabled": "true"}, "needs a partitioned table"),
    (
        KEY,
        {"manifest-sort.enabled": "true", "manifest-sort.partition-field": "v"},
        "manifest-sort.partition-field names v, not a partition key",
    ),
    (PLAIN, {"full-compaction.delta-commits": "many", "bucket": "2", "bucket-key": "a"}, "many"),
    ({**KEY, "m": MapType(STRING, IntType())}, {"file.format": "csv"}, "csv cannot hold MAP"),
    ({**PLAIN, "x": MultisetType(IntType())}, {"file.format": "json"}, "json cannot hold MULTISET"),
    ({**PLAIN, "x": VariantType()}, {"file.format": "avro"}, "Avro files cannot hold VARIANT"),
    ({**PLAIN, "x": TimeType(6)}, {"file.format": "avro"}, "Avro keeps 3 digits"),
    ({**PLAIN, "x": VariantType()}, {"file.format": "orc"}, "ORC files cannot hold VARIANT"),
    (BLOB, {"merge-engine": "aggregation"}, "do not go with merge-engine aggregation"),
    (BLOB, {"bucket": "2", "changelog-producer": "lookup"}, "need changelog-producer none"),
    (BLOB, {"data-file.external-paths": "file:/x"}, "do not go with external paths"),
    (BLOB, {"pk-clustering-override": "true"}, "do not go with pk-clustering-override"),
    (BLOB, {"sequence.field": "b"}, "cannot be sequence fields"),
    (
        BLOB,
        {
            "merge-engine": "partial-update",
            "fields.v.sequence-group": "b",
            "fields.b.aggregate-function": "first_value",
        },
        "BLOB column b cannot be aggregated by first_value",
    ),
    (PLAIN, {**TRACKED, "bucket": "2", "bucket-key": "a"}, "row-tracking.enabled needs bucket=-1"),
    (PLAIN, {**TRACKED, **INCREMENTAL}, "does not go with clustering.incremental"),
    ({"b": BlobType()}, TRACKED, "need at least one ordinary column beside them"),
    (
        {**PLAIN, "e": VectorType(FloatType(), 3)},
        {"vector.file.format": "parquet"},
        "vector.file.format needs data-evolution.enabled=true",
    ),
]


@pytest.mark.parametrize(("columns", "options", "said"), BROKEN)
def test_an_option_rule_refuses_by_its_own_words(
    columns: Columns, options: dict[str, str], said: str
) -> None:
    with pytest.raises(InvalidChangeError, match=said):
        validate_schema(schema(columns, options))


SOUND: list[tuple[Columns, dict[str, str]]] = [
    (VECTOR, BY_VECTOR),
    (VECTOR, {**BY_VECTOR, "fields.e.pk-vector.distance.metric": "Inner-Product"}),
    (VECTOR, {**BY_VECTOR, "bucket": "-2"}),
    (KEY, BY_TEXT),
    (KEY, SORTED),
    (LIST, {**INDEXED, "pk-multivalue.index.columns": "l"}),
    (PLAIN, INCREMENTAL),
    (PLAIN, {**FIXED, "bucket-append-ordered": "false"}),
    (KEY, CLUSTERED),
    (KEY, {"manifest-sort.enabled": "true", "manifest-sort.partition-field": "p"}),
    (PLAIN, {"file.format": "json"}),
    (PLAIN, {"file.format": "csv"}),
    ({**PLAIN, "x": TimeType(3)}, {"file.format": "avro"}),
    (BLOB, {}),
    ({**PLAIN, "b": BlobType()}, TRACKED),
]


@pytest.mark.parametrize(("columns", "options"), SOUND)
def test_what_no_option_rule_is_about_is_taken(columns: Columns, options: dict[str, str]) -> None:
    validate_schema(schema(columns, options))
