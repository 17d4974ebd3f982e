"""Live files at a version, also as Arrow tables, and the targets of position deletes.

A file of position deletes names data files by their absolute URLs. After a table moved, these are
URLs of the old location, which no reader would apply: deleted rows would reappear.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Protocol, get_args

from attrs import evolve, frozen
from msgspec import DecodeError, Struct, UnsetType
from msgspec.structs import replace

from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.events.snapshots import BranchCommitted, ListingEvent, RolledBack, SnapshotEvent
from ledger.files.change_lists import event_files, load_changes_table, to_table
from ledger.files.long_lists import ListedKeys, LongLists
from ledger.files.runs import (
    Net,
    Placed,
    RunStore,
    additions_in_partitions,
    additions_still_live,
    place_changes,
    run_rows_to_table,
)
from ledger.locations import FileNames
from ledger.log.key_index import interval, tiles
from ledger.log.layout import CHECKPOINT_INTERVAL
from ledger.log.stream_log import StreamLog
from ledger.model.errors import DamagedLogError, LedgerError
from ledger.model.file_change import FileChange, PartitionValue
from ledger.model.parquet_limits import open_checked_parquet, python_values, read_bounded_table
from ledger.model.snapshot import Branch, branch_key_prefix, branch_number, parts
from ledger.observing.telemetry import warn
from ledger.state.table import TableState

if TYPE_CHECKING:
    import pyarrow as pa


_LOGGER = "ledger.files"

_LISTING: tuple[type, ...] = get_args(ListingEvent)
_SNAPSHOTS: tuple[type, ...] = get_args(SnapshotEvent)
_BRANCHES: tuple[type, ...] = (BranchCommitted,)

_FILE = "file:"

_MOST_KEPT = 20_000
"""Maximum number of live files cached in memory, so that the next read starts from them."""

_MOST_TABLE_BYTES: Final = 1 << 25
"""Maximum size of the runs in memory that are kept for the next search by partition."""

_MOST_DECODED = 1_000
"""Number of live files up to which all of them become objects, to find those of a partition."""


def file_key(path: str, branch: int = 0) -> str:
    """Return the key of a file in the key index, on main (0) or on a branch by its number."""
    return f"{branch_key_prefix(branch)}{_FILE}{path}"


@frozen
class LoggedFileNames:
    """Files that a table's commits name, looked up in its key index; see `CommitFileIndex`.

    Attributes:
        log: The table's stream.
        names: Normalization of the table's file names.
    """

    log: StreamLog[TableState, TableEvent]
    names: FileNames

    def usual(self, path: str) -> str:
        """See `CommitFileIndex`."""
        return self.names.usual(path)

    def key(self, path: str, line: int) -> str:
        """See `CommitFileIndex`."""
        return file_key(path, line)

    def of(self, commit: Commit[TableEvent]) -> AbstractSet[str] | None:
        """See `CommitFileIndex`.

        Paths are normalized: older clients and engines wrote spellings that are not valid now.

        Raises:
            DamagedLogError: A list of file changes is missing or damaged.
        """
        found = self.log.lookup.keys_of_commit(commit)
        return None if found is None else {self._usual_key(each) for each in found}

    def _usual_key(self, key: str) -> str:
        front, _, path = key.partition(_FILE)
        return f"{front}{_FILE}{self.names.usual(path)}" if path else key


class _SnapshotLine(Struct, frozen=True):
    """Range of snapshots of one line: main's, or a branch's own on its current base.

    Attributes:
        number: The branch's number; 0 for main.
        first: The id of the oldest snapshot.
        last: The id of the newest snapshot; None if only the version limits it.
    """

    number: int = 0
    first: int = 1
    last: int | None = None

    @classmethod
    def of(cls, branch: Branch) -> _SnapshotLine:
        return cls(branch.number, branch.first_snapshot_id, branch.next_id - 1)

    def contains_snapshot(self, snapshot_id: int) -> bool:
        return self.first <= snapshot_id and (self.last is None or snapshot_id <= self.last)


_MAIN = _SnapshotLine()


class LiveFiles:
    """Lookup of the live files of one table, at any version.

    The key index and the runs are maintained only if `StreamLog.remember` was called on the log.

    Args:
        log: The table's stream.

    Attributes:
        names: Normalization of the table's file names.
        lists: The table's long lists of file changes.
    """

    def __init__(self, log: StreamLog[TableState, TableEvent]) -> None:
        self._log = log
        self.lists = LongLists(log.store, log.layout)
        self.names = FileNames(f"{log.store.url}/{log.layout.folder}")
        self._runs = RunStore(log.store, log.layout)
        # The table has no files before version 0.
        self._known: tuple[int, dict[str, Placed]] = (-1, {})
        # Cache of the runs up to the version of a checkpoint.
        self._known_tables: tuple[int, tuple[pa.Table, ...]] = (-1, ())
        # Cache of the branch that was read last: first and newest snapshot, version, files.
        self._known_branch: tuple[int, int, int, dict[str, Placed]] = (-1, -1, -1, {})

    def keys_of(self, commit: Commit[TableEvent]) -> Iterator[str | ListedKeys]:
        """Yield the key-index keys of a commit: its files and its snapshots' keys.

        Those of the files of a long list are one item.

        Raises:
            DamagedLogError: A list of file changes is missing or damaged.
        """
        for event in _listing_events(commit):
            if not isinstance(event, RolledBack) and (key := event.key) is not None:
                yield key
            beginning = file_key("", branch_number(event.snapshot_id))
            if isinstance(event.changes, UnsetType):
                yield from (beginning + each.path for each in self.files_of(commit.version, event))
            else:
                yield ListedKeys(beginning, self.lists.opened(event.changes))

    def listed(
        self, commit: Commit[TableEvent]
    ) -> list[tuple[ListingEvent, tuple[FileChange, ...]]]:
        """Return the snapshots of a commit, each with its file changes.

        Snapshots of branches are included.

        Raises:
            DamagedLogError: A list of file changes is missing or damaged.
            UpgradeRequiredError: A newer version wrote one.
        """
        version = commit.version
        return [(event, self.files_of(version, event)) for event in _listing_events(commit)]

    def changes(self, first: int, last: int) -> Iterator[Placed]:
        """Yield main's file changes of the commits `first` to `last`, both included.

        Raises:
            DamagedLogError: A commit or a list of file changes is missing or damaged.
        """
        return self._changes_on_line(first, last, _MAIN)

    def changes_of(self, commit: Commit[TableEvent]) -> list[FileChange]:
        """Return main's file changes of one commit.

        Raises:
            DamagedLogError: A list of file changes is missing or damaged.
        """
        return [each.change for each in self._placed_commit_changes(commit, _MAIN)]

    def branch_changes(self, branch: Branch, last: int) -> Iterator[Placed]:
        """Yield the file changes of a branch's own snapshots, up to a version and its newest one.

        Raises:
            DamagedLogError: A commit or a list of file changes is missing or damaged.
        """
        return self._changes_on_line(branch.since_version, last, _SnapshotLine.of(branch))

    def _changes_on_line(self, first: int, last: int, line: _SnapshotLine) -> Iterator[Placed]:
        if first > last:
            return
        for read in self._log.commits_via_cache(first, last):
            yield from self._placed_commit_changes(read.commit, line)

    def at(self, version: int) -> dict[str, FileChange]:
        """Return the live files after a version, by path, in the order in which they were added.

        Raises:
            DamagedLogError: A commit or a list of file changes is missing or damaged.
        """
        return {path: each.change for path, each in self.placed_files_at(version).items()}

    def placed_files_at(self, version: int) -> dict[str, Placed]:
        """Return the live files after a version, each with the commit that added it.

        Raises:
            DamagedLogError: A commit or a list of file changes is missing or damaged.
        """
        known, placed = self._known
        live = Net()
        if 0 <= version - known <= CHECKPOINT_INTERVAL:
            live.added = dict(placed)
            live.apply(self.changes(known + 1, version))
        else:
            boundary = version - version % CHECKPOINT_INTERVAL
            tail = [*self.changes(boundary + 1 if boundary else 0, version)]
            live.apply(self._net_changes_to_checkpoint(boundary, Net(tail).deleted))
            live.apply(tail)
        if version > known and len(live.added) <= _MOST_KEPT:
            self._known = version, dict(live.added)
        return live.added

    def live_files_at_state(self, state: TableState) -> dict[str, FileChange]:
        """Return the live files of a state, which may be inside a commit of several transactions.

        Raises:
            DamagedLogError: A commit or a list of file changes is missing or damaged.
        """
        return {path: each.change for path, each in self.placed_files_at_state(state).items()}

    def live_files_of_partitions(
        self, state: TableState, may_be: Callable[[int, tuple[PartitionValue, ...]], bool]
    ) -> list[FileChange]:
        """Return the live files of a state whose spec and partition values pass a check.

        Args:
            state: The state.
            may_be: Called once or more for each spec id and partition values.

        Raises:
            DamagedLogError: A commit or a list of file changes is missing or damaged.
        """
        if state.viewed_branch is not None or state.totals.file_count <= _MOST_DECODED:
            there = self.live_files_at_state(state).values()
            return [each for each in there if may_be(each.spec_id, each.partition)]
        # Only the rows of the wanted files become objects.
        boundary = state.version - state.version % CHECKPOINT_INTERVAL
        tail = self._commit_tables(boundary + 1 if boundary else 0, state.version)
        tables = [*self._tables_up_to(boundary), *tail]
        return additions_in_partitions(tables, state.last_snapshot_id, may_be)

    def _tables_up_to(self, boundary: int) -> Sequence[pa.Table]:
        """Return the runs up to a checkpoint's version, oldest first; kept for the next call."""
        known, tables = self._known_tables
        if known != boundary:
            spans = reversed([*tiles(boundary)])
            tables = tuple(table for span in spans for table in self._run_tables(*span))
            if sum(each.nbytes for each in tables) <= _MOST_TABLE_BYTES:
                self._known_tables = boundary, tables
        return tables

    def placed_files_at_state(self, state: TableState) -> dict[str, Placed]:
        """Return the live files of a state, each with the commit that added it.

        Raises:
            DamagedLogError: A commit or a list of file changes is missing or damaged.
        """
        branch = state.viewed_branch
        if branch is not None:
            return self._placed_files_on_branch(branch, state)
        newest = state.last_snapshot_id
        if not self.continues_after(state):
            return self.placed_files_at(state.version)
        live = Net(self.placed_files_at(state.version - 1).values())
        live.apply(self.snapshot_changes(1, newest, state.version, state.version))
        return live.added

    def _placed_files_on_branch(self, branch: Branch, state: TableState) -> dict[str, Placed]:
        first, known, version, placed = self._known_branch
        if first == branch.first_snapshot_id and known <= branch.head_id:
            live = Net(placed.values())
            since = evolve(branch, first_snapshot_id=known + 1, since_version=version)
        else:
            base = self.main_base_of(state)
            live = Net(self.placed_files_at(base.version - 1).values())
            live.apply(self.snapshot_changes(1, base.last_snapshot_id, base.version, base.version))
            since = branch
        if branch.snapshot is not None:
            live.apply(self.branch_changes(since, state.version))
            if len(live.added) <= _MOST_KEPT:
                first, newest = branch.first_snapshot_id, branch.snapshot.id
                self._known_branch = (first, newest, state.version, dict(live.added))
        return live.added

    def main_base_of(self, state: TableState) -> TableState:
        """Return the state of main that a branch is based on; only its files are meaningful.

        Args:
            state: A state seen on the branch.
        """
        branch = state.viewed_branch
        if branch is None or state.snapshot is None:
            return state
        base = evolve(state.snapshot, id=branch.base_snapshot_id)
        return evolve(state, on_branch=None, version=branch.base_version, snapshot=base)

    def snapshot_changes(
        self, first_id: int, last_id: int, first: int, last: int
    ) -> Iterator[Placed]:
        """Yield the file changes of the snapshots `first_id` to `last_id`, both included.

        Args:
            first_id: The first snapshot's id.
            last_id: The last snapshot's id.
            first: The version of the first one's commit.
            last: The version of the last one's commit.

        Raises:
            DamagedLogError: A commit or a list of file changes is missing or damaged.
        """
        for each in self.changes(first, last):
            if first_id <= each.snapshot_id <= last_id:
                yield each

    def continues_after(self, state: TableState) -> bool:
        """Return True if the commit of a state has snapshots of main after the state."""
        head = self._log.head
        if head is None or head.state.last_snapshot_id == state.last_snapshot_id:
            return False
        commit = self._log.commit_at(state.version)
        return any(
            each.snapshot_id > state.last_snapshot_id for each in _listing_events(commit, _MAIN)
        )

    def save(self, version: int) -> None:
        """Write the run that ends at a checkpoint's version; best effort.

        Raises:
            OSError: The run could not be written; it is only a cache.
        """
        newest = next(tiles(version), None)
        if newest is None:
            return
        try:
            self._runs.save(*newest, [*self._interval_tables(*newest)])
        except (LedgerError, ValueError) as error:
            # The commit is done; a reader of the damaged part gets the error.
            warn(_LOGGER, "file_run_skipped", version=version, error=str(error))

    def lookup_live_files_at(
        self, paths: Iterable[str], state: TableState
    ) -> dict[str, FileChange]:
        """Return the given files that are live at a state, on main or a branch; see `lookup`.

        Raises:
            DamagedLogError: A commit or a list of file changes is missing or damaged.
        """
        newest = self.newest_changes_at(paths, state)
        return {path: found for path, found in newest.items() if found.kind == "ADD"}

    def newest_changes_at(self, paths: Iterable[str], state: TableState) -> dict[str, FileChange]:
        """Return the newest change of each given file up to a state, by path.

        Files that were never in the table are left out.

        Args:
            paths: Paths of files.
            state: The state to search up to, with the branch that it is seen on.

        Raises:
            DamagedLogError: A commit or a list of file changes is missing or damaged.
        """
        branch = state.viewed_branch
        if branch is None:
            return self.newest(paths, state.version)
        wanted = dict.fromkeys(paths)
        found = (
            self._newest_changes_on_line(wanted, state.version, _SnapshotLine.of(branch))
            if branch.snapshot
            else {}
        )
        rest = [path for path in wanted if path not in found]
        if rest:
            base = self.main_base_of(state)
            here = self.snapshot_changes(1, base.last_snapshot_id, base.version, base.version)
            found |= self.newest(rest, base.version - 1) | _newest_change_by_path(rest, here)
        return {path: found[path] for path in wanted if path in found}

    def absence_text(self, paths: Iterable[str], state: TableState) -> str:
        """Return why a file of any of these paths is not live at a state, for a message."""
        if self.newest_changes_at(paths, state):
            return "it was removed before; reload the table and plan again"
        return "it was never in the table; give the path of a live file"

    def lookup(self, paths: Iterable[str], version: int) -> dict[str, FileChange]:
        """Return the given files that are live after a version, by path.

        Reads the commits that named them last, never the whole table.

        Raises:
            DamagedLogError: A commit or a list of file changes is missing or damaged.
        """
        newest = self.newest(paths, version)
        return {path: found for path, found in newest.items() if found.kind == "ADD"}

    def newest(self, paths: Iterable[str], version: int) -> dict[str, FileChange]:
        """Return the newest change of each given file up to a version, by path.

        Files that were never in the table are left out.

        Raises:
            DamagedLogError: A commit or a list of file changes is missing or damaged.
        """
        wanted = dict.fromkeys(paths)
        found = self._newest_changes_on_line(wanted, version)
        return {path: found[path] for path in wanted if path in found}

    def difference(self, before: TableState, after: TableState) -> tuple[FileChange, ...]:
        """Return the changes that turn the files live at one state into those at another.

        Either state may be the older. A file live at both stays as it is.

        Returns:
            DELETEs of the files live at the first only, ADDs of those at the second; by path.

        Raises:
            DamagedLogError: A commit or a list of file changes is missing or damaged.
        """
        if before.on_branch is not None or after.on_branch is not None:
            return self._branch_difference(before, after)
        older, newer = sorted((before, after), key=lambda state: state.last_snapshot_id)
        between = (older.last_snapshot_id + 1, newer.last_snapshot_id)
        net = Net(self.snapshot_changes(*between, older.version, newer.version))
        gone = self._lookup_on_main(net.deleted.keys() - net.added.keys(), older)
        come = {path: each.change for path, each in net.added.items() if path not in net.deleted}
        removed, added = (gone, come) if older is before else (come, gone)
        return _deletes_and_adds(removed, added)

    def difference_to(
        self, before: TableState, after: Iterable[FileChange]
    ) -> tuple[FileChange, ...]:
        """Return the changes that turn the live files of a state into the given ones.

        A file that is live in both keeps its spelling, though an engine has another one.

        Args:
            before: The state.
            after: The wanted live files, such as an engine's.
        """
        usual = self.names.usual
        older = self.live_files_at_state(before).values()
        return _files_difference(
            {usual(each.path): each for each in older}, {usual(each.path): each for each in after}
        )

    def _branch_difference(self, before: TableState, after: TableState) -> tuple[FileChange, ...]:
        branch = after.viewed_branch
        if before.on_branch is None and branch is not None:
            base = self.main_base_of(after)
            if before.last_snapshot_id == base.last_snapshot_id:
                # No snapshot of main is between the states: the branch's own changes are all.
                net = Net(self.branch_changes(branch, after.version))
                gone = self._lookup_on_main(net.deleted.keys() - net.added.keys(), base)
                come = {p: each.change for p, each in net.added.items() if p not in net.deleted}
                return _deletes_and_adds(gone, come)
        return _files_difference(self.live_files_at_state(before), self.live_files_at_state(after))

    def _lookup_on_main(self, paths: Collection[str], state: TableState) -> dict[str, FileChange]:
        """Return the given files that are live at a state of main; see `lookup`."""
        here = self.snapshot_changes(1, state.last_snapshot_id, state.version, state.version)
        found = self.newest(paths, state.version - 1) | _newest_change_by_path(paths, here)
        return {path: each for path, each in found.items() if each.kind == "ADD"}

    def _newest_changes_on_line(
        self, wanted: Collection[str], version: int, line: _SnapshotLine = _MAIN
    ) -> dict[str, FileChange]:
        """Return the newest change of each file up to a version, on a line."""
        newest: dict[str, FileChange] = {}
        last = version
        head = self._log.head
        if head is not None and version < head.state.version:
            # For the commits since its last checkpoint, the log has only the newest per key.
            boundary = head.state.version - head.state.version % CHECKPOINT_INTERVAL
            last = min(version, boundary)
            newest = _newest_change_by_path(
                wanted, self._changes_on_line(last + 1 if last else 0, version, line)
            )
        read: dict[int, dict[str, FileChange]] = {}
        beginning = file_key("", line.number)
        keys = [beginning + path for path in wanted if path not in newest]
        # Most were never in the table; one query excludes all of those.
        for key in self._log.named_among(keys):
            path = key[len(beginning) :]
            for candidate in self._log.last_named(key):
                if candidate > last:
                    continue
                if candidate not in read:
                    (found,) = self._log.commits_via_cache(candidate, candidate)
                    read[candidate] = self._commit_changes_of(wanted, found.commit, line)
                # The index has hashes: another file may have the same one.
                if path in read[candidate]:
                    newest[path] = read[candidate][path]
                    break
        return newest

    def _commit_changes_of(
        self, paths: Collection[str], commit: Commit[TableEvent], line: _SnapshotLine
    ) -> dict[str, FileChange]:
        """Return the newest change of each given file in a commit; long lists are not decoded."""
        newest: dict[str, FileChange] = {}
        for event in _listing_events(commit, line):
            changes = (
                self.files_of(commit.version, event)
                if isinstance(event.changes, UnsetType)
                else self.lists.opened(event.changes).changes_of(paths)
            )
            newest |= {each.path: each for each in changes if each.path in paths}
        return newest

    def _placed_commit_changes(
        self, commit: Commit[TableEvent], line: _SnapshotLine
    ) -> Iterator[Placed]:
        for event in _listing_events(commit, line):
            for change in self.files_of(commit.version, event):
                yield Placed(commit.version, event.snapshot_id, change)

    def files_of(self, version: int, event: ListingEvent) -> tuple[FileChange, ...]:
        """Return the file changes of one snapshot event of a commit.

        Args:
            version: The commit's version.
            event: The event.

        Raises:
            DamagedLogError: Its list of file changes is missing or damaged.
            UpgradeRequiredError: A newer version wrote it.
        """
        with self._naming_commit(version):
            return event_files(self._log.store, self._log.layout, event)

    @contextmanager
    def _naming_commit(self, version: int) -> Iterator[None]:
        """Name the commit in errors of a list of files that it holds itself."""
        try:
            yield
        except DamagedLogError as error:
            if not isinstance(error.__cause__, DecodeError | RecursionError):
                raise
            key = self._log.layout.commit(version)
            raise DamagedLogError(
                f"{key} holds an invalid list of files: {error.__cause__}", key
            ) from error

    def _net_changes_to_checkpoint(self, boundary: int, gone: Collection[str]) -> Iterable[Placed]:
        """Return the net file changes up to a checkpoint's version, oldest first.

        If all runs exist, only rows of live files become objects: most files that were ever added
        are removed again.

        Args:
            boundary: The checkpoint's version.
            gone: Paths of files that were removed later; they may be left out.
        """
        parts = [(span, self._runs.tables(*span)) for span in reversed([*tiles(boundary)])]
        tables = [found for _, found in parts if found is not None]
        if len(tables) == len(parts):
            # An invalid run is logged and rebuilt where it is read alone, below.
            with suppress(ValueError):
                return additions_still_live([*chain.from_iterable(tables)], gone)
        return chain.from_iterable(
            self.build_interval_changes(*span)
            if found is None
            else self._load_or_build_interval(*span)
            for span, found in parts
        )

    def _load_or_build_interval(self, first: int, last: int) -> Iterable[Placed]:
        found = self._runs.load(first, last)
        return found if found is not None else self.build_interval_changes(first, last)

    def _interval_tables(self, first: int, last: int) -> Iterator[pa.Table]:
        """Yield an interval's file changes as tables of runs, from where they are read fastest."""
        below = [*parts(first // CHECKPOINT_INTERVAL, last // CHECKPOINT_INTERVAL)]
        if not below:
            yield from self._commit_tables(first, last)
        for part in below:
            yield from self._run_tables(*interval(*part))

    def _run_tables(self, first: int, last: int) -> Iterable[pa.Table]:
        found = self._runs.tables(first, last)
        return self._interval_tables(first, last) if found is None else found

    def _commit_tables(self, first: int, last: int) -> Iterator[pa.Table]:
        short: list[Placed] = []
        for read in self._log.commits_via_cache(first, last):
            version = read.commit.version
            for event in _listing_events(read.commit, _MAIN):
                changes = event.changes
                if isinstance(changes, UnsetType):
                    files = self.files_of(version, event)
                    short += [Placed(version, event.snapshot_id, each) for each in files]
                    continue
                if short:
                    yield run_rows_to_table(short)
                    short = []
                # Its rows do not become objects, which would block other threads.
                listed = load_changes_table(self._log.store, self._log.layout, changes)
                yield place_changes(listed, version, event.snapshot_id)
        if short:
            yield run_rows_to_table(short)

    def build_interval_changes(self, first: int, last: int) -> Iterator[Placed]:
        """Yield an interval's file changes from the runs of the tier below, or from the log."""
        below = list(parts(first // CHECKPOINT_INTERVAL, last // CHECKPOINT_INTERVAL))
        if not below:
            yield from self.changes(first, last)
        for part in below:
            yield from self._load_or_build_interval(*interval(*part))


def _newest_change_by_path(
    wanted: Collection[str], changes: Iterable[Placed]
) -> dict[str, FileChange]:
    """Return the newest change of each wanted file."""
    return {each.change.path: each.change for each in changes if each.change.path in wanted}


def _files_difference(
    older: Mapping[str, FileChange], newer: Mapping[str, FileChange]
) -> tuple[FileChange, ...]:
    gone = {path: each for path, each in older.items() if path not in newer}
    come = {path: each for path, each in newer.items() if path not in older}
    return _deletes_and_adds(gone, come)


def _deletes_and_adds(
    gone: Mapping[str, FileChange], come: Mapping[str, FileChange]
) -> tuple[FileChange, ...]:
    both = [*(replace(each, kind="DELETE") for each in gone.values()), *come.values()]
    return tuple(sorted(both, key=lambda each: each.path))


def _listing_events(
    commit: Commit[TableEvent], line: _SnapshotLine | None = None
) -> list[ListingEvent]:
    """Return the events of a commit that list files, on one line; None for all lines."""
    kinds = _LISTING if line is None else _BRANCHES if line.number else _SNAPSHOTS
    found: list[Any] = [
        event for each in commit.transactions for event in each.events if isinstance(event, kinds)
    ]
    return (
        found
        if line is None
        else [each for each in found if line.contains_snapshot(each.snapshot_id)]
    )


_NAMES: Final = "file_path"
_WHAT: Final = "the file of position deletes"


class TableWithFiles(Protocol):
    """The part of a table's handle that this module needs."""

    live: LiveFiles

    @property
    def location(self) -> str:
        """The URL that prefixes the table's files."""

    @property
    def state(self) -> TableState:
        """The newest state."""


def is_position_delete_file(file: FileChange) -> bool:
    """Return True for a Parquet file of position deletes, which names data files."""
    return file.content == "position-deletes" and file.format.lower() == "parquet"


def read_named_data_files(body: bytes, file: str = _WHAT) -> list[str]:
    """Return the URLs of the data files that a file of position deletes names, sorted.

    Args:
        body: The file.
        file: Its name, for errors.

    Raises:
        TooLargeError: It exceeds the limits for its size.
    """
    found: set[str] = set()
    for batch in open_checked_parquet(body, file, [_NAMES]).batches():
        found.update(python_values(batch.column(0)))
    return sorted(found)


def find_lost_file_names(table: TableWithFiles, names: list[str]) -> list[str]:
    """Return the URLs that no file of a table ever had at its current location."""
    prefix = f"{table.location}/"
    paths = {each: each.removeprefix(prefix) for each in names}
    known = table.live.newest(sorted(paths.values()), table.state.version)
    return [each for each, path in paths.items() if path not in known]


def rename_data_files_in(body: bytes, new: Mapping[str, str]) -> bytes:
    """Return a copy of a file of position deletes with data files renamed.

    Args:
        body: The file.
        new: Old URL to new URL; other URLs stay as they are.

    Raises:
        TooLargeError: The file exceeds the limits for its size.
    """
    import pyarrow as pa
    from pyarrow import parquet

    rows: Any = read_bounded_table(body, _WHAT)
    at = rows.schema.get_field_index(_NAMES)
    field = rows.schema.field(at)
    names = [new.get(each, each) for each in rows.column(at).to_pylist()]
    sink = pa.BufferOutputStream()
    rows = rows.set_column(at, field, pa.array(names, field.type))
    parquet.write_table(rows.replace_schema_metadata(rows.schema.metadata), sink)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def former_location_prefix(table: TableWithFiles, names: list[str]) -> str | None:
    """Return the URL prefix of a table's former location, from lost names; None if unknown.

    The rest of each name is then the path of a file of the table.
    """
    first = names[0]
    for at in (index for index, char in enumerate(first) if char == "/"):
        prefix = first[: at + 1]
        if not all(each.startswith(prefix) for each in names):
            return None
        rest = sorted(each.removeprefix(prefix) for each in names)
        if all(rest) and rest == sorted(table.live.newest(rest, table.state.version)):
            return prefix
    return None


def change_tables(
    log: StreamLog[TableState, TableEvent],
    state: TableState,
    columns: Sequence[str] | None = None,
) -> Iterator[pa.Table]:
    """Yield the net file changes up to a state, as `to_table` makes them, newest first.

    Args:
        log: The table's stream.
        state: The state to read up to.
        columns: The needed columns; a table may have more. None for all.

    Raises:
        DamagedLogError: A commit or a list of file changes is missing or damaged.
    """
    live, version = LiveFiles(log), state.version
    branch = state.viewed_branch
    if branch is not None:
        yield _net_changes_table(live.branch_changes(branch, version))
        yield from change_tables(log, live.main_base_of(state), columns)
        return
    # If its commit has later snapshots, the run that ends with the commit has changes after it.
    whole = version - live.continues_after(state)
    boundary = whole - whole % CHECKPOINT_INTERVAL
    tail = live.snapshot_changes(
        1, state.last_snapshot_id, boundary + 1 if boundary else 0, version
    )
    yield _net_changes_table(tail)
    runs = RunStore(log.store, log.layout)
    for span in tiles(boundary):
        found = runs.tables(*span, columns)
        yield from (
            [_net_changes_table(live.build_interval_changes(*span))] if found is None else found
        )


def live_tables(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """Yield the rows of the live files from tables of net file changes.

    Args:
        tables: Net file changes, newest first.

    Example:
        >>> from ledger.model.file_change import FileChange
        >>> a, b = (FileChange(path=each, record_count=1, file_size_in_bytes=1) for each in "ab")
        >>> gone = FileChange(kind="DELETE", path="a", record_count=1, file_size_in_bytes=1)
        >>> live = live_tables([to_table([gone]), to_table([a, b])])
        >>> [each["path"].to_pylist() for each in live]
        [[], ['b']]
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    # A file is removed before it is added again: the first addition found is the newest.
    gone = pa.array([], pa.string())
    for table in tables:
        is_added = pc.equal(table["kind"], "ADD")
        # Usually all are live, and copying a million rows takes longer than planning a scan.
        added = table if pc.all(is_added).as_py() else table.filter(is_added)
        if len(gone):
            added = added.filter(pc.invert(pc.is_in(added["path"], value_set=gone)))
        removed = table["path"].filter(pc.invert(is_added))
        gone = pa.concat_arrays([gone, *removed.chunks])
        yield added


def _net_changes_table(changes: Iterable[Placed]) -> pa.Table:
    return to_table([each.change for each in Net(changes).rows()])
