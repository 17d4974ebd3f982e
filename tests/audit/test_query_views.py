"""Views for queries in SQL agree with the calls for the same history, at every instant."""

from __future__ import annotations

import itertools
import random
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import attrs
import duckdb
import pyarrow as pa
import pytest

import ledger
from ledger import (
    InvalidInputError,
    Ledger,
    LedgerError,
    MissingDependencyError,
    NotFoundError,
    Table,
)
from ledger.audit.query_views import QUERY_VIEWS
from ledger.audit.views import Rows
from ledger.model.names import quote_path
from ledger.model.schema import paths_of
from tests.histories import random_changes, start_schema
from tests.lakes import START_MILLIS, data_file, lake_on, memory, orders
from tests.programs import ROOT

_numbers = itertools.count()
_NAMES = {"transaction": "commit_id"}
_LOG_NAMES = {
    **_NAMES,
    "table": "identifier",
    "kind": "type",
    "what": "description",
    "column": "field_path",
    "rows": "delta_record_count",
    "files": "delta_file_count",
    "bytes": "delta_file_size_in_bytes",
}
_SNAPSHOT_NAMES = {
    "snapshot": "snapshot_id",
    "kind": "commit_kind",
    "rows": "record_count",
    "change": "delta_record_count",
}


def renamed(rows: Rows, names: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{names.get(key, key): value for key, value in row.items()} for row in rows]


def of_table(rows: Rows, names: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"identifier": "shop.orders", **row} for row in renamed(rows, names)]


def lived(seed: int) -> Ledger:
    """A ledger with a table of a random life, one that is renamed, and one that is dropped."""
    rng, lake = random.Random(seed), lake_on(memory())
    table = orders(lake, attrs.evolve(start_schema(), primary_keys=(), options={}))
    lake.create_table("shop.early", {"id": "BIGINT"})
    lake.create_table("shop.gone", {"id": "BIGINT"})
    changes = random_changes(rng, table.schema, length=8)
    for number, change in enumerate(changes):
        with suppress(InvalidInputError):
            table.alter([change], author=f"author {number % 3}", message=f"change {number}")
        if rng.random() < 0.5:
            day = f"2024-01-0{rng.randrange(1, 4)}"
            table.append([data_file(f"{number}.parquet", day, rng.randrange(1, 9))])
        if number == 3:
            lake.rename_table("shop.early", "shop.late")
        if number == 5:
            lake.drop_table("shop.gone")
            table.create_tag("mid")
    return lake


def instants(lake: Ledger) -> list[int]:
    """The time of the newest commit, and of some before it, from the creation of a table on."""
    first = next(iter(lake.table("shop.orders").events())).time_millis
    times = sorted({each.time_millis for each in lake.entries() if each.time_millis >= first})
    return [*times[:: max(1, len(times) // 5)], times[-1]]


@pytest.fixture(scope="module")
def one() -> Ledger:
    return lived(0)


@pytest.fixture(scope="module", params=range(3))
def lake(request: pytest.FixtureRequest) -> Ledger:
    return lived(request.param)


def test_the_log_is_the_history_up_to_the_time(lake: Ledger) -> None:
    assert lake.query("FROM log").to_pylist() == renamed(lake.history(), _LOG_NAMES)
    for at in instants(lake):
        expected = renamed(lake.history(until=at), _LOG_NAMES)
        assert lake.query("FROM log", at=at).to_pylist() == expected


def test_tables_and_columns_are_those_of_the_time(lake: Ledger) -> None:
    table = lake.table("shop.orders")
    for at in instants(lake):
        then = table.at(timestamp=at)
        found = lake.query("FROM tables WHERE identifier = 'shop.orders'", at=at).to_pylist()
        totals = then.totals
        assert [(each["version"], each["schema_id"]) for each in found] == [
            (then.version, then.schema.id)
        ]
        assert (
            found[0]["record_count"],
            found[0]["file_count"],
            found[0]["file_size_in_bytes"],
        ) == (*(totals.record_count, totals.file_count, totals.file_size_in_bytes),)
        columns = lake.query(
            "SELECT path, field_id FROM columns WHERE identifier = 'shop.orders' ORDER BY position",
            at=at,
        )
        assert [tuple(each.values()) for each in columns.to_pylist()] == [
            (quote_path(path), field_id) for path, field_id in paths_of(then.schema)
        ]


def test_files_and_partitions_are_those_of_the_time(lake: Ledger) -> None:
    table = lake.table("shop.orders")
    for at in instants(lake):
        live = table.at(timestamp=at).files
        files = lake.query("FROM files", at=at).to_pylist()
        assert [(each["path"], each["record_count"]) for each in files] == [
            (each.path, each.record_count) for each in live
        ]
        sums = lake.query(
            "SELECT partition, sum(record_count)::BIGINT AS record_count, count(*) AS file_count, "
            "sum(file_size_in_bytes)::BIGINT AS file_size_in_bytes "
            "FROM files GROUP BY ALL ORDER BY ALL",
            at=at,
        )
        assert lake.query("FROM partitions SELECT * EXCLUDE identifier", at=at) == sums


def test_a_table_is_read_as_it_was_at_a_version(lake: Ledger) -> None:
    table = lake.table("shop.orders")
    for version in range(0, table.state.version + 1, 3):
        place = f"memory://query-views-{next(_numbers)}"
        table.replay(until=version).into_ledger(place)
        then = ledger.open(place).table("shop.orders")
        at = table.at(version=version)

        assert at.query("FROM log").to_pylist() == renamed(then.history(), _LOG_NAMES)
        assert at.query("FROM blame").to_pylist() == of_table(then.blame().rows, _NAMES)
        assert at.query("FROM snapshots").to_pylist() == of_table(then.snapshots(), _SNAPSHOT_NAMES)
        assert at.query("FROM columns") == then.at().query("FROM columns")


def test_the_newest_views_are_what_calls_return(lake: Ledger) -> None:
    table = lake.table("shop.orders")
    where = "WHERE identifier = 'shop.orders'"
    blame = of_table(table.blame().rows, _NAMES)
    assert lake.query(f"FROM blame {where}").to_pylist() == blame
    assert lake.query(f"FROM snapshots {where}").to_pylist() == of_table(
        table.snapshots(), _SNAPSHOT_NAMES
    )
    newest = {
        each["field_id"]: each["version"]
        for each in sorted(blame, key=lambda row: row["version"])
        if each["field_id"] is not None
    }
    columns = lake.query(f"SELECT field_id, version FROM columns {where}").to_pylist()  # noqa: S608
    assert {each["field_id"]: each["version"] for each in columns} == newest


def test_tables_have_the_names_of_the_time_and_dropped_ones_are_there(lake: Ledger) -> None:
    names = "SELECT identifier FROM tables"
    first = max(
        each.time_millis for each in lake.entries(kinds=["createTable"]) if each.table != ""
    )
    early = lake.query(names, at=first)["identifier"].to_pylist()
    now = lake.query(names)["identifier"].to_pylist()
    assert early == ["shop.early", "shop.gone", "shop.orders"]
    assert now == ["shop.late", "shop.orders"]


def test_before_the_ledger_there_is_nothing_to_query(one: Ledger) -> None:
    with pytest.raises(NotFoundError, match="nothing was there at"):
        one.query("FROM log", at=START_MILLIS - 1)


def test_views_have_the_columns_that_they_say(one: Ledger) -> None:
    for name, columns in QUERY_VIEWS.items():
        described = one.query(f"DESCRIBE FROM {name}").to_pylist()
        assert [each["column_name"] for each in described] == [*columns]
        unquoted = ", ".join(columns)
        assert one.query(f"SELECT {unquoted} FROM {name} LIMIT 0").num_rows == 0  # noqa: S608


def test_the_guide_lists_every_view_and_column() -> None:
    page = (ROOT / "ledger" / "docs" / "history.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| [^|]* \| (`.*`) \|$", page, re.MULTILINE)
    listed = {name: re.findall(r"`(\w+)`", columns) for name, columns in rows}
    assert {name: listed.get(name) for name in QUERY_VIEWS} == {
        name: [*columns] for name, columns in QUERY_VIEWS.items()
    }


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("COPY log TO 'stolen.csv'", "does more than read"),
        ("COPY (SELECT 1) TO 'stolen.csv'", "does more than read"),
        ("ATTACH 'other.db'", "does more than read"),
        ("INSTALL httpfs", "does more than read"),
        ("LOAD httpfs", "does more than read"),
        ("SET enable_external_access = true", "does more than read"),
        ("RESET lock_configuration", "does more than read"),
        ("PRAGMA enable_profiling", "does more than read"),
        ("CALL enable_logging(storage='file', storage_path='logs')", "does more than read"),
        ("EXPLAIN ANALYZE FROM log", "does more than read"),
        ("CREATE TABLE mine AS FROM log", "does more than read"),
        ("DROP VIEW log", "does more than read"),
        ("EXPORT DATABASE 'stolen'", "does more than read"),
        ("CREATE SECRET (TYPE s3)", "does more than read"),
        ("SELECT 1; SELECT 2", "has 2 statements; a query is one"),
        ("SELECT 1; COPY log TO 'stolen.csv'", "does more than read"),
        ("-- nothing", "has 0 statements; a query is one"),
        ("SELEC 1", 'cannot be parsed: syntax error at or near "SELEC"'),
        ("FROM read_csv('/etc/passwd')", "table function read_csv is not available"),
        ("FROM read_text('/etc/passwd')", "table function read_text is not available"),
        ("SELECT (FROM glob('/*') LIMIT 1)", "table function glob is not available"),
        ("WITH x AS (FROM read_parquet('http://host/x')) FROM x", "read_parquet is not available"),
        ("DESCRIBE SELECT * FROM read_blob('/etc/passwd')", "read_blob is not available"),
        ("FROM enable_logging(storage='file', storage_path='logs')", "enable_logging is not"),
        ("FROM enable_profiling(save_location='profile.json')", "enable_profiling is not"),
        ("FROM pandas_scan(1::BIGINT::POINTER)", "table function pandas_scan is not available"),
        ("FROM query('FROM read_csv(''/etc/passwd'')')", "table function query is not available"),
        ("FROM query_table('log')", "table function query_table is not available"),
        ("FROM duckdb_secrets()", "table function duckdb_secrets is not available"),
        ("FROM log, LATERAL (FROM sniff_csv('/etc/passwd'))", "sniff_csv is not available"),
        ("FROM '/etc/passwd'", "Table with name /etc/passwd does not exist"),
        ("FROM 'https://host/x.parquet'", "file system operations are disabled"),
        ("SELECT getenv('HOME')", "Scalar Function with name getenv does not exist"),
        ("FROM a_variable_of_python", "there are the views log, tables, columns, blame, "),
        (
            "SELECT nope FROM log",
            'Referenced column "nope" not found .* log has identifier, version',
        ),
        ("SELECT version, version FROM log", "2 columns of the result are called version"),
        ("SELECT identifier::INT FROM log", "Could not convert string"),
        ("SELECT ?", "fails"),
        ("SELECT " + "+".join("1" * 2000), "Max expression depth limit"),
        ("SELECT '" + "x" * 1_000_000 + "'", "a query has at most 1000000"),
        ("SELECT \ud800", "half a surrogate pair is no character"),
    ],
    ids=lambda each: each[:40].encode("ascii", "replace").decode(),
)
def test_a_statement_that_does_more_than_read_is_rejected(
    one: Ledger,
    statement: str,
    reason: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    a_variable_of_python = pa.table({"x": [1]})
    assert a_variable_of_python.num_rows == 1
    with pytest.raises(InvalidInputError, match=reason) as raised:
        one.query(statement)
    assert "\n" not in raised.value.message
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize(
    "statement",
    [
        "WITH a AS (FROM log) SELECT count(*) AS n FROM a",
        "VALUES (1)",
        "SHOW TABLES",
        "SUMMARIZE log",
        "FROM range(3)",
        "SELECT unnest([1, 2])",
        "SELECT key FROM log, json_each(event) LIMIT 1",
        "SELECT event->>'$.type' AS kind FROM log LIMIT 1",
        "(SELECT 1) UNION ALL (SELECT 2)",
        "/* all */ SELECT 1;",
        "SELECT a.version FROM log AS a JOIN log AS b USING (commit_id) LIMIT 1",
    ],
)
def test_a_statement_that_reads_runs(one: Ledger, statement: str) -> None:
    assert one.query(statement).num_rows > 0


def test_times_are_compared_and_shown_in_utc(one: Ledger) -> None:
    found = one.query("SELECT min(time) AS first, min(time)::VARCHAR AS text FROM log").to_pylist()
    assert found[0]["first"].timestamp() * 1000 == START_MILLIS
    assert found[0]["text"].startswith("2023-11-14 22:13:20")


class RowsCreatedError(Exception):
    """A view created rows."""


def test_only_the_views_that_a_query_names_create_rows() -> None:
    from ledger.audit.query import run_query

    def refused() -> Any:
        raise RowsCreatedError

    views = {
        name: Rows(columns, refused if name != "tables" else lambda: iter(()))
        for name, columns in QUERY_VIEWS.items()
    }
    assert run_query("SELECT count(*) AS n FROM tables", views).read_all().to_pydict() == {"n": [0]}
    assert run_query("DESCRIBE log", views).read_all().num_rows == len(QUERY_VIEWS["log"])
    with pytest.raises(RowsCreatedError):
        run_query("FROM log", views).read_all()


def test_rows_stream_as_the_caller_reads_them() -> None:
    from ledger.audit.query import run_query

    created = 0

    def rows() -> Any:
        nonlocal created
        for number in range(600_000):
            created += 1
            yield {"number": number}

    reader = run_query("SELECT number FROM log", {"log": Rows({"number": "number"}, rows)})
    assert reader.read_next_batch()["number"][0].as_py() == 0
    assert created < 300_000
    reader.close()
    assert created < 600_000


def test_a_damaged_log_is_an_error_of_the_ledger(tmp_path: Path) -> None:
    lake = ledger.open(tmp_path)
    lake.create_database("shop")
    table: Table = lake.create_table("shop.orders", {"id": "BIGINT"})
    table.append([ledger.FileChange(path="a.parquet", record_count=1, file_size_in_bytes=1)])
    commit = next(tmp_path.rglob("shop.db/orders/**/log/*1.json"))
    commit.write_bytes(b"{")
    with pytest.raises(LedgerError, match=r"1\.json"):
        ledger.open(tmp_path).query("FROM log")


def test_without_duckdb_the_message_says_which_extra_has_it(
    one: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[Callable[[], object]] = [
        lambda: one.query("FROM log"),
        lambda: one.table("shop.orders").at().query("FROM log"),
    ]
    monkeypatch.setitem(sys.modules, "duckdb", None)
    for call in calls:
        with pytest.raises(MissingDependencyError, match=r"pip install .*\[duckdb\]"):
            call()


def test_other_connections_of_duckdb_keep_their_settings(one: Ledger) -> None:
    one.query("FROM log")
    assert duckdb.sql("SELECT current_setting('enable_external_access')").fetchall() == [(True,)]
