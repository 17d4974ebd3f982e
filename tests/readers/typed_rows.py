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

VALUES: dict[str, tuple[Any, ...]] = {
    "BOOLEAN": (True, False),
    "TINYINT": (1, -2),
    "SMALLINT": (1, -300),
    "INT": (1, -70_000),
    "BIGINT": (1, -(2**40)),
    "FLOAT": (1.5, -2.25),
    "DOUBLE": (1.1, 1e300),
    "DECIMAL(9, 2)": (Decimal("1.50"), Decimal("-2.25")),
    "DECIMAL(12, 2)": (Decimal("1.50"), Decimal("-1234567890.25")),
    "DECIMAL(20, 2)": (Decimal("1.50"), Decimal("-123456789012345678.25")),
    "DECIMAL(38, 2)": (Decimal("1.50"), Decimal("-12345678901234567890.25")),
    "CHAR(3)": ("abc", "xyz"),
    "VARCHAR(5)": ("a b/c", "zoë"),
    "STRING": ("", "\U0001f4b0"),
    "BINARY(3)": (b"abc", bytes(3)),
    "VARBINARY(5)": (b"", b"abc"),
    "BYTES": (b"\x00\xff", b"abc"),
    "DATE": (dt.date(1960, 1, 2), dt.date(2013, 1, 1)),
    "TIME(3)": (dt.time(1, 2, 3, 4000), dt.time(23, 59)),
    "TIME(6)": (dt.time(1, 2, 3, 4), dt.time(23, 59)),
    "TIMESTAMP(0)": (dt.datetime(1960, 1, 2, 3), dt.datetime(2013, 1, 1)),  # noqa: DTZ001
    "TIMESTAMP(3)": (dt.datetime(1960, 1, 2, 3), dt.datetime(2013, 1, 1)),  # noqa: DTZ001
    "TIMESTAMP(6)": (MOMENT, dt.datetime(1960, 1, 2, 3)),  # noqa: DTZ001
    "TIMESTAMP_LTZ(3)": (dt.datetime(1960, 1, 2, tzinfo=UTC), dt.datetime(2013, 1, 1, tzinfo=UTC)),
    "TIMESTAMP_LTZ(6)": (MOMENT.replace(tzinfo=UTC), dt.datetime(1960, 1, 2, tzinfo=UTC)),
}
"""Two values of each atomic type that Iceberg has from version 1 on, before and after an epoch."""


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
