from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import ledger
from ledger import Identifier
from ledger.table_handle import handle_of
from projections.iceberg.served_views import update_view
from tests.projections.iceberg.metadata.test_views import current, properties, version
from tests.projections.iceberg.test_served_views import batch

if TYPE_CHECKING:
    from tests.cli.conftest import Run

VIEW = "shop.recent"
FAMILY = ("create", "alter", "rename", "drop", "show", "list")


@pytest.fixture
def recent(shop: Run) -> Run:
    """Return a runner on a ledger that has the view shop.recent."""
    ran = shop(
        *("view", "create", VIEW, "--query", "SELECT id FROM orders", "--comment", "new ones"),
        *("--column", "id BIGINT COMMENT 'the key'", "--dialect", "spark=SELECT id = 1"),
        *("--option", "a=b", "--author", "ada", "--message", "why"),
    )
    assert (ran.code, ran.err, ran.out) == (0, "", "created view shop.recent\n")
    return shop


def schema(run: Run, name: str = VIEW) -> dict[str, object]:
    found: dict[str, object] = run("view", "show", name, "--output", "json").document["schema"]
    return found


@pytest.mark.parametrize("name", FAMILY)
def test_each_command_of_the_family_has_help_and_an_example_of_itself(run: Run, name: str) -> None:
    ran = run("view", name, "--help")

    assert ran.code == 0
    _, example = ran.out.split("Example:")
    assert f"lakeledger view {name}" in example


def test_the_family_alone_lists_its_commands(run: Run) -> None:
    ran = run("view")

    assert ran.code == 0
    assert all(f"│ {name} " in ran.out for name in FAMILY)


def test_a_database_says_that_it_has_no_views_only_while_it_has_none(recent: Run) -> None:
    assert "has no views" not in recent("view", "list", "shop").out
    recent("view", "drop", VIEW, "--yes")
    assert recent("view", "list", "shop").out.splitlines()[0] == "shop has no views"


def test_a_created_view_shows_what_it_is(recent: Run) -> None:
    said = recent("view", "show", VIEW).out

    for words in ("SELECT id FROM orders", "new ones", "by ada", "BIGINT", "the key", "spark"):
        assert words in said


def test_json_is_the_view_of_the_metadata_api(recent: Run, installed: None) -> None:
    del installed
    document = recent("view", "show", VIEW, "--output", "json").document

    assert document["name"] == "recent"
    assert document["schema"]["query"] == "SELECT id FROM orders"
    assert document["schema"]["dialects"] == {"spark": "SELECT id = 1"}
    assert document["schema"]["options"] == {"a": "b"}
    assert document["schema"]["comment"] == "new ones"
    assert [each["name"] for each in document["schema"]["fields"]] == ["id"]


def test_changes_are_committed_in_one_commit_in_their_order(recent: Run, installed: None) -> None:
    del installed
    ran = recent(
        *("view", "alter", VIEW, "--drop-dialect", "spark", "--add-dialect", "spark=SELECT 2"),
        *("--update-dialect", "spark=SELECT 3", "--add-dialect", "trino=SELECT 4"),
        *("--set", "c=d", "--unset", "a", "--comment", "other", "--output", "json"),
    )

    assert ran.code == 0
    assert [each["type"] for each in ran.document["events"]] == ["alterView"]
    now = schema(recent)
    assert now["dialects"] == {"spark": "SELECT 3", "trino": "SELECT 4"}
    assert (now["options"], now["comment"]) == ({"c": "d"}, "other")


def test_views_are_renamed_listed_and_dropped(recent: Run) -> None:
    assert "renamed view" in recent("view", "rename", VIEW, "shop.latest").out
    listed = recent("view", "list", "shop", "--output", "json").document
    assert listed == {"database": "shop", "views": ["latest"]}
    assert "SELECT id FROM orders" in recent("view", "list", "shop").out
    assert "dropped view" in recent("view", "drop", "shop.latest", "--yes").out
    assert recent("view", "list", "shop").out == "shop has no views\n"
    assert recent("view", "show", "shop.latest").code == 3


def test_the_same_commit_id_again_is_the_first_commit(recent: Run) -> None:
    line = ("view", "alter", VIEW, "--set", "x=y", "--commit-id", "k1", "--output", "json")
    first, again = recent(*line).document, recent(*line).document

    assert again == {**first, "repeated": True}


@pytest.mark.parametrize(
    ("line", "code", "said"),
    [
        (["create", "shop.v"], 2, "--query"),
        (["create", VIEW, "--query", "q"], 3, VIEW),
        (["create", "shop.orders", "--query", "q"], 3, "shop.orders"),
        (["create", "shp.v", "--query", "q"], 3, "did you mean shop"),
        (["create", "shop.v", "--query", "q", "--column", "id INTT"], 1, "cannot read type 'INTT'"),
        (["create", "shop.v", "--query", "q", "--dialect", "x"], 2, "'x' is not ENGINE=QUERY"),
        (["alter", VIEW], 2, "no change is given"),
        (["alter", VIEW, "--add-dialect", "spark=q"], 3, "'spark'"),
        (["alter", VIEW, "--add-dialect", "x"], 2, "--add-dialect: 'x' is not ENGINE=QUERY"),
        (["alter", VIEW, "--set", "x"], 2, "--set: 'x' is not KEY=VALUE"),
        (["alter", VIEW, "--drop-dialect", "trino"], 3, "'trino'"),
        (["alter", "shop.v", "--set", "a=b"], 3, "shop.v"),
        (["rename", VIEW], 2, "NEW_NAME"),
        (["rename", VIEW, "shop.orders"], 3, "shop.orders"),
        (["drop", "shop.v"], 3, "shop.v"),
        (["show", "shop.v"], 3, "view shop.v does not exist"),
        (["show", "shop.orders"], 3, "shop.orders"),
        (["list", "shp"], 3, "did you mean shop"),
        (["lst"], 2, "list"),
    ],
    ids=lambda each: str(each)[:50],
)
def test_a_mistake_is_one_line_and_changes_nothing(
    recent: Run, line: list[str], code: int, said: str
) -> None:
    before = recent("log").out
    ran = recent("view", *line)

    assert said in ran.err
    assert (ran.code, ran.out) == (code, "")
    assert ran.err.count("\n") == 1
    assert recent("log").out == before


def test_an_iceberg_view_is_shown_and_logged_with_its_versions(shop: Run, tmp_path: Path) -> None:
    assert shop("view", "create", VIEW, "--query", "q").code == 0
    handle = handle_of(ledger.open(str(tmp_path / "lake")))
    name = Identifier.parse(VIEW)
    added = version("select 2", "default", "spark", schema_id=0)
    update_view(handle, name, [], batch(added, current(), properties({"owner": "ada"})))
    shown = shop("view", "show", VIEW).out
    uuid = handle.state.view(name).view_id
    assert f"iceberg version  2 of 1, 2 (uuid {uuid})" in shown
    assert f"location         views/{uuid}" in shown
    said = [each["what"] for each in ledger.open(str(tmp_path / "lake")).history()]
    assert said[0].endswith(
        "added version 2 (default, spark), version 2 is current, set property owner"
    )
    assert "changed Iceberg view shop.recent: location" in shop("log", "--limit", "1").out
    assert "recent" in shop("ls").out
    ran = shop("view", "alter", VIEW, "--add-dialect", "trino=q")
    assert ran.code == 1
    assert "replace the view in an engine" in ran.err
    assert shop("view", "alter", VIEW, "--set", "a=b").code == 0
    assert schema(shop)["options"] == {"a": "b", "owner": "ada"}
