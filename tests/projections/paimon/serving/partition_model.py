"""A model of a table's partitions by their files, and the commits that its history makes."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import Factory, define, frozen

from ledger.events import (
    PartitionChange,
    PartitionsUpdated,
    SnapshotCommitted,
    SnapshotsExpired,
    SnapshotsRemoved,
    TableEvent,
)
from ledger.log import Commit, Transaction
from projections.paimon.partitions import PartitionIndex, PartitionSums

KEYS = ("day", "hour")
Spec = tuple[str, str]


@frozen
class File:
    """A data file.

    Attributes:
        number: Its name.
        spec: Its partition.
    """

    number: int
    spec: Spec

    @property
    def rows(self) -> int:
        return 1 + self.number % 7

    @property
    def size(self) -> int:
        return 100 + self.number

    @property
    def created(self) -> int:
        return 1000 + self.number


def spec_of(spec: Spec) -> dict[str, str]:
    return dict(zip(KEYS, spec, strict=True))


def commit_of(version: int, *events: TableEvent) -> Commit[TableEvent]:
    transaction = Transaction(id=str(version), asked="", events=events)
    return Commit(format=3, version=version, time_millis=version, transactions=(transaction,))


def snapshot(snapshot_id: int) -> SnapshotCommitted:
    return SnapshotCommitted(
        snapshot_id=snapshot_id,
        schema_id=0,
        commit_user="u",
        total_record_count=0,
        delta_record_count=0,
        commit_kind="APPEND",
    )


def delta(spec: Spec, added: Sequence[File], deleted: Sequence[File]) -> PartitionChange:
    return PartitionChange(
        spec=spec_of(spec),
        records=sum(each.rows for each in added) - sum(each.rows for each in deleted),
        size_in_bytes=sum(each.size for each in added) - sum(each.size for each in deleted),
        files=len(added) - len(deleted),
        last_file_creation_time=max(each.created for each in (*added, *deleted)),
        total_buckets=1,
    )


Sums = dict[Spec, tuple[int, int, int]]


@define
class History:
    """A table, as its log has it and as its files are.

    Attributes:
        commits: The log.
        contents: The files at each snapshot, by id.
        created: The partitions that were created before they had files.
        done: Those that are marked.
    """

    commits: list[Commit[TableEvent]] = Factory(list)
    contents: dict[int, frozenset[File]] = Factory(dict)
    created: set[Spec] = Factory(set)
    done: set[Spec] = Factory(set)
    _files: int = 0

    @property
    def newest(self) -> int:
        return max(self.contents, default=0)

    @property
    def files(self) -> frozenset[File]:
        return self.contents.get(self.newest, frozenset())

    @property
    def sums(self) -> Sums:
        found: Sums = {}
        for each in self.files:
            rows, size, files = found.get(each.spec, (0, 0, 0))
            found[each.spec] = rows + each.rows, size + each.size, files + 1
        return found

    @property
    def listed(self) -> set[Spec]:
        """The partitions that exist."""
        return {*self.sums, *self.created}

    def _log(self, *events: TableEvent) -> None:
        self.commits.append(commit_of(len(self.commits), *events))

    def _forget(self, specs: set[Spec]) -> None:
        gone = {each for each in specs if each not in self.sums}
        self.created -= gone
        self.done -= gone

    def write(self, specs: Sequence[Spec], deletes: int, *, says: bool) -> None:
        """Add a file to each of some partitions, and delete some others."""
        added = [File(self._files + number, spec) for number, spec in enumerate(specs)]
        self._files += len(added)
        deleted = sorted(self.files, key=lambda each: each.number)[:deletes]
        changed = sorted({each.spec for each in (*added, *deleted)})
        number = self.newest + 1
        changes = tuple(
            delta(
                spec,
                [each for each in added if each.spec == spec],
                [each for each in deleted if each.spec == spec],
            )
            for spec in changed
        )
        said = (PartitionsUpdated(snapshot_id=number, partitions=changes),) if says else ()
        self.contents[number] = self.files.difference(deleted).union(added)
        self._log(snapshot(number), *said)
        self._forget({*changed})

    def roll_back(self, back: int) -> None:
        target = max(self.newest - back, min(self.contents, default=0))
        gone = tuple(each for each in self.contents if each > target)
        if gone:
            for each in gone:
                del self.contents[each]
            self._log(SnapshotsRemoved(gone))
            self.done &= self.listed

    def expire(self, kept: int) -> None:
        earliest = max(1, self.newest - kept)
        if self.contents:
            for each in [number for number in self.contents if number < earliest]:
                del self.contents[each]
            self._log(SnapshotsExpired(earliest_snapshot_id=earliest))

    def create(self, spec: Spec) -> None:
        if spec not in self.listed:
            self.created.add(spec)
            self._log(
                PartitionsUpdated(
                    partitions=(PartitionChange(spec=spec_of(spec), action="CREATE"),)
                )
            )

    def mark(self, spec: Spec) -> None:
        self._log(
            PartitionsUpdated(partitions=(PartitionChange(spec=spec_of(spec), action="MARK_DONE"),))
        )
        if spec in self.listed:
            self.done.add(spec)

    def drop(self, spec: Spec) -> None:
        if spec in self.created and spec not in self.sums:
            self.created.discard(spec)
            self.done.discard(spec)
            self._log(
                PartitionsUpdated(partitions=(PartitionChange(spec=spec_of(spec), action="DROP"),))
            )

    def fold(self, index: PartitionIndex) -> None:
        """Bring an index up to date, from the files where the log does not have the changes."""
        for commit in self.commits[index.version + 1 :]:
            index.apply(commit, lambda event: event.partitions, self.commits.__getitem__)
        if index.needs_manifests:
            index.rebase(self.manifests(), self.newest)

    def manifests(self) -> list[PartitionSums]:
        return [
            PartitionSums(spec_of(spec), rows, size, files)
            for spec, (rows, size, files) in self.sums.items()
        ]


def sums_of(index: PartitionIndex) -> Sums:
    """Return the counts of the partitions that have some."""
    return {
        (each.spec["day"], each.spec["hour"]): (
            each.records,
            each.size_in_bytes or 0,
            each.files or 0,
        )
        for each in index.descending()
        if each.records is not None
    }
