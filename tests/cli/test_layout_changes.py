"""`lakeledger alter` takes changes of the layout as JSON."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ledger
from ledger import (
    AddPartitionField,
    DropColumn,
    InvalidChangeError,
    ReplaceSortOrder,
    SortColumn,
    UpdatePartitionSpec,
)
from ledger.cli.changes import changes_from_options
from tests.cli.conftest import Run

SPEC = (
    '{"type":"updatePartitionSpec","updates":'
    '[{"type":"addPartitionField","source":["id"],"transform":"bucket[4]"}]}'
)
ORDER = '{"type":"replaceSortOrder","columns":[{"source":["id"],"direction":"desc"}]}'


def test_json_of_a_layout_is_its_change(tmp_path: Path) -> None:
    spec = UpdatePartitionSpec((AddPartitionField(("id",), "bucket[4]"),))
    order = ReplaceSortOrder((SortColumn(("id",), direction="desc"),))
    file = tmp_path / "changes.json"
    drop = {"type": "dropColumn", "fieldNames": ["a"]}
    file.write_text(json.dumps([json.loads(SPEC), drop]))

    assert changes_from_options([("--change", SPEC), ("--change", ORDER)]) == [spec, order]
    assert changes_from_options([("--changes", str(file))]) == [spec, DropColumn(("a",))]


def test_an_error_names_the_place_of_the_bad_value() -> None:
    bad = SPEC.replace('"id"', "7")

    with pytest.raises(InvalidChangeError, match=r"^--change\.updates\[0\]\.source\[0\]: Expected"):
        changes_from_options([("--change", bad)])


def test_alter_commits_a_layout(shop: Run, tmp_path: Path) -> None:
    assert shop("alter", "shop.orders", "--change", SPEC, "--change", ORDER).code == 0

    state = ledger.open(str(tmp_path / "lake")).table("shop.orders").state
    assert [each.name for each in state.spec.fields] == ["day", "id_bucket_4"]
    assert (state.default_spec_id, state.default_order_id) == (1, 1)
