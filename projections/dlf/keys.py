"""Which keys each object has in each style, in the order of the DLF page and of Paimon's classes.

An attribute's key is its camelCase name, unless the table says otherwise.
"""

from __future__ import annotations

from ledger.model.identifier import Identifier
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot
from ledger.model.view import ViewSchema
from projections.dlf.style import Style
from projections.dlf.views import GetTableResponse, GetViewResponse, Partition, TableSnapshot

_AUDIT = ("owner", "created_at", "created_by", "updated_at", "updated_by")
_SUMS = ("record_count", "file_size_in_bytes", "file_count", "last_file_creation_time")
_SCHEMA = ("fields", "partition_keys", "primary_keys", "options", "comment")
_VIEW_SCHEMA = ("fields", "query", "dialects", "comment", "options")
_MANIFESTS = (
    "base_manifest_list",
    "base_manifest_list_size",
    "delta_manifest_list",
    "delta_manifest_list_size",
    "changelog_manifest_list",
    "changelog_manifest_list_size",
    "index_manifest",
)
_COUNTS = ("total_record_count", "delta_record_count", "changelog_record_count")
_COMMIT = ("commit_identifier", "commit_kind", "time_millis")
_TABLE = ("path", "is_external", "schema_id", "schema", *_AUDIT)

ATTRIBUTES: dict[Style, dict[type, tuple[str, ...]]] = {
    Style.DLF: {
        GetTableResponse: ("id", "name", *_TABLE),
        GetViewResponse: ("id", "name", "schema"),
        TableSnapshot: ("snapshot", *_SUMS),
        Partition: ("spec", *_SUMS),
        Schema: _SCHEMA,
        ViewSchema: _VIEW_SCHEMA,
        Snapshot: (
            *("version", "id", "schema_id", *_MANIFESTS, "commit_user", *_COMMIT),
            *("log_offsets", *_COUNTS, "watermark", "statistics"),
        ),
        Identifier: ("database", "name"),
    },
    Style.PAIMON_REST: {
        GetTableResponse: ("id", "database", "name", *_TABLE),
        GetViewResponse: ("id", "name", "schema", *_AUDIT),
        TableSnapshot: ("snapshot", *_SUMS),
        Partition: ("spec", *_SUMS, "total_buckets", "done", *_AUDIT[1:], "options"),
        Schema: _SCHEMA,
        ViewSchema: _VIEW_SCHEMA,
        Snapshot: (
            *("version", "uuid", "id", "schema_id", *_MANIFESTS, "commit_user", "writer_version"),
            *(*_COMMIT, *_COUNTS, "watermark", "statistics"),
            *("properties", "next_row_id", "operation"),
        ),
        Identifier: ("database", "name"),
    },
}

# Paimon's classes print these even when there is nothing to print.
PRINTED_NULLS: dict[Style, frozenset[str]] = {
    Style.DLF: frozenset(),
    Style.PAIMON_REST: frozenset({"base_manifest_list", "delta_manifest_list"}),
}

_IDENTIFIER_KEYS: dict[Style, dict[str, str]] = {
    Style.DLF: {"database": "databaseName", "name": "tableName"},
    Style.PAIMON_REST: {"database": "database", "name": "object"},
}


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
    """Return a Python attribute's name as the JSON key that both styles make of it."""
    first, *rest = attribute.split("_")
    return first + "".join(word.capitalize() for word in rest)
