"""Partition specs and sort orders of a source: recorded in Iceberg's JSON, or rejected."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ledger
from ledger import Ledger, LedgerError
from projections.iceberg import metadata_of, write_metadata
from tests.projections.iceberg.importing.lived import Source

SPEC = {
    "spec-id": 1,
    "fields": [{"name": "id_bucket", "transform": "bucket[4]", "source-id": 1, "field-id": 1000}],
}
ORDER = {
    "order-id": 1,
    "fields": [
        {"transform": "identity", "source-id": 1, "direction": "desc", "null-order": "nulls-last"}
    ],
}


def imported(folder: Path, spec: dict[str, Any], order: dict[str, Any]) -> Ledger:
    said = Source.created(2).said
    said["partition-specs"].append(spec)
    said["sort-orders"].append(order)
    said |= {"default-spec-id": 1, "default-sort-order-id": 1, "last-partition-id": 1000}
    said["location"] = (folder / "t").as_uri()
    metadata = folder / "t" / "metadata"
    metadata.mkdir(parents=True)
    (metadata / "v1.metadata.json").write_text(json.dumps(said))
    lake = ledger.open(folder / "lake")
    lake.import_table("a.b", str(metadata / "v1.metadata.json"))
    return lake


def changed(layout: dict[str, Any], **keys: Any) -> dict[str, Any]:
    named = {key.replace("_", "-"): value for key, value in keys.items()}
    field = {**layout["fields"][0], **named}
    return {**layout, "fields": [{key: each for key, each in field.items() if each is not None}]}


def events(folder: Path) -> list[dict[str, Any]]:
    lines = [json.loads(each.read_text()) for each in sorted(folder.rglob("lake/a.db/**/*.json"))]
    moved = [each for line in lines for each in line.get("transactions", ())]
    return [event for each in moved for event in each["events"]]


@pytest.mark.parametrize(
    ("spec", "order"),
    [
        (SPEC, ORDER),
        (changed(SPEC, transform="BUCKET[4]"), changed(ORDER, transform="Identity")),
        (changed(SPEC, source_id=None, source_ids=[1]), ORDER),
        (changed(SPEC, of_a_newer_writer=[1]), {**ORDER, "of-a-newer-writer": {}}),
    ],
    ids=["as Java", "in capitals", "source-ids of one", "unknown keys"],
)
def test_events_and_metadata_say_a_layout_in_the_same_json(
    tmp_path: Path, spec: dict[str, Any], order: dict[str, Any]
) -> None:
    table = imported(tmp_path, spec, order).table("a.b")
    found = {each["type"]: each for each in events(tmp_path)}
    assert found["updatePartitionSpec"]["fields"] == SPEC["fields"]
    assert found["replaceSortOrder"]["fields"] == ORDER["fields"]
    metadata = json.loads(write_metadata(metadata_of(table.state)))
    assert metadata["partition-specs"] == [{"spec-id": 0, "fields": []}, SPEC]
    assert metadata["sort-orders"] == [{"order-id": 0, "fields": []}, ORDER]


@pytest.mark.parametrize(
    ("spec", "order", "message"),
    [
        (changed(SPEC, transform="zorder"), ORDER, "'zorder' of partition spec 1 is none of"),
        (SPEC, changed(ORDER, transform="zorder"), "'zorder' of sort order 1 is none of"),
        (changed(SPEC, transform="bucket[0]"), ORDER, "the number is at least 1"),
        (
            changed(SPEC, source_id=None, source_ids=[1, 3]),
            ORDER,
            "field id_bucket of partition spec 1 derives from 2 columns",
        ),
        (
            SPEC,
            changed(ORDER, source_id=None, source_ids=[1, 3]),
            "a field of sort order 1 derives from 2 columns",
        ),
    ],
)
def test_a_layout_that_the_ledger_cannot_hold_is_rejected_before_anything_is_written(
    tmp_path: Path, spec: dict[str, Any], order: dict[str, Any], message: str
) -> None:
    with pytest.raises(LedgerError, match=message):
        imported(tmp_path, spec, order)
    assert events(tmp_path) == []
