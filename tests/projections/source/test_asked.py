from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from ledger import Identifier, InvalidInputError, InvalidNameError
from ledger.model import TimestampInstant, VersionInstant
from projections.source.bounds import Bounds, Operator
from projections.source.columns import Column, spark_ddl
from projections.source.read_options import ReadOptions, TableSelection
from projections.source.span_reading import version_ranges

A_MOMENT = datetime(2024, 1, 1, tzinfo=UTC)
MILLIS = 1_704_067_200_000


def test_options_are_read_in_any_case() -> None:
    asked = ReadOptions.of(
        {"PATH": "/lake", "Table": "shop.orders", "view": "Files", "VERSION": "7"}
    )
    assert (asked.view.name, asked.instant) == ("files", VersionInstant(7))
    assert asked.root.url == "/lake"


def test_a_timestamp_is_milliseconds_or_iso_with_a_zone() -> None:
    given = {"path": "/lake", "table": "*"}
    for text in (str(MILLIS), "2024-01-01T00:00:00.000Z", "2024-01-01T01:00:00.0+01:00"):
        assert ReadOptions.of({**given, "timestamp": text}).instant == TimestampInstant(MILLIS)


def test_a_task_reads_whole_checkpoint_intervals() -> None:
    asked = ReadOptions.of({"path": "/lake", "table": "*", "versionsPerPartition": "101"})
    assert asked.versions_per_partition == 200


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "no ledger is given"),
        ({"path": "/lake"}, "no table is given"),
        ({"path": "memory://x", "table": "*"}, "keep the ledger in a folder"),
        ({"path": "/lake", "table": "*", "verison": "1"}, "there is no option 'verison'"),
        ({"path": "/lake", "table": "*", "view": "rows"}, "use one of commits, events"),
        ({"path": "/lake", "table": "a.b", "version": "x"}, "give a whole number"),
        ({"path": "/lake", "table": "a.b", "version": "1", "tag": "t"}, "both named"),
        ({"path": "/lake", "table": "a.*", "version": "1"}, "give a timestamp"),
        ({"path": "/lake", "table": "a.b", "timestamp": "then"}, "is not a time; write 2013-01-31"),
        ({"path": "/lake", "table": "a.b", "at": "then"}, "is not an instant; for a tag write"),
        ({"path": "/lake", "table": "a.b", "at": "branch:b"}, "give a version, a tag, a snapshot"),
        ({"path": "/lake", "table": "a.b", "at": "HEAD~1", "tag": "t"}, "both named"),
        ({"path": "/lake", "table": "*", "at": "HEAD~1"}, "give a timestamp"),
        ({"path": "/lake", "table": "*", "versionsPerPartition": "0"}, "at least 1"),
        ({"path": "/lake", "table": "*", "startingOffsets": "now"}, "earliest or latest"),
        ({"path": "/lake", "table": "*", "trust": "none"}, "give all or log"),
        ({"path": "/lake", "table": "*", "filters": "on"}, "checked or pushed"),
        ({"path": "/lake", "table": "*", "storageOptions": "key"}, "no JSON object"),
    ],
)
def test_what_makes_no_sense_is_rejected_with_what_does(
    options: dict[str, str], message: str
) -> None:
    with pytest.raises(InvalidInputError, match=message):
        ReadOptions.of(options)


def test_a_table_without_its_database_is_rejected() -> None:
    with pytest.raises(InvalidNameError, match="write DATABASE.TABLE"):
        ReadOptions.of({"path": "/lake", "table": "orders"})


def test_patterns_take_one_table_a_database_or_all() -> None:
    orders, other = Identifier("shop", "orders"), Identifier("shop2", "orders")
    assert [TableSelection("*").has(each) for each in (orders, other)] == [True, True]
    assert [TableSelection("shop.*").has(each) for each in (orders, other)] == [True, False]
    assert [TableSelection("shop2.orders").has(each) for each in (orders, other)] == [False, True]


@pytest.mark.parametrize("length", [1, 3, 100])
@pytest.mark.parametrize("first", [0, 1, 99, 100, 101])
@pytest.mark.parametrize("last", [-1, 0, 100, 250])
def test_ranges_cover_every_version_once_and_end_where_checkpoints_are(
    first: int, last: int, length: int
) -> None:
    found = list(version_ranges(first, last, length))
    assert [each for low, high in found for each in range(low, high + 1)] == list(
        range(first, last + 1)
    )
    assert all(high % length == 0 for _, high in found[:-1])


OPERATORS: tuple[Operator, ...] = ("=", ">", ">=", "<", "<=")


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("micros", [-1, 0, 1, 999, 1000, 1001])
def test_times_between_two_milliseconds_select_exactly_the_matching_rows(
    operator: Operator, micros: int
) -> None:
    moment = A_MOMENT + timedelta(microseconds=micros)
    bounds = Bounds().narrowed("time", operator, moment)
    assert bounds is not None
    low, high = bounds.millis
    for millis in range(MILLIS - 3, MILLIS + 4):
        time = datetime.fromtimestamp(millis / 1000, UTC)
        wanted = {
            "=": time == moment,
            ">": time > moment,
            ">=": time >= moment,
            "<": time < moment,
            "<=": time <= moment,
        }[operator]
        found = (low is None or low <= millis) and (high is None or millis <= high)
        assert found == wanted, (operator, micros, millis)


def test_filters_narrow_one_after_the_other() -> None:
    first = Bounds().narrowed("version", ">", 3)
    assert first is not None
    second = first.narrowed("version", "<=", 9)
    assert second is not None
    assert second.versions == (4, 9)
    named = second.named(["a.b", "a.c"]).narrowed("identifier", "=", "a.c")
    assert named is not None
    assert named.identifiers == frozenset({"a.c"})


def test_what_says_nothing_of_versions_times_or_tables_is_left_to_spark() -> None:
    assert Bounds().narrowed("author", "=", "me") is None
    assert Bounds().narrowed("version", "=", "1") is None
    assert Bounds().narrowed("identifier", ">", "a") is None
    # Without a zone it depends on the session's.
    assert Bounds().narrowed("time", ">", A_MOMENT.replace(tzinfo=None)) is None


def test_names_and_comments_are_quoted() -> None:
    column = Column("a`b", "struct", "it's", members=(Column("c", "int"),))
    assert spark_ddl([column]) == "`a``b` struct<`c`: int> NOT NULL COMMENT 'it\\'s'"
