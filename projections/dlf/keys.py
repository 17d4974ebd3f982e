"""JSON keys of each object, in both spellings.

An attribute's key is its camelCase name, unless a table here says otherwise; an object's keys are
its attributes in order, inherited ones last.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, get_args

import attrs
import msgspec

import projections.dlf.objects as dlf
from ledger.events.catalog import ViewChange
from ledger.events.commit import kind_of
from ledger.events.functions import FunctionChange
from ledger.events.schema import AddColumn, Move, SchemaChange, UpdateColumnPosition
from ledger.model.functions import FunctionDefinition, FunctionFileResource
from ledger.model.names import Identifier
from ledger.model.schema import Schema, ViewSchema
from ledger.model.snapshot import Snapshot
from projections.dlf.objects import (
    AuthTableQueryResponse,
    CreatePartitionsRequest,
    GetDatabaseResponse,
    GetFunctionResponse,
    GetTableResponse,
    GetViewResponse,
    ListPartitionsByFilterRequest,
    Partition,
    PartitionStatistics,
    RollbackTableRequest,
    TableSnapshot,
)


class Style(Enum):
    """Spelling of a rendered object; reading accepts both spellings without a setting.

    | | `DLF` | `PAIMON_REST` |
    |---|---|---|
    | identifier | databaseName, tableName | database, object |
    | isExternal, schemaId | strings | boolean, number |
    | data type | `{"primitiveType": "INT"}` | `"INT"` |
    | instant | `{"snapshotInstant": {...}}` | `{"type": "snapshot", ...}` |
    | snapshot | has logOffsets | has uuid, writerVersion, properties, nextRowId, operation |
    | partition | spec and sums | also totalBuckets, done, options, audit |
    """

    DLF = "DLF"
    PAIMON_REST = "Paimon REST"


_AUDIT = ("owner", "created_at", "created_by", "updated_at", "updated_by")
_SUMS = ("record_count", "file_size_in_bytes", "file_count", "last_file_creation_time")
_SCHEMA = ("fields", "partition_keys", "primary_keys", "options", "comment")
# Only Iceberg has a default for older files.
_ADD_COLUMN = ("field_names", "data_type", "comment", "move")
_MOVE = ("field_name", "reference_field_name", "type")
_OPTIONAL_LISTS = (
    "changelog_manifest_list",
    "changelog_manifest_list_size",
    "index_manifest",
)
_MANIFESTS = (
    "base_manifest_list",
    "base_manifest_list_size",
    "delta_manifest_list",
    "delta_manifest_list_size",
    *_OPTIONAL_LISTS,
)
_COUNTS = ("total_record_count", "delta_record_count", "changelog_record_count")
_COMMIT = ("commit_identifier", "commit_kind", "time_millis")
_TABLE = ("path", "is_external", "schema_id", "schema", *_AUDIT)

_ATTRIBUTES: dict[Style, dict[type, tuple[str, ...]]] = {
    Style.DLF: {
        GetTableResponse: ("id", "name", *_TABLE),
        GetViewResponse: ("id", "name", "schema"),
        Partition: ("spec", *_SUMS),
        Schema: _SCHEMA,
        Snapshot: (
            *("version", "id", "schema_id", *_MANIFESTS, "commit_user", *_COMMIT),
            *("log_offsets", *_COUNTS, "watermark", "statistics"),
        ),
        AddColumn: _ADD_COLUMN,
        Move: _MOVE,
        UpdateColumnPosition: ("field_names", "move"),
    },
    Style.PAIMON_REST: {
        GetTableResponse: ("id", "database", "name", *_TABLE),
        Schema: _SCHEMA,
        Snapshot: (
            *("version", "uuid", "id", "schema_id", *_MANIFESTS, "commit_user", "writer_version"),
            *(*_COMMIT, *_COUNTS, "watermark", "statistics"),
            *("properties", "next_row_id", "operation"),
        ),
        AddColumn: _ADD_COLUMN,
        Move: _MOVE,
        UpdateColumnPosition: ("move",),
    },
}

_TIMES = frozenset({"created_at", "updated_at"})

# Paimon's classes print a key without a value as null, except for these, which are annotated
# otherwise, and for times, which are plain numbers there and cannot be null.
_LEFT_OUT: dict[type, frozenset[str]] = {
    Schema: frozenset({"comment"}),
    ViewSchema: frozenset({"comment"}),
    Snapshot: frozenset(
        {
            *("uuid", "base_manifest_list_size", "delta_manifest_list_size", *_OPTIONAL_LISTS),
            *("writer_version", "changelog_record_count", "watermark", "statistics"),
            *("properties", "next_row_id", "operation"),
        }
    ),
    TableSnapshot: frozenset({"last_file_creation_time"}),
    PartitionStatistics: frozenset({"last_file_creation_time"}),
    Partition: frozenset({"last_file_creation_time", "options", *_AUDIT}),
    CreatePartitionsRequest: frozenset({"partition_statistics", "replace_statistics"}),
    ListPartitionsByFilterRequest: frozenset(
        {"partition_name_pattern", "max_results", "page_token"}
    ),
    RollbackTableRequest: frozenset({"from_snapshot"}),
    AuthTableQueryResponse: frozenset({"filter", "column_masking"}),
    GetTableResponse: _TIMES,
    GetViewResponse: _TIMES,
    GetDatabaseResponse: _TIMES,
    GetFunctionResponse: _TIMES,
}

_IDENTIFIER_KEYS: dict[Style, dict[str, str]] = {
    Style.DLF: {"database": "databaseName", "name": "tableName"},
    Style.PAIMON_REST: {"database": "database", "name": "object"},
}


def attributes_of(kind: type, style: Style) -> tuple[str, ...]:
    """Return the attributes of an object in a style, in order."""
    listed = _ATTRIBUTES[style].get(kind)
    if listed is not None:
        return listed
    if attrs.has(kind):
        own_first = sorted(attrs.fields(kind), key=lambda each: each.inherited)
        return tuple(each.name for each in own_first)
    record: Any = kind
    return tuple(each.name for each in msgspec.structs.fields(record))


NEVER_NULL: dict[type, frozenset[str]] = {
    Snapshot: frozenset({"base_manifest_list", "delta_manifest_list"})
}
"""Attributes that the page never shows as null and the ledger may lack: empty text then."""


def is_left_out(kind: type, attribute: str, style: Style) -> bool:
    """Return whether a key without a value is left out; it is null otherwise.

    Example:
        >>> is_left_out(RollbackTableRequest, "from_snapshot", Style.PAIMON_REST)
        True
        >>> is_left_out(Move, "reference_field_name", Style.PAIMON_REST)
        False
    """
    if style is Style.DLF:
        return attribute not in NEVER_NULL.get(kind, ())
    return attribute in _LEFT_OUT.get(kind, ())


def key_of(kind: type, attribute: str, style: Style) -> str:
    """Return the JSON key of an attribute.

    Example:
        >>> key_of(Snapshot, "base_manifest_list_size", Style.DLF)
        'baseManifestListSize'
        >>> key_of(Identifier, "name", Style.PAIMON_REST)
        'object'
    """
    return _IDENTIFIER_KEYS[style][attribute] if kind is Identifier else camel_case(attribute)


def camel_case(attribute: str) -> str:
    """Return the JSON key, in both styles, of a Python attribute's name."""
    first, *rest = attribute.split("_")
    return first + "".join(word.capitalize() for word in rest)


VIEWS: frozenset[type] = frozenset(
    each
    for each in vars(dlf).values()
    if isinstance(each, type) and each.__module__ == dlf.__name__
)
"""The attrs classes of the API's objects."""

VALUES: frozenset[type] = frozenset({Schema, ViewSchema, Snapshot})
"""The model's own values that are objects of the page, rendered key by key."""

CHANGES: frozenset[type] = frozenset(
    {*get_args(SchemaChange), *get_args(ViewChange), *get_args(FunctionChange)}
)
"""The ledger's own records of changes to a table, a view or a function."""

DEFINITIONS: dict[str, type] = {kind_of(each): each for each in get_args(FunctionDefinition)}
"""Definitions of functions by their `type`, equal in both styles."""

FUNCTION_PARTS: frozenset[type] = frozenset({*get_args(FunctionDefinition), FunctionFileResource})
"""The ledger's own records of a function's definitions."""

RENDERED: frozenset[type] = VIEWS | VALUES | CHANGES | FUNCTION_PARTS | {Identifier, Move}
"""The classes rendered key by key; data types, columns and instants have other forms."""


def change_tag(kind: type) -> str | None:
    """Return the tag of a kind of change; None for any other class.

    Example:
        >>> from ledger.events.schema import AddColumn
        >>> change_tag(AddColumn)
        'addColumn'
    """
    return kind_of(kind) if kind in CHANGES else None


def changes_by_tag(union: object) -> dict[str, type]:
    """Return the members of a union of changes by their tags."""
    return {tag: each for each in get_args(union) if (tag := change_tag(each)) is not None}
