"""Snapshots: each event of the log as manifests, a list, and an object in the metadata."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import Factory, define

from ledger.events.snapshot_events import RolledBack, SnapshotCommitted
from ledger.evolution.snapshot_fold import snapshot_of
from ledger.files.change_file import event_files
from ledger.model.errors import UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.snapshot import Snapshot
from ledger.table import Table
from projections.iceberg.adders import Adders
from projections.iceberg.facts_fold import FactsFold
from projections.iceberg.manifest_entry import CONTENTS, ManifestEntry, entry_of, placeholder
from projections.iceberg.manifests import Changes, Listed, Manifests
from projections.iceberg.metadata import snapshot as iceberg
from projections.iceberg.partition_struct import PartitionStruct
from projections.iceberg.snapshot_summary import FileTotals, summary
from projections.iceberg.table_facts import TableFacts


@define
class Snapshots:
    """A table's snapshots, one after the other.

    Attributes:
        table: The table.
        manifests: Those of the newest snapshot.
        adders: Which snapshot added a file.
        totals: Sums over the live files.
        unsaid: Live files that Iceberg cannot say, by path, and why. Only snapshots that nobody can
            read any more may have some, so that a table can get rid of them.
    """

    table: Table
    manifests: Manifests
    adders: Adders
    totals: FileTotals
    unsaid: dict[str, UnsupportedError] = Factory(dict)

    def refuse_unsaid(self) -> None:
        """Refuse a snapshot, which can be read, as long as Iceberg cannot say all of its files.

        Raises:
            UnsupportedError: It cannot.
        """
        for problem in self.unsaid.values():
            raise problem

    def add(
        self, event: SnapshotCommitted | RolledBack, time_millis: int, fold: FactsFold
    ) -> Listed:
        """Go on to the next snapshot; return what its manifest list names.

        Args:
            event: What the log says.
            time_millis: When it took effect.
            fold: What holds of the table; its trail gets the snapshot.

        Raises:
            UnsupportedError: Iceberg has no such snapshot.
            DamagedLogError: A manifest of an earlier run is damaged or gone.
        """
        snapshot = snapshot_of(event, time_millis)
        files = event_files(self.table.log.store, self.table.log.layout, event)
        self._refuse_engines(snapshot)
        listed = self.manifests.snapshot(self._changes(snapshot.id, files, fold), fold.facts)
        said = snapshot.properties or {}
        counted, self.totals = summary(snapshot.commit_kind, files, self.totals, said)
        facts = fold.facts
        fold.add_snapshot(
            iceberg.Snapshot(
                sequence_number=facts.sequence_number(snapshot.id),
                snapshot_id=snapshot.id,
                parent_snapshot_id=snapshot.id - 1 or None,
                timestamp_ms=snapshot.time_millis,
                summary=counted,
                manifest_list=facts.uri(self.manifests.names.manifest_list(snapshot.id)),
                first_row_id=listed.first_row_id if facts.has_row_ids else None,
                added_rows=listed.added_rows if facts.has_row_ids else None,
            ),
            event.schema_id,
        )
        return listed

    def _refuse_engines(self, snapshot: Snapshot) -> None:
        if snapshot.base_manifest_list is not None:
            raise UnsupportedError(
                f"snapshot {snapshot.id} of {self.table.identifier} was written by an engine with "
                "Paimon manifests of its own, which do not say what Iceberg needs: let the engine "
                "commit its files to the ledger instead, and leave format iceberg with "
                "ledger.formats=paimon until then"
            )

    def _changes(self, snapshot_id: int, files: Sequence[FileChange], fold: FactsFold) -> Changes:
        facts = fold.facts
        gone = [each for each in files if each.kind == "DELETE"]
        adders = self.adders.take([each.path for each in gone])
        removed = {
            facts.uri(each.path): (
                adders.get(each.path, 0),
                (each.spec_id, CONTENTS.get(each.content, 0)),
            )
            for each in gone
        }
        for each in gone:
            self.unsaid.pop(each.path, None)
        come = [each for each in files if each.kind == "ADD"]
        self.adders.learn((each.path for each in come), snapshot_id)
        return Changes(snapshot_id, tuple(self._entries(snapshot_id, come, fold)), removed)

    def _entries(
        self, snapshot_id: int, come: Sequence[FileChange], fold: FactsFold
    ) -> list[ManifestEntry]:
        facts = fold.facts
        structs = {each.spec_id: facts.struct(each.spec_id) for each in come}
        keyed = fold.schema is not None and bool(fold.schema.primary_keys)
        return [
            self._keyed(each, structs[each.spec_id], snapshot_id, facts)
            if keyed
            else self._entry(each, structs[each.spec_id], snapshot_id, facts)
            for each in come
        ]

    def _keyed(
        self, change: FileChange, struct: PartitionStruct, snapshot_id: int, facts: TableFacts
    ) -> ManifestEntry:
        self.unsaid[change.path] = UnsupportedError(
            f"snapshot {snapshot_id} of {self.table.identifier} lists files of a table with a "
            "primary key, whose newest rows only Paimon's merge finds: drop the primary key before "
            "adding files, or leave format iceberg with ledger.formats=paimon"
        )
        return self._said(placeholder(change, struct), struct, snapshot_id, facts)

    def _entry(
        self, change: FileChange, struct: PartitionStruct, snapshot_id: int, facts: TableFacts
    ) -> ManifestEntry:
        try:
            return self._said(change, struct, snapshot_id, facts)
        except UnsupportedError as error:
            self.unsaid[change.path] = error
            return self._said(placeholder(change, struct), struct, snapshot_id, facts)

    def _said(
        self, change: FileChange, struct: PartitionStruct, snapshot_id: int, facts: TableFacts
    ) -> ManifestEntry:
        return entry_of(
            change,
            struct,
            uri=facts.uri(change.path),
            snapshot_id=snapshot_id,
            sequence_number=facts.sequence_number(snapshot_id),
        )
