"""The checked cases of `tests/data/iceberg/cases.json`: loading, matching, and running tables.

A case is what is given, operations, and what must come out; Java's classes confirmed each one.
Who can compile more operations into REST updates passes them to `run_table` beside `OPERATIONS`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import msgspec
import pytest

from ledger import (
    AlreadyExistsError,
    InvalidInputError,
    LedgerError,
    NotFoundError,
    UnsupportedError,
)
from ledger.model import PartitionSpec, SnapshotRef, SortOrder
from projections.iceberg import (
    Retention,
    StaleBaseError,
    TableMetadata,
    apply_updates,
    check_requirements,
    expiring,
    read_metadata,
    remove_ref,
    requirement_from_json,
    rollback_to,
    set_current_snapshot,
    table_update_from_json,
    write_metadata,
)
from projections.iceberg import rest_updates as rest
from projections.iceberg.expiry import create_ref, fast_forward, rollback_to_time, set_ref
from projections.iceberg.metadata_schema import Schema
from projections.iceberg.rest_updates import TableUpdate
from projections.iceberg.schema_json import schema_from_json
from tests.projections.iceberg.metadata.creation import NewTable, creating

DATA = Path(__file__).parents[3] / "data/iceberg"
NOW_MS = 1_760_000_000_000
UUID = "9c12d441-03fe-4693-9a96-a0705ddf69c1"

Case: TypeAlias = dict[str, Any]
Compile: TypeAlias = Callable[[TableMetadata, dict[str, Any], int], list[TableUpdate]]

CASES: list[Case] = json.loads((DATA / "cases.json").read_text(encoding="utf-8"))

_ERRORS: dict[str, type[LedgerError]] = {
    "exists": AlreadyExistsError,
    "not-found": NotFoundError,
    "requirement-failed": StaleBaseError,
    "stale": StaleBaseError,
    "unsupported-in-version": UnsupportedError,
}
_SETS = frozenset({"identifier-field-ids", "names"})


def cases_of(*kinds: str) -> list[Any]:
    """Return the cases of some kinds as parameters of a test, each under its name."""
    return [pytest.param(each, id=each["name"]) for each in CASES if each["kind"] in kinds]


def given_json(case: Case) -> bytes:
    """Return the metadata that a case starts from."""
    given = case["given"]
    if "fixture" in given:
        path: Path = DATA / given["fixture"]
        return path.read_bytes()
    return json.dumps(given["metadata"]).encode()


def check(case: Case, run: Callable[[], Any]) -> None:
    """Assert that what a case asks for gives what it expects, or fails as it expects."""
    expected = case["expect"]
    if "error" not in expected:
        assert_matches(expected, run())
        return
    with pytest.raises(_ERRORS.get(expected["error"], InvalidInputError)):
        run()


def assert_matches(expected: Any, found: Any, place: str = "$") -> None:
    """Assert that found JSON has what is expected: objects may have more, lists may not."""
    if not isinstance(expected, dict):
        if isinstance(expected, list):
            _assert_lists_match(expected, found, place)
        else:
            assert found == expected, place
        return
    if "$any" in expected:
        return
    if "$gte" in expected:
        assert found >= expected["$gte"], place
        return
    if "$json" in expected:
        assert json.loads(found) == expected["$json"], place
        return
    assert isinstance(found, dict), f"{place}: {found!r}"
    for key, value in expected.items():
        if isinstance(value, dict) and "$absent" in value:
            assert key not in found, f"{place}.{key}"
        else:
            assert key in found, f"{place}.{key} is missing"
            _assert_member_matches(key, value, found[key], f"{place}.{key}")


def _assert_member_matches(key: str, expected: Any, found: Any, place: str) -> None:
    if key in _SETS and isinstance(expected, list):
        assert sorted(found) == sorted(expected), place
    else:
        assert_matches(expected, found, place)


def _assert_lists_match(expected: list[Any], found: Any, place: str) -> None:
    assert isinstance(found, list), f"{place}: {found!r}"
    assert len(found) == len(expected), f"{place}: {found!r}"
    for index, (one, other) in enumerate(zip(expected, found, strict=True)):
        assert_matches(one, other, f"{place}[{index}]")


def run_table(case: Case, operations: Mapping[str, Compile]) -> dict[str, Any]:
    """Return the JSON of a table after a case's operations, each of them one commit.

    Args:
        case: One of kind `table`.
        operations: For each operation the function that returns its updates.
    """
    now_ms = case["given"].get("now-ms", NOW_MS)
    metadata = _given_table(case, now_ms)
    version = 0
    for operation in case["ops"]:
        compiled = operations[operation["op"]](metadata, operation, now_ms)
        changed = apply_updates(
            metadata, compiled, now_ms=now_ms, previous_location=location_of(version)
        )
        version += changed is not metadata
        metadata = changed
        # What the fold makes is what every reader accepts.
        assert read_metadata(write_metadata(metadata)) == metadata
    content: dict[str, Any] = json.loads(write_metadata(metadata))
    return {**content, "__version": version, "__location": location_of(version)}


def location_of(version: int) -> str:
    """Return where the cases have a metadata file."""
    return f"mem:/t/metadata/{version:05}-x.metadata.json"


def _given_table(case: Case, now_ms: int) -> TableMetadata:
    given = case["given"]
    if "create" not in given:
        return read_metadata(given_json(case))
    return apply_updates(None, creating(new_table(given["create"])), now_ms=now_ms)


def new_table(create: dict[str, Any]) -> NewTable:
    """Return the table that a case creates."""
    schema: Schema = schema_from_json(create["schema"])
    spec = create.get("partition-spec") or {"spec-id": 0, "fields": []}
    order = create.get("sort-order") or {"order-id": 0, "fields": []}
    return NewTable(
        uuid=UUID,
        location=create.get("location", "mem:/t"),
        schema=schema,
        spec=msgspec.convert(spec, PartitionSpec),
        sort_order=msgspec.convert(order, SortOrder),
        properties=create.get("properties") or {},
        format_version=create.get("format-version", 2),
    )


def _apply_updates(base: TableMetadata, operation: dict[str, Any], _: int) -> list[TableUpdate]:
    required = [requirement_from_json(each) for each in operation.get("requirements", [])]
    check_requirements(base, required)
    return [table_update_from_json(each) for each in operation["updates"]]


def _update_properties(_base: object, operation: dict[str, Any], _: int) -> list[TableUpdate]:
    return [
        rest.SetProperties(updates=operation.get("set") or {}),
        rest.RemoveProperties(removals=tuple(operation.get("remove") or ())),
    ]


def _expire(base: TableMetadata, operation: dict[str, Any], now_ms: int) -> list[TableUpdate]:
    retention = Retention(operation.get("older_than_ms"), operation.get("retain_last"))
    return expiring(base, retention, now_ms=now_ms, snapshot_ids=operation.get("ids", ()))


def _refs(base: TableMetadata, operation: dict[str, Any], now_ms: int) -> list[TableUpdate]:
    compiled: list[TableUpdate] = []
    for change in operation["changes"]:
        so_far = apply_updates(base, compiled, now_ms=now_ms)
        compiled.append(_ref_change(so_far, change))
    return compiled


def _ref_change(base: TableMetadata, change: dict[str, Any]) -> TableUpdate:
    name = change["name"]
    match change["op"]:
        case "create_branch":
            return create_ref(
                base, name, SnapshotRef(snapshot_id=change["snapshot-id"], type="branch")
            )
        case "create_tag":
            ref = SnapshotRef(snapshot_id=change["snapshot-id"], type="tag")
            return create_ref(base, name, ref)
        case "fast_forward":
            return fast_forward(base, name, change["to"])
        case "remove_branch" | "remove_tag":
            return remove_ref(base, name)
        case setting:
            values = msgspec.structs.asdict(base.refs[name])
            changed = {**values, setting.removeprefix("set_"): change["value"]}
            return set_ref(name, SnapshotRef(**changed))


OPERATIONS: dict[str, Compile] = {
    "apply_updates": _apply_updates,
    "update_properties": _update_properties,
    "rollback_to": lambda base, op, _: [rollback_to(base, op["snapshot-id"])],
    "rollback_to_time": lambda base, op, _: [rollback_to_time(base, op["timestamp-ms"])],
    "set_current_snapshot": lambda base, op, _: [set_current_snapshot(base, op["snapshot-id"])],
    "refs": _refs,
    "expire_snapshots": _expire,
}
