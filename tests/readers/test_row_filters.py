"""Filters of every form over every type read the rows that DuckDB finds in the same files."""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Iterator
from typing import Any

import duckdb
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import ledger
from ledger import (
    Ledger,
    Schema,
    Table,
)
from tests.readers.lakehouse import add_rows, folder_of
from tests.readers.typed_rows import COLUMNS, UTC, mixed_table, row_of
from tests.thorough import examples


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    lake = ledger.open(str(tmp_path_factory.mktemp("rows")))
    lake.create_database("shop")
    return lake


@pytest.fixture(scope="module")
def mixed(lake: Ledger) -> Table:
    return mixed_table(lake)


def _sql(value: Any) -> str:
    match value:
        case bool():
            return str(value)
        case str():
            return f"'{value}'"
        case dt.datetime():
            # Only a moment with its zone compares in both dialects.
            return f"TIMESTAMP '{value.isoformat(' ')}'"
        case dt.date():
            return f"DATE '{value}'"
        case _:
            return str(value)


_SQL_OPS = ["=", "<>", "<", "<=", ">", ">="]


def _values(name: str) -> list[Any]:
    path = name.split(".")
    found: list[Any] = []
    for number in range(48):
        value: Any = row_of(number)
        for step in path:
            value = value[step] if value is not None else None
        if value is not None:
            found.append(value)
    return found


def _predicates() -> st.SearchStrategy[tuple[Any, ...]]:
    names = [each for each in COLUMNS if each not in ("place", "raw")] + ["place.zip", "place.city"]

    def of(name: str) -> st.SearchStrategy[tuple[Any, ...]]:
        value = st.sampled_from(_values(name))
        ops = _SQL_OPS if name != "ok" else _SQL_OPS[:2]
        return st.one_of(
            st.tuples(st.just(name), st.sampled_from(ops), value),
            st.tuples(
                st.just(name),
                st.sampled_from(["in", "not in"]),
                st.lists(value, min_size=1, max_size=4),
            ),
            st.tuples(st.just(name), st.sampled_from(["is null", "is not null"])),
        )

    return st.sampled_from(names).flatmap(of)


def _predicate_sql(predicate: tuple[Any, ...]) -> str:
    name, op, *given_values = predicate
    if not given_values:
        return f"{name} {op.upper()}"
    value = given_values[0]
    shown = f"({', '.join(map(_sql, value))})" if isinstance(value, list) else _sql(value)
    return f"{name} {op.upper()} {shown}"


_DNF = st.lists(st.lists(_predicates(), min_size=1, max_size=3), min_size=1, max_size=3)


@pytest.fixture(scope="module")
def files(mixed: Table) -> Iterator[duckdb.DuckDBPyConnection]:
    """The same files in DuckDB, as a table `files` whose `file` says where a row is from."""
    named = [str(folder_of(mixed) / each.path) for each in mixed.at().files]
    with duckdb.connect() as duck:
        duck.execute("SET TimeZone = 'UTC'")
        read = f"read_parquet({named!r}, union_by_name=true, filename=true)"
        duck.execute(f"CREATE TABLE files AS SELECT *, 'file://' || filename AS file FROM {read}")  # noqa: S608 - written here
        yield duck


def _found(files: duckdb.DuckDBPyConnection, sql: str) -> tuple[list[int], set[str]]:
    """Return the ids of the rows that DuckDB finds, and the files that they are in."""
    rows = files.sql(f"SELECT id, file FROM files WHERE {sql} ORDER BY id").fetchall()  # noqa: S608 - written here
    return [each for each, _ in rows], {each for _, each in rows}


@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(dnf=_DNF, form=st.sampled_from(["sql", "negated sql", "list", "list of lists"]))
def test_every_form_of_a_filter_finds_the_rows_that_duckdb_finds(
    mixed: Table, files: duckdb.DuckDBPyConnection, dnf: list[list[tuple[Any, ...]]], form: str
) -> None:
    parts = dnf[:1] if form == "list" else dnf
    sql = " OR ".join(f"({' AND '.join(map(_predicate_sql, part))})" for part in parts)
    sql = f"NOT ({sql})" if form == "negated sql" else sql
    where: Any = {"list": dnf[0], "list of lists": dnf}.get(form, sql)
    at = mixed.at()
    scanned = at.scan(where, ["id"])

    ids, holders = _found(files, sql)

    assert sorted(scanned.to_arrow()["id"].to_pylist()) == ids
    assert holders <= {f"{mixed.location}/{each.file.path}" for each in at.plan(where).files}
    assert holders <= {each.file.file_path for each in scanned.plan_files()}


@pytest.mark.parametrize(
    ("where", "sql"),
    [
        ([("raw", "=", b"\x01\xff")], r"raw = '\x01\xFF'::BLOB"),
        ("raw <> X'01ff'", r"raw <> '\x01\xFF'::BLOB"),
        ([("name", "starts with", "ab")], "name LIKE 'ab%'"),
        ("name LIKE 'a%'", "name LIKE 'a%'"),
        ("NOT name LIKE 'a%'", "NOT name LIKE 'a%'"),
        ("STARTS_WITH(name, 'b%')", "starts_with(name, 'b%')"),
        ("small BETWEEN -1 AND 2 AND ok", "small BETWEEN -1 AND 2 AND ok"),
        ("ok IS NOT TRUE", "ok IS NOT TRUE"),
        ("NOT (small > 1)", "NOT (small > 1)"),
        (
            [("seen", ">", dt.datetime(2013, 1, 5, tzinfo=UTC))],
            "seen > TIMESTAMPTZ '2013-01-05 00:00:00+00'",
        ),
        ([("place", "is null")], "place IS NULL"),
        ([("place.zip", "is null")], "place.zip IS NULL"),
        ([("id", "in", [])], "false"),
        (None, "true"),
        ([], "true"),
    ],
    ids=str,
)
def test_forms_that_have_a_word_of_their_own(
    mixed: Table, files: duckdb.DuckDBPyConnection, where: Any, sql: str
) -> None:
    rows = mixed.at().to_arrow(where, ["id"])
    assert sorted(rows["id"].to_pylist()) == _found(files, sql)[0]


def test_a_filter_matches_nan_only_where_sql_would_without_an_order(lake: Ledger) -> None:
    table = lake.create_table("shop.nan", Schema.of({"id": "INT", "x": "DOUBLE", "y": "FLOAT"}))
    values = [math.nan, None, 1.0, -math.inf, math.inf]
    for number, value in enumerate(values):
        add_rows(table, f"{number}.parquet", [{"id": number, "x": value, "y": value}])
    add_rows(table, "all.parquet", [{"id": n + 10, "x": v, "y": v} for n, v in enumerate(values)])

    def found(where: Any) -> list[int]:
        return sorted(table.at().to_arrow(where)["id"].to_pylist())

    for name in ("x", "y"):
        assert found([(name, "is nan")]) == [0, 10]
        assert found([(name, "is not nan")]) == [2, 3, 4, 12, 13, 14]
        assert found([(name, ">", 0.5)]) == [2, 4, 12, 14]
        assert found(f"NOT {name} > 0.5") == [0, 3, 10, 13]
        assert found([(name, "!=", 1.0)]) == [0, 3, 4, 10, 13, 14]
        assert found([(name, "not in", [1.0, 2.0])]) == [0, 3, 4, 10, 13, 14]
