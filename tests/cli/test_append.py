"""The command `append`: rows of CSV, JSON lines and Parquet files."""

from __future__ import annotations

import datetime as dt
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import csv, parquet

import ledger
from ledger import Schema, Table
from ledger.rows.file_rows import LONGEST_LINE
from ledger.transforms import identity

if TYPE_CHECKING:
    from tests.cli.conftest import Run

NAME = "shop.visits"
COLUMNS = {
    "id": "BIGINT",
    "code": "STRING",
    "day": "DATE",
    "amount": "DECIMAL(10, 2)",
    "ratio": "DOUBLE",
    "small": "FLOAT",
    "ok": "BOOLEAN",
    "at": "TIMESTAMP(6)",
    "seen": "TIMESTAMP_LTZ(6)",
    "clock": "TIME(6)",
    "raw": "BYTES",
}
ROW: dict[str, Any] = {
    "id": 1,
    "code": "007",
    "day": dt.date(2026, 1, 31),
    "amount": Decimal("12.50"),
    "ratio": 0.1,
    "small": 0.5,
    "ok": True,
    "at": dt.datetime(2026, 1, 31, 12, 30),  # noqa: DTZ001 - a local time
    "seen": dt.datetime(2026, 1, 31, 10, 30, tzinfo=dt.UTC),
    "clock": dt.time(12, 30),
    "raw": b"\x00\xff",
}
TEXTS = {
    "id": "1",
    "code": "007",
    "day": "2026-01-31",
    "amount": "12.50",
    "ratio": "0.1",
    "small": "0.5",
    "ok": "true",
    "at": "2026-01-31T12:30:00",
    "seen": "2026-01-31T12:30:00+02:00",
    "clock": "12:30",
    "raw": "AP8=",
}
Runner = Callable[..., Any]


@pytest.fixture
def lake(tmp_path: Path) -> ledger.Ledger:
    made = ledger.open(tmp_path / "lake", author="ada")
    made.create_database("shop")
    return made


@pytest.fixture
def table(lake: ledger.Ledger) -> Table:
    schema = Schema.of(COLUMNS, options={"ledger.formats": "iceberg"})
    return lake.create_table(NAME, schema, partition_spec=[identity("day")])


@pytest.fixture
def append(run: Run, tmp_path: Path) -> Runner:
    """Return a function that writes a file, and runs `append` with it."""

    def ran(name: str, content: str, *more: str) -> Any:
        path = tmp_path / name
        path.write_bytes(content.encode())
        return run("append", NAME, path, *more, "--ledger", tmp_path / "lake")

    return ran


def lines(*rows: dict[str, Any]) -> str:
    return "".join(f"{json.dumps(each)}\n" for each in rows)


def test_csv_is_parsed_by_the_tables_types(table: Table, append: Runner) -> None:
    empty = "," * (len(COLUMNS) - 1)
    done = append("a.csv", f"{','.join(TEXTS)}\n{','.join(TEXTS.values())}\n{empty}\n")
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("shop.visits version 1\n  snapshot 1: APPEND, +2 rows, +2 files, +")
    expected = [ROW, {**dict.fromkeys(COLUMNS), "code": ""}]
    found = table.to_arrow().to_pylist()
    assert sorted(found, key=lambda row: row["id"] or 9) == expected


def test_json_lines_are_parsed_by_the_tables_types(table: Table, append: Runner) -> None:
    numbers = {"id": 1, "amount": 12.5, "ratio": 0.1, "small": 0.5, "ok": True}
    rows = [{**TEXTS, **numbers}, {"id": 2.0, "amount": "1.25"}]
    for name in ("a.jsonl", "b.ndjson"):
        done = append(name, f"\n{lines(*rows)}\n")
        assert (done.code, done.err) == (0, "")
    found = sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])
    second = {**dict.fromkeys(COLUMNS), "id": 2, "amount": Decimal("1.25")}
    assert found == [ROW, ROW, second, second]


def test_nested_json_is_matched_at_any_depth(lake: ledger.Ledger, append: Runner) -> None:
    columns = {
        "r": "ROW<a DATE, l ARRAY<ROW<x DECIMAL(5, 1)>>>",
        "m": "MAP<INT, DATE>",
        "n": "MAP<STRING, BIGINT>",
    }
    table = lake.create_table(NAME, columns)
    row = {
        "R": {"A": "2026-01-31", "l": [{"x": 0.1}, None]},
        "m": {"7": "2026-01-31"},
        "n": [["k", 1]],
    }
    assert append("a.jsonl", lines(row)).code == 0
    day = dt.date(2026, 1, 31)
    assert table.to_arrow().to_pylist() == [
        {"r": {"a": day, "l": [{"x": Decimal("0.1")}, None]}, "m": [(7, day)], "n": [("k", 1)]}
    ]


def test_parquet_files_of_other_layouts_are_written_anew(
    table: Table, run: Run, tmp_path: Path
) -> None:
    parquet.write_table(pa.table({"ID": pa.array([1, 2], pa.int32())}), tmp_path / "a.parquet")
    csv.write_csv(pa.table({"id": [3]}), tmp_path / "b.CSV")
    files = (tmp_path / "a.parquet", tmp_path / "b.CSV")
    done = run("append", NAME, *files, "--ledger", tmp_path / "lake", "--output", "json")
    assert done.code == 0
    (event,) = done.document["events"]
    assert (done.document["version"], event["deltaRecordCount"]) == (1, 3)
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 2, 3]
    assert all(each.path.startswith("data/") for each in table.at().files)


def test_a_branch_and_the_flags_of_a_commit_are_taken(table: Table, append: Runner) -> None:
    append("a.csv", "id\n1\n")
    table.create_branch("audit")
    more = ("--branch", "audit", "--author", "bob", "--message", "why", "--commit-id", "monday")
    first = append("b.csv", "id\n2\n", *more)
    again = append("b.csv", "id\n2\n3\n", *more)
    assert (first.code, again.code) == (0, 0)
    assert "version 3, committed before; nothing was written now" in again.out
    assert table.branch("audit").at().totals.record_count == 2
    (entry,) = (each.transaction for each in table.entries(author="bob"))
    assert (entry.id, entry.message) == ("monday", "why")
    assert append("c.csv", "id\n2\n", *more).code == 1


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "a.csv",
            "id\n1\nx\n",
            "row 2 (counted from 1): column id of shop.visits is BIGINT, and 'x'",
        ),
        ("a.csv", "id\n1\n99999999999999999999\n", "row 2 (counted from 1): column id"),
        ("a.csv", "code,day\na,2026-01-31\nb,yesterday\n", "write a date, such as 2026-01-31"),
        ("a.csv", "id,amount\n1,1.234\n", "row 1 (counted from 1): column amount"),
        ("a.csv", "amount\n1e-99999999\n", "row 1 (counted from 1): column amount"),
        ("a.csv", "amount\n1_000\n", "write a number, such as 12.50"),
        ("a.csv", "id\n0x10\n", "'0x10' is none; write a whole number"),
        ("a.csv", "ratio\n1e400\n", "'1e400' is none; write a number"),
        ("a.csv", "id,ok\n1,maybe\n", "'maybe' is none; write true or false"),
        ("a.csv", "id,at\n1,2026-01-31T12:00:00Z\n", "column at of shop.visits is TIMESTAMP(6)"),
        ("a.csv", "id,seen\n1,2026-01-31T12:00:00\n", "write a time with its zone"),
        (
            "a.csv",
            "id,at\n1,2026-01-31T12:00:00.123456000\n2,2026-01-31T12:00:00.123456789\n",
            ".123456789' is none; write a local time, such as 2026-01-31T12:30:00, with at most m",
        ),
        (
            "a.jsonl",
            '{"seen": "2026-01-31T12:00:00.1234560001Z"}',
            "row 1 (counted from 1): column seen of shop.visits",
        ),
        (
            "a.csv",
            "id,at\n1,2026-01-31T12:00:00.123456000\n2,2026-01-31T12:00:00.1234567\n",
            "row 2 (counted from 1): column at of shop.visits is TIMESTAMP(6), and '2026-01-31",
        ),
        ("a.csv", "id, symbol\n1,x\n", "shop.visits has no column ' symbol'; there are: 'id',"),
        ("a.csv", "id,\n1,x\n", "shop.visits has no column ''; there are: 'id',"),
        ("a.csv", "id,nmae\n", "shop.visits has no column 'nmae'"),
        ("a.csv", "id,id\n1,2\n", "id and id of the rows both mean column id"),
        ("a.csv", "id,code\n1\n", "Expected 2 columns, got 1"),
        ("a.csv", "", "Empty CSV file"),
        ("a.jsonl", '{"id": 1}\n\n{"id": "x"}\n', "row 2 (counted from 1): column id"),
        ("a.jsonl", '{"id": 1}\n{"id": 1e999999999}\n', "row 2 (counted from 1): column id"),
        ("a.jsonl", '{"amount": 1e-99999999}', "an exponent of -1,000 to 1,000, or int"),
        ("a.jsonl", '{"ratio": 1e400}', "column ratio of shop.visits is DOUBLE, and the value is"),
        ("a.jsonl", '{"id": 1', "row 1 (counted from 1): it is no JSON object"),
        ("a.jsonl", "[1]\n", "row 1 (counted from 1): [1] is no JSON object of column names"),
        ("a.jsonl", "[" * 100_000, "row 1 (counted from 1): it is no JSON object"),
        ("a.jsonl", '{"code": 7}\n', "column code of shop.visits is STRING, and the value is 7"),
        ("a.jsonl", '{"day": "x"}\n', "column day of shop.visits is DATE, and 'x' is none"),
        ("a.jsonl", '{"idd": 1}\n', "shop.visits has no column 'idd'"),
        ("a.jsonl", "x" * (LONGEST_LINE + 1), "it has more than"),
        ("a.parquet", "nothing", "a.parquet"),
    ],
    ids=lambda each: each[:40],
)
def test_what_does_not_fit_is_named_with_its_file_and_nothing_is_written(
    table: Table, append: Runner, name: str, content: str, message: str
) -> None:
    failed = append(name, content)
    assert (failed.code, failed.out) == (1, "")
    said = " ".join(failed.err.split())
    assert f"/{name}: " in said
    assert message in said
    assert table.state.version == 0
    folder = Path(table.location.removeprefix("file://")) / "data"
    assert [*folder.rglob("*.parquet")] == []


def test_csv_has_no_nested_columns(lake: ledger.Ledger, append: Runner) -> None:
    lake.create_table(NAME, {"id": "INT", "tags": "ARRAY<STRING>"})
    assert append("a.csv", "id\n1\n").code == 0
    failed = append("b.csv", "id,tags\n1,a\n")
    assert "which a CSV file cannot hold; write JSON lines or Parquet" in " ".join(
        failed.err.split()
    )


def test_texts_with_commas_quotes_and_line_breaks_are_kept(table: Table, append: Runner) -> None:
    texts = ["a,b", 'say "x"', "two\nlines", " ü ", "NULL", "NaN"]
    quoted = "".join('{},"{}"\n'.format(n, each.replace('"', '""')) for n, each in enumerate(texts))
    assert append("a.csv", f"\ufeffid,code\n{quoted}").code == 0
    found = sorted(table.to_arrow().to_pylist(), key=lambda row: row["id"])
    assert [each["code"] for each in found] == texts


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_csv_of_another_separator_is_named(append: Runner, table: Table, separator: str) -> None:
    failed = append("a.csv", f"id{separator}ratio\n1{separator}2,5\n")
    assert (failed.code, failed.out) == (1, "")
    said = " ".join(failed.err.split())
    assert f"is one column; separate columns by commas instead of {separator!r}" in said
    assert table.state.version == 0


def test_overwrite_writes_the_rows_of_texts(
    table: Table, append: Runner, run: Run, tmp_path: Path
) -> None:
    days = "id,day\n1,2026-01-31\n2,2026-02-01\n"
    assert append("a.csv", days).code == 0
    more = tmp_path / "b.csv"
    more.write_text("id,day\n3,2026-02-01\n")
    words = ("overwrite", NAME, more, "--where", "day=2026-02-01", "--commit-id", "once")
    for _ in range(2):
        done = run(*words, "--ledger", tmp_path / "lake")
        assert (done.code, done.err) == (0, "")
    assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 3]
    lines_of_all = tmp_path / "all.jsonl"
    lines_of_all.write_text(lines({"id": 7}))
    assert run("overwrite", NAME, lines_of_all, "--ledger", tmp_path / "lake").code == 0
    assert table.to_arrow()["id"].to_pylist() == [7]
    outside = run(*words[:3], "--where", "day=2026-03-01", "--ledger", tmp_path / "lake")
    assert outside.code == 1
    assert "outside of where" in " ".join(outside.err.split())
    null = tmp_path / "null.jsonl"
    null.write_text(lines({"id": 8, "day": "2026-02-01"}, {"id": 9}))
    assert run("append", NAME, null, "--ledger", tmp_path / "lake").code == 0
    where = ("--where", "day=__DEFAULT_PARTITION__")
    assert run("overwrite", NAME, *where, "--ledger", tmp_path / "lake").code == 0
    assert table.to_arrow()["id"].to_pylist() == [8]
    mixed = run("overwrite", NAME, more, "c.parquet", "--ledger", tmp_path / "lake")
    assert mixed.code == 2
    assert "convert one of them" in " ".join(mixed.err.split())
    assert table.state.version == 5


def test_a_csv_file_with_names_in_another_encoding_is_rejected(
    table: Table, run: Run, tmp_path: Path
) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes("id,größe\n1,2\n".encode("latin-1"))
    failed = run("append", NAME, path, "--ledger", tmp_path / "lake")
    assert (failed.code, failed.out) == (1, "")
    assert "the names in its first line are not in UTF-8" in " ".join(failed.err.split())
    assert table.state.version == 0


class _SlowParts(BaseHTTPRequestHandler):
    """Server of one file by parts, each after a wait."""

    body = b""

    def do_HEAD(self) -> None:
        self._begin(200, len(self.body))

    def do_GET(self) -> None:
        time.sleep(0.1)
        first, _, last = self.headers["Range"].removeprefix("bytes=").partition("-")
        part = self.body[int(first) : int(last) + 1]
        self._begin(206, len(part), f"bytes {first}-{last}/{len(self.body)}")
        self.wfile.write(part)

    def _begin(self, status: int, length: int, content_range: str = "") -> None:
        self.send_response(status)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Content-Length", str(length))
        if content_range:
            self.send_header("Content-Range", content_range)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_a_damaged_parquet_file_is_named(table: Table, run: Run, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    parquet.write_table(pa.table({"id": [*range(5000)]}), path)
    body = bytearray(path.read_bytes())
    body[4:64] = b"\xff" * 60
    path.write_bytes(body)
    failed = run("append", NAME, path, "--ledger", tmp_path / "lake")
    assert (failed.code, failed.out) == (8, "")
    said = " ".join(failed.err.split())
    assert "a.parquet cannot be read to its end: OSError (" in said
    assert "if it is damaged, write it again" in said
    assert table.state.version == 0


def test_every_row_of_a_csv_file_behind_a_slow_server_is_written_once(
    table: Table, run: Run, tmp_path: Path
) -> None:
    count = 400_000
    rows = "".join(f"{each},{'x' * 40}\n" for each in range(count))
    handler = type("_Rows", (_SlowParts,), {"body": f"id,code\n{rows}".encode()})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/rows.csv"
        done = run("append", NAME, url, "--ledger", tmp_path / "lake")
        server.shutdown()
    assert (done.code, done.err) == (0, "")
    assert sorted(table.to_arrow()["id"].to_pylist()) == [*range(count)]


@pytest.mark.usefixtures("table")
def test_a_process_that_rejects_a_large_csv_file_ends_with_its_code(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("id,cods\n" + f"1,{'x' * 40}\n" * 300_000)
    command = ("-m", "ledger", "append", NAME, path, "--ledger", tmp_path / "lake")
    # A thread that still read the file would abort most of them.
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, *command], capture_output=True, check=False, timeout=60
        )
        assert done.returncode == 1
        assert b"shop.visits has no column 'cods'" in b" ".join(done.stderr.split())
