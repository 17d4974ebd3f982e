"""Which snapshot first added a file: remembered within a run, looked up in the log before it.

A path stands for one content for ever, so that a file which a rollback brings back is the one that
came first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ledger.events.snapshot_events import SnapshotCommitted
from ledger.files.change_file import event_files
from ledger.files.live import file_key
from ledger.log.layout import CHECKPOINT_INTERVAL
from ledger.model.errors import DamagedLogError
from ledger.table import Table


class Adders:
    """The snapshots that first added a table's files.

    Args:
        table: The table.
        start: The version that the run begins after.
    """

    def __init__(self, table: Table, start: int) -> None:
        self._table = table
        self._start = start
        self._known: dict[str, int] = {}
        self._gone: dict[str, int] = {}

    def learn(self, paths: Iterable[str], snapshot_id: int) -> None:
        """Remember the files that a snapshot of this run adds for the first time."""
        self._known.update(dict.fromkeys(paths, snapshot_id))

    def of(self, paths: Collection[str]) -> dict[str, int]:
        """Return the snapshots that first added files, by path.

        Reads the commits that named the files, never the whole table.

        Raises:
            DamagedLogError: Nothing in the log ever added one.
        """
        found = self.of_those_added(paths)
        for path in paths:
            if path not in found:
                key = self._table.log.layout.root
                raise DamagedLogError(f"{key}: no commit ever added file {path}", key)
        return found

    def of_those_added(self, paths: Collection[str]) -> dict[str, int]:
        """Return the same of those files that a snapshot of the ledger's ever added."""
        missing = [path for path in paths if path not in self._known]
        self._known.update(self._in_log(missing) if missing else {})
        return {path: self._known[path] for path in paths if path in self._known}

    def left(self, paths: Iterable[str]) -> dict[str, int]:
        """Return the snapshots that took away files which are not live, by path."""
        wanted = dict.fromkeys(paths)
        known = {path: self._gone[path] for path in wanted if path in self._gone}
        return known | self._left_before([path for path in wanted if path not in known])

    def leave(self, paths: Iterable[str], snapshot_id: int) -> None:
        """Note that a snapshot takes files away."""
        for path in paths:
            self._gone.pop(path, None)
            self._gone[path] = snapshot_id

    def come_back(self, paths: Iterable[str]) -> None:
        """Note that files are live again."""
        for path in paths:
            self._gone.pop(path, None)

    def forget(self, oldest: int) -> list[str]:
        """Forget the files that no snapshot from `oldest` on holds; return their paths."""
        # In the order in which they went, so that the rest need not be looked at.
        paths: list[str] = []
        for path, snapshot_id in self._gone.items():
            if snapshot_id > oldest:
                break
            paths.append(path)
        for path in paths:
            del self._gone[path]
            self._known.pop(path, None)
        return paths

    def _left_before(self, paths: Collection[str]) -> dict[str, int]:
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

    def _in_log(self, paths: Collection[str]) -> dict[str, int]:
        log, boundary = self._table.log, self._boundary
        found = self._added(set(paths), boundary + 1 if boundary else 0, self._start)
        for path in sorted(set(paths) - found.keys()):
            for version in log.lookup.last_named(file_key(path), boundary):
                # The index goes by hashes: another file may have the same one.
                if here := self._added({path}, version, version):
                    found |= here
                    break
        return found

    def _added(self, wanted: Collection[str], first: int, last: int) -> dict[str, int]:
        """Return the snapshot that added each of some files, where commits hold it."""
        found: dict[str, int] = {}
        store, layout = self._table.log.store, self._table.log.layout
        for read in self._table.log.commits(first, last) if first <= last else ():
            for transaction in read.commit.transactions:
                for event in transaction.events:
                    # A rollback brings back what another snapshot added.
                    if isinstance(event, SnapshotCommitted):
                        for each in event_files(store, layout, event):
                            if each.kind == "ADD" and each.path in wanted:
                                found[each.path] = event.snapshot_id
        return found

    @property
    def _boundary(self) -> int:
        """The last version of the run's past that the key indexes know of."""
        return max(0, self._start - self._start % CHECKPOINT_INTERVAL)
