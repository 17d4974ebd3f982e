"""One process at a ledger under load, until its time is over or it is killed.

A worker's calls and outcomes go into a file, one JSON object a line, before and after each
call; so the calls of a killed worker without an outcome are known, too.
"""

from __future__ import annotations

import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Literal

import structlog
from attrs import asdict, frozen

import ledger
from ledger import (
    AddColumn,
    CommitUnknownError,
    DamagedLogError,
    DropColumn,
    Ledger,
    LedgerError,
    RenameColumn,
    SetOption,
    SnapshotPlan,
    Table,
    UpgradeRequiredError,
)
from ledger.history.garbage import KEPT_MILLIS, orphaned_change_files, orphaned_drafts, remove
from ledger.history.verifying import Subject, Verification
from ledger.history.verifying.caches import missing_segments
from ledger.log import CommitOptions, now_millis
from ledger.table_handle import handle_of
from projections.statistics import refresh
from tests.lakes import data_file
from tests.programme.clients import Client, hurry, resign
from tests.programme.records import Attempt, Observation
from tests.programme.workload import digest_of

Role = Literal["write", "paimon", "iceberg", "tend"]
Call = Callable[[CommitOptions], Any]
TABLE: Final = "shop.orders"
OVERTIME_S: Final = 120.0
"""Seconds that a worker continues if it has not done everything in time."""


@frozen
class Post:
    """A worker's place.

    Attributes:
        role: Its work: writing, keeping a format's files, or maintenance.
        who: Its name; no other ever has it.
        url: The ledger.
        options: Of its store.
        until_s: When it stops, on the monotonic clock, which all processes share.
        pause_s: The longest pause of a writer between two calls.
        at_least: A writer continues until this many of its calls were acknowledged, for a while.
        said: The file that it writes to.
        before: The file of the one that was killed here before it.
        client: How its object store's client takes faults.
    """

    role: Role
    who: str
    url: str
    options: Mapping[str, Any]
    until_s: float
    said: Path
    before: Path | None = None
    client: Client = "patient"
    pause_s: float = 0.0
    at_least: int = 0


@frozen
class Asked:
    """One line before a call.

    Attributes:
        name: The operation.
        invoked: When, in nanoseconds on the monotonic clock.
        key: As in `Attempt`.
        column: What it adds, where it can be asked again by another process.
    """

    name: str
    invoked: int
    key: str = ""
    column: str = ""


def work(post: Post) -> None:
    """Do what the post is for."""
    output = os.open(f"{post.said}.out", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    structlog.configure(logger_factory=structlog.WriteLoggerFactory(sys.stderr))
    if post.options:
        hurry()
    table = opened(post)
    if post.client == "resigned":
        resign()
    if post.role == "write":
        Writing(post, table).run()
    else:
        keep(post, table)


def opened(post: Post) -> Table:
    """Return the table, however often that takes; what is known of the catalog stays known."""
    lake: Ledger | None = None
    while True:
        try:
            lake = lake or ledger.open(post.url, post.options, author=post.who)
            return lake.table(TABLE)
        except OSError:
            if time.monotonic() > post.until_s + OVERTIME_S:
                raise


class Writing:
    """A writer at its post."""

    def __init__(self, post: Post, table: Table) -> None:
        self._post = post
        self._table = table
        self._rng = random.Random(post.who)
        self._committed = 0
        self._file = os.open(post.said, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def run(self) -> None:
        for asked in left_open(self._post.before):
            self._again(asked)
        number = 0
        while self._continues():
            number += 1
            time.sleep(self._rng.uniform(0, self._post.pause_s))
            if self._rng.random() < 0.05:
                self._look()
            else:
                self._one(number)

    def _continues(self) -> bool:
        over_s = time.monotonic() - self._post.until_s
        return over_s < (OVERTIME_S if self._committed < self._post.at_least else 0)

    def _one(self, number: int) -> None:
        name = f"{self._post.who}-{number}"
        options: CommitOptions = {"message": name}
        column = key = ""
        if self._rng.random() < 0.4:
            column = options["commit_id"] = name
            call = self._adding(column)
        else:
            try:
                call, key = self._drawn(name, number)
            except (LedgerError, OSError):
                # Nothing was asked yet.
                return
        outcome = self._ask(Asked(name, time.monotonic_ns(), key, column), call, options)
        if outcome == "unknown" and column:
            self._again(Asked(name, 0, "", column))

    def _again(self, asked: Asked) -> None:
        """Ask for what came to nothing known, as a careful caller does: under the same id."""
        if asked.column:
            options: CommitOptions = {"message": asked.name, "commit_id": asked.name}
            again = Asked(asked.name, time.monotonic_ns(), "", asked.column)
            self._ask(again, self._adding(asked.column), options)

    def _adding(self, column: str) -> Call:
        changes = [AddColumn((column.replace("-", "_").replace(".", "_"),), "INT")]
        return lambda options: self._table.alter(changes, **options)

    def _drawn(self, name: str, number: int) -> tuple[Call, str]:
        """Return what comes next, and its key."""
        table, own = self._table, name.replace("-", "_").replace(".", "_")
        mine = f"{self._post.who}-".replace("-", "_").replace(".", "_")
        names = table.state.schema.names
        match self._rng.randrange(8):
            case 0 | 1 if known := [each for each in names if each.startswith(mine)]:
                column = self._rng.choice(known)
                drops = self._rng.random() < 0.5
                change = DropColumn((column,)) if drops else RenameColumn((column,), own)
                return lambda options: table.alter([change], **options), ""
            case 2:
                option = SetOption(f"k{number % 5}", own)
                return lambda options: table.alter([option], **options), ""
            case 3:
                return lambda options: table.create_tag(own, **options), ""
            case 4 if number % 3 == 0 and (target := table.state.last_snapshot_id):
                return lambda options: table.rollback(snapshot=target, **options), ""
            case _:
                files = [data_file(f"{own}-{each}.parquet") for each in range(1 + number % 3)]
                plan = SnapshotPlan(
                    "APPEND", tuple(files), commit_user=self._post.who, commit_identifier=number
                )
                key = f"{self._post.who} {number} APPEND"
                return lambda options: table.commit_snapshot(plan, **options), key

    def _ask(self, asked: Asked, call: Call, options: CommitOptions) -> str:
        self._say({"asked": asdict(asked)})
        outcome: dict[str, Any] = {"outcome": "acknowledged"}
        try:
            done = call(options)
        except (DamagedLogError, UpgradeRequiredError):
            raise
        except CommitUnknownError as error:
            outcome = {"outcome": "unknown", "error": repr(error)}
        except OSError as error:
            outcome = {"outcome": "silent", "error": repr(error)}
        except LedgerError as error:
            outcome = {"outcome": "failed", "error": repr(error)}
        else:
            outcome |= {"version": done.version, "is_repeated": done.repeated}
            self._committed += 1
        self._say({"response": {"answered": time.monotonic_ns(), **outcome}})
        return str(outcome["outcome"])

    def _look(self) -> None:
        invoked = time.monotonic_ns()
        try:
            state = self._table.state
        except OSError:
            return
        seen = Observation(invoked, time.monotonic_ns(), state.version, digest_of(state))
        self._say({"seen": asdict(seen)})

    def _say(self, document: dict[str, Any]) -> None:
        os.write(self._file, json.dumps(document).encode() + b"\n")


def lines_in(path: Path) -> Iterator[dict[str, Any]]:
    """Yield what a worker said; a killed one may not have ended its last line."""
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else ():
        if line.endswith(b"\n"):
            yield json.loads(line)


def attempts_in(path: Path) -> Iterator[Attempt]:
    """Yield a writer's calls, with their outcomes unless it was killed before."""
    attempt: Attempt | None = None
    for line in lines_in(path):
        if "asked" in line:
            asked = Asked(**line["asked"])
            attempt = Attempt(asked.name, asked.invoked, key=asked.key)
            yield attempt
        elif "response" in line and attempt is not None:
            for name, value in line["response"].items():
                setattr(attempt, name, value)


def observations_in(path: Path) -> Iterator[Observation]:
    return (Observation(**line["seen"]) for line in lines_in(path) if "seen" in line)


def left_open(path: Path | None) -> Iterator[Asked]:
    """Yield the calls of a killed writer that have no outcome."""
    last = None
    for line in lines_in(path) if path else ():
        last = Asked(**line["asked"]) if "asked" in line else None
    if last is not None:
        yield last


def keep(post: Post, table: Table) -> None:
    """Keep a format's files up to date, or run maintenance; say how often, once at least."""
    file = os.open(post.said, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    while time.monotonic() < post.until_s or not any(lines_in(post.said)):
        # Maintenance runs as if this draft were a week old: a retry continues from there.
        with suppress(FileNotFoundError):
            if post.role == "tend":
                tend(table)
            else:
                table.project(post.role)
            os.write(file, b'{"run": 1}\n')


def tend(table: Table) -> None:
    """Refresh the statistics, verify everything, seal, and remove what is not needed.

    Drafts go at once, as if their writers had stalled for a week.
    """
    refresh(handle_of(table).log)
    subject: Subject[Any, Any] = Subject(TABLE, handle_of(table).log, has_files=True)
    findings = [each for each in Verification(subject).run() if each.kind == "damage"]
    assert not findings, findings
    for segment in missing_segments(subject):
        handle_of(table).log.store.replace(segment.path, segment.body)
    store, folder = (
        handle_of(table).log.store,
        handle_of(table).log.layout.root.removesuffix("/_ledger"),
    )
    for orphan in (
        *orphaned_change_files(subject, now_millis()),
        *orphaned_drafts(store, folder, now_millis() + KEPT_MILLIS),
    ):
        remove(store, orphan)
