from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.model import (
    can_alter,
    can_promote,
    default_value_fits,
    executable_cast,
    explicit_cast,
    implicit_cast,
    parse_type,
    type_from_json,
)
from ledger.model import types as t

CASES = json.loads(
    (Path(__file__).parent.parent / "data" / "paimon" / "types.json").read_text("utf-8")
)["cast"]
NUMBERS = st.sampled_from([t.TinyIntType(), t.SmallIntType(), t.IntType(), t.BigIntType()])


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['from']}-{case['to']}"[:80])
def test_casts_are_allowed_as_in_paimon(case: dict[str, Any]) -> None:
    source, target = type_from_json(case["from"]), type_from_json(case["to"])
    assert {
        "implicit": implicit_cast(source, target),
        "explicit": explicit_cast(source, target),
        "executable": executable_cast(source, target),
        "alterAllowedByDefault": can_alter(source, target, explicit_allowed=True),
        "alterAllowedWhenExplicitCastingDisabled": can_alter(
            source, target, explicit_allowed=False
        ),
    } == {key: value for key, value in case.items() if key not in ("from", "to")}


@pytest.mark.parametrize("iceberg_only", [t.UuidType(), t.UnknownType()])
def test_paimon_casts_nothing_that_only_iceberg_has(iceberg_only: t.DataType) -> None:
    assert not can_alter(iceberg_only, t.STRING, explicit_allowed=True)
    assert not can_alter(t.STRING, iceberg_only, explicit_allowed=True)


@pytest.mark.parametrize(
    ("type_text", "fitting", "refused"),
    [
        (
            "TINYINT",
            ["127", "-128", "'5'", "+7", "1.9", "1."],
            ["128", "-129", "", "+", " 1", "1e1"],
        ),
        ("SMALLINT", ["32767"], ["32768", "x"]),
        ("INT", ["-2147483648", "0" * 50 + "1"], ["2147483648", "9" * 5000, "٣"]),
        ("BIGINT", ["9223372036854775807"], ["9223372036854775808"]),
        ("FLOAT", ["1", "-.5", "1e300", "NaN", "-Infinity", "1.5f"], ["nan", "1_0", "x", ""]),
        ("DOUBLE", [" 2.5 ", "3."], [".", "inf"]),
        ("BOOLEAN", ["true", "F", "yes", "0"], ["2", "on", ""]),
        ("DECIMAL(5, 2)", ["999.99", "-1", "1e2", "0e9999", "0.001", "1000"], ["a", "", "--1"]),
        ("DECIMAL(2, 2)", ["0.99", "0", "1"], ["x"]),
        (
            "DATE",
            ["2024-02-30", "'2024-2-9'", "-19", "2024-05", "2024-01-01 x"],
            ["2023-02-32", "2024-13-01", "today", ""],
        ),
        ("TIME(3)", ["23:59:59.999", "7:05", "1000"], ["24:00:00", "10:60", "7"[:0]]),
        (
            "TIMESTAMP(3)",
            ["2024-01-01 1:2:3.123456789", "2024-01-01", "1700000000000", "-5", "2024-01-01T10:00"],
            ["2024-01-01 25:00:00", "2023-02-32 00:00:00", "2024-01-01 ", "2024-01-01 10:00"],
        ),
        ("TIMESTAMP(4)", ["2024-01-01 00:00:00."], ["1700000000000"]),
        ("TIMESTAMP_LTZ(3)", ["2024-01-01 00:00:00"], ["1700000000000", "now"]),
        ("CHAR(3)", ["abc", "'abc'", "", "abcd"], ["'"]),
        ("VARCHAR(3)", ["äöüß"], ["'"]),
        ("STRING", ["anything at all", "''"], ["'"]),
        ("BINARY(2)", ["ab", "äb"], ["'"]),
        ("BYTES", ["ab"], []),
        (
            "INT ARRAY",
            ["[1, 2]", "[]", "array(1,2)", "[null]"],
            ["1, 2", "[1, x]", "[1", "[1, , 2]"],
        ),
        ("INT NOT NULL ARRAY", ["[1]"], ["[null]"]),
        ("STRING ARRAY", ['["a,b", c]'], ["{a}"]),
        ("VARIANT", [], ["1", "null"]),
        ("BLOB", [], ["ab"]),
        ("INT MULTISET", [], ["{}", "[1]"]),
        ("VECTOR<FLOAT, 2>", [], ["[1, 2]"]),
        ("GEOMETRY", [], ["POINT(1 1)"]),
        ("UUID", [], ["00000000-0000-0000-0000-000000000000"]),
        ("VARIANT ARRAY", [], ["[]", "[1]"]),
    ],
)
def test_a_default_must_be_readable_as_its_columns_type(
    type_text: str, fitting: list[str], refused: list[str]
) -> None:
    data_type = parse_type(type_text)
    texts = [*fitting, *refused]
    assert [text for text in texts if default_value_fits(text, data_type)] == fitting


def test_maps_and_rows_can_have_defaults() -> None:
    a_map = t.MapType(t.STRING, t.IntType())
    fitting = [
        '{"a" -> 1, null -> null}',
        "{a -> 1, b -> null}",
        "MAP(a, 1)",
        "map()",
        "{}",
        "null",
    ]
    refused = ['{"a": 1}', "{a -> x}", "{a}", "{a=1}", '["a"]', "{a -> 1, b}", "MAP(a)", "{a -> }"]
    assert [each for each in [*fitting, *refused] if default_value_fits(each, a_map)] == fitting

    numbered = t.MapType(t.IntType(), t.IntType())
    assert default_value_fits("{1 -> 2, null -> 3}", numbered)
    assert not default_value_fits("{a -> 2}", numbered)

    nested = t.ArrayType(t.ArrayType(t.IntType()))
    assert default_value_fits("[[1, 2], [3]]", nested)
    assert not default_value_fits("[[1, 2], 3]", nested)

    fields = (t.DataField(0, "x", t.IntType()), t.DataField(1, "y", parse_type("INT ARRAY")))
    fitting = ["{1, [2, 3]}", "struct(1, null)", "{}"]
    refused = ["{1}", "{1, 2}", "{1, [2], 3}", "1, [2]"]
    a_row = t.RowType(fields)
    assert [each for each in [*fitting, *refused] if default_value_fits(each, a_row)] == fitting


@given(st.text(), st.sampled_from(CASES).map(lambda case: type_from_json(case["to"])))
def test_any_text_is_judged_without_a_crash(text: str, data_type: t.DataType) -> None:
    assert default_value_fits(text, data_type) in (True, False)


@given(st.integers(), NUMBERS)
def test_a_number_fits_exactly_the_types_that_hold_it(number: int, data_type: t.DataType) -> None:
    bits = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}[data_type.root]
    held = -(2 ** (bits - 1)) <= number < 2 ** (bits - 1)
    assert default_value_fits(str(number), data_type) is held


PROMOTIONS = [
    # from, to, from which format version (None: never)
    ("INT", "BIGINT", 1),
    ("INT", "INT NOT NULL", 1),
    ("BIGINT", "INT", None),
    ("TINYINT", "INT", 1),
    ("INT", "TINYINT", None),
    ("FLOAT", "DOUBLE", 1),
    ("DOUBLE", "FLOAT", None),
    ("INT", "DOUBLE", None),
    ("DECIMAL(9, 2)", "DECIMAL(10, 2)", 1),
    ("DECIMAL(9, 2)", "DECIMAL(8, 2)", None),
    ("DECIMAL(9, 2)", "DECIMAL(12, 3)", None),
    ("VARCHAR(4)", "VARCHAR(10)", 1),
    ("VARCHAR(10)", "VARCHAR(4)", None),
    ("CHAR(4)", "STRING", 1),
    ("STRING", "CHAR(4)", None),
    ("CHAR(3)", "CHAR(4)", None),
    ("BINARY(4)", "BYTES", 1),
    ("BYTES", "VARBINARY(4)", None),
    ("STRING", "BYTES", None),
    ("TIMESTAMP(3)", "TIMESTAMP(6)", 1),
    ("TIMESTAMP(6)", "TIMESTAMP(3)", None),
    ("TIMESTAMP(6)", "TIMESTAMP(9)", None),
    ("TIMESTAMP(7)", "TIMESTAMP(9)", 1),
    ("TIMESTAMP(6)", "TIMESTAMP_LTZ(6)", None),
    ("TIME(0)", "TIME(3)", 1),
    ("TIME(3)", "TIME(0)", None),
    ("DATE", "TIMESTAMP(6)", 3),
    ("DATE", "TIMESTAMP(9)", 3),
    ("DATE", "TIMESTAMP_LTZ(6)", None),
    ("UNKNOWN", "STRING", 3),
    ("STRING", "UNKNOWN", None),
    ("INT ARRAY", "BIGINT ARRAY", 1),
    ("INT NOT NULL ARRAY", "BIGINT ARRAY", 1),
    ("INT ARRAY", "BIGINT NOT NULL ARRAY", None),
    ("INT MULTISET", "BIGINT MULTISET", None),
    ("INT", "STRING", None),
]


@pytest.mark.parametrize(("source", "target", "since"), PROMOTIONS)
def test_iceberg_promotes_only_what_alters_no_value(
    source: str, target: str, since: int | None
) -> None:
    allowed = [
        version
        for version in (1, 2, 3)
        if can_promote(parse_type(source), parse_type(target), format_version=version)
    ]
    assert allowed == ([] if since is None else list(range(since, 4)))


def test_iceberg_promotes_a_maps_value_and_never_its_key() -> None:
    narrow = t.MapType(t.IntType(), t.IntType())
    assert can_promote(narrow, t.MapType(t.IntType(), t.BigIntType()), format_version=2)
    assert not can_promote(narrow, t.MapType(t.BigIntType(), t.IntType()), format_version=2)


@given(st.sampled_from(CASES).map(lambda case: type_from_json(case["from"])))
def test_every_type_promotes_to_itself(data_type: t.DataType) -> None:
    assert can_promote(data_type, data_type, format_version=1)
