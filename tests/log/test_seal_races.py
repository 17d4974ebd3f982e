"""A segment that is completed is sealed, however soon the next one begins."""

from __future__ import annotations

import threading

from ledger import SetOption
from tests.lakes import memory
from tests.log.long_logs import long_table, table_on
from tests.log.test_group_deaths import Turn

LENGTH = 800


def test_the_next_commit_does_not_keep_a_segment_from_being_sealed() -> None:
    store = memory()
    long_table(store, LENGTH - 1)
    table = table_on(store)
    turn = Turn()

    def then_others_commit() -> None:
        turn.before = others_commit

    def others_commit() -> None:
        # A thread that has waited for its turn takes it before the caches are saved.
        other = threading.Thread(target=table.alter, args=([SetOption("k", "2")],))
        other.start()
        other.join()

    assert table.state.version == LENGTH - 1
    table.log.mutex = turn  # type: ignore[assignment]
    turn.before = then_others_commit
    table.alter([SetOption("k", "1")])

    assert table.state.version == LENGTH + 1
    assert store.exists(table.log.layout.segment(0, LENGTH))
