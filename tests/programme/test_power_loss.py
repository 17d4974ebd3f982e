"""Power is lost at every step of local commits, with every part of what was not synced."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any

import pytest

from ledger import Identifier, Ledger, SetOption, Table
from ledger.history.verifying import Subject, Verification
from ledger.stores import Durability, LocalStore, MemoryStore
from ledger.table_handle import TableHandle, handle_of
from tests.faults import Died
from tests.lakes import data_file, lake_on, memory, orders, ticking
from tests.programme.checker import places_of, read_log
from tests.programme.disk import Disk, Recorder
from tests.programme.figures import FIGURES
from tests.programme.simulation import ROOT, beginning

Work = Callable[[Ledger, Callable[[str], None]], None]
LATER = 1_800_000_000_000
MANY = 1_001
"""More file changes than a commit holds inline."""


def from_nothing(lake: Ledger, on_commit: Callable[[str], None]) -> None:
    table = orders(lake)
    for number in range(3):
        table.alter([SetOption("k", str(number))], message=f"alter {number}")
        on_commit(f"alter {number}")
    # Another handle, as another process would have.
    table = lake.table("shop.orders")
    table.append([data_file("a.parquet")], message="append")
    on_commit("append")


def across_a_checkpoint(lake: Ledger, on_commit: Callable[[str], None]) -> None:
    table = lake.table("shop.orders")
    for number in (99, 100, 101):
        table.alter([SetOption("k", f"late {number}")], message=f"alter {number}")
        on_commit(f"alter {number}")


def with_a_list_file(lake: Ledger, on_commit: Callable[[str], None]) -> None:
    table = lake.table("shop.orders")
    table.append([data_file(f"f{number}.parquet") for number in range(MANY)], message="long")
    on_commit("long")
    table.append([data_file("short.parquet")], message="short")
    on_commit("short")


CASES: dict[str, tuple[int | None, Work]] = {
    "from nothing": (None, from_nothing),
    "across a checkpoint": (98, across_a_checkpoint),
    "with a list file": (0, with_a_list_file),
}


def laid_out(folder: Path, start: int | None) -> Mapping[str, bytes]:
    before = {} if start is None else beginning(start)
    for key, body in before.items():
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_bytes(body)
    return before


def opened(stored: Mapping[str, bytes]) -> tuple[MemoryStore, Ledger]:
    store = memory()
    store._memory.bodies.update(stored)
    return store, lake_on(store, ticking(LATER))


def check(stored: Mapping[str, bytes], acknowledged: list[str]) -> None:
    FIGURES["power losses"] += 1
    try:
        examine(stored, acknowledged)
    except (AssertionError, ValueError):
        FIGURES["lost"] += 1
        raise


def examine(stored: Mapping[str, bytes], acknowledged: list[str]) -> None:
    places = places_of(read_log(stored, ROOT))
    lost = [each for each in acknowledged if len(places.get(each, [])) != 1]
    assert not lost, f"acknowledged and not there: {lost}"
    assert all(len(found) == 1 for name, found in places.items() if name), places
    if not places:
        return
    store, lake = opened(stored)
    table = Table(
        TableHandle(Identifier("shop", "orders"), "shop.db/orders", handle_of(lake).setting)
    )
    subject: Subject[Any, Any] = Subject("shop.orders", handle_of(table).log, has_files=True)
    damages = [each for each in Verification(subject).run() if each.kind == "damage"]
    assert not damages, damages
    table.alter([SetOption("after", "1")], message="after")
    assert "after" in places_of(read_log(store._memory.bodies, ROOT))


def distinct(disk: Disk, first: int, rng: random.Random) -> Iterator[tuple[dict[str, bytes], int]]:
    """Yield what may be left after each step from `first` on, each content once."""
    seen: set[tuple[frozenset[tuple[str, int]], int]] = set()
    for end in range(first, len(disk.steps) + 1):
        acknowledged = len(disk.acknowledged(end))
        for stored in disk.after(end, rng):
            mark = frozenset((key, hash(body)) for key, body in stored.items()), acknowledged
            if mark not in seen:
                seen.add(mark)
                yield stored, end


@pytest.mark.parametrize("case", CASES)
def test_what_was_acknowledged_survives_a_loss_of_power_at_every_step(
    case: str, tmp_path: Path
) -> None:
    start, work = CASES[case]
    root = tmp_path / "lake"
    before = laid_out(root, start)
    recorder = Recorder(str(root))
    with recorder.recording():
        work(lake_on(LocalStore(root), ticking(LATER)), recorder.acknowledge)
    disk = Disk(str(root), before, recorder.steps)
    losses = 0
    for stored, end in distinct(disk, 0, random.Random(case)):
        losses += 1
        check(stored, disk.acknowledged(end))
    assert losses > len(disk.acknowledged(len(disk.steps)))
    FIGURES["commits"] += len(disk.acknowledged(len(disk.steps)))


def test_a_commit_on_one_that_is_not_durable_yet_leaves_no_hole_and_makes_both_durable(
    tmp_path: Path,
) -> None:
    """Other writers commit while one is in fsync, whose file is visible by then."""
    root = tmp_path / "lake"
    before = laid_out(root, 0)
    recorder = Recorder(str(root))
    ours, theirs = (lake_on(LocalStore(root), ticking(LATER)) for _ in range(2))
    others: list[Future[None]] = []

    def alter(lake: Ledger, name: str) -> None:
        lake.table("shop.orders").alter([SetOption(name, name)], message=name)
        recorder.acknowledge(name)

    def at_the_folders_sync() -> None:
        shown = recorder.steps[-1] if recorder.steps else None
        if shown and shown.kind == "name" and shown.name.endswith("2.json"):
            recorder.on_step = lambda: None
            others.append(threads.submit(alter, theirs, "theirs"))
            # It gets as far as it can: it is in line for the disk, or done.
            wait(others, timeout=0.3)

    with recorder.recording(), ThreadPoolExecutor(1) as threads:
        alter(theirs, "before")
        recorder.on_step = at_the_folders_sync
        alter(ours, "ours")
        others[0].result(10)
    disk = Disk(str(root), before, recorder.steps)

    names = [each.name[-6:] for each in recorder.steps]
    later = [each.kind for each in recorder.steps[names.index("2.json") :]]
    assert later.index("write") < later.index("sync folder"), "they waited for the disk of another"
    for stored, end in distinct(disk, 0, random.Random(0)):
        check(stored, disk.acknowledged(end))
    assert {*disk.acknowledged(len(disk.steps))} == {"before", "ours", "theirs"}


def test_a_store_that_never_syncs_is_found_out(tmp_path: Path) -> None:
    root = tmp_path / "lake"
    recorder = Recorder(str(root))
    with recorder.recording():
        store = LocalStore(root, durable=Durability.NONE)
        from_nothing(lake_on(store, ticking(LATER)), recorder.acknowledge)
    disk = Disk(str(root), {}, recorder.steps)

    def look() -> None:
        for stored, end in distinct(disk, 0, random.Random(0)):
            examine(stored, disk.acknowledged(end))

    with pytest.raises((AssertionError, ValueError)):
        look()


def test_what_another_finds_and_acknowledges_survives_a_loss_of_power(tmp_path: Path) -> None:
    """A writer dies at every step; the next one retries with the same id, then power goes."""
    kills = 0
    for fatal in range(1_000):
        root = tmp_path / str(fatal)
        before = laid_out(root, 0)
        recorder = Recorder(str(root))
        with recorder.recording():
            is_dead = _dies_at(recorder, fatal, LocalStore(root))
            first = len(recorder.steps)
            table = lake_on(LocalStore(root), ticking(LATER)).table("shop.orders")
            table.alter([SetOption("k", "x")], message="mine", commit_id="mine")
            recorder.acknowledge("mine")
        disk = Disk(str(root), before, recorder.steps)
        for stored, end in distinct(disk, first, random.Random(fatal)):
            check(stored, disk.acknowledged(end))
        if not is_dead:
            break
        kills += 1
    assert kills >= 5
    FIGURES["kills"] += kills


def _dies_at(recorder: Recorder, fatal: int, store: LocalStore) -> bool:
    left = fatal

    def step() -> None:
        nonlocal left
        if left <= 0:
            raise Died
        left -= 1

    table = lake_on(store, ticking(LATER)).table("shop.orders")
    recorder.on_step = step
    try:
        table.alter([SetOption("k", "x")], message="mine", commit_id="mine")
    except Died:
        return True
    finally:
        recorder.on_step = lambda: None
    return False
