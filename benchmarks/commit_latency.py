"""Latency of a small durable commit, and its growth with the history.

A warm handle on a table of 200 columns sets an option and the table's comment, with and without
fsync, compared with the raw creation of a file with the same durability, all in turn on one file
system.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from pathlib import Path

import cyclopts

from benchmarks.history import TABLE, WIDTH, copy, lake_at
from benchmarks.measure import (
    WORKDIR,
    Figure,
    Output,
    Report,
    Times,
    many_in_turn,
    question_of,
    show,
)
from benchmarks.raw_create import durable_create, plain_create
from benchmarks.rivals import PROMISES, Change, rivals
from ledger import AddColumn, Ledger, SchemaChange, SetOption, Table, UpdateComment
from ledger.ledger_handle import LedgerHandle
from ledger.opening.context import TableSetting
from ledger.stores.local import Durability, LocalStore
from ledger.table_handle import handle_of

SHORT = 10
TIMES_FLOOR = 2.0
TIMES_SHORT = 1.2
MILLISECOND = 1e6
RIVAL_REPEATS = 15


def run(
    workdir: Path, *, size: int, repeats: int, width: int = WIDTH, rival_history: int = 0
) -> Report:
    lakes = {SHORT: lake_at(workdir, SHORT, width=width), size: lake_at(workdir, size, width=width)}
    with tempfile.TemporaryDirectory(dir=workdir) as folder:
        place = Path(folder)
        tables = {
            (durable, commits): _warm(copy(lake, place / f"{durable.value}-{commits}"), durable)
            for durable in Durability
            for commits, lake in lakes.items()
        }
        # Pending writes of the copies must not slow down the first durable commits.
        os.sync()
        times = many_in_turn(_cases(tables, place), repeats)
        figures = list(_figures(times, size))
        if rival_history:
            figures += _beside_rivals(place, tables, width, rival_history)
        versions = {table.state.version - commits for (_, commits), table in tables.items()}
        for table in tables.values():
            # No process uses the folder any more when it is removed.
            handle_of(table).log.wait_for_caches()
    return Report(
        question_of(__doc__),
        f"commits={size} committed={sorted(versions)}",
        tuple(figures),
        PROMISES if rival_history else (),
    )


def _warm(lake: Path, durable: Durability) -> Table:
    store = LocalStore(lake, durable=durable)
    table = Ledger(
        LedgerHandle(TableSetting(store=store, storage_options={}, author="bench"))
    ).table(TABLE)
    table.state  # noqa: B018 - reading it warms the handle
    return table


def _cases(
    tables: dict[tuple[Durability, int], Table], place: Path
) -> dict[str, Callable[[int], object]]:
    cases: dict[str, Callable[[int], object]] = {}
    for durable, create in ((Durability.FSYNC, durable_create), (Durability.NONE, plain_create)):
        raw = place / f"raw-{durable.value}"
        raw.mkdir()
        cases[f"floor {durable.value}"] = partial(create, raw)
        for (kind, commits), table in tables.items():
            if kind is durable:
                cases[f"commit {durable.value} {commits}"] = partial(_commit, table)
    return cases


def _commit(table: Table, number: int) -> object:
    changes: list[SchemaChange] = [
        SetOption("team.option", str(number)),
        UpdateComment(f"as of {number}"),
    ]
    return table.alter(changes)


def _add_column(table: Table, number: int) -> object:
    return table.alter([AddColumn((f"n{number}",), "INT")])


def _figures(times: dict[str, Times], size: int) -> Iterator[Figure]:
    for kind in ("fsync", "none"):
        floor = times[f"floor {kind}"].median_ns
        short, long = (times[f"commit {kind} {commits}"].median_ns for commits in (SHORT, size))
        bound = TIMES_FLOOR if kind == "fsync" else None
        name = "durable" if kind == "fsync" else "no fsync"
        yield Figure(f"{name}: raw create", floor / MILLISECOND, "ms")
        yield Figure(f"{name}: commit at {SHORT}", short / MILLISECOND, "ms")
        yield Figure(f"{name}: commit at {size}", long / MILLISECOND, "ms")
        yield Figure(f"{name}: commit at {SHORT} / raw create", short / floor, "x", at_most=bound)
        yield Figure(f"{name}: commit at {size} / raw create", long / floor, "x", at_most=bound)
        yield Figure(
            f"{name}: commit at {size} / at {SHORT}", long / short, "x", at_most=TIMES_SHORT
        )


def _beside_rivals(
    place: Path, tables: dict[tuple[Durability, int], Table], width: int, history: int
) -> Iterator[Figure]:
    # PyIceberg writes every schema that ever existed into every commit.
    columns = max(SHORT, history // 10)
    runs: list[tuple[str, Callable[[Table, int], object], int]] = [
        ("property", _commit, SHORT),
        ("property", _commit, history),
        ("add column", _add_column, SHORT),
        ("add column", _add_column, columns),
    ]
    for first, (change, ours, length) in enumerate(runs, 1):
        names = count(first * 1_000_000)
        cases: dict[str, Change] = {
            f"lakeledger {durable.value}": partial(ours, tables[durable, SHORT])
            for durable in Durability
        }
        for name, start in rivals(change).items():
            cases[name] = start(place / f"{name} {change} {length}", width)
            for _ in range(length):
                cases[name](next(names))
        # Each column needs a name that no earlier commit used.
        fresh = {name: partial(_with_next, case, names) for name, case in cases.items()}
        times = many_in_turn(fresh, RIVAL_REPEATS)
        base = times[f"lakeledger {Durability.NONE.value}"].median_ns
        for name, each in times.items():
            what = f"{change} at {length}: {name}"
            yield Figure(what, each.median_ns / MILLISECOND, "ms")
            if not name.startswith("lakeledger"):
                yield Figure(f"{what} / lakeledger none", each.median_ns / base, "x")


def _with_next(case: Change, numbers: Iterator[int], _repeat: int) -> object:
    return case(next(numbers))


def main(
    *,
    size: int = 100_000,
    repeats: int = 300,
    rival_history: int = 280,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Commit to a table of 200 columns.

    Args:
        size: Commits of history behind the long table.
        repeats: Number of repeats of each case; the median counts.
        rival_history: Commits of history behind the rivals' tables; 0 leaves them out.
        workdir: Folder of the cached histories; its file system is measured.
        output: text or json.
    """
    show(run(workdir, size=size, repeats=repeats, rival_history=rival_history), output)


if __name__ == "__main__":
    cyclopts.run(main)
