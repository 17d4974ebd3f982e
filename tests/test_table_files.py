"""Registering real Parquet files through the table's handle."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ledger
from ledger import InvalidInputError, NotFoundError, RenameColumn, Schema, Table

COLUMNS = {"id": "INT", "name": "STRING", "day": "DATE"}


@pytest.fixture
def table(tmp_path: Path) -> Table:
    lake = ledger.open(str(tmp_path))
    lake.create_database("db")
    return lake.create_table("db.t", Schema.of(COLUMNS, partition_keys=["day"]))


def write(table: Table, day: str, rows: dict[str, list[object]], schema: pa.Schema) -> str:
    folder = Path(table.location.removeprefix("file://")) / f"day={day}"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{len(list(folder.iterdir()))}.parquet"
    pq.write_table(pa.table(rows, schema=schema), path)
    return str(path)


def plain(names: tuple[str, str]) -> pa.Schema:
    return pa.schema([(names[0], pa.int32()), (names[1], pa.string())])


def with_ids(table: Table) -> pa.Schema:
    schema = table.at().schema.to_arrow()
    return pa.schema([schema.field(each) for each in schema.names if each != "day"])


def test_footers_give_counts_bounds_and_the_partition(table: Table) -> None:
    path = write(
        table, "2013-01-01", {"id": [3, None, 1], "name": ["a", "b", None]}, plain(("id", "name"))
    )
    table.add_files([path])
    (file,) = table.at().files
    assert file.path == "day=2013-01-01/0.parquet"
    assert file.partition == ("2013-01-01",)
    assert file.record_count == 3
    assert file.file_size_in_bytes == Path(path).stat().st_size
    assert file.null_value_counts == {0: 1, 1: 1}
    assert (file.lower_bounds, file.upper_bounds) == (
        {0: "01000000", 1: "61"},
        {0: "03000000", 1: "62"},
    )
    assert not file.field_ids


def test_a_file_has_the_schema_whose_names_it_uses(table: Table) -> None:
    before = with_ids(table)
    table.alter([RenameColumn(("id",), "key")])
    rows: dict[str, list[object]] = {"id": [1], "name": ["a"]}
    old = write(table, "2013-01-01", rows, plain(("id", "name")))
    new = write(table, "2013-01-02", {"key": [1], "name": ["a"]}, plain(("key", "name")))
    by_id = write(table, "2013-01-03", rows, before)
    table.add_files([old, new, by_id])

    assert [(each.schema_id, each.field_ids) for each in table.at().files] == [
        (0, False),
        (1, False),
        (0, True),
    ]


def test_a_file_with_another_tables_ids_is_refused(table: Table) -> None:
    other = Schema.of({"x": "INT", "id": "INT", "name": "STRING"}).to_arrow()
    schema = pa.schema([other.field("id"), other.field("name")])
    path = write(table, "2013-01-01", {"id": [1], "name": ["a"]}, schema)
    with pytest.raises(InvalidInputError, match="id"):
        table.add_files([path])


def test_mistakes_are_named(table: Table, tmp_path: Path) -> None:
    extra = pa.schema([("id", pa.int32()), ("nmae", pa.string())])
    with pytest.raises(InvalidInputError, match="nmae"):
        table.add_files([write(table, "2013-01-01", {"id": [1], "nmae": ["a"]}, extra)])
    wide = pa.schema([("id", pa.int64()), ("name", pa.string())])
    with pytest.raises(InvalidInputError, match="id"):
        table.add_files([write(table, "2013-01-02", {"id": [1], "name": ["a"]}, wide)])
    with pytest.raises(NotFoundError, match="names no file"):
        table.add_files([str(tmp_path / "nowhere.parquet")])
    torn = Path(write(table, "2013-01-03", {"id": [1], "name": ["a"]}, plain(("id", "name"))))
    torn.write_bytes(torn.read_bytes()[:-9])
    with pytest.raises(ledger.LedgerError, match=r"0\.parquet"):
        table.add_files([str(torn)])
    assert table.at().snapshot is None


def test_progress_is_reported(table: Table) -> None:
    paths = [
        write(table, f"2013-01-{day:02d}", {"id": [day], "name": ["a"]}, plain(("id", "name")))
        for day in range(1, 6)
    ]
    reported: list[tuple[int, int]] = []
    table.add_files(paths, on_progress=lambda done, of: reported.append((done, of)))
    assert reported[-1] == (5, 5)
