"""A handle that trusts the log reads nothing else: every public reader, with all caches forged."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

import ledger
from ledger import (
    FileChange,
    Function,
    Ledger,
    LedgerError,
    RenameColumn,
    Schema,
    Table,
    TableAt,
    TableBranch,
    ViewSchema,
)
from ledger.audit.query_views import QUERY_VIEWS
from ledger.cli import exits, main
from ledger.history.verifying import Subject, Verification
from ledger.stores import LocalStore
from ledger.table_handle import handle_of
from projections.source.bounds import Bounds
from projections.source.read_options import ReadOptions
from projections.source.span_planning import columns_of, spans
from projections.source.view import VIEWS
from projections.source.view_reading import read
from projections.statistics.spark_source import LogSource

CACHE = re.compile(
    r"(^|/)_ledger/(caches|checkpoints|names|segments|statistics|projections|leaving)/"
    r"|/(metadata|schema|snapshot|tag|manifest|_delta_log)/"
)
"""The files that FORMAT.md calls caches."""
COMMITS = 105

Reads = dict[str, Callable[[Any], object]]


def perhaps(of: Callable[[Any], object]) -> Callable[[Any], object]:
    """Return what may find nothing to do."""

    def ask(it: Any) -> None:
        with suppress(LedgerError):
            of(it)

    return ask


def each(of: Callable[[Any], Iterable[object]]) -> Callable[[Any], object]:
    return lambda it: list(of(it))


OF_LEDGERS: Reads = {
    "databases": lambda it: it.databases(),
    "dropped_tables": lambda it: it.dropped_tables(),
    "entries": each(lambda it: it.entries(last=500)),
    "events": each(lambda it: it.events()),
    "find_commit": lambda it: it.find_commit("id-there"),
    "find_everywhere": lambda it: it.find_everywhere("id-there"),
    "function": lambda it: it.function("shop.area"),
    "functions": lambda it: it.functions("shop"),
    "history": lambda it: it.history(),
    "is_begun": lambda it: it.is_begun,
    "is_erasable": lambda it: it.is_erasable,
    "ledger_id": lambda it: it.ledger_id,
    "plan_clock_correction": perhaps(lambda it: it.plan_clock_correction()),
    "plan_erasure": perhaps(lambda it: it.plan_erasure(author="ann")),
    "query": lambda it: [it.query(f"FROM {each}").to_pylist() for each in QUERY_VIEWS],
    "report": lambda it: it.report(),
    "state": lambda it: it.state,
    "table": lambda it: it.table("shop.orders"),
    "tables": lambda it: it.tables(),
    "url": lambda it: it.url,
    "view": lambda it: it.view("shop.seen"),
    "views": lambda it: it.views("shop"),
    "inspect_location": lambda it: it.inspect_location(),
}
OF_TABLES: Reads = {
    "at": lambda it: [it.at(version=7), it.at(snapshot=3), it.at(tag="v1")],
    "blame": lambda it: it.blame(),
    "branch": lambda it: it.branch("audit"),
    "column_id": lambda it: it.column_id("date"),
    "diff": lambda it: it.diff(1, COMMITS),
    "entries": each(lambda it: it.entries(last=500)),
    "events": each(lambda it: it.events()),
    "find_commit": lambda it: it.find_commit("id-50"),
    "freshness": lambda it: it.freshness(),
    "head": lambda it: it.head(3),
    "history": lambda it: it.history(),
    "identifier": lambda it: it.identifier,
    "location": lambda it: it.location,
    "plan": lambda it: it.plan([RenameColumn(("date",), "at")]),
    "plan_clock_correction": perhaps(lambda it: it.plan_clock_correction()),
    "plan_restore": lambda it: it.plan_restore(1),
    "plan_undo": lambda it: it.plan_undo(1),
    "replay": lambda it: list(it.replay()),
    "report": lambda it: it.report(),
    "schema": lambda it: it.schema,
    "schemas": each(lambda it: it.schemas()),
    "snapshots": lambda it: it.snapshots(),
    "state": lambda it: it.state,
    "to_arrow": lambda it: it.to_arrow(),
    "to_pandas": lambda it: it.to_pandas(),
    "to_polars": lambda it: it.to_polars(),
}
OF_INSTANTS: Reads = {
    "files": lambda it: it.files,
    "head": lambda it: it.head(3),
    "named": lambda it: it.named,
    "options": lambda it: it.options,
    "plan": lambda it: it.plan("id = 1"),
    "query": lambda it: [it.query(f"FROM {each}").to_pylist() for each in QUERY_VIEWS],
    "scan": lambda it: it.scan(),
    "schema": lambda it: it.schema,
    "snapshot": lambda it: it.snapshot,
    "state": lambda it: it.state,
    "tags": lambda it: it.tags,
    "to_arrow": lambda it: it.to_arrow(),
    "to_arrow_batch_reader": lambda it: it.to_arrow_batch_reader().read_all(),
    "to_duckdb": lambda it: it.to_duckdb().sql("FROM orders").fetchall(),
    "to_pandas": lambda it: it.to_pandas(),
    "to_polars": lambda it: it.to_polars(),
    "totals": lambda it: it.totals,
    "version": lambda it: it.version,
}
OF_LEDGER_HANDLES: Reads = {
    "cataloged_tables": lambda it: it.cataloged_tables(),
    "committed_before": lambda it: it.committed_before("id-there", ["something"]),
    "refuse_lost_root": lambda it: it.refuse_lost_root(),
    "streams": lambda it: [log.refresh() for _, log in it.streams()],
}
OF_TABLE_HANDLES: Reads = {
    "again": lambda it: it.again().state,
    "engine_files_at": lambda it: it.engine_files_at(it.state),
    "committed_before": lambda it: it.committed_before("id-50", ["something"]),
    "past_columns": lambda it: it.past_columns(it.state),
    "read_file": lambda it: it.read_file("real.parquet"),
}
OF_BRANCHES: Reads = {"state": lambda it: it.state, "at": lambda it: it.at().files}
WRITERS = {
    *("alter_database", "alter_view", "close", "correct_clock", "create_database"),
    *("create_table", "create_tables", "create_view", "drop_database", "drop_table"),
    *("drop_view", "erase"),
    *("import_table", "import_tables", "init", "promote", "record_alias", "record_copy"),
    *("record_move", "rename_table", "rename_view", "add_files", "alter", "append"),
    *("commit_snapshot", "create_branch", "create_tag"),
    *("delete_files", "delete_tag", "expire_snapshots", "overwrite"),
    *("project", "replace_sort_order", "replace_tag", "restore", "rollback", "sql"),
    *("set_partition_statistics", "set_statistics", "undo", "update_schema"),
    *("start_serving", "stop_serving", "plan_serving", "plan_stop_serving"),
    *("create_function", "alter_function", "drop_function"),
    *("undrop_table", "upgrade", "update_spec", "create", "delete", "fast_forward", "reset"),
}
OF_WHAT_THEY_ARE_GIVEN = {
    *("plan_import", "plan_promotion", "tables_to_import", "data_files", "new_files"),
}
"""They read another's files, or what their caller read."""
ABOUT_FILES = {"freshness", "inspect_location"}
"""They return how far projected files are, and where these lead."""


class LyingError(AssertionError):
    """A cache was asked for."""


@pytest.fixture
def lies(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """Return a function that makes stores reject reads of caches and lists the rejected ones."""
    asked: list[str] = []

    def reported(
        method: Callable[[LocalStore, str], object],
    ) -> Callable[[LocalStore, str], object]:
        def ask(its: LocalStore, key: str) -> object:
            if CACHE.search(f"/{key}") and not _is_about_files():
                asked.append(key)
                raise LyingError(key)
            return method(its, key)

        return ask

    def lie() -> list[str]:
        for name in ("read", "exists", "confirm"):
            monkeypatch.setattr(LocalStore, name, reported(getattr(LocalStore, name)))
        monkeypatch.setattr(LocalStore, "read_many", lambda it, keys: map(it.read, keys))
        return asked

    return lie


def _is_about_files() -> bool:
    frame = sys._getframe()
    while frame.f_back is not None:
        frame = frame.f_back
        if frame.f_code.co_name in ABOUT_FILES:
            return True
    return False


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a ledger with caches of every kind, and projected files, that is only read."""
    root = tmp_path_factory.mktemp("lived")
    lake = ledger.open(root, author="ann")
    lake.create_database("shop", commit_id="id-there")
    lake.create_view("shop.seen", ViewSchema(fields=(), query="SELECT 1"))
    lake.create_function("shop.area", Function())
    schema = Schema.of({"id": "INT", "day": "INT"}, options={"ledger.formats": "iceberg"})
    table = lake.create_table("shop.orders", schema)
    file = root / "shop.db" / "orders" / "real.parquet"
    file.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(
        pa.table({"id": pa.array([1], "int32"), "day": pa.array([2], "int32")}), file
    )
    table.add_files(str(file))
    names = [f"{number}.parquet" for number in range(COMMITS)]
    for number, name in enumerate(names):
        lost = FileChange(path=name, record_count=1, file_size_in_bytes=9)
        table.append([lost], commit_id=f"id-{number}")
    table.create_tag("v1", snapshot=2)
    table.branch("audit").create()
    table.delete_files(names)
    table.alter([RenameColumn(("day",), "date")])
    table.project("iceberg")
    assert main(["stats", "shop.orders", "--ledger", str(root)]) == exits.OK
    lake.close()
    return root


def of_every_handle(root: Path) -> list[tuple[Reads, Callable[[], Any], type]]:
    def lake() -> Ledger:
        return ledger.open(root, trust="log")

    def table() -> Table:
        return lake().table("shop.orders")

    return [
        (OF_LEDGERS, lake, Ledger),
        (OF_TABLES, table, Table),
        (OF_INSTANTS, lambda: table().at(), TableAt),
        (OF_BRANCHES, lambda: table().branch("audit"), TableBranch),
    ]


def test_every_public_reader_reads_the_log_alone(
    lived: Path, lies: Callable[[], list[str]]
) -> None:
    asked = lies()
    with pytest.raises(LyingError):
        ledger.open(lived).table("shop.orders")
    asked.clear()
    for reads, handle, kind in of_every_handle(lived):
        public = {name for name in dir(kind) if not name.startswith("_")}
        assert public == {*reads, *(WRITERS | OF_WHAT_THEY_ARE_GIVEN) & public}
        for name, how in reads.items():
            with suppress(LyingError):
                how(handle())
            assert asked == [], f"{kind.__name__}.{name}"


def test_what_handles_read_next_to_tables_is_the_log_alone(
    lived: Path, lies: Callable[[], list[str]]
) -> None:
    asked = lies()
    handles: list[tuple[Reads, Callable[[], Any]]] = [
        (OF_LEDGER_HANDLES, lambda: handle_of(ledger.open(lived, trust="log"))),
        (
            OF_TABLE_HANDLES,
            lambda: handle_of(ledger.open(lived, trust="log").table("shop.orders")),
        ),
    ]
    for reads, handle in handles:
        for name, how in reads.items():
            with suppress(LyingError):
                how(handle())
            assert asked == [], name


@pytest.mark.parametrize("view", VIEWS)
def test_spark_reads_the_log_alone_where_its_option_says_so(
    view: str, lived: Path, lies: Callable[[], list[str]]
) -> None:
    lies()
    options = {"path": str(lived), "table": "shop.orders", "view": view, "trust": "log"}
    asked = ReadOptions.of(options)
    assert columns_of(asked)
    rows = [b.num_rows for each in spans(asked, Bounds()) for b in read(each, view)]
    assert sum(rows) > 0
    with pytest.raises(LyingError):
        spans(ReadOptions.of({**options, "trust": "all"}), Bounds())


COMMANDS = [
    *("ls", "show shop.orders", "show shop.orders --version 50", "head shop.orders"),
    *("snapshots shop.orders", "log shop.orders", "log --all", "diff shop.orders 1 50"),
    *("blame shop.orders", "replay shop.orders", "plan shop.orders --rename date=at"),
    *("stats shop.orders", "stats shop.orders --history", "stats shop.orders --ask growth"),
    *("view list shop", "erase --person nobody"),
]


@pytest.mark.parametrize("line", COMMANDS)
def test_commands_read_the_log_alone_where_an_option_says_so(
    line: str, lived: Path, lies: Callable[[], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    asked = lies()
    code = main([*line.split(), "--ledger", str(lived), "--trust", "log"])
    assert asked == []
    assert code == exits.OK, capsys.readouterr()


def test_executors_that_count_statistics_read_the_log_alone_as_their_table_does(
    lived: Path, lies: Callable[[], list[str]]
) -> None:
    table = ledger.open(lived, trust="log").table("shop.orders")
    asked = lies()
    assert LogSource.of(table).log().refresh() == table.state
    assert asked == []


def test_verification_reads_caches_whatever_is_trusted(lived: Path, tmp_path: Path) -> None:
    root = tmp_path / "lake"
    shutil.copytree(lived, root)
    log = handle_of(ledger.open(root, trust="log").table("shop.orders")).log
    subject = Subject("shop.orders", log, has_files=True)
    assert [*Verification(subject).run()] == []
    (checkpoint,) = root.glob("shop.db/orders/_ledger/caches/*/*0.json")
    checkpoint.write_bytes(b"{}")
    (found,) = Verification(subject).run()
    assert found.file.endswith(checkpoint.name)


def test_a_search_through_all_logs_reports_how_many_there_are(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path)
    lake.create_database("shop")
    for name in "ab":
        lake.create_table(f"shop.{name}", {"id": "INT"})
    reported: list[tuple[int, int]] = []
    found = lake.find_everywhere("nobody's", lambda done, of: reported.append((done, of)))
    assert found.entries == ()
    assert reported == [(1, 3), (2, 3), (3, 3)]
