from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyarrow import parquet

from ledger import FileChange, Schema
from ledger import open as open_ledger
from ledger.table_handle import handle_of

if TYPE_CHECKING:
    from tests.cli.conftest import Run

TABLE = "shop.orders"


def a_file(tmp_path: Path, name: str, ids: list[int], day: str = "2013-01-01") -> Path:
    """Write a file of the table's first schema where the table lives."""
    table = open_ledger(str(tmp_path / "lake")).table(TABLE)
    folder = tmp_path / "lake" / handle_of(table).path / f"day={day}"
    folder.mkdir(parents=True, exist_ok=True)
    rows = pa.table({"id": ids, "day": [day] * len(ids), "addr": [{"city": "Rome"}] * len(ids)})
    schema = Schema.of(
        {
            "id": "BIGINT NOT NULL",
            "day": "DATE",
            "addr": next(iter(table.at().schema.fields[2:])).type,
        }
    ).to_arrow()
    content = pa.Table.from_arrays(
        [rows[each.name].combine_chunks().cast(each.type) for each in schema], schema=schema
    )
    path = folder / name
    parquet.write_table(content, path)
    return path


def test_init_is_the_same_ledger_however_often(run: Run, tmp_path: Path) -> None:
    first = run("init", tmp_path / "lake", "--output", "json").document
    again = run("init", "--ledger", tmp_path / "lake", "--output", "json").document

    assert first == {**again, "created": True}
    assert again["created"] is False


def test_init_says_whether_the_ledger_was_there_before(run: Run, tmp_path: Path) -> None:
    first, again = run("init", tmp_path / "lake").out, run("init", tmp_path / "lake").out
    assert f"lakeledger create NAME --ledger {tmp_path / 'lake'}" in first
    assert "lakeledger create" not in again

    assert " is initialized as a ledger (" in first
    assert again.splitlines() == [
        first.splitlines()[0].replace(" is initialized as a ledger (", " already is a ledger (")
    ]


def test_the_environment_may_name_the_ledger(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKELEDGER_URL", str(tmp_path / "lake"))

    assert [run(*line).code for line in (["init"], ["create", "shop"], ["show"])] == [0, 0, 0]


def test_options_may_precede_the_command(run: Run, tmp_path: Path) -> None:
    run("init", tmp_path)

    ran = run("--ledger", tmp_path, "--output=json", "show")

    assert ran.document["databases"] == []


def test_a_table_may_come_from_a_schema_file(shop: Run, tmp_path: Path) -> None:
    file = tmp_path / "schema.json"
    fields = [
        {"id": 0, "name": "id", "type": "INT NOT NULL"},
        {"id": 1, "name": "x", "type": "DATE"},
    ]
    file.write_text(
        json.dumps({"fields": fields, "primaryKeys": ["id"], "options": {"bucket": "1"}})
    )

    assert shop("create", "shop.items", "--schema", file, "--option", "a=b").code == 0

    at = open_ledger(str(tmp_path / "lake")).table("shop.items").at()
    assert (at.schema.primary_keys, dict(at.options)) == (("id",), {"bucket": "1", "a": "b"})


def test_alter_commits_all_changes_in_one_commit_in_their_order(shop: Run) -> None:
    ran = shop(
        *("alter", TABLE, "--rename", "addr=address", "--add", "address.zip INT FIRST"),
        *("--type", "address.zip BIGINT", "--set", "a=b", "--author", "me", "--message", "why"),
        *("--output", "json"),
    )

    assert (ran.code, ran.document["version"], ran.document["repeated"]) == (0, 1, False)
    assert [each["type"] for each in ran.document["events"]] == [
        "renameColumn",
        "addColumn",
        "updateColumnType",
        "setOption",
    ]
    said = shop("log", TABLE, "--limit", "1").out
    for words in ("me", "why", "renamed column addr to address (id 2)", "set option a to b"):
        assert words in said


def test_the_same_commit_id_again_is_the_first_commit(shop: Run) -> None:
    line = ("alter", TABLE, "--add", "zip INT", "--commit-id", "k1", "--output", "json")

    first, again = shop(*line).document, shop(*line).document

    assert again == {**first, "repeated": True}


def test_files_are_added_tagged_and_rolled_back(shop: Run, tmp_path: Path) -> None:
    one, two = a_file(tmp_path, "1.parquet", [1, 2]), a_file(tmp_path, "2.parquet", [3])

    assert shop("add-files", TABLE, one).code == 0
    assert shop("tag", TABLE, "good").code == 0
    assert shop("add-files", TABLE, two.parent / "2*.parquet").code == 0
    rolled = shop("rollback", TABLE, "--to", "tag:good", "--output", "json").document

    assert rolled["events"][0]["deltaRecordCount"] == -1
    assert "files" not in rolled["events"][0]
    rows = {at: counted(shop, at) for at in ("tag:good", "snapshot:2", "snapshot:3", "version:0")}
    assert rows == {"tag:good": "2", "snapshot:2": "3", "snapshot:3": "2", "version:0": None}


def counted(shop: Run, at: str) -> str | None:
    """Return the number of rows that `show` says."""
    lines = [line.split() for line in shop("show", TABLE, "--at", at).out.splitlines()]
    return next((words[1] for words in lines if words[:1] == ["rows"]), None)


def test_a_job_registers_only_what_is_new(shop: Run, tmp_path: Path) -> None:
    folder = a_file(tmp_path, "1.parquet", [1]).parent
    line = ("add-files", TABLE, folder / "[0-9].parquet", "--new")
    first = shop(*line, "--output", "json").document
    nothing = shop(*line)
    a_file(tmp_path, "2.parquet", [2, 3])
    second = shop(*line, "--output", "json").document

    assert [each["events"][0]["deltaRecordCount"] for each in (first, second)] == [1, 2]
    assert second["version"] == first["version"] + 1
    said = f"{TABLE} stays at version {first['version']}: it already has all of these files\n"
    assert (nothing.code, nothing.out) == (0, said)
    assert shop(*line, "--output", "json").document["events"] == []
    assert shop("add-files", TABLE, folder / "2.parquet").code == 1


def test_tags_move_and_go(shop: Run, tmp_path: Path) -> None:
    shop("add-files", TABLE, a_file(tmp_path, "1.parquet", [1]))
    shop("add-files", TABLE, a_file(tmp_path, "2.parquet", [2]))

    assert shop("tag", TABLE, "t", "--at", "snapshot:1").code == 0
    assert "tag 't' exists" in shop("tag", TABLE, "t").err
    assert "moved tag t to snapshot 2" in shop("tag", TABLE, "t", "--replace").out
    assert "deleted tag t" in shop("tag", TABLE, "t", "--drop", "--yes").out
    assert shop("show", TABLE, "--tag", "t").code == 3


def test_show_json_holds_the_objects_of_the_metadata_api(
    shop: Run, tmp_path: Path, installed: None
) -> None:
    del installed
    shop("add-files", TABLE, a_file(tmp_path, "1.parquet", [1, 2]))
    shop("alter", TABLE, "--drop", "addr")

    now = shop("show", TABLE, "--output", "json").document
    then = shop("show", TABLE, "--snapshot", "1", "--output", "json").document

    assert now["identifier"] == {"databaseName": "shop", "tableName": "orders"}
    assert [each["name"] for each in now["table"]["schema"]["fields"]] == ["id", "day"]
    assert [each["name"] for each in then["table"]["schema"]["fields"]] == ["id", "day", "addr"]
    assert (now["table"]["schemaId"], then["table"]["schemaId"]) == ("1", "0")
    assert now["tableSnapshot"]["recordCount"] == then["tableSnapshot"]["recordCount"] == 2


def test_show_lists_what_there_is(shop: Run) -> None:
    shop("create", "empty")

    assert shop("show", "--output", "json").document["databases"] == [
        {"name": "empty", "tables": [], "views": [], "functions": []},
        {"name": "shop", "tables": ["orders"], "views": [], "functions": []},
    ]
    assert "orders" in shop("show").out


def test_the_catalog_has_a_log_of_its_own(shop: Run) -> None:
    said = shop("log").out

    assert said.index("created table shop.orders") < said.index("created database shop")


def test_a_short_log_says_on_stderr_what_it_left_out(shop: Run) -> None:
    shop("alter", TABLE, "--set", "a=b")
    ran = shop("log", TABLE, "--limit", "1", "--output", "json")

    assert [each["version"] for each in ran.document["commits"]] == [1]
    assert "there are older commits; to continue, use --before 1" in ran.err


def test_messages_are_shown_without_what_steers_terminals(shop: Run) -> None:
    shop("alter", TABLE, "--set", "a=b", "--message", "\x1b[2J[bold]hi")

    assert "?[2J[bold]hi" in shop("log", TABLE).out


def test_a_table_comment_that_looks_like_a_column_comment_suggests_the_option(shop: Run) -> None:
    result = shop("alter", "shop.orders", "--comment", "id=one a day")
    assert result.code == 0
    assert '--column-comment "id=one a day"' in result.err
    assert shop("alter", "shop.orders", "--comment", "unit=day").err == ""


def test_changes_are_read_alike_where_pydantic_is_loaded(shop: Run) -> None:
    # Cyclopts checks every value by it then, as in a process that has loaded PyIceberg.
    importlib.import_module("pydantic")
    ran = shop("alter", "shop.orders", "--add", "zip STRING", "--comment", "a b  c")
    assert (ran.code, ran.err) == (0, "")
    planned = shop("plan", "shop.orders", "--add", "city STRING")
    assert (planned.code, planned.err) == (0, "")


def test_a_rollback_to_the_current_state_reports_no_change(shop: Run) -> None:
    table = open_ledger(shop("ls", "--output", "json").document["url"]).table("shop.orders")
    day = ("2013-01-01",)
    file = FileChange(path="a.parquet", partition=day, record_count=1, file_size_in_bytes=9)
    table.append([file])
    before = table.state.version

    ran = shop("rollback", "shop.orders", "--to", "snapshot:1")

    assert (ran.code, "is already its newest" in ran.out) == (0, True)
    assert table.state.version == before


def test_one_commit_ago_is_the_version_before(shop: Run) -> None:
    shop("alter", "shop.orders", "--add", "note STRING")

    then = shop("show", "shop.orders", "--at", "-1", "--output", "json")
    now = shop("show", "shop.orders", "--at", "now")

    assert then.document["version"] == 0 if then.code == 0 else then.code == 7
    assert "note" in now.out
    assert "note" not in shop("show", "shop.orders", "--at=-1").out


def test_if_exists_and_if_not_exists_act_where_they_must(shop: Run) -> None:
    def columns() -> str:
        return shop("show", "shop.orders").out

    new = "ALTER TABLE shop.orders ADD COLUMN IF NOT EXISTS note STRING"
    assert shop("sql", new).code == 0
    assert "note" in columns()
    again = shop("sql", "ALTER TABLE shop.orders ADD COLUMN IF NOT EXISTS note INT")
    assert (again.code, "note INT" in columns()) == (0, False)
    assert shop("sql", "ALTER TABLE shop.orders ADD COLUMN note STRING").code == 1

    assert shop("sql", "ALTER TABLE shop.orders DROP COLUMN IF EXISTS note").code == 0
    assert "note" not in columns()
    assert shop("sql", "ALTER TABLE shop.orders DROP COLUMN IF EXISTS note").code == 0
    assert shop("sql", "ALTER TABLE shop.orders DROP COLUMN note").code == 1


def test_a_statement_says_what_it_did(shop: Run) -> None:
    ran = shop("sql", "ALTER TABLE shop.orders RENAME COLUMN id TO key", "--output", "json")
    renamed = shop("sql", "ALTER TABLE shop.orders RENAME TO shop.bought", "--output", "json")

    assert ran.document["events"][0]["type"] == "renameColumn"
    assert renamed.document["table"] == "shop.bought"
    assert shop("ls", "shop", "--output", "json").document["databases"][0]["tables"] == ["bought"]
    assert shop("show", "shop").out == shop("ls", "shop").out
