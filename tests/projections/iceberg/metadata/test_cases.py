"""Java's answers, case by case: what is read, what is refused, what a commit makes of a table."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from ledger.model import PartitionSpec
from projections.iceberg import (
    check_requirements,
    read_metadata,
    requirement_from_json,
    requirement_to_json,
    requirements_of,
    table_update_from_json,
    write_metadata,
)
from projections.iceberg.expiry import ancestors, snapshot_id_as_of
from projections.iceberg.metadata_schema import check_format_features, type_name
from projections.iceberg.metadata_update import partition_type
from projections.iceberg.schema_json import (
    convert_record,
    encode_record,
    schema_from_json,
    schema_to_json,
)
from tests.projections.iceberg.metadata.cases import (
    CASES,
    OPERATIONS,
    Case,
    cases_of,
    check,
    given_json,
    run_table,
)
from tests.projections.iceberg.metadata.creation import with_fresh_ids

NOT_OF_METADATA = {
    "schema_evolution": "a schema update by names is compiled into updates by another module",
    "transform": "values of transforms are not metadata",
    "hash": "values of transforms are not metadata",
    "projection": "filters are not metadata",
    "single_value": "values as bytes are not metadata",
    "partition_type": "the union of all specs is of manifests and their readers",
    "partition_path": "paths of data files are not metadata",
    "view_parse": "cases of views run in test_views",
    "view_fold": "cases of views run in test_views",
    "sort_satisfies": "what an order is good for is not metadata",
}
NOT_REST_UPDATES = {
    "update_schema": "compiled by the module of schema updates",
    "update_spec": "compiled by the module of partition spec updates",
    "replace_sort_order": "compiled by the module of sort order updates",
    "build_replacement": "a replaced table is compiled by the module that creates tables",
}
HERE = {
    "fresh_ids",
    "schema_check",
    "schema_parse",
    "spec_parse",
    "table",
    "metadata_parse",
    "requirements",
    "derive_requirements",
    "as_of",
    "ancestors",
}


def elsewhere(case: Case) -> str | None:
    """Return why a case of tables is not run here, or None."""
    reasons = [NOT_REST_UPDATES.get(each["op"]) for each in case["ops"]]
    return next((each for each in reasons if each), None)


TABLES = [each for each in cases_of("table") if not elsewhere(each.values[0])]


def test_every_case_is_run_or_named_with_the_reason() -> None:
    assert {each["kind"] for each in CASES} == HERE | NOT_OF_METADATA.keys()
    operations = {op["op"] for each in CASES if each["kind"] == "table" for op in each["ops"]}
    assert operations <= OPERATIONS.keys() | NOT_REST_UPDATES.keys()
    assert len(TABLES) == 45


@pytest.mark.parametrize("case", TABLES)
def test_a_table_after_its_commits_is_what_java_makes_of_it(case: Case) -> None:
    check(case, lambda: run_table(case, OPERATIONS))


@pytest.mark.parametrize("case", cases_of("metadata_parse"))
def test_a_metadata_file_is_read_as_java_reads_it(case: Case) -> None:
    check(case, lambda: json.loads(write_metadata(read_metadata(given_json(case)))))


@pytest.mark.parametrize("case", cases_of("requirements"))
def test_a_requirement_holds_or_fails_as_in_java(case: Case) -> None:
    def run() -> Any:
        base = read_metadata(given_json(case)) if case["given"]["metadata"] else None
        required: list[Any] = [requirement_from_json(each) for each in case["ops"]]
        check_requirements(base, required)
        return {"ok": True}

    check(case, run)


@pytest.mark.parametrize("case", cases_of("derive_requirements"))
def test_updates_call_for_the_requirements_that_java_derives(case: Case) -> None:
    base = read_metadata(given_json(case))
    required = requirements_of(base, [table_update_from_json(each) for each in case["ops"]])
    assert [requirement_to_json(each) for each in required] == case["expect"]["requirements"]


@pytest.mark.parametrize("case", cases_of("as_of"))
def test_the_snapshot_as_of_a_time_is_javas(case: Case) -> None:
    base, timestamp_ms = read_metadata(given_json(case)), case["given"]["timestamp-ms"]
    check(case, lambda: {"snapshot-id": snapshot_id_as_of(base, timestamp_ms)})


@pytest.mark.parametrize("case", cases_of("ancestors"))
def test_the_ancestors_of_the_current_snapshot_are_javas(case: Case) -> None:
    base = read_metadata(given_json(case))
    chain = ancestors(base, base.current_snapshot_id or 0)
    check(case, lambda: {"ids": [each.snapshot_id for each in chain]})


@pytest.mark.parametrize("case", cases_of("schema_parse"))
def test_a_schema_is_read_as_java_reads_it(case: Case) -> None:
    def run() -> Any:
        schema = schema_from_json(case["given"]["schema"])
        names = {str(each.field.id): each.name for each in schema.placed_fields}
        return {"schema": json.loads(encode_record(schema_to_json(schema))), "names": names}

    check(case, run)


@pytest.mark.parametrize("case", cases_of("schema_check"))
def test_a_schema_needs_the_format_version_that_java_says(case: Case) -> None:
    def run() -> Any:
        schema = schema_from_json(case["given"]["schema"])
        check_format_features(schema, case["given"]["format-version"])
        return {"valid": True}

    check(case, run)


@pytest.mark.parametrize("case", cases_of("fresh_ids"))
def test_a_new_table_numbers_its_columns_as_java_does(case: Case) -> None:
    fresh = with_fresh_ids(schema_from_json(case["given"]["schema"]))
    assert schema_to_json(fresh) == case["expect"]["schema"]
    assert fresh.highest_field_id == case["expect"]["last-column-id"]


@pytest.mark.parametrize("case", cases_of("spec_parse"))
def test_a_partition_spec_is_read_as_java_reads_it(case: Case) -> None:
    def run() -> Any:
        schema = schema_from_json(case["given"]["schema"])
        spec = convert_record(case["given"]["partition-spec"], PartitionSpec, "partition spec")
        fields = partition_type(spec, schema).fields
        shown = ", ".join(f"{e.id}: {e.name}: optional {type_name(e.type)}" for e in fields)
        return {
            "partition-spec": msgspec.json.decode(encode_record(spec)),
            "partition-type": f"struct<{shown}>",
        }

    check(case, run)
