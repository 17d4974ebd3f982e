"""The text of a partition value in a path, under each transform and at the edges of each type."""

from __future__ import annotations

import re

import pytest

from ledger.files import value_of
from ledger.files.partition_values import normalize_partition_value, parse_transformed_value
from ledger.model import parse_type, transform_of

MOMENT = "TIMESTAMP(6)"


@pytest.mark.parametrize(
    ("transform", "data_type", "text", "value"),
    [
        ("year", MOMENT, "1969", -1),
        ("year", "DATE", "2013", 43),
        ("month", MOMENT, "1969-12", -1),
        ("month", "DATE", "2013-01", 516),
        ("day", MOMENT, "2013-01-01", "2013-01-01"),
        ("day", "DATE", "15706", "2013-01-01"),
        ("hour", MOMENT, "1970-01-01-00", 0),
        ("hour", MOMENT, "1969-12-31-23", -1),
        ("bucket[4]", "INT", "0", 0),
        ("bucket[4]", "INT", "3", 3),
        ("truncate[10]", "INT", "-10", -10),
        ("truncate[2]", "STRING", "ab", "ab"),
        ("identity", "DOUBLE", "-inf", "-Infinity"),
        ("identity", "DOUBLE", "Infinity", "Infinity"),
        ("identity", "FLOAT", "-Infinity", "-Infinity"),
        ("identity", "FLOAT", "nan", "NaN"),
    ],
)
def test_each_transform_has_its_text(
    transform: str, data_type: str, text: str, value: object
) -> None:
    source = parse_type(data_type)
    assert parse_transformed_value(text, transform_of(transform), source) == value


@pytest.mark.parametrize(
    ("transform", "data_type", "text"),
    [
        ("year", MOMENT, "2013-01"),
        ("month", MOMENT, "2013-00"),
        ("month", MOMENT, "2013-13"),
        ("hour", MOMENT, "2013-01-01-24"),
        ("bucket[4]", "INT", "4"),
        ("bucket[4]", "INT", "-1"),
        ("bucket[4]", "INT", "x"),
        ("truncate[10]", "INT", "11"),
        ("truncate[2]", "STRING", "abc"),
    ],
)
def test_what_no_transform_gives_is_refused(transform: str, data_type: str, text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(text)):
        parse_transformed_value(text, transform_of(transform), parse_type(data_type))


@pytest.mark.parametrize("text", ["inf", "-inf", "nan", "1.5", "-0.0"])
def test_a_floating_value_means_itself_in_every_form(text: str) -> None:
    source = parse_type("DOUBLE")
    value = value_of(text, source)
    assert float(str(value)) == float(text) or text == "nan"
    assert normalize_partition_value(value, transform_of("identity"), source) == value
    assert str(value).startswith("-") == text.startswith("-")
