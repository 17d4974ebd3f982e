"""Bounds of a file that Paimon's statistics keep, at the limits of what a row can hold."""

from __future__ import annotations

import datetime as dt
import struct

import pytest

from ledger import FileChange
from ledger.model import types as t
from projections.paimon import decode_row, snapshot_from_json, value_stats
from projections.paimon.manifest_writing import row_stats


def file(lower: str, upper: str) -> FileChange:
    return FileChange(
        path="x",
        record_count=2,
        file_size_in_bytes=1,
        null_value_counts={0: 0},
        lower_bounds={0: lower},
        upper_bounds={0: upper},
    )


@pytest.mark.parametrize("code", ["<f", "<d"])
@pytest.mark.parametrize(
    ("bounds", "is_known"),
    [
        ((float("nan"), 1.0), False),
        ((1.0, float("nan")), False),
        ((float("nan"), float("nan")), False),
        ((float("-inf"), float("inf")), True),
    ],
)
def test_one_bound_that_is_not_a_number_leaves_a_column_out(
    code: str, bounds: tuple[float, float], *, is_known: bool
) -> None:
    data_type = t.FloatType() if code == "<f" else t.DoubleType()
    lower, upper = (struct.pack(code, each).hex() for each in bounds)

    names, stats = value_stats(file(lower, upper), [t.DataField(0, "a", data_type)])

    assert names == (("a",) if is_known else ())
    if is_known:
        assert decode_row(stats.min_values, [data_type]) == (bounds[0],)
        assert decode_row(stats.max_values, [data_type]) == (bounds[1],)


def micros(hour: int, minute: int, second: int, microsecond: int) -> str:
    whole = ((hour * 60 + minute) * 60 + second) * 1_000_000 + microsecond
    return struct.pack("<q", whole).hex()


def test_a_time_is_rounded_outwards_to_milliseconds_within_its_day() -> None:
    columns = [t.DataField(0, "a", t.TimeType(6))]
    change = file(micros(1, 2, 3, 4_999), micros(12, 0, 0, 1))

    names, stats = value_stats(change, columns)

    assert names == ("a",)
    assert decode_row(stats.min_values, [t.TimeType(6)]) == (dt.time(1, 2, 3, 4_000),)
    assert decode_row(stats.max_values, [t.TimeType(6)]) == (dt.time(12, 0, 0, 1_000),)
    exact = file(micros(0, 0, 0, 0), micros(23, 59, 59, 999_000))
    assert value_stats(exact, columns)[0] == ("a",)
    # It would be the next day's midnight.
    assert value_stats(file(micros(0, 0, 0, 0), micros(23, 59, 59, 999_001)), columns)[0] == ()


def test_rows_order_zeros_and_what_is_no_number_as_java_does() -> None:
    stats = row_stats([(0.0,), (-0.0,), (float("nan"),)], [t.DoubleType()])

    (low,) = decode_row(stats.min_values, [t.DoubleType()])
    (high,) = decode_row(stats.max_values, [t.DoubleType()])
    assert (str(low), str(high)) == ("-0.0", "nan")


def test_the_least_long_is_no_watermark_and_the_next_one_is() -> None:
    text = '{"version":3,"id":1,"schemaId":0,"commitKind":"APPEND","watermark":%d}'

    assert snapshot_from_json(text % -(2**63)).watermark is None
    assert snapshot_from_json(text % (1 - 2**63)).watermark == 1 - 2**63
