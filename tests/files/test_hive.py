from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from ledger import InvalidChangeError, Schema, UnsupportedError
from ledger.files import value_of
from ledger.files.partition_values import (
    escape_path,
    partition_path,
    partition_values,
    path_keys,
    unescape_path,
)
from ledger.model import PartitionField, PartitionSpec, decode_value, parse_type, transform_of
from ledger.model import partition_path as iceberg_path
from ledger.model import types as t

CASES = json.loads((Path(__file__).parents[1] / "data/paimon/partition_paths.json").read_text())


def spec_of(*names: str) -> PartitionSpec:
    fields = (
        PartitionField(name, "identity", nth, field_id=1000 + nth) for nth, name in enumerate(names)
    )
    return PartitionSpec(0, tuple(fields))


def expected_value(text: str | None, data_type: t.DataType) -> object:
    if text is None or not text.strip():
        return None
    if isinstance(data_type, t.BooleanType):
        return text == "true"
    if data_type.root in ("TINYINT", "SMALLINT", "INT", "BIGINT"):
        return int(text)
    return text.replace(" ", "T") if data_type.root == "TIMESTAMP" else text


@pytest.mark.parametrize("form", ["partitionPathLegacy", "partitionPathNonLegacy"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case["partitionPathNonLegacy"])
def test_paimons_own_paths_are_read(case: dict[str, list[str]], form: str) -> None:
    types = {nth: parse_type(text) for nth, text in enumerate(case["types"])}
    spec = spec_of(*(f"k{nth}" for nth in types))

    values = partition_values(f"{case[form]}bucket-0/x.parquet", spec, types)

    assert list(values) == [
        expected_value(text, types[nth]) for nth, text in enumerate(case["values"])
    ]


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, max_size=3))
def test_a_path_of_texts_reads_back_and_blank_ones_are_null(values: list[str]) -> None:
    spec = spec_of(*(f"k={nth}/%" for nth in range(len(values))))
    types = dict.fromkeys(range(len(values)), t.STRING)

    read = partition_values(f"{partition_path(values, spec)}x.parquet", spec, types)

    assert read == tuple(value if value.strip() else None for value in values)


@given(st.none() | st.booleans())
def test_booleans_read_back(value: bool | None) -> None:  # noqa: FBT001 - the case
    spec = spec_of("k")

    path = partition_path([value], spec) + "x"

    assert partition_values(path, spec, {0: t.BooleanType()}) == (value,)


@given(st.text())
def test_an_escape_is_undone(text: str) -> None:
    assert unescape_path(escape_path(text)) == text


def test_a_percent_sign_that_begins_no_escape_stands_for_itself() -> None:
    assert unescape_path("100%zz%4") == "100%zz%4"


@pytest.mark.parametrize(
    ("text", "type_text", "value"),
    [
        ("01", "INT", 1),
        ("2013", "DATE", "1975-07-07"),
        ("TRUE", "BOOLEAN", True),
        ("-0", "DECIMAL(4, 2)", "0.00"),
        ("-0.10", "DECIMAL(4, 1)", "-0.1"),
        (".5", "DECIMAL(4, 1)", "0.5"),
        ("0" * 50 + "7", "DECIMAL(38, 0)", "7"),
        ("1234567890123456789012345678901234.5678", "DECIMAL(38, 4)", None),
        ("1.50", "DOUBLE", "1.5"),
        ("NaN", "FLOAT", "NaN"),
        ("2024-01-01", "TIMESTAMP(3)", "2024-01-01T00:00:00"),
        ("2024-01-01T01:02", "TIMESTAMP(3)", "2024-01-01T01:02:00"),
        ("2024-01-01 01:02:03.450", "TIMESTAMP_LTZ(3)", "2024-01-01T01:02:03.45"),
        ("A" * 32, "UUID", "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"),
    ],
)
def test_values_have_one_text(text: str, type_text: str, value: object) -> None:
    assert value_of(text, parse_type(type_text)) == (text if value is None else value)


@pytest.mark.parametrize(
    ("text", "type_text"),
    [
        ("x", "INT"),
        ("", "INT"),
        ("2147483648", "INT"),
        ("1_0", "INT"),
        ("\N{ARABIC-INDIC DIGIT ONE}", "INT"),
        ("2013-13-01", "DATE"),
        ("20130101000000", "DATE"),
        ("yes", "BOOLEAN"),
        ("1.25", "DECIMAL(4, 1)"),
        ("1000", "DECIMAL(4, 1)"),
        (".", "DECIMAL(4, 1)"),
        ("25:00:00", "TIME(0)"),
        ("2024-01-01X", "TIMESTAMP(3)"),
    ],
)
def test_what_is_no_value_is_refused_by_path_and_key(text: str, type_text: str) -> None:
    path = f"day={text}/x.parquet"

    with pytest.raises(InvalidChangeError, match="partition key 'day'") as caught:
        partition_values(path, spec_of("day"), {0: parse_type(type_text)})

    assert path in str(caught.value)


def test_of_a_missing_key_a_path_says_nothing() -> None:
    assert partition_values("hour=1/x", spec_of("day"), {0: t.IntType()}) == (UNSET,)


def test_a_key_named_twice_is_refused() -> None:
    with pytest.raises(InvalidChangeError, match="names partition key 'day' twice"):
        path_keys("day=1/day=2/x")


def test_what_a_path_cannot_say_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="BYTES cannot be read from a path"):
        partition_values("day=1/x", spec_of("day"), {0: t.BYTES})


@pytest.mark.parametrize(
    ("transform", "type_text", "value"),
    [
        ("identity", "DATE", "2017-12-01"),
        ("identity", "TIMESTAMP_LTZ(6)", "2017-12-01T10:12:55.5"),
        ("bucket[16]", "BIGINT", 9),
        ("truncate[10]", "INT", -20),
        ("truncate[3]", "STRING", "ice"),
        ("truncate[10]", "DECIMAL(9, 2)", "10.60"),
        ("year", "DATE", 47),
        ("year", "TIMESTAMP(6)", -1),
        ("month", "DATE", 575),
        ("month", "TIMESTAMP(3)", -1),
        ("day", "TIMESTAMP_LTZ(6)", "1969-12-31"),
        ("hour", "TIMESTAMP(6)", 420034),
        ("hour", "TIMESTAMP(6)", -1),
        ("void", "INT", None),
    ],
)
def test_icebergs_own_paths_are_read(transform: str, type_text: str, value: Any) -> None:
    spec = PartitionSpec(0, (PartitionField("p", transform, 0, field_id=1000),))
    column = t.DataField(0, "c", parse_type(type_text))
    result = transform_of(transform).result_type(column.type)
    path = iceberg_path(spec, [decode_value(value, result)], Schema([column]))

    assert partition_values(f"{path}/x.parquet", spec, {0: column.type}) == (value,)


@pytest.mark.parametrize(
    ("text", "transform", "type_text"),
    [
        ("16", "bucket[16]", "INT"),
        ("-1", "bucket[16]", "INT"),
        ("15", "truncate[10]", "INT"),
        ("iceb", "truncate[3]", "STRING"),
        ("2017-13", "month", "DATE"),
        ("2017-12-01", "month", "DATE"),
        ("2017-1", "day", "DATE"),
        ("2017-12-01-24", "hour", "TIMESTAMP(6)"),
        ("2017-02-30-01", "hour", "TIMESTAMP(6)"),
        ("x", "year", "DATE"),
    ],
)
def test_what_is_no_result_of_a_transform_is_refused(
    text: str, transform: str, type_text: str
) -> None:
    spec = PartitionSpec(0, (PartitionField("p", transform, 0, field_id=1000),))

    with pytest.raises(InvalidChangeError, match=f"'{text}' is no {transform[:4]}"):
        partition_values(f"p={text}/x", spec, {0: parse_type(type_text)})


def test_icebergs_null_is_null_where_it_is_no_text() -> None:
    truncated = PartitionSpec(0, (PartitionField("day", "truncate[4]", 0, field_id=1000),))

    assert partition_values("day=null/x", spec_of("day"), {0: t.IntType()}) == (None,)
    assert partition_values("day=null/x", truncated, {0: t.IntType()}) == (None,)
    assert partition_values("day=null/x", spec_of("day"), {0: t.STRING}) == ("null",)
    assert partition_values("day=null/x", truncated, {0: t.STRING}) == ("null",)


@pytest.mark.parametrize("name", ["__DEFAULT_PARTITION__", "__HIVE_DEFAULT_PARTITION__"])
def test_the_names_of_null_are_null(name: str) -> None:
    assert partition_values(f"day={name}/x", spec_of("day"), {0: t.DateType()}) == (None,)


def test_a_table_may_name_null_otherwise() -> None:
    spec = spec_of("day")

    path = partition_path([None], spec, default_name="none")

    assert path == "day=none/"
    assert partition_values(f"{path}x", spec, {0: t.STRING}, default_name="none") == (None,)
