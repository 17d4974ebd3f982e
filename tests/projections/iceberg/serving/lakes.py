"""Ledgers in a folder, with a clock that the test moves, and random tables of engines in them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from random import Random

import msgspec
from attrs import define

from ledger import Ledger
from ledger.model.names import Identifier
from ledger.stores import Store, open_store
from ledger.table_handle import TableHandle, handle_of
from projections.iceberg.rest_commit import commit_updates
from projections.iceberg.rest_updates import TableUpdate, table_update_from_json, update_to_json
from projections.iceberg.served import create_table, load
from tests.lakes import START_MILLIS, lake_on
from tests.projections.iceberg.metadata.cases import UUID
from tests.projections.iceberg.serving.random_updates import new_table

NAME = Identifier("a", "t")


@define
class Clock:
    """A clock that stands until it is moved."""

    millis: int = START_MILLIS

    def __call__(self) -> int:
        return self.millis


def lake_in(folder: Path, clock: Clock | None = None) -> Ledger:
    """Return the ledger in a folder, with a database `a`."""
    return lake_at(open_store(str(folder)), clock)


def lake_at(store: Store, clock: Clock | None = None) -> Ledger:
    """Return the ledger on a store, with a database `a`."""
    lake = lake_on(store, clock=clock or Clock())
    lake.init()
    if "a" not in lake.databases():
        lake.create_database("a")
    return lake


def location_in(lake: Ledger) -> str:
    """Return the location that an engine gives the table `a.t`."""
    return f"{lake.url}/engines/t"


def random_table(rng: Random, lake: Ledger) -> TableHandle:
    """Create a random table `a.t` of engines."""
    updates = new_table(rng, UUID, location_in(lake))
    return create_table(handle_of(lake), NAME, updates)


def small_table(lake: Ledger, version: int = 2) -> TableHandle:
    """Create a table `a.t` of engines with columns of a few types."""
    updates = small_updates(location_in(lake), version)
    return create_table(handle_of(lake), NAME, updates)


def small_updates(location: str, version: int = 2) -> list[TableUpdate]:
    """Return the updates that create the table of `small_table`."""
    return [table_update_from_json(each) for each in _small(location, version)]


def send(table: TableHandle, *updates: TableUpdate) -> None:
    """Commit updates as a client sends them: as JSON."""
    commit_updates(table, as_sent(updates))


def as_sent(updates: Iterable[TableUpdate]) -> list[dict[str, object]]:
    """Return the JSON of updates."""
    return [update_to_json(each) for each in updates]


def loaded_json(table: TableHandle) -> dict[str, object]:
    """Return the newest metadata file, decoded."""
    found: dict[str, object] = msgspec.json.decode(load(table, table.state).body)
    return found


def _small(location: str, version: int) -> list[dict[str, object]]:
    columns = [
        {"id": 1, "name": "id", "type": "long", "required": True},
        {"id": 2, "name": "name", "type": "string", "required": False},
        {"id": 3, "name": "day", "type": "date", "required": False},
    ]
    return [
        {"action": "assign-uuid", "uuid": UUID},
        {"action": "upgrade-format-version", "format-version": version},
        {"action": "add-schema", "schema": {"type": "struct", "schema-id": 0, "fields": columns}},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-spec", "spec": {"spec-id": 0, "fields": []}},
        {"action": "set-default-spec", "spec-id": -1},
        {"action": "add-sort-order", "sort-order": {"order-id": 0, "fields": []}},
        {"action": "set-default-sort-order", "sort-order-id": -1},
        {"action": "set-location", "location": location},
    ]
