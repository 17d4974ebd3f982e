"""FileWish: the files that a writer adds and removes, and those that would contradict it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Self

from attrs import frozen

from ledger.evolution.partition_filter import PartitionFilter
from ledger.evolution.state import TableState
from ledger.evolution.table_changes import CommitSnapshot, TableChange
from ledger.model.file_change import FileChange


@frozen
class FileWish:
    """What a writer's snapshots need of the files that others add and remove meanwhile.

    Attributes:
        files: Kind and path of each file that comes or goes.
        overwritten: What was replaced whole, where files that others add are a conflict.
    """

    files: frozenset[tuple[str, str]]
    overwritten: tuple[PartitionFilter, ...]

    @classmethod
    def of(cls, changes: Iterable[TableChange]) -> Self | None:
        """Return the wish of some changes; None when they are about no files."""
        snapshots = [each for each in changes if isinstance(each, CommitSnapshot)]
        overwritten = [
            each.where
            for each in snapshots
            if each.where is not None and each.isolation != "snapshot"
        ]
        files = frozenset((file.kind, file.path) for each in snapshots for file in each.files)
        return cls(files, tuple(overwritten)) if files or overwritten else None

    def clashes(self, file: FileChange, state: TableState) -> bool:
        """Say whether a file of somebody else contradicts the wish, or may."""
        if (file.kind, file.path) in self.files:
            return True
        if file.kind != "ADD":
            return False
        return any(
            where.matches(file, state.spec_by_id(file.spec_id)) is not False
            for where in self.overwritten
        )
