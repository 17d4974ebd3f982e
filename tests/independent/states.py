"""The bytes of a state, by the second reader: written from FORMAT.md alone, as it is."""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

from tests.independent.elsewhere import FromDelta, FromIceberg, FromPaimon
from tests.independent.replayer import Catalog, Doc, Table

NO_IDENTIFIER = 2**63 - 1
UNKNOWN = -1
NO_MAP: Doc = {}
NO_LIST: list[Any] = []
SAID_OF_SNAPSHOTS = {
    "base_manifest_list": "baseManifestList",
    "base_manifest_list_size": "baseManifestListSize",
    "changelog_manifest_list": "changelogManifestList",
    "changelog_manifest_list_size": "changelogManifestListSize",
    "changelog_record_count": "changelogRecordCount",
    "commit_identifier": "commitIdentifier",
    "commit_kind": "commitKind",
    "commit_user": "commitUser",
    "delta_manifest_list": "deltaManifestList",
    "delta_manifest_list_size": "deltaManifestListSize",
    "delta_record_count": "deltaRecordCount",
    "id": "snapshotId",
    "index_manifest": "indexManifest",
    "log_offsets": "logOffsets",
    "next_row_id": "nextRowId",
    "operation": "operation",
    "properties": "snapshotProperties",
    "schema_id": "schemaId",
    "statistics": "statistics",
    "time_millis": "timeMillis",
    "total_record_count": "totalRecordCount",
    "uuid": "uuid",
    "version": "version",
    "watermark": "watermark",
    "writer_version": "writerVersion",
}
OF_TABLES: Doc = {
    **dict.fromkeys(("isExternal", "dropped", "hasSidecars"), False),
    **dict.fromkeys(("defaultSpecId", "defaultOrderId", "lastBranchNumber"), 0),
    "earliestSnapshotId": 1,
    **dict.fromkeys(("snapshot", "origin")),
    **dict.fromkeys(("tags", "partitionStatistics", "formatRules"), NO_MAP),
    **dict.fromkeys(("branches", "statistics"), NO_MAP),
    **dict.fromkeys(("nameMappingSchemaIds", "corrections"), NO_LIST),
    "owner": {},
}
OF_OWNERS: Doc = {"kind": "ledger", "protocol": None, "sinceVersion": 0}
OF_SCHEMAS: Doc = {
    **dict.fromkeys(("partitionKeys", "primaryKeys", "identifierFieldIds"), NO_LIST),
    "options": {},
    "comment": None,
    "fieldIdPolicy": "paimon",
}
OF_ICEBERG: Doc = {
    "tableUuid": None,
    **dict.fromkeys(("snapshots", "addedVersions", "refs", "tagTimes"), NO_MAP),
    **dict.fromkeys(("statistics", "encryptionKeys"), NO_MAP),
    **dict.fromkeys(("snapshotLog", "metadataLog"), NO_LIST),
    **dict.fromkeys(("lastSequenceNumber", "nextRowId", "lastUpdatedMillis"), 0),
    "metadataFile": "",
    **dict.fromkeys(("syncedVersion", "promotedVersion"), -1),
    **dict.fromkeys(("sourceLastSnapshotId", "lastAssignedSnapshotId"), 0),
    "ledgerSnapshotIds": NO_LIST,
}
OF_PAIMON: Doc = {
    **dict.fromkeys(("snapshots", "taggedSnapshots", "addedVersions"), NO_MAP),
    **dict.fromkeys(("branches", "branchVersions", "rolledBackVersions"), NO_MAP),
    "promotedVersion": -1,
    "sourceLastSnapshotId": 0,
    "totals": {
        **dict.fromkeys(("file_count", "file_size_in_bytes", "record_count"), 0),
        "last_file_creation_time": None,
    },
}
OF_DELTA: Doc = {
    "deltaVersion": -1,
    **dict.fromkeys(("oldestVersion", "timestampMillis"), 0),
    **dict.fromkeys(("sha256", "protocol", "metadata"), ""),
    "columns": {},
    **dict.fromkeys(("promotedVersion", "sourceSchemaId"), -1),
}
OF_ICEBERG_VIEWS = (
    *("uuid", "location", "formatVersion", "properties", "schemas", "versions"),
    *("currentVersionId", "versionLog"),
)
OF_CATALOGS: Doc = {
    "corrections": [],
    "location": "",
    "locationVersion": -1,
    "aliases": [],
    **dict.fromkeys(("ledgerId", "copiedFrom"), ""),
    "hasSidecars": False,
    "dropped": [],
    "functions": [],
}
"""Default values that a record leaves out, in the order of its keys."""
OF_FUNCTIONS = (
    *("inputParams", "returnParams", "deterministic", "definitions", "comment", "options"),
)
ICEBERG_SNAPSHOT = (
    *("sequence-number", "snapshot-id", "parent-snapshot-id", "timestamp-ms", "summary"),
    *("manifest-list", "manifests", "schema-id", "first-row-id", "added-rows", "key-id"),
)
ICEBERG_REF = (
    *("snapshot-id", "type", "min-snapshots-to-keep", "max-snapshot-age-ms", "max-ref-age-ms"),
)
AUTHORS = (
    *("author", "commit-user", "user", "user.name", "username", "trino_user", "owner"),
    *("spark.app.id", "flink.job-id", "trino_query_id", "engine-name", "app-id"),
)


def state_hash(folded: Table | Catalog) -> str:
    """Return the hash of what a stream came to, in hex."""
    return hashlib.sha256(state_bytes(folded)).hexdigest()


def state_bytes(folded: Table | Catalog) -> bytes:
    """Return what a checkpoint says of what a stream came to."""
    found = of_catalog(folded) if isinstance(folded, Catalog) else of_table(folded)
    return json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode()


def less(said: Doc, absent: Mapping[str, Any]) -> Doc:
    """Return what is said, without keys whose values say nothing."""
    return {k: each for k, each in said.items() if k not in absent or each != absent[k]}


def in_order(keys: Iterable[str], said: Doc) -> Doc:
    """Return what is said, in the order of some keys."""
    return {key: said[key] for key in keys if key in said}


def of_table(table: Table) -> Doc:
    """Return the record of a table's state."""
    state = table.state
    snapshot, totals, tags = state["snapshot"], state["totals"], state["tags"]
    match table:
        case FromIceberg():
            head = table.imported["refs"].get("main")
            current = head and table.imported["snapshots"][head["snapshot-id"]]
            snapshot, totals = iceberg_snapshot(current, state), iceberg_totals(current)
            tags = iceberg_tags(table.imported)
        case FromPaimon():
            snapshot = table.snapshots[max(table.snapshots)] if table.snapshots else None
            totals = [0, 0, 0, None]
            if table.promoted_in >= 0 and snapshot and snapshot["snapshotId"] > table.last_followed:
                totals = state["totals"]
            elif snapshot is not None:
                totals = [snapshot["totalRecordCount"], UNKNOWN, UNKNOWN, None]
    found = {
        "version": state["version"],
        "timeMillis": state["timeMillis"],
        "effectiveMillis": state["updated"][0],
        "tableId": state["tableId"],
        "path": state["path"],
        "schema": of_schema({**state, "fields": table.fields, "options": table.options}),
        "specs": [{"spec-id": key, "fields": fields} for key, fields in state["specs"].items()],
        "createdAt": state["created"][0],
        "createdBy": state["created"][1],
        "updatedAt": state["updated"][0],
        "updatedBy": state["updated"][1],
        "isExternal": state["external"],
        "defaultSpecId": state["spec"],
        "lastPartitionId": state["lastPartitionId"],
        "sortOrders": [
            {"order-id": key, "fields": fields} for key, fields in state["orders"].items()
        ],
        "defaultOrderId": state["order"],
        "snapshot": of_snapshot(snapshot),
        "earliestSnapshotId": state["earliest"],
        "totals": of_totals(totals),
        "tags": {name: of_tag(name, *tags[name]) for name in sorted(tags)},
        "partitionStatistics": dict(sorted(state["statistics"].items())),
        "nameMappingSchemaIds": state["named"],
        "dropped": state["dropped"],
        "corrections": of_corrections(state["corrections"]),
        "formatRules": dict(sorted(state["rules"].items())),
        "origin": of_origin(table),
        "hasSidecars": table.is_outside,
        "branches": {
            name: of_branch(name, each) for name, each in sorted(state["branches"].items())
        },
        "lastBranchNumber": state["branchesEver"],
        "statistics": dict(sorted(state["puffin"].items())),
        "owner": less(dict(zip(OF_OWNERS, state["owner"], strict=True)), OF_OWNERS),
    }
    return less(found, OF_TABLES)


def of_schema(schema: Doc) -> Doc:
    """Return the record of a schema."""
    found = {
        "id": schema["schemaId"],
        "fields": schema["fields"],
        "highestFieldId": schema["highestFieldId"],
        "timeMillis": schema["schemaTime"],
        "partitionKeys": schema["partitionKeys"],
        "primaryKeys": schema["primaryKeys"],
        "options": dict(sorted(schema["options"].items())),
        "comment": schema["comment"],
        "identifierFieldIds": schema["identifierFieldIds"],
        "fieldIdPolicy": schema["policy"],
    }
    return less({**found, "fields": [*map(of_field, schema["fields"])]}, OF_SCHEMAS)


def of_field(field: Doc) -> Doc:
    """Return the record of a column or a member of a ROW."""
    keys = ("id", "name", "type", "description", "defaultValue", "initialDefault")
    return in_order(keys, {**field, "type": of_type(field["type"])})


def of_type(data_type: Any) -> Any:
    """Return the record of a type."""
    if isinstance(data_type, str):
        return data_type
    inner = {k: of_type(data_type[k]) for k in ("element", "key", "value") if k in data_type}
    if "fields" in data_type:
        inner["fields"] = [*map(of_field, data_type["fields"])]
    keys = ("type", "element", "key", "value", "fields", "length", "elementId", "keyId", "valueId")
    return in_order(keys, {**data_type, **inner})


def of_snapshot(snapshot: Doc | None) -> Doc | None:
    """Return the record of a snapshot."""
    if snapshot is None:
        return None
    said = {"commitIdentifier": NO_IDENTIFIER, **snapshot, "version": 3}
    return {name: said.get(key) for name, key in SAID_OF_SNAPSHOTS.items()}


def of_totals(totals: list[Any]) -> Doc:
    """Return the record of sums."""
    records, size, count, created = totals
    sizes = {"file_count": count, "file_size_in_bytes": size}
    return {**sizes, "last_file_creation_time": created, "record_count": records}


def of_tag(name: str, snapshot_id: int, moment: int, retained: int | None) -> Doc:
    """Return the record of a tag."""
    said = {"create_time_millis": moment, "name": name, "snapshot_id": snapshot_id}
    return {**said, "time_retained_millis": retained}


def of_corrections(corrections: list[Doc]) -> list[Doc]:
    """Return the records of what is known of clocks."""
    return [
        {"true_time_millis": each["trueTimeMillis"], "version": each["version"]}
        for each in corrections
    ]


def of_branch(name: str, branch: Doc) -> Doc:
    """Return the record of a branch."""
    to_keep, snapshot_age, ref_age = branch["kept"]
    return {
        "base_snapshot_id": branch["base"],
        "base_version": branch["baseVersion"],
        "earliest_snapshot_id": branch["earliest"],
        "first_snapshot_id": branch["first"],
        "max_ref_age_millis": ref_age,
        "max_snapshot_age_millis": snapshot_age,
        "min_snapshots_to_keep": to_keep,
        "name": name,
        "number": branch["number"],
        "since_version": branch["since"],
        "snapshot": of_snapshot(branch["snapshot"]),
        "totals": of_totals(branch["totals"]),
    }


# Imported tables


def of_origin(table: Table) -> Doc | None:
    """Return what a table has of the one that it was imported from."""
    if isinstance(table, FromIceberg):
        return {"type": "iceberg", **of_iceberg(table)}
    if isinstance(table, FromPaimon):
        return {"type": "paimon", **of_paimon(table)}
    return {"type": "delta", **of_delta(table)} if isinstance(table, FromDelta) else None


def of_iceberg(table: FromIceberg) -> Doc:
    """Return the record of what a table has besides that came from Iceberg."""
    keys = ("source", "location", "formatVersion", "tableUuid", "schemas", "schemaId")
    imported = in_order((*keys, *(each for each in OF_ICEBERG if each not in keys)), table.imported)
    imported["snapshots"] = {
        key: in_order(ICEBERG_SNAPSHOT, each) for key, each in imported["snapshots"].items()
    }
    imported["refs"] = {key: in_order(ICEBERG_REF, each) for key, each in imported["refs"].items()}
    schema = ("schemaId", "fields", "identifierFieldIds", "schemaJson")
    imported["schemas"] = {
        key: in_order(schema, {**each, "fields": [*map(of_field, each["fields"])]})
        for key, each in imported["schemas"].items()
    }
    return less(imported, OF_ICEBERG)


def iceberg_snapshot(snapshot: Doc | None, state: Doc) -> Doc | None:
    """Return a snapshot of Iceberg's as one of the ledger's."""
    if snapshot is None:
        return None
    summary = snapshot.get("summary", {})
    kinds = {"append": "APPEND", "replace": "COMPACT"}
    return {
        "snapshotId": snapshot["snapshot-id"],
        "schemaId": snapshot.get("schema-id", state["schemaId"]),
        "commitKind": kinds.get(summary.get("operation"), "OVERWRITE"),
        "commitUser": next((summary[key] for key in AUTHORS if summary.get(key)), ""),
        "timeMillis": snapshot["timestamp-ms"],
        "totalRecordCount": counted(summary, "total-records", UNKNOWN),
        "deltaRecordCount": counted(summary, "added-records") - counted(summary, "deleted-records"),
        "baseManifestList": snapshot.get("manifest-list"),
        "snapshotProperties": summary,
        "operation": summary.get("operation"),
    }


def iceberg_totals(snapshot: Doc | None) -> list[Any]:
    """Return the sums after a snapshot, as its summary says them."""
    if snapshot is None:
        return [0, 0, 0, None]
    names = ("total-records", "total-files-size", "total-data-files")
    return [*(counted(snapshot.get("summary", {}), each, UNKNOWN) for each in names), None]


def counted(summary: Doc, key: str, absent: int = 0) -> int:
    """Return what a summary says, if it is a count."""
    text = summary.get(key, "")
    is_count = text.isascii() and text.isdigit() and int(text) < 2**63
    return int(text) if is_count else absent


def iceberg_tags(imported: Doc) -> Doc:
    """Return the refs that are tags."""
    return {
        name: [ref["snapshot-id"], imported["tagTimes"][name], ref.get("max-ref-age-ms")]
        for name, ref in imported["refs"].items()
        if ref["type"] == "tag"
    }


def of_paimon(table: FromPaimon) -> Doc:
    """Return the record of what a table has besides that came from Paimon."""
    found = {
        "source": table.origin["source"],
        "location": table.origin["location"],
        "schemas": {key: of_schema(each) for key, each in table.schemas.items()},
        "snapshots": {key: of_snapshot(each) for key, each in table.snapshots.items()},
        "taggedSnapshots": {key: of_snapshot(each) for key, each in table.kept.items()},
        "addedVersions": table.added_in,
        "branches": table.branch_files,
        "branchVersions": table.branch_added_in,
        "rolledBackVersions": table.rolled_back_in,
        "promotedVersion": table.promoted_in,
        "sourceLastSnapshotId": table.last_followed,
        "totals": of_totals(table.state["totals"]),
    }
    return less(found, OF_PAIMON)


def of_delta(table: FromDelta) -> Doc:
    """Return the record of what a table has besides that came from Delta."""
    return less(in_order(("source", "tableId", *OF_DELTA), table.delta), OF_DELTA)


def of_catalog(catalog: Catalog) -> Doc:
    """Return the record of the catalog's state."""
    found = {
        "version": catalog.version,
        "timeMillis": catalog.time_millis,
        "effectiveMillis": catalog.effective_millis,
        "databases": [of_database(name, it) for name, it in sorted(catalog.databases.items())],
        "tables": [of_entry(name, it) for name, it in sorted(catalog.tables.items())],
        "views": [of_view(name, it) for name, it in sorted(catalog.views.items())],
        "usedPaths": sorted(catalog.paths),
        "corrections": of_corrections(catalog.corrections),
        "location": catalog.place,
        "locationVersion": catalog.placed_version,
        "aliases": sorted(catalog.aliases),
        "ledgerId": catalog.ledger_id,
        "copiedFrom": catalog.copied_from,
        "hasSidecars": catalog.is_outside,
        "dropped": [
            of_dropped(gone)
            for _, gone in sorted(
                catalog.dropped.items(), key=lambda each: (each[1]["version"], each[0])
            )
        ],
        "functions": [of_function(name, it) for name, it in sorted(catalog.functions.items())],
    }
    return less(found, OF_CATALOGS)


def of_dropped(gone: Doc) -> Doc:
    """Return the record of a dropped table."""
    said = {"droppedVersion": gone["version"], "purge": gone["purge"], "purged": gone["purged"]}
    found = {"table": of_entry(gone["name"], gone["entry"]), **said}
    return less(found, {"purge": False, "purged": False})


def audit(entry: Doc) -> Doc:
    """Return the record of who made an entry, and who changed it last."""
    (created_at, created_by), (updated_at, updated_by) = entry["created"], entry["updated"]
    created = {"createdAt": created_at, "createdBy": created_by}
    return {**created, "updatedAt": updated_at, "updatedBy": updated_by}


def of_database(name: str, entry: Doc) -> Doc:
    """Return the record of a database."""
    options = dict(sorted(entry["options"].items()))
    found = {"name": name, "path": entry["path"], "audit": audit(entry), "options": options}
    return less(found, {"options": {}})


def of_entry(name: tuple[str, str], entry: Doc) -> Doc:
    """Return the record of a table in the catalog."""
    named = {"database": name[0], "name": name[1], "tableId": entry["tableId"]}
    made = {"audit": audit(entry), "createdVersion": entry["version"]}
    found = {**named, "path": entry["path"], **made, "isExternal": entry["isExternal"]}
    found["undroppedVersion"] = entry.get("undropped", -1)
    found["unsealedVersion"] = entry.get("unsealed", -1)
    return less(found, {"isExternal": False, "undroppedVersion": -1, "unsealedVersion": -1})


def of_view(name: tuple[str, str], entry: Doc) -> Doc:
    """Return the record of a view."""
    named = {"database": name[0], "name": name[1], "viewId": entry["viewId"]}
    if "iceberg" in entry:
        iceberg = in_order(OF_ICEBERG_VIEWS, entry["iceberg"])
        iceberg["properties"] = dict(sorted(iceberg["properties"].items()))
        iceberg["versions"] = [
            {**each, "summary": dict(sorted(each["summary"].items()))}
            for each in iceberg["versions"]
        ]
        absent = {"formatVersion": 1, "properties": {}, "versionLog": []}
        return {**named, "audit": audit(entry), "iceberg": less(iceberg, absent)}
    schema = in_order(("fields", "query", "dialects", "comment", "options"), entry["schema"])
    schema["fields"] = [*map(of_field, schema["fields"])]
    for key in ("dialects", "options"):
        schema[key] = dict(sorted(schema.get(key, {}).items()))
    schema = in_order(("fields", "query", "dialects", "comment", "options"), schema)
    kept = less(schema, {"dialects": {}, "options": {}})
    return {**named, "schema": kept, "audit": audit(entry)}


def of_function(name: tuple[str, str], entry: Doc) -> Doc:
    """Return the record of a function."""
    function = copy.deepcopy(entry["function"])
    for key in ("inputParams", "returnParams"):
        if key in function:
            function[key] = [*map(of_field, function[key])]
    for key in ("definitions", "options"):
        function[key] = dict(sorted(function.get(key, {}).items()))
    kept = less(in_order(OF_FUNCTIONS, function), {"definitions": {}, "options": {}})
    named = {"database": name[0], "name": name[1], "functionId": entry["functionId"]}
    return {**named, "function": kept, "audit": audit(entry)}
