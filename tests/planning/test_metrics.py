from __future__ import annotations

import math
import struct
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import FileChange, UnsupportedError
from ledger.files import ColumnFacts, lower_bound, upper_bound
from ledger.model import Value, value_from_json
from ledger.model import types as t
from ledger.model.single_values import unit_digits
from ledger.planning import (
    BoundColumn,
    Expression,
    Op,
    Predicate,
    holds_for,
    value_to_bytes,
    without_not,
)
from ledger.planning.bound_value import value_from_bytes
from ledger.planning.expression import evaluate_if_known
from ledger.planning.spec_plan import ColumnMetrics, holds_in_file, metrics_of
from tests.planning.iceberg_cases import cases, type_of
from tests.planning.test_projection import filters
from tests.planning.values import comparable_types, typed_values, values_of
from tests.thorough import examples


@pytest.mark.parametrize("case", cases("single_value"))
def test_single_values_have_icebergs_bytes(case: dict[str, Any]) -> None:
    if "error" in case["expect"]:
        return
    data_type = type_of(case["given"]["type"])
    value = value_from_json(case["given"]["json"], data_type)
    encoded = value_to_bytes(value, data_type)
    assert encoded.hex() == case["expect"]["binary-hex"]
    assert value_from_bytes(encoded, data_type) == value


@settings(deadline=None)
@given(typed_values())
def test_single_values_survive_their_bytes(typed: tuple[t.DataType, Any]) -> None:
    data_type, value = typed
    if isinstance(data_type, t.TimeType) and unit_digits(data_type) == 9:
        # Iceberg's times have microseconds.
        value -= value % 1000
    assert value_from_bytes(value_to_bytes(value, data_type), data_type) == value


def test_the_sign_of_zero_survives() -> None:
    assert value_to_bytes(-0.0, t.DoubleType()) != value_to_bytes(0.0, t.DoubleType())


def test_what_has_no_bytes_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="no single-value bytes"):
        value_to_bytes(2**70, t.BigIntType())


@pytest.mark.parametrize(
    ("encoded", "data_type", "value"),
    [
        (struct.pack("<i", -7), t.BigIntType(), -7),
        (struct.pack("<f", 0.5), t.DoubleType(), 0.5),
        (struct.pack("<i", 2), t.TimestampType(6), 2 * 86_400_000_000),
        (struct.pack("<i", -1), t.TimestampType(9), -86_400_000_000_000),
        (struct.pack("<q", 5), t.TimeType(9), 5_000),
        (b"\xff\xff", t.DecimalType(9, 2), -1),
        (struct.pack("<d", float("nan")), t.DoubleType(), None),
        (b"\xc3", t.STRING, None),
        (b"\1\2\3", t.IntType(), None),
        (struct.pack("<q", 5), t.IntType(), None),
        (b"", t.DecimalType(9, 2), None),
        (b"", t.BooleanType(), None),
        (b"", t.STRING, ""),
    ],
)
def test_bounds_are_read_by_their_length(
    encoded: bytes, data_type: t.DataType, value: Value | None
) -> None:
    assert value_from_bytes(encoded, data_type) == value


def file_of(values: list[Any], data_type: t.DataType, *, whole: bool = True) -> FileChange:
    """Return the file whose column 3 has some values, as its footer would have it."""
    known = [each for each in values if each is not None and not _is_nan(each)]
    # Parquet's statistics leave NaN out, and say nothing where there is nothing else.
    as_found = [each.encode() if isinstance(each, str) else each for each in known]
    found = _as_unit(data_type)
    facts = ColumnFacts(
        len(values),
        values.count(None),
        min(as_found, default=None),
        max(as_found, default=None),
    )
    lower, upper = lower_bound(facts, found, data_type), upper_bound(facts, found, data_type)
    return FileChange(
        path="f",
        record_count=len(values),
        file_size_in_bytes=1,
        value_counts={3: len(values)} if whole else {},
        null_value_counts={3: values.count(None)} if whole else {},
        lower_bounds={} if lower is None else {3: lower},
        upper_bounds={} if upper is None else {3: upper},
    )


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def _as_unit(data_type: t.DataType) -> t.DataType:
    match data_type:
        case t.TimeType() | t.TimestampType() | t.LocalZonedTimestampType():
            return type(data_type)(unit_digits(data_type))
        case _:
            return data_type


@st.composite
def files(draw: st.DrawFn) -> tuple[BoundColumn, Expression, list[Any]]:
    data_type = draw(comparable_types())
    values = values_of(data_type)
    if isinstance(data_type, t.VarCharType | t.VarBinaryType):
        long = st.sampled_from(["a", "b", "\U0010ffff"]).map(lambda each: each * 20)
        shorter = values if isinstance(data_type, t.VarBinaryType) else values | long
        values = shorter
    if isinstance(data_type, t.FloatType | t.DoubleType):
        values = values | st.just(float("nan"))
    column = BoundColumn(3, "c", data_type)
    rows = draw(st.lists(st.none() | values, min_size=1, max_size=5))
    return column, draw(filters(column)), rows


def holds_for_row(expression: Expression, row: Any) -> bool | None:
    return evaluate_if_known(expression, lambda each: holds_for(each, row))


@settings(max_examples=examples(200), deadline=None)
@given(files(), st.booleans())
def test_metrics_lose_no_row_and_promise_none(
    case: tuple[BoundColumn, Expression, list[Any]],
    whole: bool,  # noqa: FBT001
) -> None:
    column, given_filter, rows = case
    expression = without_not(given_filter)
    metrics = metrics_of(file_of(rows, column.type, whole=whole), column)
    found = evaluate_if_known(expression, lambda each: holds_in_file(each, metrics))
    matched = [holds_for_row(expression, each) for each in rows]
    if found is False:
        assert not any(each is not False for each in matched)
    if found is True:
        assert all(each is True for each in matched)


INT = BoundColumn(3, "c", t.IntType())
TEXT = BoundColumn(3, "c", t.STRING)
DOUBLE = BoundColumn(3, "c", t.DoubleType())


@pytest.mark.parametrize(
    ("op", "values", "bounds", "holds"),
    [
        (Op.LESS, (5,), (5, 9), False),
        (Op.LESS, (5,), (4, 9), None),
        (Op.LESS, (5,), (1, 4), True),
        (Op.AT_MOST, (5,), (6, 9), False),
        (Op.AT_MOST, (5,), (1, 5), True),
        (Op.GREATER, (5,), (1, 5), False),
        (Op.GREATER, (5,), (6, 9), True),
        (Op.AT_LEAST, (5,), (1, 4), False),
        (Op.AT_LEAST, (5,), (5, 9), True),
        (Op.EQUAL, (5,), (6, 9), False),
        (Op.EQUAL, (5,), (5, 5), True),
        (Op.EQUAL, (5,), (4, 6), None),
        (Op.NOT_EQUAL, (5,), (5, 5), False),
        (Op.NOT_EQUAL, (5,), (6, 9), True),
        (Op.IN, (1, 9), (2, 8), False),
        (Op.IN, (1, 5), (2, 8), None),
        (Op.NOT_IN, (1, 9), (2, 8), True),
        (Op.IS_NULL, (), (1, 2), False),
        (Op.NOT_NULL, (), (1, 2), True),
        (Op.LESS, (5,), (None, None), None),
        (Op.LESS, (5,), (None, 4), True),
        (Op.EQUAL, (5,), (6, None), False),
    ],
)
def test_bounds_without_nulls_decide(
    op: Op,
    values: tuple[Value, ...],
    bounds: tuple[Any, Any],
    holds: bool | None,  # noqa: FBT001
) -> None:
    assert holds_in_file(Predicate(op, INT, values), ColumnMetrics(4, 4, 0, *bounds)) is holds
    with_nulls = holds_in_file(Predicate(op, INT, values), ColumnMetrics(4, 4, 1, *bounds))
    assert with_nulls is (
        False if holds is False and op not in (Op.NOT_EQUAL, Op.IS_NULL) else None
    )


@pytest.mark.parametrize(
    ("op", "prefix", "bounds", "holds"),
    [
        (Op.STARTS_WITH, "ab", ("b", "c"), False),
        (Op.STARTS_WITH, "ab", ("a", "aa"), False),
        (Op.STARTS_WITH, "ab", ("aba", "abz"), True),
        (Op.STARTS_WITH, "ab", ("aa", "abz"), None),
        (Op.NOT_STARTS_WITH, "ab", ("aba", "abz"), False),
        (Op.NOT_STARTS_WITH, "ab", ("b", "c"), True),
    ],
)
def test_prefixes_are_compared_with_bounds(
    op: Op,
    prefix: str,
    bounds: tuple[str, str],
    holds: bool | None,  # noqa: FBT001
) -> None:
    assert holds_in_file(Predicate(op, TEXT, (prefix,)), ColumnMetrics(4, 4, 0, *bounds)) is holds


def test_a_floating_point_column_may_hold_nan_outside_of_its_bounds() -> None:
    metrics = ColumnMetrics(4, 4, 0, 1.0, 2.0)
    assert holds_in_file(Predicate(Op.LESS, DOUBLE, (5.0,)), metrics) is None
    assert holds_in_file(Predicate(Op.GREATER, DOUBLE, (5.0,)), metrics) is False
    assert holds_in_file(Predicate(Op.IS_NAN, DOUBLE), metrics) is None
    assert holds_in_file(Predicate(Op.IS_NAN, DOUBLE), ColumnMetrics(4, 4, 4)) is False


def test_a_member_whose_row_is_null_is_null_though_nobody_counted_it() -> None:
    metrics = ColumnMetrics(4, 3, 0, 1, 2)
    assert holds_in_file(Predicate(Op.IS_NULL, INT), metrics) is None
    assert holds_in_file(Predicate(Op.LESS, INT, (5,)), metrics) is None


def test_only_nulls_match_no_comparison() -> None:
    metrics = ColumnMetrics(4, None, 4)
    assert holds_in_file(Predicate(Op.LESS, INT, (5,)), metrics) is False
    assert holds_in_file(Predicate(Op.NOT_EQUAL, INT, (5,)), metrics) is None
    assert holds_in_file(Predicate(Op.IS_NULL, INT), metrics) is True
