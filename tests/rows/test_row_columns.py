from __future__ import annotations

import datetime as dt
import re
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest

from ledger import DataField, InvalidInputError, Schema
from ledger.model import parse_type
from ledger.model.types import ArrayType, MapType, RowType
from ledger.rows.row_columns import ColumnMatch


def converted(columns: Any, found: pa.RecordBatch) -> list[dict[str, Any]]:
    match = ColumnMatch.of(found.schema, Schema.of(columns), "shop.orders")
    rows: list[dict[str, Any]] = match.convert(found).to_pylist()
    return rows


def rejected(columns: Any, found: pa.RecordBatch, message: str) -> None:
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        converted(columns, found)


def of(name: str, values: list[Any], kind: Any) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array(values, kind)], [name])


def test_nested_fields_are_found_by_name_in_any_order_and_case() -> None:
    kind = pa.struct([("B", pa.string()), ("a", pa.struct([("Y", pa.int64()), ("x", pa.int32())]))])
    found = of("R", [{"B": "q", "a": {"Y": 2, "x": 1}}, None, {"B": None, "a": None}], kind)
    columns = {"r": "ROW<a ROW<x INT, y BIGINT>, b STRING, c DATE>"}
    assert converted(columns, found) == [
        {"r": {"a": {"x": 1, "y": 2}, "b": "q", "c": None}},
        {"r": None},
        {"r": {"a": None, "b": None, "c": None}},
    ]


def test_the_fields_of_elements_keys_and_values_are_found_too() -> None:
    entry = pa.struct([("N", pa.int64())])
    found = pa.RecordBatch.from_arrays(
        [
            pa.array([[{"N": 1}, None], None, []], pa.list_(entry)),
            pa.array([[("k", {"N": 2})], None, []], pa.map_(pa.string(), entry)),
        ],
        ["l", "m"],
    )
    columns = {"l": "ARRAY<ROW<n INT>>", "m": "MAP<STRING, ROW<n INT, o INT>>"}
    for rows in (found, pa.concat_batches([found, found]).slice(1, 4)):
        expected = [
            {"l": [{"n": 1}, None], "m": [("k", {"n": 2, "o": None})]},
            {"l": None, "m": None},
            {"l": [], "m": []},
        ]
        start = 0 if rows is found else 1
        assert converted(columns, rows) == (expected * 2)[start : start + len(rows)]


def test_values_below_a_null_struct_do_not_count() -> None:
    inner = pa.StructArray.from_arrays([pa.array([None, 1], pa.int64())], ["c"])
    outer = pa.StructArray.from_arrays([inner], ["b"], mask=pa.array([True, False]))
    found = pa.RecordBatch.from_arrays([outer], ["a"])
    assert converted({"a": "ROW<b ROW<c BIGINT NOT NULL>>"}, found) == [
        {"a": None},
        {"a": {"b": {"c": 1}}},
    ]
    hidden = pa.StructArray.from_arrays(
        [pa.array([2**40, 1], pa.int64())], ["b"], mask=pa.array([True, False])
    )
    rows = pa.RecordBatch.from_arrays([hidden], ["a"])
    assert converted({"a": "ROW<b INT>"}, rows) == [{"a": None}, {"a": {"b": 1}}]


STRUCT = pa.struct([("a", pa.int32())])


@pytest.mark.parametrize(
    ("declared", "found", "message"),
    [
        (
            "ROW<b INT>",
            of("v", [], STRUCT),
            "shop.orders has no column 'v.a'; there are: 'b'. Add it to",
        ),
        (
            "ROW<a INT, b INT NOT NULL>",
            of("v", [], STRUCT),
            "column v.b of shop.orders",
        ),
        ("ROW<a INT NOT NULL>", of("v", [{"a": None}], STRUCT), "column v.a of shop.orders is NOT"),
        ("INT NOT NULL", of("v", [None], pa.int32()), "a row has NULL there"),
        ("ARRAY<INT NOT NULL>", of("v", [[None]], pa.list_(pa.int32())), "column v.element"),
        ("INT", of("w", [], pa.int32()), "shop.orders has no column 'w'"),
        (
            "ROW<a INT>",
            of("v", [], pa.struct([("A", pa.int32()), ("á", pa.int32())])),
            "shop.orders has no column 'v.á'; there are: 'a'. Add it to",
        ),
        ("INT", of("v", [], STRUCT), "which cannot be converted without loss"),
        ("ROW<a INT>", of("v", [], pa.int32()), "which cannot be converted without loss"),
        ("DECIMAL(10, 2)", of("v", [1.5], pa.float64()), "cannot be converted without loss"),
        ("FLOAT", of("v", [1.5], pa.float64()), "cannot be converted without loss"),
        ("INT", of("v", ["1"], pa.string()), "cannot be converted without loss"),
        ("STRING", of("v", [1], pa.int32()), "cannot be converted without loss"),
        ("BOOLEAN", of("v", [1], pa.int32()), "cannot be converted without loss"),
        ("DATE", of("v", [], pa.timestamp("us")), "cannot be converted without loss"),
        ("TINYINT", of("v", [128], pa.int32()), "not in range"),
        ("DECIMAL(5, 2)", of("v", [12345], pa.int32()), "column v of shop.orders is DECIMAL(5, 2)"),
        ("TIMESTAMP(6)", of("v", [1], pa.timestamp("us", "Not/AZone")), "column v of shop.orders"),
        ("DECIMAL(3, 1)", of("v", [Decimal("1.25")], pa.decimal128(4, 2)), "data loss"),
        ("TIMESTAMP(3)", of("v", [1], pa.timestamp("us")), "would lose data"),
        ("TIMESTAMP_LTZ(6)", of("v", [1], pa.timestamp("us")), "whose zone is unknown here"),
        ("TIMESTAMP(6)", of("v", [1], pa.timestamp("us", "UTC")), "whose zone it would lose"),
        (
            "ROW<a ARRAY<TIMESTAMP(6)>>",
            of("v", [], pa.struct([("a", pa.list_(pa.timestamp("ns", "Europe/Paris")))])),
            "column v.a.element of shop.orders is TIMESTAMP(6), and the rows have timestamp[",
        ),
    ],
    ids=str,
)
def test_what_would_lose_or_change_something_is_rejected(
    declared: str, found: pa.RecordBatch, message: str
) -> None:
    rejected({"v": declared}, found, message)


def test_two_columns_that_mean_one_are_ambiguous() -> None:
    found = pa.RecordBatch.from_pydict({"ID": [1], "Id": [2]})
    rejected({"id": "BIGINT"}, found, "ID and Id of the rows both mean column id")
    exact = pa.RecordBatch.from_pydict({"ID": [1], "id": [2]})
    assert converted({"id": "BIGINT", "ID": "BIGINT"}, exact) == [{"id": 2, "ID": 1}]


@pytest.mark.parametrize(
    ("declared", "value", "kind", "expected"),
    [
        ("BIGINT", 7, pa.int8(), 7),
        ("SMALLINT", 7, pa.int64(), 7),
        ("DOUBLE", 1.5, pa.float32(), 1.5),
        ("DECIMAL(10, 3)", Decimal("1.5"), pa.decimal128(4, 1), Decimal("1.500")),
        ("DECIMAL(20, 0)", 7, pa.int64(), Decimal(7)),
        ("DECIMAL(5, 2)", 123, pa.int32(), Decimal("123.00")),
        ("DECIMAL(38, 30)", 7, pa.int64(), Decimal(7)),
        ("STRING", "x", pa.large_string(), "x"),
        ("STRING", "x", pa.dictionary(pa.int32(), pa.string()), "x"),
        ("BIGINT", 5, pa.dictionary(pa.int32(), pa.int64()), 5),
        ("TIMESTAMP(3)", dt.datetime(2024, 1, 1), pa.timestamp("us"), dt.datetime(2024, 1, 1)),  # noqa: DTZ001
        ("INT", None, pa.null(), None),
    ],
    ids=str,
)
def test_values_that_keep_their_meaning_are_converted(
    declared: str, value: Any, kind: Any, expected: Any
) -> None:
    assert converted({"v": declared}, of("v", [value, None], kind)) == [
        {"v": expected},
        {"v": None},
    ]


@pytest.mark.parametrize("zone", ["America/New_York", "Asia/Kolkata", "UTC"])
def test_instants_are_localized_to_their_zone_for_engines_that_do_so(zone: str) -> None:
    local = dt.datetime(2024, 7, 1, 10)  # noqa: DTZ001 - a local time
    found = of("v", [local.replace(tzinfo=ZoneInfo(zone))], pa.timestamp("us", zone))
    wanted = Schema.of({"v": "TIMESTAMP(6)"})
    match = ColumnMatch.of(found.schema, wanted, "shop.orders", "localized")
    assert match.convert(found).to_pylist() == [{"v": local}]
    (row,) = converted({"v": "TIMESTAMP_LTZ(6)"}, found)
    assert row["v"] == local.replace(tzinfo=ZoneInfo(zone))


def test_a_missing_column_gets_its_default() -> None:
    fields = [
        DataField(0, "id", parse_type("INT")),
        DataField(1, "n", parse_type("INT NOT NULL"), default_value="7"),
    ]
    found = of("id", [1, 2], pa.int32())
    rows = ColumnMatch.of(found.schema, Schema(fields), "shop.orders").convert(found)
    assert rows["n"].to_pylist() == [7, 7]


TOO_LONG: dict[str, tuple[Any, Any]] = {
    "VARCHAR(3)": ("abc", "abcd"),
    "CHAR(3)": ("äöü", "äöüß"),
    "VARBINARY(2)": (b"ab", b"abc"),
    "BINARY(2)": (b"ab", b"abc"),
}


@pytest.mark.parametrize("depth", ["column", "member", "element", "value"])
@pytest.mark.parametrize("declared", TOO_LONG)
def test_nothing_longer_than_its_type_is_written(declared: str, depth: str) -> None:
    fits, longer = TOO_LONG[declared]
    inner = parse_type(declared)
    kinds: dict[str, Any] = {
        "column": inner,
        "member": RowType([DataField(1, "m", inner)]),
        "element": ArrayType(inner),
        "value": MapType(parse_type("INT NOT NULL"), inner),
    }
    schema = Schema.of({"v": kinds[depth]})

    def rows_of(value: Any) -> pa.RecordBatch:
        held = {"column": value, "member": {"m": value}, "element": [value]}
        given = [(1, value)] if depth == "value" else held[depth]
        return of("v", [given, None], schema.to_arrow().field("v").type)

    good, bad = rows_of(fits), rows_of(longer)
    assert ColumnMatch.of(good.schema, schema, "t").convert(good).num_rows == 2
    with pytest.raises(InvalidInputError, match=r"column v.* has the length [34]"):
        ColumnMatch.of(bad.schema, schema, "t").convert(bad)
