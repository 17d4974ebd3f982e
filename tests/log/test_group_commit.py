"""Many threads' transactions in one commit: each is committed once, or its thread raises."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
from msgspec.structs import replace

from ledger import (
    AddColumn,
    CommitConflictError,
    CommitUnknownError,
    DropColumn,
    FileChange,
    InvalidChangeError,
    RenameColumn,
    Schema,
    SetOption,
    SnapshotPlan,
    Table,
    UpdateColumnType,
)
from ledger.decide.schema_rules import validate_schema
from ledger.state import Rules
from ledger.stores import MemoryStore, Store
from ledger.table_handle import handle_of
from projections.iceberg import materialise as iceberg
from projections.iceberg import read_metadata
from projections.paimon import PAIMON, verify
from tests.faults import Wrapped
from tests.lakes import data_file, lake_on, memory, no_time


class Gate(Wrapped):
    """Holds the first commit back until it is released; the others queue behind it."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.closed = False
        self.waiting = threading.Event()
        self.opened = threading.Event()
        self.answers: list[OSError] = []

    def create(self, key: str, body: bytes) -> bool:
        if self.closed:
            self.closed = False
            self.waiting.set()
            assert self.opened.wait(30)
        elif self.answers:
            raise self.answers.pop()
        return self.inner.create(key, body)

    def read(self, key: str) -> bytes | None:
        if self.answers:
            raise self.answers.pop()
        return self.inner.read(key)

    def confirm(self, key: str) -> bytes | None:
        return self.read(key)


class Crowd:
    """Threads that ask while one commit is under way, in the order in which they are named."""

    def __init__(self, schema: Schema | None = None) -> None:
        self.gate = Gate(memory())
        self.lake = lake_on(self.gate, retry_policy=no_time())
        self.lake.create_database("db")
        self.table = self.lake.create_table("db.t", schema or Schema.of({"id": "INT", "b": "INT"}))

    def asks(self, *work: Callable[[Table], object]) -> list[Future[object]]:
        """Submit all at once; the first commits alone, the others share the commit after it."""
        self.gate.closed = True
        with ThreadPoolExecutor(len(work) + 1) as pool:
            first = pool.submit(self.table.alter, [SetOption("first", "1")])
            assert self.gate.waiting.wait(30)
            asked = []
            for number, each in enumerate(work, 1):
                asked.append(pool.submit(each, self.table))
                self._gathered(number)
            self.gate.opened.set()
            first.result(30)
        return asked

    def _gathered(self, count: int) -> None:
        """Wait for one more in the queue; who is refused on sight looks again and comes to none."""
        queue = handle_of(self.table).appender._queue
        for _ in range(300):
            if len(queue) == count:
                return
            threading.Event().wait(0.001)


def adds(name: str, **options: object) -> Callable[[Table], object]:
    return lambda table: table.alter([AddColumn((name,), "INT")], **options)  # type: ignore[arg-type]


def appends(name: str, schema_id: int = 0) -> Callable[[Table], object]:
    return lambda table: table.append([file(name, schema_id)])


def file(name: str, schema_id: int = 0) -> FileChange:
    return replace(data_file(name), partition=(), schema_id=schema_id, field_ids=True)


def reopened(table: Table) -> Table:
    store: Store = MemoryStore(handle_of(table).log.store.url.removeprefix("memory://"))
    return lake_on(store).table("db.t")


def test_all_waiting_transactions_are_committed_together_each_with_its_own_name() -> None:
    crowd = Crowd()

    asked = crowd.asks(*(adds(f"c{n}", author=f"a{n}", message=f"m{n}") for n in range(16)))

    assert {each.result().version for each in asked} == {2}  # type: ignore[attr-defined]
    table = reopened(crowd.table)
    commit = list(table.events())[-1]
    assert [(each.author, each.message) for each in commit.transactions] == [
        (f"a{n}", f"m{n}") for n in range(16)
    ]
    assert table.at().schema.names == ("id", "b", *(f"c{n}" for n in range(16)))
    assert table.at().schema.id == 17
    assert [each.id for each in table.schemas()] == list(range(17, -1, -1))


def test_one_that_is_refused_harms_no_other() -> None:
    crowd = Crowd()

    good, bad, other = crowd.asks(
        adds("x"),
        lambda table: table.alter([AddColumn(("b",), "INT")]),
        adds("y"),
    )

    with pytest.raises(InvalidChangeError, match="b exists already"):
        bad.result()
    assert good.exception() is None
    assert other.exception() is None
    assert reopened(crowd.table).at().schema.names == ("id", "b", "x", "y")


def test_a_conflict_inside_a_commit_names_the_transaction_that_came_first() -> None:
    crowd = Crowd()

    first, second, third = crowd.asks(
        lambda table: table.alter([RenameColumn(("b",), "c")], author="ann"),
        lambda table: table.alter([RenameColumn(("b",), "d")], author="bob"),
        lambda table: table.alter([DropColumn(("b",))], author="cem"),
    )

    assert first.exception() is None
    with pytest.raises(CommitConflictError) as raised:
        second.result()
    assert (raised.value.author, raised.value.version, raised.value.cell) == (
        "ann",
        2,
        "column 1 name",
    )
    # The column that was meant is called c by now.
    assert third.exception() is None
    assert reopened(crowd.table).at().schema.names == ("id",)


def test_the_same_commit_id_twice_is_committed_once() -> None:
    crowd = Crowd()
    work = adds("x", commit_id="mine")
    with ThreadPoolExecutor(4) as pool:
        done = [each.result() for each in [pool.submit(work, crowd.table) for _ in range(4)]]
    assert len({each.version for each in done}) == 1  # type: ignore[attr-defined]
    assert sum(not each.repeated for each in done) == 1  # type: ignore[attr-defined]
    assert len(list(reopened(crowd.table).events())) == 2


def test_the_same_snapshot_key_twice_is_committed_once() -> None:
    crowd = Crowd()

    def plan(table: Table) -> object:
        plan = SnapshotPlan("APPEND", (file("a.parquet"),), commit_user="job", commit_identifier=1)
        return table.commit_snapshot(plan)

    one, other = crowd.asks(plan, plan)

    assert {one.result().version, other.result().version} == {2}  # type: ignore[attr-defined]
    assert reopened(crowd.table).at().snapshot.id == 1  # type: ignore[union-attr]


def test_a_writer_that_expects_a_version_commits_alone() -> None:
    crowd = Crowd()

    x, alone, y = crowd.asks(adds("x"), adds("z", expect_version=2), adds("y"))

    assert [each.result().version for each in (x, alone, y)] == [2, 3, 4]  # type: ignore[attr-defined]
    counts = [len(each.transactions) for each in reopened(crowd.table).events()]
    assert counts == [1, 1, 1, 1, 1]


def test_an_unknown_outcome_is_raised_to_each_caller_with_its_own_id() -> None:
    crowd = Crowd()
    crowd.gate.answers = []

    def breaks(table: Table) -> object:
        # From now on the store answers no request.
        crowd.gate.answers += [OSError("gone")] * 10_000
        return adds("x", commit_id=None)(table)

    asked = crowd.asks(adds("w"), breaks)
    for each in asked:
        with pytest.raises(CommitUnknownError) as raised:
            each.result()
        assert raised.value.commit_id in str(raised.value)
    crowd.gate.answers.clear()
    assert reopened(crowd.table).at().schema.names == ("id", "b")


def test_every_snapshot_of_one_commit_can_be_read() -> None:
    crowd = Crowd()
    crowd.table.append([file("a.parquet")])

    done = crowd.asks(
        appends("b.parquet"),
        adds("x"),
        lambda table: table.delete_files(["a.parquet"]),
        appends("c.parquet"),
    )

    assert {each.result().version for each in done} == {3}  # type: ignore[attr-defined]
    table = reopened(crowd.table)
    live = {n: [each.path for each in table.at(snapshot=n).files] for n in (1, 2, 3, 4)}
    assert live == {
        number: [f"{each}.parquet" for each in names]
        for number, names in enumerate(("a", "ab", "b", "bc"), 1)
    }
    assert [table.at(snapshot=n).schema.id for n in (2, 3)] == [1, 2]
    assert table.at(snapshot=2).totals.file_count == 2


def test_a_rollback_to_the_middle_of_a_commit_takes_back_the_rest() -> None:
    crowd = Crowd()
    crowd.table.append([file("a.parquet")])
    crowd.asks(
        appends("b.parquet"), lambda table: table.delete_files(["a.parquet"]), appends("c.parquet")
    )
    table = reopened(crowd.table)

    table.rollback(snapshot=2)

    assert sorted(each.path for each in table.at().files) == ["a.parquet", "b.parquet"]
    assert sorted(each.path for each in reopened(table).at(snapshot=3).files) == ["b.parquet"]


def test_paimons_files_list_every_snapshot_of_one_commit() -> None:
    crowd = Crowd()
    crowd.table.append([file("a.parquet")])
    crowd.asks(
        appends("b.parquet"),
        adds("x"),
        lambda table: table.delete_files(["a.parquet"]),
        adds("y"),
        appends("c.parquet"),
    )
    table = reopened(crowd.table)

    PAIMON.project(handle_of(table))

    assert verify(handle_of(table)).is_empty
    store = handle_of(table).log.store
    names = {key.rsplit("/", 1)[1] for key in store.keys("db.db/t/snapshot")}
    assert names >= {"snapshot-1", "snapshot-2", "snapshot-3", "snapshot-4"}
    assert {key.rsplit("/", 1)[1] for key in store.keys("db.db/t/schema")} == {
        f"schema-{n}" for n in range(4)
    }


def test_icebergs_files_list_every_snapshot_of_one_commit_with_its_schema() -> None:
    crowd = Crowd()
    crowd.table.append([file("a.parquet")])
    crowd.asks(
        appends("b.parquet"),
        adds("x"),
        lambda table: table.delete_files(["a.parquet"]),
        adds("y"),
        appends("c.parquet"),
    )
    table = reopened(crowd.table)

    iceberg.project(handle_of(table))

    assert iceberg.verify(handle_of(table)).is_empty
    body = handle_of(table).log.store.read("db.db/t/metadata/v3.metadata.json")
    assert body is not None
    metadata = read_metadata(body)
    assert [each.schema_id for each in metadata.snapshots] == [0, 0, 2, 3]
    assert [each.summary["total-data-files"] for each in metadata.snapshots if each.summary] == [
        "1",
        "2",
        "1",
        "2",
    ]
    assert [each.schema_id for each in metadata.schemas] == [0, 2, 3]


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[Schema]:
    """The schemas that rules of whole schemas are asked about."""
    judged: list[Schema] = []

    def judge(schema: Schema, rules: Rules) -> None:
        judged.append(schema)
        validate_schema(schema, rules)

    monkeypatch.setattr("ledger.decide.schema_batch.validate_schema", judge)
    return judged


def test_what_joins_others_is_judged_once(judged: list[Schema]) -> None:
    crowd = Crowd()

    crowd.asks(*(sets(f"team.{number}", "1") for number in range(4)))

    assert len(judged) == 5


def test_a_request_alongside_other_processes_is_validated_once(judged: list[Schema]) -> None:
    mine, other = beside_another()
    sets("other.more", "1")(other)
    judged.clear()

    sets("team.b", "1")(mine)

    assert len(judged) == 1
    assert judged[0].options == {"other.a": "1", "other.more": "1", "team.a": "1", "team.b": "1"}


def beside_another() -> tuple[Table, Table]:
    """Return a handle that has just met commits of another, and that other one."""
    mine = Crowd().table
    other = reopened(mine)
    sets("other.a", "1")(other)
    sets("team.a", "1")(mine)
    return mine, other


def sets(key: str, value: str) -> Callable[[Table], object]:
    return lambda table: table.alter([SetOption(key, value)])


REFUSED: dict[str, Callable[[Table], object]] = {
    "no such column": lambda table: table.alter([DropColumn(("zip",))]),
    "a rule of Paimon's": sets("bucket", "-7"),
    "a rule of Iceberg's": lambda table: table.alter([UpdateColumnType(("id",), "TINYINT")]),
    "a rule for commits": sets("ledger.freeze", "for ever"),
    "a wrong list of formats": sets("ledger.formats", "orc"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_rejection_in_a_group_reads_as_one_of_a_single_writer(kind: str) -> None:
    with pytest.raises(InvalidChangeError) as alone:
        REFUSED[kind](Crowd().table)

    (asked,) = Crowd().asks(REFUSED[kind])
    with pytest.raises(InvalidChangeError) as beside:
        REFUSED[kind](beside_another()[0])

    for error in (asked.exception(), beside.value):
        assert (type(error), str(error)) == (type(alone.value), str(alone.value))


def test_a_change_that_was_possible_when_asked_conflicts_with_the_group_it_joins() -> None:
    crowd = Crowd(Schema.of({"id": "INT", "b": "INT"}, primary_keys=["id"]))

    _, lost = crowd.asks(
        sets("sequence.field", "b"), lambda table: table.alter([DropColumn(("b",))])
    )

    error = lost.exception()
    assert isinstance(error, CommitConflictError)
    assert "was possible at version" in str(error)
