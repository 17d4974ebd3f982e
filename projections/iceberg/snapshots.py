"""Snapshots of main and branches as manifests and manifest lists; expired ones as garbage.

A path has the same content for ever, so a file that a rollback restores is the one that was first
added.

A branch continues from the manifests of the snapshot of main at which it starts, and shares with
main the state of the whole table: row ids, and the snapshots that first added files.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial

from attrs import Factory, define, evolve, field
from msgspec import UnsetType

from ledger.events import TableEvent
from ledger.events.imported import SnapshotRefSet
from ledger.events.snapshots import BranchCommitted, RolledBack, SnapshotCommitted, SnapshotEvent
from ledger.files.change_lists import event_files
from ledger.files.live import file_key
from ledger.log.layout import CHECKPOINT_INTERVAL
from ledger.model import iceberg_objects as iceberg
from ledger.model.errors import DamagedLogError, UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.snapshot import Branch, Snapshot, branch_number
from ledger.state.iceberg_summary import FileCounts, FileTotals
from ledger.state.snapshots import snapshot_of
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.iceberg.manifest_entry import (
    DELETED,
    FileOrigin,
    ManifestEntry,
    TableFacts,
    entry_of,
    manifest_content,
    placeholder_change,
    replace_erased_partitions,
)
from projections.iceberg.manifest_writing import (
    CurrentManifests,
    ManifestListContent,
    SnapshotFileChanges,
)
from projections.iceberg.position import FOLDER, BranchPosition, Names
from projections.iceberg.table_facts import TableFactsFold
from projections.manifest_files.container import read_container
from projections.outputs import Outputs


class FileAdders:
    """Lookup of the snapshots that first added a table's files.

    Args:
        table: The table.
        start: The last version before the run.
    """

    def __init__(self, table: TableHandle, start: int) -> None:
        self._table = table
        self._start = start
        self._known: dict[str, int] = {}
        self._gone: dict[str, int] = {}

    def learn(self, paths: Iterable[str], snapshot_id: int) -> None:
        """Add the files that a snapshot of this run adds for the first time."""
        self._known.update(dict.fromkeys(paths, snapshot_id))

    def of(self, paths: Collection[str]) -> dict[str, int]:
        """Return the snapshots that first added files, by path.

        Reads only the commits that name the files.

        Raises:
            DamagedLogError: No commit ever added one of the files.
        """
        found = self.of_added_by_ledger(paths)
        for path in paths:
            if path not in found:
                key = self._table.log.layout.root
                raise DamagedLogError(f"{key}: no commit ever added file {path}", key)
        return found

    def of_added_by_ledger(self, paths: Collection[str]) -> dict[str, int]:
        """Return the same, without files that no snapshot of the ledger ever added."""
        missing = [path for path in paths if path not in self._known]
        self._known.update(self._adders_in_log(missing) if missing else {})
        return {path: self._known[path] for path in paths if path in self._known}

    def left(self, paths: Iterable[str]) -> dict[str, int]:
        """Return the snapshots that removed files which are not live, by path."""
        wanted = dict.fromkeys(paths)
        known = {path: self._gone[path] for path in wanted if path in self._gone}
        return known | self._removers_before_run([path for path in wanted if path not in known])

    def record_removal(self, paths: Iterable[str], snapshot_id: int) -> None:
        """Record that a snapshot removes files."""
        for path in paths:
            self._gone.pop(path, None)
            self._gone[path] = snapshot_id

    def record_restoration(self, paths: Iterable[str]) -> None:
        """Record that files are live again."""
        for path in paths:
            self._gone.pop(path, None)

    def forget(self, oldest: int) -> list[str]:
        """Drop the files that no snapshot from `oldest` on holds; return their paths."""
        # They are in the order of removal, so the rest can be skipped.
        paths: list[str] = []
        for path, snapshot_id in self._gone.items():
            if snapshot_id > oldest:
                break
            paths.append(path)
        for path in paths:
            del self._gone[path]
            self._known.pop(path, None)
        return paths

    def _removers_before_run(self, paths: Collection[str]) -> dict[str, int]:
        log, live, boundary = self._table.log, self._table.live, self._boundary
        late = live.changes(boundary + 1 if boundary else 0, self._start) if paths else ()
        found = {e.change.path: e.snapshot_id for e in late if e.change.path in paths}
        for path in set(paths) - found.keys():
            for version in log.lookup.last_named(file_key(path), boundary):
                named = (e for e in live.changes(version, version) if e.change.path == path)
                if here := [each.snapshot_id for each in named]:
                    found[path] = here[-1]
                    break
        return found

    def _adders_in_log(self, paths: Collection[str]) -> dict[str, int]:
        log, boundary = self._table.log, self._boundary
        found = self._adders_in_range(set(paths), boundary + 1 if boundary else 0, self._start)
        for path in sorted(set(paths) - found.keys()):
            for version in log.lookup.last_named(file_key(path), boundary):
                # The index has hashes: another file may have the same one.
                if here := self._adders_in_range({path}, version, version):
                    found |= here
                    break
        return found

    def _adders_in_range(self, wanted: Collection[str], first: int, last: int) -> dict[str, int]:
        """Return the snapshot that added each of some files, in a range of commits."""
        found: dict[str, int] = {}
        store, layout = self._table.log.store, self._table.log.layout
        for read in self._table.log.commits(first, last) if first <= last else ():
            for transaction in read.commit.transactions:
                for event in transaction.events:
                    # A rollback restores files that another snapshot added.
                    if isinstance(event, SnapshotCommitted):
                        for each in event_files(store, layout, event):
                            if each.kind == "ADD" and each.path in wanted:
                                found[each.path] = event.snapshot_id
        return found

    @property
    def _boundary(self) -> int:
        """The last version before the run that the key indexes cover."""
        return max(0, self._start - self._start % CHECKPOINT_INTERVAL)


def _is_never_readable(_snapshot_id: int) -> bool:
    return False


@define
class MainSnapshots:
    """The snapshots of main, applied in order.

    Attributes:
        table: The table.
        manifests: The manifests of the newest snapshot.
        adders: Lookup of the snapshot that first added a file.
        totals: The totals of the live files.
        is_readable: Predicate: whether a snapshot exists and is not expired, at the current commit.
        unsaid: Live files that Iceberg cannot express, by path, with the error. Only expired
            snapshots may have some, so that a table can get rid of them.
    """

    table: TableHandle
    manifests: CurrentManifests
    adders: FileAdders
    totals: FileTotals
    is_readable: Callable[[int], bool] = _is_never_readable
    unsaid: dict[str, UnsupportedError] = Factory(dict)

    def refuse_inexpressible_files(self) -> None:
        """Reject a readable snapshot if Iceberg cannot express one of its files.

        Raises:
            UnsupportedError: Iceberg cannot express a file.
        """
        for problem in self.unsaid.values():
            raise problem

    def add(
        self, event: SnapshotEvent, time_millis: int, fold: TableFactsFold
    ) -> ManifestListContent:
        """Apply the next snapshot; return the content of its manifest list.

        Args:
            event: The snapshot's event.
            time_millis: Its effective time, Unix milliseconds.
            fold: The table's facts; the snapshot is added to its trail.

        Raises:
            UnsupportedError: Iceberg has no such snapshot.
            DamagedLogError: A manifest of an earlier run is damaged or missing.
        """
        snapshot = snapshot_of(event, time_millis)
        log = self.table.log
        kept = event_files(log.store, log.layout, event)
        files = tuple(replace_erased_partitions(log.personal.columns.without_personal_bounds(kept)))
        self._refuse_engine_manifests(snapshot)
        listed = self.manifests.snapshot(self._snapshot_changes(event, files, fold), fold.facts)
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

    def _refuse_engine_manifests(self, snapshot: Snapshot) -> None:
        if snapshot.base_manifest_list is not None:
            raise UnsupportedError(
                f"snapshot {snapshot.id} of {self.table.identifier} was written by an engine with "
                "its own Paimon manifests, which lack what Iceberg needs: let the engine "
                "commit its files to the ledger instead, and leave format iceberg with "
                "ledger.formats=paimon until then"
            )

    def forget(self, oldest: int, facts: TableFacts) -> None:
        """Drop the entries that only expired snapshots need."""
        self.manifests.forget(facts.data_uri(each) for each in self.adders.forget(oldest))

    def _snapshot_changes(
        self,
        event: SnapshotEvent,
        files: Sequence[FileChange],
        fold: TableFactsFold,
    ) -> SnapshotFileChanges:
        facts, snapshot_id = fold.facts, event.snapshot_id
        gone = [each for each in files if each.kind == "DELETE"]
        if isinstance(event, RolledBack):
            # All at once, since each lookup reads the log's tail.
            self.adders.of([each.path for each in files])
        adders = self.adders.of([each.path for each in gone])
        removed = {
            facts.data_uri(each.path): (
                adders[each.path],
                (each.spec_id, manifest_content(each)),
            )
            for each in gone
        }
        self.adders.record_removal(adders, snapshot_id)
        for each in gone:
            self.unsaid.pop(each.path, None)
        come = [each for each in files if each.kind == "ADD"]
        origins = self._added_file_origins(event, come, fold)
        return SnapshotFileChanges(
            snapshot_id, tuple(self._added_file_entries(snapshot_id, origins, come, fold)), removed
        )

    def _added_file_origins(
        self, event: SnapshotEvent, come: Sequence[FileChange], fold: TableFactsFold
    ) -> dict[str, FileOrigin]:
        """Return the origins of added files: this snapshot, or an earlier one if restored."""
        facts, paths = fold.facts, [each.path for each in come]
        if isinstance(event, SnapshotCommitted):
            self.adders.learn(paths, event.snapshot_id)
            return {each.path: facts.origin(each, event.snapshot_id) for each in come}
        row_ids = self._restored_row_ids(event, [e.path for e in come if e.content == "data"], fold)
        self.adders.record_restoration(paths)
        return {
            path: FileOrigin(
                adder,
                facts.sequence_number(adder),
                is_back=True,
                first_row_id=row_ids.get(facts.data_uri(path)),
            )
            for path, adder in self.adders.of(paths).items()
        }

    def _restored_row_ids(
        self, event: RolledBack, paths: Sequence[str], fold: TableFactsFold
    ) -> dict[str, int]:
        """Return the first row ids of restored files that have one, by URI.

        They are in the manifests of the rollback's target; or, if rows had no ids yet, in those
        of the snapshot that removed the file, as long as that can be read.
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

    def _added_file_entries(
        self,
        snapshot_id: int,
        origins: Mapping[str, FileOrigin],
        come: Sequence[FileChange],
        fold: TableFactsFold,
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
                self.unsaid[each.path] = self.primary_key_error(snapshot_id)
            yield entry(placeholder_change(each, struct))

    def primary_key_error(self, snapshot_id: int) -> UnsupportedError:
        """Return the error for a snapshot with files in a table with a primary key."""
        return UnsupportedError(
            f"snapshot {snapshot_id} of {self.table.identifier} lists files of a table with a "
            "primary key, whose newest rows only Paimon's merge finds: drop the primary key before "
            "adding files, or leave format iceberg with ledger.formats=paimon"
        )


@define
class ProjectionGarbage:
    """Files that a run leaves unreferenced.

    A manifest is named by the lists of adjacent snapshots. So one of an expired snapshot is
    still needed if the oldest remaining snapshot names it, or one that a tag or branch keeps; no
    other list has to be read.

    Attributes:
        names: The names of the table's files.
        outputs: The storage of the files.
        before: The table's state where the run begins; None before its first commit.
        target: The table's state where it ends.
        begins_empty: Whether no file existed when the run began.
    """

    names: Names
    outputs: Outputs
    before: TableState | None
    target: TableState
    begins_empty: bool
    _listed: dict[int, list[str]] = Factory(dict)
    _of_branches: set[int] = Factory(set)
    _bases: set[int] = Factory(set)

    def learn(self, snapshot_id: int, manifests: list[str]) -> None:
        """Record the manifests in the list of a snapshot of this run, even if it is not written."""
        if snapshot_id <= self.target.earliest_snapshot_id:
            self._listed[snapshot_id] = manifests

    def learn_branch(self, snapshot_id: int, base_id: int, manifests: list[str]) -> None:
        """Record the list of a branch's snapshot, and the snapshot of main at which it starts.

        Manifests of the latter are named by the branch's lists as well.
        """
        self._listed[snapshot_id] = manifests
        self._of_branches.add(snapshot_id)
        self._bases.add(base_id)

    def paths(self) -> tuple[str, ...]:
        """Return the files to delete: manifests before the lists that name them.

        Includes snapshots that were added and expired within the run, since a run that was killed
        may have written them.
        """
        gone = self._gone()
        if not gone:
            return ()
        manifests = {path for each in gone for path in self._manifests_in_list(each)}
        kept = {path for each in self._oldest_kept_ids() for path in self._manifests_in_list(each)}
        lists = [self.names.manifest_list(each) for each in gone]
        return (*sorted(manifests - kept), *lists)

    def _gone(self) -> list[int]:
        if self.begins_empty:
            return []
        first = self.before.earliest_snapshot_id if self.before else 1
        held = self.before.held_snapshot_ids if self.before else ()
        gone = {*range(first, self.target.earliest_snapshot_id), *held, *self._of_branches}
        for each in self.before.branches.values() if self.before else ():
            gone.update(each.snapshot_ids)
        return sorted(each for each in gone if not self.target.reachable(each))

    def _oldest_kept_ids(self) -> set[int]:
        earliest = self.target.earliest_snapshot_id
        held = self.target.held_snapshot_ids
        oldest = {earliest, *(each for each in held if each < earliest)}
        before = self.before.branches.values() if self.before else ()
        begun = {*self._bases, *(each.base_snapshot_id for each in before)}
        oldest.update(each for each in begun if self.target.reachable(each))
        for each in self.target.branches.values():
            oldest.update(each.snapshot_ids[:1])
        return oldest

    def _manifests_in_list(self, snapshot_id: int) -> list[str]:
        if snapshot_id in self._listed:
            return self._listed[snapshot_id]
        path = self.names.manifest_list(snapshot_id)
        body = self.outputs.read(path)
        records = () if body is None else read_container(body, path)
        return [f"{FOLDER}/{each['manifest_path'].rpartition('/')[2]}" for each in records]


@define
class BranchRunState:
    """State of a branch during a run.

    Attributes:
        manifests: The manifests of its newest snapshot.
        totals: The totals of its live files.
        adders: The branch's own snapshot that added each file, by path; None: not looked up yet.
    """

    manifests: CurrentManifests
    totals: FileTotals
    adders: dict[str, int] | None = None


@define
class BranchRunStates:
    """The branches of a table, during a run.

    Attributes:
        table: The table.
        main: The snapshots of main.
        before: The state where the run begins; None before its first commit.
        rebuilt: Function that restores the manifests of a snapshot of main from before the run.
        wanted: The snapshots of main at which branches start, in this run.
        lines: The branches by number.
    """

    table: TableHandle
    main: MainSnapshots
    before: TableState | None
    rebuilt: Callable[[int], BranchRunState]
    wanted: Collection[int] = ()
    lines: dict[int, BranchRunState] = Factory(dict)
    _bases: dict[int, BranchRunState] = field(factory=dict, init=False)

    def begin(self, start: Iterable[BranchPosition], target: TableState) -> None:
        """Load the branches of a position, and find the snapshots at which branches will start."""
        for each in start:
            manifests = evolve(self.main.manifests.fork(), current=each.manifests)
            self.lines[each.number] = BranchRunState(manifests, each.totals)
        if target.last_branch_number:
            first = 0 if self.before is None else self.before.version + 1
            self.wanted = {*self.wanted, *self._ref_snapshot_ids(first, target.version)}
        if self.before is not None:
            self._keep_branch_base(self.before.last_snapshot_id)

    def _ref_snapshot_ids(self, first: int, last: int) -> Iterator[int]:
        for read in self.table.log.commits(first, last) if first <= last else ():
            for transaction in read.commit.transactions:
                for event in transaction.events:
                    if isinstance(event, SnapshotRefSet):
                        yield event.ref.snapshot_id

    def _keep_branch_base(self, snapshot_id: int) -> None:
        if snapshot_id in self.wanted:
            self._bases[snapshot_id] = self._fork_main()

    def _fork_main(self) -> BranchRunState:
        return BranchRunState(self.main.manifests.fork(), self.main.totals)

    def base(self, snapshot_id: int) -> BranchRunState:
        """Return a branch's state at its start, from a snapshot of main."""
        found = self._bases.get(snapshot_id)
        if found is None:
            found = self._bases[snapshot_id] = self.rebuilt(snapshot_id)
        return BranchRunState(found.manifests.fork(), found.totals, {})

    def learn(self, event: TableEvent, branches: Mapping[str, Branch]) -> None:
        """Apply the next event, unless it is a branch's snapshot.

        Args:
            event: The event.
            branches: The branches after its transaction.
        """
        if isinstance(event, SnapshotEvent):
            self._keep_branch_base(event.snapshot_id)
        if isinstance(event, SnapshotRefSet) and event.ref_name in branches:
            number = branches[event.ref_name].number
            self.lines[number] = self.base(event.ref.snapshot_id)
        if isinstance(event, SnapshotCommitted):
            head = event.fast_forward_to
            if not isinstance(head, UnsetType) and head.branch_name in branches:
                line = self._fork_main()
                line.adders = {}
                self.lines[branches[head.branch_name].number] = line

    def positions(self, state: TableState) -> tuple[BranchPosition, ...]:
        """Return the positions of the existing branches."""
        lines = ((e.number, self.lines[e.number]) for e in state.branches.values())
        return tuple(
            BranchPosition(number, line.manifests.current, line.totals)
            for number, line in sorted(lines, key=lambda each: each[0])
        )

    def add(
        self, event: BranchCommitted, time_millis: int, fold: TableFactsFold, *, is_kept: bool
    ) -> ManifestListContent:
        """Apply the next snapshot of a branch; return the content of its manifest list.

        Args:
            event: The snapshot's event.
            time_millis: Its effective time, Unix milliseconds.
            fold: The table's facts; the snapshot is added to its trail.
            is_kept: Whether it is still readable where the run ends.

        Raises:
            UnsupportedError: Iceberg cannot express one of its files.
            DamagedLogError: A manifest of an earlier run is damaged or missing.
        """
        line, facts = self.lines[branch_number(event.snapshot_id)], fold.facts
        snapshot = snapshot_of(event, time_millis)
        log = self.table.log
        kept = event_files(log.store, log.layout, event)
        files = tuple(replace_erased_partitions(log.personal.columns.without_personal_bounds(kept)))
        changes = self._snapshot_changes(event, files, fold, is_kept=is_kept)
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

    def write(
        self, listed: ManifestListContent, event: BranchCommitted, fold: TableFactsFold
    ) -> None:
        """Write a snapshot's list, after the manifests in it that are not written yet."""
        line = self.lines[branch_number(event.snapshot_id)]
        line.manifests.write(listed, event.snapshot_id, fold.facts, parent=event.parent_snapshot_id)

    def _snapshot_changes(
        self,
        event: BranchCommitted,
        files: Sequence[FileChange],
        fold: TableFactsFold,
        *,
        is_kept: bool,
    ) -> SnapshotFileChanges:
        facts, snapshot_id = fold.facts, event.snapshot_id
        gone = [each for each in files if each.kind == "DELETE"]
        adders = self._adders_on_branch(snapshot_id, [each.path for each in gone])
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
        added = self._added_file_entries(snapshot_id, come, fold, is_kept=is_kept)
        return SnapshotFileChanges(snapshot_id, tuple(added), removed)

    def _adders_on_branch(self, snapshot_id: int, paths: Collection[str]) -> dict[str, int]:
        """Return the snapshots that added files to a branch, its own or those of main."""
        line = self.lines[branch_number(snapshot_id)]
        if line.adders is None and paths:
            line.adders = self._own_adders_before_run(snapshot_id)
        own = line.adders or {}
        found = {path: own[path] for path in paths if path in own}
        return found | self.main.adders.of([path for path in paths if path not in found])

    def _own_adders_before_run(self, snapshot_id: int) -> dict[str, int]:
        """Return the branch's own snapshot that added each file, before the run."""
        state = self.before
        branch = None if state is None else state.branch_numbered(branch_number(snapshot_id))
        if state is None or branch is None:
            return {}
        changes = self.table.live.branch_changes(branch, state.version)
        return {e.change.path: e.snapshot_id for e in changes if e.change.kind == "ADD"}

    def _added_file_entries(
        self, snapshot_id: int, come: Sequence[FileChange], fold: TableFactsFold, *, is_kept: bool
    ) -> Iterator[ManifestEntry]:
        facts = fold.facts
        structs = {each.spec_id: facts.struct(each.spec_id) for each in come}
        if come and is_kept and fold.schema is not None and fold.schema.primary_keys:
            raise self.main.primary_key_error(snapshot_id)
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
                yield entry(placeholder_change(each, structs[each.spec_id]))
