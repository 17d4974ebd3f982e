"""The library's calls for a table that engines own: what they reject, and how they say it."""

from __future__ import annotations

import pytest

from ledger import InvalidChangeError, UnsupportedError
from tests.lakes import memory
from tests.projections.paimon.serving.engines import Engine, lake_at


def test_a_table_that_stays_its_engines_is_named() -> None:
    store = memory()
    Engine.of_new_table(store).commit()
    table = lake_at(store).table("a.t")
    for call in (table.stop_serving, table.plan_stop_serving):
        with pytest.raises(UnsupportedError, match=r"^table a\.t stays its engines': .*key"):
            call()


def test_only_engines_expire_snapshots() -> None:
    store = memory()
    engine = Engine.of_new_table(store)
    for _ in range(3):
        engine.commit()
    with pytest.raises(InvalidChangeError, match="engines expire"):
        lake_at(store).table("a.t").expire_snapshots(before=3)
    assert [*engine.snapshots()] == [1, 2, 3]
    assert [*engine.table.state.origin.snapshots] == [1, 2, 3]  # type: ignore[union-attr]
