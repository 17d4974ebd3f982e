"""pypaimon reads a tag of any name that the ledger takes."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from pyarrow import parquet

import ledger
from ledger import Schema
from ledger.table_handle import handle_of
from projections.paimon import PAIMON
from tests.pypaimon_or_skip import CatalogFactory
from tests.readers.lakehouse import folder_of

NAMES = ("my tag", "a=b&c", "it's", "a+b", "a,b", "[x]", "{y}", "~t", "-1", "007", "ümlaut", "日本")


def test_pypaimon_reads_tags_with_blanks_and_odd_characters(tmp_path: Path) -> None:
    lake = ledger.open(str(tmp_path))
    lake.create_database("shop")
    columns = {"id": "BIGINT"}
    table = lake.create_table(
        "shop.orders", Schema.of(columns, options={"ledger.formats": "paimon"})
    )
    (folder_of(table) / "data").mkdir(parents=True)
    for number, name in enumerate(NAMES):
        file = folder_of(table) / f"data/{number}.parquet"
        parquet.write_table(pa.table({"id": pa.array([number], pa.int64())}), file)
        table.add_files([str(file)])
        table.create_tag(name)
    PAIMON.project(handle_of(table))

    catalog = CatalogFactory.create({"warehouse": lake.url})

    for number, name in enumerate(NAMES):
        builder = catalog.get_table("shop.orders").copy({"scan.tag-name": name}).new_read_builder()
        read = builder.new_read().to_arrow(builder.new_scan().plan().splits())
        assert sorted(read["id"].to_pylist()) == list(range(number + 1)), name
