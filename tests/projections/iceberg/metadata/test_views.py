"""Metadata of views: Java's verdict on each case and file, and rules beyond them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from ledger import InvalidInputError, LedgerError, UnsupportedError, UpgradeRequiredError
from projections.iceberg.rest_updates import StaleBaseError
from projections.iceberg.view_metadata import (
    ViewMetadata,
    read_view_metadata,
    view_metadata_location,
    write_view_metadata,
)
from projections.iceberg.view_updates import (
    ViewChange,
    apply_view_updates,
    check_view_requirements,
    view_requirement_from_json,
    view_update_from_json,
)
from tests.projections.iceberg.metadata.cases import DATA, NOW_MS, Case, cases_of, check, given_json

HOME = "file:///lake"
REJECTED = {
    "ViewMetadataMissingLocation.json",
    "ViewMetadataMissingCurrentVersion.json",
    "ViewMetadataInvalidCurrentVersion.json",
    "ViewMetadataInvalidCurrentSchema.json",
}
FILES = sorted([*DATA.glob("java-view/*.json"), *DATA.glob("pyiceberg/view-*.json")])
COLUMN = {"id": 1, "name": "n", "required": False, "type": "int"}


def schema(*columns: dict[str, Any]) -> dict[str, Any]:
    return {"action": "add-schema", "schema": {"type": "struct", "fields": list(columns)}}


def version(sql: str, *dialects: str, schema_id: int = -1, at: int = 5) -> dict[str, Any]:
    queries = [{"type": "sql", "sql": sql, "dialect": each} for each in dialects or ("spark",)]
    return {
        "action": "add-view-version",
        "view-version": {
            "version-id": 1,
            "timestamp-ms": at,
            "schema-id": schema_id,
            "summary": {"engine-name": "e"},
            "default-namespace": ["ns"],
            "representations": queries,
        },
    }


def current(version_id: int = -1) -> dict[str, Any]:
    return {"action": "set-current-view-version", "view-version-id": version_id}


def properties(updates: dict[str, str]) -> dict[str, Any]:
    return {"action": "set-properties", "updates": updates}


CREATION: tuple[dict[str, Any], ...] = (
    {"action": "assign-uuid", "uuid": "fa6506c3-7681-40c8-86dc-e36561f83385"},
    {"action": "set-location", "location": "s3://lake/v"},
    schema(COLUMN),
    version("select 1"),
    current(),
)


def applied(base: ViewMetadata | None, *updates: dict[str, Any]) -> ViewChange:
    batch = [view_update_from_json(each) for each in updates]
    return apply_view_updates(base, batch, home=HOME, now_ms=NOW_MS)


def created(*updates: dict[str, Any]) -> ViewMetadata:
    return applied(None, *CREATION, *updates).metadata


@pytest.mark.parametrize("case", cases_of("view_parse"))
def test_a_view_metadata_file_is_read_as_java_reads_it(case: Case) -> None:
    check(case, lambda: json.loads(write_view_metadata(read_view_metadata(given_json(case)))))


@pytest.mark.parametrize("case", cases_of("view_fold"))
def test_a_view_after_a_commit_is_what_java_makes_of_it(case: Case) -> None:
    def run() -> Any:
        given = case["given"]["metadata"]
        base = read_view_metadata(json.dumps(given)) if given else None
        view = applied(base, *case["ops"]).metadata
        assert read_view_metadata(write_view_metadata(view)) == view
        return json.loads(write_view_metadata(view))

    check(case, run)


@pytest.mark.parametrize("path", FILES, ids=lambda each: each.name)
def test_files_of_other_writers_are_read_and_written_the_same_or_rejected_as_in_java(
    path: Path,
) -> None:
    if path.name in REJECTED:
        with pytest.raises(InvalidInputError):
            read_view_metadata(path.read_bytes())
        return
    view = read_view_metadata(path.read_bytes())
    written = write_view_metadata(view)
    assert read_view_metadata(written) == read_view_metadata(gzip.compress(written)) == view
    said = json.loads(path.read_bytes())
    ignored = {"current-schema-id", *["properties"] * (not said.get("properties"))}
    assert json.loads(written) == {key: said[key] for key in said if key not in ignored}


def test_a_view_of_a_newer_format_asks_for_an_upgrade() -> None:
    text = json.dumps({**json.loads(write_view_metadata(created())), "format-version": 2})
    with pytest.raises(UpgradeRequiredError):
        read_view_metadata(text)
    with pytest.raises(UnsupportedError, match="format version 2"):
        applied(created(), {"action": "upgrade-format-version", "format-version": 2})


@pytest.mark.parametrize(
    ("updates", "message"),
    [
        ([version("a", "spark", "SPARK", schema_id=0)], "multiple queries for dialect spark"),
        ([version("a", schema_id=7)], "unknown schema: 7"),
        ([version("a")], "no schema has been added"),
        ([current()], "no current version id has been set"),
        ([current(7)], "unknown version: 7"),
        ([schema(COLUMN), version("a")], "no schema has been added"),
        ([version("a", "trino", schema_id=0), current()], "loss of view dialects"),
        ([properties({"version.history.num-entries": "0"})], "must be positive"),
        ([{"action": "assign-uuid", "uuid": "other"}], "Cannot reassign uuid"),
    ],
    ids=lambda each: "" if isinstance(each, list) else each,
)
def test_updates_that_contradict_the_view_are_rejected_as_in_java(
    updates: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        applied(created(), *updates)


@pytest.mark.parametrize(
    "obj",
    [
        {"action": "add-spec", "spec": {}},
        {"action": "remove-view-versions", "version-ids": [1]},
        {"action": "add-view-version"},
        {"action": "set-current-view-version", "view-version-id": "1"},
        {"action": "add-schema"},
        {"view-version-id": 1},
        [],
        {
            **version("a"),
            "view-version": {**version("a")["view-version"], "representations": [{"type": "x"}]},
        },
    ],
)
def test_json_that_is_no_update_of_a_view_is_rejected(obj: Any) -> None:
    with pytest.raises(InvalidInputError):
        view_update_from_json(obj)


def test_minus_one_is_the_schema_and_the_version_added_last() -> None:
    view = created(schema(COLUMN, {**COLUMN, "id": 2, "name": "m"}), version("select 2"), current())
    assert [each.schema_id for each in view.versions] == [0, 1]
    assert view.current_version_id == 2
    # As in Java, a creation that sets two versions has one entry in the log.
    assert [each.version_id for each in view.version_log] == [2]


def test_an_equal_version_and_an_equal_schema_are_reused() -> None:
    made = applied(created(), schema(COLUMN), version("select 1", schema_id=0, at=9), current(1))
    assert made.recorded == ()
    assert made.metadata == created()


def test_a_version_made_current_again_has_the_time_of_the_commit() -> None:
    view = applied(created(), version("select 2", schema_id=0), current()).metadata
    again = applied(view, current(1)).metadata
    assert [(each.timestamp_ms, each.version_id) for each in again.version_log] == [
        *((5, 1), (5, 2), (NOW_MS, 1)),
    ]


@pytest.mark.parametrize(("limit", "kept"), [(1, [6]), (3, [4, 5, 6]), (9, [1, 2, 3, 4, 5, 6])])
def test_the_newest_versions_are_kept_and_the_log_begins_after_the_last_removed_one(
    limit: int, kept: list[int]
) -> None:
    entries = properties({"version.history.num-entries": str(limit)})
    view = created(entries)
    for number in range(2, 7):
        view = applied(view, version(f"select {number}", schema_id=0), current()).metadata
    assert sorted(view.versions_by_id) == kept
    assert [each.version_id for each in view.version_log] == kept


def test_the_current_version_and_those_of_the_batch_survive_any_limit() -> None:
    entries = properties({"version.history.num-entries": "1"})
    added = [version(f"select {number}", schema_id=0) for number in (2, 3)]
    view = applied(created(), entries, *added).metadata
    assert sorted(view.versions_by_id) == [1, 2, 3]
    assert view.current_version_id == 1


def test_a_dialect_may_be_dropped_if_a_property_allows_it() -> None:
    allowed = properties({"replace.drop-dialect.allowed": "TRUE"})
    view = applied(created(), allowed, version("a", "trino", schema_id=0), current()).metadata
    assert view.current_version.dialects == ("trino",)


def test_removing_and_setting_what_holds_already_changes_nothing() -> None:
    removal = {"action": "remove-properties", "removals": ["absent"]}
    location = {"action": "set-location", "location": "s3://lake/v"}
    same = applied(created(properties({"a": "b"})), removal, location, properties({"a": "b"}))
    assert same.recorded == ()


def test_a_required_uuid_has_to_be_the_views() -> None:
    view = created()
    for uuid in (view.view_uuid, view.view_uuid.upper()):
        required = view_requirement_from_json({"type": "assert-view-uuid", "uuid": uuid})
        check_view_requirements(view, [required])
    other = view_requirement_from_json({"type": "assert-view-uuid", "uuid": "other"})
    with pytest.raises(StaleBaseError, match="^Requirement failed: view UUID does not match"):
        check_view_requirements(view, [other])
    unknown_ones: list[Any] = [{"type": "assert-create"}, {"type": "assert-view-uuid"}, [], None]
    for unknown in unknown_ones:
        with pytest.raises(LedgerError):
            view_requirement_from_json(unknown)


def test_a_metadata_file_is_below_the_folder_of_the_property_and_named_by_its_contents() -> None:
    view = created()
    moved = created(properties({"write.metadata.path": "s3://m/"}))
    one, other = write_view_metadata(view), write_view_metadata(moved)
    assert view_metadata_location(view, one).startswith("s3://lake/v/metadata/00001-")
    assert view_metadata_location(moved, other).startswith("s3://m/00001-")
    assert view_metadata_location(view, one) == view_metadata_location(created(), one)
    assert view_metadata_location(view, one) != view_metadata_location(view, other)
