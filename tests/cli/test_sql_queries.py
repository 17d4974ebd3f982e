"""`lakeledger sql` with a query: text, JSON, instants, and mistakes."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run


@pytest.fixture
def lived(shop: Run) -> Run:
    """Versions of shop.orders: 0 created, 1 renamed by bob, 2 an option by eve."""
    assert shop("alter", "shop.orders", "--rename", "addr=address", "--author", "bob").code == 0
    assert shop("alter", "shop.orders", "--set", "x=1", "--author", "eve").code == 0
    return shop


_RENAMES = "SELECT author, version FROM log WHERE type = 'renameColumn'"


def test_rows_are_a_table_as_text(lived: Run) -> None:
    ran = lived("sql", "SELECT version, type FROM log WHERE author IN ('bob', 'eve') ORDER BY ALL")
    assert [each.split() for each in ran.out.splitlines() if each.strip()] == [
        ["version", "type"],
        ["─" * len(ran.out.splitlines()[2].strip())],
        ["1", "renameColumn"],
        ["2", "setOption"],
    ]


def test_numbers_have_no_separators_and_no_rows_are_said(lived: Run) -> None:
    assert " 12345 " in lived("sql", "SELECT 12345 AS year").out
    assert lived("sql", "SELECT 1 AS a WHERE false").out == "no rows\n"


def test_rows_are_one_document_or_lines(lived: Run) -> None:
    assert lived("sql", _RENAMES, "--output", "json").document == {
        "columns": ["author", "version"],
        "rows": [{"author": "bob", "version": 1}],
    }
    lines = lived("sql", _RENAMES, "--output", "jsonl").out
    assert [json.loads(each) for each in lines.splitlines()] == [{"author": "bob", "version": 1}]
    assert lived("sql", "SELECT 1 AS a WHERE false", "--output", "json").document == {
        "columns": ["a"],
        "rows": [],
    }


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("TIMESTAMPTZ '2024-01-01 12:00:00+02'", "2024-01-01T10:00:00.000Z"),
        ("TIMESTAMP '2024-01-01 12:00:00.000001'", "2024-01-01T12:00:00.000001"),
        ("DATE '2024-01-01'", "2024-01-01"),
        ("TIME '10:00:00'", "10:00:00"),
        ("170141183460469231731687303715884105727::HUGEINT", 2**127 - 1),
        ("sum(7)", 7),
        ("1.5::DECIMAL(4, 2)", "1.50"),
        ("0.5::DOUBLE", 0.5),
        ("'nan'::DOUBLE", "nan"),
        ("NULL", None),
        ("true", True),
        ("'a' || chr(27) || '[2J'", "a\x1b[2J"),
        ("'\\xFF'::BLOB", "ff"),
        ("[DATE '2024-01-01']", ["2024-01-01"]),
        ("{'a': 1, 'b': [2]}", {"a": 1, "b": [2]}),
        ("MAP {'a': 1}", [["a", 1]]),
        ("uuid '01a228da-3d12-7158-bb96-8042a6cc37af'", "01a228da-3d12-7158-bb96-8042a6cc37af"),
    ],
)
def test_values_of_every_type_are_json(shop: Run, expression: str, value: Any) -> None:
    ran = shop("sql", f"SELECT {expression} AS it", "--output", "json")
    assert ran.err == ""
    assert ran.document["rows"] == [{"it": value}]
    assert "\x1b" not in ran.out
    assert shop("sql", f"SELECT {expression} AS it").code == 0


def test_a_value_that_python_cannot_hold_is_an_error(shop: Run) -> None:
    ran = shop("sql", "SELECT TIMESTAMP '20000-01-01' AS far")
    assert ran.code == 1
    assert "convert it to text: CAST(... AS VARCHAR)" in ran.err
    assert "20000-01-01" in shop("sql", "SELECT TIMESTAMP '20000-01-01'::VARCHAR AS far").out


def test_a_ledger_is_read_at_a_time(lived: Run) -> None:
    early = lived("sql", "SELECT max(time) AS t FROM log WHERE version = 0", "--output", "json")
    at = early.document["rows"][0]["t"]
    assert lived("sql", _RENAMES, "--at", at, "--output", "json").document["rows"] == []
    assert lived("sql", _RENAMES, "--at", "now", "--output", "json").document["rows"] != []
    ran = lived("sql", _RENAMES, "--at", "7d")
    assert (ran.code, "nothing was there at" in ran.err) == (3, True)


def test_one_table_is_read_at_any_instant(lived: Run) -> None:
    def names(*at: str) -> list[str]:
        query = "SELECT name FROM columns WHERE field_id = 2"
        found = lived("sql", query, "--table", "shop.orders", *at, "--output", "json").document
        return [each["name"] for each in found["rows"]]

    assert names() == ["address"]
    assert names("--at", "version:0") == ["addr"]
    assert names("--at=-1") == ["address"]
    assert names("--at=-2") == ["addr"]


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["SELECT nope FROM log"], 1, "log has identifier, version, time, commit_id"),
        (["FROM nope"], 1, "there are the views log, tables, columns, blame, snapshots, files, "),
        (["SELEC"], 1, "cannot be parsed"),
        (["COPY log TO 'x.csv'"], 1, "does more than read; a query begins with SELECT, WITH"),
        (["SET threads = 2"], 1, "does more than read"),
        (["SELECT 1; SELECT 2"], 1, "has 2 statements"),
        (["FROM read_csv('/etc/passwd')"], 1, "table function read_csv is not available"),
        (["DELETE FROM log"], 2, "for DELETE see: lakeledger delete-files --help"),
        (["INSERT INTO log VALUES (1)"], 2, "for INSERT see: lakeledger append --help"),
        (["FROM log", "--at", "tag:v1"], 2, "name the table with --table, or write a time"),
        (["FROM log", "--at", "soon"], 2, "'soon' is not an instant"),
        (["FROM log", "--table", "shop.nope"], 3, "shop.nope does not exist"),
        (["FROM log", "--message", "why"], 2, "a query commits nothing"),
        (["ALTER TABLE shop.orders ADD COLUMN a INT", "--at", "now"], 2, "are for queries"),
        (["ALTER TABLE shop.orders ADD COLUMN a INT", "--table", "shop.orders"], 2, "for queries"),
    ],
)
def test_mistakes_say_what_to_write_instead(
    lived: Run, arguments: list[str], code: int, said: str
) -> None:
    ran = lived("sql", *arguments)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert ran.err.count("\n") == 1
    assert "Traceback" not in ran.err


def test_an_error_is_json_where_json_is_wanted(lived: Run) -> None:
    ran = lived("sql", "FROM nope", "--output", "json")
    assert json.loads(ran.err)["error"] == "InvalidInputError"


def test_where_there_is_no_ledger_none_is_made(run: Run, tmp_path: Path) -> None:
    ran = run("sql", "FROM log", "--ledger", tmp_path / "nothing")
    assert (ran.code, [*tmp_path.glob("nothing")]) == (3, [])


def test_alter_table_runs_as_before(lived: Run) -> None:
    ran = lived("sql", "ALTER TABLE shop.orders ADD COLUMN zip STRING", "--message", "for mail")
    assert "added column zip STRING" in ran.out
    assert " for mail " in lived("sql", "SELECT message FROM log WHERE type = 'addColumn'").out


def test_without_duckdb_alter_table_runs_and_a_query_says_what_to_install(
    lived: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    ran = lived("sql", "FROM log")
    assert (ran.code, "[duckdb]" in ran.err) == (7, True)
    assert lived("sql", "ALTER TABLE shop.orders ADD COLUMN zip STRING").code == 0
