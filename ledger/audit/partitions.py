"""Rows, files and bytes of each partition, from a list of files."""

from __future__ import annotations

from collections.abc import Iterable

from ledger.evolution.state import TableState
from ledger.log.outside.commit_texts import ERASED
from ledger.model.file_change import FileChange, kept_at

Sums = tuple[int, int, int]
"""Rows, files and bytes."""


def partition_sums(state: TableState, files: Iterable[FileChange]) -> dict[str, Sums]:
    """Return the sums of each partition, by its path as the spec of its files names it.

    Args:
        state: Whose specs the files were written with.
        files: Live ones.
    """
    running = RunningSums(state)
    running.take(files)
    return running.by_path


class RunningSums:
    """The sums of each partition while file changes go in, of each file its ADD before its DELETE.

    Args:
        state: Whose specs the files were written with.

    Attributes:
        by_path: The sums, by the partition's path as the spec of its files names it.
    """

    def __init__(self, state: TableState) -> None:
        self._state = state
        self.by_path: dict[str, Sums] = {}

    def take(self, changes: Iterable[FileChange]) -> None:
        """Take file changes, in the log's order."""
        for each in changes:
            path = _path(self._state, each)
            sign = 1 if each.kind == "ADD" else -1
            rows, count, length = self.by_path.get(path, (0, 0, 0))
            rows += sign * each.record_count
            length += sign * each.file_size_in_bytes
            count += sign
            if count:
                self.by_path[path] = rows, count, length
            else:
                del self.by_path[path]


def _path(state: TableState, file: FileChange) -> str:
    names = (each.name for each in state.spec_by_id(file.spec_id).fields)
    pairs = zip(names, file.partition, strict=False)
    shown = (f"{name}={value if kept_at(value) is None else ERASED}" for name, value in pairs)
    return "/".join(shown) or "(unpartitioned)"


def changed_partitions(
    before: dict[str, Sums], after: dict[str, Sums]
) -> list[tuple[str, Sums, Sums]]:
    """Return the partitions that are not as they were, with their sums before and after."""
    none = (0, 0, 0)
    return [
        (path, before.get(path, none), after.get(path, none))
        for path in sorted({*before, *after})
        if before.get(path) != after.get(path)
    ]
