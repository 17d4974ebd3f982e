"""Calls of simulated writers to a catalog: databases, tables and views come, change and go, while
others commit to the tables.

Names are few, so that everybody is in everybody's way.
"""

from __future__ import annotations

import hashlib
import random
from collections import defaultdict
from collections.abc import Callable
from typing import Any, Final, Literal

from attrs import define, field, frozen

from ledger import (
    AddColumn,
    CommitUnknownError,
    DamagedLogError,
    Identifier,
    Ledger,
    LedgerError,
    NotFoundError,
    Schema,
    SetOption,
    StoreError,
    Table,
    UpgradeRequiredError,
    ViewSchema,
)
from ledger.log import CommitOptions
from ledger.state import EMPTY_CATALOG, CatalogState, CatalogStream
from ledger.table_handle import handle_of
from tests.faults import Died
from tests.programme.records import Attempt, History, Observation
from tests.programme.scheduler import Scheduler, Task
from tests.programme.workload import Machine

DATABASES: Final = ("a", "b")
NAMES: Final = ("x", "y", "z")
SCHEMA: Final = Schema.of({"id": "BIGINT"})
_DROPPED_SINCE: Final = ("created and dropped since", "restored and dropped since")
"""Errors of calls that were committed, and whose table was dropped before they returned."""


@frozen
class Call:
    """A call to a ledger.

    Attributes:
        kind: In the catalog's words, as `createTable`.
        make: Asks; returns a commit, or something that it made.
    """

    kind: str
    make: Callable[[Ledger, CommitOptions], Any]


@define
class Histories:
    """All of one schedule: what the catalog was asked, and each table, by its stream's folder."""

    catalog: History = field(factory=History)
    tables: dict[str, History] = field(factory=lambda: defaultdict(History))


def digest_of(state: CatalogState) -> str:
    """Return a digest of all that a catalog's state says."""
    return hashlib.sha256(CatalogStream().encode_state(state)).hexdigest()


@define(eq=False)
class CatalogWriter:
    """One thread of a machine; its handles die with the machine."""

    name: str
    machine: Machine
    histories: Histories
    rng: random.Random
    operations: int
    lake: Ledger | None = None
    opened_in: int = -1
    held: list[Table] = field(factory=list)
    asked: list[tuple[str, Call, CommitOptions]] = field(factory=list)

    def task(self) -> Task:
        return Task(self.machine.process, self.work)

    @property
    def scheduler(self) -> Scheduler:
        return self.machine.sea.scheduler

    def work(self) -> None:
        for number in range(self.operations):
            self.scheduler.current.process_generation = self.machine.process.generation
            try:
                self._one(f"{self.name}-{number}")
            except Died:
                if self.scheduler.has_failed:
                    raise

    def _one(self, name: str) -> None:
        lake = self._opened()
        if lake is None:
            return
        draw = self.rng.random()
        if draw < 0.12:
            self._look(lake)
        elif draw < 0.4:
            self._commit_to_a_table(lake, name)
        elif draw < 0.5 and self.asked:
            self._try(lake, *self.rng.choice(self.asked))
        else:
            options: CommitOptions = {"message": name}
            call = self._call(lake)
            if self.rng.random() < 0.5:
                options["commit_id"] = f"id-{name}"
                self.asked.append((name, call, options))
            unknown_id = self._try(lake, name, call, options)
            if unknown_id is not None and self.rng.random() < 0.7:
                again: CommitOptions = {**options, "commit_id": unknown_id}
                self.asked.append((name, call, again))
                self._try(lake, name, call, again)

    def _opened(self) -> Ledger | None:
        generation = self.machine.process.generation
        if self.lake is None or self.opened_in != generation:
            self.lake, self.opened_in, self.held = None, generation, []
            try:
                lake = self.machine.fresh_lake()
                lake.init()
            except (OSError, StoreError):
                return None
            self.lake = lake
        return self.lake

    def _look(self, lake: Ledger) -> None:
        invoked = self.scheduler.steps
        try:
            state = lake.state
        except OSError:
            return
        if state.version >= 0:
            seen = Observation(invoked, self.scheduler.steps, state.version, digest_of(state))
            self.histories.catalog.observations.append(seen)

    def _try(self, lake: Ledger, name: str, call: Call, options: CommitOptions) -> str | None:
        """Make a call, record its outcome; return the id of an unknown one."""
        known = {each.name for each in self.histories.catalog.attempts}
        attempt = Attempt(name, self.scheduler.steps, kind=call.kind)
        self.histories.catalog.attempts.append(attempt)
        unknown = self._outcome(attempt, lambda: call.make(lake, options))
        if attempt.version < 0 and name in known:
            # What is created is returned, and not whether it was there.
            attempt.is_repeated = True
        return unknown

    def _outcome(self, attempt: Attempt, ask: Callable[[], Any]) -> str | None:
        unknown = None
        try:
            done = ask()
        except (DamagedLogError, UpgradeRequiredError):
            raise
        except CommitUnknownError as error:
            attempt.outcome, unknown = "unknown", error.commit_id
        except OSError as error:
            attempt.outcome, attempt.error = "silent", repr(error)
        except LedgerError as error:
            attempt.outcome, attempt.error = "failed", repr(error)
            if any(each in str(error) for each in _DROPPED_SINCE):
                attempt.outcome = "acknowledged"
        else:
            attempt.outcome = "acknowledged"
            attempt.version = getattr(done, "version", -1)
            attempt.is_repeated = getattr(done, "repeated", False)
        attempt.answered = self.scheduler.steps
        return unknown

    def _commit_to_a_table(self, lake: Ledger, name: str) -> None:
        """Commit to a table that is held, which may have another name by now, or to another."""
        if not self.held or self.rng.random() < 0.4:
            try:
                self.held.append(lake.table(self._known(lake, "tables")))
            except (NotFoundError, OSError, CommitUnknownError):
                return
        table = self.rng.choice(self.held)
        column = AddColumn((name.replace("-", "_"),), "INT")
        change = column if self.rng.random() < 0.5 else SetOption("k", name)
        attempt = Attempt(name, self.scheduler.steps)
        self.histories.tables[handle_of(table).log.layout.root].attempts.append(attempt)
        self._outcome(attempt, lambda: table.alter([change], message=name))

    def _name(self) -> Identifier:
        return Identifier(self.rng.choice(DATABASES), self.rng.choice(NAMES))

    def _known(self, lake: Ledger, kind: Literal["tables", "views"]) -> Identifier:
        """Return a name that was taken when this machine looked last, most of the time."""
        head = handle_of(lake).log.head
        state = head.state if head else EMPTY_CATALOG
        taken = list(state.tables if kind == "tables" else state.views)
        return self.rng.choice(taken) if taken and self.rng.random() < 0.8 else self._name()

    def _call(self, lake: Ledger) -> Call:
        kinds: list[Callable[[Ledger], Call]] = [
            *[self._create] * 5,
            *[self._drop_table] * 3,
            *[self._undrop_table] * 2,
            *[self._rename_table] * 3,
            *[self._alter] * 2,
            self._drop_database,
            self._change_view,
            self._change_view,
        ]
        return self.rng.choice(kinds)(lake)

    def _create(self, _: Ledger) -> Call:
        name, view = self._name(), ViewSchema(SCHEMA.fields, "SELECT 1")
        database = self.rng.choice(DATABASES)
        calls = [
            Call("createTable", lambda lake, how: lake.create_table(name, SCHEMA, **how)),
            Call("createTable", lambda lake, how: lake.create_table(name, SCHEMA, **how)),
            Call("createView", lambda lake, how: lake.create_view(name, view, **how)),
            Call("createDatabase", lambda lake, how: lake.create_database(database, **how)),
        ]
        return self.rng.choice(calls)

    def _drop_table(self, lake: Ledger) -> Call:
        name = self._known(lake, "tables")
        return Call("dropTable", lambda lake, how: lake.drop_table(name, **how))

    def _undrop_table(self, lake: Ledger) -> Call:
        head = handle_of(lake).log.head
        dropped = [*head.state.dropped] if head else []
        known = self.rng.choice(dropped) if dropped and self.rng.random() < 0.5 else self._name()
        return Call("undropTable", lambda lake, how: lake.undrop_table(known, **how))

    def _rename_table(self, lake: Ledger) -> Call:
        old, new = self._known(lake, "tables"), self._name()
        return Call("renameTable", lambda lake, how: lake.rename_table(old, new, **how))

    def _drop_database(self, _: Ledger) -> Call:
        name = self.rng.choice(DATABASES)
        return Call("dropDatabase", lambda lake, how: lake.drop_database(name, **how))

    def _alter(self, lake: Ledger) -> Call:
        name, view = self.rng.choice(DATABASES), self._known(lake, "views")
        value = f"{self.rng.randrange(3)}"
        calls = [
            Call(
                "alterDatabase",
                lambda lake, how: lake.alter_database(name, updates={"k": value}, **how),
            ),
            Call(
                "alterView", lambda lake, how: lake.alter_view(view, [SetOption("k", value)], **how)
            ),
        ]
        return self.rng.choice(calls)

    def _change_view(self, lake: Ledger) -> Call:
        old, new = self._known(lake, "views"), self._name()
        calls = [
            Call("renameView", lambda lake, how: lake.rename_view(old, new, **how)),
            Call("dropView", lambda lake, how: lake.drop_view(old, **how)),
        ]
        return self.rng.choice(calls)
