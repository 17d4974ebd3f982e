"""Which files are live after a version: through runs, the key index and the log's tail."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from msgspec import DecodeError
from msgspec.structs import replace

from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.events.snapshot_events import RolledBack, SnapshotCommitted
from ledger.evolution.state import TableState
from ledger.evolution.table.changes import snapshot_key
from ledger.files.change_file import event_files
from ledger.files.runs import Net, Placed, Runs
from ledger.locations import FileNames
from ledger.log.layout import CHECKPOINT_INTERVAL
from ledger.log.lookup import interval, tiles
from ledger.log.stream_log import StreamLog
from ledger.model.errors import DamagedLogError, LedgerError
from ledger.model.file_change import FileChange
from ledger.model.tiles import parts
from ledger.observing.notices import warn

_LOGGER = "ledger.files"

_MOST_KEPT = 20_000
"""So many live files are kept in memory, so that who asks again reads what is new alone."""


def file_key(path: str) -> str:
    """Return what the key index remembers of a file."""
    return f"file:{path}"


class LiveFiles:
    """The files of one table.

    For the key index and the runs to be kept, its log has to be told:
    `log.remember(live.keys_of, live.save)`.

    Args:
        log: The table's stream.

    Attributes:
        names: What its files may be called.
    """

    def __init__(self, log: StreamLog[TableState, TableEvent]) -> None:
        self._log = log
        self.names = FileNames(f"{log.store.url}/{log.layout.root.removesuffix('_ledger')}")
        self._runs = Runs(log.store, log.layout)
        # Before version 0 there is nothing.
        self._known: tuple[int, dict[str, Placed]] = (-1, {})

    def keys_of(self, commit: Commit[TableEvent]) -> Iterator[str]:
        """Yield what to remember of a commit: its files and its snapshots' keys.

        Raises:
            DamagedLogError: A list of file changes is missing or damaged.
        """
        for event, files in self.listed(commit):
            if isinstance(event, SnapshotCommitted):
                key = snapshot_key(event)
                if key is not None:
                    yield key
            for change in files:
                yield file_key(change.path)

    def listed(
        self, commit: Commit[TableEvent]
    ) -> Iterator[tuple[SnapshotCommitted | RolledBack, tuple[FileChange, ...]]]:
        """Yield the snapshots of a commit, each with its file changes, wherever they stand.

        Raises:
            DamagedLogError: A list of file changes is missing or damaged.
            UpgradeRequiredError: A newer version wrote one.
        """
        for event in _snapshots(commit):
            yield event, self._files(commit.version, event)

    def changes(self, first: int, last: int) -> Iterator[Placed]:
        """Yield the file changes of the commits `first` to `last`, both included.

        Raises:
            DamagedLogError: A commit or a list of file changes is missing or damaged.
        """
        if first > last:
            return
        for read in self._log.known_commits(first, last):
            yield from self._placed(read.commit)

    def at(self, version: int) -> dict[str, FileChange]:
        """Return the live files after a version, by path, in the order in which they were added.

        Raises:
            DamagedLogError: A commit or a list of file changes is missing or damaged.
        """
        return {path: each.change for path, each in self.placed_at(version).items()}

    def placed_at(self, version: int) -> dict[str, Placed]:
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
            for first, last in reversed(list(tiles(boundary))):
                live.apply(self._interval(first, last))
            live.apply(self.changes(boundary + 1 if boundary else 0, version))
        if version > known and len(live.added) <= _MOST_KEPT:
            self._known = version, dict(live.added)
        return live.added

    def at_state(self, state: TableState) -> dict[str, FileChange]:
        """Return the live files of a state, which may stand inside a commit of many writers.

        Raises:
            DamagedLogError: A commit or a list of file changes is missing or damaged.
        """
        return {path: each.change for path, each in self.placed_at_state(state).items()}

    def placed_at_state(self, state: TableState) -> dict[str, Placed]:
        """Return the live files of a state, each with the commit that added it; see `at_state`.

        Raises:
            DamagedLogError: A commit or a list of file changes is missing or damaged.
        """
        newest = state.last_snapshot_id
        if not self.goes_on_after(state):
            return self.placed_at(state.version)
        live = Net(self.placed_at(state.version - 1).values())
        live.apply(self.snapshot_changes(1, newest, state.version, state.version))
        return live.added

    def snapshot_changes(
        self, first_id: int, last_id: int, first: int, last: int
    ) -> Iterator[Placed]:
        """Yield the file changes of the snapshots `first_id` to `last_id`, both included.

        Args:
            first_id: A snapshot.
            last_id: A snapshot.
            first: The version of the first one's commit.
            last: The version of the last one's commit.

        Raises:
            DamagedLogError: A commit or a list of file changes is missing or damaged.
        """
        for each in self.changes(first, last):
            if first_id <= each.snapshot_id <= last_id:
                yield each

    def goes_on_after(self, state: TableState) -> bool:
        """Whether the commit that a state stands in holds later snapshots."""
        head = self._log.head
        if head is None or head.state.last_snapshot_id == state.last_snapshot_id:
            return False
        commit = self._log.commit_at(state.version)
        return any(each.snapshot_id > state.last_snapshot_id for each in _snapshots(commit))

    def save(self, version: int) -> None:
        """Keep the run that ends at a checkpoint's version; best effort.

        Raises:
            OSError: It could not be kept; that harms nothing.
        """
        newest = next(tiles(version), None)
        if newest is None:
            return
        try:
            net = Net(self.built(*newest))
        except LedgerError as error:
            # The commit has landed; whoever reads the damaged part is told.
            warn(_LOGGER, "file_run_skipped", version=version, error=str(error))
            return
        self._runs.save(*newest, net)

    def lookup(self, paths: Iterable[str], version: int) -> dict[str, FileChange]:
        """Return those of some files that are live after a version, by path.

        Reads the commits that named them last, never the whole table.

        Raises:
            DamagedLogError: A commit or a list of file changes is missing or damaged.
        """
        newest = self.newest(paths, version)
        return {path: found for path, found in newest.items() if found.kind == "ADD"}

    def newest(self, paths: Iterable[str], version: int) -> dict[str, FileChange]:
        """Return the newest change of those of some files that were ever in the table, by path.

        Raises:
            DamagedLogError: A commit or a list of file changes is missing or damaged.
        """
        wanted = dict.fromkeys(paths)
        found = self._newest(wanted, version)
        return {path: found[path] for path in wanted if path in found}

    def difference(self, before: TableState, after: TableState) -> tuple[FileChange, ...]:
        """Return the changes that turn the files live at one state into those at another.

        Either state may be the older. A file live at both stays as it is.

        Returns:
            DELETEs of the files live at the first only, ADDs of those at the second; by path.

        Raises:
            DamagedLogError: A commit or a list of file changes is missing or damaged.
        """
        older, newer = sorted((before, after), key=lambda state: state.last_snapshot_id)
        between = (older.last_snapshot_id + 1, newer.last_snapshot_id)
        net = Net(self.snapshot_changes(*between, older.version, newer.version))
        gone = self._lookup_at(net.deleted.keys() - net.added.keys(), older)
        come = {path: each.change for path, each in net.added.items() if path not in net.deleted}
        removed, added = (gone, come) if older is before else (come, gone)
        both = [*(replace(each, kind="DELETE") for each in removed.values()), *added.values()]
        return tuple(sorted(both, key=lambda each: each.path))

    def _lookup_at(self, paths: Collection[str], state: TableState) -> dict[str, FileChange]:
        """Return those of some files that are live at a state; see `lookup`."""
        here = self.snapshot_changes(1, state.last_snapshot_id, state.version, state.version)
        found = self.newest(paths, state.version - 1) | _among(paths, here)
        return {path: each for path, each in found.items() if each.kind == "ADD"}

    def _newest(self, wanted: Collection[str], version: int) -> dict[str, FileChange]:
        """Return the newest change of each file up to a version."""
        newest: dict[str, FileChange] = {}
        last = version
        head = self._log.head
        if head is not None and version < head.state.version:
            # Of the commits since its last boundary, the log knows only each key's newest.
            boundary = head.state.version - head.state.version % CHECKPOINT_INTERVAL
            last = min(version, boundary)
            newest = _among(wanted, self.changes(last + 1 if last else 0, version))
        read: dict[int, dict[str, FileChange]] = {}
        for path in wanted:
            if path in newest:
                continue
            for candidate in self._log.last_named(file_key(path)):
                if candidate > last:
                    continue
                if candidate not in read:
                    (found,) = self._log.known_commits(candidate, candidate)
                    read[candidate] = _among(wanted, self._placed(found.commit))
                # The index goes by hashes: another file may have the same one.
                if path in read[candidate]:
                    newest[path] = read[candidate][path]
                    break
        return newest

    def _placed(self, commit: Commit[TableEvent]) -> Iterator[Placed]:
        for event in _snapshots(commit):
            for change in self._files(commit.version, event):
                yield Placed(commit.version, event.snapshot_id, change)

    def _files(self, version: int, event: SnapshotCommitted | RolledBack) -> tuple[FileChange, ...]:
        try:
            return event_files(self._log.store, self._log.layout, event)
        except DamagedLogError as error:
            if not isinstance(error.__cause__, DecodeError | RecursionError):
                raise
            key = self._log.layout.commit(version)
            raise DamagedLogError(
                f"{key} holds a list of files that is none: {error.__cause__}", key
            ) from error

    def _interval(self, first: int, last: int) -> Iterable[Placed]:
        found = self._runs.load(first, last)
        return found if found is not None else self.built(first, last)

    def built(self, first: int, last: int) -> Iterator[Placed]:
        """Yield an interval's changes from the runs of the tier below, or from the log."""
        below = list(parts(first // CHECKPOINT_INTERVAL, last // CHECKPOINT_INTERVAL))
        if not below:
            yield from self.changes(first, last)
        for part in below:
            yield from self._interval(*interval(*part))


def _among(wanted: Collection[str], changes: Iterable[Placed]) -> dict[str, FileChange]:
    """Return the newest change of each wanted file."""
    return {each.change.path: each.change for each in changes if each.change.path in wanted}


def _snapshots(commit: Commit[TableEvent]) -> Iterator[SnapshotCommitted | RolledBack]:
    for transaction in commit.transactions:
        for event in transaction.events:
            if isinstance(event, SnapshotCommitted | RolledBack):
                yield event
