"""One process at a ledger under load; `python -m tests.programme.soak_worker ROLE URL WHO UNTIL`.

A writer prints one JSON object for each transaction that was acknowledged; a projector keeps a
table's Paimon files up to date, and prints how often it did. UNTIL is seconds of work.
"""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Callable
from typing import Any

import ledger
from ledger import (
    AddColumn,
    DropColumn,
    LedgerError,
    RenameColumn,
    SetOption,
    SnapshotPlan,
    Table,
)
from ledger.commit_options import CommitOptions
from tests.lakes import data_file

Call = Callable[[CommitOptions], Any]


def say(document: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def call(  # noqa: PLR0911 - one case a kind
    table: Table, who: str, number: int, rng: random.Random
) -> Call:
    """Return what comes next."""
    own = f"{who}_{number}"
    known = [each for each in table.at().schema.names if each.startswith(who)]
    match rng.randrange(10):
        case 0 | 1:
            return lambda options: table.alter([AddColumn((own,), "INT")], **options)
        case 2 if known:
            column = rng.choice(known)
            return lambda options: table.alter([RenameColumn((column,), own)], **options)
        case 3 if known:
            column = rng.choice(known)
            return lambda options: table.alter([DropColumn((column,))], **options)
        case 4:
            return lambda options: table.alter([SetOption(f"k{number % 5}", own)], **options)
        case 5:
            return lambda options: table.create_tag(own, **options)
        case 6 if number % 3 == 0 and table.state.last_snapshot_id:
            target = table.state.last_snapshot_id
            return lambda options: table.rollback(snapshot=target, **options)
        case _:
            files = tuple(data_file(f"{own}-{each}.parquet") for each in range(rng.randrange(1, 4)))
            plan = SnapshotPlan("APPEND", files, commit_user=who, commit_identifier=number)
            return lambda options: table.commit_snapshot(plan, **options)


def write(url: str, who: str, until_s: float) -> None:
    table = ledger.open(url, author=who).table("shop.orders")
    rng = random.Random(who)
    say({"ready": who})
    sys.stdin.readline()
    end = time.monotonic() + until_s
    number = refused = 0
    while time.monotonic() < end:
        number += 1
        name = f"{who}-{number}"
        options: CommitOptions = {"message": name}
        if rng.random() < 0.5:
            options["commit_id"] = name
        try:
            done = call(table, who, number, rng)(options)
        except LedgerError:
            refused += 1
        else:
            say({"name": name, "version": done.version})
    say({"refused": refused})


def project(url: str, who: str, until_s: float) -> None:
    table = ledger.open(url, author=who).table("shop.orders")
    say({"ready": who})
    sys.stdin.readline()
    end = time.monotonic() + until_s
    runs = 0
    while time.monotonic() < end:
        table.project("paimon")
        runs += 1
    say({"runs": runs})


if __name__ == "__main__":
    role, place, name, seconds = sys.argv[1:]
    {"write": write, "project": project}[role](place, name, float(seconds))
