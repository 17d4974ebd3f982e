"""The audit page: small, self-contained, and whatever a text says, it is only text."""

from __future__ import annotations

import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ledger import AddColumn, DropColumn, RenameColumn, Schema, SetOption, Table
from ledger.audit.listings import RunningSums, partition_sums
from ledger.audit.report import (
    MOST_COLUMNS,
    MOST_PARTITIONS,
    MOST_POINTS,
    MOST_SCHEMAS,
    growth_curves,
    table_page,
)
from ledger.events import ColumnAdded, TableEvent
from ledger.log import Commit
from ledger.table_handle import handle_of
from tests.evolution.folds import commit
from tests.lakes import data_file, lake_on, memory, orders

EVIL = (
    "<script>document.body.dataset.pwned=1</script><img src=x onerror=alert(1)>\"'>&\u202e\x1b[2J"
)
ALLOWED = {
    *("html", "head", "meta", "title", "style", "body", "header", "main", "footer", "section"),
    *("h1", "h2", "h3", "p", "dl", "div", "dt", "dd", "nav", "a", "span", "bdi", "small", "strong"),
    *("table", "thead", "tbody", "tr", "th", "td", "ol", "ul", "li", "details", "summary", "code"),
    *("svg", "rect", "polyline"),
}


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.add(tag)
        self.attributes += attrs


@pytest.fixture(scope="module")
def table() -> Table:
    columns = {"id": "BIGINT NOT NULL", "day": "STRING"}
    found = orders(lake_on(memory()), Schema.of(columns, partition_keys=["day"]))
    found.alter([AddColumn((EVIL,), "INT", EVIL)], author=EVIL, message=EVIL)
    found.append([data_file("a.parquet", EVIL), data_file("b.parquet")], author=EVIL)
    found.alter([RenameColumn((EVIL,), "plain")], author="ann", message="say it plainly")
    found.create_tag("v1")
    found.alter([DropColumn(("plain",))], author="eve")
    return found


def test_hostile_texts_are_only_texts(table: Table) -> None:
    tags = Tags()
    tags.feed(table.report())

    assert tags.found <= ALLOWED
    assert not [name for name, _ in tags.attributes if name.startswith("on")]
    links = [value for name, value in tags.attributes if name in {"href", "src"}]
    assert all(value is not None and value.startswith("#") for value in links)
    assert "\x1b" not in table.report()
    assert "\u202e" not in table.report()


def test_the_page_shows_the_author_and_message_of_each_change(table: Table) -> None:
    page = table.report()

    assert "say it plainly" in page
    assert "renamed column" in page
    assert "dropped column plain" in page
    assert re.search(r"before: &lt;script&gt;", page)
    assert "day=2013-01-01" in page
    assert "v1" in page
    assert page.index("dropped column plain") < page.index("say it plainly")


def test_partitions_are_summed_as_their_files_come_and_go() -> None:
    columns = {"id": "BIGINT NOT NULL", "day": "STRING"}
    table = orders(lake_on(memory()), Schema.of(columns, partition_keys=["day"]))
    table.append([data_file("a.parquet", "1"), data_file("b.parquet", "2")])
    table.create_branch("late")
    table.branch("late").append([data_file("c.parquet", "2"), data_file("d.parquet", "3")])
    table.branch("late").fast_forward()
    table.overwrite([data_file("e.parquet", "1")], where={"day": "1"})
    table.delete_files(["d.parquet"])
    table.rollback(snapshot=1)
    table.create_branch("never")
    table.branch("never").append([data_file("f.parquet", "4")])
    state = table.state
    sums = RunningSums(state)

    for commit_ in table.events():
        sums.take(handle_of(table).live.changes_of(commit_))

    assert sums.by_path == partition_sums(state, table.at().files)
    assert sorted(sums.by_path) == ["day=1", "day=2"]


def test_ten_thousand_commits_are_less_than_a_megabyte() -> None:
    table = orders(lake_on(memory()))
    (created,) = table.events()
    made = [created, *map(long_commit, range(1, 10_001))]

    page = table_page("shop.orders", table.state, made, table.schemas(), {})

    assert len(page.encode()) < 1_000_000
    assert "Before that" in page


def long_commit(version: int) -> Commit[TableEvent]:
    fact: TableEvent = SetOption(f"key-{version % 50}", "<value>" * 20)
    if version % 10 == 0:
        fact = ColumnAdded((f"column-{version}" * 3,), "STRING", field_id=version + 2)
    return commit(version, fact, message="why <not> " * 100)


def test_a_ledger_has_a_page_of_all_its_tables() -> None:
    lake = lake_on(memory())
    orders(lake)

    page = lake.report()

    assert "shop.orders" in page
    assert "created database shop" in page
    assert "createDatabase" not in page


@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
def test_a_browser_runs_nothing_and_complains_of_nothing(table: Table, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(table.report(), "utf-8")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", "--dump-dom"]

    ran = subprocess.run(
        ["chromium", *flags, f"--user-data-dir={tmp_path}/profile", file.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    assert "data-pwned" not in ran.stdout
    assert "Changes, newest first" in ran.stdout
    assert "CONSOLE" not in ran.stderr


def test_the_author_of_most_changes_is_listed_first() -> None:
    lake = lake_on(memory())
    table = orders(lake)
    for number in range(6):
        table.alter([SetOption("k", str(number))], author="ann" if number % 3 == 2 else "bob")

    for page in (table.report(), lake.report()):
        section = page[page.index("most changes by") :]
        assert section.index("bob") < min(section.index("ann"), section.index("tester"))
    assert re.search(r"bob\W+ann\W+tester", table.report())


def test_what_a_page_has_no_room_for_is_counted() -> None:
    lake = lake_on(memory())
    wide = orders(lake, Schema.of({f"c{number}": "INT" for number in range(MOST_COLUMNS + 5)}))
    partitions = {f"day={number}": (1, 1, 10) for number in range(MOST_PARTITIONS + 3)}

    page = table_page("wide", wide.state, wide.events(), wide.schemas(), partitions)
    less = table_page("wide", wide.state, wide.events(), wide.schemas(), {"day=1": (1, 1, 10)})

    assert ". 5 more are not shown." in page
    assert "3 smaller ones are not shown." in page
    assert "smaller ones" not in less
    assert "older ones" not in less
    old = lake.create_table("shop.old", {"id": "INT"})
    for number in range(MOST_SCHEMAS + 1):
        old.alter([SetOption("k", str(number))])
    assert "2 older ones are not shown." in old.report()


def test_a_curve_begins_at_the_first_commit_and_reaches_up_to_the_most() -> None:
    rows, files = growth_curves([(5, 10, 1), (6, 40, 2), (9, 20, 4)])

    assert rows.points.split() == ["0.0,150.0", "250.0,0.0", "1000.0,100.0"]
    assert (rows.last, rows.greatest) == ("20", "40")
    assert files.points.split() == ["0.0,150.0", "250.0,100.0", "1000.0,0.0"]


@pytest.mark.parametrize("count", [2, MOST_POINTS, MOST_POINTS + 1, 2 * MOST_POINTS + 1])
def test_a_long_curve_shows_few_points_and_its_last_one_once(count: int) -> None:
    rows, _ = growth_curves([(each, each, 1) for each in range(count)])
    points = rows.points.split()
    assert points[-1] == "1000.0,0.0"
    assert len(set(points)) == len(points) <= MOST_POINTS + 1
