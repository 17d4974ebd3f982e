"""Pages of lists, and patterns of names."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.rest.paimon.paging import MOST_RESULTS, make_name_test, most_results, page_from
from projections.rest.requests import Call, RequestError

NAMES = st.lists(st.text("ab%_\\é", max_size=6), unique=True).map(sorted)


@given(NAMES, st.integers(1, 7))
def test_pages_list_each_name_once_in_order(names: list[str], size: int) -> None:
    names = [each for each in names if each]
    listed: list[str] = []
    token = None
    while True:
        page = page_from(names, str, size, token)
        assert len(page.items) <= size
        listed += page.items
        token = page.token
        if token is None:
            break
        assert len(page.items) == size

    assert listed == names


@given(st.text("ab%_\\*.", max_size=8), st.text("ab%_\\*.", max_size=8))
def test_a_pattern_is_that_of_a_regular_expression(pattern: str, name: str) -> None:
    expected = ""
    rest = iter(pattern)
    for each in rest:
        if each == "\\":
            expected += re.escape(next(rest, ""))
        else:
            expected += ".*" if each == "%" else re.escape(each)

    matches = make_name_test(pattern, "pattern")

    assert matches(name) == (re.fullmatch(expected, name, re.DOTALL) is not None)


def test_many_wildcards_take_no_longer_than_the_name() -> None:
    matches = make_name_test("a%" * 500 + "b", "pattern")

    assert not matches("a" * 100_000)


def test_a_long_pattern_is_rejected() -> None:
    with pytest.raises(RequestError, match="at most 1024"):
        make_name_test("a" * 1025, "tableNamePattern")


@pytest.mark.parametrize(
    ("asked", "size"),
    [("", 100), ("0", 100), ("-5", 100), ("7", 7), ("1000", 1000), ("9999999999", MOST_RESULTS)],
)
def test_a_page_has_a_bounded_size(asked: str, size: int) -> None:
    assert most_results(Call({}, {"maxResults": asked})) == size


@pytest.mark.parametrize("asked", ["x", "1.5", "٣", "9" * 11, " 1"])
def test_a_size_that_is_no_number_is_rejected(asked: str) -> None:
    with pytest.raises(RequestError, match="maxResults"):
        most_results(Call({}, {"maxResults": asked}))
