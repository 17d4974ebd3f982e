from __future__ import annotations

import json
from pathlib import Path

import pytest

from ledger import InvalidInputError
from projections.source.commit_feed import CommitFeed
from projections.source.data_source import feed_of
from projections.source.feed_offset import Offset
from projections.source.read_options import ReadOptions
from projections.source.view_reading import read
from tests.projections.source.folders import a_table_of, lake_in, options


def a_feed(folder: Path, table: str = "*", **given: str) -> CommitFeed:
    return feed_of(
        ReadOptions.of({"path": str(folder), "table": table, "view": "commits", **given})
    )


def between(feed: CommitFeed, start: Offset, end: Offset) -> list[tuple[str, int]]:
    return [
        (row["identifier"], row["version"])
        for span in feed.spans(start, end)
        for batch in read(span, "commits")
        for row in batch.to_pylist()
    ]


def versions(name: str, first: int, last: int) -> list[tuple[str, int]]:
    return [(name, each) for each in range(first, last + 1)]


def test_every_version_comes_once_whenever_one_looks(tmp_path: Path) -> None:
    table = a_table_of(lake_in(tmp_path), "shop.orders", 3)
    feed = a_feed(tmp_path, versionsPerPartition="100")
    offset, seen = feed.initial(), []
    for first, last in ((4, 4), (5, 4), (5, 130), (131, 260)):
        options(table, first, last)
        latest = feed.latest()
        seen += between(feed, offset, latest)
        offset = latest

    assert seen == versions("shop.orders", 0, 260)
    assert between(feed, offset, feed.latest()) == []


def test_an_offset_that_was_kept_as_json_is_gone_on_from_by_another_process(
    tmp_path: Path,
) -> None:
    table = a_table_of(lake_in(tmp_path), "shop.orders", 3)
    kept = json.loads(json.dumps(a_feed(tmp_path).latest()))
    options(table, 4, 6)
    again = a_feed(tmp_path)

    assert between(again, kept, again.latest()) == versions("shop.orders", 4, 6)


def test_tables_that_are_created_later_are_taken_in(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    feed = a_feed(tmp_path)
    assert feed.latest()["tables"] == {}
    a_table_of(lake, "shop.orders", 1)
    first = feed.latest()
    a_table_of(lake, "shop.items", 2)

    assert between(feed, {}, first) == versions("shop.orders", 0, 1)
    assert between(feed, first, feed.latest()) == versions("shop.items", 0, 2)


def test_the_last_events_of_a_dropped_table_are_not_lost(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    a_table_of(lake, "shop.orders", 1)
    kept = a_feed(tmp_path).latest()
    lake.drop_table("shop.orders")
    a_table_of(lake, "shop.orders", 0)
    again = a_feed(tmp_path)

    # The end of the one, and the beginning of the other of the same name.
    found = between(again, kept, again.latest())
    assert found == [("shop.orders", 2), ("shop.orders", 0)]
    assert between(again, again.latest(), again.latest()) == []


def test_a_stream_goes_on_in_a_restored_table_under_its_new_name(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    a_table_of(lake, "shop.orders", 1)
    lake.drop_table("shop.orders")
    feed = a_feed(tmp_path)
    sealed = feed.latest()
    options(lake.undrop_table("shop.orders", "shop.old"), 4, 4)

    assert between(feed, sealed, feed.latest()) == versions("shop.old", 3, 4)


def test_a_stream_follows_a_renamed_table_and_a_batch_that_is_reread_is_the_same(
    tmp_path: Path,
) -> None:
    lake = lake_in(tmp_path)
    table = a_table_of(lake, "shop.orders", 1)
    feed = a_feed(tmp_path, "shop.orders")
    first = feed.latest()
    before = between(feed, {}, first)
    lake.rename_table("shop.orders", "shop.sales")
    options(table, 2, 2)
    again = a_feed(tmp_path, "shop.orders")

    assert between(again, {}, first) == before == versions("shop.orders", 0, 1)
    assert between(again, first, again.latest()) == [("shop.sales", 2)]


def test_only_the_tables_that_were_asked_for_are_followed(tmp_path: Path) -> None:
    lake = lake_in(tmp_path)
    lake.create_database("web")
    a_table_of(lake, "shop.orders")
    a_table_of(lake, "web.clicks")
    feed = a_feed(tmp_path, "web.*")
    assert between(feed, {}, feed.latest()) == [("web.clicks", 0)]


def test_a_stream_may_begin_at_the_heads(tmp_path: Path) -> None:
    table = a_table_of(lake_in(tmp_path), "shop.orders", 5)
    feed = a_feed(tmp_path, startingOffsets="latest")
    start = feed.initial()
    options(table, 6, 6)
    assert between(feed, start, feed.latest()) == [("shop.orders", 6)]


def test_what_has_no_versions_or_an_end_cannot_be_followed(tmp_path: Path) -> None:
    with pytest.raises(InvalidInputError, match="view tags shows a table at one instant"):
        a_feed(tmp_path, view="tags")
    with pytest.raises(InvalidInputError, match="a stream has no end, but version 3"):
        a_feed(tmp_path, "shop.orders", version="3")
