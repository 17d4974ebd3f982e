from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ledger import (
    AddColumn,
    InvalidChangeError,
    InvalidInputError,
    ReplaceSortOrder,
    UpdatePartitionSpec,
)
from ledger.decide import as_table_change
from ledger.decide.change_json import table_change_from_json
from ledger.events import PartitionSpecUpdated
from ledger.model import PartitionField
from tests.evolution.folds import grown

ADD = {"type": "addPartitionField", "source": ["ts"], "transform": "day"}


def spec(*updates: Any, **more: Any) -> dict[str, Any]:
    return {"type": "updatePartitionSpec", "updates": list(updates), **more}


@pytest.mark.parametrize(
    "given",
    [
        spec(ADD),
        spec({**ADD, "name": "d"}, {"type": "removePartitionField", "name": "x"}, setDefault=False),
        spec({"type": "removePartitionField", "source": ["ts"], "transform": "day"}),
        spec({"type": "renamePartitionField", "name": "a", "newName": "b"}),
        {"type": "replaceSortOrder", "columns": []},
        {
            "type": "replaceSortOrder",
            "columns": [{"source": ["a", "b"], "direction": "desc", "nullOrder": "nulls-first"}],
        },
    ],
)
def test_json_of_a_layout_change_comes_back(given: dict[str, Any]) -> None:
    change = as_table_change(given)

    assert isinstance(change, UpdatePartitionSpec | ReplaceSortOrder)
    assert msgspec.json.decode(msgspec.json.encode(change)) == given
    assert as_table_change(change) is change


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (spec({**ADD, "sources": []}), r"^\$\.updates\[0\]: .*unknown field `sources`"),
        (spec({**ADD, "source": "ts"}), r"^\$\.updates\[0\]\.source: Expected `array`"),
        (spec({"type": "addPartitionField"}), r"^\$\.updates\[0\]: .*required field `source`"),
        (spec({"type": "add"}), r"^\$\.updates\[0\]\.type: Invalid value 'add'"),
        (spec(ADD, default=True), r"^\$: .*unknown field `default`"),
        ({"type": "updatePartitionSpec"}, r"^\$: .*required field `updates`"),
        (
            {"type": "replaceSortOrder", "columns": [{"source": ["a"], "direction": "up"}]},
            r"^\$\.columns\[0\]\.direction: Invalid enum value 'up'",
        ),
        ({"type": ["updatePartitionSpec"]}, r"^\$"),
        ({"type": "updateSpec"}, r"^\$: unknown change"),
        ([], r"^\$"),
    ],
)
def test_bad_json_is_refused_by_its_place(given: Any, message: str) -> None:
    with pytest.raises(InvalidChangeError, match=message):
        table_change_from_json(given)


def test_changes_of_the_schema_pass_through() -> None:
    given = {"type": "addColumn", "fieldNames": ["a"], "dataType": "INT"}

    assert as_table_change(given) == AddColumn(("a",), "INT")


def test_a_recorded_partition_field_without_an_id_is_rejected() -> None:
    field = PartitionField("day", "identity", 0)
    with pytest.raises(InvalidInputError, match="field day of partition spec 1 has no field-id"):
        grown(PartitionSpecUpdated((), spec_id=1, fields=(field,)))


@pytest.mark.parametrize("key", ["sourceId", "of-a-newer-ledger"])
def test_a_recorded_field_with_an_unknown_key_is_rejected(key: str) -> None:
    event = msgspec.to_builtins(
        PartitionSpecUpdated(
            (), spec_id=1, fields=(PartitionField("day", "identity", 0, field_id=1000),)
        )
    )
    assert msgspec.convert(event, PartitionSpecUpdated).spec_id == 1
    event["fields"][0][key] = 1
    with pytest.raises(msgspec.ValidationError, match=f"unknown field `{key}`"):
        msgspec.convert(event, PartitionSpecUpdated)
