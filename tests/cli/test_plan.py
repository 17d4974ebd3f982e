"""`lakeledger plan`: what `alter` would do, for people and for programs."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.types import LongType

import ledger
from tests.cli.conftest import Ran, Run
from tests.projections.iceberg.importing.writing import created


@pytest.fixture
def shop(run: Run, tmp_path: Path) -> Run:
    root = tmp_path / "lake"

    def there(*argv: object) -> Ran:
        return run(*argv, "--ledger", root)

    columns = ("--column", "id BIGINT NOT NULL", "--column", "amount INT")
    for line in (("init",), ("create", "shop"), ("create", "shop.orders", *columns)):
        assert there(*line).code == 0
    return there


def test_the_text_names_facts_differences_and_verdicts(shop: Run) -> None:
    ran = shop("plan", "shop.orders", "--add", "zip STRING", "--rename", "amount=total")
    assert (ran.code, ran.err) == (0, "")
    names = ("nothing was written", "will add column zip", "amount INT", "total INT", "allowed")
    for said in names:
        assert said in ran.out
    assert shop("log", "shop.orders", "--output", "json").out.count('"version"') == 1


def test_a_refused_change_ends_as_alter_would(shop: Run) -> None:
    line = ("shop.orders", "--type", "amount STRING")
    planned, altered = shop("plan", *line), shop("alter", *line)
    assert planned.code == altered.code == 1
    assert "see above, under iceberg" in planned.err
    assert "Rejected by iceberg" in planned.out
    reason = altered.err.removeprefix("lakeledger: ").strip()
    assert (planned.out + planned.err).count(reason) == 1
    as_json = [shop(each, *line, "--output", "json").err for each in ("plan", "alter")]
    assert as_json[0] == as_json[1]


def test_json_holds_the_rule_and_the_alternative(shop: Run) -> None:
    ran = shop("plan", "shop.orders", "--type", "amount STRING", "--output", "json")
    assert ran.code == 1
    document = ran.document
    assert (document["isAllowed"], document["version"]) == (False, 0)
    assert document["schemaId"] == {"before": 0, "after": 1}
    assert document["differences"] == [
        {"what": "field 1", "before": "amount INT", "after": "amount STRING"}
    ]
    assert [each["type"] for each in document["events"]] == ["updateColumnType"]
    assert document["formats"]["paimon"]["isAllowed"]
    (refusal,) = document["formats"]["iceberg"]["refusals"]
    assert set(refusal) == {"message", "rule", "alternative"}


def test_without_a_change_the_line_is_wrong(shop: Run) -> None:
    assert shop("plan", "shop.orders").code == 2


def test_a_rule_that_many_columns_break_is_reported_once(run: Run, tmp_path: Path) -> None:
    columns = [each for number in range(14) for each in ("--column", f"c{number} TIME(9)")]
    lake = ("--ledger", tmp_path / "lake")
    run("init", *lake)
    run("create", "shop", *lake)
    run("create", "shop.times", *columns, "--option", "ledger.formats=paimon", *lake)

    ran = run("plan", "shop.times", "--set", "ledger.formats=paimon,iceberg", *lake)

    assert ran.code == 1
    assert ran.out.count("Iceberg's time has microseconds") == 1
    assert "column c0 (and 13 more: column c1, column c2" in ran.out


def test_the_text_says_which_schema_comes_of_it_where_another_one_does(shop: Run) -> None:
    assert "schema 0 will become schema 1" in shop("plan", "shop.orders", "--add", "zip STRING").out
    order = '{"type": "replaceSortOrder", "columns": [{"source": ["amount"]}]}'
    ran = shop("plan", "shop.orders", "--change", order)
    assert (ran.code, ran.err) == (0, "")
    assert "sort" in ran.out
    assert "become schema" not in ran.out


def test_a_mirrored_table_is_rejected_as_alter_does(run: Run, tmp_path: Path) -> None:
    theirs = created(tmp_path / "t")
    lake = ledger.open(tmp_path / "lake")
    lake.import_table("a.b", theirs.metadata_location)
    line = ("a.b", "--add", "c INT", "--ledger", tmp_path / "lake")

    planned = run("plan", *line)

    assert planned == run("alter", *line)
    assert (planned.code, planned.out) == (1, "")
    assert "takes no commits of its own" in planned.err
    with pytest.raises(ledger.InvalidChangeError, match="takes no commits of its own"):
        lake.table("a.b").plan([ledger.AddColumn(("c",), "INT")])


def test_plans_of_undo_and_restore_reject_a_mirrored_table_as_they_do(
    run: Run, tmp_path: Path
) -> None:
    theirs = created(tmp_path / "t")
    with theirs.update_schema() as update:
        update.add_column("age", LongType())
    lake = ledger.open(tmp_path / "lake")
    lake.import_table("a.b", theirs.metadata_location)
    for line in (("undo", "a.b", lake.table("a.b").state.version), ("restore", "a.b", "--to", "0")):
        there = (*line, "--ledger", tmp_path / "lake")
        planned = run(*there)
        assert planned == run(*there, "--yes")
        assert (planned.code, planned.out) == (1, "")
        assert "takes no commits of its own" in planned.err
