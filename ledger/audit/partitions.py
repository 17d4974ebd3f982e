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
    found: dict[str, Sums] = {}
    for each in files:
        path = _path(state, each)
        rows, count, length = found.get(path, (0, 0, 0))
        found[path] = rows + each.record_count, count + 1, length + each.file_size_in_bytes
    return found


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
