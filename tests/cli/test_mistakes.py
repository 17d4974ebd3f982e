from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from ledger import FileChange
from ledger import open as open_ledger
from ledger.cli.exits import exit_code_of
from ledger.model import errors

if TYPE_CHECKING:
    from tests.cli.conftest import Run

MISTAKES: list[tuple[list[str], int, str]] = [
    (["alter", "shop.orders", "--rename", "id", "nn"], 2, "write --rename id=nn;"),
    (["alter", "shop.orders", "--rename", "id", "to", "nn"], 2, "--rename takes OLD=NEW"),
    (["plan", "shop.orders", "--default", "id", "5"], 2, "--default takes PATH=VALUE"),
    (["alter", "shop.orders", "--set", "a b", "c"], 2, "write --set 'a b=c';"),
    (["alter", "shop.orders", "--add", "hue", "STRING"], 2, "write --add 'hue STRING';"),
    (["alter", "shop.orders", "--type", "id", "INT", "NULL"], 2, "write --type 'id INT NULL';"),
    (["create", "shop.x", "--column", "id", "INT"], 2, "write --column 'id INT';"),
    (["tag", "shop.orders", "v1", "--message", "to", "keep"], 2, "--message 'to keep';"),
    (["log", "shop.orders", "--kind", "foo"], 2, "--kind. 'foo' is no kind of event; the kinds"),
    (["log", "--kind", "addColum"], 2, "did you mean addColumn?"),
    (["log", "--kind", "nope"], 2, 'Invalid value "nope" for --kind'),
    (["log", "--kind", "addColumn", "--kind", ""], 2, "for --kind. A kind of event is not empty"),
    (["log", "--kind", "addColumn,dropColumn"], 2, "--kind addColumn --kind dropColumn"),
    (
        ["alter", "shop.orders", "--add", "hue", "STRING", "COMMENT", "the colour"],
        2,
        "write --add \"hue STRING COMMENT 'the colour'\";",
    ),
    (
        ["alter", "shop.orders", "--add", "hue", "INT", "COMMENT", "hue", "AFTER", "a b"],
        2,
        r"COMMENT 'hue' AFTER \`a b\`",
    ),
    (["alter", "shop.orders", "--add", "hue", "INT", "--add", "b", "INT"], 2, "--add 'b INT';"),
    (["plan", "shop.orders", "--add", "unit price", "INT"], 2, "write --add '`unit price` INT';"),
    (["alter", "shop.orders", "--column-comment", "id", "a", "b"], 2, "-comment 'id=a b';"),
    (["alter", "shop.orders", "--column-comment", "id=a", "b"], 2, "-comment 'id=a b';"),
    (["alter", "shop.orders", "--rename", "a b", "c"], 2, "write --rename '`a b`=c';"),
    (["alter", "shop.orders", "--rename", "id", "=", "nn"], 2, "write --rename id=nn;"),
    (["alter", "shop.orders", "--rename", "id", "a", "b"], 2, "--rename takes OLD=NEW; see"),
    (["alter", "shop.orders", "--rename", "a=b", "c=d"], 2, "--rename a=b --rename c=d;"),
    (["alter", "shop.orders", "--set", "a=b", "c=d"], 2, "write --set a=b --set c=d;"),
    (["alter", "shop.orders", "--drop", "id", "day"], 2, "write --drop id --drop day;"),
    (["create", "shop.x", "--primary-key", "a", "b"], 2, "--primary-key a --primary-key b;"),
    (["create", "shop.x", "--column", "a INT", "b INT"], 2, "--column 'a INT' --column 'b INT';"),
    (["alter", "shop.orders", "foo"], 2, "--drop, --undrop, --rename, --type, --nullable"),
    (["view", "alter", "shop.v", "foo"], 2, "options are --set, --unset, --comment, --add-dial"),
    (
        ["sql", "ALTER", "TABLE", "shop.orders", "ADD", "COLUMN", "x", "INT"],
        2,
        "write lakeledger sql 'ALTER TABLE shop.orders ADD COLUMN x INT';",
    ),
    (["plan", "shop.orders", "--rename", "id nn"], 2, "not OLD=NEW: ' nn' follows the path; write"),
    (["plan", "shop.orders", "--rename", "id nn"], 2, "write --rename id=nn;"),
    (["plan", "shop.orders", "--rename", "id TO nn"], 2, "write --rename id=nn;"),
    (["plan", "shop.orders", "--default", "id 5"], 2, "write --default id=5;"),
    (["plan", "shop.orders", "--column-comment", "id a b"], 2, "is not PATH=TEXT"),
    (["plan", "shop.orders", "--undrop", "id 5"], 2, "--undrop: 'id 5' is not PATH=ID"),
    (["create", "shop.x", "--column", "a INT", "--option", "x"], 2, "--option: 'x' is not KEY="),
    (["view", "create", "shop.v", "--query", "q", "--dialect", "x"], 2, "--dialect: 'x' is not"),
    (["view", "create", "shop.v", "--query", "q", "--option", "x"], 2, "--option: 'x' is not"),
    (["overwrite", "shop.orders", "--where", "x"], 2, "--where: 'x' is not KEY=VALUE"),
    (["view", "--profile", "x"], 2, "'view' needs a command before --profile; choose one of: al"),
    (["project", "--wat"], 2, "there is no option --wat; see: lakeledger project --help"),
    (["project"], 2, "needs a format, which is one of delta, iceberg, paimon, or --all; see"),
    (["project", "icebreg"], 2, "no command 'project icebreg': did you mean 'project iceberg'?"),
    (["project", "--all", "shp"], 3, "did you mean shop?"),
    (["import", "--ledger", "x"], 2, "needs a command before --ledger; choose one of: delta, i"),
    (["alter", "shop.orders", "--set", "a=b", "--expect-version", "9"], 1, "version 9, but the n"),
    (["alter", "shop.orders", "--set", "a=b", "--commit-id", ""], 1, "commit id '' is not valid"),
    (["show", "shop.orders", "--snapshot", "9"], 3, "there are none yet. The table can still"),
    (["log", "--commit-id", "nope"], 3, "retrying with the same commit id is safe"),
    (["delete-files", "shop.orders", "a.parquet"], 1, "give the path of a live file"),
    (["alter", "shop.orders", "--change", "{}"], 1, "such as addColumn; found none"),
    (
        ["alter", "shop.orders", "--change", '{"type": "b", "action": "a"}'],
        1,
        "such as addColumn; found 'a' and 'b'",
    ),
    (
        ["alter", "shop.orders", "--change", '{"type":"setIdentifierFields","fieldNames":["x"]}'],
        1,
        "--change.fieldNames[0]: is 'x', not a list of texts",
    ),
    (
        ["alter", "shop.orders", "--change", '{"type":"setIdentifierFields","fieldNames":[[1]]}'],
        1,
        "--change.fieldNames[0][0]: is 1, not a text",
    ),
    (["alter", "shop.orders", "--change", '{"type":"setOption","key":"","value":""}'], 1, "empty"),
    (["report", "shop.orders", "--into", "/nope/x.html"], 2, "--into /nope/x.html: there is no"),
    (
        ["alter", "shop.orders", "--add", "x INT DEFAULT 5 NOT NULL"],
        1,
        "column x: 'NOT NULL' must follow the type directly; write it before the default value",
    ),
    (
        ["alter", "shop.orders", "--add", "x INT COMMENT 'c' DEFAULT 5 NULL FIRST"],
        1,
        "write it before the comment and the default value",
    ),
    (["log", "shop.orders", "--grep", "("], 2, "--grep. It is no regular expression"),
    (["import", "ledger", "x.jsonl"], 2, "either --restore"),
    (["import", "ledger", "x.jsonl", "--copy", "--restore"], 2, "or --copy"),
    (["show", "shop.ordrs"], 3, "table shop.ordrs does not exist: did you mean shop.orders"),
    (["show", "shops.orders"], 3, "shops"),
    (["show", "orders"], 3, "write DATABASE.TABLE"),
    (["show", "shop.orders", "extra"], 2, "'show' does not take 'extra'; its options are"),
    (["show", "shop.orders", "HEAD~1"], 2, "an instant is an option: --at HEAD~1"),
    (["diff", "shop.orders", "HEAD~1..HEAD"], 2, "lakeledger diff shop.orders HEAD~1 HEAD"),
    (["diff", "shop.orders", "1.."], 2, "lakeledger diff shop.orders 1 now"),
    (["append", "shop.orders", "a.csv", "--branch", "main"], 3, "the table itself is main; omit"),
    (["select", "1"], 2, "did you mean 'sql'?"),
    (["serve-table", "shop.orders"], 1, "engines cannot commit to a table whose origin is native"),
    (["project", "shop.orders"], 2, "before shop.orders write one of: delta, iceberg, paimon"),
    (["log", "shop.orders", "-n", "0"], 2, "Must be >= 1"),
    (["show", "shp"], 3, "did you mean 'shop'?"),
    (["rename", "shop.ordrs", "shop.x"], 3, "did you mean shop.orders?"),
    (["rename", "orders", "shop.x"], 1, "write DATABASE.TABLE"),
    (["drop", "shop.ordrs"], 3, "did you mean shop.orders?"),
    (["drop", "shop"], 1, "shop.orders"),
    (["drop", "shp"], 3, "did you mean shop?"),
    (["ls", "shp"], 3, "did you mean shop?"),
    (["delete-files", "shop.orders"], 2, "no files are given"),
    (["delete-files", "shop.orders", "a.parquet"], 1, "it was never in the table"),
    (["create", "shop.x", "--like", "days.csv"], 2, "days.csv is not a Parquet file"),
    (["create-database", "more"], 2, "did you mean 'create'?"),
    (["create", "shop.x", "--partition-by", "day"], 2, "did you mean --partition-key?"),
    (["alter", "shop.orders", "--rename", "unit price=p"], 2, "is quoted with backticks"),
    (["show", "shop.orders", "--at", "2013-01-05"], 3, "at the end of 2013-01-05 UTC"),
    (["overwrite", "shop.orders"], 2, "nothing to overwrite;"),
    (["overwrite", "shop.orders", "--where", "dya=1"], 1, "did you mean 'day'?"),
    (["create", "shop.x", "--like", "shop.ordrs"], 3, "did you mean shop.orders?"),
    (["create", "shop.x", "--like", "nowhere.parquet"], 3, "names no file"),
    (["create", "shop.x", "--column", "a INT", "--column", "a INT"], 2, "a is defined twice"),
    (["create", "more", "--like", "shop.orders"], 2, "is a database, which has no columns"),
    (["convert", "shop.orders"], 2, "there is no command 'convert'; see: lakeledger --help"),
    (["history", "shop.orders"], 2, "did you mean 'log'?"),
    (["view", "lst"], 2, "there is no command 'view lst': did you mean 'view list'?"),
    (["alter", "shop.orders", "--wat", "x"], 2, "there is no option --wat; see"),
    (
        ["alter", "shop.orders", "--dorp", "id"],
        2,
        "there is no option --dorp: did you mean --drop?",
    ),
    (["alter", "shop.orders", "--drop", "ady"], 1, "did you mean 'day'?"),
    (["alter", "shop.orders", "--add", "x DOUBEL"], 1, "did you mean DOUBLE?"),
    (["show", "shop.orders", "--tag", "v9"], 3, "tag 'v9' does not exist"),
    (["show", "shop.orders", "--snapshot", "4"], 3, "snapshot 4 does not exist"),
    (["show", "shop.orders", "--version", "99"], 3, "99"),
    (
        ["show", "shop.orders", "--at", "someday"],
        2,
        "for a tag write tag:someday, for a branch branch:someday; write now, a version",
    ),
    (["show", "shop.orders", "--at", "3"], 3, "version 3 does not exist; there are 0 to 0"),
    (["expire", "shop.orders", "--older-than", "30"], 2, "'30' is not a time; write 2013-01-31"),
    (["head", "orders"], 2, "'orders' is not a full name: did you mean shop.orders?"),
    (["show", "orders"], 3, "database orders does not exist; did you mean shop.orders?"),
    (["snapshots", "purchases"], 2, "'purchases' is not a full name: write DATABASE.TABLE"),
    (["rollback", "shop.orders", "1"], 2, "'rollback' needs --to; see"),
    (["blame", "shop.orders", "id"], 2, "does not take 'id'; its options are --column"),
    (["undo", "shop.orders", "--version", "1"], 2, "there is no option --version"),
    (["alter", "shop.orders", "--add-column", "n INT"], 2, "did you mean --add?"),
    (["show", "shop.orders", "--branch", "b"], 2, "did you mean --at branch:NAME?"),
    (["log", "shop.orders", "--at", "now"], 2, "did you mean --until?"),
    (["log", "shop.orders", "--by", "ada"], 2, "did you mean --author?"),
    (["tag", "shop.orders", "v1", "--delete"], 2, "did you mean --drop?"),
    (["tag", "shop.orders", "v", "--snapshot", "1"], 2, "did you mean --at snapshot:ID?"),
    (["tag", "shop.orders", "v1", "--yes"], 2, "--yes confirms --drop; omit it"),
    (["branch", "shop.orders", "b", "--yes"], 2, "--yes confirms --drop or --reset; omit it"),
    (["revert", "shop.orders", "1"], 2, "did you mean 'undo'?"),
    (["overwrite", "shop.orders", "--partition", "day=1"], 2, "did you mean --where?"),
    (["alter"], 2, "'alter' needs NAME; see: lakeledger alter --help"),
    (["show", "shop.orders", "--at"], 2, "--at needs a value; see: lakeledger show --help"),
    (["alter", "shop.orders", "--add", "x VARCHAR"], 1, "write VARCHAR(20), or STRING for any"),
    (["alter", "shop.orders", "--add", "x ROW<y VARBINARY>"], 1, "VARBINARY(20), or BYTES for"),
    (["alter", "shop.orders", "--set", "ledger.folow=iceberg"], 1, "did you mean ledger.follow?"),
    (["sql", "SELECT * FROM shop.orders"], 1, "rows of tables are read by lakeledger head"),
    (["show", "shop.orders", "--at", "yesterday"], 3, "nothing was there at 20"),
    (["show", "shop.orders", "--at", "2013-01-05T12:00:00Z"], 3, "2013-01-05 12:00:00.999 UTC"),
    (["show", "shop.orders", "--at", "-7"], 3, "there are only 0 commits before the newest"),
    (["show", "shop.orders", "--tag", "a", "--version", "1"], 2, "give only one of --at"),
    (["show", "--tag", "a"], 2, "name the table"),
    (["alter", "shop.orders"], 2, "no change is given"),
    (["alter", "shop.orders", "--add", "zip STRNG"], 1, "column zip: cannot read type 'STRNG'"),
    (["alter", "shop.orders", "--add", "zip"], 2, "--add: 'zip' has no type"),
    (["alter", "shop.orders", "--add", "id INT"], 1, "id"),
    (["alter", "shop.orders", "--drop", "zip"], 1, "zip"),
    (["alter", "shop.orders", "--drop", "day"], 1, "create another table with the keys"),
    (["alter", "shop.orders", "--set"], 2, "--set"),
    (["alter", "shop.orders", "--ad", "zip INT"], 2, "--ad"),
    (["alter", "shop.orders", "--set", "a=b", "--expect-version", "7"], 1, "the newest is 0"),
    (["alter", "shop.orders", "--set", "a=b", "--expect-version", "x"], 2, "--expect-version"),
    (["create", "shop"], 3, "shop"),
    (["create", "shop.orders", "--column", "id INT"], 3, "shop.orders"),
    (["create", "shp.orders", "--column", "id INT"], 3, "shp"),
    (["create", "shop.items"], 2, "a table needs columns"),
    (["create", "shop.items", "--column", "id INTT"], 1, "column id: cannot read type 'INTT'"),
    (["create", "shop.items", "--column", "id INT", "--partition-key", "x"], 1, "x"),
    (["create", "shop.a/b", "--column", "id INT"], 1, "'/'"),
    (["create", "more", "--column", "id INT"], 2, "is a database, which has no columns"),
    (["create", "more", "--comment", "x"], 2, "--option comment="),
    (["create", "shop.items", "--schema", "/nowhere.json"], 1, "/nowhere.json cannot be read"),
    (["create", "shop.i", "--schema", "x", "--column", "a INT"], 2, "--schema defines the table"),
    (["append", "shop.orders"], 2, "no files are given"),
    (["append", "shop.orders", "/nowhere/a.csv"], 3, "/nowhere/a.csv cannot be read"),
    (["append", "shop.orders", __file__], 1, "is none of .csv, .jsonl, .ndjson, .parquet"),
    (["add-files", "shop.orders"], 2, "no files are given"),
    (["add-files", "shop.orders", "/nowhere/*.parquet"], 3, "/nowhere/*.parquet names no file"),
    (["add-files", "shop.orders", __file__], 1, "is no Parquet file"),
    (["tag", "shop.orders", "v1"], 1, "snapshot"),
    (["tag", "shop.orders", "v1", "--drop"], 3, "v1"),
    (["tag", "shop.orders", "v1", "--drop", "--replace"], 2, "--drop cannot be combined with"),
    (["rollback", "shop.orders"], 2, "'rollback' needs --to; see"),
    (["rollback", "shop.orders", "--to", "snapshot:9"], 3, "snapshot 9 does not exist"),
    (["log", "shop.orders", "--limit", "0"], 2, "--limit"),
    (["lgo"], 2, "there is no command 'lgo': did you mean 'log'?"),
    (["show", "--output", "xml"], 2, "xml"),
    (["show", "--storage-option", "x"], 2, "--storage-option: 'x' is not KEY=VALUE"),
    (["show", "--storage-option", "x=y"], 8, "takes no storage_options"),
]


@pytest.mark.parametrize(("line", "code", "said"), MISTAKES, ids=lambda each: str(each)[:60])
def test_a_mistake_is_one_line_with_its_own_exit_code(
    shop: Run, line: list[str], code: int, said: str
) -> None:
    ran = shop(*line)

    assert said in ran.err
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.startswith("lakeledger: ")
    assert not ran.err.startswith("lakeledger: $")
    assert ran.err.count("\n") == 1


def test_a_mistake_writes_nothing(shop: Run) -> None:
    before = shop("log", "shop.orders", "--output", "json").out
    for line, _, _ in MISTAKES:
        shop(*line)

    assert shop("log", "shop.orders", "--output", "json").out == before


def test_a_commit_id_with_other_content_is_rejected(shop: Run) -> None:
    shop("alter", "shop.orders", "--set", "a=b", "--commit-id", "k1")

    ran = shop("alter", "shop.orders", "--set", "a=c", "--commit-id", "k1")

    assert ran.code == 1
    assert "commit id 'k1' was used for something else in version 1" in ran.err


def test_only_the_expected_version_is_followed(shop: Run) -> None:
    assert shop("alter", "shop.orders", "--set", "a=b", "--expect-version", "0").code == 0

    ran = shop("alter", "shop.orders", "--set", "c=d", "--expect-version", "0")

    assert ran.code == 4
    assert "version 1" in ran.err


def test_a_ledger_that_is_not_there_is_not_begun_by_a_typo(run: Run, tmp_path: Path) -> None:
    for line in (["show"], ["log"], ["create", "shop"]):
        ran = run(*line, "--ledger", tmp_path / "lak")
        assert ran.code == 3
        assert "create one with: lakeledger init" in ran.err
    assert not (tmp_path / "lak").exists()


def test_a_command_without_a_ledger_is_rejected(run: Run) -> None:
    ran = run("show")

    assert (ran.code, "--ledger URL, set LAKELEDGER_URL" in ran.err) == (2, True)


def test_two_ledgers_are_one_too_many_for_init(run: Run, tmp_path: Path) -> None:
    assert run("init", tmp_path / "a", "--ledger", tmp_path / "b").code == 2


def test_a_place_that_cannot_hold_a_ledger_is_rejected(run: Run) -> None:
    assert run("show", "--ledger", "ftp://host/lake").code == 8


def test_damage_has_its_own_exit_code(shop: Run, tmp_path: Path) -> None:
    (log,) = (tmp_path / "lake").rglob("orders/_ledger/log/*0.json")
    log.write_bytes(log.read_bytes()[:-20])

    ran = shop("show", "shop.orders")

    assert ran.code == 6
    assert log.name in ran.err


def test_a_newer_ledger_requires_an_upgrade(shop: Run, tmp_path: Path) -> None:
    root = tmp_path / "lake" / "_ledger" / "ledger.json"
    root.write_bytes(root.read_bytes().replace(b'"format":3', b'"format":99'))

    ran = shop("show")

    assert (ran.code, "upgrade lakeledger" in ran.err) == (6, True)


def test_json_of_a_table_says_what_to_install_where_nothing_is(
    shop: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    ran = shop("show", "shop.orders", "--output", "json")

    assert (ran.code, "pip install lakeledger" in ran.err) == (7, True)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidChangeError("x"), 1),
        (errors.UnsupportedError("x"), 1),
        (errors.TableDroppedError("x"), 3),
        (errors.AlreadyExistsError("x"), 3),
        (errors.CommitConflictError("x", "cell", 3), 4),
        (errors.CommitUnknownError("x", "id", 3), 5),
        (errors.DamagedLogError("x", "file"), 6),
        (errors.UpgradeRequiredError("x"), 6),
        (errors.MissingDependencyError("x"), 7),
        (errors.StoreError("x"), 8),
    ],
)
def test_every_error_has_its_exit_code(error: errors.LedgerError, code: int) -> None:
    assert exit_code_of(error) == code


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_stream_that_is_closed_is_no_error(shop: Run, tmp_path: Path, closed: str) -> None:
    del shop
    line = f'"$0" -m ledger tag shop.orders v1 --ledger "$1" {closed}'
    table = open_ledger(str(tmp_path / "lake")).table("shop.orders")
    day = ("2026-01-01",)
    table.append(
        [FileChange(path="a.parquet", partition=day, record_count=1, file_size_in_bytes=1)]
    )

    words = ["sh", "-c", line, sys.executable, str(tmp_path / "lake")]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)

    assert (ran.returncode, ran.stderr) == (0, "")
    assert list(table.state.tags) == ["v1"]


def test_a_closed_output_pipe_is_no_error(shop: Run, tmp_path: Path) -> None:
    shop("alter", "shop.orders", "--set", "a=b")
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ran = subprocess.run(
            [sys.executable, "-m", "ledger", "log", "shop.orders", "--ledger", tmp_path / "lake"],
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)

    assert (ran.returncode, ran.stderr) == (141, b"")
