"""An engine of a served table: it writes snapshots as Paimon's do, and looks into the folder."""

from __future__ import annotations

import json
from typing import Any
from uuid import NAMESPACE_URL, uuid5

from attrs import define, field
from msgspec import UNSET, UnsetType

from ledger import Ledger, Schema
from ledger.model.names import Identifier
from ledger.stores import Store
from ledger.table_handle import TableHandle, handle_of
from projections.paimon.served import create_table
from projections.paimon.served_commits import SnapshotRequest, commit_snapshot
from projections.paimon.served_files import outputs_of_engines
from projections.paimon.snapshot_file import snapshot_of_request, snapshot_to_json
from tests.lakes import START_MILLIS, lake_on, memory, no_time

NAME = Identifier("a", "t")
BATCH = 2**63 - 1
SCHEMA = Schema.of(
    {"id": "BIGINT NOT NULL", "day": "STRING"},
    primary_keys=["id"],
    options={"bucket": "2"},
)


@define
class Clock:
    """A clock that stands until it is moved."""

    millis: int = START_MILLIS

    def __call__(self) -> int:
        return self.millis


def lake_at(store: Store, clock: Clock | None = None) -> Ledger:
    """Return the ledger on a store, with a database `a`."""
    lake = lake_on(store, clock=clock or Clock(), retry_policy=no_time())
    lake.init()
    if "a" not in lake.databases():
        lake.create_database("a")
    return lake


def snapshot_json(number: int, **other: Any) -> dict[str, Any]:
    """Return a snapshot as an engine sends it; batch commits differ by their manifests."""
    return {
        "version": 3,
        "uuid": str(uuid5(NAMESPACE_URL, f"{number} {other}")),
        "id": number,
        "schemaId": 0,
        "baseManifestList": f"manifest-list-{number}-0",
        "deltaManifestList": f"manifest-list-{number}-1",
        "commitUser": "job",
        "commitIdentifier": BATCH,
        "commitKind": "APPEND",
        "timeMillis": START_MILLIS + number,
        "totalRecordCount": number * 10,
        "deltaRecordCount": 10,
    } | other


@define
class Engine:
    """An engine that commits to a table through one server.

    Attributes:
        table: The server's handle of the table.
        sent: The newest snapshot that it knows of; None before the first.
    """

    table: TableHandle
    sent: dict[str, Any] | None = field(default=None)

    @classmethod
    def of(cls, lake: Ledger) -> Engine:
        """Return an engine of the table `a.t` of a ledger, with a handle of its own."""
        engine = cls(handle_of(lake).table(NAME))
        current = engine.table.state.snapshot
        if current is not None:
            engine.sent = snapshot_to_json(current)
        return engine

    @classmethod
    def of_new_table(cls, store: Store | None = None, schema: Schema = SCHEMA) -> Engine:
        """Return an engine of a new table `a.t`."""
        lake = lake_at(store or memory())
        return cls(create_table(handle_of(lake), NAME, schema))

    def request(
        self, snapshot: dict[str, Any], base: str | UnsetType | None = UNSET
    ) -> SnapshotRequest:
        """Return the request of a snapshot."""
        return SnapshotRequest(
            table_id=self.table.state.table_id,
            snapshot=snapshot_of_request(snapshot),
            base_snapshot_uuid=base,
        )

    def send(self, snapshot: dict[str, Any], base: str | UnsetType | None = UNSET) -> bool:
        """Commit a snapshot; return whether the server says that it is committed."""
        return commit_snapshot(self.table, self.request(snapshot, base))

    def commit(self, **other: Any) -> dict[str, Any]:
        """Commit the next snapshot, based on the newest one; return it."""
        number = 1 if self.sent is None else self.sent["id"] + 1
        snapshot = snapshot_json(number, **other)
        assert self.send(snapshot, None if self.sent is None else self.sent["uuid"])
        self.sent = snapshot
        return snapshot

    def files(self) -> dict[str, bytes]:
        """Return the files in the table's folder that readers look at, by path."""
        state = self.table.state
        outputs = outputs_of_engines(self.table, state)
        paths = [
            each
            for folder in ("schema", "snapshot", "tag", "branch")
            for each in outputs.paths(folder)
        ]
        return {each: outputs.read(each) or b"" for each in paths}

    def snapshots(self) -> dict[int, dict[str, Any]]:
        """Return the snapshots in the table's folder, by id."""
        return {
            int(path.removeprefix("snapshot/snapshot-")): json.loads(body)
            for path, body in self.files().items()
            if path.startswith("snapshot/snapshot-")
        }

    def latest(self) -> int:
        """Return the newest snapshot as Paimon's readers find it: by the hint, or else by names."""
        files, there = self.files(), self.snapshots()
        hint = int(files.get("snapshot/LATEST", b"0"))
        return hint if hint and hint + 1 not in there else max(there, default=0)

    def tags(self) -> list[str]:
        """Return the names of the tags in the table's folder."""
        return sorted(e.removeprefix("tag/tag-") for e in self.files() if e.startswith("tag/"))

    def remove(self, path: str) -> None:
        """Delete a file of the table's folder, as engines do that expire snapshots or tags."""
        outputs_of_engines(self.table, self.table.state).remove(path)

    def put(self, path: str, body: bytes) -> None:
        """Write a file into the table's folder."""
        outputs_of_engines(self.table, self.table.state).restore(path, body)
