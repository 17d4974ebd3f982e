from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from attrs import evolve, frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from ledger import FileChange
from ledger.events import SchemaRecord, TableCreated, TableEvent, TableName
from ledger.files import Net, Placed, to_table
from ledger.files.live import change_tables, live_tables
from ledger.log import Appender, Commit, Request, at_version, head_state
from ledger.model import PartitionField, PartitionSpec, field_to_wire
from ledger.model import types as t
from ledger.planning import FilePlan, plan_files
from ledger.planning.filter import column_named
from ledger.planning.plan import TableFilter, map_values_for_key, plan, plan_tables
from ledger.state import TableState
from ledger.stores import open_store
from tests.files.building import Table
from tests.planning.test_plan import SCHEMA, SPECS, bounded, file
from tests.thorough import examples

WHERES: list[Any] = [
    None,
    "ts >= '2024-01-20'",
    "id > 80",
    "category = 'b' OR id = 7",
    "ts >= '2024-01-20' AND id < 30 AND category IN ('a', 'b')",
    [("category", "in", [])],
]


def random_file(random_of: random.Random, path: str) -> FileChange:
    low = random_of.randrange(100)
    metrics = bounded(0, SCHEMA.field("id").type, low, low + random_of.randrange(20))
    spec_id = random_of.randrange(4)
    partition: tuple[Any, ...] = {
        0: (f"2024-01-{random_of.randrange(1, 32):02d}",),
        1: (random_of.choice([647, 648, None]),),
        2: (random_of.choice(["a", "b", "", None]),),
        3: (),
    }[spec_id]
    return file(path, spec_id, *partition, **(metrics if random_of.random() < 0.8 else {}))


def random_history(
    seed: int, commits: int, new_file: Callable[[random.Random, str], FileChange]
) -> Iterator[list[FileChange]]:
    """Yield commits whose files come, go and come back."""
    random_of = random.Random(seed)
    live: dict[str, FileChange] = {}
    gone: list[str] = []
    for number in range(commits):
        changes = [new_file(random_of, f"{number}-{nth}") for nth in range(2)]
        if live and random_of.random() < 0.6:
            path = random_of.choice(list(live))
            gone.append(path)
            changes.append(replace(live.pop(path), kind="DELETE"))
        elif gone and random_of.random() < 0.5:
            changes.append(new_file(random_of, gone.pop()))
        live.update({each.path: each for each in changes if each.kind == "ADD"})
        yield changes


def placed(changes: list[FileChange]) -> list[Placed]:
    return [Placed(0, 0, each) for each in changes]


@frozen
class Created:
    base_version: int | None = None

    def index_winners(self, _winners: Sequence[Commit[TableEvent]]) -> None:
        pass

    def decide(
        self, _state: TableState | None, _winners: Sequence[Commit[TableEvent]]
    ) -> tuple[TableEvent, ...]:
        schema = SchemaRecord(
            fields=tuple(map(field_to_wire, SCHEMA.fields)),
            highest_field_id=2,
            partition_keys=("category",),
            options={"ledger.formats": "iceberg"},
        )
        name = TableName("shop", "orders")
        return (TableCreated(identifier=name, table_id="t", path="t", schema=schema),)


class PartitionedTable(Table):
    """A table by category."""

    def __init__(self) -> None:
        self.store = open_store("memory://planned")
        self.log, self.live = self.reopened()
        self._appender = Appender(self.log, lambda: 0)
        self._appender.append(Created(), Request(commit_id="created", asked="00"))


BY_CATEGORY = (PartitionSpec(0, (PartitionField("category", "identity", 2, field_id=1000),)),)


def file_of_category(random_of: random.Random, path: str) -> FileChange:
    return replace(
        random_file(random_of, path),
        spec_id=0,
        partition=(random_of.choice(["a", "b", None]),),
    )


@pytest.fixture(scope="module")
def long_table() -> Table:
    table = PartitionedTable()
    for changes in random_history(11, 230, file_of_category):
        table.commit(*changes)
    return table


def assert_same(found: FilePlan, expected: FilePlan) -> None:
    assert found.files == expected.files
    assert found.by_spec == expected.by_spec
    assert found.counts == expected.counts
    assert [(each.file, each.reason.text) for each in found.pruned()] == [
        (each.file, each.reason.text) for each in expected.pruned()
    ]


@pytest.mark.parametrize("where", WHERES, ids=str)
@pytest.mark.parametrize("version", [0, 5, 100, 137, 230])
def test_a_table_is_planned_as_its_live_files_are(
    long_table: Table, version: int, where: Any
) -> None:
    files = list(long_table.live.at(version).values())
    expected = plan_files(files, schema=SCHEMA, specs=BY_CATEGORY, where=where)

    found = plan(
        long_table.log,
        at_version(long_table.log, version),
        schema=SCHEMA,
        specs=BY_CATEGORY,
        where=where,
    )

    assert_same(found, expected)


@pytest.mark.parametrize("where", WHERES, ids=str)
def test_tables_of_many_specs_are_planned_as_their_live_files_are(where: Any) -> None:
    commits = list(random_history(7, 60, random_file))
    live = Net(each for changes in commits for each in placed(changes)).added
    files = [each.change for each in live.values()]
    nets = [
        Net(each for changes in commits[start : start + 20] for each in placed(changes))
        for start in (40, 20, 0)
    ]
    tables = [to_table([each.change for each in net.rows()]) for net in nets]
    expected = plan_files(files, schema=SCHEMA, specs=SPECS, where=where)

    found = plan_tables(lambda: tables, TableFilter(SCHEMA, SPECS, where, {}))

    assert_same(found, expected)


def test_a_run_that_is_damaged_is_made_again_from_the_log(long_table: Table) -> None:
    files = list(long_table.live.at(230).values())
    expected = plan_files(files, schema=SCHEMA, specs=BY_CATEGORY, where="id > 80")
    key = long_table.log.layout.file_run(101, 200)
    body = long_table.log.store.read(key)
    assert body is not None
    try:
        long_table.log.store.replace(key, body[:-1])
        found = plan(
            long_table.log,
            head_state(long_table.log),
            schema=SCHEMA,
            specs=BY_CATEGORY,
            where="id > 80",
        )
        assert_same(found, expected)
    finally:
        long_table.log.store.replace(key, body)


def test_a_file_that_came_back_is_the_newer_one() -> None:
    one, other = file("a.parquet", 2, "a"), file("a.parquet", 2, "b")
    gone = replace(one, kind="DELETE")
    tables = [to_table([gone, other]), to_table([one])]
    table_filter = TableFilter(SCHEMA, SPECS, "category = 'a'", {})
    found = plan_tables(lambda: tables, table_filter)
    assert found.files == ()
    assert [each.file for each in found.pruned()] == [other]


def test_partitions_that_look_alike_stay_apart() -> None:
    files = [
        file("a.parquet", 2, None),
        file("b.parquet", 2, "null"),
        file("c.parquet", 2, ""),
        file("d.parquet", 2, "\x1f"),
    ]
    table_filter = TableFilter(SCHEMA, SPECS, [("category", "in", ["null", "\x1f"])], {})
    found = plan_tables(lambda: [to_table(files)], table_filter)
    assert [each.file.path for each in found.files] == ["b.parquet", "d.parquet"]


def test_live_rows_need_no_objects(long_table: Table) -> None:
    tables = list(live_tables(change_tables(long_table.log, head_state(long_table.log))))
    paths = [path for each in reversed(tables) for path in each["path"].to_pylist()]
    assert paths == list(long_table.live.at(230))


MANY = t.RowType((t.DataField(4, "member", t.DateType()),))
MANY_SCHEMA = evolve(
    SCHEMA,
    fields=(
        *SCHEMA.fields,
        t.DataField(3, "nanos", t.TimestampType(9)),
        t.DataField(5, "row", MANY),
        t.DataField(6, "small", t.TinyIntType()),
        t.DataField(7, "ratio", t.DoubleType()),
    ),
)


@pytest.mark.parametrize("op", ["=", "<", "<=", ">", ">=", "!=", "in", "not in"])
@pytest.mark.parametrize(
    ("name", "literals"),
    [
        ("id", [0, 4, 5, 9, 10, 2**63 - 1]),
        ("nanos", ["1970-01-01 00:00:00.000000005", "9999-12-31"]),
        ("row.member", ["1970-01-05", "1970-01-06", "1970-01-10", "9999-12-31"]),
        ("small", [4, 5, 9, 10]),
        ("ratio", [4.5, 5.0, 10.0]),
    ],
)
def test_bounds_decide_in_arrow_as_they_do_in_python(
    name: str, literals: list[Any], op: str
) -> None:
    column = column_named(MANY_SCHEMA, name)
    low, high = (5.0, 9.0) if name == "ratio" else (5, 9)
    known = bounded(column.id, column.type, low, high)
    shapes: list[dict[str, Any]] = [
        known,
        {**known, "lower_bounds": {}},
        {**known, "upper_bounds": {}},
        {**known, "null_value_counts": {column.id: 3}},
        {**known, "content": "equality-deletes"},
        {**known, "schema_id": 9},
        {**known, "lower_bounds": {column.id: "05000000"}},
        {},
    ]
    files = [file(str(nth), **each) for nth, each in enumerate(shapes)]
    for literal in literals:
        where = [(name, op, [literal] if "in" in op else literal)]
        expected = plan_files(files, schema=MANY_SCHEMA, specs=SPECS, where=where)
        table_filter = TableFilter(MANY_SCHEMA, SPECS, where, {})
        assert_same(plan_tables(lambda: [to_table(files)], table_filter), expected)


@settings(deadline=None, max_examples=examples(200))
@given(
    maps=st.lists(
        st.one_of(
            st.none(),
            st.just([(0, "a"), (1, "b"), (2, None)]),
            st.lists(st.tuples(st.integers(0, 3), st.none() | st.text("ab", max_size=2))),
        ),
        max_size=12,
    ),
    key=st.integers(0, 4),
    cut=st.tuples(st.integers(0, 12), st.integers(0, 12)),
)
def test_what_maps_say_of_a_key_is_what_looking_it_up_in_each_gives(
    maps: list[list[tuple[int, str | None]] | None], key: int, cut: tuple[int, int]
) -> None:
    found = pa.array(maps, pa.map_(pa.int64(), pa.string())).slice(min(cut), max(cut) - min(cut))
    expected = pc.map_lookup(found, query_key=key, occurrence="first")
    assert map_values_for_key(found, key).to_pylist() == expected.to_pylist()
