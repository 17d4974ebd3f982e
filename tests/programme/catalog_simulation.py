"""One seed, one schedule of a catalog and its tables, and what is checked of it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from functools import lru_cache
from itertools import pairwise
from typing import Any

from attrs import field, frozen

from ledger import Identifier, Ledger, NotFoundError, ViewSchema
from ledger.history.verifying import Subject, Verification
from ledger.log import Codec
from ledger.state import CatalogStream, TableEntry
from ledger.table_handle import handle_of
from tests.lakes import lake_on, memory, ticking
from tests.programme.catalog_workload import (
    DATABASES,
    SCHEMA,
    CatalogWriter,
    Histories,
    digest_of,
)
from tests.programme.checker import Log, check_log, check_observations, read_log
from tests.programme.cooperative import cooperative
from tests.programme.figures import FIGURES
from tests.programme.records import Attempt
from tests.programme.scheduler import Process, Scheduler
from tests.programme.simulated import Sea
from tests.programme.simulation import Case, log_modules
from tests.programme.workload import BEGIN_MILLIS, Machine

CATALOG = "_ledger"
LATER = BEGIN_MILLIS + 1_000_000_000


@frozen
class RanCatalog:
    """The ledger and its records after a schedule."""

    sea: Sea
    histories: Histories = field(factory=Histories)


@lru_cache
def beginning() -> Mapping[str, bytes]:
    """Return the bodies of a ledger with tables and views in it."""
    store = memory()
    lake = lake_on(store)
    for database in DATABASES:
        lake.create_database(database)
        lake.create_table(Identifier(database, "x"), SCHEMA)
        lake.create_view(Identifier(database, "y"), ViewSchema(SCHEMA.fields, "SELECT 1"))
    return {key: store.read(key) or b"" for key in store.keys("")}


def run(case: Case) -> RanCatalog:
    """Run the schedule of a case."""
    rng = random.Random(case.seed)
    scheduler = Scheduler(random.Random(rng.random()))
    sea = Sea(
        bodies=dict(beginning()) if rng.random() < 0.7 else {},
        scheduler=scheduler,
        rng=random.Random(rng.random()),
        habits=frozenset(case.habits),
        rate=rng.choice([0.02, 0.1, 0.3]),
        is_locking=rng.random() < 0.5,
    )
    ran = RanCatalog(sea)
    writers = []
    with cooperative(log_modules(), scheduler):
        for place in range(rng.randrange(1, 4)):
            machine = Machine(sea, Process(f"machine-{place}"), rng.randrange(-20_000, 20_000))
            for number in range(rng.choice([1, 1, 2])):
                own = random.Random(rng.random())
                name = f"w{place}{number}"
                writers.append(
                    CatalogWriter(name, machine, ran.histories, own, rng.randrange(4, 12))
                )
        scheduler.run([each.task() for each in writers])
    FIGURES["schedules"] += 1
    FIGURES["steps"] += scheduler.steps
    for habit, times in sea.faults.items():
        FIGURES["crashes" if habit.startswith("crash") else "faults"] += times
    return ran


def check(ran: RanCatalog) -> None:
    """Check every promise on what a schedule left."""
    bodies, catalog = ran.sea.bodies, ran.histories.catalog
    log = read_log(bodies, CATALOG)
    check_log(catalog, log)
    check_effects(catalog.attempts, log)
    digests = replayed(bodies, log)
    FIGURES["reads checked"] += check_observations(catalog, lambda version: digests[version])
    tried = [
        *catalog.attempts,
        *(e for each in ran.histories.tables.values() for e in each.attempts),
    ]
    FIGURES["commits"] += len({each.name for each in tried if each.outcome == "acknowledged"})
    check_streams(ran, Names(log))
    check_opening(bodies)


class Names:
    """The model of a catalog's raw log: names are unique, and no place is ever used again.

    Attributes:
        paths: The location of every table that there ever was, by its id.
        dropped: The ids of those that were dropped.
    """

    def __init__(self, log: Log) -> None:
        self.paths: dict[str, str] = {}
        self.dropped: set[str] = set()
        self._databases: set[str] = set()
        self._taken: dict[tuple[str, str], str] = {}
        self._used: set[str] = set()
        for commit in log:
            for transaction in commit["transactions"]:
                for event in transaction.get("events", ()):
                    self._apply(event)

    def _apply(self, event: dict[str, Any]) -> None:
        kind = event["type"]
        if "path" in event:
            assert event["path"] not in self._used, f"{event['path']} is given out twice"
            self._used.add(event["path"])
        if kind == "createDatabase":
            assert event["name"] not in self._databases
            self._databases.add(event["name"])
        elif kind == "dropDatabase":
            assert not [each for each in self._taken if each[0] == event["name"]], "not empty"
            self._databases.remove(event["name"])
        elif kind.startswith("create"):
            self._take(event["identifier"], event.get("tableId") or event["viewId"])
            if kind == "createTable":
                self.paths[event["tableId"]] = event["path"]
        elif kind.startswith("rename"):
            holder = event.get("tableId") or event["viewId"]
            self._release(event["source"], holder)
            self._take(event["destination"], holder)
        elif kind in ("dropTable", "dropView"):
            self._release(event["identifier"], event.get("tableId") or event["viewId"])
            self.dropped |= {event["tableId"]} if kind == "dropTable" else set()
        elif kind == "undropTable":
            self.dropped.remove(event["tableId"])
            self._take(event["identifier"], event["tableId"])

    def _take(self, name: dict[str, str], holder: str) -> None:
        key = _key(name)
        assert key[0] in self._databases, f"{key} is in no database"
        assert key not in self._taken, f"{key} is taken"
        assert holder not in self._taken.values(), f"{holder} has two names"
        self._taken[key] = holder

    def _release(self, name: dict[str, str], holder: str) -> None:
        assert self._taken.pop(_key(name)) == holder


def _key(name: dict[str, str]) -> tuple[str, str]:
    database, table = name.values()
    return database, table


def check_effects(attempts: list[Attempt], log: Log) -> None:
    """Check that each acknowledged call did what was asked and nothing else, or it held already."""
    done = {
        transaction.get("message"): [event["type"] for event in transaction.get("events", ())]
        for commit in log
        for transaction in commit["transactions"]
    }
    for each in attempts:
        if each.outcome == "acknowledged":
            effect = done[each.name]
            may_hold = not each.kind.startswith("create")
            assert effect == [each.kind] or (may_hold and not effect), f"{each}: {effect}"


def check_streams(ran: RanCatalog, names: Names) -> None:
    """Each table's stream keeps its promises, and is sealed before the catalog forgets it."""
    bodies = ran.sea.bodies
    roots = {f"{path}/_ledger": table_id for table_id, path in names.paths.items()}
    found = {key.partition("/log/")[0] for key in bodies if "/log/" in key} - {CATALOG}
    assert found <= roots.keys(), "a stream of no table"
    for root, table_id in roots.items():
        log = read_log(bodies, root)
        history = ran.histories.tables[root]
        if log:
            created = log[0]["transactions"][0]
            assert created["events"][0]["tableId"] == table_id
            check_log(history, [_without_catalog(commit) for commit in log])
        else:
            assert all(each.outcome != "acknowledged" for each in history.attempts)
        kinds = [e["type"] for c in log for t in c["transactions"] for e in t.get("events", ())]
        after = {later for kind, later in pairwise(kinds) if kind == "dropTable"}
        assert after <= {"undropTable"}, f"{root} goes on after its end"
        assert table_id not in names.dropped or kinds[-1] == "dropTable", f"{root} is not sealed"


def _without_catalog(commit: dict[str, Any]) -> dict[str, Any]:
    """Return a table's commit without the messages of what the catalog was asked."""
    both = {"createTable", "dropTable", "undropTable"}
    transactions = [
        {**each, "message": ""} if both & {e["type"] for e in each.get("events", ())} else each
        for each in commit["transactions"]
    ]
    return {**commit, "transactions": transactions}


def replayed(bodies: Mapping[str, bytes], log: Log) -> list[str]:
    """Return the digests of the catalog's states, folded from its commits alone."""
    stream = CatalogStream()
    codec: Codec[Any] = Codec(stream.event_types)
    builder = stream.builder(None)
    digests = []
    for version in range(len(log)):
        key = f"{CATALOG}/log/{version:020d}.json"
        builder.commit(codec.decode(bodies[key], key))
        digests.append(digest_of(builder.freeze()))
    return digests


def check_opening(bodies: Mapping[str, bytes]) -> None:
    """Check that a later process opens every table, or finishes its drop, which frees the name."""
    store = memory()
    store._memory.bodies.update(bodies)
    lake = lake_on(store, ticking(LATER))
    for entry in lake.state.tables.values():
        try:
            table = lake.table(entry.identifier)
        except NotFoundError:
            assert lake.state.table_by_id(entry.table_id) is None, f"{entry} is half dropped"
            check_location_of_next(lake, entry)
        else:
            assert table.state.table_id == entry.table_id
            assert table.location.endswith(f"/{entry.path}")
            subject: Subject[Any, Any] = Subject(
                str(entry.identifier), handle_of(table).log, has_files=True
            )
            assert not [each for each in Verification(subject).run() if each.kind == "damage"]
    catalog: Subject[Any, Any] = Subject("catalog", handle_of(lake).log, has_files=False)
    assert not [each for each in Verification(catalog).run() if each.fails]


def check_location_of_next(lake: Ledger, entry: TableEntry) -> None:
    """A table of a dropped one's name has a place of its own."""
    next_one = lake.create_table(entry.identifier, SCHEMA)
    assert not next_one.location.endswith(f"/{entry.path}")
    assert next_one.state.table_id != entry.table_id
