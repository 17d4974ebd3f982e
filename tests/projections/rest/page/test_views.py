"""The page shows what the library returns, in bounded pieces, and escapes every text."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from httpx import Client
from pyiceberg.catalog import load_catalog

import ledger
from ledger import Ledger, Table
from projections.rest.page import history_views, snapshot_views
from projections.rest.page.queries import LONGEST_QUERY, LONGEST_VALUE
from tests.lakes import data_file, lake_on, memory, orders
from tests.log.test_group_commit import Crowd, adds
from tests.projections.rest.application import application
from tests.projections.rest.page.page_client import EVERY_PAGE, ORDERS, page_client

HOSTILE = "<script>alert(1)</script>\u202e\x1b[2J'\"&" + "x" * 500


@pytest.fixture
def lake() -> Ledger:
    made = lake_on(memory())
    table = orders(made)
    table.append([data_file("a.parquet"), data_file("b.parquet", "2013-01-02")], message="begin")
    table.alter([ledger.RenameColumn(("amount",), "total")], author="ann", message="say it well")
    table.create_tag("v1")
    table.create_branch("audit")
    table.branch("audit").append([data_file("c.parquet")])
    table.alter([ledger.DropColumn(("total",))], author="eve", message="gone")
    return made


@pytest.fixture
def client(lake: Ledger) -> Iterator[Client]:
    with page_client(lake) as found:
        yield found


@pytest.fixture
def table(lake: Ledger) -> Table:
    return lake.table("shop.orders")


def text_of(client: Client, path: str, status: int = 200) -> str:
    answer = client.get(path)
    assert answer.status_code == status, answer.text
    return html.unescape(re.sub(r"<wbr>", "", answer.text))


def column_names(page: str) -> list[str]:
    return re.findall(r'/blame\?column=([^"]+)"', page)


@pytest.mark.parametrize("path", EVERY_PAGE)
def test_every_page_is_whole_and_has_no_script_and_no_inline_style(
    client: Client, path: str
) -> None:
    answer = client.get(path)

    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.text.startswith("<!doctype html>")
    assert answer.text.rstrip().endswith("</html>")
    assert not re.search(r"<script|<style| style=| on\w+=|javascript:|https?://", answer.text)
    assert client.head(path).status_code == 200
    assert client.head(path).content == b""


def test_links_lead_to_pages(client: Client) -> None:
    seen, left = set[str](), ["/"]
    while left:
        path = left.pop()
        answer = client.get(path)
        assert answer.status_code == 200, (path, answer.text)
        if "html" in answer.headers["content-type"]:
            found = re.findall(r'(?:href|src)="(/[^"]*)"', answer.text)
            new = {html.unescape(each) for each in found} - seen
            seen |= new
            left += sorted(new)
    assert len(seen) > 40


@pytest.mark.parametrize("version", range(6))
def test_columns_are_those_of_the_chosen_version(
    client: Client, table: Table, version: int
) -> None:
    page = text_of(client, f"{ORDERS}?version={version}")

    assert column_names(page) == [*table.at(version=version).schema.names]
    assert f'max="6" value="{version}"' in page
    assert f"/orders?version={version + 1}" in page


@pytest.mark.parametrize(
    ("at", "columns"),
    [
        ("tag:v1", ["id", "day", "amount"]),
        ("version:2", ["id", "day", "total"]),
        ("branch:audit", ["id", "day"]),
        ("-1", ["id", "day", "total"]),
        ("now", ["id", "day"]),
    ],
)
def test_columns_are_those_of_any_instant(client: Client, at: str, columns: list[str]) -> None:
    page = client.get(ORDERS, params={"at": at})

    assert page.status_code == 200, page.text
    assert column_names(page.text) == columns
    assert f'name="at" value="{at}"' in page.text


@pytest.mark.parametrize(
    ("filters", "wanted"),
    [
        ({}, {}),
        ({"author": "ANN"}, {"author": "ANN"}),
        ({"kind": "createTag"}, {"kinds": ["createTag"]}),
        ({"column": "amount"}, {"column": "amount"}),
        ({"column": "amount", "author": "eve"}, {"column": "amount", "author": "eve"}),
    ],
)
def test_pages_of_the_history_have_each_matching_change_once(
    client: Client,
    table: Table,
    monkeypatch: pytest.MonkeyPatch,
    filters: dict[str, str],
    wanted: dict[str, object],
) -> None:
    monkeypatch.setattr(history_views, "CHANGES_OF_A_PAGE", 2)
    monkeypatch.setattr(history_views, "VERSIONS_AT_ONCE", 3)
    shown, before = list[int](), ""
    while True:
        page = client.get(f"{ORDERS}/history", params={**filters, "before": before}).text
        shown += map(int, re.findall(r'scope="row" class="t"><a href="[^"]*">(\d+)</a>', page))
        more = re.search(r"before=(\d+)\" rel=\"next\"", page)
        if more is None:
            break
        before = more[1]

    assert shown == [each.version for each in table.entries(**wanted)]  # type: ignore[arg-type]


def test_a_search_that_takes_too_long_says_how_far_it_came_and_continues(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history_views, "VERSIONS_AT_ONCE", 2)
    monkeypatch.setattr("projections.rest.page.routes.VIEW_SECONDS", 0.0)
    page = text_of(client, f"{ORDERS}/history?kind=createTable")

    assert "The search reached version 5" in page
    assert "No change matches" not in page
    assert "version 0" not in text_of(client, f"{ORDERS}/history?kind=createTable&before=5")
    assert "created table" in text_of(client, f"{ORDERS}/history?kind=createTable&before=1")


def test_a_commit_of_many_transactions_stays_on_one_page_up_to_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    crowd = Crowd()
    for each in crowd.asks(*(adds(f"c{number}", message=f"m{number}") for number in range(4))):
        each.result()
    monkeypatch.setattr(history_views, "CHANGES_OF_A_PAGE", 2)
    with page_client(crowd.lake) as client:
        whole = text_of(client, "/ui/tables/db/t/history")
        monkeypatch.setattr(history_views, "MOST_CHANGES", 3)
        cut = text_of(client, "/ui/tables/db/t/history")
        rest = text_of(client, "/ui/tables/db/t/history?before=2")

    assert all(f">m{number}<" in whole for number in range(4))
    assert "more changes than" not in whole
    assert [f">m{number}<" in cut for number in range(4)] == [False, True, True, True]
    assert "Version 2 has more changes than one page shows" in cut
    assert "before=2" in cut
    assert "created table" in rest


def test_blame_and_diff_name_the_commits_and_both_names(client: Client) -> None:
    blame = text_of(client, f"{ORDERS}/blame?column=amount")
    diff = text_of(client, f"{ORDERS}/diff?before=version:0&after=version:2")

    assert "say it well" in blame
    assert "ann" in blame
    assert "amount INT" in diff
    assert "total INT" in diff
    assert "Nothing differs" in text_of(client, f"{ORDERS}/diff?before=now&after=now")


def test_snapshots_of_main_and_of_a_branch_come_in_pages_with_their_growth(
    client: Client, table: Table, monkeypatch: pytest.MonkeyPatch
) -> None:
    table.append([data_file("d.parquet")])
    monkeypatch.setattr(snapshot_views, "SNAPSHOTS_OF_A_PAGE", 1)
    first = text_of(client, f"{ORDERS}/snapshots")
    second = text_of(client, f"{ORDERS}/snapshots?page=2")
    branch = text_of(client, f"{ORDERS}/snapshots?branch=audit")
    monkeypatch.undo()
    whole = text_of(client, f"{ORDERS}/snapshots")

    assert "at=snapshot%3A2" in first
    assert "at=snapshot%3A1" not in first
    assert "at=snapshot%3A1" in second
    assert "v1" in second
    assert "at=snapshot%3A1000000000001" in branch
    assert "Rows through time, from 20 to 30" in whole


def test_branches_tags_and_partitions_are_listed_with_their_sizes(client: Client) -> None:
    refs = text_of(client, f"{ORDERS}/refs")
    partitions = text_of(client, f"{ORDERS}/partitions")
    before = text_of(client, f"{ORDERS}/partitions?version=0")

    assert "at=branch%3Aaudit" in refs
    assert "at=tag%3Av1" in refs
    assert "day=2013-01-01" in partitions
    assert "2 partitions, 2.0 kB in all" in partitions
    assert "no data files at this instant" in before


def test_projections_are_shown_with_their_lag(client: Client, table: Table) -> None:
    assert "--set ledger.follow=iceberg" in text_of(client, f"{ORDERS}/projections")
    table.alter([ledger.SetOption("ledger.follow", "iceberg")])
    late = text_of(client, f"{ORDERS}/projections")
    table.project("iceberg")
    done = text_of(client, f"{ORDERS}/projections")

    assert "behind</td>" in late
    assert '<td class="n">none</td>' in late
    assert "up to date</td>" in done
    assert f'<td class="n">{table.state.version}</td>' in done


def test_texts_of_others_are_escaped_and_cut_and_change_no_direction() -> None:
    lake = lake_on(memory())
    lake.create_database("shop", {"<b>owner</b>": HOSTILE})
    table = lake.create_table("shop.orders", {"<img src=x>": "INT", "a\u202eb": "INT"})
    table.append([ledger.FileChange(path="a.parquet", record_count=1, file_size_in_bytes=9)])
    table.alter([ledger.SetOption("<u>k</u>", HOSTILE)], author="ann<i>", message=HOSTILE)
    table.alter([ledger.UpdateColumnComment(("<img src=x>",), HOSTILE)], message="\u2066left")
    with page_client(lake) as client:
        for path in EVERY_PAGE:
            if "column=id" in path:
                continue
            page = client.get(path)
            assert page.status_code == 200, (path, page.text)
            assert not re.search("<script|<img src=x|<b>|<i>|<u>", page.text), path
            assert not re.search("[\u202a-\u202e\u2066-\u2069\x1b]", page.text), path
            assert "x" * 400 not in page.text, path
        assert "&lt;script&gt;alert(1)" in client.get(f"{ORDERS}/history").text
        echoed = client.get(ORDERS, params={"at": "<script>\u202e"})
        assert echoed.status_code == 400
        assert "<script>" not in echoed.text
        assert "\u202e" not in echoed.text


@pytest.mark.parametrize(
    ("path", "status", "hint"),
    [
        ("/ui/databases/shp", 404, "did you mean"),
        ("/ui/tables/shop/ordrs", 404, "did you mean"),
        ("/ui/tables/shop/ordrs/history", 404, "did you mean"),
        ("/ui/tables/..%2f..%2fetc/passwd", 404, "no page at this address"),
        (f"/ui/tables/shop/{'x' * 300}", 404, "255 bytes"),
        (f"{ORDERS}/nothing", 404, "no page at this address"),
        ("/ui", 404, "no page at this address"),
        ("/elsewhere", 404, "no page at this address"),
        (f"{ORDERS}?version=99", 404, "99"),
        (f"{ORDERS}?version=-1", 400, "whole number from 0"),
        (f"{ORDERS}?version=1e3", 400, "whole number from 0"),
        (f"{ORDERS}?version={'9' * 30}", 400, "whole number from 0"),
        (f"{ORDERS}?version={'9' * 299}", 400, "whole number from 0"),
        (f"{ORDERS}?at=someday", 400, "not an instant"),
        (f"{ORDERS}?at=tag:none", 404, "tag 'none' does not exist"),
        (f"{ORDERS}?at={'x' * (LONGEST_VALUE + 1)}", 400, "shorten it"),
        (f"{ORDERS}?x={'x' * LONGEST_QUERY}", 400, "shorten it"),
        (f"{ORDERS}/history?kind=createTga", 400, "did you mean 'createTag'"),
        (f"{ORDERS}/history?column=none", 404, "no column was ever called none"),
        (f"{ORDERS}/history?column=a%20b", 400, "may not follow"),
        (f"{ORDERS}/snapshots?branch=none", 404, "none"),
        (f"{ORDERS}/refs?page=99999999999", 400, "whole number from 0"),
    ],
)
def test_unknown_names_and_values_out_of_bounds_are_pages_that_say_so(
    client: Client, path: str, status: int, hint: str
) -> None:
    page = text_of(client, path, status)

    assert hint in page
    assert 'href="/"' in page
    assert "Traceback" not in page


def test_ten_thousand_tables_are_listed_in_bounded_pages() -> None:
    lake = lake_on(memory())
    lake.create_database("many")
    lake.create_tables({f"many.t{number:05}": {"id": "INT"} for number in range(10_000)})
    with page_client(lake) as client:
        home, found = client.get("/").text, client.get("/", params={"q": "T0"}).text
        first, last = (client.get(f"/ui/databases/many?page={each}").text for each in (1, 999))
        some = client.get("/ui/databases/many", params={"q": "t0999"}).text

    assert "10,000" in home
    assert max(map(len, (home, found, first, last, some))) < 60_000
    assert found.count("/ui/tables/many/") == 100
    assert "9,900 more are not listed" in found
    assert first.count("/ui/tables/many/") == last.count("/ui/tables/many/") == 50
    assert "Page 200 of 200, 10,000 tables" in last
    assert some.count("/ui/tables/many/") == 10


def test_a_ledger_without_commits_says_how_to_begin() -> None:
    lake = lake_on(memory())
    lake.init()
    with page_client(lake) as client:
        assert "There are no databases yet" in text_of(client, "/")
        lake.create_database("empty")
        assert "This database has no tables yet" in text_of(client, "/ui/databases/empty")


def test_new_commits_are_shown_at_the_next_request(client: Client, table: Table) -> None:
    assert "fresh" not in text_of(client, ORDERS)
    table.alter([ledger.AddColumn(("fresh",), "INT")])
    assert "fresh" in text_of(client, ORDERS)


def test_tables_that_engines_commit_to_are_shown(tmp_path: Path) -> None:
    with application(tmp_path / "lake") as app:
        catalog = load_catalog("lake", type="rest", uri=str(app.http.base_url))
        catalog.create_namespace("shop")
        rows = pa.table({"id": [1, 2, 3]})
        table = catalog.create_table("shop.orders", rows.schema)
        for _ in range(3):
            table.append(rows)
        table.manage_snapshots().create_tag(table.snapshots()[0].snapshot_id, "v1").commit()
        with page_client(app.lake) as client:
            for path in EVERY_PAGE:
                answer = client.get(path)
                assert answer.status_code == 200, (path, answer.text)
            listed = text_of(client, f"{ORDERS}/snapshots")
            files = text_of(client, f"{ORDERS}/partitions")

    for each in table.snapshots():
        assert f"at=snapshot%3A{each.snapshot_id}" in listed
    assert ">9<" in listed
    assert "(unpartitioned)" in files


def test_a_dropped_table_is_named_by_the_page_of_its_name(client: Client, lake: Ledger) -> None:
    lake.drop_table("shop.orders", author="eve")
    page = text_of(client, ORDERS, 404)

    assert "dropped" in page
    assert "undrop" in page


def test_erased_authors_and_messages_are_not_shown(tmp_path: Path) -> None:
    lake = ledger.open(str(tmp_path / "lake"))
    lake.init(erasable=True)
    lake.create_database("shop", author="ann@example.com")
    table = lake.create_table("shop.orders", {"id": "INT"}, author="ann@example.com")
    table.alter([ledger.SetOption("k", "v")], author="ann@example.com", message="for ann")
    with page_client(lake) as client:
        before = [text_of(client, each) for each in ("/", "/ui/databases/shop", ORDERS)]
        lake.erase(author="ann@example.com")
        after = [text_of(client, each) for each in EVERY_PAGE]

    assert all("ann@example.com" in each for each in before)
    assert not any("ann@example.com" in each or "for ann" in each for each in after)
