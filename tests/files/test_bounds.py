from __future__ import annotations

import struct
from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.files import ColumnFacts, lower_bound, upper_bound
from ledger.files.bounds import Extreme
from ledger.model import parse_type
from ledger.model import types as t


def bounds_of(value: Extreme, found: str, wanted: str | None = None) -> tuple[bytes, bytes]:
    facts = ColumnFacts(1, 0, value, value)
    types = parse_type(found), parse_type(wanted or found)
    lower, upper = lower_bound(facts, *types), upper_bound(facts, *types)
    assert lower is not None
    assert upper is not None
    return bytes.fromhex(lower), bytes.fromhex(upper)


DAY = (date(2013, 1, 1) - date(1970, 1, 1)).days
MICROS = int(datetime(2013, 1, 1, tzinfo=UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    ("value", "found", "wanted", "encoded"),
    [
        (True, "BOOLEAN", "BOOLEAN", b"\x01"),
        (-1, "TINYINT", "TINYINT", b"\xff\xff\xff\xff"),
        (7, "INT", "INT", b"\x07\0\0\0"),
        (7, "INT", "BIGINT", b"\x07\0\0\0\0\0\0\0"),
        (DAY, "DATE", "DATE", struct.pack("<i", 15706)),
        (1.5, "FLOAT", "FLOAT", struct.pack("<f", 1.5)),
        (1.5, "FLOAT", "DOUBLE", struct.pack("<d", 1.5)),
        (1420, "DECIMAL(9, 2)", "DECIMAL(9, 2)", b"\x05\x8c"),
        (0, "DECIMAL(9, 2)", "DECIMAL(9, 2)", b"\0"),
        (-128, "DECIMAL(9, 2)", "DECIMAL(9, 2)", b"\x80"),
        (128, "DECIMAL(9, 2)", "DECIMAL(9, 2)", b"\0\x80"),
        (MICROS, "TIMESTAMP(6)", "TIMESTAMP(3)", struct.pack("<q", MICROS)),
        (MICROS // 1000, "TIMESTAMP(3)", "TIMESTAMP(6)", struct.pack("<q", MICROS)),
        (MICROS, "TIMESTAMP(6)", "TIMESTAMP(9)", struct.pack("<q", MICROS * 1000)),
        (3, "TIME(3)", "TIME(0)", struct.pack("<q", 3000)),
        ("ü".encode(), "STRING", "VARCHAR(3)", b"\xc3\xbc"),
        (b"\0\xff", "BYTES", "BYTES", b"\0\xff"),
        (b"0123456789abcdef", "BINARY(16)", "UUID", b"0123456789abcdef"),
    ],
)
def test_a_bound_is_icebergs_single_value(
    value: Extreme, found: str, wanted: str, encoded: bytes
) -> None:
    assert bounds_of(value, found, wanted) == (encoded, encoded)


def test_a_moment_finer_than_the_unit_is_rounded_outwards() -> None:
    assert bounds_of(-1_500, "TIMESTAMP(9)", "TIMESTAMP(6)") == (
        struct.pack("<q", -2),
        struct.pack("<q", -1),
    )


def test_both_zeros_lie_between_the_bounds_of_zero() -> None:
    assert bounds_of(0.0, "DOUBLE") == (struct.pack("<d", -0.0), struct.pack("<d", 0.0))


@pytest.mark.parametrize(
    ("text", "upper"),
    [
        ("a" * 16, "a" * 16),
        ("a" * 17, "a" * 15 + "b"),
        ("a" * 15 + "\ud7ff" + "x", "a" * 15 + "\ue000"),
        ("a" * 15 + "\U0010ffff" + "x", "a" * 14 + "b"),
    ],
)
def test_long_text_is_cut_and_the_upper_bound_raised(text: str, upper: str) -> None:
    found = bounds_of(text.encode(), "STRING")

    assert [each.decode() for each in found] == [text[:16], upper]


@pytest.mark.parametrize("value", ["\U0010ffff".encode() * 17, b"\xff" * 17])
def test_what_cannot_be_raised_has_no_upper_bound(value: bytes) -> None:
    kind = t.BYTES if value[0] == 0xFF else t.STRING

    assert lower_bound(ColumnFacts(1, 0, value, value), kind, kind) is not None
    assert upper_bound(ColumnFacts(1, 0, value, value), kind, kind) is None


def test_text_that_a_writer_cut_within_a_character_has_no_bounds() -> None:
    facts = ColumnFacts(1, 0, b"\xc3", b"\xc3")

    assert lower_bound(facts, t.STRING, t.STRING) is None


def test_what_does_not_fit_or_has_no_form_has_no_bounds() -> None:
    far = ColumnFacts(1, 0, 2**62, 2**62)

    assert lower_bound(far, t.TimestampType(6), t.TimestampType(9)) is None
    assert lower_bound(ColumnFacts(1, 0, b"x", b"x"), t.BYTES, t.BlobType()) is None


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_text_lies_between_its_bounds(text: str) -> None:
    facts = ColumnFacts(1, 0, text.encode(), text.encode())

    lower = lower_bound(facts, t.STRING, t.STRING)
    upper = upper_bound(facts, t.STRING, t.STRING)

    assert lower is not None
    assert bytes.fromhex(lower) <= text.encode()
    assert upper is None or bytes.fromhex(upper) >= text.encode()
    assert upper is None or len(bytes.fromhex(upper).decode()) <= 16


@given(st.integers(-(10**38), 10**38))
def test_a_decimals_bound_is_the_shortest_that_reads_back(unscaled: int) -> None:
    lower, _ = bounds_of(unscaled, "DECIMAL(38, 0)")

    assert int.from_bytes(lower, "big", signed=True) == unscaled
    if len(lower) > 1:
        assert int.from_bytes(lower[1:], "big", signed=True) != unscaled
