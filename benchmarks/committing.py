"""Program that commits on request, and prints the latency of each commit.

It imports only `ledger`, so that it measures whichever version is on its path:
`committing.py KIND COLUMNS FOLDER` reads numbers of commits from stdin, and answers each with as
many latencies in nanoseconds.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import ledger
from ledger import (
    AddColumn,
    DropColumn,
    FileChange,
    Ledger,
    Move,
    RenameColumn,
    SetOption,
    Table,
    UpdateColumnComment,
    UpdateColumnPosition,
    UpdateComment,
)

Commit = Callable[[Ledger, Table, int], object]

MANY = 20
_WARM = 40


def _file(name: str) -> FileChange:
    return FileChange(path=f"{name}.parquet", record_count=1, file_size_in_bytes=9)


def _option(_: Ledger, table: Table, number: int) -> object:
    return table.alter([SetOption("team.option", str(number)), UpdateComment(f"as of {number}")])


def _rename(_: Ledger, table: Table, number: int) -> object:
    names = ("c1", "d1") if number % 2 else ("d1", "c1")
    return table.alter([RenameColumn((names[0],), names[1])])


def _column(_: Ledger, table: Table, number: int) -> object:
    return table.alter([AddColumn(("new",), "INT") if number % 2 else DropColumn(("new",))])


def _position(_: Ledger, table: Table, number: int) -> object:
    return table.alter([UpdateColumnPosition(Move("c3", "FIRST" if number % 2 else "LAST"))])


KINDS: Final[dict[str, Commit]] = {
    "an option": _option,
    "a column's comment": lambda _, table, number: table.alter(
        [UpdateColumnComment(("c3",), f"as of {number}")]
    ),
    "a column's name": _rename,
    "a column more or less": _column,
    "a column's place": _position,
    "a file": lambda _, table, number: table.append([_file(str(number))]),
    f"{MANY} files": lambda _, table, number: table.append(
        [_file(f"{number}-{each}") for each in range(MANY)]
    ),
    "a tag": lambda _, table, number: table.create_tag(f"t{number}"),
    "a database": lambda lake, _, number: lake.create_database(f"d{number}"),
}
"""Repeated commits, by the object of the change."""


def main(kind: str, columns: int, folder: Path) -> None:
    """Create a table, warm up, and commit as often as stdin requests."""
    commit = KINDS[kind]
    lake = ledger.open(str(folder), author="bench")
    lake.create_database("db")
    lake.create_table("db.t", ledger.Schema.of({f"c{each}": "INT" for each in range(columns)}))
    table = lake.table("db.t")
    # The target of a tag.
    table.append([_file("first")])
    number = 0
    while number < _WARM:
        number += 1
        commit(lake, table, number)
    print("ready", flush=True)
    for line in sys.stdin:
        took_ns = []
        for _ in range(int(line)):
            number += 1
            begun = time.perf_counter_ns()
            commit(lake, table, number)
            took_ns.append(time.perf_counter_ns() - begun)
        print(json.dumps(took_ns), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), Path(sys.argv[3]))
