"""Plans that the Iceberg REST protocol answers with, against PyIceberg's own."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import msgspec
import pyarrow as pa
import pyiceberg.types as ty
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pyiceberg import expressions
from pyiceberg.catalog.rest.scan_planning import PlanCompleted
from pyiceberg.expressions import BooleanExpression
from pyiceberg.io.pyarrow import ArrowScan
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import FileScanTask, Table
from pyiceberg.transforms import parse_transform

from ledger import InvalidInputError, NotFoundError, UnsupportedError
from ledger.model.iceberg_layout import PartitionSpec as LedgerSpec
from projections.iceberg.table_metadata import TableMetadata
from projections.rest.iceberg.planning import plan_table_scan
from tests.projections.iceberg.importing.writing import created
from tests.projections.rest.written import Row, append, metadata_of, read
from tests.thorough import examples, some

e: Any = expressions
# mypy reads the classes as records, by their JSON.

COLUMNS = Schema(
    ty.NestedField(1, "id", ty.IntegerType(), required=False),
    ty.NestedField(2, "big", ty.LongType(), required=False),
    ty.NestedField(3, "rate", ty.DoubleType(), required=False),
    ty.NestedField(4, "price", ty.DecimalType(9, 2), required=False),
    ty.NestedField(5, "name", ty.StringType(), required=False),
    ty.NestedField(6, "day", ty.DateType(), required=False),
    ty.NestedField(7, "ts", ty.TimestampType(), required=False),
    ty.NestedField(8, "tz", ty.TimestamptzType(), required=False),
    ty.NestedField(9, "flag", ty.BooleanType(), required=False),
    ty.NestedField(10, "body", ty.BinaryType(), required=False),
)
SOURCES = {each.name: each.field_id for each in COLUMNS.fields}
START = datetime.fromisoformat("2019-12-30T05:00:00")


def row(number: int) -> Row:
    moment = START + timedelta(hours=31 * number)
    return {
        "id": number,
        "big": number * 10**10,
        "rate": number / 4,
        "price": Decimal(25 * number).scaleb(-2),
        "name": f"{'abc'[number % 3]}{number:02}",
        "day": moment.date(),
        "ts": moment,
        "tz": moment.replace(tzinfo=UTC),
        "flag": number % 2 == 0,
        "body": bytes([number]),
    }


NOTHING: Row = dict.fromkeys(SOURCES)


def spec(*fields: str) -> PartitionSpec:
    """Return a spec of fields such as `bucket[4] id`."""
    made = []
    for place, each in enumerate(fields):
        transform, source = each.split()
        made.append(
            PartitionField(SOURCES[source], 1000 + place, parse_transform(transform), f"p{place}")
        )
    return PartitionSpec(*made)


def request_of(row_filter: BooleanExpression | None = None, **more: Any) -> dict[str, Any]:
    filtered = {} if row_filter is None else {"filter": json.loads(row_filter.model_dump_json())}
    return filtered | {key.replace("_", "-"): each for key, each in more.items()}


def plan(metadata: TableMetadata, request: Mapping[str, Any]) -> dict[str, Any]:
    body = plan_table_scan(json.dumps(request).encode(), metadata, read)
    found: dict[str, Any] = json.loads(body)
    return found


def paths(answer: Mapping[str, Any]) -> set[str]:
    assert answer["status"] == "completed"
    return {each["data-file"]["file-path"] for each in answer["file-scan-tasks"]}


def rows_of(
    table: Table, tasks: Sequence[FileScanTask], row_filter: BooleanExpression
) -> list[Row]:
    reader = ArrowScan(table.metadata, table.io, table.schema(), row_filter)
    found: pa.Table = reader.to_table(tasks)
    return sorted(found.to_pylist(), key=str)


def files_with_matching_rows(table: Table, row_filter: BooleanExpression) -> set[str]:
    return {
        each.file.file_path
        for each in table.scan().plan_files()
        if rows_of(table, [FileScanTask(each.file)], row_filter)
    }


PARTITIONS = [
    [],
    ["day ts", "bucket[4] id", "truncate[1] name"],
    ["identity day"],
    ["bucket[4] price"],
    ["truncate[3] id"],
    ["void id"],
    *([f"identity {each}"] for each in SOURCES if each != "day"),
    *([f"bucket[4] {each}"] for each in SOURCES if each not in ("rate", "flag", "price")),
    *([f"truncate[3] {each}"] for each in ("big", "price", "name", "body")),
    *([f"{unit} {each}"] for each in ("ts", "tz") for unit in ("year", "month", "day", "hour")),
    *([f"{unit} day"] for unit in ("year", "month", "day")),
]
FILTERS = [
    e.AlwaysTrue(),
    e.AlwaysFalse(),
    e.EqualTo("id", 7),
    e.In("id", {2, 9, 11}),
    e.GreaterThan("big", 5 * 10**10),
    e.LessThanOrEqual("rate", 1.5),
    e.EqualTo("price", Decimal("1.75")),
    e.LessThan("price", Decimal("1.00")),
    e.StartsWith("name", "a0"),
    e.And(e.StartsWith("name", "b"), e.GreaterThanOrEqual("id", 4)),
    e.LessThan("day", date(2020, 1, 3)),
    e.EqualTo("day", date(2019, 12, 31)),
    e.GreaterThanOrEqual("ts", datetime.fromisoformat("2020-01-02T03:00:00")),
    e.LessThan("tz", "2020-01-01T00:00:00+00:00"),
    e.GreaterThan("tz", datetime.fromisoformat("2020-01-01T05:00:00+02:00")),
    e.EqualTo("flag", literal=True),
    e.Or(e.EqualTo("id", 1), e.Not(e.LessThan("ts", datetime.fromisoformat("2020-01-08")))),
    e.Not(e.Or(e.LessThan("id", 3), e.GreaterThan("id", 4))),
    e.NotNull("name"),
    e.LessThan("id", 10**12),
]


@pytest.mark.parametrize("fields", some(PARTITIONS, 6), ids=str)
def test_a_plan_has_the_files_that_pyiceberg_plans(fields: list[str], tmp_path: Path) -> None:
    table = created(tmp_path / "t", COLUMNS, spec=spec(*fields))
    for first in (0, 5):
        append(table, [row(each) for each in range(first, first + 5)])
    metadata = metadata_of(table)
    for each in FILTERS:
        planned = paths(plan(metadata, request_of(each)))
        assert files_with_matching_rows(table, each) <= planned, each
        own = {task.file.file_path for task in table.scan(row_filter=each).plan_files()}
        assert planned == own, each


@pytest.mark.parametrize("fields", [[], ["day ts", "truncate[1] name"], ["identity day"]], ids=str)
def test_pyiceberg_reads_the_rows_of_a_scan_through_the_answer(
    fields: list[str], tmp_path: Path
) -> None:
    table = created(tmp_path / "t", COLUMNS, spec=spec(*fields))
    append(table, [row(each) for each in range(12)])
    metadata = metadata_of(table)
    for each in FILTERS:
        answer = json.dumps(plan(metadata, request_of(each)))
        found = PlanCompleted.model_validate_json(answer)
        tasks = [
            FileScanTask.from_rest_response(one, found.delete_files)
            for one in found.file_scan_tasks
        ]
        wanted = table.scan(row_filter=each).to_arrow().to_pylist()
        assert rows_of(table, tasks, each) == sorted(wanted, key=str), each
        certain = [one for one in tasks if one.residual == e.AlwaysTrue()]
        rows = rows_of(table, certain, each)
        assert len(rows) == sum(one.file.record_count for one in certain), each


NUMBERS = st.integers(0, 12)
COMPARISONS = [
    e.LessThan,
    e.LessThanOrEqual,
    e.GreaterThan,
    e.GreaterThanOrEqual,
    e.EqualTo,
    e.NotEqualTo,
]


def predicates(names: Sequence[str]) -> st.SearchStrategy[BooleanExpression]:
    def literal(name: str, number: int) -> Any:
        value = row(number)[name]
        # PyIceberg leaves out the time zone of a datetime, and does not read that back.
        return value.isoformat() if name == "tz" else value

    def compare(made: Any, name: str, number: int) -> BooleanExpression:
        found: BooleanExpression = made(name, literal(name, number))
        return found

    def belongs(made: Any, name: str, numbers: list[int]) -> BooleanExpression:
        found: BooleanExpression = made(name, {literal(name, each) for each in numbers})
        return found

    named = st.sampled_from(names)
    return st.one_of(
        st.builds(compare, st.sampled_from(COMPARISONS), named, NUMBERS),
        st.builds(belongs, st.sampled_from([e.In, e.NotIn]), named, st.lists(NUMBERS, max_size=3)),
        st.builds(lambda made, name: made(name), st.sampled_from([e.IsNull, e.NotNull]), named),
        st.sampled_from([e.StartsWith("name", "a"), e.NotStartsWith("name", "b0")]),
        st.just(e.IsNaN("rate")),
    )


def filters(names: Sequence[str]) -> st.SearchStrategy[BooleanExpression]:
    return st.recursive(
        predicates(names),
        lambda inner: st.one_of(
            st.builds(e.And, inner, inner), st.builds(e.Or, inner, inner), st.builds(e.Not, inner)
        ),
        max_leaves=5,
    )


FIELDS = sorted({each for fields in PARTITIONS for each in fields})
COMPARED = [each for each in SOURCES if each != "body"]


@settings(max_examples=examples(40), phases=[Phase.generate])
@given(st.data())
def test_every_file_with_a_matching_row_is_planned_while_specs_and_schemas_evolve(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    table = created(tmp_path_factory.mktemp("law") / "t", COLUMNS)
    names = {each: each for each in SOURCES}
    for step in range(data.draw(st.integers(1, 4))):
        action = data.draw(st.sampled_from(["spec", "rename", "add", "promote", "nothing"]))
        if action == "spec":
            fields = data.draw(st.lists(st.sampled_from(FIELDS), max_size=2, unique=True))
            with table.update_spec() as change:
                for field in table.spec().fields:
                    change.remove_field(field.name)
                for place, each in enumerate(fields):
                    transform, source = each.split()
                    change.add_field(names[source], parse_transform(transform), f"p{step}_{place}")
        elif action == "rename":
            source = data.draw(st.sampled_from(COMPARED))
            with table.update_schema() as change:
                change.rename_column(names[source], f"{source}_{step}")
            names[source] = f"{source}_{step}"
        elif action == "add":
            with table.update_schema() as change:
                change.add_column(f"new{step}", ty.StringType())
        elif action == "promote":
            with table.update_schema() as change:
                change.update_column(names["id"], ty.LongType())
                change.update_column(names["price"], ty.DecimalType(12, 2))
        numbers = data.draw(st.lists(NUMBERS | st.none(), min_size=1, max_size=4))
        rows = [NOTHING if each is None else row(each) for each in numbers]
        append(table, [{names[name]: value for name, value in each.items()} for each in rows])
    metadata = metadata_of(table)
    for _ in range(3):
        drawn = data.draw(filters(COMPARED))
        renamed = rename(drawn, names)
        planned = paths(plan(metadata, request_of(renamed)))
        assert files_with_matching_rows(table, renamed) <= planned


def rename(expression: BooleanExpression, names: Mapping[str, str]) -> BooleanExpression:
    """Return a filter under the columns' current names."""

    def convert(part: Any) -> Any:
        if isinstance(part, list):
            return [convert(each) for each in part]
        if not isinstance(part, dict):
            return part
        return {key: names[each] if key == "term" else convert(each) for key, each in part.items()}

    renamed = convert(json.loads(expression.model_dump_json()))
    return BooleanExpression.model_validate(renamed)


def appends(table: Table, *numbers: int) -> list[int]:
    """Append one row at a time; return the snapshots."""
    found = []
    for each in numbers:
        append(table, [row(each)])
        snapshot = table.current_snapshot()
        assert snapshot is not None
        found.append(snapshot.snapshot_id)
    return found


def ids_planned(table: Table, request: Mapping[str, Any]) -> set[int]:
    answer = plan(metadata_of(table), {**request, "stats-fields": ["id"]})
    return {each["data-file"]["lower-bounds"]["values"][0] for each in answer["file-scan-tasks"]}


def test_a_scan_is_of_the_newest_snapshot_or_of_the_named_one(tmp_path: Path) -> None:
    table = created(tmp_path / "t", COLUMNS)
    assert plan(metadata_of(table), {})["file-scan-tasks"] == []
    first, *_ = appends(table, 1, 2, 3)
    assert ids_planned(table, {}) == {1, 2, 3}
    assert ids_planned(table, {"snapshot-id": first}) == {1}


def test_an_incremental_scan_has_the_files_that_appends_added(tmp_path: Path) -> None:
    table = created(tmp_path / "t", COLUMNS, spec=spec("bucket[2] id"))
    first, second, third = appends(table, 1, 2, 3)
    table.delete(e.EqualTo("id", 2))
    removed = table.current_snapshot()
    assert removed is not None
    (fifth,) = appends(table, 5)
    assert ids_planned(table, {}) == {1, 3, 5}
    between = {"start-snapshot-id": first, "end-snapshot-id": fifth}
    # Deletes do not count: as with Java's incremental append scan.
    assert ids_planned(table, between) == {2, 3, 5}
    assert ids_planned(table, between | request_of(e.GreaterThan("id", 4))) == {5}
    assert ids_planned(table, {"end-snapshot-id": second}) == {1, 2}
    assert ids_planned(table, {"start-snapshot-id": third, "end-snapshot-id": third}) == set()
    end = removed.snapshot_id
    assert ids_planned(table, {"start-snapshot-id": third, "end-snapshot-id": end}) == set()


def test_an_incremental_scan_starts_at_an_expired_snapshot(tmp_path: Path) -> None:
    table = created(tmp_path / "t", COLUMNS)
    first, second, third = appends(table, 1, 2, 3)
    table.maintenance.expire_snapshots().by_id(first).commit()
    metadata = metadata_of(table)
    if metadata.snapshot(second).parent_snapshot_id is None:
        # PyIceberg also removes the id from the child.
        kept = [
            msgspec.structs.replace(each, parent_snapshot_id=first)
            if each.snapshot_id == second
            else each
            for each in metadata.snapshots
        ]
        metadata = attrs.evolve(metadata, snapshots=tuple(kept))
    answer = plan(metadata, {"start-snapshot-id": first, "end-snapshot-id": third})
    assert len(paths(answer)) == 2


def test_names_are_of_the_wanted_schema_or_else_of_the_other_one(tmp_path: Path) -> None:
    table = created(tmp_path / "t", COLUMNS)
    (first,) = appends(table, 1)
    with table.update_schema() as change:
        change.rename_column("name", "label")
        change.rename_column("price", "name")
        change.add_column("later", ty.StringType())
    names = {"name": "label", "price": "name"}
    append(table, [{names.get(key, key): each for key, each in row(2).items()}])
    then = {"snapshot-id": first, "use-snapshot-schema": True}
    now = {"snapshot-id": first}
    # A name of both schemas is of the wanted one.
    assert ids_planned(table, then | request_of(e.EqualTo("name", "b01"))) == {1}
    assert ids_planned(table, now | request_of(e.EqualTo("name", Decimal("0.25")))) == {1}
    for wrong, row_filter in ((then, e.LessThan("name", 1)), (now, e.LessThan("name", "b"))):
        with pytest.raises(InvalidInputError, match="column name is"):
            plan(metadata_of(table), wrong | request_of(row_filter))
    # Spark asks for the snapshot's schema, by names of the table's; PyIceberg the other way round.
    assert ids_planned(table, then | request_of(e.EqualTo("label", "b01"))) == {1}
    assert ids_planned(table, then | request_of(e.IsNull("later"), select=["later"])) == {1}
    assert ids_planned(table, now | request_of(e.EqualTo("price", Decimal("0.25")))) == {1}
    assert ids_planned(table, now | request_of(e.EqualTo("price", Decimal("0.50")))) == set()
    (task,) = plan(metadata_of(table), then | request_of(e.StartsWith("label", "b0")))[
        "file-scan-tasks"
    ]
    assert task["residual-filter"]["term"] in ("label", "id")
    for either in (then, now):
        with pytest.raises(InvalidInputError, match="column nope does not exist"):
            plan(metadata_of(table), either | request_of(e.IsNull("nope")))


def test_statistics_are_those_of_the_wanted_columns(tmp_path: Path) -> None:
    table = created(tmp_path / "t", COLUMNS)
    append(table, [row(1), row(3), NOTHING])
    metadata = metadata_of(table)
    (task,) = plan(metadata, {})["file-scan-tasks"]
    plain = task["data-file"]
    assert not [each for each in plain if each.endswith(("-counts", "-bounds", "-sizes"))]
    assert plain["content"] == "data"
    assert (plain["file-format"], plain["spec-id"], plain["partition"]) == ("parquet", 0, [])
    assert plain["record-count"] == 3
    assert plain["file-size-in-bytes"] == len(read(plain["file-path"]) or b"")
    (task,) = plan(metadata, {"stats-fields": ["ID", "ts", "price"], "case-sensitive": False})[
        "file-scan-tasks"
    ]
    found = task["data-file"]
    keys = [1, 4, 7]
    assert found["value-counts"] == {"keys": keys, "values": [3, 3, 3]}
    assert found["null-value-counts"] == {"keys": keys, "values": [1, 1, 1]}
    assert found["column-sizes"]["keys"] == keys
    assert found["lower-bounds"] == {
        "keys": keys,
        "values": [1, "0.25", "2019-12-31T12:00:00.000000"],
    }
    assert found["upper-bounds"] == {
        "keys": keys,
        "values": [3, "0.75", "2020-01-03T02:00:00.000000"],
    }


def test_partition_values_are_in_the_order_of_the_spec(tmp_path: Path) -> None:
    fields = ["identity price", "day ts", "bucket[4] id", "identity name", "hour tz", "void flag"]
    table = created(tmp_path / "t", COLUMNS, spec=spec(*fields))
    append(table, [row(3), NOTHING])
    found = [each["data-file"] for each in plan(metadata_of(table), {})["file-scan-tasks"]]
    hour = int(row(3)["tz"].timestamp()) // 3600
    assert [each["partition"] for each in found] == [
        ["0.75", "2020-01-03", 3, "a03", hour, None],
        [None] * 6,
    ]


def test_a_filter_on_a_transform_prunes_by_the_field_of_that_transform(tmp_path: Path) -> None:
    table = created(tmp_path / "t", COLUMNS, spec=spec("bucket[4] id"))
    append(table, [row(each) for each in range(12)])
    metadata = metadata_of(table)

    def planned(transform: str, value: Any) -> list[Any]:
        term = {"type": "transform", "transform": transform, "term": "id"}
        json_filter = {"type": "eq", "term": term, "value": value}
        tasks = plan(metadata, {"filter": json_filter})["file-scan-tasks"]
        return [(each["data-file"]["partition"], each["residual-filter"]) for each in tasks]

    true = {"type": "not-in", "term": "id", "values": []}
    assert planned("bucket[4]", 3) == [([3], true)]
    other = planned("bucket[8]", 3)
    assert len(other) == 4
    term = {"type": "transform", "transform": "bucket[8]", "term": "id"}
    assert {str(each) for _, each in other} == {str({"type": "eq", "term": term, "value": 3})}


def test_every_task_has_the_filter_that_is_left(tmp_path: Path) -> None:
    table = created(tmp_path / "t", COLUMNS, spec=spec("day ts"))
    for each in ("2020-01-01", "2020-01-02"):
        start = datetime.fromisoformat(each)
        append(table, [{**row(1), "ts": start + timedelta(hours=hour)} for hour in (1, 5, 9)])
    request = request_of(e.GreaterThan("ts", datetime.fromisoformat("2020-01-01T04:00:00")))
    tasks = plan(metadata_of(table), request)["file-scan-tasks"]
    left = {each["data-file"]["partition"][0]: each["residual-filter"] for each in tasks}
    assert left == {
        "2020-01-01": {"type": "gt", "term": "ts", "value": "2020-01-01T04:00:00.000000"},
        "2020-01-02": {"type": "not-in", "term": "id", "values": []},
    }


def test_a_plan_ends_when_it_has_the_rows_that_are_wanted(tmp_path: Path) -> None:
    table = created(tmp_path / "t", COLUMNS)
    appends(table, 1, 2, 3, 4)
    metadata = metadata_of(table)
    for wanted, files in ((0, 1), (1, 1), (3, 3), (100, 4)):
        assert len(paths(plan(metadata, {"min-rows-requested": wanted}))) == files
    # No row of a file with a filter left is certain to match.
    append(table, [row(7), row(9)])
    uncertain = request_of(e.EqualTo("id", 9), min_rows_requested=1)
    assert ids_planned(table, uncertain) == {7}


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ([], "not Iceberg scan request"),
        ({"snapshot-id": "x"}, r"Expected `int \| null`.*\$.snapshot-id"),
        ({"snapshot-id": 2**63}, r"not Iceberg scan request"),
        ({"snapshot-id": 5}, r"\$\.snapshot-id: snapshot 5 is not in the table"),
        ({"end-snapshot-id": 5}, r"\$\.end-snapshot-id: snapshot 5 is not in the table"),
        ({"start-snapshot-id": 5}, r"\$\.end-snapshot-id: start-snapshot-id requires it"),
        ({"snapshot-id": 5, "start-snapshot-id": 5}, r"\$\.snapshot-id: a scan is of one"),
        ({"snapshot-id": 5, "end-snapshot-id": 5}, r"\$\.snapshot-id: a scan is of one"),
        ({"select": "id"}, r"\$\.select"),
        ({"select": ["id", "nope"]}, r"\$\.select\[1\]: column nope does not exist"),
        ({"stats-fields": ["nope"]}, r"\$\.stats-fields\[0\]: column nope does not exist"),
        ({"case-sensitive": 1}, r"\$\.case-sensitive"),
        ({"filter": {"type": "eq", "term": "id", "value": "x"}}, r"\$\.filter\.value: column id"),
        ({"filter": 1}, r"\$\.filter: 1 is no JSON object"),
        ({"min-rows-requested": "1"}, r"\$\.min-rows-requested"),
    ],
    ids=str,
)
def test_an_invalid_request_is_rejected_with_its_place(
    request_: Any, message: str, tmp_path: Path
) -> None:
    table = created(tmp_path / "t", COLUMNS)
    appends(table, 1)
    with pytest.raises(InvalidInputError, match=message):
        plan(metadata_of(table), request_)


@pytest.mark.parametrize("body", [b"", b"{", b"\xff", b"[" * 100_000, b'{"filter":' * 2000])
def test_a_request_that_is_no_json_is_rejected(body: bytes, tmp_path: Path) -> None:
    metadata = metadata_of(created(tmp_path / "t", COLUMNS))
    with pytest.raises(InvalidInputError, match="not Iceberg scan request"):
        plan_table_scan(body, metadata, read)


def test_a_start_that_is_no_ancestor_is_rejected(tmp_path: Path) -> None:
    table = created(tmp_path / "t", COLUMNS)
    first, second = appends(table, 1, 2)
    request = {"start-snapshot-id": second, "end-snapshot-id": first}
    with pytest.raises(InvalidInputError, match=f"{second} is not an ancestor of snapshot {first}"):
        plan(metadata_of(table), request)


def test_requests_may_have_unknown_keys_nulls_and_columns_of_every_table(tmp_path: Path) -> None:
    table = created(tmp_path / "t", COLUMNS)
    appends(table, 1)
    request = {"filter": None, "snapshot-id": None, "select": None, "later": {"a": 1}}
    assert len(paths(plan(metadata_of(table), request))) == 1
    special = {"select": ["id", "_file", "_pos", "_partition.p0", "_spec_id", "_row_id"]}
    assert len(paths(plan(metadata_of(table), special))) == 1


def test_a_manifest_that_may_not_be_read_is_named(tmp_path: Path) -> None:
    table = created(tmp_path / "t", COLUMNS)
    appends(table, 1)

    def read_lists_only(url: str) -> bytes | None:
        return read(url) if "/snap-" in url else None

    with pytest.raises(NotFoundError, match="does not exist, or its location is not allowed"):
        plan_table_scan(b"{}", metadata_of(table), read_lists_only)


def test_a_manifest_of_an_unknown_spec_is_named(tmp_path: Path) -> None:
    table = created(tmp_path / "t", COLUMNS)
    appends(table, 1)
    other = attrs.evolve(metadata_of(table), partition_specs=(LedgerSpec(7),), default_spec_id=7)
    with pytest.raises(UnsupportedError, match="of partition spec 0, which the table does not"):
        plan(other, {})
