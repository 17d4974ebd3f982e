"""Power is lost at every step of an erasure: only what was asked for goes, and it stays away."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from ledger import FileChange, Ledger, Schema, SetOption, UpdateColumnType
from ledger.stores import Durability, LocalStore
from tests.erasing.column_lives import holding_deep
from tests.erasing.lives import damages, findings
from tests.faults import Died
from tests.lakes import START_MILLIS, lake_on, memory, ticking
from tests.programme.disk import Disk, Recorder
from tests.programme.figures import FIGURES
from tests.programme.test_power_loss import LATER, distinct, opened
from tests.thorough import some

ANN, BOB, CARL, DORA, EVE, FAY = (
    f"{name}-0123456789ab" for name in ("ann", "bob", "carl", "dora", "eve", "fay")
)
TABLE, OTHER = "shop.people", "shop.orders"
AMOUNT, OLDER_AMOUNT = (number.to_bytes(4, "little").hex() for number in (5_551_234, 5_551_235))
STEPS_BETWEEN: Final = 25
"""Every N-th kill is tried in each run."""

View = Mapping[tuple[object, ...], object]


class Case(NamedTuple):
    """An erasure, and the texts that no file may hold afterwards."""

    erase: Callable[[Ledger], object]
    gone: tuple[str, ...]


def of_column(column: str, value: str | None, *gone: str) -> Case:
    return Case(lambda lake: lake.erase(table=TABLE, column=column, value=value, by="desk"), gone)


CASES: Mapping[str, Case] = {
    "text": Case(lambda lake: lake.erase(text=CARL, by="desk"), (CARL,)),
    "author": Case(lambda lake: lake.erase(author=CARL, by="desk"), (CARL,)),
    "value": of_column("mail", EVE, EVE),
    "partition": of_column("kind", DORA, DORA),
    "value under an earlier type": of_column("amount", "5551234", AMOUNT),
    "column": of_column("mail", None, EVE, FAY),
}


def file(name: str, mail: str, kind: str, amount: str) -> FileChange:
    text = mail.encode().hex()
    return FileChange(
        path=f"{name}.parquet",
        partition=(kind,),
        record_count=3,
        file_size_in_bytes=100,
        field_ids=True,
        lower_bounds={0: "0100000000000000", 1: text, 3: amount},
        upper_bounds={0: "0900000000000000", 1: text, 3: amount},
    )


@cache
def beginning() -> Mapping[str, bytes]:
    """Return a ledger where several commits, tables and lists hold values of each person."""
    store = memory()
    lake = lake_on(store, ticking(START_MILLIS))
    lake.init(erasable=True)
    lake.create_database("shop", author=CARL)
    lake.create_database("other", author=BOB, message=f"asked by {CARL}")
    lake.create_table(OTHER, Schema.of({"id": "INT"}), author=BOB)
    options = {"ledger.personal": "mail, kind, amount", "ledger.formats": "paimon"}
    columns = {"id": "BIGINT", "mail": "STRING", "kind": "STRING", "amount": "INT"}
    schema = Schema.of(columns, partition_keys=["kind"], options=options)
    table = lake.create_table(TABLE, schema, author=ANN, properties={"for": CARL})
    lake.table(OTHER).alter([SetOption("k", "1")], author=ANN, message=f"asked by {CARL}")
    for number in range(2):
        one = file(f"{number}-a", EVE, DORA, AMOUNT)
        table.append([one, file(f"{number}-b", FAY, "other", OLDER_AMOUNT)], author=CARL)
    table.alter([UpdateColumnType(("amount",), "STRING")], author=BOB)
    table.project("paimon")
    return dict(store._memory.bodies)


def laid_out(root: Path) -> LocalStore:
    store = LocalStore(root, durable=Durability.NONE)
    for key, body in beginning().items():
        store.create(key, body)
    return LocalStore(root)


@cache
def expected(name: str) -> tuple[View, View]:
    """Return what readers see before and after an erasure that nothing disturbs."""
    _, lake = opened(beginning())
    before = seen(lake)
    CASES[name].erase(lake)
    return before, seen(lake)


def seen(lake: Ledger) -> View:
    return dict(_seen(lake))


def _seen(lake: Ledger) -> Iterator[tuple[tuple[object, ...], object]]:
    for entry in lake.entries():
        if entry.commit.time_millis < LATER:
            each, place = entry.transaction, (entry.table, entry.version)
            yield (*place, "author"), each.author
            yield (*place, "message"), each.message
            yield (*place, "properties"), each.properties
    for one in lake.table(TABLE).at().files:
        yield (one.path, "partition"), one.partition
        yield (one.path, "lower bounds"), one.lower_bounds
        yield (one.path, "upper bounds"), one.upper_bounds


def check(name: str, stored: Mapping[str, bytes], *, is_acknowledged: bool) -> None:
    FIGURES["power losses"] += 1
    before, after = expected(name)
    store, lake = opened(stored)
    found = seen(lake)
    assert damages(lake, store) == []
    changed = {key for key in after if found.get(key, "") not in (before[key], after[key])}
    assert not changed, f"values that nobody erased: {changed}"
    for attempt in range(2):
        if is_acknowledged or attempt:
            assert seen(lake) == after
            assert {text: holding_deep(store, text) for text in CASES[name].gone} == {
                text: [] for text in CASES[name].gone
            }
        CASES[name].erase(lake)
    assert findings(lake, store) == []


@pytest.mark.parametrize("name", CASES)
def test_a_power_loss_during_an_erasure_changes_nobody_elses_values(
    name: str, tmp_path: Path
) -> None:
    root = tmp_path / "lake"
    lake = lake_on(laid_out(root), ticking(LATER))
    recorder = Recorder(str(root))
    with recorder.recording():
        CASES[name].erase(lake)
        recorder.acknowledge(name)
    disk = Disk(str(root), beginning(), recorder.steps)
    losses = 0
    for stored, end in distinct(disk, 0, random.Random(name)):
        losses += 1
        check(name, stored, is_acknowledged=bool(disk.acknowledged(end)))
    assert losses > len(CASES)


def kill_and_retry(name: str, root: Path, steps: int) -> bool:
    """Kill an eraser after `steps` steps, retry, and lose the power; False: it was done before."""
    store = laid_out(root)
    recorder = Recorder(str(root))
    left = iter(range(steps))

    def die() -> None:
        if next(left, None) is None:
            raise Died

    with recorder.recording():
        recorder.on_step = die
        was_killed = False
        try:
            CASES[name].erase(lake_on(store, ticking(LATER)))
        except Died:
            was_killed = True
        recorder.on_step = lambda: None
        CASES[name].erase(lake_on(LocalStore(root), ticking(LATER)))
        recorder.acknowledge(name)
    disk = Disk(str(root), beginning(), recorder.steps)
    for stored, _ in distinct(disk, len(recorder.steps), random.Random(steps)):
        check(name, stored, is_acknowledged=True)
    return was_killed


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("first", some(range(STEPS_BETWEEN), 1))
def test_a_retry_after_a_kill_makes_an_erasure_durable(
    name: str, first: int, tmp_path: Path
) -> None:
    steps = first
    while kill_and_retry(name, tmp_path / str(steps), steps):
        steps += STEPS_BETWEEN
    assert steps > STEPS_BETWEEN
