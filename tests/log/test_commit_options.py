from __future__ import annotations

from typing import Any

import pytest

from ledger import InvalidInputError, SetOption
from tests.lakes import lake_on, memory, orders


@pytest.mark.parametrize(
    ("name", "advice"),
    [("expected_version", "did you mean expect_version="), ("zebra", "it takes author, message")],
)
def test_an_option_that_is_none_is_refused_and_nothing_is_written(name: str, advice: str) -> None:
    table = orders(lake_on(memory()))
    options: dict[str, Any] = {name: 99}
    with pytest.raises(InvalidInputError, match=advice):
        table.alter([SetOption("k", "1")], **options)
    assert table.state.version == 0


def test_two_who_set_the_same_keys_by_option_both_land() -> None:
    store = memory()
    mine = orders(lake_on(store))
    theirs = lake_on(store).table("shop.orders")
    mine.at(), theirs.at()
    wanted = [SetOption("ledger.note", "a"), SetOption("ledger.note", "b")]
    theirs.alter(wanted)
    mine.alter(wanted[1:])
    assert mine.state.schema.options["ledger.note"] == "b"


def test_what_no_json_can_say_is_refused_and_nothing_is_written() -> None:
    table = orders(lake_on(memory()))
    with pytest.raises(InvalidInputError, match="cannot be written as JSON"):
        table.alter([SetOption("k", "\ud800")])
    assert table.at().version == 0
