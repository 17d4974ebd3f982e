"""A table at an instant as an Arrow stream: read by every library, one file after another."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import duckdb
import polars as pl
import pyarrow as pa
import pytest

import ledger
from ledger import ColumnNotFoundError, InvalidInputError, MissingDependencyError, Table, TableAt
from tests.programs import output_of
from tests.readers.lakehouse import add_rows, by_id, folder_of
from tests.readers.test_deletes import vectors
from tests.readers.typed_rows import mixed_table

_FILES = 24
_ROWS_OF_A_FILE = 100_000


@pytest.fixture
def table(tmp_path: Path) -> Table:
    """Three files of two rows each, of which the last came after the tag `two`."""
    lake = ledger.open(tmp_path)
    lake.create_database("shop")
    table = lake.create_table("shop.orders", {"id": "BIGINT NOT NULL", "name": "STRING"})
    for number in range(3):
        rows = [{"id": 2 * number + each, "name": f"n{number}"} for each in range(2)]
        add_rows(table, f"{number}.parquet", rows)
        if number == 1:
            table.create_tag("two")
    return table


@pytest.fixture
def two(table: Table) -> TableAt:
    return table.at(tag="two")


def test_arrow_polars_and_duckdb_read_the_instant_itself(two: TableAt) -> None:
    ids = [0, 1, 2, 3]
    assert pa.table(two).to_pydict() == two.to_arrow().to_pydict()
    assert pa.table(two).schema == two.to_arrow_batch_reader().schema
    assert pa.RecordBatchReader.from_stream(two).read_all()["id"].to_pylist() == ids
    assert sorted(pl.DataFrame(two)["id"]) == ids
    assert sorted(duckdb.sql("SELECT id FROM two").fetchall()) == [(each,) for each in ids]
    assert sorted(pa.table(two).to_pandas()["id"]) == ids


def test_a_query_of_duckdb_may_scan_the_instant_twice(two: TableAt) -> None:
    assert two.version == 2
    found = duckdb.sql("SELECT count(*) FROM two AS a JOIN two AS b ON a.id < b.id").fetchall()
    assert found == [(6,)]


def test_a_reader_filters_rows_and_reads_only_the_named_columns(table: Table) -> None:
    reader = table.at().to_arrow_batch_reader("id >= 4", ["name"])
    assert reader.schema.names == ["name"]
    assert reader.read_all().to_pydict() == {"name": ["n2", "n2"]}


def test_values_of_every_type_pass_the_stream(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path)
    lake.create_database("shop")
    mixed = mixed_table(lake).at()
    rows = by_id(mixed.to_arrow().to_pylist())
    assert by_id(mixed.to_arrow_batch_reader().read_all().to_pylist()) == rows
    assert by_id(pa.table(mixed).to_pylist()) == rows
    assert mixed.to_polars().height == pl.DataFrame(mixed).height == len(rows)
    count = duckdb.sql("SELECT count(*), count(DISTINCT id) FROM mixed").fetchall()
    assert count == [(len(rows), len(rows))]


def test_deleted_rows_are_not_in_the_stream(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path)
    lake.create_database("shop")
    options = {"ledger.formats": "iceberg", "format-version": "3"}
    schema = ledger.Schema.of({"id": "INT"}, options=options)
    table = lake.create_table("shop.orders", schema)
    add_rows(table, "0.parquet", [{"id": each} for each in range(5)])
    add_rows(table, "1.parquet", [{"id": each} for each in range(5, 10)])
    table.append(vectors(table, "gone.puffin", {"0.parquet": [1, 2], "1.parquet": [4]}))
    left = [0, 3, 4, 5, 6, 7, 8]
    assert table.at().to_arrow_batch_reader().read_all()["id"].to_pylist() == left
    assert table.at().to_arrow()["id"].to_pylist() == left


def test_a_requested_schema_casts_types_and_does_not_choose_columns(two: TableAt) -> None:
    narrow = pa.schema([("id", pa.int32()), ("name", pa.string())])
    assert pa.table(two, schema=narrow).schema == narrow
    with pytest.raises(ValueError, match="field names are not matching"):
        pa.table(two, schema=pa.schema([("id", pa.int64())]))


def test_a_stream_of_a_table_without_rows_has_its_schema(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path)
    lake.create_database("shop")
    empty = lake.create_table("shop.empty", {"id": "BIGINT"}).at()
    assert pa.table(empty).schema.names == ["id"]
    assert pl.DataFrame(empty).height == 0
    assert duckdb.sql("SELECT count(*) FROM empty").fetchall() == [(0,)]


def test_a_view_of_duckdb_is_read_by_every_query_of_its_connection(two: TableAt) -> None:
    with duckdb.connect() as mine:
        assert two.to_duckdb(mine, "early", "id > 0", ["id"]) is mine
        assert mine.sql("DESCRIBE early").fetchall()[0][:2] == ("id", "BIGINT")
        for _ in range(2):
            assert mine.sql("SELECT sum(id) FROM early").fetchall() == [(6,)]
    with two.to_duckdb() as fresh:
        assert fresh.sql("SELECT count(*) FROM orders").fetchall() == [(4,)]


def test_mistakes_in_arguments_of_a_view_are_errors_of_the_ledger(two: TableAt) -> None:
    with pytest.raises(ColumnNotFoundError, match="column nope does not exist"):
        two.to_duckdb(columns=["nope"])
    with pytest.raises(InvalidInputError, match="'lake.db' is not a DuckDB connection, or None"):
        two.to_duckdb("lake.db")  # type: ignore[arg-type]


def test_a_file_that_is_missing_is_named_to_every_consumer(two: TableAt, table: Table) -> None:
    (folder_of(table) / "1.parquet").unlink()
    missing = r"1\.parquet of the table does not exist: restore it"
    with pytest.raises(ledger.NotFoundError, match=missing):
        two.to_arrow_batch_reader().read_all()
    with pytest.raises(pa.ArrowInvalid, match=missing):
        pa.table(two)
    with pytest.raises(duckdb.Error, match=missing):
        duckdb.sql("FROM two").fetchall()


def test_polars_gets_filtered_rows_of_named_columns(two: TableAt, table: Table) -> None:
    assert two.to_polars("id > 2", ["id"]).to_dicts() == [{"id": 3}]
    assert table.to_polars("id > 2").height == 3


@pytest.mark.parametrize("library", ["polars", "duckdb"])
def test_without_a_library_the_message_says_which_extra_has_it(
    library: str, two: TableAt, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingDependencyError, match=rf"pip install .*\[{library}\]"):
        getattr(two, f"to_{library}")()


_SLOW_READER = """
import json, sys, time
import pyarrow as pa
import ledger

opened = []
sys.addaudithook(
    lambda event, about: event == "open" and opened.append(str(about[0]))
)
at = ledger.open(sys.argv[1]).table("shop.wide").at()
reader, counts = at.to_arrow_batch_reader(), []
for batch in reader:
    # Whatever reads ahead has the time to.
    time.sleep(0.02)
    counts.append(len({each for each in opened if each.endswith(".data.parquet")}))
    del batch
print(json.dumps([counts, pa.default_memory_pool().max_memory()]))
"""


def test_many_files_are_opened_one_after_another_in_bounded_memory(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path)
    lake.create_database("shop")
    wide = lake.create_table("shop.wide", {"id": "BIGINT", "twice": "BIGINT"})
    folder = folder_of(wide)
    folder.mkdir(parents=True, exist_ok=True)
    ids = pa.array(range(_ROWS_OF_A_FILE), pa.int64())
    rows = pa.table([ids, ids], schema=wide.at().schema.to_arrow())
    paths = [str(folder / f"{number}.data.parquet") for number in range(_FILES)]
    for path in paths:
        pa.parquet.write_table(rows, path)
    wide.add_files(paths)

    counts, peak_bytes = json.loads(output_of("-c", _SLOW_READER, tmp_path))

    assert counts[0] == 1
    assert counts[-1] == _FILES
    assert peak_bytes < _FILES * rows.nbytes / 3
