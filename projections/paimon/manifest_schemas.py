"""The Avro schemas of Paimon's manifests: field order, names and defaults as its Java writes them.

Source: the schemas inside files that Paimon's Java wrote; AvroSchemaConverter.
"""

from __future__ import annotations

from typing import Any

ROOT_NAME = "org.apache.paimon.avro.generated.record"

_Schema = dict[str, Any]


def _record(name: str, *fields: _Schema) -> _Schema:
    return {"type": "record", "name": name, "fields": list(fields)}


def _field(name: str, data_type: Any) -> _Schema:
    return {"name": name, "type": data_type}


def _nullable(name: str, data_type: Any) -> _Schema:
    return {"name": name, "type": ["null", data_type], "default": None}


def _array(items: Any) -> _Schema:
    return {"type": "array", "items": items}


def _stats(parent: str, name: str) -> _Schema:
    return _field(
        name,
        _record(
            f"{parent}_{name}",
            _field("_MIN_VALUES", "bytes"),
            _field("_MAX_VALUES", "bytes"),
            _nullable("_NULL_COUNTS", _array(["null", "long"])),
        ),
    )


_FILE = f"{ROOT_NAME}__FILE"

MANIFEST: _Schema = _record(
    ROOT_NAME,
    _field("_VERSION", "int"),
    _field("_KIND", "int"),
    _field("_PARTITION", "bytes"),
    _field("_BUCKET", "int"),
    _field("_TOTAL_BUCKETS", "int"),
    _field(
        "_FILE",
        _record(
            _FILE,
            _field("_FILE_NAME", "string"),
            _field("_FILE_SIZE", "long"),
            _field("_ROW_COUNT", "long"),
            _field("_MIN_KEY", "bytes"),
            _field("_MAX_KEY", "bytes"),
            _stats(_FILE, "_KEY_STATS"),
            _stats(_FILE, "_VALUE_STATS"),
            _field("_MIN_SEQUENCE_NUMBER", "long"),
            _field("_MAX_SEQUENCE_NUMBER", "long"),
            _field("_SCHEMA_ID", "long"),
            _field("_LEVEL", "int"),
            _field("_EXTRA_FILES", _array("string")),
            _nullable("_CREATION_TIME", {"type": "long", "logicalType": "timestamp-millis"}),
            _nullable("_DELETE_ROW_COUNT", "long"),
            _nullable("_EMBEDDED_FILE_INDEX", "bytes"),
            _nullable("_FILE_SOURCE", "int"),
            _nullable("_VALUE_STATS_COLS", _array("string")),
            _nullable("_EXTERNAL_PATH", "string"),
            _nullable("_FIRST_ROW_ID", "long"),
            _nullable("_WRITE_COLS", _array("string")),
            _nullable("_WRITE_COLS_SEQUENCES", _array("long")),
        ),
    ),
)

MANIFEST_LIST: _Schema = _record(
    ROOT_NAME,
    _field("_VERSION", "int"),
    _field("_FILE_NAME", "string"),
    _field("_FILE_SIZE", "long"),
    _field("_NUM_ADDED_FILES", "long"),
    _field("_NUM_DELETED_FILES", "long"),
    _stats(ROOT_NAME, "_PARTITION_STATS"),
    _field("_SCHEMA_ID", "long"),
    _nullable("_MIN_BUCKET", "int"),
    _nullable("_MAX_BUCKET", "int"),
    _nullable("_MIN_LEVEL", "int"),
    _nullable("_MAX_LEVEL", "int"),
    _nullable("_MIN_ROW_ID", "long"),
    _nullable("_MAX_ROW_ID", "long"),
)

_DELETION_VECTOR = _record(
    f"{ROOT_NAME}__DELETIONS_VECTORS_RANGES",
    _field("f0", "string"),
    _field("f1", "int"),
    _field("f2", "int"),
    _nullable("_CARDINALITY", "long"),
)

_GLOBAL_INDEX = _record(
    f"{ROOT_NAME}__GLOBAL_INDEX",
    _field("_ROW_RANGE_START", "long"),
    _field("_ROW_RANGE_END", "long"),
    _field("_INDEX_FIELD_ID", "int"),
    _nullable("_EXTRA_FIELD_IDS", _array("int")),
    _nullable("_INDEX_META", "bytes"),
)

INDEX_MANIFEST: _Schema = _record(
    ROOT_NAME,
    _field("_VERSION", "int"),
    _field("_KIND", "int"),
    _field("_PARTITION", "bytes"),
    _field("_BUCKET", "int"),
    _field("_INDEX_TYPE", "string"),
    _field("_FILE_NAME", "string"),
    _field("_FILE_SIZE", "long"),
    _field("_ROW_COUNT", "long"),
    _nullable("_DELETIONS_VECTORS_RANGES", _array(["null", _DELETION_VECTOR])),
    _nullable("_EXTERNAL_PATH", "string"),
    _nullable("_GLOBAL_INDEX", _GLOBAL_INDEX),
)
