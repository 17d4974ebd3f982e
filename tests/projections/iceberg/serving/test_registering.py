"""Tables with a history that others wrote are registered, dropped, and registered again."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from ledger import AlreadyExistsError, InvalidInputError, Ledger, LedgerError, UnsupportedError
from ledger.history.verifying import Subject, Verification
from ledger.table_handle import TableHandle, handle_of
from projections.iceberg import TableMetadata, read_metadata
from projections.iceberg.imported_metadata import differing_fields
from projections.iceberg.metadata_folder import read_metadata_file
from projections.iceberg.rest_updates import SetProperties
from projections.iceberg.served import load, register
from tests.independent.agreeing import agrees
from tests.projections.iceberg.importing.test_known_tables import DATA, INVALID, TABLES
from tests.projections.iceberg.serving.lakes import NAME, Clock, lake_in, send

LATE = 1_900_000_000_000
"""A time after all that others wrote."""
LIVES = sorted((DATA / "generated").rglob("*.metadata.json"))


def lake_of(root: Path) -> Ledger:
    return lake_in(root / "lake", Clock(LATE))


def placed(body: bytes, root: Path, **values: Any) -> str:
    """Write a metadata file below the ledger, where clients may name locations."""
    said = json.loads(body) | {"location": f"{root}/lake/engines/t", **values}
    file = root / "lake/engines/t/metadata/old.metadata.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(said))
    return str(file)


def registered_at(url: str) -> TableMetadata:
    return read_metadata_file(url, lambda each: Path(each).read_bytes(), None).metadata


def assert_registered(table: TableHandle, source: str) -> None:
    """The table is what the file says, but for what a commit sets."""
    wanted, loaded = registered_at(source), load(table, table.state)
    assert {*differing_fields(loaded.metadata, wanted)} <= {"last_updated_ms", "metadata_log"}
    assert loaded.metadata.snapshots == wanted.snapshots
    assert [each.metadata_file for each in loaded.metadata.metadata_log] == [
        *(each.metadata_file for each in wanted.metadata_log),
        source,
    ]
    assert read_metadata(loaded.body) == loaded.metadata


@pytest.mark.parametrize(
    "file", [each for each in (*TABLES, *LIVES) if each.name not in INVALID], ids=str
)
def test_a_registered_table_is_what_its_file_says(file: Path, tmp_path: Path) -> None:
    lake, source = lake_of(tmp_path), placed(file.read_bytes(), tmp_path)
    table = register(handle_of(lake), NAME, source)
    assert_registered(table, source)
    send(table, SetProperties(updates={"by": "engine"}))
    assert load(table, table.state).metadata.properties["by"] == "engine"
    assert agrees(tmp_path / "lake", lake) == 2
    subject: Subject[Any, Any] = Subject("a.t", table.log, has_files=True)
    assert list(Verification(subject).run()) == []


@pytest.mark.parametrize("file", [each for each in TABLES if each.name in INVALID], ids=str)
def test_a_file_that_is_no_table_is_rejected_and_leaves_nothing(file: Path, tmp_path: Path) -> None:
    lake, source = lake_of(tmp_path), str(tmp_path / "lake/x.metadata.json")
    Path(source).write_bytes(file.read_bytes())
    with pytest.raises(LedgerError):
        register(handle_of(lake), NAME, source)
    assert lake.tables("a") == []


def test_a_compressed_file_is_registered(tmp_path: Path) -> None:
    lake, source = lake_of(tmp_path), placed(LIVES[-1].read_bytes(), tmp_path)
    packed = f"{source.removesuffix('.metadata.json')}.gz.metadata.json"
    Path(packed).write_bytes(gzip.compress(Path(source).read_bytes()))
    assert_registered(register(handle_of(lake), NAME, packed), packed)


def test_a_dropped_table_is_registered_again_at_its_location(tmp_path: Path) -> None:
    lake, source = lake_of(tmp_path), placed(LIVES[-1].read_bytes(), tmp_path)
    first = register(handle_of(lake), NAME, source)
    send(first, SetProperties(updates={"by": "engine"}))
    last = load(first, first.state).location.removeprefix("file://")
    lake.drop_table("a.t")
    for each in (source, last):
        table = register(handle_of(lake), NAME, each)
        assert_registered(table, each)
        lake.drop_table("a.t")


def test_a_name_that_is_taken_is_rejected(tmp_path: Path) -> None:
    lake, source = lake_of(tmp_path), placed(LIVES[-1].read_bytes(), tmp_path)
    register(handle_of(lake), NAME, source)
    with pytest.raises(AlreadyExistsError):
        register(handle_of(lake), NAME, source)


def test_a_file_from_the_future_is_rejected(tmp_path: Path) -> None:
    later = {"last-updated-ms": LATE + 61_000}
    lake, source = lake_of(tmp_path), placed(LIVES[-1].read_bytes(), tmp_path, **later)
    with pytest.raises(InvalidInputError, match="more than a minute"):
        register(handle_of(lake), NAME, source)


def test_places_outside_of_the_ledger_are_rejected(tmp_path: Path) -> None:
    lake, body = lake_of(tmp_path), LIVES[-1].read_bytes()
    inside = placed(body, tmp_path)
    outside = tmp_path / "x.metadata.json"
    outside.write_bytes(Path(inside).read_bytes())
    elsewhere = {"location": str(tmp_path / "other")}
    metadata = {"properties": {"write.metadata.path": str(tmp_path / "other")}}
    for values in (elsewhere, metadata, {}):
        source = placed(body, tmp_path, **values) if values else str(outside)
        with pytest.raises(UnsupportedError, match="outside of the ledger"):
            register(handle_of(lake), NAME, source)
    assert lake.tables("a") == []
