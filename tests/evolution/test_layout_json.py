from __future__ import annotations

from typing import Any

import msgspec
import pytest

from ledger import AddColumn, InvalidChangeError
from ledger.events.spec_changes import ReplaceSortOrder, UpdatePartitionSpec
from ledger.evolution.wire.changes import as_table_change, table_change_from_json

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
