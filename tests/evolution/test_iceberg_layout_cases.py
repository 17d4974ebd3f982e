"""Every expectation here was confirmed by running Iceberg's own updates of specs and orders.

Not among the cases: those that apply REST updates to metadata (`remove-partition-specs`, client
order ids), since a ledger takes changes and never removes a spec, and those that replace a table.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ledger import (
    AddPartitionField,
    ColumnNotFoundError,
    FormatError,
    InvalidChangeError,
    SortColumn,
    Table,
)
from ledger.state import TableState
from ledger.transforms import Term
from ledger.updates import ReplaceOrder, UpdateSpec
from tests.evolution.iceberg_json import schema_of, type_of
from tests.lakes import lake_on, memory

DATA = Path(__file__).parents[1] / "data" / "iceberg" / "layout_cases.json"
CASES: list[dict[str, Any]] = json.loads(DATA.read_text())

REFUSALS: dict[str, tuple[type[InvalidChangeError], str]] = {
    "redundant-partition": (InvalidChangeError, "two time units of one column"),
    "duplicate-partition": (InvalidChangeError, "already; keep it|the name of another column"),
    "op-conflict": (InvalidChangeError, "is added by this batch|is renamed by this batch"),
    "missing-partition": (InvalidChangeError, "partition field .* does not exist; there are"),
    "missing-column": (ColumnNotFoundError, "column nope does not exist"),
    "bad-transform": (InvalidChangeError, "does not accept|is inside info.tags"),
    "partition-source": (FormatError, "partition"),
    "sort-source": (FormatError, "sort"),
}


def path_of(name: str) -> tuple[str, ...]:
    return tuple(name.split("."))


def table_of(given: dict[str, Any]) -> Table:
    options = {"ledger.formats": "iceberg", "format-version": str(given["format-version"])}
    schema = schema_of(given["schema"], options=options)
    names = {each.id: each.name for each in schema.fields}
    spec = [
        AddPartitionField((names[each["source-id"]],), each["transform"], each["name"])
        for each in given.get("partition-spec", {}).get("fields", ())
    ]
    order = [
        SortColumn(
            (names[each["source-id"]],), each["transform"], each["direction"], each["null-order"]
        )
        for each in given.get("sort-order", {}).get("fields", ())
    ]
    lake = lake_on(memory())
    lake.create_database("shop")
    return lake.create_table(
        "shop.orders", schema, field_id_policy="iceberg", partition_spec=spec, sort_order=order
    )


def spec_update(update: UpdateSpec, changes: list[dict[str, Any]]) -> UpdateSpec:
    for change in changes:
        match change:
            case {"op": "add_field", "source": source, "transform": transform}:
                update = update.add_field(Term(path_of(source), transform), change.get("name"))
            case {"op": "remove_field", "name": name}:
                update = update.remove_field(name)
            case {"op": "remove_field", "source": source, "transform": transform}:
                update = update.remove_field(Term(path_of(source), transform))
            case {"op": "rename_field", "name": name, "new_name": new_name}:
                update = update.rename_field(name, new_name)
            case _:
                raise AssertionError(change)
    return update


def order_update(order: ReplaceOrder, fields: list[dict[str, Any]]) -> ReplaceOrder:
    for each in fields:
        term = Term(path_of(each["source"]), each.get("transform", "identity"))
        nulls = each.get("null-order", "").removeprefix("nulls-") or None
        by = order.desc if each.get("direction") == "desc" else order.asc
        order = by(term, nulls)
    return order


def run(table: Table, op: dict[str, Any]) -> None:
    match op["op"]:
        case "update_spec":
            update = spec_update(table.update_spec(), op["changes"])
            promised = update.apply()
            update.commit()
            assert table.state.spec == promised
        case "replace_sort_order":
            order = order_update(table.replace_sort_order(), op["fields"])
            agreed = order.apply()
            order.commit()
            assert table.state.sort_order == agreed
        case "update_schema":
            update_schema(table, op["changes"])
        case unknown:
            raise AssertionError(unknown)


def update_schema(table: Table, changes: list[dict[str, Any]]) -> None:
    schema = table.update_schema()
    for change in changes:
        match change:
            case {"op": "delete_column", "name": name}:
                schema.delete_column(name)
            case {"op": "update_type", "name": name, "type": new_type}:
                schema.update_column(name, type_of(new_type))
            case _:
                raise AssertionError(change)
    schema.commit()


def layout_of(state: TableState) -> dict[str, Any]:
    return {
        "partition-specs": [
            {
                "spec-id": spec.spec_id,
                "fields": [
                    {
                        "source-id": each.source_id,
                        "field-id": each.field_id,
                        "name": each.name,
                        "transform": each.transform,
                    }
                    for each in spec.fields
                ],
            }
            for spec in state.specs
        ],
        "default-spec-id": state.default_spec_id,
        "last-partition-id": state.last_partition_id,
        "sort-orders": [
            {
                "order-id": order.order_id,
                "fields": [
                    {
                        "transform": each.transform,
                        "source-id": each.source_id,
                        "direction": each.direction,
                        "null-order": each.null_order,
                    }
                    for each in order.fields
                ],
            }
            for order in state.sort_orders
        ],
        "default-sort-order-id": state.default_order_id,
    }


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_a_layout_evolves_as_in_iceberg(case: dict[str, Any]) -> None:
    table = table_of(case["given"]["create"])

    if "error" in case["expect"]:
        kind, message = REFUSALS[case["expect"]["error"]]
        *before, last = case["ops"]
        for op in before:
            run(table, op)
        version = table.state.version
        with pytest.raises(kind, match=message):
            run(table, last)
        assert table.state.version == version
        return

    for op in case["ops"]:
        run(table, op)
    found = layout_of(table.state)
    assert {key: found[key] for key in case["expect"]} == case["expect"]
