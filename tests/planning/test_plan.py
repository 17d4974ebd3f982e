from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import FileChange, InvalidInputError, Schema
from ledger.files import ColumnFacts, lower_bound, upper_bound
from ledger.model import PartitionField, PartitionSpec, Value, encode_value, transform_of
from ledger.model import types as t
from ledger.planning import (
    TRUE,
    And,
    BoundColumn,
    FilePlan,
    Op,
    Predicate,
    SpecCounts,
    Verdict,
    holds_for,
    parse_filter,
    plan_files,
    text_of,
)
from ledger.planning.expression import TransformedColumn, evaluate_if_known
from tests.thorough import examples

SCHEMA = Schema.of({"id": "BIGINT", "ts": "TIMESTAMP(6)", "category": "STRING"})
BY_DAY = PartitionSpec(0, (PartitionField("ts_day", "day", 1, field_id=1000),))
BY_MONTH = PartitionSpec(1, (PartitionField("ts_month", "month", 1, field_id=1001),))
BY_CATEGORY = PartitionSpec(2, (PartitionField("category", "identity", 2, field_id=1002),))
BARE = PartitionSpec(3)
SPECS = (BY_DAY, BY_MONTH, BY_CATEGORY, BARE)


def file(path: str, spec_id: int = 3, *partition: Any, **more: Any) -> FileChange:
    settings_: dict[str, Any] = {"record_count": 10, "file_size_in_bytes": 1, **more}
    return FileChange(path=path, spec_id=spec_id, partition=partition, **settings_)


def bounded(field_id: int, data_type: t.DataType, low: Value, high: Value) -> dict[str, Any]:
    low, high = (each.encode() if isinstance(each, str) else each for each in (low, high))
    facts = ColumnFacts(10, 0, low, high)
    lower, upper = (bound(facts, data_type, data_type) for bound in (lower_bound, upper_bound))
    return {
        "value_counts": {field_id: 10},
        "null_value_counts": {field_id: 0},
        "lower_bounds": {field_id: lower},
        "upper_bounds": {field_id: upper},
    }


def plan(files: list[FileChange], where: Any, **more: Any) -> FilePlan:
    return plan_files(files, **{"schema": SCHEMA, "specs": SPECS, "where": where, **more})


def kept(found: FilePlan) -> dict[str, str]:
    return {each.file.path: text_of(each.residual) for each in found.files}


def reasons(found: FilePlan) -> dict[str, str]:
    return {each.file.path: each.reason.text for each in found.pruned()}


def test_each_spec_has_its_own_filter() -> None:
    files = [
        file("day-before", 0, "2024-02-29"),
        file("day-of", 0, "2024-03-01"),
        file("day-after", 0, "2024-03-02"),
        file("day-null", 0, None),
        file("month-before", 1, 649),
        file("month-of", 1, 650),
        file("other", 2, "b"),
        file("same", 2, "a"),
        file("bare"),
    ]

    found = plan(files, [("ts", ">", "2024-03-01 10:00"), ("category", "=", "a")])

    assert kept(found) == {
        "day-of": 'ts > 2024-03-01T10:00:00 and category == "a"',
        "day-after": 'category == "a"',
        "month-of": 'ts > 2024-03-01T10:00:00 and category == "a"',
        "same": "ts > 2024-03-01T10:00:00",
        "bare": 'ts > 2024-03-01T10:00:00 and category == "a"',
    }
    assert found.by_spec == {
        0: "ts_day >= 2024-03-01",
        1: "ts_month >= 2024-03",
        2: 'category == "a"',
        3: "true",
    }
    assert found.counts == {
        0: SpecCounts(4, 2, 2, 0),
        1: SpecCounts(2, 1, 1, 0),
        2: SpecCounts(2, 1, 1, 0),
        3: SpecCounts(1, 1, 0, 0),
    }
    assert reasons(found) == {
        "day-before": "partition ts_day = 2024-02-29 is outside ts_day >= 2024-03-01",
        "day-null": "partition ts_day = null is outside ts_day >= 2024-03-01",
        "month-before": "partition ts_month = 2024-02 is outside ts_month >= 2024-03",
        "other": 'partition category = "b" is outside category == "a"',
    }


def test_only_the_part_of_an_and_that_fails_is_the_reason() -> None:
    spec = PartitionSpec(
        0,
        (
            PartitionField("d", "day", 1, field_id=1000),
            PartitionField("b", "bucket[4]", 0, field_id=1001),
        ),
    )
    bucket = transform_of("bucket[4]").apply(7, t.BigIntType())
    assert isinstance(bucket, int)
    where = [("ts", ">=", "2024-03-01"), ("id", "=", 7)]
    found = plan([file("f", 0, "2024-03-05", bucket + 1)], where, specs=[spec])
    assert reasons(found) == {"f": f"partition b = {bucket + 1} is outside b == {bucket}"}


def test_of_an_or_only_the_side_that_a_partition_may_match_is_left() -> None:
    where = "category = 'a' AND id = 1 OR category = 'b' AND id = 2"
    files = [file("a", 2, "a"), file("b", 2, "b"), file("bare")]

    left = kept(plan(files, parse_filter(where, SCHEMA)))

    assert (left["a"], left["b"]) == ("id == 1", "id == 2")
    assert "category" in left["bare"]


def test_two_plans_of_the_same_are_equal() -> None:
    files = [file("a", 2, "a"), file("b", 2, "b")]
    one, other = (plan(files, [("category", "=", "a")]) for _ in range(2))
    assert one == other
    assert one != plan(files, [("category", "=", "b")])


def test_metrics_leave_out_what_partitions_cannot() -> None:
    files = [
        file("low", **bounded(0, t.BigIntType(), 1, 10)),
        file("across", **bounded(0, t.BigIntType(), 1, 100)),
        file("high", **bounded(0, t.BigIntType(), 51, 100)),
        file("null", value_counts={0: 10}, null_value_counts={0: 10}),
        file("silent"),
        file("empty", record_count=0),
    ]

    found = plan(files, "id > 50")

    assert kept(found) == {"across": "id > 50", "high": "true", "silent": "id > 50"}
    assert found.counts[3] == SpecCounts(6, 3, 0, 3)
    assert reasons(found) == {
        "low": "column id has values from 1 to 10, outside id > 50",
        "null": "column id has only nulls, outside id > 50",
        "empty": "the file has no rows",
    }


def test_a_filter_on_a_transform_is_not_compared_with_bounds_of_the_column() -> None:
    term = TransformedColumn(0, "id", t.IntType(), transform_of("bucket[4]"))
    where = And(
        (
            Predicate(Op.EQUAL, term, (3,)),
            Predicate(Op.GREATER, BoundColumn(0, "id", t.BigIntType()), (50,)),
        )
    )
    files = [
        file("across", **bounded(0, t.BigIntType(), 1, 100)),
        file("high", **bounded(0, t.BigIntType(), 51, 100)),
        file("low", **bounded(0, t.BigIntType(), 1, 10)),
    ]
    assert kept(plan(files, where)) == {"across": "id == 3 and id > 50", "high": "id == 3"}


def test_without_a_filter_everything_is_read() -> None:
    files = [file("a", record_count=0), file("b", 0, "2024-01-01")]
    found = plan(files, None)
    assert [each.residual for each in found.files] == [TRUE, TRUE]
    assert list(found.pruned()) == []


def test_a_filter_that_nothing_matches_reads_nothing() -> None:
    found = plan([file("a")], [("id", "in", [])])
    assert reasons(found) == {"a": "the filter matches no row"}


def test_a_renamed_column_is_still_the_same() -> None:
    renamed = evolve(SCHEMA, id=1, fields=[evolve(SCHEMA.fields[0], name="key")])
    old = file("old", **bounded(0, t.BigIntType(), 1, 10))
    assert kept(plan([old], "key > 50", schema=renamed, schemas={0: SCHEMA})) == {}


def test_a_file_of_an_unknown_schema_is_judged_by_its_partition_alone() -> None:
    files = [
        file("a", 0, "2024-01-01", schema_id=9),
        file("b", schema_id=9, **bounded(0, t.BigIntType(), 1, 10)),
    ]
    assert kept(plan(files, "id > 50 AND ts > '2024-03-01'")) == {
        "b": "id > 50 and ts > 2024-03-01T00:00:00"
    }


def test_a_column_added_later_is_null_in_older_files() -> None:
    newer = Schema.of({"id": "BIGINT", "ts": "TIMESTAMP(6)", "category": "STRING", "x": "INT"})
    newer = evolve(newer, id=1)
    files = [file("old"), file("new", schema_id=1)]
    more = {"schema": newer, "schemas": {0: SCHEMA}}
    found = plan(files, "x = 5", **more)
    assert kept(found) == {"new": "x == 5"}
    assert reasons(found) == {"old": "column x was added later, outside x == 5"}
    assert kept(plan(files, "x IS NULL", **more)) == {"old": "true", "new": "is_null(x)"}
    # An engine may see either way whether NULL differs from something.
    assert "old" in kept(plan(files, "x <> 5", **more))


def test_a_column_with_a_default_is_not_taken_for_null() -> None:
    column = t.DataField(3, "x", t.IntType(), default_value="5", initial_default="5")
    fields = (*SCHEMA.fields, column)
    newer = evolve(SCHEMA, id=1, fields=fields, highest_field_id=3)
    assert "old" in kept(plan([file("old")], "x = 5", schema=newer, schemas={0: SCHEMA}))


@pytest.mark.parametrize(
    ("before", "after", "where", "is_kept"),
    [
        (t.IntType(), t.BigIntType(), "c > 50", False),
        (t.DateType(), t.TimestampType(6), "c > '2024-01-01'", False),
        (t.IntType(), t.STRING, "c > 'a'", True),
        (t.BigIntType(), t.IntType(), "c > 50", True),
        (t.TimestampType(6), t.TimestampType(9), "c > '2024-01-01'", True),
    ],
    ids=str,
)
def test_bounds_are_used_after_a_promotion_and_after_nothing_else(
    before: t.DataType,
    after: t.DataType,
    where: str,
    is_kept: bool,  # noqa: FBT001
) -> None:
    older, newer = Schema.of({"c": before}), evolve(Schema.of({"c": after}), id=1)
    old = file("old", **bounded(0, before, 1, 10))
    assert bool(kept(plan([old], where, schema=newer, schemas={0: older}))) == is_kept


def test_deletes_are_judged_by_their_partition_alone() -> None:
    metrics = bounded(0, t.BigIntType(), 1, 10)
    files = [
        file("here", 0, "2024-03-02", content="equality-deletes", **metrics),
        file("elsewhere", 0, "2024-01-01", content="position-deletes"),
    ]
    assert kept(plan(files, "id > 50 AND ts >= '2024-03-01'")) == {"here": "id > 50"}


def test_a_partition_value_that_reads_otherwise_now_keeps_the_file() -> None:
    spec = PartitionSpec(0, (PartitionField("id", "identity", 0, field_id=1000),))
    assert kept(plan([file("f", 0, "x")], "id > 50", specs=[spec])) == {"f": "id > 50"}


def test_a_field_of_a_dropped_column_is_passed_over() -> None:
    spec = PartitionSpec(
        0,
        (
            PartitionField("gone", "identity", 9, field_id=1000),
            PartitionField("id", "identity", 0, field_id=1001),
        ),
    )
    found = plan([file("f", 0, "x", 7), file("g", 0, "y", 5)], "id = 7", specs=[spec])
    assert kept(found) == {"f": "true"}


def test_a_member_of_a_row_partitions_as_a_column_does() -> None:
    row = t.RowType((t.DataField(0, "at", t.TimestampType(6)),))
    schema = Schema.of({"info": row})
    spec = PartitionSpec(0, (PartitionField("day", "day", 1, field_id=1000),))
    files = [file("a", 0, "2024-01-01"), file("b", 0, "2024-01-02")]
    assert kept(plan(files, "info.at >= '2024-01-02'", schema=schema, specs=[spec])) == {
        "b": "true"
    }


def test_a_file_that_does_not_fit_the_table_is_an_error() -> None:
    with pytest.raises(InvalidInputError, match=r"spec 7, which the table does not have.*\[0, 1"):
        plan([file("f", 7)], "id = 5")
    with pytest.raises(InvalidInputError, match="2 partition values, the spec has 1 fields"):
        plan([file("f", 0, "2024-01-01", 5)], "id = 5")


MOMENTS = st.integers(-5 * 86_400, 5 * 86_400).map(lambda each: each * 500_000)
ROWS = st.tuples(
    st.none() | st.integers(-3, 12),
    st.none() | MOMENTS,
    st.none() | st.text("ab\U0010ffff", max_size=20),
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[list[FileChange], dict[str, list[tuple[Any, ...]]]]:
    """Return files of any spec, written as a writer would, and their rows."""
    rows: dict[str, list[tuple[Any, ...]]] = {}
    files = []
    for number, row in enumerate(draw(st.lists(ROWS, max_size=6))):
        spec = draw(st.sampled_from(SPECS))
        values = []
        for each in spec.fields:
            source, transform = SCHEMA.fields[each.source_id].type, transform_of(each.transform)
            result = transform.apply(row[each.source_id], source)
            values.append(encode_value(result, transform.result_type(source)))
        path = str(number)
        rows[path] = [row, row] if spec.fields else [row, draw(ROWS)]
        files.append(file(path, spec.spec_id, *values, record_count=2, **_metrics(rows[path])))
    return files, rows


def _metrics(rows: list[tuple[Any, ...]]) -> dict[str, dict[int, Any]]:
    found: dict[str, dict[int, Any]] = {
        each: {} for each in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")
    }
    for column in SCHEMA.fields:
        values = [row[column.id] for row in rows]
        known = [
            each.encode() if isinstance(each, str) else each for each in values if each is not None
        ]
        facts = ColumnFacts(
            2, values.count(None), min(known, default=None), max(known, default=None)
        )
        found["value_counts"][column.id] = 2
        found["null_value_counts"][column.id] = values.count(None)
        for name, bound in (("lower_bounds", lower_bound), ("upper_bounds", upper_bound)):
            encoded = bound(facts, column.type, column.type)
            if encoded is not None:
                found[name][column.id] = encoded
    return found


TERMS = st.one_of(
    st.tuples(st.just("id"), st.sampled_from(["=", "!=", "<", ">="]), st.integers(-3, 12)),
    st.tuples(st.just("id"), st.sampled_from(["is null", "is not null"])),
    st.tuples(st.just("id"), st.sampled_from(["in", "not in"]), st.lists(st.integers(-3, 12))),
    st.tuples(
        st.just("ts"),
        st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
        MOMENTS.map(lambda each: str(encode_value(each, t.TimestampType(6)))),
    ),
    st.tuples(
        st.just("category"),
        st.sampled_from(["=", "!=", "<=", "starts with", "not starts with"]),
        st.text("ab\U0010ffff", max_size=20),
    ),
)
WHERES = st.lists(st.lists(TERMS, min_size=1, max_size=3), min_size=1, max_size=3)


def on(row: tuple[Any, ...]) -> Verdict:
    return lambda each: holds_for(each, row[each.column.id])


@settings(max_examples=examples(200), deadline=None)
@given(tables(), WHERES)
def test_a_plan_reads_every_matching_row_and_residuals_say_what_the_filter_says(
    table: tuple[list[FileChange], dict[str, list[tuple[Any, ...]]]], where: list[Any]
) -> None:
    files, rows = table
    found = plan(files, where)
    expression = parse_filter(where, SCHEMA)
    residuals = {each.file.path: each.residual for each in found.files}
    for path, held in rows.items():
        for row in held:
            matches = evaluate_if_known(expression, on(row))
            if path in residuals:
                assert evaluate_if_known(residuals[path], on(row)) is matches
            else:
                assert matches is False
    assert {each.file.path for each in found.pruned()} == rows.keys() - residuals.keys()
    assert all(each.reason.text for each in found.pruned())
