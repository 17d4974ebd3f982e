"""Paimon's option `path`: a table's location, which is no option of it and never changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import ledger
from ledger import InvalidInputError, Schema
from ledger.events.schema import RemoveOption, SetOption
from ledger.table_handle import handle_of
from projections.paimon.native_changes import alter_table as alter_native_table
from projections.paimon.served import alter_table, create_table
from projections.paimon.served_branches import create_branch
from tests.lakes import memory
from tests.projections.paimon.serving.engines import NAME, Engine, lake_at

CHANGES = [SetOption("path", "file:///etc/t"), SetOption("PATH", "x"), RemoveOption("path")]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("branch", [None, "b"])
def test_the_location_of_a_table_cannot_be_changed(
    change: SetOption | RemoveOption, branch: str | None
) -> None:
    table = Engine.of_new_table().table
    create_branch(table, "b")
    version = table.state.version
    with pytest.raises(InvalidInputError, match="Change path is not supported"):
        alter_table(table, [SetOption("k", "v"), change], branch=branch)
    assert table.state.version == version


@pytest.mark.parametrize("change", CHANGES)
def test_nor_can_that_of_a_table_of_the_ledger(change: SetOption | RemoveOption) -> None:
    lake = lake_at(memory())
    options = {"ledger.formats": "paimon"}
    lake.create_table("a.t", Schema.of({"id": "BIGINT"}, options=options))
    with pytest.raises(InvalidInputError, match="Change path is not supported"):
        alter_native_table(handle_of(lake).table(NAME), [change])


def test_a_location_is_no_option_of_the_table(tmp_path: Path) -> None:
    lake = ledger.open(f"file://{tmp_path}/lake", allowed_locations=[f"file://{tmp_path}/out"])
    lake.create_database("a")
    schema = Schema.of({"id": "INT"}, options={"path": "file:///etc/t", "k": "v"})
    table = create_table(handle_of(lake), NAME, schema, location=f"file://{tmp_path}/out/t")
    assert "path" not in table.state.schema.options
    written = json.loads((tmp_path / "out/t/schema/schema-0").read_text())
    assert written["options"] == {"k": "v"}
