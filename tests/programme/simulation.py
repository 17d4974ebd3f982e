"""One seed, one schedule: writers on a store with bad habits, and what is checked of it."""

from __future__ import annotations

import random
import sys
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from types import ModuleType
from typing import Any

from attrs import frozen

from ledger import Identifier, SetOption, Table
from ledger.history.verifying import Subject, Verification
from ledger.log import Codec
from ledger.state import TableState, TableStream
from ledger.table_handle import TableHandle, handle_of
from tests.lakes import lake_on, memory, orders
from tests.programme.checker import Log, check_log, check_observations, read_log
from tests.programme.cooperative import cooperative
from tests.programme.figures import FIGURES
from tests.programme.records import History
from tests.programme.scheduler import Process, Scheduler
from tests.programme.simulated import Sea
from tests.programme.workload import Machine, Writer, digest_of

ROOT = "shop.db/orders/_ledger"
BEGINNINGS = (0, 0, 0, 96, 96, 197)
"""Versions to begin at: at the creation, and before caches are made."""
LONG_BEGINNING = 795
"""Before caches are merged; once in many seeds, since it takes its time."""
SEEDS_OF_ONE_LONG = 60


@frozen
class Case:
    """The parameters of a schedule.

    Attributes:
        seed: Draws everything else.
        habits: What may go wrong.
    """

    seed: int
    habits: tuple[str, ...]

    @classmethod
    def of(cls, text: str) -> Case:
        """Return the case that a kept line names: `SEED HABIT, HABIT`."""
        seed, _, habits = text.strip().partition(" ")
        return cls(int(seed), tuple(each for each in habits.split(", ") if each))

    def __str__(self) -> str:
        return f"{self.seed} {', '.join(self.habits)}".strip()


def log_modules() -> list[ModuleType]:
    """Return the modules whose locks a schedule has to know of."""
    return [module for name, module in sorted(sys.modules.items()) if name.startswith("ledger.")]


@lru_cache
def beginning(version: int) -> Mapping[str, bytes]:
    """Return the bodies of a ledger whose table has reached a version."""
    store = memory()
    table = orders(lake_on(store))
    for number in range(version):
        table.alter([SetOption("k", str(number))])
    return {key: store.read(key) or b"" for key in store.keys("")}


@frozen
class Ran:
    """The ledger and its records after a schedule."""

    case: Case
    sea: Sea
    history: History


def run(case: Case) -> Ran:
    """Run the schedule of a case."""
    rng = random.Random(case.seed)
    scheduler = Scheduler(random.Random(rng.random()))
    is_long = case.seed % SEEDS_OF_ONE_LONG == SEEDS_OF_ONE_LONG - 1
    start = LONG_BEGINNING if is_long else rng.choice(BEGINNINGS)
    sea = Sea(
        bodies=dict(beginning(start)),
        scheduler=scheduler,
        rng=random.Random(rng.random()),
        habits=frozenset(case.habits),
        rate=rng.choice([0.02, 0.1, 0.3]),
        is_locking=rng.random() < 0.5,
    )
    history = History()
    writers = []
    with cooperative(log_modules(), scheduler):
        may_drop = rng.random() < 0.2
        for place in range(rng.randrange(1, 4)):
            machine = Machine(sea, Process(f"machine-{place}"), rng.randrange(-20_000, 20_000))
            for number in range(rng.choice([1, 1, 2, 3])):
                name = f"w{place}{number}"
                own = random.Random(rng.random())
                writers.append(Writer(name, machine, history, own, rng.randrange(3, 9), may_drop))
        scheduler.run([each.task() for each in writers])
    FIGURES["schedules"] += 1
    FIGURES["steps"] += scheduler.steps
    for habit, times in sea.faults.items():
        FIGURES["crashes" if habit.startswith("crash") else "faults"] += times
    return Ran(case, sea, history)


def check(ran: Ran) -> None:
    """Check every promise on what a schedule left."""
    log = read_log(ran.sea.bodies, ROOT)
    check_log(ran.history, log)
    read_log(ran.sea.bodies, "_ledger")
    wanted = {each.version for each in ran.history.observations} | {len(log) - 1}
    states = replayed(ran.sea.bodies, log, wanted)
    FIGURES["reads checked"] += check_observations(
        ran.history, lambda version: digest_of(states[version])
    )
    FIGURES["commits"] += len({e.name for e in ran.history.attempts if e.outcome == "acknowledged"})
    _check_caches(ran.sea.bodies, states[len(log) - 1])


def replayed(
    bodies: Mapping[str, bytes], log: Log, wanted: Collection[int]
) -> dict[int, TableState]:
    """Return the states after some versions, folded from the commits alone."""
    stream = TableStream()
    codec: Codec[Any] = Codec(stream.event_types)
    states: dict[int, TableState] = {}
    builder = stream.builder(None)
    for version in range(len(log)):
        key = f"{ROOT}/log/{version:020d}.json"
        builder.commit(codec.decode(bodies[key], key))
        if version in wanted:
            states[version] = builder.freeze()
    return states


def _check_caches(bodies: Mapping[str, bytes], newest: TableState) -> None:
    """With its caches, without them, and in the eyes of `verify`, it is the same table."""
    warm = _opened(bodies.items())
    cold = _opened((key, body) for key, body in bodies.items() if "/caches/" not in key)
    assert digest_of(handle_of(warm).log.refresh() or newest) == digest_of(newest), (
        "checkpoint + tail"
    )
    assert digest_of(handle_of(cold).log.refresh() or newest) == digest_of(newest)
    assert warm.at().files == cold.at().files, "live files from caches and without"
    subject: Subject[Any, Any] = Subject("shop.orders", handle_of(warm).log, has_files=True)
    damages = [e for e in Verification(subject).run() if e.kind not in ("absent", "derived")]
    assert not damages, damages


def _opened(bodies: Iterable[tuple[str, bytes]]) -> Table:
    store = memory()
    for key, body in bodies:
        if body:
            store.create(key, body)
    # Not through the catalog, which may have forgotten the table.
    return Table(
        TableHandle(
            Identifier("shop", "orders"), "shop.db/orders", handle_of(lake_on(store)).setting
        )
    )
