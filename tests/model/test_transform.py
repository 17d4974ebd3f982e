from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ledger import InvalidInputError, Schema, UnsupportedError
from ledger.files import value_of as path_value
from ledger.model import (
    PartitionField,
    PartitionSpec,
    decode_value,
    encode_value,
    format_type,
    parse_type,
    partition_path,
    transform_of,
    value_from_json,
)
from ledger.model import types as t
from ledger.model.iceberg_types import value_to_json
from ledger.model.single_values import calendar_day, day_number
from ledger.model.transforms import bucket_hash, partition_type, partition_value_text
from tests.planning.iceberg_cases import (
    NAMES,
    as_case,
    cases,
    schema_of,
    spec_of,
    type_of,
    value_of,
)
from tests.planning.values import comparable_types, typed_values, values_of

pyiceberg_types = pytest.importorskip("pyiceberg.types")
pyiceberg_transforms = pytest.importorskip("pyiceberg.transforms")


@pytest.mark.parametrize("case", cases("transform"))
def test_a_transform_gives_what_iceberg_gives(case: dict[str, Any]) -> None:
    source, expected = type_of(case["given"]["type"]), case["expect"]
    if "error" in expected:
        with pytest.raises(InvalidInputError, match="hour|bucket"):
            transform_of(case["given"]["transform"]).apply(
                value_of(case["given"]["value"], source), source
            )
        return
    transform = transform_of(case["given"]["transform"])
    result = transform.apply(value_of(case["given"]["value"], source), source)
    assert as_case(result, transform.result_type(source)) == expected["result"]
    if "human" in expected:
        assert partition_value_text(result, transform, source) == expected["human"]
    if "result-type" in expected:
        assert NAMES[transform.result_type(source)] == expected["result-type"]


@pytest.mark.parametrize("case", cases("hash"))
def test_a_hash_is_icebergs(case: dict[str, Any]) -> None:
    source = type_of(case["given"]["type"])
    value = value_of(case["given"]["value"], source)
    assert value is not None
    assert bucket_hash(value, source) == case["expect"]["hash"]


@pytest.mark.parametrize("case", cases("partition_type"))
def test_a_partition_type_is_the_union_over_specs(case: dict[str, Any]) -> None:
    specs = [spec_of(each) for each in case["given"]["partition-specs"]]
    found = partition_type(specs, schema_of(case["given"]["schema"]))
    assert [
        {"field-id": each.id, "name": each.name, "type": NAMES[each.type]} for each in found
    ] == case["expect"]["fields"]


@pytest.mark.parametrize("case", cases("partition_path"))
def test_a_partition_path_is_icebergs(case: dict[str, Any]) -> None:
    path = partition_path(
        spec_of(case["given"]["partition-spec"]),
        case["given"]["values"],
        schema_of(case["given"]["schema"]),
    )
    assert path == case["expect"]["path"]


@pytest.mark.parametrize("case", cases("single_value"))
def test_a_single_value_is_read_and_written_as_icebergs_json(case: dict[str, Any]) -> None:
    data_type = type_of(case["given"]["type"])
    if "error" in case["expect"]:
        with pytest.raises(InvalidInputError):
            value_from_json(case["given"]["json"], data_type)
        return
    value = value_from_json(case["given"]["json"], data_type)
    assert value_to_json(value, data_type) == case["expect"]["json"]


@pytest.mark.parametrize(
    ("json", "data_type"),
    [
        (1, t.DoubleType()),
        (True, t.IntType()),
        (2**31, t.IntType()),
        ("1.5", t.DecimalType(9, 2)),
        ("2017-11-16T22:31:08+01:00", t.LocalZonedTimestampType(6)),
        ("2017-11-16T22:31:08+00:00", t.TimestampType(6)),
        ("x", t.DateType()),
        ("2017-02-29", t.DateType()),
        (5, t.STRING),
        ({"a": 1}, t.IntType()),
    ],
    ids=str,
)
def test_json_of_another_type_is_refused(json: Any, data_type: t.DataType) -> None:
    with pytest.raises(InvalidInputError, match="is no value of"):
        value_from_json(json, data_type)


def test_nested_single_values_are_keyed_by_field_id() -> None:
    row = t.RowType((t.DataField(7, "a", t.ArrayType(t.DateType())),))
    assert value_to_json({7: [17501, None]}, row) == {"7": ["2017-12-01", None]}
    assert value_from_json({"7": ["2017-12-01", None]}, row) == {7: [17501, None]}
    of = t.MapType(t.STRING, row)
    assert value_from_json(value_to_json([("k", {7: []})], of), of) == [("k", {7: []})]


@settings(deadline=None)
@given(typed_values())
def test_single_values_survive_json(typed: tuple[t.DataType, Any]) -> None:
    data_type, value = typed
    assert value_from_json(value_to_json(value, data_type), data_type) == value


@settings(deadline=None)
@given(typed_values())
def test_values_survive_the_log(typed: tuple[t.DataType, Any]) -> None:
    data_type, value = typed
    assert decode_value(encode_value(value, data_type), data_type) == value


@pytest.mark.parametrize(
    ("text", "type_text"),
    [
        ("2013-01-01", "DATE"),
        ("2.5", "DECIMAL(5, 2)"),
        ("-0.01", "DECIMAL(5, 2)"),
        ("2013-01-01 10:30", "TIMESTAMP(6)"),
        ("2013-01-01T10:30:00.120", "TIMESTAMP(9)"),
        ("2013-01-01 10:30:00.000000001", "TIMESTAMP_LTZ(9)"),
        ("10:30", "TIME(3)"),
        ("F79C3E09-677C-4BBD-A479-3F349CB785E7", "UUID"),
        ("1e3", "DOUBLE"),
        ("nan", "DOUBLE"),
        ("-inf", "DOUBLE"),
        ("true", "BOOLEAN"),
        ("-5", "BIGINT"),
        ("a b", "STRING"),
    ],
)
def test_a_value_from_a_path_is_written_back_as_it_was_registered(
    text: str, type_text: str
) -> None:
    data_type = parse_type(type_text)
    registered = path_value(text, data_type)
    assert encode_value(decode_value(registered, data_type), data_type) == registered


def test_a_float_is_read_in_its_own_precision() -> None:
    assert decode_value("0.1", t.FloatType()) == 0.10000000149011612


def test_a_value_of_another_type_is_refused_by_name() -> None:
    with pytest.raises(InvalidInputError, match="'x' is no DATE"):
        decode_value("x", t.DateType())
    with pytest.raises(InvalidInputError, match="True is no INT"):
        decode_value(True, t.IntType())  # noqa: FBT003
    with pytest.raises(UnsupportedError, match="VARIANT has no partition values"):
        encode_value("x", t.VariantType())


@pytest.mark.parametrize("text", ["bucket[0]", "truncate[-1]", "bucket[99999999999]"])
def test_a_count_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(InvalidInputError, match="out of range"):
        transform_of(text)


def test_the_names_of_transforms_know_no_case() -> None:
    assert transform_of("BUCKET[4]") == transform_of("bucket[4]")
    assert transform_of("Day").text == "day"


@pytest.mark.parametrize(
    ("transform", "legal", "illegal"),
    [
        ("identity", "DOUBLE", "VARIANT"),
        ("bucket[4]", "UUID", "DOUBLE"),
        ("bucket[4]", "TIME(6)", "BOOLEAN"),
        ("truncate[4]", "BYTES", "DATE"),
        ("day", "DATE", "TIME(6)"),
        ("hour", "TIMESTAMP_LTZ(9)", "DATE"),
    ],
)
def test_a_transform_accepts_only_its_source_types(
    transform: str, legal: str, illegal: str
) -> None:
    assert transform_of(transform).accepts(parse_type(legal))
    source = parse_type(illegal)
    with pytest.raises(InvalidInputError, match=f"does not accept {format_type(source)[:4]}"):
        transform_of(transform).apply(None, source)


def test_a_void_field_keeps_its_type_and_a_dropped_column_has_none() -> None:
    schema = Schema.of({"a": "INT"})
    specs = [
        PartitionSpec(0, (PartitionField("a", "bucket[2]", 0, field_id=1000),)),
        PartitionSpec(
            1,
            (
                PartitionField("a", "void", 0, field_id=1000),
                PartitionField("gone", "identity", 9, field_id=1001),
            ),
        ),
    ]
    assert [each.type.root for each in partition_type(specs, schema)] == ["INT", "UNKNOWN"]


def test_a_path_has_a_value_a_field() -> None:
    spec = PartitionSpec(0, (PartitionField("a~*/b", "identity", 0, field_id=1000),))
    schema = Schema.of({"a": "STRING"})
    assert partition_path(spec, ["ä~*"], schema) == "a%7E*%2Fb=%C3%A4%7E*"
    with pytest.raises(InvalidInputError, match="has 1 fields, not 0"):
        partition_path(spec, [], schema)


@settings(deadline=None)
@given(st.integers(-4_000_000, 40_000_000))
@example(0)
def test_calendar_days_go_there_and_back(days: int) -> None:
    assert day_number(*calendar_day(days)) == days
    if -719_162 <= days <= 2_932_896:
        day = dt.date.fromordinal(days + 719_163)
        assert calendar_day(days) == (day.year, day.month, day.day)


TRANSFORMS = (
    *("identity", "year", "month", "day", "hour"),
    *("bucket[7]", "bucket[100]", "truncate[3]", "truncate[10]"),
)
PYICEBERG_TYPES: dict[str, Callable[[Any], Any]] = {
    "BOOLEAN": lambda _: pyiceberg_types.BooleanType(),
    "INT": lambda _: pyiceberg_types.IntegerType(),
    "BIGINT": lambda _: pyiceberg_types.LongType(),
    "FLOAT": lambda _: pyiceberg_types.FloatType(),
    "DOUBLE": lambda _: pyiceberg_types.DoubleType(),
    "DECIMAL": lambda each: pyiceberg_types.DecimalType(each.precision, each.scale),
    "DATE": lambda _: pyiceberg_types.DateType(),
    "TIME": lambda _: pyiceberg_types.TimeType(),
    "TIMESTAMP": lambda _: pyiceberg_types.TimestampType(),
    "TIMESTAMP_LTZ": lambda _: pyiceberg_types.TimestamptzType(),
    "VARCHAR": lambda _: pyiceberg_types.StringType(),
    "UUID": lambda _: pyiceberg_types.UUIDType(),
    "VARBINARY": lambda _: pyiceberg_types.BinaryType(),
}


def pyiceberg_value(value: Any, data_type: t.DataType) -> Any:
    match data_type:
        case t.DecimalType(scale=scale):
            return Decimal((int(value < 0), tuple(map(int, str(abs(value)))), -scale))
        case t.UuidType():
            return UUID(bytes=value)
        case _:
            return value


@pytest.mark.parametrize("text", TRANSFORMS)
@settings(deadline=None)
@given(data=st.data())
def test_transforms_agree_with_pyiceberg(text: str, data: st.DataObject) -> None:
    transform = transform_of(text)
    known = comparable_types().filter(
        lambda each: each.root in PYICEBERG_TYPES and getattr(each, "precision", 0) in range(39)
    )
    source = data.draw(known.filter(transform.accepts))
    if isinstance(source, t.TimeType | t.TimestampType | t.LocalZonedTimestampType):
        source = type(source)(6)
    # PyIceberg computes with Python's dates and with decimals of 28 digits.
    value = data.draw(values_of(source))
    if isinstance(source, t.DateType | t.TimestampType | t.LocalZonedTimestampType):
        value = value % (10**15 if not isinstance(source, t.DateType) else 10**6) - 10**5
    theirs = pyiceberg_transforms.parse_transform(text)
    their_type = PYICEBERG_TYPES[source.root](source)
    assert theirs.can_transform(their_type)
    expected = theirs.transform(their_type)(pyiceberg_value(value, source))

    result = transform.apply(value, source)

    result_type = transform.result_type(source)
    assert pyiceberg_value(result, result_type) == expected
    if text != "identity":
        assert partition_value_text(result, transform, source) == theirs.to_human_string(
            their_type, expected
        )
