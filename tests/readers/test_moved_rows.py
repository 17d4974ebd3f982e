"""A ledger that was copied or moved reads its rows, or says why it cannot: never in silence."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pytest
from pyarrow import parquet
from pyiceberg.table import StaticTable

import ledger
from ledger import (
    AddColumn,
    FileChange,
    InvalidChangeError,
    NotFoundError,
    Schema,
    Table,
    UnsupportedError,
)
from ledger.table_handle import handle_of
from projections.delta import DELTA
from projections.iceberg import ICEBERG, expected, position, rebuild, verify
from projections.materialising import Materialisation
from projections.paimon import PAIMON
from tests.projections.iceberg.projecting import Left
from tests.pypaimon_or_skip import CatalogFactory
from tests.readers.lakehouse import add_rows, folder_of


def table_at(root: Path) -> Table:
    return ledger.open(str(root)).table("shop.t")


def made(root: Path, version: str) -> Table:
    lake = ledger.open(str(root))
    lake.create_database("shop")
    options = {"ledger.formats": "iceberg", "format-version": version}
    table = lake.create_table("shop.t", Schema.of({"id": "BIGINT"}, options=options))
    add_rows(table, "data/1.parquet", [{"id": 1}, {"id": 2}, {"id": 3}])
    table.project("iceberg")
    add_rows(table, "data/2.parquet", [{"id": 4}])
    table.project("iceberg")
    return table


def ids(table: Table, **instant: Any) -> list[int]:
    return sorted(each["id"] for each in table.at(**instant).to_arrow().to_pylist())


def by_pyiceberg(table: Table) -> list[int]:
    folder = folder_of(table) / "metadata"
    version = (folder / "version-hint.text").read_text()
    found = StaticTable.from_metadata(str(folder / f"v{version}.metadata.json"))
    return sorted(found.scan().to_arrow()["id"].to_pylist())


@pytest.mark.parametrize("version", ["1", "2", "3"])
@pytest.mark.parametrize("is_moved", [False, True], ids=["copied", "moved"])
def test_rows_are_right_wherever_a_ledger_is_found(
    tmp_path: Path, version: str, *, is_moved: bool
) -> None:
    made(tmp_path / "here", version)
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    if is_moved:
        shutil.rmtree(tmp_path / "here")
    table = table_at(tmp_path / "there")
    before = Left.by(table).files

    assert (ids(table), ids(table, snapshot=1), ids(table, version=1)) == (
        [1, 2, 3, 4],
        [1, 2, 3],
        [1, 2, 3],
    )
    # Reading takes nothing over: an alias of the place may be what the files are for.
    assert Left.by(table).files == before
    with pytest.raises(NotFoundError, match="here.*there.*copied or moved.*lakeledger project"):
        verify(handle_of(table))

    with pytest.raises(InvalidChangeError, match="here.*lakeledger move"):
        table.alter([AddColumn(("n",), "INT")])
    ledger.open(str(tmp_path / "there")).record_move()
    table.alter([AddColumn(("n",), "INT")])
    assert ICEBERG.project(handle_of(table)) == table.state.version
    assert Left.by(table).newest(table) == expected(handle_of(table))
    assert verify(handle_of(table)).is_empty
    assert by_pyiceberg(table) == ids(table) == [1, 2, 3, 4]
    assert all(b"/here/" not in body for body in Left.by(table).files.values())


def test_rebuilding_makes_the_files_of_the_place_that_the_table_is_at(tmp_path: Path) -> None:
    made(tmp_path / "here", "2")
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    table = table_at(tmp_path / "there")
    rebuild(handle_of(table))
    assert verify(handle_of(table)).is_empty
    assert by_pyiceberg(table) == [1, 2, 3, 4]
    assert by_pyiceberg(table_at(tmp_path / "here")) == [1, 2, 3, 4]


def test_a_copy_that_is_killed_while_it_is_rendered_anew_gets_there(tmp_path: Path) -> None:
    made(tmp_path / "here", "2")
    for kept in range(1, 9):
        there = tmp_path / str(kept)
        shutil.copytree(tmp_path / "here", there)
        table = table_at(there)
        wanted = expected(handle_of(table))
        # Some of the new files stand in the places of old ones, and the position knows of none.
        for path in sorted(wanted)[:kept]:
            (folder_of(table) / path).write_bytes(wanted[path])
        ICEBERG.project(handle_of(table))
        assert Left.by(table).newest(table) == wanted
        assert by_pyiceberg(table) == [1, 2, 3, 4]


def test_a_foreign_file_in_a_copy_is_not_read_as_the_ledgers_own(
    tmp_path: Path,
) -> None:
    made(tmp_path / "here", "2")
    shutil.copytree(tmp_path / "here", tmp_path / "there")
    table = table_at(tmp_path / "there")
    theirs = folder_of(table) / "metadata/v3.metadata.json"
    theirs.write_bytes(b"{}")
    ledger.open(str(tmp_path / "there")).record_move()
    table.alter([AddColumn(("n",), "INT")])
    with pytest.raises(ledger.StoreError, match=r"v3\.metadata\.json"):
        ICEBERG.project(handle_of(table))
    assert theirs.read_bytes() == b"{}"


def test_position_deletes_of_another_place_are_rejected_and_not_ignored(tmp_path: Path) -> None:
    table = made(tmp_path / "here", "2")
    named = pa.table({"file_path": [f"{table.location}/data/1.parquet"], "pos": [1]})
    parquet.write_table(named, folder_of(table) / "data/d.parquet")
    deletes = FileChange(
        path="data/d.parquet",
        record_count=1,
        file_size_in_bytes=1,
        content="position-deletes",
        field_ids=True,
    )
    table.append([deletes])
    assert ids(table) == [1, 3, 4]

    for is_projected in (False, True):
        there = tmp_path / f"there {is_projected}"
        shutil.copytree(tmp_path / "here", there)
        copy = table_at(there)
        if is_projected:
            ICEBERG.project(handle_of(copy))
        with pytest.raises(UnsupportedError, match="here/shop.db/t/data/1.parquet.*there"):
            ids(copy)
        assert ids(copy, snapshot=2) == [1, 2, 3, 4]


def test_a_place_is_remembered_with_the_position(tmp_path: Path) -> None:
    table = made(tmp_path / "here", "2")
    stood = position.FILE.load(handle_of(table).log.store, handle_of(table).log.layout)
    assert (stood.location, stood.version) == (table.location, 2)


def test_moved_twice_every_format_is_clean_and_read_the_same_by_its_own_readers(
    tmp_path: Path,
) -> None:
    lake = ledger.open(str(tmp_path / "0"))
    lake.create_database("shop")
    options = {"ledger.formats": "iceberg,paimon,delta", "write-only": "true"}
    table = lake.create_table("shop.t", Schema.of({"id": "BIGINT"}, options=options))
    kept: tuple[Materialisation[Any], ...] = (ICEBERG, PAIMON, DELTA)
    for number in range(3):
        if number:
            shutil.move(tmp_path / str(number - 1), tmp_path / str(number))
            lake = ledger.open(str(tmp_path / str(number)))
            lake.record_move()
            table = lake.table("shop.t")
        add_rows(table, f"{number}.parquet", [{"id": number}])
        for each in kept:
            each.project(handle_of(table))
        wanted = list(range(number + 1))
        assert all(each.verify(handle_of(table)).is_empty for each in kept)
        assert ids(table) == by_pyiceberg(table) == wanted
        assert by_pypaimon(lake) == wanted
        delta = deltalake.DeltaTable(folder_of(table))
        assert sorted(delta.to_pyarrow_table()["id"].to_pylist()) == wanted
    assert not list(lake.inspect_location().ties)


def by_pypaimon(lake: ledger.Ledger) -> list[int]:
    catalog = CatalogFactory.create({"warehouse": lake.url})
    builder = catalog.get_table("shop.t").new_read_builder()
    splits = builder.new_scan().plan().splits()
    return sorted(builder.new_read().to_arrow(splits)["id"].to_pylist())
