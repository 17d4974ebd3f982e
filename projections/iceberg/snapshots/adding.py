"""Snapshots: each event of the log as manifests, a list, and an object in the metadata."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from attrs import Factory, define

from ledger.events.snapshot_events import RolledBack, SnapshotCommitted, SnapshotEvent
from ledger.evolution.table.origin.summary import FileCounts, FileTotals
from ledger.evolution.table.snapshot_fold import snapshot_of
from ledger.files.change_file import event_files
from ledger.model.errors import UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.iceberg import snapshot as iceberg
from ledger.model.snapshot import Snapshot
from ledger.table import Table
from projections.iceberg.manifests.entry import (
    DELETED,
    Ancestry,
    ManifestEntry,
    entry_of,
    manifest_content,
    placeholder,
)
from projections.iceberg.manifests.facts import TableFacts, unlaid
from projections.iceberg.manifests.writing import Changes, Listed, Manifests
from projections.iceberg.snapshots.adders import Adders
from projections.iceberg.table.facts_fold import FactsFold


def _nobody(_snapshot_id: int) -> bool:
    return False


@define
class Snapshots:
    """A table's snapshots, one after the other.

    Attributes:
        table: The table.
        manifests: Those of the newest snapshot.
        adders: Which snapshot first added a file.
        totals: Sums over the live files.
        is_readable: Whether a snapshot is neither expired nor to come, in the commit that is met.
        unsaid: Live files that Iceberg cannot say, by path, and why. Only snapshots that nobody can
            read any more may have some, so that a table can get rid of them.
    """

    table: Table
    manifests: Manifests
    adders: Adders
    totals: FileTotals
    is_readable: Callable[[int], bool] = _nobody
    unsaid: dict[str, UnsupportedError] = Factory(dict)

    def refuse_unsaid(self) -> None:
        """Refuse a snapshot, which can be read, as long as Iceberg cannot say all of its files.

        Raises:
            UnsupportedError: It cannot.
        """
        for problem in self.unsaid.values():
            raise problem

    def add(self, event: SnapshotEvent, time_millis: int, fold: FactsFold) -> Listed:
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
        log = self.table.log
        kept = event_files(log.store, log.layout, event)
        files = tuple(unlaid(log.personal.columns.unbounded(kept)))
        self._refuse_engines(snapshot)
        listed = self.manifests.snapshot(self._changes(event, files, fold), fold.facts)
        counted = FileCounts.of(files)
        self.totals += counted.net
        facts = fold.facts
        fold.add_snapshot(
            iceberg.IcebergSnapshot(
                sequence_number=facts.sequence_number(snapshot.id),
                snapshot_id=snapshot.id,
                parent_snapshot_id=snapshot.id - 1 or None,
                timestamp_ms=snapshot.time_millis,
                summary=counted.summary(
                    snapshot.commit_kind, self.totals.named, snapshot.properties or {}
                ),
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

    def forget(self, oldest: int, facts: TableFacts) -> None:
        """Forget what only snapshots before the oldest that can be read tell of."""
        self.manifests.forget(facts.data_uri(each) for each in self.adders.forget(oldest))

    def _changes(
        self,
        event: SnapshotEvent,
        files: Sequence[FileChange],
        fold: FactsFold,
    ) -> Changes:
        facts, snapshot_id = fold.facts, event.snapshot_id
        gone = [each for each in files if each.kind == "DELETE"]
        if isinstance(event, RolledBack):
            # All at once, as each look into the log reads its tail.
            self.adders.of([each.path for each in files])
        adders = self.adders.of([each.path for each in gone])
        removed = {
            facts.data_uri(each.path): (
                adders[each.path],
                (each.spec_id, manifest_content(each)),
            )
            for each in gone
        }
        self.adders.leave(adders, snapshot_id)
        for each in gone:
            self.unsaid.pop(each.path, None)
        come = [each for each in files if each.kind == "ADD"]
        origins = self._origins(event, come, fold)
        return Changes(snapshot_id, tuple(self._entries(snapshot_id, origins, come, fold)), removed)

    def _origins(
        self, event: SnapshotEvent, come: Sequence[FileChange], fold: FactsFold
    ) -> dict[str, Ancestry]:
        """Return where the files that come are from: this snapshot, unless it brings them back."""
        facts, paths = fold.facts, [each.path for each in come]
        if isinstance(event, SnapshotCommitted):
            self.adders.learn(paths, event.snapshot_id)
            return {each.path: facts.origin(each, event.snapshot_id) for each in come}
        row_ids = self._row_ids(event, [e.path for e in come if e.content == "data"], fold)
        self.adders.come_back(paths)
        return {
            path: Ancestry(
                adder,
                facts.sequence_number(adder),
                is_back=True,
                first_row_id=row_ids.get(facts.data_uri(path)),
            )
            for path, adder in self.adders.of(paths).items()
        }

    def _row_ids(self, event: RolledBack, paths: Sequence[str], fold: FactsFold) -> dict[str, int]:
        """Return the first row ids of files that come back, by URI, where they ever had one.

        They had it where the snapshot had that is rolled back to; or, if rows had no ids yet,
        where the file went, as long as that snapshot can be read.
        """
        facts, has_row_ids = fold.facts, fold.trail.has_row_ids
        if has_row_ids(event.target_snapshot_id):
            return self.manifests.row_ids(
                list(map(facts.data_uri, paths)), event.target_snapshot_id
            )
        if not facts.has_row_ids:
            return {}
        left: dict[int, list[str]] = defaultdict(list)
        for path, snapshot_id in self.adders.left(paths).items():
            left[snapshot_id].append(facts.data_uri(path))
        found: dict[str, int] = {}
        for snapshot_id, uris in sorted(left.items()):
            if self.is_readable(snapshot_id) and has_row_ids(snapshot_id):
                found |= self.manifests.row_ids(uris, snapshot_id, status=DELETED)
        return found

    def _entries(
        self,
        snapshot_id: int,
        origins: Mapping[str, Ancestry],
        come: Sequence[FileChange],
        fold: FactsFold,
    ) -> Iterator[ManifestEntry]:
        structs = {each.spec_id: fold.facts.struct(each.spec_id) for each in come}
        keyed = fold.schema is not None and bool(fold.schema.primary_keys)
        for each in come:
            struct, origin = structs[each.spec_id], origins[each.path]
            entry = partial(entry_of, struct=struct, uri_of=fold.facts.data_uri, origin=origin)
            if not keyed:
                try:
                    yield entry(each)
                    continue
                except UnsupportedError as error:
                    self.unsaid[each.path] = error
            else:
                self.unsaid[each.path] = self.of_a_key(snapshot_id)
            yield entry(placeholder(each, struct))

    def of_a_key(self, snapshot_id: int) -> UnsupportedError:
        """Return the refusal of a snapshot that lists files of a table with a primary key."""
        return UnsupportedError(
            f"snapshot {snapshot_id} of {self.table.identifier} lists files of a table with a "
            "primary key, whose newest rows only Paimon's merge finds: drop the primary key before "
            "adding files, or leave format iceberg with ledger.formats=paimon"
        )
