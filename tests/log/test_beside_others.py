"""Where others append, too, each holds the lock for as short as it can."""

from __future__ import annotations

from threading import Thread

import pytest

from ledger import SetOption, Table
from tests.faults import Wrapped
from tests.lakes import lake_on, memory, orders


class Far(Wrapped):
    is_near = False

    def __init__(self, inner: Wrapped) -> None:
        self.inner = inner


def beside_another(*, is_near: bool = True) -> tuple[Table, Table]:
    """Return two handles of one table, of which the first has met a commit of the second."""
    store = Wrapped(memory())
    orders(lake_on(store))
    ours = lake_on(store if is_near else Far(store)).table("shop.orders")
    other = lake_on(store).table("shop.orders")
    assert ours.state == other.state
    other.alter([SetOption("a", "1")])
    assert ours.alter([SetOption("b", "1")]).attempts == 2, "nobody was met before"
    return ours, other


@pytest.mark.parametrize(("is_near", "attempts"), [(True, 1), (False, 2)])
def test_who_has_met_others_looks_before_he_decides_where_that_is_cheap(
    *, is_near: bool, attempts: int
) -> None:
    ours, other = beside_another(is_near=is_near)
    other.alter([SetOption("a", "2")])

    landed = ours.alter([SetOption("b", "2")], commit_id="mine")

    assert landed.attempts == attempts
    assert (landed.version, landed.state.schema.options["a"]) == (4, "2")
    assert ours.alter([SetOption("b", "2")], commit_id="mine").repeated


def test_who_cannot_look_finds_out_by_trying(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, other = beside_another()
    other.alter([SetOption("a", "2")])

    def unreadable() -> None:
        raise OSError("stale file handle")

    monkeypatch.setattr(ours.log, "read_ahead", unreadable)

    assert ours.alter([SetOption("b", "2")]).attempts == 2


def test_caches_are_not_saved_while_others_wait_for_the_lock() -> None:
    ours, _ = beside_another()
    saving = Thread(target=ours.log.keep_next)

    with ours.log.locked():
        saving.start()
        saving.join(0.1)
        assert saving.is_alive()
    saving.join(10)
    assert not saving.is_alive()


def test_who_writes_alone_need_not_wait_for_his_caches() -> None:
    table = orders(lake_on(memory()))
    saving = Thread(target=table.log.keep_next)

    with table.log.locked():
        saving.start()
        saving.join(0.5)
        assert not saving.is_alive()
