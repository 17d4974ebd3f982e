"""Which snapshot added a file: remembered within a run, looked up in the log before it."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ledger.files.live import file_key
from ledger.files.runs import Placed
from ledger.log.layout import CHECKPOINT_INTERVAL
from ledger.log.travel import head_state
from ledger.table import Table


class Adders:
    """The snapshots that added a table's files.

    Args:
        table: The table.
        start: The version that the run begins after.
    """

    def __init__(self, table: Table, start: int) -> None:
        self._table = table
        self._start = start
        self._known: dict[str, int] = {}

    def learn(self, paths: Iterable[str], snapshot_id: int) -> None:
        """Remember the files that a snapshot of this run adds."""
        self._known.update(dict.fromkeys(paths, snapshot_id))

    def take(self, paths: Collection[str]) -> dict[str, int]:
        """Return the snapshots that added live files, by path, and forget them: they go.

        Reads the commits that named the files last, never the whole table.
        """
        found = {path: self._known.pop(path) for path in paths if path in self._known}
        missing = [path for path in paths if path not in found]
        return found | self._in_log(missing) if missing else found

    def _in_log(self, paths: Collection[str]) -> dict[str, int]:
        log, wanted = self._table.log, set(paths)
        head = head_state(log).version
        last = self._start
        found: dict[str, int] = {}
        if last < head:
            # Of the commits since its last boundary, the log knows only each key's newest.
            last = min(last, head - head % CHECKPOINT_INTERVAL)
            found = _added(wanted, self._changes(last + 1 if last else 0, self._start))
        for path in wanted - found.keys():
            for version in log.last_named(file_key(path)):
                if version <= last and (here := _added({path}, self._changes(version, version))):
                    found |= here
                    break
        return found

    def _changes(self, first: int, last: int) -> Iterable[Placed]:
        return self._table.live.changes(first, last)


def _added(wanted: Collection[str], changes: Iterable[Placed]) -> dict[str, int]:
    return {
        each.change.path: each.snapshot_id
        for each in changes
        if each.change.kind == "ADD" and each.change.path in wanted
    }
