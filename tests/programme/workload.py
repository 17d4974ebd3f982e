"""Calls of simulated writers: every kind of change, retries under their own ids, and reads."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from typing import Any

from attrs import define, field, frozen

from ledger import (
    AddColumn,
    CommitUnknownError,
    DamagedLogError,
    DropColumn,
    FileChange,
    Ledger,
    LedgerError,
    NotFoundError,
    RemoveOption,
    RenameColumn,
    SchemaChange,
    SetOption,
    SnapshotPlan,
    Table,
    UpdateComment,
    UpgradeRequiredError,
)
from ledger.ledger_handle import LedgerHandle
from ledger.log import CommitOptions
from ledger.log.request import RetryPolicy
from ledger.opening.context import TableSetting
from ledger.state import TableState, TableStream
from ledger.table_handle import handle_of
from tests.faults import Died
from tests.lakes import START_MILLIS
from tests.programme.records import Attempt, History, Observation
from tests.programme.scheduler import Process, Scheduler, Task
from tests.programme.simulated import Port, Sea


@frozen
class Call:
    """A call to a table, and the key that makes it the same snapshot as another."""

    make: Callable[[Table, CommitOptions], Any]
    key: str = ""


BEGIN_MILLIS = START_MILLIS + 1_000_000
DAYS = ("2013-01-01", "2013-01-02")


def digest_of(state: TableState) -> str:
    """Return a digest of all that a state says."""
    return hashlib.sha256(TableStream().encode_state(state)).hexdigest()


@define(eq=False)
class Machine:
    """One simulated process: its handle on the ledger, which dies with it."""

    sea: Sea
    process: Process
    skew_millis: int
    table: Table | None = None
    opened_in: int = -1

    def opened(self) -> Table:
        if self.table is None or self.opened_in != self.process.generation:
            generation = self.process.generation
            found = self.fresh_lake().table("shop.orders")
            if self.table is None or self.opened_in != generation:
                self.table, self.opened_in = found, generation
        return self.table

    def fresh_lake(self) -> Ledger:
        """Return a handle that knows nothing yet."""
        scheduler = self.sea.scheduler
        return Ledger(
            LedgerHandle(
                TableSetting(
                    store=Port(self.sea, self.process),
                    storage_options={},
                    author=self.process.name,
                    now_millis=lambda: (
                        BEGIN_MILLIS + self.skew_millis + round(scheduler.now_s * 1000)
                    ),
                    retry_policy=RetryPolicy(
                        deadline_s=4.0,
                        sleep=scheduler.sleep,
                        monotonic=lambda: scheduler.now_s,
                        uniform=self.sea.rng.uniform,
                    ),
                )
            )
        )


@define(eq=False)
class Writer:
    """One thread of a machine."""

    name: str
    machine: Machine
    history: History
    rng: random.Random
    operations: int
    may_drop: bool = False
    asked: list[tuple[str, Call, CommitOptions]] = field(factory=list)

    def task(self) -> Task:
        return Task(self.machine.process, self.work)

    @property
    def scheduler(self) -> Scheduler:
        return self.machine.sea.scheduler

    def work(self) -> None:
        for number in range(self.operations):
            task = self.scheduler.current
            task.process_generation = self.machine.process.generation
            try:
                self._one(f"{self.name}-{number}")
            except Died:
                if self.scheduler.has_failed:
                    raise

    def _one(self, name: str) -> None:
        table = self._opened()
        if table is None:
            return
        if self.rng.random() < 0.2:
            self._look(table)
        elif self.asked and self.rng.random() < 0.25:
            self._try(table, *self.rng.choice(self.asked))
        else:
            options: CommitOptions = {"message": name}
            if self.rng.random() < 0.4:
                options["commit_id"] = f"id-{name}"
            head = handle_of(table).log.head
            if self.rng.random() < 0.1 and head:
                options["expect_version"] = head.state.version
            call = self._call(table, name)
            if "commit_id" in options:
                self.asked.append((name, call, options))
            unknown_id = self._try(table, name, call, options)
            if unknown_id is not None and self.rng.random() < 0.7:
                self._ask_again(name, call, {**options, "commit_id": unknown_id})

    def _opened(self) -> Table | None:
        for _ in range(3):
            try:
                return self.machine.opened()
            except (OSError, CommitUnknownError):
                self.scheduler.sleep(3.0)
            except NotFoundError:
                # Dropped, and forgotten by the catalog.
                return None
        return None

    def _ask_again(self, name: str, call: Call, options: CommitOptions) -> None:
        """Retry a call with an unknown outcome, by the id that was reported."""
        table = self._opened()
        if table is not None:
            self.asked.append((name, call, options))
            self._try(table, name, call, options)

    def _look(self, table: Table) -> None:
        invoked = self.scheduler.steps
        try:
            state = table.state
        except OSError:
            return
        seen = Observation(invoked, self.scheduler.steps, state.version, digest_of(state))
        self.history.observations.append(seen)

    def _try(self, table: Table, name: str, call: Call, options: CommitOptions) -> str | None:
        """Make a call, record its outcome; return the id of an unknown one."""
        attempt = Attempt(name, self.scheduler.steps, key=call.key)
        self.history.attempts.append(attempt)
        unknown = None
        try:
            done = call.make(table, options)
        except (DamagedLogError, UpgradeRequiredError):
            raise
        except CommitUnknownError as error:
            attempt.outcome, unknown = "unknown", error.commit_id
        except LedgerError as error:
            attempt.outcome, attempt.error = "failed", repr(error)
        except OSError as error:
            attempt.outcome, attempt.error = "silent", repr(error)
        else:
            attempt.outcome = "acknowledged"
            attempt.version, attempt.is_repeated = done.version, done.repeated
        attempt.answered = self.scheduler.steps
        return unknown

    def _call(self, table: Table, name: str) -> Call:
        if self.may_drop and self.rng.random() < 0.03:
            return Call(lambda table, options: handle_of(table).seal(**options), "dropTable")
        kinds: list[Callable[..., Call]] = [
            self._schema,
            self._schema,
            self._options,
            self._append,
            self._append,
        ]
        kinds += [self._overwrite, self._rollback, self._tag, self._expire]
        return self.rng.choice(kinds)(table, name)

    def _schema(self, table: Table, name: str) -> Call:
        head = handle_of(table).log.head
        known = head.state.schema.names if head else ("amount",)
        column, other = self.rng.choice(known), self.rng.choice(known)
        own = name.replace("-", "_")
        possible: list[SchemaChange] = [
            AddColumn((own,), "INT"),
            AddColumn((f"common_{self.rng.randrange(3)}",), "STRING"),
            RenameColumn((column,), f"{own}_new"),
            RenameColumn((column,), other),
            DropColumn((column,)),
            UpdateComment(own),
        ]
        change = self.rng.choice(possible)
        second = SetOption("k", own) if self.rng.random() < 0.3 else None
        changes = [change, second] if second else [change]
        return Call(lambda table, options: table.alter(changes, **options))

    def _options(self, _: Table, name: str) -> Call:
        key = f"key-{self.rng.randrange(3)}"
        value = self.rng.choice([name, "same"])
        change = SetOption(key, value) if self.rng.random() < 0.8 else RemoveOption(key)
        return Call(lambda table, options: table.alter([change], **options))

    def _files(self, name: str) -> tuple[FileChange, ...]:
        return tuple(
            FileChange(
                path=f"data/{name}-{number}.parquet",
                partition=(self.rng.choice(DAYS),),
                record_count=10,
                file_size_in_bytes=1000,
                creation_time=BEGIN_MILLIS,
            )
            for number in range(self.rng.randrange(1, 4))
        )

    def _append(self, _: Table, name: str) -> Call:
        files = self._files(self.rng.choice([name, "shared"]))
        identifier = self.rng.randrange(4)
        user = f"user-{self.name}"
        plan = SnapshotPlan("APPEND", files, commit_user=user, commit_identifier=identifier)
        if self.rng.random() < 0.5:
            plan = SnapshotPlan("APPEND", files)
        key = f"{user} {identifier} APPEND" if plan.commit_user else ""
        return Call(lambda table, options: table.commit_snapshot(plan, **options), key)

    def _overwrite(self, _: Table, name: str) -> Call:
        files, day = self._files(name), self.rng.choice(DAYS)
        files = tuple(each for each in files if each.partition == (day,))
        isolation: Any = self.rng.choice(["serializable", "snapshot"])
        return Call(
            lambda table, options: table.overwrite(
                files, where={"day": day}, isolation=isolation, **options
            )
        )

    def _rollback(self, table: Table, _: str) -> Call:
        head = handle_of(table).log.head
        snapshot = self.rng.randrange(1, 2 + (head.state.last_snapshot_id or 1 if head else 1))
        return Call(lambda table, options: table.rollback(snapshot=snapshot, **options))

    def _tag(self, *_: object) -> Call:
        tag = f"tag-{self.rng.randrange(3)}"
        calls = [
            Call(lambda table, options: table.create_tag(tag, **options)),
            Call(lambda table, options: table.replace_tag(tag, **options)),
            Call(lambda table, options: table.delete_tag(tag, **options)),
        ]
        return self.rng.choice(calls)

    def _expire(self, *_: object) -> Call:
        before = self.rng.randrange(1, 4)
        return Call(lambda table, options: table.expire_snapshots(before=before, **options))
