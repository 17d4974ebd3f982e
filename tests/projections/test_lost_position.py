"""A projection that nobody remembers is found by its files, and those of others are not."""

from __future__ import annotations

from types import ModuleType

import pytest
from msgspec.structs import replace

from ledger import Schema, Table
from ledger.table_handle import handle_of
from projections.delta import materialise as delta
from projections.iceberg import materialise as iceberg
from projections.paimon import materialise as paimon
from tests.lakes import data_file, lake_on, memory


@pytest.fixture
def table() -> Table:
    lake = lake_on(memory())
    lake.create_database("db")
    options = {"ledger.formats": "paimon,iceberg,delta"}
    table = lake.create_table("db.t", Schema.of({"id": "BIGINT"}, options=options))
    table.append([replace(data_file("a.parquet"), partition=())])
    return table


@pytest.mark.parametrize("projection", [delta, iceberg, paimon], ids=["delta", "iceberg", "paimon"])
def test_files_without_a_position_are_reported(table: Table, projection: ModuleType) -> None:
    assert projection.verify(handle_of(table)).is_empty
    projection.project(handle_of(table))
    store = handle_of(table).log.store
    (key,) = (key for key in store.keys("db.db/t/_ledger/projections"))
    store.delete(key)

    assert projection.verify(handle_of(table)).missing == (key,)
    projection.rebuild(handle_of(table))
    assert projection.verify(handle_of(table)).is_empty


@pytest.mark.parametrize(
    ("projection", "path"),
    [
        (delta, "_delta_log/00000000000000000000.json"),
        (iceberg, "metadata/v1.metadata.json"),
        (paimon, "schema/schema-0"),
    ],
    ids=["delta", "iceberg", "paimon"],
)
def test_files_of_another_writer_are_no_damage(
    table: Table, projection: ModuleType, path: str
) -> None:
    handle_of(table).log.store.replace(f"db.db/t/{path}", b"somebody else's")
    found = projection.verify(handle_of(table))
    assert found.is_empty
    assert found.foreign == (path,)
