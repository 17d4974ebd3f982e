"""Manifests of snapshots that the ledger made of a table which was born in Iceberg.

They begin with what the table's former owner listed: its manifests stay where they are, and are
named by every list until a snapshot takes files out of one, which is then written again beside the
ledger's own. A rollback lists what its target lists.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec
from attrs import Factory, define

from ledger.events import TableEvent
from ledger.events.born.iceberg import SnapshotsRemoved
from ledger.events.commit import Transaction
from ledger.events.snapshot_events import RolledBack, SnapshotEvent
from ledger.events.table_events import OwnerSet, TablePromoted
from ledger.evolution.state import TableState
from ledger.evolution.table.origin.iceberg import IcebergOrigin
from ledger.files.change_file import event_files
from ledger.model.errors import DamagedLogError
from ledger.model.file_change import FileChange
from ledger.model.iceberg.snapshot import IcebergSnapshot
from ledger.table import Table
from projections.iceberg.engines import EngineManifests, source_types
from projections.iceberg.importing.schemas import source_schema
from projections.iceberg.manifests.entry import ManifestEntry, entry_of
from projections.iceberg.manifests.facts import TableFacts
from projections.iceberg.manifests.file import ManifestFile, wherever
from projections.iceberg.manifests.writing import Changes, Listed, Manifests
from projections.iceberg.metadata.schema_json import schema_to_json
from projections.iceberg.names import Names
from projections.iceberg.position import IcebergPosition
from projections.iceberg.snapshots.adders import Adders
from projections.manifest_files.container import read_container
from projections.outputs import Outputs

_DELETES = 1


@define
class PromotedManifests:
    """The manifests of a table's own snapshots, one after the other.

    Attributes:
        table: The table.
        manifests: Those of the newest snapshot.
        adders: Which snapshot first added a file.
        target: The state that the run goes to.
        listed: What the lists of this run's snapshots name, by snapshot.
        gone: The ledger's own snapshots that expired in this run.
    """

    table: Table
    manifests: Manifests
    adders: Adders
    target: TableState
    listed: dict[int, tuple[ManifestFile, ...]] = Factory(dict)
    gone: list[int] = Factory(list)

    @classmethod
    def at(
        cls, table: Table, outputs: Outputs, start: IcebergPosition, target: TableState
    ) -> PromotedManifests:
        """Return those of a position."""
        names = Names(target.table_id)
        manifests = Manifests(
            names,
            outputs,
            start.manifests,
            start.next_row_id,
            start.list_check,
            read_engines=table.read_file,
        )
        return cls(table, manifests, Adders(table, start.version), target)

    def learn(self, transaction: Transaction[TableEvent], state: TableState) -> None:
        """Go on with a transaction's snapshots.

        Args:
            transaction: It.
            state: The table right after it.

        Raises:
            DamagedLogError: A manifest that is needed is gone or damaged.
            NotFoundError: One of an engine is gone.
        """
        born = state.imported_from(IcebergOrigin)
        # A snapshot beside a change of owner lists what engines' manifests listed before it.
        is_first = any(isinstance(each, TablePromoted | OwnerSet) for each in transaction.events)
        for event in transaction.events:
            if isinstance(event, SnapshotsRemoved):
                own = filter(born.lists_files, event.snapshot_ids)
                self.gone.extend(own)
            elif isinstance(event, SnapshotEvent):
                snapshot = born.snapshots[event.snapshot_id]
                facts = facts_of(self.table, state, born, snapshot)
                given = snapshot.first_row_id
                self.manifests.next_row_id = given or 0
                found = self._next(event, is_first=is_first, at=(state, born), facts=facts)
                self._keep(found, snapshot, facts)

    def garbage(self) -> tuple[str, ...]:
        """Return the lists of snapshots that expired, and the manifests that no other names."""
        if not self.gone:
            return ()
        born = self.target.imported_from(IcebergOrigin)
        own = filter(born.lists_files, born.snapshots)
        kept = {path for each in own for path in self._named(each)}
        dropped = {path for each in self.gone for path in self._named(each)}
        lists = map(self.manifests.names.manifest_list, self.gone)
        return (*lists, *sorted(dropped - kept))

    def _named(self, snapshot_id: int) -> Iterator[str]:
        """Yield the manifests in the ledger's place that a snapshot's list names."""
        path = self.manifests.names.manifest_list(snapshot_id)
        body = self.manifests.outputs.read(path)
        place = f"{self.table.location}/"
        for each in read_container(body, path) if body is not None else ():
            if str(each["manifest_path"]).startswith(place):
                yield str(each["manifest_path"]).removeprefix(place)

    def _next(
        self,
        event: SnapshotEvent,
        *,
        is_first: bool,
        at: tuple[TableState, IcebergOrigin],
        facts: TableFacts,
    ) -> Listed:
        state, born = at
        log = self.table.log
        kept = event_files(log.store, log.layout, event)
        files = tuple(log.personal.columns.rendered(kept))
        if is_first:
            self.adders.learn([each.path for each in files], event.snapshot_id)
            parent = born.snapshots[event.snapshot_id].parent_snapshot_id
            engines = EngineManifests(state, born, self.table.read_file)
            there = engines.listed(born.snapshots[parent]) if parent is not None else ()
            return self.manifests.stand(there, facts)
        if isinstance(event, RolledBack):
            engines = EngineManifests(state, born, self.table.read_file)
            return self.manifests.stand(self._of_target(event, engines), facts)
        return self.manifests.snapshot(self._changes(event.snapshot_id, files, facts), facts)

    def _of_target(self, event: RolledBack, engines: EngineManifests) -> Iterable[ManifestFile]:
        target = event.target_snapshot_id
        if not engines.born.lists_files(target):
            return engines.listed(engines.born.snapshots[target])
        found = self.listed.get(target)
        if found is None:
            path = self.manifests.names.manifest_list(target)
            body = self.manifests.outputs.read(path)
            if body is None:
                raise DamagedLogError(f"{path} is not the manifest list that was projected", path)
            found = tuple(engines.said(body, path))
        # Nobody can tell from a list how its manifests were formed.
        return (wherever(each, place) for place, each in enumerate(found) if each.live_files)

    def _changes(
        self, snapshot_id: int, files: tuple[FileChange, ...], facts: TableFacts
    ) -> Changes:
        gone = [each for each in files if each.kind == "DELETE"]
        # What only a rollback brought, an engine's manifest holds, and that may hold any.
        adders = dict.fromkeys((each.path for each in gone), snapshot_id)
        adders |= self.adders.of_those_added(list(adders))
        removed = {
            facts.data_uri(each.path): (
                adders[each.path],
                (each.spec_id, 0 if each.content == "data" else _DELETES),
            )
            for each in gone
        }
        come = [each for each in files if each.kind == "ADD"]
        self.adders.learn([each.path for each in come], snapshot_id)
        return Changes(snapshot_id, tuple(_entries(snapshot_id, come, facts)), removed)

    def _keep(self, found: Listed, snapshot: IcebergSnapshot, facts: TableFacts) -> None:
        self.listed[snapshot.snapshot_id] = found.manifests
        if self.target.reachable(snapshot.snapshot_id):
            parent = snapshot.parent_snapshot_id
            self.manifests.write(found, snapshot.snapshot_id, facts, parent or 0)


def _entries(
    snapshot_id: int, come: Iterable[FileChange], facts: TableFacts
) -> Iterator[ManifestEntry]:
    for each in come:
        yield entry_of(
            each,
            facts.struct(each.spec_id),
            uri_of=facts.data_uri,
            origin=facts.origin(each, snapshot_id),
        )


def facts_of(
    table: Table, state: TableState, born: IcebergOrigin, snapshot: IcebergSnapshot
) -> TableFacts:
    """Return what the manifests of one of the ledger's own snapshots say of the table.

    Args:
        table: The table.
        state: What it is with the snapshot.
        born: What it has of Iceberg.
        snapshot: It.
    """
    schema = source_schema(born.schemas[born.schema_id], born.format_version)
    return TableFacts(
        location=table.location,
        data_location=table.data_location,
        format_version=born.format_version,
        first_sequenced=1 if snapshot.sequence_number else 0,
        schema=msgspec.json.encode(schema_to_json(schema)),
        specs={each.spec_id: each for each in state.specs},
        types=source_types(state, born),
        before_sequence=snapshot.snapshot_id - snapshot.sequence_number,
    )
