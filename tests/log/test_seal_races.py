"""A segment that is completed is sealed, however soon the next one begins."""

from __future__ import annotations

from ledger import SetOption
from tests.lakes import memory
from tests.log.long_logs import long_table, table_on

LENGTH = 800


def test_the_next_commits_do_not_keep_a_segment_from_being_sealed() -> None:
    store = memory()
    long_table(store, LENGTH - 1)
    table = table_on(store)

    assert table.state.version == LENGTH - 1
    for value in ("1", "2", "3"):
        table.alter([SetOption("k", value)])

    assert table.state.version == LENGTH + 2
    assert table.log.wait_for_caches()
    assert store.exists(table.log.layout.segment(0, LENGTH))
