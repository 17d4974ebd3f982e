"""The newest checkpoint is found from any hint, and none that does not fit is believed."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from ledger.log import CHECKPOINT_INTERVAL, Checkpoints, Head, Layout
from ledger.state import FOLD_VERSION, TableState, TableStream
from ledger.stores import MemoryStore
from tests.evolution.folds import grown
from tests.lakes import memory

LAYOUT = Layout.of_fold("t/_ledger", FOLD_VERSION)


def kept(*steps: int) -> tuple[MemoryStore, Checkpoints[TableState]]:
    """Checkpoints of one state at these multiples of the interval, as if at those versions."""
    store = memory()
    checkpoints = Checkpoints(store, LAYOUT, TableStream())
    builder = grown()
    for step in steps:
        builder.version = step * CHECKPOINT_INTERVAL
        checkpoints.save(Head(builder.freeze(), f"sha256:{step}"))
    return store, checkpoints


def found(head: Head[TableState] | None) -> tuple[int, str] | None:
    return None if head is None else (head.state.version // CHECKPOINT_INTERVAL, head.digest)


@pytest.mark.parametrize("last", [1, 2, 3, 4, 5, 7, 8, 9, 16, 21])
def test_the_newest_is_found_from_every_floor(last: int) -> None:
    store, checkpoints = kept(*range(1, last + 1))

    for hint in [
        b"0",
        b"-5",
        b"nonsense",
        b"99999900",
        *(b"%d" % (n * 100) for n in (1, last)),
    ]:
        store.replace(LAYOUT.hint, hint)
        assert found(checkpoints.newest()) == (last, f"sha256:{last}")
    store.delete(LAYOUT.hint)
    assert found(checkpoints.newest()) == (last, f"sha256:{last}")


def test_a_hint_names_the_checkpoint_that_was_saved_last() -> None:
    store, checkpoints = kept(1, 2, 3, 40)

    assert store.read(LAYOUT.hint) == b"4000\n"
    assert found(checkpoints.newest()) == (40, "sha256:40")


def test_nothing_kept_is_nothing_found() -> None:
    _, checkpoints = kept()

    assert checkpoints.newest() is None
    assert checkpoints.at_or_before(10_000) is None


@pytest.mark.parametrize(
    ("version", "step"), [(99, None), (100, 1), (199, 1), (200, 2), (350, 2), (400, 4), (9999, 4)]
)
def test_the_nearest_one_before_a_version_is_found(version: int, step: int | None) -> None:
    _, checkpoints = kept(1, 2, 4)

    wanted = None if step is None else (step, f"sha256:{step}")
    assert found(checkpoints.at_or_before(version)) == wanted
    outline = checkpoints.outline_at_or_before(version)
    assert (outline and outline.version // CHECKPOINT_INTERVAL) == step


def said(**facts: object) -> Callable[[bytes], bytes]:
    return lambda body: json.dumps({**json.loads(body), **facts}).encode()


ROT: dict[str, Callable[[bytes], bytes]] = {
    "torn": lambda body: body[:-9],
    "nothing": lambda _: b"\n",
    "of another format": said(format=2),
    "of another fold": said(foldVersion=0),
    "of another version": said(version=100),
    "changed": lambda body: body.replace(b'"t"', b'"u"', 1),
    "with another check": said(check="0" * 64),
    "without a state": said(state={}),
}


@pytest.mark.parametrize("rot", ROT)
def test_one_that_does_not_fit_is_passed_over(rot: str) -> None:
    store, checkpoints = kept(1, 2)
    key = LAYOUT.checkpoint(2 * CHECKPOINT_INTERVAL)
    body = store.read(key)
    assert body is not None
    changed = ROT[rot](body)
    assert changed != body

    store.replace(key, changed)

    assert found(checkpoints.newest()) == (1, "sha256:1")
