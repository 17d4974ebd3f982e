"""`lakeledger head`: some rows of a table, for people and for programs."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import ledger
from ledger import Ledger, RenameColumn, Schema
from ledger.model import read_type
from ledger.model.errors import LedgerError
from tests.cli.conftest import Ran, Run
from tests.readers.lakehouse import add_rows
from tests.readers.typed_rows import COLUMNS, row_of


@pytest.fixture
def lake(tmp_path: Path) -> Ledger:
    """A ledger with shop.lived: two rows in snapshot 1, a column renamed, a third row."""
    lake = ledger.open(str(tmp_path / "lake"))
    lake.create_database("shop")
    table = lake.create_table("shop.lived", Schema.of({"id": "INT NOT NULL", "a": "INT"}))
    add_rows(table, "1.parquet", [{"id": 1, "a": 10}, {"id": 2, "a": None}])
    table.alter([RenameColumn(("a",), "b")])
    add_rows(table, "2.parquet", [{"id": 1000 + each, "b": each} for each in range(20)])
    return lake


@pytest.fixture
def head(run: Run, installed: None, lake: Ledger) -> Run:
    del installed

    def ran(*argv: object) -> Ran:
        return run("head", *argv, "--ledger", lake.url)

    return ran


def test_rows_are_printed_with_the_columns_of_the_instant(head: Run) -> None:
    ran = head("shop.lived", "--at", "snapshot:1", "--where", "a IS NULL OR a > 5")
    assert (ran.code, ran.err) == (0, "")
    lines = [line.split() for line in ran.out.splitlines() if line.strip()]
    assert lines[0] == ["shop.lived", "at", "snapshot", "1"]
    assert lines[1] == ["id", "a"]
    assert lines[3:] == [["1", "10"], ["2", "NULL"]]
    assert "1019" in head("shop.lived", "--where", "b = 19").out


def test_numbers_of_every_type_are_right_aligned(head: Run, lake: Ledger) -> None:
    table = lake.create_table("shop.sums", {"t": "STRING", "d": "DECIMAL(9, 2)", "f": "DOUBLE"})
    rows = [{"t": "a", "d": Decimal("1.50"), "f": 0.25}, {"t": "b", "d": Decimal(120), "f": 12.5}]
    add_rows(table, "3.parquet", rows)

    *_, one, two, _ = head("shop.sums").out.splitlines()

    assert [one.rstrip(), two.rstrip()] == [" a     1.50   0.25", " b   120.00   12.5"]


def test_a_name_with_a_dot_is_shown_and_no_condition(head: Run, lake: Ledger) -> None:
    table = lake.create_table("shop.dotted", {"x.y": "INT", "r": read_type("ROW<z INT>")})
    add_rows(table, "4.parquet", [{"x.y": 7, "r": {"z": 1}}, {"x.y": 8, "r": {"z": 2}}])

    assert head("shop.dotted", "--where", "r.z > 1", "--columns", "x.y").out.split()[-1] == "8"
    ran = head("shop.dotted", "--where", '"x.y" > 7')
    assert (ran.code, ran.out) == (1, "")
    assert "PyIceberg cannot filter by x.y" in ran.err
    assert "Traceback" not in ran.err


def test_a_line_of_json_is_a_row(head: Run) -> None:
    out = head("shop.lived", "--limit", "3", "--output", "jsonl").out
    assert [json.loads(each) for each in out.splitlines()] == [
        {"id": 1, "b": 10},
        {"id": 2, "b": None},
        {"id": 1000, "b": 0},
    ]


def test_a_nested_value_of_any_length_is_one_cell(head: Run, lake: Ledger) -> None:
    table = lake.create_table("shop.deep", {"r": read_type("ROW<tags ARRAY<STRING>>"), "b": "INT"})
    tags = [f"tag {each}" for each in range(2000)]
    add_rows(table, "5.parquet", [{"r": {"tags": tags}, "b": 1}])

    row = head("shop.deep").out.splitlines()[-2]

    assert row.split("   ")[0].strip() == json.dumps({"tags": tags}, separators=(",", ":"))


def _unreadable(lake: Ledger, name: str) -> str:
    """Make a table with one file, and break the file so that PyIceberg cannot read it."""
    table = lake.create_table(f"shop.{name}", Schema.of({"id": "INT", "p": "STRING NOT NULL"}))
    add_rows(table, "1.parquet", [{"id": 1, "p": "x"}])
    path = Path(table.location.removeprefix("file://")) / "1.parquet"
    ids = {each: {b"PARQUET:field_id": b"%d" % i} for i, each in enumerate(("id", "p", "more"))}
    fields = [
        pa.field("id", pa.int32(), metadata=ids["id"]),
        pa.field("p", pa.string(), metadata=ids["p"]),
    ]
    match name:
        case "torn":
            path.write_bytes(b"PAR1" + bytes(60) + b"PAR1")
        case "cut":
            path.write_bytes(path.read_bytes()[:-9])
        case "page":
            body = path.read_bytes()
            path.write_bytes(b"PAR1" + bytes(40) + body[44:])
        case "empty":
            path.write_bytes(b"")
        case "bare":
            pq.write_table(pa.table({"id": [1]}, schema=pa.schema(fields[:1])), path)
        case "other":
            text = pa.field("id", pa.string(), metadata=ids["id"])
            pq.write_table(
                pa.table({"id": ["x"], "p": ["x"]}, schema=pa.schema([text, fields[1]])), path
            )
        case "unmapped":
            pq.write_table(pa.table({"other": [1]}), path)
    return str(path)


@pytest.mark.parametrize("name", ["torn", "cut", "page", "empty", "bare", "other", "unmapped"])
def test_rows_that_pyiceberg_cannot_read_are_one_error_without_traceback(
    head: Run, lake: Ledger, name: str
) -> None:
    path = _unreadable(lake, name)

    ran = head(f"shop.{name}")

    assert ran.code in {1, 6}
    assert "Traceback" not in ran.err
    assert len(ran.err.strip().splitlines()) == 1
    if name in {"torn", "cut", "page", "empty"}:
        assert f"{path} of the table" in ran.err
        assert "is no valid Parquet file" in ran.err
        assert ran.code == 6
    else:
        assert f"the rows of the table at {lake.url}/shop.db/{name}" in ran.err
    at = lake.table(f"shop.{name}").at()
    for read in (
        at.to_arrow,
        at.to_pandas,
        at.head,
        lambda: list(at.scan().to_arrow_batch_reader()),
    ):
        with pytest.raises(LedgerError):
            read()


@pytest.mark.parametrize("damage", [lambda _: b"", lambda body: body[:-9], lambda _: b"junk" * 9])
@pytest.mark.parametrize("kind", ["mirrored", "promoted"])
def test_a_damaged_manifest_of_an_imported_table_is_named(
    run: Run, lake: Ledger, tmp_path: Path, kind: str, damage: Callable[[bytes], bytes]
) -> None:
    source = lake.table("shop.lived")
    source.project("iceberg")
    other = ledger.open(str(tmp_path / "other"))
    other.create_database("shop")
    other.import_table("shop.lived", source.location, format_name="iceberg")
    if kind == "promoted":
        other.promote("shop.lived")
    folder = Path(source.location.removeprefix("file://")) / "metadata"
    named = 0
    for path in sorted(folder.glob("*.avro")):
        body = path.read_bytes()
        path.write_bytes(damage(body))
        ran = run("head", "shop.lived", "--ledger", other.url)
        assert "Traceback" not in ran.err
        assert ran.code in {0, 6}
        if ran.code:
            assert path.name in ran.err
            named += 1
        path.write_bytes(body)
    assert named >= 1


def test_limit_and_columns_are_kept(head: Run) -> None:
    line = ("shop.lived", "--output", "json")
    document = head(*line, "--limit", "3", "--columns", "b, id").document
    assert (document["columns"], len(document["rows"])) == (["id", "b"], 3)
    assert len(head(*line).document["rows"]) == 10
    assert len(head(*line, "--limit", "99").document["rows"]) == 22


def test_json_writes_every_type_readably(head: Run, lake: Ledger) -> None:
    columns: dict[str, Any] = {
        **COLUMNS,
        "tags": read_type("ARRAY<STRING>"),
        "marks": read_type("MAP<STRING, DECIMAL(4, 1)>"),
    }
    table = lake.create_table("shop.types", Schema.of(columns))
    row = row_of(11) | {"ratio": math.inf, "tags": ["x", None], "marks": [("k", Decimal("1.5"))]}
    add_rows(table, "1.parquet", [row])
    document = head("shop.types", "--output", "json").document
    assert (document["table"], document["version"]) == ("shop.types", 1)
    assert (document["snapshotId"], document["schemaId"]) == (1, 0)
    assert document["rows"] == [
        {
            "id": 11,
            "ok": False,
            "small": None,
            "ratio": "inf",
            "price": "3.07",
            "huge": "1100000000000000000000.0001",
            "name": "b%",
            "born": "1970-01-08",
            "ts": None,
            "seen": "2013-01-05T04:59:58.123456+00:00",
            "raw": "02ff",
            "place": {"zip": 3, "city": "xx"},
            "tags": ["x", None],
            "marks": [{"key": "k", "value": "1.5"}],
        }
    ]
    out = head("shop.types", "--columns", "place,born").out
    assert '{"zip":3,"city":"xx"}' in out
    assert "1970-01-08" in out


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (["shop.none"], 3, "shop.none"),
        (["shop.lived", "--where", "a = 1"], 1, "column a"),
        (["shop.lived", "--where", "id ="], 1, "SQL condition"),
        (["shop.lived", "--columns", "nope"], 1, "column nope"),
        (["shop.lived", "--limit", "0"], 2, "limit"),
        (["shop.lived", "--at", "snapshot:9"], 3, "snapshot 9"),
    ],
    ids=str,
)
def test_an_error_names_the_bad_value(head: Run, line: list[str], code: int, said: str) -> None:
    ran = head(*line)
    assert ran.code == code
    assert said in ran.err


def test_no_rows_are_said_to_be_none(head: Run) -> None:
    assert head("shop.lived", "--at", "version:0").out.splitlines()[-1:] == [
        "no rows: no snapshot yet"
    ]
    assert head("shop.lived", "--where", "id = 99").out.splitlines()[-1] == "no rows"


def test_a_file_that_is_gone_is_named(head: Run, lake: Ledger) -> None:
    (Path(lake.table("shop.lived").location.removeprefix("file://")) / "1.parquet").unlink()
    ran = head("shop.lived")
    assert ran.code == 3
    assert "1.parquet of the table does not exist" in ran.err
