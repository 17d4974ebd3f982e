from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger import InvalidInputError, UnsupportedError
from ledger.files import ColumnFacts, lower_bound, upper_bound
from ledger.model import parse_type
from ledger.model import types as t
from projections.paimon.row_values import from_bound, native, scalar, to_bound

MICROS = dt.datetime.fromisoformat("2024-01-01T01:02:03.456789")


@pytest.mark.parametrize(
    ("value", "name", "expected"),
    [
        (7, "INT", 7),
        (True, "BOOLEAN", True),
        ("eu", "STRING", "eu"),
        ("eu", "CHAR(2)", "eu"),
        ("-12.34", "DECIMAL(10, 2)", Decimal("-12.34")),
        ("1.5", "FLOAT", 1.5),
        ("2013-01-01", "DATE", dt.date(2013, 1, 1)),
        ("01:02:03.4", "TIME(3)", dt.time(1, 2, 3, 400_000)),
        ("2024-01-01T01:02:03.456789", "TIMESTAMP(6)", MICROS),
        ("2024-01-01T01:02:03.456789", "TIMESTAMP(6) WITH LOCAL TIME ZONE", MICROS),
        ("1969-12-31T23:59:59.999999999", "TIMESTAMP(9)", -1),
        ("00ff", "BYTES", b"\0\xff"),
        (None, "DATE", None),
    ],
)
def test_scalars_become_what_rows_hold_and_come_back(value: Any, name: str, expected: Any) -> None:
    data_type = parse_type(name)

    assert native(value, data_type) == expected
    assert scalar(expected, data_type) == value


@pytest.mark.parametrize(
    ("value", "name"),
    [
        ("soon", "DATE"),
        (True, "INT"),
        (2**31, "INT"),
        ("1.234", "DECIMAL(10, 2)"),
        ("2013-13-01", "DATE"),
        ("0g", "BYTES"),
        ("yes", "BOOLEAN"),
    ],
)
def test_a_scalar_of_another_type_is_rejected(value: Any, name: str) -> None:
    with pytest.raises(InvalidInputError, match="partition value"):
        native(value, parse_type(name))


def test_nested_types_have_neither_scalars_nor_bounds() -> None:
    nested = t.ArrayType(t.IntType())

    with pytest.raises(UnsupportedError, match="ARRAY"):
        native("1", nested)
    with pytest.raises(UnsupportedError, match="ARRAY"):
        from_bound("00", nested)


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (True, "BOOLEAN"),
        (-5, "TINYINT"),
        (2**62, "BIGINT"),
        (1.5, "FLOAT"),
        (-2.25, "DOUBLE"),
        ("é", "STRING"),
        (b"\xff", "BYTES"),
        (Decimal("-1.28"), "DECIMAL(10, 2)"),
        (dt.date(1969, 12, 31), "DATE"),
        (dt.time(23, 59, 59, 999_999), "TIME(6)"),
        (MICROS, "TIMESTAMP(6)"),
        (-1, "TIMESTAMP(9)"),
    ],
)
def test_bounds_read_as_they_were_written(value: Any, name: str) -> None:
    data_type = parse_type(name)

    assert from_bound(to_bound(value, data_type), data_type) == value


def test_bounds_of_a_narrower_type_read_after_widening() -> None:
    assert from_bound(to_bound(-7, t.IntType()), t.BigIntType()) == -7
    assert from_bound(to_bound(1.5, t.FloatType()), t.DoubleType()) == 1.5


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("0", "INT"),
        ("zz", "INT"),
        ("000000", "INT"),
        ("", "DECIMAL(5, 2)"),
        ("ff", "STRING"),
        ("ffffffffffffff7f", "TIME(3)"),
        ("ffffff7f", "DATE"),
        ("ffffffffffffff7f", "TIMESTAMP(6)"),
        ("7fffffff", "DECIMAL(5, 2)"),
        ("0101", "BOOLEAN"),
    ],
)
def test_a_bound_of_other_bytes_is_rejected(text: str, name: str) -> None:
    with pytest.raises(InvalidInputError, match="single-value form"):
        from_bound(text, parse_type(name))


@given(st.text(min_size=1))
def test_bounds_of_footers_still_bound_what_rows_compare(text: str) -> None:
    facts = ColumnFacts(1, 0, text.encode(), text.encode())
    lower, upper = (bound(facts, t.STRING, t.STRING) for bound in (lower_bound, upper_bound))

    assert lower is not None
    assert from_bound(lower, t.STRING) <= text
    assert upper is None or from_bound(upper, t.STRING) >= text
