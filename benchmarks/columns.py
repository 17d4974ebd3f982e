"""Growth of the cost of operations with the number of a table's columns, and of its options.

A table of each number of columns is changed by single changes, then by one commit that adds, drops,
renames, moves and re-types a tenth of the columns each; what changed and who changed it is asked
afterwards. Likewise with options, of which one commit sets a tenth. Costs may grow by a fifth more
than the numbers. Processor time.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import count, pairwise
from pathlib import Path

import cyclopts
from attrs import frozen

import ledger
from benchmarks.measure import WORKDIR, Figure, Output, Report, in_turn, question_of, show
from ledger import (
    AddColumn,
    DropColumn,
    Ledger,
    Move,
    RenameColumn,
    Schema,
    SetOption,
    Table,
    UpdateColumnPosition,
    UpdateColumnType,
)
from ledger.events.schema import RequestedChange

AT_MOST = 1.2
"""Bound of the growth of costs, relative to the growth of the number."""

MILLISECOND = 1e6

Act = Callable[[], object]


@frozen
class Measured:
    """Processor time of each operation on a table with some columns or options, in milliseconds."""

    size: int
    costs: Mapping[str, float]


def run(
    workdir: Path, *, columns: tuple[int, ...], options: tuple[int, ...], repeats: int
) -> Report:
    figures = [
        *_figures("columns", [_measured(workdir, each, _wide, repeats) for each in columns]),
        *_figures("options", [_measured(workdir, each, _optioned, repeats) for each in options]),
    ]
    sizes = " ".join(map(str, (*columns, *options)))
    return Report(question_of(__doc__), sizes, tuple(figures), (f"least of {repeats} repeats",))


def _figures(noun: str, found: list[Measured]) -> Iterator[Figure]:
    for each in found:
        for name, cost in each.costs.items():
            yield Figure(f"{each.size:,} {noun}: {name}", cost, "ms")
    for less, more in pairwise(found):
        for name, cost in more.costs.items():
            yield Figure(
                f"{name}, {more.size:,} / {less.size:,} {noun}",
                cost / less.costs[name],
                "x",
                at_most=AT_MOST * more.size / less.size,
            )


def _measured(
    workdir: Path, size: int, acts: Callable[[Path, int, int], Iterator[dict[str, Act]]], times: int
) -> Measured:
    root = workdir / f"columns-{size}"
    shutil.rmtree(root, ignore_errors=True)
    costs: dict[str, float] = {}
    try:
        for some in acts(root, size, times + 1):
            found = in_turn(some, times, time.process_time_ns)
            costs |= {name: each.minimum_ns / MILLISECOND for name, each in found.items()}
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return Measured(size, costs)


def _wide(root: Path, size: int, rounds: int) -> Iterator[dict[str, Act]]:
    """Yield operations on tables of some columns; each is called once a round."""
    names = [f"c{each}" for each in range(size)]
    types = ("BIGINT", "STRING", "DOUBLE", "DATE", "INT")
    schema = Schema.of({name: types[place % len(types)] for place, name in enumerate(names)})
    with _lake_at(root) as lake, _lake_at(root / "copies") as other:
        table = lake.create_table("bench.wide", schema)
        copies = [other.create_table(f"bench.wide{each}", schema) for each in range(rounds)]
        batch = _reshaping(names)
        yield {
            "add a column": _altering(table, lambda n: AddColumn((f"new{n}",), "INT")),
            "rename it": _altering(table, lambda n: RenameColumn((f"new{n}",), f"named{n}")),
            "change its type": _altering(
                table, lambda n: UpdateColumnType((f"named{n}",), "BIGINT")
            ),
            "drop it": _altering(table, lambda n: DropColumn((f"named{n}",))),
            "plan a column": lambda: table.plan([AddColumn(("planned",), "INT")]),
            "change half of the columns": _numbered(lambda n: copies[n].alter(batch)),
        }
        table.alter(batch)
        yield _questions(root, table)


def _reshaping(names: list[str]) -> list[RequestedChange]:
    """Return a batch that changes half of the columns, a tenth in each of five ways."""
    tenth = len(names) // 10
    dropped, renamed, moved = (names[each * tenth : (each + 1) * tenth] for each in range(3))
    # Every fifth column is an INT, which can become a BIGINT.
    typed = names[len(names) // 2 :][4::5]
    return [
        *(AddColumn((f"added_{each}",), "INT") for each in range(tenth)),
        *(DropColumn((each,)) for each in dropped),
        *(RenameColumn((each,), f"{each}_renamed") for each in renamed),
        *(UpdateColumnPosition(Move(each, "FIRST")) for each in moved),
        *(UpdateColumnType((each,), "BIGINT") for each in typed),
    ]


def _optioned(root: Path, size: int, rounds: int) -> Iterator[dict[str, Act]]:
    """Yield operations on tables of some options; each is called once a round."""
    schema = Schema.of({"id": "BIGINT"}, options={f"team.{each}": "1" for each in range(size)})
    again = [SetOption(f"team.{each}", "2") for each in range(size // 10)]
    with _lake_at(root) as lake, _lake_at(root / "copies") as other:
        table = lake.create_table("bench.options", schema)
        copies = [other.create_table(f"bench.options{each}", schema) for each in range(rounds)]
        yield {
            "create a table": _numbered(lambda n: other.create_table(f"bench.new{n}", schema)),
            "set an option": _altering(table, lambda n: SetOption("team.0", f"{n}")),
            "plan an option": lambda: table.plan([SetOption("team.1", "planned")]),
            "set a tenth of the options": _numbered(lambda n: copies[n].alter(again)),
        }
        table.alter(again)
        yield _questions(root, table)


def _lake_at(root: Path) -> Ledger:
    lake = ledger.open(str(root), author="bench")
    lake.create_database("bench")
    return lake


def _questions(root: Path, table: Table) -> dict[str, Act]:
    return {
        "diff": lambda: table.diff(0).rows,
        "changes of a diff": lambda: table.diff(0).changes,
        "blame": table.blame,
        "log by author": lambda: list(table.entries(author="nobody")),
        "open": lambda: _open(root, str(table.identifier)),
    }


def _open(root: Path, name: str) -> None:
    with ledger.open(str(root)) as lake:
        lake.table(name).state  # noqa: B018 - reads the table


def _altering(table: Table, change: Callable[[int], RequestedChange]) -> Act:
    return _numbered(lambda number: table.alter([change(number)]))


def _numbered(act: Callable[[int], object]) -> Act:
    """Return the operation with the number of the call, from 0, as its argument."""
    numbers = count()
    return lambda: act(next(numbers))


def main(
    *,
    columns: tuple[int, ...] = (50, 500, 5_000),
    options: tuple[int, ...] = (100, 1_000, 10_000),
    repeats: int = 7,
    workdir: Path = WORKDIR,
    output: Output = "text",
) -> None:
    """Change, plan, compare and open tables of more and more columns and options.

    Args:
        columns: Numbers of columns; each is compared with the one before.
        options: Numbers of options; each is compared with the one before.
        repeats: Number of repeats; the least counts.
        workdir: Folder of the ledgers.
        output: text or json.
    """
    show(run(workdir, columns=columns, options=options, repeats=repeats), output)


if __name__ == "__main__":
    cyclopts.run(main)
