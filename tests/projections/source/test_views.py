from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import (
    AddColumn,
    FileChange,
    InvalidInputError,
    RenameColumn,
    Schema,
    SetOption,
    Table,
    UnsupportedError,
    UpdateComment,
)
from ledger.events import SnapshotCommitted, TableEvent
from ledger.model import format_type, paths_of
from ledger.table_handle import handle_of
from projections.source.column_rows import schema_rows, walk_fields
from projections.source.span_reading import LogScan, SpanEnd, TransactionStep
from projections.source.view import VIEWS, view_of
from tests.histories import random_changes, start_schema
from tests.lakes import START_MILLIS, data_file, lake_on, memory, orders
from tests.projections.source.reading_all import rows_of
from tests.projections.statistics.lives import Life, a_table, together

SEEDS = st.integers(0, 10**6)


def lived(seed: int, steps: int = 25) -> Table:
    table = a_table()
    Life(table, seed).goes_on(steps)
    return table


def transactions_of(table: Table) -> list[TransactionStep[TableEvent]]:
    return [
        TransactionStep(commit, position, each)
        for commit in table.events()
        for position, each in enumerate(commit.transactions)
    ]


@settings(max_examples=8, deadline=None)
@given(SEEDS)
def test_commits_are_the_logs_transactions_in_order(seed: int) -> None:
    table = lived(seed)
    found = rows_of(table, "commits")

    wanted = transactions_of(table)
    assert [(row["version"], row["transaction"], row["commit_id"]) for row in found] == [
        (each.commit.version, each.position, each.transaction.id) for each in wanted
    ]
    assert [row["event_count"] for row in found] == [len(e.transaction.events) for e in wanted]
    assert {row["author"] for row in found} == {"tester"}
    assert (found[0]["parent"], found[1]["parent"][:7]) == (None, "sha256:")


@settings(max_examples=8, deadline=None)
@given(SEEDS)
def test_events_can_be_read_back_from_their_rows(seed: int) -> None:
    table = lived(seed)
    found = rows_of(table, "events")

    wanted = [
        (each.commit.version, each.position, position, event)
        for each in transactions_of(table)
        for position, event in enumerate(each.transaction.events)
    ]
    decoder = msgspec.json.Decoder(TableEvent)
    assert [
        (row["version"], row["transaction"], row["position"], decoder.decode(row["event"]))
        for row in found
    ] == wanted
    assert all(row["type"] == msgspec.json.decode(row["event"])["type"] for row in found)
    for row, (*_, event) in zip(found, wanted, strict=True):
        names = getattr(event, "field_names", ())
        path = None if not names or isinstance(names[0], tuple) else [*names]
        assert row["field_names"] == path
        assert row["field_id"] == getattr(event, "field_id", None)
        assert row["snapshot_id"] == getattr(event, "snapshot_id", None)


def test_an_event_on_several_lines_is_one_row() -> None:
    store = memory()
    table = orders(lake_on(store))
    table.append([data_file("a.parquet")])
    log = handle_of(table).log
    body = store.read(log.layout.commit(1))
    assert body is not None
    store.replace(log.layout.commit(1), body.replace(b'"files":[', b'"files":[\n'))

    found = [row for row in rows_of(table, "events") if row["version"] == 1]

    assert [row["type"] for row in found] == ["commitSnapshot"]
    assert msgspec.json.decode(found[0]["event"])["files"][0]["path"] == "a.parquet"


@settings(max_examples=8, deadline=None)
@given(SEEDS)
def test_snapshots_have_the_totals_that_the_table_had(seed: int) -> None:
    table = lived(seed)
    head = table.at().state

    for row in rows_of(table, "snapshots", length=100):
        if row["snapshot_id"] < head.earliest_snapshot_id:
            continue
        at = table.at(snapshot=row["snapshot_id"])
        assert at.snapshot is not None
        assert (row["version"], row["schema_id"], row["commit_kind"], row["commit_user"]) == (
            at.version,
            at.snapshot.schema_id,
            at.snapshot.commit_kind,
            at.snapshot.commit_user,
        )
        totals = at.totals
        assert (
            row["record_count"],
            row["file_count"],
            row["file_size_in_bytes"],
            row["last_file_creation_time"],
        ) == (
            totals.record_count,
            totals.file_count,
            totals.file_size_in_bytes,
            totals.last_file_creation_time,
        )


@settings(max_examples=8, deadline=None)
@given(SEEDS)
def test_file_rows_fold_to_the_live_files(seed: int) -> None:
    table = lived(seed)
    live: dict[str, dict[str, Any]] = {}
    for row in rows_of(table, "files"):
        if row["kind"] == "ADD":
            live[row["path"]] = row
        else:
            del live[row["path"]]

    specs = table.state.specs
    assert {path: (row["record_count"], row["partition"]) for path, row in live.items()} == {
        each.path: (
            each.record_count,
            {
                field.name: None if value is None else str(value)
                for field, value in zip(specs[each.spec_id].fields, each.partition, strict=True)
            },
        )
        for each in table.at().files
    }


@settings(max_examples=8, deadline=None)
@given(SEEDS)
def test_partitions_are_the_sums_of_the_live_files_and_of_their_changes(seed: int) -> None:
    table = lived(seed)
    live: dict[tuple[Any, ...], list[int]] = {}
    for each in table.at().files:
        key = (each.spec_id, tuple(map(str, each.partition)), each.content)
        sums = live.setdefault(key, [0, 0, 0])
        for place, number in enumerate((each.record_count, each.file_size_in_bytes, 1)):
            sums[place] += number
    changed: dict[tuple[Any, ...], list[int]] = {}
    for row in rows_of(table, "partition_changes"):
        sums = changed.setdefault(key_of(row), [0, 0, 0])
        names = ("delta_record_count", "delta_file_size_in_bytes", "delta_file_count")
        for place, name in enumerate(names):
            sums[place] += row[name]

    found = {
        key_of(row): [row["record_count"], row["file_size_in_bytes"], row["file_count"]]
        for row in rows_of(table, "partitions")
    }
    assert found == live == {key: sums for key, sums in changed.items() if sums[2]}


def place_of(row: dict[str, Any]) -> tuple[Any, ...]:
    """Return the position of a row; those of a snapshot in `tiles` come in no order."""
    return row["version"], str(row) if "transaction" not in row else ""


def key_of(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["spec_id"], tuple(map(str, row["partition"].values())), row["content"]


def evolving(seed: int, length: int = 30) -> Table:
    table = orders(lake_on(memory()), evolved_start())
    rng = random.Random(seed)
    for change in random_changes(rng, table.state.schema, length=length):
        try:
            table.alter([change])
        except InvalidInputError:
            # The table's formats forbid more than the fold does.
            continue
    return table


def evolved_start() -> Schema:
    return start_schema().with_options({"bucket": "2", "ledger.formats": "paimon"})


@settings(max_examples=8, deadline=None)
@given(SEEDS)
def test_columns_are_those_of_every_schema_that_there_was(seed: int) -> None:
    table = evolving(seed)
    found: dict[int, list[tuple[Any, ...]]] = {}
    for row in rows_of(table, "columns", length=7):
        found.setdefault(row["schema_id"], []).append(
            (tuple(row["field_names"]), row["field_id"], row["type"])
        )

    assert found.keys() == set(range(table.state.schema.id + 1))
    for schema in table.schemas():
        fields = {each.field.id: each.field for each in walk_fields(schema.fields)}
        assert found[schema.id] == [
            (path, field_id, format_type(fields[field_id].type))
            for path, field_id in paths_of(schema)
        ]


def test_a_columns_row_says_what_the_schema_says_of_it() -> None:
    schema = Schema.of({"id": "BIGINT NOT NULL", "day": "DATE"}, partition_keys=["day"])
    assert list(schema_rows(schema)) == [
        (0, 0, 0, None, ("id",), "id", "BIGINT NOT NULL", False, None, None, False, False),
        (0, 1, 1, None, ("day",), "day", "DATE", True, None, None, True, False),
    ]


def test_a_change_that_is_none_of_the_schema_makes_no_rows_of_columns() -> None:
    table = orders(lake_on(memory()))
    table.alter([AddColumn(("note",), "STRING")])
    table.create_tag("none") if table.state.snapshot else table.alter([UpdateComment("why")])
    table.append([])
    assert {row["version"] for row in rows_of(table, "columns")} == {0, 1, 2}


@settings(max_examples=5, deadline=None)
@given(SEEDS, st.integers(1, 9))
def test_however_versions_are_shared_out_the_rows_are_the_same(seed: int, length: int) -> None:
    table = lived(seed)
    for name, view in VIEWS.items():
        if view.is_history:
            assert sorted(rows_of(table, name, length=length), key=place_of) == sorted(
                rows_of(table, name), key=place_of
            )


def test_a_range_that_begins_after_a_checkpoint_folds_from_there() -> None:
    table = orders(lake_on(memory()))
    for number in range(230):
        table.alter([SetOption("k", str(number))])
    for name in ("columns", "snapshots", "files"):
        whole = [row for row in rows_of(table, name) if row["version"] >= 205]
        assert rows_of(table, name, first=205) == whole

    # Had it read them, it would have met these.
    for version in range(150):
        handle_of(table).log.store.delete(handle_of(table).log.layout.commit(version))
    assert len({row["version"] for row in rows_of(table, "columns", first=205)}) == 26


@settings(max_examples=8, deadline=None)
@given(SEEDS)
def test_an_earlier_end_gives_the_rows_of_then(seed: int) -> None:
    table = lived(seed)
    version = table.state.version // 2
    for name, view in VIEWS.items():
        found = rows_of(table, name, end=SpanEnd(version))
        if view.is_history:
            until = [row for row in rows_of(table, name) if row["version"] <= version]
            assert sorted(found, key=place_of) == sorted(until, key=place_of)
    files = rows_of(table, "partitions", end=SpanEnd(version))
    assert sum(row["file_count"] for row in files) == table.at(version=version).totals.file_count


def test_writers_that_share_a_commit_have_rows_each_and_an_end_may_lie_between_them() -> None:
    table = a_table()
    life = Life(table, 1)
    batches = [life.files(9), life.files(9), life.files(9)]
    together(table, [lambda files=each: table.append(files) for each in batches])  # type: ignore[misc]
    commits = rows_of(table, "commits")
    version = next(row["version"] for row in commits if row["transaction"])
    crowded = [row for row in commits if row["version"] == version]

    assert [row["transaction"] for row in crowded] == list(range(len(crowded)))
    some = rows_of(table, "snapshots", end=SpanEnd(version, 1))
    assert len(some) == 4 - len(crowded)
    then = rows_of(table, "partitions", end=SpanEnd(version, 1))
    assert sum(row["file_count"] for row in then) == some[-1]["file_count"]
    assert some[-1]["file_count"] < table.state.totals.file_count


def test_tags_are_those_of_the_instant() -> None:
    table = a_table()
    table.append([])
    table.create_tag("v1", time_retained_millis=5)
    table.create_tag("v2")
    table.delete_tag("v1")

    assert [row["tag_name"] for row in rows_of(table, "tags")] == ["v2"]
    (first,) = rows_of(table, "tags", end=SpanEnd(2))
    assert (first["tag_name"], first["snapshot_id"], first["time_retained_millis"]) == ("v1", 1, 5)
    assert first["create_time"] == datetime.fromtimestamp(
        table.at(version=2).state.tags["v1"].create_time_millis / 1000, UTC
    )


def test_times_of_imported_history_are_shown_next_to_those_of_the_log() -> None:
    table = orders(lake_on(memory()))
    table.alter([SetOption("k", "v")], effective_time=table.state.effective_millis + 1)
    row = rows_of(table, "commits")[1]
    millis = (row["effective_time"] - row["time"]).total_seconds() * 1000
    assert millis == table.state.effective_millis - table.state.time_millis < 0
    assert row["time"] > datetime.fromtimestamp(START_MILLIS / 1000, UTC)


def test_files_in_an_engines_own_manifests_are_rejected_and_not_left_out() -> None:
    table = orders(lake_on(memory()))
    event = SnapshotCommitted(
        snapshot_id=1,
        schema_id=0,
        commit_user="flink",
        commit_kind="APPEND",
        total_record_count=3,
        delta_record_count=3,
        delta_manifest_list="manifest-list-1",
    )
    scan = LogScan(handle_of(table), 0, SpanEnd(0))
    with pytest.raises(UnsupportedError, match="manifest-list-1"):
        scan.files(next(scan.steps()), event)


def test_a_renamed_column_keeps_its_id_in_the_rows() -> None:
    table = orders(lake_on(memory()))
    table.alter([RenameColumn(("amount",), "cents")])
    of_two = [row for row in rows_of(table, "columns") if row["field_id"] == 2]
    assert [(row["schema_id"], row["name"]) for row in of_two] == [(0, "amount"), (1, "cents")]
    scan = LogScan(handle_of(table), 0, SpanEnd(1))
    assert scan.before() is None
    assert scan.final() == table.state


@pytest.mark.parametrize("view", VIEWS)
def test_only_a_column_that_says_so_holds_nulls(view: str) -> None:
    table = orders(lake_on(memory()))
    bare = FileChange(
        path="bare.parquet", partition=("2013-01-01",), record_count=1, file_size_in_bytes=1
    )
    table.append([bare])
    table.create_tag("kept")

    rows = rows_of(table, view)

    assert rows
    assert {name for row in rows for name, value in row.items() if value is None} <= {
        each.name for each in view_of(view).columns if each.nullable
    }
