"""A snapshot's summary: what it did, counted, and what the table holds after it.

Source: the Iceberg table specification, appendix F; keys that count nothing are left out, but for
the totals.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ledger.model.file_change import FileChange
from ledger.model.snapshot import CommitKind

ENGINE = "lakeledger"


class FileTotals(msgspec.Struct, frozen=True):
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
        mine, theirs = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return FileTotals(*(one + two for one, two in zip(mine, theirs, strict=True)))

    def __sub__(self, other: FileTotals) -> FileTotals:
        mine, theirs = msgspec.structs.astuple(self), msgspec.structs.astuple(other)
        return FileTotals(*(one - two for one, two in zip(mine, theirs, strict=True)))


NO_FILES = FileTotals()

_COUNTS = frozenset(
    {
        "added-data-files",
        "deleted-data-files",
        "added-delete-files",
        "removed-delete-files",
        "added-position-delete-files",
        "removed-position-delete-files",
        "added-equality-delete-files",
        "removed-equality-delete-files",
        "added-dvs",
        "removed-dvs",
        "added-records",
        "deleted-records",
        "added-files-size",
        "removed-files-size",
        "added-position-deletes",
        "removed-position-deletes",
        "added-equality-deletes",
        "removed-equality-deletes",
    }
)
"""Counts that stand in a summary only where they are not 0, whatever its writer said."""


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


def _sort_counts(changes: Iterable[FileChange], word: str) -> dict[str, int]:
    """Return how many files with deletes there are of each sort."""
    deletes = [each for each in changes if each.content != "data"]
    vectors = sum(each.is_vector for each in deletes)
    by_value = sum(each.content == "equality-deletes" for each in deletes)
    return {
        f"{word}-position-delete-files": len(deletes) - vectors - by_value,
        f"{word}-equality-delete-files": by_value,
        f"{word}-dvs": vectors,
    }


def operation(kind: CommitKind, added: FileTotals, removed: FileTotals) -> str:
    """Return Iceberg's word for what a snapshot did.

    >>> operation("OVERWRITE", FileTotals(), FileTotals(data_files=1))
    'delete'
    """
    comes = bool(added.data_files or added.delete_files)
    goes = bool(removed.data_files or removed.delete_files)
    if kind in {"COMPACT", "ANALYZE"}:
        return "replace"
    if kind == "APPEND" and not goes and not added.delete_files:
        return "append"
    return "delete" if goes and not comes else "overwrite"


def summary(
    kind: CommitKind,
    changes: tuple[FileChange, ...],
    before: FileTotals,
    properties: Mapping[str, str],
) -> tuple[dict[str, str], FileTotals]:
    """Return a snapshot's summary, and the sums over the live files after it.

    Args:
        kind: What the ledger calls it.
        changes: Its files.
        before: The sums before it.
        properties: What its writer said of it; computed keys go before.
    """
    added = totals_of(each for each in changes if each.kind == "ADD")
    removed = totals_of(each for each in changes if each.kind == "DELETE")
    after = before + added - removed
    counted = {
        "added-data-files": added.data_files,
        "deleted-data-files": removed.data_files,
        "added-delete-files": added.delete_files,
        "removed-delete-files": removed.delete_files,
        **_sort_counts((each for each in changes if each.kind == "ADD"), "added"),
        **_sort_counts((each for each in changes if each.kind == "DELETE"), "removed"),
        "added-records": added.records,
        "deleted-records": removed.records,
        "added-files-size": added.size,
        "removed-files-size": removed.size,
        "added-position-deletes": added.position_deletes,
        "removed-position-deletes": removed.position_deletes,
        "added-equality-deletes": added.equality_deletes,
        "removed-equality-deletes": removed.equality_deletes,
    }
    totals = {
        "changed-partition-count": len({(each.spec_id, each.partition) for each in changes}),
        "total-data-files": after.data_files,
        "total-delete-files": after.delete_files,
        "total-records": after.records,
        "total-files-size": after.size,
        "total-position-deletes": after.position_deletes,
        "total-equality-deletes": after.equality_deletes,
    }
    said = {
        "operation": operation(kind, added, removed),
        **{key: str(count) for key, count in counted.items() if count},
        **{key: str(count) for key, count in totals.items()},
        "engine-name": ENGINE,
    }
    own = {k: v for k, v in sorted(properties.items()) if k not in said and k not in _COUNTS}
    return {**said, **own}, after
