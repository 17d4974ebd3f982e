"""Every expectation here came from running Paimon's own schema evolution."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ledger import (
    InvalidChangeError,
    Schema,
    evolve,
    schema_change_from_json,
    schema_change_to_json,
    schema_from_json,
)
from ledger.decide import create_schema
from ledger.model import field_from_json

DATA = Path(__file__).parents[1] / "data" / "paimon"
CASES: list[dict[str, Any]] = json.loads((DATA / "schema_changes.json").read_text())
TYPES: dict[str, list[dict[str, Any]]] = json.loads((DATA / "types.json").read_text())

REFUSED_QUIRKS = {
    "java_quirk_map_key_path_updates_value": "ILLEGAL_ARGUMENT",
    "java_quirk_rename_then_retype_primary_key_in_batch": "UNSUPPORTED",
}
"""Cases in which Paimon corrupts by accident: the change is rejected instead."""

NULLABILITY_WITHOUT_VALUE = {"action": "updateColumnNullability", "fieldNames": ["a"]}
"""Paimon's Java reads this as NOT NULL; a value that nobody gave is rejected instead."""


def schema_of(file: dict[str, Any]) -> Schema:
    return Schema(
        fields=tuple(field_from_json(each) for each in file["fields"]),
        partition_keys=file["partitionKeys"],
        primary_keys=file["primaryKeys"],
        options=file["options"],
        comment=file.get("comment"),
        id=file["id"],
        highest_field_id=file["highestFieldId"],
        version=file["version"],
    )


def accepted(*, refused_quirks: bool) -> list[Any]:
    return [
        pytest.param(case, id=case["name"])
        for case in CASES
        if "exclude-from-acceptance" not in case.get("tags", [])
        and (case["name"] in REFUSED_QUIRKS) == refused_quirks
    ]


@pytest.mark.parametrize("case", accepted(refused_quirks=False))
def test_a_schema_evolves_as_in_paimon(case: dict[str, Any]) -> None:
    given = schema_of(case["given"])
    changes = [schema_change_from_json(each) for each in case["changes"]]
    has_snapshots = case["options"]["hasSnapshots"]

    if "schema" in case["expect"]:
        assert evolve(given, changes, has_snapshots=has_snapshots) == schema_of(
            case["expect"]["schema"]
        )
        return
    with pytest.raises(InvalidChangeError) as refusal:
        evolve(given, changes, has_snapshots=has_snapshots)
    assert refusal.value.kind == case["expect"]["kind"]


@pytest.mark.parametrize("case", accepted(refused_quirks=True))
def test_an_accident_of_paimon_is_refused(case: dict[str, Any]) -> None:
    changes = [schema_change_from_json(each) for each in case["changes"]]

    with pytest.raises(InvalidChangeError) as refusal:
        evolve(schema_of(case["given"]), changes)

    assert refusal.value.kind == REFUSED_QUIRKS[case["name"]]


@pytest.mark.parametrize("case", TYPES["createTable"])
def test_a_table_is_created_as_in_paimon(case: dict[str, Any]) -> None:
    if "schema" in case["expect"]:
        created = create_schema(schema_from_json(case["schema"]))
        assert created == schema_of(case["expect"]["schema"])
        return
    with pytest.raises(InvalidChangeError) as refusal:
        create_schema(schema_from_json(case["schema"]))
    assert refusal.value.kind == case["expect"]["kind"]


@pytest.mark.parametrize("case", TYPES["schemaChangeJson"])
def test_a_change_reads_and_writes_as_in_paimon(case: dict[str, Any]) -> None:
    if case["input"] == NULLABILITY_WITHOUT_VALUE:
        with pytest.raises(InvalidChangeError, match=r"\$\.newNullability: is missing"):
            schema_change_from_json(case["input"])
    elif "json" in case["expect"]:
        change = schema_change_from_json(case["input"])
        assert schema_change_to_json(change, discriminator="action") == case["expect"]["json"]
    elif "type" in case["input"]:
        # The DLF page's discriminator is read as well.
        plain = {"type": "setOption", "key": "k", "value": "v"}
        assert schema_change_to_json(schema_change_from_json(case["input"])) == plain
    else:
        with pytest.raises(InvalidChangeError, match="unknown change 'unknownThing'; there are"):
            schema_change_from_json(case["input"])
