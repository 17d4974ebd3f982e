from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ledger import InvalidInputError, Schema
from ledger.model import PartitionField, PartitionSpec, Value, transform_of
from ledger.model import types as t
from ledger.model.transforms import Period, Transform
from ledger.planning import (
    Always,
    And,
    BoundColumn,
    Expression,
    Not,
    Op,
    Or,
    Predicate,
    holds_for,
    text_of,
    without_not,
)
from ledger.planning.expression import UNARY, TransformedColumn, evaluate_if_known
from ledger.planning.filter import predicate_on
from ledger.planning.spec_plan import (
    PartitionColumn,
    partition_columns,
    project_inclusive,
    project_strict,
)
from ledger.state.layout import build_checked_spec
from tests.planning.iceberg_cases import cases, schema_of, spec_of
from tests.planning.values import comparable_types, values_of
from tests.thorough import examples

OPS = {
    "lt": Op.LESS,
    "lt-eq": Op.AT_MOST,
    "gt": Op.GREATER,
    "gt-eq": Op.AT_LEAST,
    "eq": Op.EQUAL,
    "not-eq": Op.NOT_EQUAL,
    "in": Op.IN,
    "not-in": Op.NOT_IN,
    "is-null": Op.IS_NULL,
    "not-null": Op.NOT_NULL,
    "starts-with": Op.STARTS_WITH,
    "not-starts-with": Op.NOT_STARTS_WITH,
}


def expression_of(given_: dict[str, Any], schema: Schema) -> Expression:
    match given_["op"]:
        case "and" | "or":
            both = (expression_of(given_[side], schema) for side in ("left", "right"))
            return (And if given_["op"] == "and" else Or)(tuple(both))
        case "not":
            return Not(expression_of(given_["child"], schema))
    field = schema.field(given_["term"])
    column = BoundColumn(field.id, field.name, field.type)
    return predicate_on(column, OPS[given_["op"]], given_.get("values", given_.get("value")))


@pytest.mark.parametrize("case", cases("projection"))
def test_a_filter_says_of_partitions_what_iceberg_says(case: dict[str, Any]) -> None:
    schema = schema_of(case["given"]["schema"])
    expression = expression_of(case["given"]["predicate"], schema)
    spec = case["given"]["partition-spec"]
    if spec["fields"][0]["transform"] == "zorder[2]":
        # No spec of the ledger may name a transform that it does not know.
        with pytest.raises(InvalidInputError, match="zorder"):
            build_checked_spec(1, spec_of(spec).fields)
    columns = partition_columns(spec_of(spec), schema)
    assert text_of(project_inclusive(expression, columns), _raw) == case["expect"]["inclusive"]
    assert text_of(project_strict(expression, columns), _raw) == case["expect"]["strict"]


def _raw(column: BoundColumn, value: Value) -> str:
    """Return a value as the cases have it: days, months and the like as whole numbers."""
    is_day = isinstance(column.type, t.DateType)
    return str(value) if is_day else BoundColumn.value_text(column, value)


def column_of(transform: Transform, source: t.DataType) -> PartitionColumn:
    return PartitionColumn(
        id=1000,
        name="p",
        type=transform.result_type(source),
        position=0,
        source_id=3,
        source=source,
        transform=transform,
    )


TRANSFORMS = [
    transform_of(each)
    for each in (
        *("identity", "year", "month", "day", "hour", "void"),
        *("bucket[3]", "truncate[1]", "truncate[3]", "truncate[7]"),
    )
]


@st.composite
def predicates(draw: st.DrawFn, column: BoundColumn) -> Predicate:
    values = values_of(column.type)
    is_text = isinstance(column.type, t.CharType | t.VarCharType)
    is_float = isinstance(column.type, t.FloatType | t.DoubleType)
    op = draw(
        st.sampled_from(
            [
                each
                for each in Op
                if (is_text or "tarts" not in each.value) and (is_float or "nan" not in each.value)
            ]
        )
    )
    if op in UNARY:
        return Predicate(op, column)
    if op in (Op.IN, Op.NOT_IN):
        found = draw(st.lists(values, min_size=1, max_size=3, unique=True))
        return Predicate(op, column, tuple(sorted(found)))
    return Predicate(op, column, (draw(values),))


def filters(column: BoundColumn) -> st.SearchStrategy[Expression]:
    return st.recursive(
        st.one_of(predicates(column), st.booleans().map(Always)),
        lambda inner: st.one_of(
            inner.map(Not),
            st.lists(inner, max_size=3).map(lambda parts: And(tuple(parts))),
            st.lists(inner, max_size=3).map(lambda parts: Or(tuple(parts))),
        ),
        max_leaves=4,
    )


@st.composite
def projections(draw: st.DrawFn) -> tuple[PartitionColumn, Expression, Value | None]:
    source = draw(comparable_types())
    transform = draw(st.sampled_from([each for each in TRANSFORMS if each.accepts(source)]))
    column = BoundColumn(3, "c", source)
    value = draw(st.none() | values_of(source))
    if isinstance(source, t.FloatType | t.DoubleType):
        value = draw(st.sampled_from([value, float("nan")]))
    return column_of(transform, source), draw(filters(column)), value


def matches(expression: Expression, value: Value | None) -> bool | None:
    return evaluate_if_known(without_not(expression), lambda each: holds_for(each, value))


@settings(max_examples=examples(200), deadline=None)
@given(projections())
def test_inclusive_projection_loses_no_row_and_strict_adds_none(
    case: tuple[PartitionColumn, Expression, Value | None],
) -> None:
    column, expression, value = case
    row = matches(expression, value)
    partition = column.transform.apply(value, column.source)

    may = matches(project_inclusive(expression, [column]), partition)
    must = matches(project_strict(expression, [column]), partition)

    if row is not False:
        assert may is not False
    if must is True:
        assert row is True


@st.composite
def rounded_up(draw: st.DrawFn) -> tuple[PartitionColumn, Expression, Value]:
    transform = draw(st.sampled_from([transform_of(each) for each in ("year", "month", "hour")]))
    moment = st.sampled_from([t.TimestampType(6), t.LocalZonedTimestampType(9)])
    source = draw(moment if transform.text == "hour" else st.one_of(moment, st.just(t.DateType())))
    if not isinstance(source, t.DateType):
        transform = draw(st.sampled_from([transform, transform_of("day")]))
    value = -abs(draw(values_of(source))) - 1
    return column_of(transform, source), draw(filters(BoundColumn(3, "c", source))), value


@settings(deadline=None)
@given(rounded_up())
def test_values_that_older_writers_rounded_towards_zero_lose_no_row(
    case: tuple[PartitionColumn, Expression, Value],
) -> None:
    column, expression, value = case
    partition = column.transform.apply(value, column.source)
    assert isinstance(partition, int)
    row = matches(expression, value)
    if row is not False:
        assert matches(project_inclusive(expression, [column]), partition + 1) is not False
    if matches(project_strict(expression, [column]), partition + 1) is True:
        assert row is True


@st.composite
def transformed(
    draw: st.DrawFn,
) -> tuple[PartitionColumn, Expression, TransformedColumn, Value | None]:
    source = draw(comparable_types())
    accepting = st.sampled_from([each for each in TRANSFORMS if each.accepts(source)])
    column, asked = column_of(draw(accepting), source), draw(accepting)
    term = TransformedColumn(3, "c", asked.result_type(source), asked)
    return column, draw(filters(term)), term, draw(st.none() | values_of(source))


@settings(max_examples=examples(200), deadline=None)
@given(transformed(), st.booleans())
def test_a_filter_on_a_transform_loses_no_row_whatever_the_partition_field_is(
    case: tuple[PartitionColumn, Expression, TransformedColumn, Value | None],
    is_rounded_up: bool,  # noqa: FBT001 - drawn
) -> None:
    column, expression, term, value = case
    row = matches(expression, term.transform.apply(value, column.source))
    partition = column.transform.apply(value, column.source)
    is_period = isinstance(column.transform, Period)
    is_date = isinstance(column.source, t.DateType) and column.transform.text == "day"
    if is_rounded_up and is_period and not is_date and isinstance(partition, int) and partition < 0:
        # As writers did that rounded towards zero.
        partition += 1

    may = matches(project_inclusive(expression, [column]), partition)
    must = matches(project_strict(expression, [column]), partition)
    if row is not False:
        assert may is not False
    if must is True:
        assert row is True


def test_a_filter_on_a_transform_prunes_by_a_field_of_the_same_transform_only() -> None:
    term = TransformedColumn(3, "c", t.IntType(), transform_of("bucket[3]"))
    same = Predicate(Op.EQUAL, term, (2,))
    found = project_inclusive(same, [column_of(transform_of("bucket[3]"), t.BigIntType())])
    assert text_of(found) == "p == 2"
    for other in ("bucket[4]", "identity", "void"):
        found = project_inclusive(same, [column_of(transform_of(other), t.BigIntType())])
        assert found == Always(holds=True)


PLAIN: dict[Op, Callable[[Any, tuple[Any, ...]], bool]] = {
    Op.LESS: lambda value, values: value < values[0],
    Op.AT_MOST: lambda value, values: value <= values[0],
    Op.GREATER: lambda value, values: value > values[0],
    Op.AT_LEAST: lambda value, values: value >= values[0],
    Op.EQUAL: lambda value, values: value == values[0],
    Op.NOT_EQUAL: lambda value, values: value != values[0],
    Op.IN: lambda value, values: value in values,
    Op.NOT_IN: lambda value, values: value not in values,
    Op.IS_NULL: lambda _value, _values: False,
    Op.NOT_NULL: lambda _value, _values: True,
    Op.IS_NAN: lambda value, _values: math.isnan(value),
    Op.NOT_NAN: lambda value, _values: not math.isnan(value),
    Op.STARTS_WITH: lambda value, values: value.startswith(values[0]),
    Op.NOT_STARTS_WITH: lambda value, values: not value.startswith(values[0]),
}


def plainly(expression: Expression, value: Any) -> bool:
    """Evaluate by Python's own operators; NULL is handled separately."""
    match expression:
        case Always(holds=holds):
            return holds
        case And(parts=parts):
            return all(plainly(each, value) for each in parts)
        case Or(parts=parts):
            return any(plainly(each, value) for each in parts)
        case Not(part=part):
            return not plainly(part, value)
        case Predicate(op=op, values=values):
            return PLAIN[op](value, values)


@settings(deadline=None)
@given(projections())
def test_pushing_not_down_changes_no_row(
    case: tuple[PartitionColumn, Expression, Value | None],
) -> None:
    _, expression, value = case
    assume(value is not None)
    assert matches(expression, value) is plainly(expression, value)


def test_two_fields_of_one_column_both_have_to_fit() -> None:
    schema = Schema.of({"ts": "TIMESTAMP(6)"})
    spec = PartitionSpec(
        0,
        (
            PartitionField("y", "year", 0, field_id=1000),
            PartitionField("h", "hour", 0, field_id=1001),
        ),
    )
    expression = expression_of({"op": "gt", "term": "ts", "value": "2024-03-01T10:30:00"}, schema)
    columns = partition_columns(spec, schema)
    assert text_of(project_inclusive(expression, columns)) == "y >= 2024 and h >= 2024-03-01-10"
    assert text_of(project_strict(expression, columns)) == "y > 2024 or h > 2024-03-01-10"


@pytest.mark.parametrize("op", ["is-null", "not-null"])
def test_a_transform_that_nobody_knows_may_make_null_of_anything(op: str) -> None:
    schema = Schema.of({"id": "INT"})
    expression = expression_of({"op": op, "term": "id"}, schema)
    unknown = evolve(column_of(transform_of("zorder[2]"), t.IntType()), source_id=0)
    assert text_of(project_inclusive(expression, (unknown,))) == "true"
    assert text_of(project_strict(expression, (unknown,))) == "false"


@pytest.mark.parametrize(
    ("op", "prefix", "may", "must"),
    [
        ("starts-with", "iceberg", 'p startsWith "iceb"', "false"),
        ("not-starts-with", "iceberg", "true", 'p notStartsWith "iceb"'),
        ("not-starts-with", "iceb", 'p != "iceb"', 'p != "iceb"'),
        ("not-starts-with", "ice", 'p notStartsWith "ice"', 'p notStartsWith "ice"'),
    ],
)
def test_prefixes_are_compared_with_cut_text(op: str, prefix: str, may: str, must: str) -> None:
    column = column_of(transform_of("truncate[4]"), t.STRING)
    predicate = Predicate(OPS[op], BoundColumn(3, "c", t.STRING), (prefix,))
    assert text_of(project_inclusive(predicate, [column])) == may
    assert text_of(project_strict(predicate, [column])) == must
