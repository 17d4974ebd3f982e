"""Every expectation here was confirmed by running Iceberg's own schema evolution."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ledger import ColumnExistsError, ColumnNotFoundError, InvalidInputError, Schema, Table
from ledger.decide import SchemaUpdate, create_schema, decide_schema, with_policy
from ledger.model.types import DataType
from ledger.state import Rules
from ledger.updates import UpdateSchema
from tests.evolution.iceberg_json import json_of, schema_of, text_of, type_of
from tests.lakes import lake_on, memory

DATA = Path(__file__).parents[1] / "data" / "iceberg"
CASES: list[dict[str, Any]] = json.loads((DATA / "schema_cases.json").read_text())

ICEBERG = {"ledger.formats": "iceberg", "format-version": "3"}

REFUSALS: dict[str, tuple[type[InvalidInputError], str]] = {
    "name-exists": (ColumnExistsError, "exists already"),
    "ambiguous-name": (InvalidInputError, "could mean a path or a name"),
    "missing-parent": (ColumnNotFoundError, "column nope does not exist"),
    "missing-column": (ColumnNotFoundError, "does not exist"),
    "map-key": (InvalidInputError, "map's key"),
    "container-part": (InvalidInputError, "is a (value|element), no column"),
    "incompatible": (InvalidInputError, r"allow_incompatible_changes\(\)"),
    "bad-default": (InvalidInputError, "is nested, so it has no default"),
    "bad-type": (InvalidInputError, "UNKNOWN holds nothing but NULL"),
    "bad-promotion": (InvalidInputError, "can(not)? become"),
    "op-conflict": (InvalidInputError, "has additions|has updates|will be deleted"),
    "bad-move": (InvalidInputError, "not of one struct|in a map's key|will be deleted"),
    "bad-identifier": (InvalidInputError, "identif"),
    "identifier-in-use": (InvalidInputError, "before the identifier fields are reset"),
}


def of_kind(kind: str) -> list[Any]:
    return [pytest.param(each, id=each["name"]) for each in CASES if each["kind"] == kind]


def ask(update: SchemaUpdate | UpdateSchema, op: dict[str, Any]) -> None:  # noqa: C901, PLR0912
    name: Any = op.get("name")
    match op["op"]:
        case "add_column":
            path = name
            if "parent" in op:
                path = (name,) if op["parent"] is None else (op["parent"], name)
            update.add_column(
                path,
                type_of(op["type"]),
                doc=op.get("doc"),
                required=op.get("required", False),
                default=text_of(op.get("default")),
            )
        case "delete_column":
            update.delete_column(name)
        case "rename_column":
            update.rename_column(name, op["new_name"])
        case "update_type":
            update.update_column(name, type_of(op["type"]))
        case "update_doc":
            update.update_column(name, doc=op["doc"])
        case "update_default":
            update.update_column(name, default=text_of(op["default"]))
        case "make_optional":
            update.make_optional(name)
        case "require":
            update.require(name)
        case "move_first":
            update.move_first(name)
        case "move_before":
            update.move_before(name, op["ref"])
        case "move_after":
            update.move_after(name, op["ref"])
        case "set_identifier_fields":
            update.set_identifier_fields(*op["names"])
        case "union_by_name":
            update.union_by_name(schema_of(op["schema"]))
        case "allow_incompatible_changes":
            update.allow_incompatible_changes()
        case "case_sensitive":
            update.case_sensitive(op["value"])
        case unknown:
            raise AssertionError(unknown)


def evolved(given: Schema, ops: list[dict[str, Any]]) -> Schema:
    """Resolve, compile, decide and fold, without a table."""
    update = SchemaUpdate(given)
    for op in ops:
        ask(update, op)
    rules = Rules(frozenset({"iceberg"}), 2, update.allows_incompatible)
    return decide_schema(given, update.changes(), has_snapshots=True, rules=rules).schema


def table_of(given: Schema) -> Table:
    lake = lake_on(memory())
    lake.create_database("shop")
    return lake.create_table("shop.orders", given, field_id_policy="iceberg")


@pytest.mark.parametrize("case", of_kind("schema_evolution"))
def test_a_schema_evolves_as_in_iceberg(case: dict[str, Any]) -> None:
    given = schema_of(case["given"]["schema"], case["given"]["last-column-id"])

    if "error" in case["expect"]:
        kind, message = REFUSALS[case["expect"]["error"]]
        with pytest.raises(kind, match=message):
            evolved(given, case["ops"])
        return
    after = evolved(given, case["ops"])
    assert json_of(after) == case["expect"]["schema"]
    assert after.highest_field_id == case["expect"]["last-column-id"]


@pytest.mark.parametrize("case", of_kind("schema_evolution"))
def test_a_table_evolves_as_in_iceberg(case: dict[str, Any]) -> None:
    given = schema_of(case["given"]["schema"], case["given"]["last-column-id"], ICEBERG)
    table = table_of(given)
    update = table.update_schema()
    for op in case["ops"]:
        ask(update, op)

    if "error" in case["expect"]:
        kind, message = REFUSALS[case["expect"]["error"]]
        with pytest.raises(kind, match=message):
            update.commit()
        assert table.state.version == 0
        return
    planned = update.apply()
    state = update.commit().state
    assert json_of(state.schema) == case["expect"]["schema"]
    assert state.schema.highest_field_id == case["expect"]["last-column-id"]
    assert planned == state.schema
    assert next(table.schemas()) == state.schema


@pytest.mark.parametrize("case", of_kind("fresh_ids"))
def test_a_new_table_is_numbered_as_in_iceberg(case: dict[str, Any]) -> None:
    asked = without_ids(schema_of(case["given"]["schema"]))

    created = create_schema(with_policy(asked, "iceberg"))

    assert json_of(created) == case["expect"]["schema"]
    assert created.highest_field_id == case["expect"]["last-column-id"]
    assert created.field_id_policy == "iceberg"


def without_ids(schema: Schema) -> Schema:
    """Return the schema as one of Paimon's policy, whose ids mean nothing to Iceberg."""
    return Schema(
        fields=schema.fields,
        identifier_field_ids=schema.identifier_field_ids,
        field_id_policy="paimon",
    )


def test_no_case_is_left_out() -> None:
    kinds = [each["kind"] for each in CASES]

    assert (kinds.count("schema_evolution"), kinds.count("fresh_ids")) == (72, 3)


def test_types_of_the_cases_are_read_without_loss() -> None:
    for case in CASES:
        for given in (case["given"]["schema"], case["expect"].get("schema")):
            if given is not None:
                assert json_of(schema_of(given)) == given
                assert all(isinstance(each.type, DataType) for each in schema_of(given).fields)
