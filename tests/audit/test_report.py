"""The audit page: small, self-contained, and whatever a text says, it is only text."""

from __future__ import annotations

import html
import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from ledger.events.snapshots import SnapshotCommitted
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
    "wbr",
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


BROKEN_WORDS = """
addEventListener("load", () => {
  const frame = document.querySelector("iframe"), page = frame.contentDocument, found = [];
  const walker = page.createTreeWalker(page.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    for (const match of node.data.matchAll(/[\\w.@]+/g)) {
      const range = page.createRange();
      range.setStart(node, match.index);
      range.setEnd(node, match.index + match[0].length);
      const lines = new Set([...range.getClientRects()].map(each => Math.round(each.top)));
      if (lines.size > 1) found.push(match[0]);
    }
  }
  const root = page.documentElement;
  const said = document.createElement("pre");
  said.id = "found";
  said.textContent = JSON.stringify([found, root.scrollWidth - root.clientWidth]);
  document.body.replaceChildren(said);
});
"""


def broken_words(page: str, width: int, folder: Path) -> tuple[list[str], int]:
    """Return the words that a page breaks at a width, and by how much it is too wide, in px."""
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    frame = f'<iframe style="width:{width}px;height:900px" srcdoc="{html.escape(page)}"></iframe>'
    file = folder / "frame.html"
    file.write_text(
        f"<!doctype html><meta charset=utf-8><body><script>{BROKEN_WORDS}</script>{frame}</body>",
        "utf-8",
    )
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
    ran = subprocess.run(
        ["chromium", *flags, f"--user-data-dir={folder}/profile", file.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    match = re.search(r'<pre id="found">(.*?)</pre>', ran.stdout, re.DOTALL)
    assert match is not None, ran.stdout[-2000:]
    words, overflow = json.loads(html.unescape(match[1]))
    return words, overflow


@pytest.mark.long
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium")
@pytest.mark.parametrize("look", ["phone", "screen", "print"])
def test_no_word_is_broken_that_fits_a_line(look: str, tmp_path: Path) -> None:
    long_name = "n" * 120
    columns = {"id": "BIGINT NOT NULL", "day": "DATE", "customer_identification": "INT"}
    table = orders(
        lake_on(memory()), Schema.of({**columns, long_name: "INT"}, partition_keys=["day"])
    )
    author = "firstname.lastname@company.example"
    table.append([data_file("a.parquet"), data_file("b.parquet", "2013-01-02")], author=author)
    table.append([data_file("c.parquet")], author=author, message="registered after midnight")
    table.create_tag("month-end", snapshot=1)
    table.alter([AddColumn(("\u0639\u0645\u0648\u062f",), "STRING", "a comment of several words")])
    table.expire_snapshots(before=2)
    page = table.report()
    if look == "print":
        page = page.replace("@media print", "@media all")

    words, overflow = broken_words(
        page, {"phone": 390, "screen": 1280, "print": 718}[look], tmp_path
    )

    assert set(words) <= {long_name}
    assert overflow <= 0


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


def test_a_curve_is_steps_from_the_first_commit_up_to_the_most() -> None:
    rows, files = growth_curves([(5, 10, 1), (6, 40, 2), (9, 20, 4)])

    # A number holds until the next commit: two corners a change, none where it stays.
    assert rows.points.split() == [
        *("0.0,150.0", "250.0,150.0", "250.0,0.0", "1000.0,0.0", "1000.0,100.0")
    ]
    assert (rows.last, rows.greatest) == ("20", "40")
    assert files.points.split() == [
        *("0.0,150.0", "250.0,150.0", "250.0,100.0", "1000.0,100.0", "1000.0,0.0")
    ]


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 9), st.integers(0, 9)), min_size=2).map(
        lambda some: sorted(some, key=lambda each: each[0])
    )
)
def test_a_curve_has_no_slope(growth: list[tuple[int, int, int]]) -> None:
    for curve in growth_curves(growth):
        corners = [tuple(map(float, each.split(","))) for each in curve.points.split()]
        for one, two in pairwise(corners):
            assert one[0] == two[0] or one[1] == two[1]
            assert one[0] <= two[0]


@pytest.mark.parametrize("count", [2, MOST_POINTS, MOST_POINTS + 1, 2 * MOST_POINTS + 1])
def test_a_long_curve_shows_few_points_and_its_last_one_once(count: int) -> None:
    rows, _ = growth_curves([(each, each, 1) for each in range(count)])
    points = rows.points.split()
    assert points[-1] == "1000.0,0.0"
    assert len(set(points)) == len(points) <= MOST_POINTS + 1


def test_the_greatest_number_is_named_even_if_its_commit_has_no_point() -> None:
    table = orders(lake_on(memory()))
    # Many changes, of which only every so many keep a point.
    (created,) = table.events()
    peak = 3 * MOST_POINTS + 1
    counts = [1_000_000 if each == peak else each % 7 + 1 for each in range(5 * MOST_POINTS)]
    made = [created]
    for version, (before, now) in enumerate(pairwise([0, *counts]), start=1):
        fact = SnapshotCommitted(
            snapshot_id=version,
            schema_id=0,
            commit_user="u",
            total_record_count=now,
            delta_record_count=now - before,
            commit_kind="APPEND",
        )
        made.append(commit(version, fact))

    page = table_page("shop.orders", table.state, made, table.schemas(), {})

    assert "(at most 1,000,000)" in page
