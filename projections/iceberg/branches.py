"""Snapshots of branches as manifests and manifest lists.

A branch goes on from the manifests of the snapshot of main that it begins with, and shares with
main what counts for the whole table: row ids, and where files were first added.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

from attrs import Factory, define, evolve, field
from msgspec import UnsetType

from ledger.events import TableEvent
from ledger.events.imported import SnapshotRefSet
from ledger.events.snapshots import BranchCommitted, SnapshotCommitted, SnapshotEvent
from ledger.files.change_lists import event_files
from ledger.model import iceberg_objects as iceberg
from ledger.model.errors import UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.snapshot import Branch, branch_number
from ledger.state.iceberg_summary import FileCounts, FileTotals
from ledger.state.snapshots import snapshot_of
from ledger.state.table import TableState
from ledger.table import Table
from projections.iceberg.manifest_entry import (
    ManifestEntry,
    entry_of,
    manifest_content,
    placeholder,
    unlaid,
)
from projections.iceberg.manifest_writing import Changes, Listed, Manifests
from projections.iceberg.position import LinePosition
from projections.iceberg.snapshots import Snapshots
from projections.iceberg.table_facts import FactsFold


@define
class Line:
    """A branch on its way.

    Attributes:
        manifests: Those that its newest snapshot names.
        totals: Sums over its live files.
        adders: Which of its own snapshots added a file; None: not looked up yet.
    """

    manifests: Manifests
    totals: FileTotals
    adders: dict[str, int] | None = None


@define
class Lines:
    """The branches of a table, while its commits go by.

    Attributes:
        table: The table.
        main: Main, while its commits go by.
        before: The state where the run begins; None before its first commit.
        rebuilt: Gives what a snapshot of main held that was made before the run.
        wanted: The snapshots of main that branches begin with, as the run will meet them.
        lines: By the branches' numbers.
    """

    table: Table
    main: Snapshots
    before: TableState | None
    rebuilt: Callable[[int], Line]
    wanted: Collection[int] = ()
    lines: dict[int, Line] = Factory(dict)
    _bases: dict[int, Line] = field(factory=dict, init=False)

    def begin(self, start: Iterable[LinePosition], target: TableState) -> None:
        """Take in what a position has, and look which snapshots branches will begin with."""
        for each in start:
            manifests = evolve(self.main.manifests.fork(), current=each.manifests)
            self.lines[each.number] = Line(manifests, each.totals)
        if target.last_branch_number:
            first = 0 if self.before is None else self.before.version + 1
            self.wanted = {*self.wanted, *self._begun(first, target.version)}
        if self.before is not None:
            self._keep(self.before.last_snapshot_id)

    def _begun(self, first: int, last: int) -> Iterator[int]:
        for read in self.table.log.commits(first, last) if first <= last else ():
            for transaction in read.commit.transactions:
                for event in transaction.events:
                    if isinstance(event, SnapshotRefSet):
                        yield event.ref.snapshot_id

    def _keep(self, snapshot_id: int) -> None:
        if snapshot_id in self.wanted:
            self._bases[snapshot_id] = self._here()

    def _here(self) -> Line:
        return Line(self.main.manifests.fork(), self.main.totals)

    def base(self, snapshot_id: int) -> Line:
        """Return what a snapshot of main held, to go on from."""
        found = self._bases.get(snapshot_id)
        if found is None:
            found = self._bases[snapshot_id] = self.rebuilt(snapshot_id)
        return Line(found.manifests.fork(), found.totals, {})

    def learn(self, event: TableEvent, branches: Mapping[str, Branch]) -> None:
        """Go on to the next event, but for snapshots of branches.

        Args:
            event: The event.
            branches: Those that are there after its transaction.
        """
        if isinstance(event, SnapshotEvent):
            self._keep(event.snapshot_id)
        if isinstance(event, SnapshotRefSet) and event.ref_name in branches:
            number = branches[event.ref_name].number
            self.lines[number] = self.base(event.ref.snapshot_id)
        if isinstance(event, SnapshotCommitted):
            head = event.fast_forward_to
            if not isinstance(head, UnsetType) and head.branch_name in branches:
                line = self._here()
                line.adders = {}
                self.lines[branches[head.branch_name].number] = line

    def positions(self, state: TableState) -> tuple[LinePosition, ...]:
        """Return what a position keeps of the branches that are there."""
        lines = ((e.number, self.lines[e.number]) for e in state.branches.values())
        return tuple(
            LinePosition(number, line.manifests.current, line.totals)
            for number, line in sorted(lines, key=lambda each: each[0])
        )

    def add(
        self, event: BranchCommitted, time_millis: int, fold: FactsFold, *, is_kept: bool
    ) -> Listed:
        """Go on to the next snapshot of a branch; return what its manifest list names.

        Args:
            event: What the log says.
            time_millis: When it took effect.
            fold: What holds of the table; its trail gets the snapshot.
            is_kept: Whether it can still be read where the run ends.

        Raises:
            UnsupportedError: Iceberg cannot say one of its files.
            DamagedLogError: A manifest of an earlier run is damaged or gone.
        """
        line, facts = self.lines[branch_number(event.snapshot_id)], fold.facts
        snapshot = snapshot_of(event, time_millis)
        log = self.table.log
        kept = event_files(log.store, log.layout, event)
        files = tuple(unlaid(log.personal.columns.unbounded(kept)))
        changes = self._changes(event, files, fold, is_kept=is_kept)
        line.manifests.next_row_id = self.main.manifests.next_row_id
        listed = line.manifests.snapshot(changes, facts)
        self.main.manifests.next_row_id = line.manifests.next_row_id
        counted = FileCounts.of(files)
        line.totals += counted.net
        fold.add_snapshot(
            iceberg.IcebergSnapshot(
                sequence_number=facts.sequence_number(snapshot.id),
                snapshot_id=snapshot.id,
                parent_snapshot_id=event.parent_snapshot_id,
                timestamp_ms=snapshot.time_millis,
                summary=counted.summary(
                    snapshot.commit_kind, line.totals.named, snapshot.properties or {}
                ),
                manifest_list=facts.uri(self.main.manifests.names.manifest_list(snapshot.id)),
                first_row_id=listed.first_row_id if facts.has_row_ids else None,
                added_rows=listed.added_rows if facts.has_row_ids else None,
            ),
            event.schema_id,
        )
        return listed

    def write(self, listed: Listed, event: BranchCommitted, fold: FactsFold) -> None:
        """Write a snapshot's list, after the manifests in it that are not written yet."""
        line = self.lines[branch_number(event.snapshot_id)]
        line.manifests.write(listed, event.snapshot_id, fold.facts, parent=event.parent_snapshot_id)

    def _changes(
        self,
        event: BranchCommitted,
        files: Sequence[FileChange],
        fold: FactsFold,
        *,
        is_kept: bool,
    ) -> Changes:
        facts, snapshot_id = fold.facts, event.snapshot_id
        gone = [each for each in files if each.kind == "DELETE"]
        adders = self._adders(snapshot_id, [each.path for each in gone])
        removed = {
            facts.data_uri(each.path): (
                adders[each.path],
                (each.spec_id, manifest_content(each)),
            )
            for each in gone
        }
        come = [each for each in files if each.kind == "ADD"]
        line = self.lines[branch_number(snapshot_id)]
        own = {} if line.adders is None else line.adders
        own.update((each.path, snapshot_id) for each in come)
        added = self._entries(snapshot_id, come, fold, is_kept=is_kept)
        return Changes(snapshot_id, tuple(added), removed)

    def _adders(self, snapshot_id: int, paths: Collection[str]) -> dict[str, int]:
        """Return the snapshots that added files to a branch, its own or those of main."""
        line = self.lines[branch_number(snapshot_id)]
        if line.adders is None and paths:
            line.adders = self._own_adders(snapshot_id)
        own = line.adders or {}
        found = {path: own[path] for path in paths if path in own}
        return found | self.main.adders.of([path for path in paths if path not in found])

    def _own_adders(self, snapshot_id: int) -> dict[str, int]:
        """Return which of a branch's own snapshots before the run added its files."""
        state = self.before
        branch = None if state is None else state.branch_numbered(branch_number(snapshot_id))
        if state is None or branch is None:
            return {}
        changes = self.table.live.branch_changes(branch, state.version)
        return {e.change.path: e.snapshot_id for e in changes if e.change.kind == "ADD"}

    def _entries(
        self, snapshot_id: int, come: Sequence[FileChange], fold: FactsFold, *, is_kept: bool
    ) -> Iterator[ManifestEntry]:
        facts = fold.facts
        structs = {each.spec_id: facts.struct(each.spec_id) for each in come}
        if come and is_kept and fold.schema is not None and fold.schema.primary_keys:
            raise self.main.of_a_key(snapshot_id)
        for each in come:
            origin = facts.origin(each, snapshot_id)
            entry = partial(
                entry_of, struct=structs[each.spec_id], uri_of=facts.data_uri, origin=origin
            )
            try:
                yield entry(each)
            except UnsupportedError:
                if is_kept:
                    raise
                yield entry(placeholder(each, structs[each.spec_id]))
