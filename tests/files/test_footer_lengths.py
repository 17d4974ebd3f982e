"""Footers on whose lengths PyArrow ends the process: they are rejected before it looks."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

import ledger
from ledger import InvalidInputError, Schema
from ledger.model.bounded.parquet import bounded_table, read_metadata

LEAST, GREATEST = 0x1122334455667788, 0x1122334455667799


def with_short_minimum() -> bytes:
    """Return a Parquet file whose minimum has one of its eight bytes."""
    sink = io.BytesIO()
    parquet.write_table(pa.table({"id": pa.array([LEAST, GREATEST])}), sink)
    body = sink.getvalue()
    length = int.from_bytes(body[-8:-4], "little")
    value = struct.pack("<q", LEAST)
    footer = body[-8 - length : -8].replace(b"\x08" + value, b"\x01" + value[:1])
    return body[: -8 - length] + footer + struct.pack("<I", len(footer)) + b"PAR1"


def test_a_minimum_shorter_than_its_type_is_rejected_at_each_door(tmp_path: Path) -> None:
    body = with_short_minimum()
    path = tmp_path / "a.parquet"
    path.write_bytes(body)
    lake = ledger.open(tmp_path / "lake", author="t")
    lake.create_database("d")
    table = lake.create_table("d.t", Schema.of({"id": "BIGINT"}))
    for door in (
        lambda: read_metadata(body, "a.parquet"),
        lambda: bounded_table(body, "a.parquet"),
        lambda: table.add_files([str(path)]),
    ):
        with pytest.raises(InvalidInputError, match="minimum or maximum of column 0 do not fit"):
            door()


@pytest.mark.parametrize("groups", [1, 7])
def test_footers_of_real_writers_are_read(groups: int) -> None:
    kinds = [pa.int8(), pa.float32(), pa.bool_(), pa.string(), pa.decimal128(19, 2), pa.date32()]
    columns: dict[str, pa.Array] = {str(each): pa.nulls(7, each) for each in kinds}
    columns |= {f"{each} full": pa.array([1] * 7, pa.int32()).cast(each) for each in kinds}
    columns |= {"li": pa.array([[1], [], None, [2, 3], [4], [5], [6]])}
    columns |= {
        "st": pa.array([{"a": {"b": [1.5]}}] * 7),
        "mp": pa.array([[("k", 1)]] * 7, pa.map_(pa.string(), pa.int64())),
    }
    table = pa.table(columns)
    sink = io.BytesIO()
    parquet.write_table(table, sink, row_group_size=7 // groups, write_page_index=True)
    assert read_metadata(sink.getvalue(), "a.parquet").num_rows == 7
    assert bounded_table(sink.getvalue(), "a.parquet").equals(table)
