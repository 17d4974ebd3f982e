"""Names in Iceberg's files: headers, columns and summary keys of each version."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import pytest

from ledger import FileChange, Schema, SetOption, SnapshotPlan, Table
from projections.iceberg.manifest_avro import manifest_list_schema, manifest_schema
from tests.lakes import lake_on, memory, orders
from tests.projections.iceberg.projecting import Left

_MANIFEST = {"format-version", "partition-spec", "partition-spec-id", "schema", "schema-id"}
_LIST = {"format-version", "parent-snapshot-id", "snapshot-id"}
HEADERS = {
    "1": (_MANIFEST, _LIST),
    "2": (_MANIFEST | {"content"}, _LIST | {"sequence-number"}),
    "3": (_MANIFEST | {"content"}, _LIST | {"sequence-number", "first-row-id"}),
}
_ALWAYS = {
    "changed-partition-count",
    "engine-name",
    "operation",
    "total-data-files",
    "total-delete-files",
    "total-equality-deletes",
    "total-files-size",
    "total-position-deletes",
    "total-records",
}
_ADDED = {"added-data-files", "added-files-size", "added-records"}
_GONE = {"deleted-data-files", "deleted-records", "removed-files-size"}
_DELETES = {"added-delete-files", "added-files-size"}
_DELETES |= {"added-position-delete-files", "added-position-deletes"}


def file(path: str, content: str = "data") -> FileChange:
    return FileChange(
        path=path, record_count=3, file_size_in_bytes=10, field_ids=True, content=content
    )


def lived(version: str) -> Table:
    """Return a table that appended, deleted, removed, was compacted, analysed and rolled back."""
    options = {"ledger.formats": "iceberg", "format-version": "2" if version == "3" else version}
    table = orders(lake_on(memory()), Schema.of({"id": "INT"}, options=options))
    table.append([file("a"), file("b")])
    if version != "1":
        table.append([file("d", "position-deletes")])
    if version == "3":
        table.alter([SetOption("format-version", "3")])
    table.delete_files(["a"])
    table.commit_snapshot(SnapshotPlan("COMPACT", (file("c"),), delete=("b",)))
    table.commit_snapshot(SnapshotPlan("ANALYZE"))
    table.rollback(snapshot=1)
    return table


def summaries(table: Table) -> list[tuple[str, set[str]]]:
    left = Left.wanted(table)
    found = left.metadata(table.state.version, table)["snapshots"]
    return [(each["summary"]["operation"], set(each["summary"]) - _ALWAYS) for each in found]


@pytest.mark.parametrize("version", HEADERS)
def test_summaries_have_the_keys_that_count_something(version: str) -> None:
    table = lived(version)
    wanted: list[tuple[str, set[str]]] = [("append", _ADDED)]
    if version != "1":
        wanted.append(("overwrite", _DELETES))
    wanted += [("delete", _GONE), ("replace", _ADDED | _GONE), ("replace", set())]
    back = _ADDED | _GONE
    if version != "1":
        back |= {"removed-delete-files", "removed-position-delete-files"}
        back |= {"removed-position-deletes"}
    assert summaries(table) == [*wanted, ("overwrite", back)]


@pytest.mark.parametrize("version", HEADERS)
def test_headers_say_what_readers_look_for(version: str) -> None:
    table = lived(version)
    left = Left.wanted(table)
    newest = left.metadata(table.state.version, table)["snapshots"][-1]
    manifests, lists = HEADERS[version]
    body = left.under(newest["manifest-list"])
    assert _header(body) == lists
    for each in _records(body):
        assert _header(left.under(each["manifest_path"])) == manifests


_FILE = {*range(100, 105), 108, 109, 110, 125, 128, 131, 132, 137, 140}
_LISTED = {*range(500, 508), *range(512, 515), 519}
IDS = {
    "1": (_FILE | {105}, _LISTED),
    "2": (_FILE | {134, 135, 143}, _LISTED | {515, 516, 517}),
    "3": (_FILE | {134, 135, *range(142, 146)}, _LISTED | {515, 516, 517, 520}),
}
"""Of a file's facts and a manifest's, as the specification has them."""


@pytest.mark.parametrize("version", IDS)
def test_each_version_has_the_fields_that_the_specification_gives_it(version: str) -> None:
    of_files, of_manifests = IDS[version]
    entry = manifest_schema(int(version), [])
    (file,) = (each["type"] for each in entry["fields"] if each["name"] == "data_file")
    assert {each["field-id"] for each in file["fields"]} == of_files
    listed = manifest_list_schema(int(version))
    assert {each["field-id"] for each in listed["fields"]} == of_manifests


def _header(body: bytes) -> set[str]:
    own = {"avro.schema", "avro.codec"}
    return set(fastavro.reader(io.BytesIO(body)).metadata) - own


def _records(body: bytes) -> list[dict[str, Any]]:
    return [dict(each) for each in fastavro.reader(io.BytesIO(body)) if isinstance(each, dict)]
