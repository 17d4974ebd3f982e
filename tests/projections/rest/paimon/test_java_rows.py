"""Iceberg's clients read what Paimon's Java writes, and Java reads what the ledger owns."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterator
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyiceberg.table import StaticTable

import ledger
from ledger import Schema
from ledger.table_handle import TableHandle, handle_of
from projections.iceberg.served import load
from tests.projections.paimon.importing.paimon_source import PaimonSource
from tests.projections.rest.paimon.java_client import JavaClient
from tests.projections.rest.paimon.java_objects import PaimonJvm
from tests.projections.rest.paimon.paimon_clients import TableSpec
from tests.projections.rest.rest_servers import RestServer
from tests.readers.engines import duckdb_rows
from tests.readers.java_core import PaimonUnavailableError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COLUMNS: dict[str, Any] = {
    "id": "BIGINT",
    "name": "STRING",
    "n": "INT",
    "day": "DATE",
    "price": "DECIMAL(10, 2)",
    "codes": {"type": "ARRAY", "element": "INT"},
    "place": {"type": "ROW", "fields": [{"id": 20, "name": "x", "type": "INT"}]},
    "marks": {"type": "MAP", "key": "STRING", "value": "INT"},
}


@pytest.fixture(scope="module", name="jvm")
def _jvm(spark: SparkSession) -> Iterator[PaimonJvm]:
    try:
        with PaimonJvm.running(spark) as found:
            yield found
    except PaimonUnavailableError as error:
        pytest.skip(str(error))


def name_of(number: int) -> str:
    """Return a name that is longer than the bounds that Java writes of texts."""
    return f"a name with the number {number}"


def row(number: int, *more: Any) -> tuple[Any, ...]:
    day = dt.date(2024, 1, 1 + number % 2)
    codes, marks = [number, 7], {"k": number}
    return (number, name_of(number), number, day, Decimal("1.50"), codes, {"x": 7}, marks, *more)


def texts(rows: list[dict[str, Any]]) -> list[str]:
    """Return rows as Java's client does, in an order of their own."""
    return sorted(f"{{{', '.join(_text(each) for each in found.values())}}}" for found in rows)


def _text(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, dict):
        return f"{{{', '.join(map(_text, value.values()))}}}"
    if isinstance(value, list) and value and isinstance(value[0], tuple):
        return f"{{{', '.join(f'{key} -> {each}' for key, each in value)}}}"
    return str(value)


def test_iceberg_reads_the_rows_of_java_after_each_of_its_commits(
    jvm: PaimonJvm, tmp_path: Path
) -> None:
    java = JavaClient.of_files(jvm, str(tmp_path / "files"))
    java.create_database()
    java.create_table("orders", TableSpec(COLUMNS, partition_keys=["day"]))
    lake = ledger.open(tmp_path / "lake")
    steps: tuple[Callable[[], None], ...] = (
        lambda: java.write("orders", [row(1), row(2)]),
        lambda: java.write("orders", [row(3), row(4)]),
        lambda: java.alter(
            "orders",
            {"action": "renameColumn", "fieldNames": ["name"], "newName": "title"},
            {
                "action": "updateColumnType",
                "fieldNames": ["n"],
                "newDataType": "BIGINT",
                "keepNullability": True,
            },
            {"action": "addColumn", "fieldNames": ["more"], "dataType": "STRING"},
        ),
        *(partial(java.write, "orders", [row(number, "m")]) for number in range(5, 9)),
        lambda: java.compact_manifests("orders"),
        lambda: java.overwrite("orders", {"day": "2024-01-02"}, [row(11, "o")]),
        lambda: java.write("orders", [row(12, None)]),
    )
    seen: dict[int, list[str]] = {}
    for step in steps:
        step()
        lake.import_table("a.orders", str(tmp_path / "files/shop.db/orders"), format_name="paimon")
        table = handle_of(lake.table("a.orders"))
        expected = sorted(java.rows("orders"))
        assert read_by_iceberg(table) == expected
        seen[table.state.last_snapshot_id] = expected
    location = Path(load(table, table.state).location.removeprefix("file://"))
    assert texts(duckdb_rows(location)) == expected
    filters = {
        "title": f"'{name_of(12)}'",
        "n": "12",
        "id": "12",
        "day": "'2024-01-01'",
        "price": "1.50",
    }
    scan = StaticTable.from_metadata(load(table, table.state).location).scan
    for column, value in filters.items():
        found = scan(row_filter=f"{column} = {value}").to_arrow()["id"].to_pylist()
        assert 12 in found, column
        assert (len(found) == 1) == (column in {"title", "n", "id"})
    newest = [each for each in seen if each > 2]
    assert all(read_by_iceberg(table, each) == seen[each] for each in newest)


def read_by_iceberg(table: TableHandle, snapshot_id: int | None = None) -> list[str]:
    metadata = StaticTable.from_metadata(load(table, table.state).location)
    return texts(metadata.scan(snapshot_id=snapshot_id).to_arrow().to_pylist())


def test_java_reads_what_the_ledger_owns(
    jvm: PaimonJvm, served: RestServer, tmp_path: Path
) -> None:
    lake = ledger.open(served.warehouse)
    lake.create_database("shop")
    table = lake.create_table("shop.natives", Schema.of({"id": "BIGINT", "city": "STRING"}))
    java = JavaClient.of_server(jvm, f"{served.uri}/paimon", served.warehouse)
    for number in (1, 2):
        path = tmp_path / f"{number}.parquet"
        rows = [{"id": number, "city": "Oslo"}]
        parquet.write_table(pa.Table.from_pylist(rows, table.schema.to_arrow()), path)
        table.add_files(str(path))
    assert java.rows("natives") == ["{1, Oslo}", "{2, Oslo}"]
    assert java.rows("natives", {"scan.snapshot-id": "1"}) == ["{1, Oslo}"]
    java.alter("natives", {"action": "addColumn", "fieldNames": ["more"], "dataType": "STRING"})
    assert table.state.schema.names == ("id", "city", "more")
    assert java.rows("natives") == ["{1, Oslo, null}", "{2, Oslo, null}"]
    source = PaimonSource(tmp_path / "theirs")
    source.append(2)
    lake.import_table("shop.theirs", str(source.folder), format_name="paimon")
    assert len(java.rows("theirs")) == 2
