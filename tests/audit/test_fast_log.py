"""A filtered log skips only commits that the filter excludes, and equals the filtered whole log."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger import SetOption, Table, UpdateColumnComment
from ledger.audit.column_history import ColumnHistories, RequestedHistories, column_histories
from ledger.audit.entries import Entry
from ledger.stores import Store
from ledger.table_handle import handle_of
from tests.faults import Wrapped
from tests.lakes import data_file, lake_on, memory, orders
from tests.thorough import examples

AUTHORS = ["ann", "ANN", "etl@prod", "", 'quo"te', "back\\slash", "Jörg", "\u212aelvin", "x\ny"]
MESSAGES = ["", "ann asks", '{"type":"deleteTag"', '"type":"addColumn"', "\u2028", "no reason"]
ASKED = [*filter(None, AUTHORS), "k", "nobody", "n", "\\", "JÖRG", '"', "\n"]
SEGMENT = 800


@pytest.fixture(scope="module")
def table() -> Table:
    """Return a table of one sealed segment and a tail, of which each author wrote much."""
    made = orders(lake_on(memory()))
    said = itertools.cycle(itertools.product(AUTHORS, MESSAGES))
    for number in range(SEGMENT + 20):
        author, message = next(said)
        options: Any = {"author": author, "message": message}
        if number % 3:
            made.append([data_file(f"{number}.parquet")], **options)
        else:
            made.alter([SetOption("k", str(number))], **options)
    handle_of(made).log.wait_for_caches()
    return made


class Watched(Wrapped):
    """A store that remembers which keys many were asked for at once."""

    def __init__(self, inner: Store) -> None:
        super().__init__(inner)
        self.asked: list[str] = []

    def read_many(self, keys: Sequence[str]) -> Iterator[bytes | None]:
        self.asked.extend(keys)
        return super().read_many(keys)


def found(entries: Any) -> list[tuple[int, str]]:
    return [(each.version, each.transaction.id) for each in entries]


@settings(max_examples=examples(30))
@given(
    author=st.none() | st.sampled_from(ASKED),
    kinds=st.sets(st.sampled_from(["commitSnapshot", "setOption", "deleteTag", "createTable"])),
)
def test_a_filtered_log_is_the_whole_log_filtered(
    table: Table, author: str | None, kinds: set[str]
) -> None:
    def is_wanted(entry: Entry) -> bool:
        said = entry.transaction.author.casefold()
        return (author is None or author.casefold() in said) and (
            not kinds or bool(kinds & set(entry.kinds))
        )

    wanted = [each for each in table.entries() if is_wanted(each)]

    assert found(table.entries(author=author, kinds=sorted(kinds))) == found(wanted)


def test_histories_from_segments_are_those_of_every_commit(table: Table) -> None:
    newest = table.state.version
    asked = RequestedHistories(newest=10)
    whole = ColumnHistories(asked)
    whole.take(read.commit for read in handle_of(table).log.commits(0, newest))

    fast = column_histories(handle_of(table).log, newest, asked)

    assert fast.settings == whole.settings
    assert {key: each.aspects for key, each in fast.by_id.items()} == {
        key: each.aspects for key, each in whole.by_id.items()
    }
    assert column_histories(handle_of(table).log, newest, asked) is fast


def test_a_filtered_log_decodes_less_than_half_of_a_segment(table: Table) -> None:
    decoded: list[int] = []
    codec = handle_of(table).again().log.codec
    other = Table(handle_of(table).again())
    other.state  # noqa: B018 - opens it
    sketch = codec.sketch

    def counted(body: bytes, file: str) -> Any:
        decoded.append(1)
        return sketch(body, file)

    handle_of(other).log.codec.sketch = counted  # type: ignore[method-assign]
    assert list(other.entries(kinds=["promoteTable"], last=SEGMENT)) == []
    # The newest few are read from files of their own, which nothing vouches for but themselves.
    assert len(decoded) < SEGMENT / 2


def test_a_log_by_column_reads_only_the_commits_that_touched_the_column() -> None:
    store = Watched(memory())
    made = orders(lake_on(store))
    for number in range(SEGMENT):
        made.append([data_file(f"{number}.parquet")])
    touched = made.alter([UpdateColumnComment(("amount",), "said once")]).version
    handle_of(made).log.wait_for_caches()
    column_histories(
        handle_of(made).log, made.state.version, RequestedHistories(column=made.column_id("amount"))
    )
    store.asked.clear()

    assert [each.version for each in made.entries(column="amount")] == [touched, 0]
    commit = handle_of(made).log.layout.commit
    # A read also looks for newer commits.
    older = [each for each in store.asked if each <= commit(touched)]
    assert older == [commit(touched), commit(0)]
