"""Snapshot summaries as Iceberg counts them.

Source: the Iceberg table specification, appendix F; keys that count nothing are left out, except
for the totals. Other keys of Iceberg's summaries (`manifests-created`, `wap.id`) are the writer's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, structs

from ledger.model.file_change import FileChange
from ledger.model.snapshot import CommitKind

ENGINE: Final = "lakeledger"


class FileTotals(Struct, frozen=True):
    """Sums over some files: the live ones, or those that a snapshot adds or removes.

    Attributes:
        data_files: Files with data.
        delete_files: Files with deletes, and deletion vectors.
        records: Rows in the files with data.
        size: Bytes of all files.
        position_deletes: Rows in the files with position deletes, and in deletion vectors.
        equality_deletes: Rows in the files with equality deletes.
    """

    data_files: int = 0
    delete_files: int = 0
    records: int = 0
    size: int = 0
    position_deletes: int = 0
    equality_deletes: int = 0

    def __add__(self, other: FileTotals) -> FileTotals:
        mine, theirs = structs.astuple(self), structs.astuple(other)
        return FileTotals(*(one + two for one, two in zip(mine, theirs, strict=True)))

    def __sub__(self, other: FileTotals) -> FileTotals:
        mine, theirs = structs.astuple(self), structs.astuple(other)
        return FileTotals(*(one - two for one, two in zip(mine, theirs, strict=True)))

    @property
    def named(self) -> dict[str, int]:
        """The sums by the names of the totals in a summary."""
        return dict(zip(TOTALS, structs.astuple(self), strict=True))


TOTALS: Final = (
    "total-data-files",
    "total-delete-files",
    "total-records",
    "total-files-size",
    "total-position-deletes",
    "total-equality-deletes",
)
"""Keys of the totals, in the order of the fields of `FileTotals`."""

NO_FILES: Final = FileTotals()


class FileCounts(Struct, frozen=True):
    """Counts of a snapshot's changes.

    Attributes:
        added: The sums over added files.
        removed: The sums over removed files.
        counts: By their names in a summary.
        partitions: The number of partitions that its files are in.
    """

    added: FileTotals
    removed: FileTotals
    counts: dict[str, int]
    partitions: int

    @classmethod
    def of(cls, changes: Iterable[FileChange]) -> FileCounts:
        """Return the counts of some file changes."""
        come: list[FileChange] = []
        go: list[FileChange] = []
        partitions = set()
        for each in changes:
            (come if each.kind == "ADD" else go).append(each)
            partitions.add((each.spec_id, each.partition))
        added, removed = totals_of(come), totals_of(go)
        new, old = _count_delete_files(come), _count_delete_files(go)
        counts = {
            "added-data-files": added.data_files,
            "deleted-data-files": removed.data_files,
            "added-delete-files": added.delete_files,
            "removed-delete-files": removed.delete_files,
            **{f"added-{sort}": count for sort, count in new.items()},
            **{f"removed-{sort}": count for sort, count in old.items()},
            "added-records": added.records,
            "deleted-records": removed.records,
            "added-files-size": added.size,
            "removed-files-size": removed.size,
            "added-position-deletes": added.position_deletes,
            "removed-position-deletes": removed.position_deletes,
            "added-equality-deletes": added.equality_deletes,
            "removed-equality-deletes": removed.equality_deletes,
        }
        return cls(added, removed, counts, len(partitions))

    @property
    def net(self) -> FileTotals:
        """The net change of the sums."""
        return self.added - self.removed

    def operation(self, kind: CommitKind) -> str:
        """Return the summary's `operation` for these changes.

        >>> gone = FileChange(path="a", record_count=1, file_size_in_bytes=9, kind="DELETE")
        >>> FileCounts.of([gone]).operation("OVERWRITE")
        'delete'
        """
        comes = bool(self.added.data_files or self.added.delete_files)
        goes = bool(self.removed.data_files or self.removed.delete_files)
        if kind in {"COMPACT", "ANALYZE"}:
            return "replace"
        if kind == "APPEND" and not goes and not self.added.delete_files:
            return "append"
        return "delete" if goes and not comes else "overwrite"

    def summary(
        self, kind: CommitKind, totals: Mapping[str, int], properties: Mapping[str, str]
    ) -> dict[str, str]:
        """Return the snapshot's summary.

        Args:
            kind: The ledger's commit kind.
            totals: The sums over the live files after it, as far as they are known.
            properties: The properties that its writer gave; those that are counted are ignored.
        """
        return {
            "operation": self.operation(kind),
            **{key: str(count) for key, count in self.counts.items() if count},
            "changed-partition-count": str(self.partitions),
            **{key: str(count) for key, count in totals.items()},
            "engine-name": ENGINE,
            **{key: properties[key] for key in sorted(properties) if key not in RESERVED},
        }


def totals_of(changes: Iterable[FileChange]) -> FileTotals:
    """Return the sums over some files."""
    data: list[FileChange] = []
    by_position: list[FileChange] = []
    by_value: list[FileChange] = []
    sorts = {"data": data, "equality-deletes": by_value}
    for each in changes:
        sorts.get(each.content, by_position).append(each)
    return FileTotals(
        data_files=len(data),
        delete_files=len(by_position) + len(by_value),
        records=sum(each.record_count for each in data),
        size=sum(each.file_size_in_bytes for each in (*data, *by_position, *by_value)),
        position_deletes=sum(each.record_count for each in by_position),
        equality_deletes=sum(each.record_count for each in by_value),
    )


def _count_delete_files(changes: Iterable[FileChange]) -> dict[str, int]:
    """Return the number of delete files of each kind."""
    deletes = [each for each in changes if each.content != "data"]
    vectors = sum(each.is_vector for each in deletes)
    by_value = sum(each.content == "equality-deletes" for each in deletes)
    return {
        "position-delete-files": len(deletes) - vectors - by_value,
        "equality-delete-files": by_value,
        "dvs": vectors,
    }


RESERVED: Final = frozenset(
    {"operation", "changed-partition-count", "engine-name", *TOTALS, *FileCounts.of(()).counts}
)
"""Keys of a summary that are always counted and never taken from the writer's properties."""
