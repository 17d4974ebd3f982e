"""`log` with its filters, `diff`, `blame`, `undo`, `restore`."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

import ledger
from tests.lakes import data_file

if TYPE_CHECKING:
    from tests.cli.conftest import Ran, Run

TABLE = "shop.orders"


@pytest.fixture
def changed(shop: Run) -> Run:
    """A table whose nested column was renamed, dropped and commented, by two people."""

    def alter(*words: str) -> None:
        ran = shop("alter", TABLE, *words)
        assert (ran.code, ran.err) == (0, "")

    alter("--rename", "addr.city=town", "--author", "ann", "--message", "as the post says")
    alter("--add", "addr.zip STRING", "--author", "bob", "--message", "for labels")
    alter("--rename", "addr=address", "--author", "ann")
    alter("--column-comment", "address.town=where", "--author", "eve", "--message", "docs")
    alter("--set", "k=1", "--author", "eve")
    return shop


def versions(ran: Ran) -> list[int]:
    assert ran.err.count("Traceback") == 0
    return [each["version"] for each in ran.document["commits"]]


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ((), [5, 4, 3, 2, 1, 0]),
        (("--column", "address.town"), [4, 1, 0]),
        (("--column", "addr.city"), [4, 1, 0]),
        (("--column", "address"), [4, 3, 2, 1, 0]),
        (("--author", "ANN"), [3, 1]),
        (("--kind", "addColumn", "--kind", "setOption"), [5, 2]),
        (("--grep", "^(docs|for)"), [4, 2]),
        (("--before", "3"), [2, 1, 0]),
        (("--since", "2999-01-01"), []),
        (("--until", "2000-01-01"), []),
    ],
)
def test_a_log_is_filtered(changed: Run, words: tuple[str, ...], wanted: list[int]) -> None:
    assert versions(changed("log", TABLE, *words, "--output", "json")) == wanted


def test_a_log_without_a_match_says_so(changed: Run) -> None:
    found = changed("log", TABLE, "--author", "nobody")
    assert (found.code, found.out.strip()) == (0, "")
    assert "no commit matches; `lakeledger log --help` lists the filters" in found.err


def test_a_log_continues_where_it_ended(changed: Run) -> None:
    first = changed("log", TABLE, "--limit", "4", "--output", "json")
    assert "--before 2" in first.err

    rest = changed("log", TABLE, "--before", "2", "--output", "json")

    assert versions(first) + versions(rest) == [5, 4, 3, 2, 1, 0]


def test_a_log_shows_the_newest_fifty_commits_by_default(shop: Run, tmp_path: Path) -> None:
    table = ledger.open(str(tmp_path / "lake")).table(TABLE)
    newest = max(table.alter([ledger.SetOption("k", f"{each}")]).version for each in range(51))

    logged = shop("log", TABLE, "--output", "json")

    assert versions(logged) == [*range(newest, newest - 50, -1)]
    assert f"--before {newest - 49}" in logged.err
    assert shop("log", TABLE, "--limit", "1", "--output", "json").document["commits"]
    assert "Must be >= 1" in shop("log", TABLE, "--limit", "0").err


def test_the_log_of_the_whole_ledger_is_in_order_of_time(changed: Run) -> None:
    assert changed("create", "shop.other", "--column", "id INT").code == 0

    found = changed("log", "--all", "--output", "json").document["commits"]

    times = [each["timeMillis"] for each in found]
    assert times == sorted(times, reverse=True)
    assert {each["table"] for each in found} == {"", "shop.orders", "shop.other"}
    one = changed("log", "shop", "--output", "json").document["commits"]
    assert {each["table"] for each in one} == {"shop.orders", "shop.other"}


def test_the_log_of_the_whole_ledger_shows_renames_and_drops_of_a_table(changed: Run) -> None:
    assert changed("rename", TABLE, "shop.bought").code == 0
    assert changed("drop", "shop.bought", "--yes").code == 0

    found = changed("log", "--all", "--output", "json").document["commits"]
    logged = {(each["table"], each.get("then"), each.get("dropped")) for each in found}
    assert logged >= {("shop.bought", TABLE, True), ("shop.bought", None, True), ("", None, None)}
    assert "(then" in changed("log", "--all").out


def test_a_line_of_json_is_a_commit(changed: Run) -> None:
    lines = changed("log", TABLE, "--stat", "--output", "jsonl").out.splitlines()

    assert [json.loads(each)["version"] for each in lines] == [5, 4, 3, 2, 1, 0]
    assert json.loads(lines[0])["stat"] == {"rows": 0, "files": 0, "bytes": 0}


def test_a_followed_log_shows_new_commits_until_ctrl_c(
    changed: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ledger.open(str(tmp_path / "lake")).table(TABLE)
    rounds = iter([("one", "two"), (), ("three",)])

    def meanwhile(_: float) -> None:
        asked = next(rounds, None)
        if asked is None:
            raise KeyboardInterrupt
        for each in asked:
            table.alter([ledger.SetOption("k", each)], author="ann")
            table.alter([ledger.SetOption("k", each + "!")], author="bob")

    # That module alone sleeps so: what works behind commits goes on.
    monkeypatch.setattr("ledger.cli.commands.log.time", SimpleNamespace(sleep=meanwhile))

    ran = changed(
        *("log", TABLE, "--follow", "--author", "ann", "--limit", "1", "--output", "jsonl"),
    )

    assert "Traceback" not in ran.err
    assert [json.loads(each)["version"] for each in ran.out.splitlines()] == [3, 6, 8, 10]


def test_following_all_tables_shows_tables_created_and_renamed_since(
    changed: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = ledger.open(str(tmp_path / "lake"), author="ann")
    rounds: list[Any] = [
        lambda: lake.create_table("shop.late", {"id": "INT"}),
        lambda: lake.rename_table("shop.late", "shop.later"),
        lambda: lake.table("shop.later").alter([ledger.SetOption("k", "1")]),
        lambda: lake.drop_table("shop.later"),
    ]

    def meanwhile(_: float) -> None:
        if not rounds:
            raise KeyboardInterrupt
        rounds.pop(0)()

    # That module alone sleeps so: what works behind commits goes on.
    monkeypatch.setattr("ledger.cli.commands.log.time", SimpleNamespace(sleep=meanwhile))
    old = len(changed("log", "--all", "--output", "jsonl").out.splitlines())

    ran = changed("log", "--all", "--follow", "--output", "jsonl")

    logged = [json.loads(each) for each in ran.out.splitlines()][old:]
    assert "Traceback" not in ran.err
    assert [(each["table"], each["version"]) for each in logged if each["table"]] == [
        ("shop.late", 0),
        ("shop.later", 1),
    ]


def test_a_diff_lists_partitions_with_their_totals(changed: Run, tmp_path: Path) -> None:
    table = ledger.open(str(tmp_path / "lake")).table(TABLE)
    table.append([data_file("a.parquet", "2026-01-01"), data_file("b.parquet", "2026-01-02")])
    before = table.append([data_file("c.parquet", "2026-01-02", 5)]).version
    table.overwrite([data_file("d.parquet", "2026-01-02", 7)], where={"day": "2026-01-02"})

    document = changed("diff", TABLE, str(before), "--partitions", "--output", "json").document

    assert document["partitions"] == [
        {"partition": "day=2026-01-02", "before": [15, 2, 1500], "after": [7, 1, 700]}
    ]
    assert "day=2026-01-02" in changed("diff", TABLE, str(before), "--partitions").out
    assert "day=" not in changed("diff", TABLE, str(before)).out


def test_a_diff_is_a_list_of_changes_that_alter_takes(changed: Run, tmp_path: Path) -> None:
    document = changed("diff", TABLE, "0", "--output", "json").document
    file = tmp_path / "changes.json"
    file.write_text(json.dumps(document["changes"]))
    text = changed("diff", TABLE, "0", "version:3")
    assert "renamed column addr to address" in text.out
    assert changed("restore", TABLE, "--to", "version:0", "--yes").code == 0
    assert changed("create", "shop.staging", "--like", TABLE).code == 0

    assert changed("alter", TABLE, "--changes", str(file)).code == 0

    assert changed("alter", "shop.staging", "--changes", str(file)).code == 0
    assert changed("diff", TABLE, "shop.staging", "--output", "json").document["changes"] == []
    # The column that went keeps its id, so the one that takes its place has a new one.
    found = changed("diff", TABLE, "5", "--output", "json").document["changes"]
    assert [each["type"] for each in found] == ["dropColumn", "addColumn"]


def test_blame_shows_author_and_message(changed: Run) -> None:
    document = changed("blame", TABLE, "--column", "addr.city", "--output", "json").document
    (town,) = document["blame"]

    assert [(each["author"], each["message"]) for each in town["causes"]][1:] == [
        ("ann", "as the post says"),
        ("eve", "docs"),
    ]
    text = changed("blame", TABLE)
    assert "option k" in text.out
    assert "comment: where" in text.out


def test_undo_is_a_plan_first(changed: Run) -> None:
    plan = changed("undo", TABLE, "3")

    assert (plan.code, plan.err) == (0, "")
    assert "nothing was written" in plan.out
    assert versions(changed("log", TABLE, "--output", "json"))[0] == 5
    done = changed("undo", TABLE, "3", "--yes", "--author", "ann")
    assert "renamed column address to addr" in done.out
    assert "nothing was written" not in done.out


def test_an_impossible_undo_ends_with_the_reason(changed: Run) -> None:
    assert changed("alter", TABLE, "--rename", "address=place").code == 0

    ran = changed("undo", TABLE, "3")

    assert ran.code == 1
    assert "changed again since" in ran.err
    assert changed("undo", TABLE, "77").code == 3


def test_restore_gives_an_earlier_schema_again(changed: Run) -> None:
    assert changed("alter", TABLE, "--rename", "address=place", "--set", "k=2").code == 0

    assert changed("restore", TABLE, "--to", "version:5").code == 0
    assert changed("restore", TABLE, "--to", "version:5", "--yes").code == 0

    found: Any = changed("diff", TABLE, "5", "--output", "json").document
    assert found["changes"] == []
