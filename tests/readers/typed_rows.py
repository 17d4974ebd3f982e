"""A table with columns of many types, in files of five layouts."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from ledger import (
    Ledger,
    Schema,
    Table,
)
from ledger.model import read_type
from ledger.transforms import bucket, day, truncate
from tests.readers.lakehouse import add_rows

UTC = dt.UTC
MOMENT = dt.datetime(2013, 1, 1, 23, 59, 58, 123456)  # noqa: DTZ001 - a wall clock

COLUMNS: dict[str, Any] = {
    "id": "BIGINT NOT NULL",
    "ok": "BOOLEAN",
    "small": "INT",
    "ratio": "DOUBLE",
    "price": "DECIMAL(9, 2)",
    "huge": "DECIMAL(38, 4)",
    "name": "STRING",
    "born": "DATE",
    "ts": "TIMESTAMP(6)",
    "seen": "TIMESTAMP(6) WITH LOCAL TIME ZONE",
    "raw": "BYTES",
    "place": read_type("ROW<zip INT, city STRING>"),
}


def row_of(number: int) -> dict[str, Any]:
    row: dict[str, Any] = {
        "ok": number % 2 == 0,
        "small": number % 7 - 3,
        "ratio": (number % 5) / 4,
        "price": Decimal(number * 37 - 100).scaleb(-2),
        "huge": Decimal(10) ** 20 * number + Decimal("0.0001"),
        "name": ["", "a", "ab", "abc", "b%", "zoë", "\U0001f4b0"][number % 7],
        "born": dt.date(1969, 12, 28) + dt.timedelta(days=number),
        "ts": MOMENT + dt.timedelta(hours=number, microseconds=number),
        "seen": (MOMENT + dt.timedelta(hours=7 * number)).replace(tzinfo=UTC),
        "raw": bytes([number % 3, 255]),
        "place": {"zip": number % 4, "city": "x" * (number % 3)},
    }
    for each, name in enumerate(row):
        if (number + each) % 6 == 0:
            row[name] = None
    return {"id": number, **row}


def mixed_table(lake: Ledger) -> Table:
    """Return a table that is partitioned by one column after the other."""
    schema = Schema.of(COLUMNS, options={"ledger.formats": "iceberg"})
    table = lake.create_table("shop.mixed", schema)
    add_rows(table, "plain.parquet", [row_of(each) for each in range(30)])
    add_rows(table, "names.parquet", [row_of(each) for each in range(30, 40)], has_ids=False)
    number = 40
    for term in (day("ts"), bucket("name", 4), truncate("price", 100), truncate("raw", 1)):
        previous = table.state.spec.fields
        update = table.update_spec().add_field(term)
        for each in previous:
            update = update.remove_field(each.name)
        update.commit()
        for _ in range(2):
            # One row is one partition, whatever the transform.
            add_rows(table, f"{number}.parquet", [row_of(number)])
            number += 1
    return table
