"""Footers on which PyArrow ends the process: they are rejected before it reads their columns."""

from __future__ import annotations

import io
import struct
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import ledger
from ledger import InvalidInputError, Schema
from ledger.model.parquet_limits import read_bounded_table, read_metadata

INT16, INT32, INT64, BINARY, LIST, STRUCT = 4, 5, 6, 8, 9, 12
"""Kinds of values in Thrift's compact protocol."""

Struct = dict[int, tuple[int, Any]]
"""A structure: the kind and the value of each field, by its number. A list is the kind of its
elements and the elements."""

READS = """
import sys
from pyarrow import parquet
metadata = parquet.ParquetFile(sys.argv[1]).metadata
for group in map(metadata.row_group, range(metadata.num_row_groups)):
    for chunk in map(group.column, range(group.num_columns)):
        found = chunk.statistics
        print(found and (found.min_raw, found.max_raw))
"""

INTEGERS = pa.array([1, 2])
FIXED = pa.array([b"abcd", b"bbbb"], pa.binary(4))
DECIMALS = pa.array([Decimal("1.50"), Decimal("2.50")], pa.decimal128(19, 2))
MOMENTS = pa.array([datetime(2020, 1, 1), datetime(2021, 1, 1)])  # noqa: DTZ001 - without a zone


def decoded(kind: int, stream: io.BytesIO) -> Any:
    """Return the next value of a stream."""
    if kind in {1, 2}:
        return kind == 1
    if kind in {INT16, INT32, INT64}:
        number = unsigned(stream)
        return number >> 1 ^ -(number & 1)
    if kind == BINARY:
        return stream.read(unsigned(stream))
    if kind == LIST:
        head = stream.read(1)[0]
        size = unsigned(stream) if head >> 4 == 15 else head >> 4
        return head & 15, [decoded(head & 15, stream) for _ in range(size)]
    assert kind == STRUCT, kind
    found: Struct = {}
    number = 0
    while head := stream.read(1)[0]:
        number += head >> 4
        found[number] = head & 15, decoded(head & 15, stream)
    return found


def unsigned(stream: io.BytesIO) -> int:
    found = shift = 0
    while (byte := stream.read(1)[0]) > 127:
        found, shift = found | (byte & 127) << shift, shift + 7
    return found | byte << shift


def varint(number: int) -> bytes:
    return bytes([number]) if number < 128 else bytes([number & 127 | 128]) + varint(number >> 7)


def encoded(kind: int, value: Any) -> bytes:
    """Return what `decoded` read."""
    if kind in {1, 2}:
        return b""
    if kind in {INT16, INT32, INT64}:
        return varint(value << 1 if value >= 0 else -2 * value - 1)
    if kind == BINARY:
        return varint(len(value)) + bytes(value)
    if kind == LIST:
        inside, items = value
        head = bytes([0xF0 | inside]) + varint(len(items))
        # What a list declares and what it has differ in one case below.
        return head + b"".join(encoded(STRUCT if type(e) is dict else inside, e) for e in items)
    found, before = b"", 0
    for number, (inside, each) in sorted(value.items()):
        step = number - before
        head = bytes([step << 4 | inside]) if step < 16 else bytes([inside]) + varint(2 * number)
        found += head + encoded(inside, each)
        before = number
    return found + b"\0"


def edited(values: pa.Array, edit: Callable[[Struct], None], **written: Any) -> bytes:
    """Return a Parquet file of one column with another footer."""
    sink = io.BytesIO()
    parquet.write_table(pa.table({"id": values}), sink, **written)
    body = sink.getvalue()
    start = len(body) - 8 - int.from_bytes(body[-8:-4], "little")
    footer: Struct = decoded(STRUCT, io.BytesIO(body[start:-8]))
    edit(footer)
    end = encoded(STRUCT, footer)
    return body[:start] + end + struct.pack("<I", len(end)) + b"PAR1"


def group(footer: Struct) -> Struct:
    found: Struct = footer[4][1][1][0]
    return found


def chunk(footer: Struct) -> Struct:
    """Return the metadata of the first column chunk: 1 its type, 12 statistics, 16 their sizes."""
    found: Struct = group(footer)[1][1][1][0][3][1]
    return found


def statistics(footer: Struct) -> Struct:
    """Return the statistics of the first column chunk: 5 and 6 are its extremes."""
    found: Struct = chunk(footer)[12][1]
    return found


def declare_numbers(footer: Struct) -> None:
    """Hide a type behind a list of column chunks that says that it has numbers."""
    chunk(footer)[1] = INT32, 99
    group(footer)[1] = LIST, (INT32, group(footer)[1][1][1])


def twice(footer: Struct) -> None:
    group(footer)[1] = LIST, (STRUCT, 2 * group(footer)[1][1][1])


HOSTILE = {
    "an unknown type": (INTEGERS, lambda it: chunk(it).update({1: (INT32, 99)}), "physical type"),
    "a negative type": (INTEGERS, lambda it: chunk(it).update({1: (INT32, -1)}), "physical type"),
    "the first unknown type": (
        DECIMALS,
        lambda it: chunk(it).update({1: (INT32, 8)}),
        "physical type",
    ),
    "an unknown type in a list of numbers": (INTEGERS, declare_numbers, "elements of kind 5"),
    "more chunks than columns": (
        INTEGERS,
        twice,
        "row group of 2 column chunks, and a schema of 1 columns",
    ),
    "lengths of texts for numbers": (
        INTEGERS,
        lambda it: chunk(it).update({16: (STRUCT, {1: (INT64, 7)})}),
        "unencoded bytes",
    ),
    "levels that a column does not have": (
        INTEGERS,
        lambda it: chunk(it).update({16: (STRUCT, {3: (LIST, (INT64, [1, 1, 1]))})}),
        "definition levels",
    ),
    "a minimum of one byte": (
        INTEGERS,
        lambda it: statistics(it).update({6: (BINARY, b"a")}),
        "minimum or maximum of column 0 do not fit",
    ),
    "an empty minimum of fixed length": (
        FIXED,
        lambda it: statistics(it).update({6: (BINARY, b"")}),
        "minimum or maximum",
    ),
    "an empty maximum of a long decimal": (
        DECIMALS,
        lambda it: statistics(it).update({5: (BINARY, b"")}),
        "minimum or maximum",
    ),
}


@pytest.mark.parametrize(("values", "edit", "reason"), HOSTILE.values(), ids=HOSTILE.keys())
def test_a_footer_that_ends_the_process_is_rejected_at_each_door(
    tmp_path: Path, values: pa.Array, edit: Callable[[Struct], None], reason: str
) -> None:
    body = edited(values, edit)
    path = tmp_path / "a.parquet"
    path.write_bytes(body)
    ended = subprocess.run([sys.executable, "-c", READS, path], capture_output=True, check=False)
    assert ended.returncode < 0, "PyArrow reads it now: the rule may go"
    lake = ledger.open(tmp_path / "lake", author="t")
    lake.create_database("d")
    table = lake.create_table("d.t", Schema.of({"id": "BIGINT"}))
    for door in (
        lambda: read_metadata(body, "a.parquet"),
        lambda: read_bounded_table(body, "a.parquet"),
        lambda: table.add_files([str(path)]),
    ):
        with pytest.raises(InvalidInputError, match=reason):
            door()


def test_a_row_group_without_the_schema_s_columns_is_rejected() -> None:
    body = edited(INTEGERS, lambda it: group(it).update({1: (LIST, (STRUCT, []))}))
    with pytest.raises(InvalidInputError, match="row group of 0 column chunks"):
        read_bounded_table(body, "a.parquet")


def test_a_name_that_is_not_utf_8_is_rejected() -> None:
    body = edited(INTEGERS, lambda it: it[2][1][1][1].update({4: (BINARY, b"\xff")}))
    with pytest.raises(InvalidInputError, match="footer that cannot be read: 'utf-8'"):
        read_metadata(body, "a.parquet")


def int96_statistics(footer: Struct) -> None:
    extreme = BINARY, bytes(12)
    chunk(footer)[12] = STRUCT, dict.fromkeys((1, 2, 5, 6), extreme)


@pytest.mark.parametrize("edit", [int96_statistics, lambda _: None])
def test_timestamps_of_96_bits_are_read_with_and_without_statistics(
    tmp_path: Path, edit: Callable[[Struct], None]
) -> None:
    body = edited(MOMENTS, edit, use_deprecated_int96_timestamps=True)
    path = tmp_path / "a.parquet"
    path.write_bytes(body)
    lake = ledger.open(tmp_path / "lake", author="t")
    lake.create_database("d")
    table = lake.create_table("d.t", Schema.of({"id": "TIMESTAMP(6)"}))
    table.add_files([str(path)])
    assert read_bounded_table(body, "a.parquet").column("id").to_pylist() == MOMENTS.to_pylist()
    assert [row["id"] for row in table.head(2).to_pylist()] == MOMENTS.to_pylist()


def test_extremes_that_are_absent_or_empty_where_texts_may_be_are_read() -> None:
    for values, fields in ((INTEGERS, (5,)), (FIXED, (5, 6)), (DECIMALS, (6,))):

        def without(footer: Struct, fields: tuple[int, ...] = fields) -> None:
            for field in fields:
                del statistics(footer)[field]

        absent = edited(values, without)
        assert read_bounded_table(absent, "a.parquet").num_rows == 2
    empty = edited(pa.array(["", "b"]), lambda _: None)
    assert read_bounded_table(empty, "a.parquet").num_rows == 2


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
    assert read_bounded_table(sink.getvalue(), "a.parquet").equals(table)


def test_fields_of_newer_writers_are_passed_over() -> None:
    # Those of geometries have numbers so high that Thrift writes them out.
    def newer(footer: Struct) -> None:
        footer[2][1][1][1][40] = STRUCT, {17: (STRUCT, {})}
        chunk(footer)[33] = INT64, 1

    assert read_bounded_table(edited(INTEGERS, newer), "a.parquet").num_rows == 2


def test_a_second_schema_behind_a_flat_one_does_not_get_past_the_limit_of_levels() -> None:
    sink = io.BytesIO()
    parquet.write_table(pa.table({"id": INTEGERS}), sink)
    body = sink.getvalue()
    start = len(body) - 8 - int.from_bytes(body[-8:-4], "little")
    footer: Struct = decoded(STRUCT, io.BytesIO(body[start:-8]))
    inside = {3: (INT32, 0), 4: (BINARY, b"g"), 5: (INT32, 1)}
    leaf = {1: (INT32, 2), 3: (INT32, 0), 4: (BINARY, b"id")}
    deep = encoded(LIST, (STRUCT, [*[inside] * 30_000, leaf]))
    begin = encoded(STRUCT, {each: footer[each] for each in (1, 2)})[:-1]
    # The field's kind alone, and then its number: 2 once more.
    again = bytes([LIST]) + encoded(INT32, 2) + deep
    rest = encoded(STRUCT, {1: footer[3], 2: footer[4]})
    end = begin + again + rest
    with pytest.raises(InvalidInputError, match="a field is there twice"):
        read_metadata(body[:start] + end + struct.pack("<I", len(end)) + b"PAR1", "a.parquet")
