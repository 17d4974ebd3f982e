from __future__ import annotations

from typing import Any

import pytest

from ledger import CommitConflictError, InvalidInputError, RenameColumn, SetOption
from ledger.log.request import digest_of
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


def test_two_writers_that_set_the_same_keys_by_option_both_commit() -> None:
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
    with pytest.raises(InvalidInputError, match="cannot be encoded as JSON"):
        table.alter([SetOption("k", "\ud800")])
    assert table.at().version == 0


def test_an_error_of_the_ledgers_own_says_all_itself() -> None:
    """A note of what came of the commit is for what came from outside."""
    table = orders(lake_on(memory()))
    table.alter([SetOption("k", "1")])
    with pytest.raises(CommitConflictError, match="expected version 0") as lost:
        table.alter([SetOption("k", "2")], expect_version=0)
    assert getattr(lost.value, "__notes__", []) == []


@pytest.mark.parametrize(
    ("asked", "digest"),
    [
        (
            ["alter", [SetOption("k", "1"), RenameColumn(("a", "b"), "c")]],
            "1a983162188852c92181989bc2214d521f7e488f9423b94487c42ebff4774c28",
        ),
        (
            ["words", {"b": (1, None), "a": [{"d": 1.5, "c": True}]}],
            "9ddaf88e09b89ab96079cf249fe51f5319a51d27b0dee06a08ba9c79a27d4fd8",
        ),
        (
            {10: "ten", 9: {"x": 2}},
            "b1753785fffb6b6d69d193aa340a89009dd34b459f86bef9d48a0b5a4adc661f",
        ),
    ],
)
def test_a_request_is_identified_by_the_digest_that_logs_hold(asked: Any, digest: str) -> None:
    """The logs hold it, so that a retry with a later version finds the commit."""
    assert digest_of(asked) == digest


def test_a_request_in_json_is_identified_by_the_same_digest() -> None:
    change = {"type": "setOption", "value": "1", "key": "k"}
    assert digest_of([SetOption("k", "1")]) == digest_of([change])
    assert digest_of({2: "b", 10: "a"}) == digest_of({"10": "a", "2": "b"})
