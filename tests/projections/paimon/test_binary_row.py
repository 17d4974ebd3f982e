from __future__ import annotations

import json
import math
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import InvalidInputError, UnsupportedError
from ledger.model import parse_type
from ledger.model import types as t
from projections.paimon import decode_row, encode_row
from projections.paimon.binary_row import EMPTY_ROW, bucket_of, row_hash
from projections.paimon.row_values import native

VECTORS: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "data/paimon/binaryrow_vectors.json").read_text(encoding="utf-8")
)

WHOLE = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}
MOMENTS = st.datetimes()
TYPES: dict[str, st.SearchStrategy[Any]] = {
    **{name: st.integers(-(2 ** (n - 1)), 2 ** (n - 1) - 1) for name, n in WHOLE.items()},
    "BOOLEAN": st.booleans(),
    "FLOAT": st.floats(width=32, allow_nan=False),
    "DOUBLE": st.floats(allow_nan=False),
    "STRING": st.text(),
    "CHAR(3)": st.text(max_size=3),
    "BYTES": st.binary(),
    "DATE": st.dates(),
    "TIME(3)": st.times().map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)),
    "TIMESTAMP(3)": MOMENTS.map(lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)),
    "TIMESTAMP(6)": MOMENTS,
    "TIMESTAMP(6) WITH LOCAL TIME ZONE": MOMENTS,
    "TIMESTAMP(9)": st.integers(-(2**63), 2**63 - 1),
    "DECIMAL(18, 4)": st.integers(-(10**18) + 1, 10**18 - 1).map(lambda n: Decimal(n).scaleb(-4)),
    "DECIMAL(38, 10)": st.integers(-(2**120), 2**120).map(
        lambda n: Decimal((n < 0, [int(digit) for digit in str(abs(n))], -10))
    ),
}


@st.composite
def rows(draw: st.DrawFn) -> tuple[list[t.DataType], list[Any]]:
    names = draw(st.lists(st.sampled_from(sorted(TYPES)), max_size=70))
    values = [draw(st.none() | TYPES[name]) for name in names]
    return [parse_type(name) for name in names], values


def vector_values(vector: dict[str, Any]) -> list[Any]:
    types = map(parse_type, vector["types"])
    return [
        native(text == "true" if isinstance(data_type, t.BooleanType) else text, data_type)
        for text, data_type in zip(vector["values"], types, strict=True)
    ]


@pytest.mark.parametrize("vector", VECTORS, ids=lambda each: f"{each['types']}{each['values']}")
def test_rows_are_those_of_java(vector: dict[str, Any]) -> None:
    types, values = [parse_type(each) for each in vector["types"]], vector_values(vector)

    row = encode_row(values, types)

    assert row.hex() == vector["serializedHex"]
    assert list(decode_row(row, types)) == values


@pytest.mark.parametrize("vector", VECTORS[1:], ids=lambda each: f"{each['types']}{each['values']}")
def test_buckets_are_those_of_java(vector: dict[str, Any]) -> None:
    row = bytes.fromhex(vector["serializedHex"])

    assert row_hash(row) == vector["hash"]
    assert bucket_of(row, 4) == vector["bucketOf4"]


@given(rows())
def test_every_row_reads_as_it_was_written(row: tuple[list[t.DataType], list[Any]]) -> None:
    types, values = row

    assert list(decode_row(encode_row(values, types), types)) == values


@given(rows(), st.data())
def test_cut_and_changed_rows_never_fail_otherwise_than_by_name(
    row: tuple[list[t.DataType], list[Any]], data: st.DataObject
) -> None:
    types, values = row
    body = bytearray(encode_row(values, types))
    for _ in range(data.draw(st.integers(1, 4))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(body[: data.draw(st.integers(0, len(body)))])

    with suppress(InvalidInputError):
        assert len(decode_row(cut, types)) == len(types)


def test_the_empty_row_has_twelve_bytes() -> None:
    assert encode_row([], []) == EMPTY_ROW == bytes(12)


def test_not_a_number_stays_what_it_is() -> None:
    (value,) = decode_row(encode_row([math.nan], [t.DoubleType()]), [t.DoubleType()])

    assert math.isnan(value)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (2**31, "INT"),
        (True, "INT"),
        ("1", "BIGINT"),
        (128, "TINYINT"),
        (1e300, "FLOAT"),
        (7, "STRING"),
        ("x", "BYTES"),
        (Decimal("1.234"), "DECIMAL(10, 2)"),
        (Decimal("NaN"), "DECIMAL(10, 2)"),
        (Decimal(10**8), "DECIMAL(10, 2)"),
        (Decimal("1E+900000"), "DECIMAL(38, 0)"),
        ("2024-01-01", "DATE"),
        (2**90, "TIMESTAMP(9)"),
        ("\ud800", "STRING"),
    ],
)
def test_a_value_of_another_type_is_rejected(value: object, name: str) -> None:
    with pytest.raises(InvalidInputError, match="field 0 of a row"):
        encode_row([value], [parse_type(name)])


def test_as_many_values_as_types_are_wanted() -> None:
    with pytest.raises(InvalidInputError, match="give one for each"):
        encode_row([1], [])
    with pytest.raises(InvalidInputError, match="no row of 2 fields"):
        decode_row(EMPTY_ROW, [t.IntType(), t.IntType()])


def test_a_nested_column_has_no_values_but_null() -> None:
    nested = t.ArrayType(t.IntType())

    assert decode_row(encode_row([None], [nested]), [nested]) == (None,)
    with pytest.raises(UnsupportedError, match="ARRAY"):
        encode_row([[1]], [nested])


def test_a_reference_beyond_the_row_is_not_followed() -> None:
    body = bytearray(encode_row(["x" * 20], [t.STRING]))
    body[12:16] = (2**30).to_bytes(4, "little")

    with pytest.raises(InvalidInputError, match="points at byte 1073741840 of 40"):
        decode_row(bytes(body), [t.STRING])


@pytest.mark.parametrize("length", [0, 17])
def test_a_wide_decimal_of_no_bytes_or_too_many_is_no_decimal(length: int) -> None:
    wide = parse_type("DECIMAL(38, 10)")
    body = bytearray(encode_row([Decimal(1)], [wide]))
    body[12:16] = length.to_bytes(4, "little")

    with pytest.raises(InvalidInputError, match=f"a decimal of {length} bytes"):
        decode_row(bytes(body), [wide])


def test_more_bytes_inside_a_slot_than_it_holds_are_rejected() -> None:
    body = bytearray(encode_row(["seven"], [t.STRING]))
    body[19] = 0x80 | 8

    with pytest.raises(InvalidInputError, match="8 bytes do not fit in a slot of 8"):
        decode_row(bytes(body), [t.STRING])


@pytest.mark.parametrize(
    ("name", "length"),
    [
        *(("DECIMAL(18, 4)", 20), ("DECIMAL(19, 4)", 36)),
        *(("TIMESTAMP(3)", 20), ("TIMESTAMP(4)", 28)),
    ],
)
def test_a_null_keeps_the_room_of_what_a_slot_does_not_hold(name: str, length: int) -> None:
    assert len(encode_row([None], [parse_type(name)])) == length
