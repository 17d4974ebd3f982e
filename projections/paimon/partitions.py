"""Partitions of a Paimon table with their sums, as a fold of the log.

An engine's commit reports by how much it changed each partition, and the log has these changes
with the snapshot; see `ledger.events.partitions`. The sums are folded from them. Where a snapshot
has none, as in an imported history, they come from the manifests of the newest snapshot, and the
changes after it are added.

Partitions are listed by name, `key=value/key=value`, in descending order, as Paimon's catalog does.

Source: Paimon's Partition and PartitionStatistics classes, and its RESTCatalogServer.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import takewhile
from typing import Final

from attrs import Factory, define, evolve, frozen
from msgspec import UnsetType

from ledger.events import TableEvent
from ledger.events.commit import Commit, Transaction
from ledger.events.imported import PaimonBranchUpdated, SnapshotsRemoved
from ledger.events.partitions import PartitionChange, PartitionsUpdated
from ledger.events.snapshots import SnapshotCommitted, SnapshotsExpired
from ledger.model.errors import DamagedLogError
from projections.paimon.branch_starts import BranchStart

ChangesOf = Callable[[PartitionsUpdated], Sequence[PartitionChange]]
"""Returns the list of an event, which may be in a change file."""

CommitAt = Callable[[int], Commit[TableEvent]]
"""Returns the commit of a version."""

_Values = tuple[str, ...]
_Place = tuple[str, _Values]
_FEW: Final = 32
_SNAPSHOT_FILE: Final = "snapshot/snapshot-"


@frozen(slots=True)
class PartitionSums:
    """A partition.

    Attributes:
        spec: Each partition key, in order, with its value's text.
        records: Number of rows; None if it was never reported, as all that follow.
        size_in_bytes: Size of its files.
        files: Number of its files.
        last_file_creation_time: Unix milliseconds, over all files that it ever had.
        total_buckets: The newest number of buckets.
        is_done: Whether it was marked as complete.
        is_created: Whether it was created before it had files; it stays without any then.
    """

    spec: Mapping[str, str]
    records: int | None = None
    size_in_bytes: int | None = None
    files: int | None = None
    last_file_creation_time: int | None = None
    total_buckets: int | None = None
    is_done: bool = False
    is_created: bool = False

    @property
    def name(self) -> str:
        """Its name, by which partitions are ordered and matched."""
        return "/".join(f"{key}={value}" for key, value in self.spec.items())

    @property
    def is_unknown(self) -> bool:
        """True if none of its counts was ever reported."""
        return self.records is None and self.size_in_bytes is None and self.files is None

    @property
    def is_gone(self) -> bool:
        """True if its counts are known, and none is positive."""
        counts = (self.records, self.size_in_bytes, self.files)
        return all(each is not None and each <= 0 for each in counts)

    def added(self, change: PartitionChange, sign: int) -> PartitionSums:
        """Return the partition after a change was added (1), or taken back (-1)."""
        return evolve(
            self,
            records=_sum(self.records, change.records, sign),
            size_in_bytes=_sum(self.size_in_bytes, change.size_in_bytes, sign),
            files=_sum(self.files, change.files, sign),
            last_file_creation_time=_later(
                self.last_file_creation_time, change.last_file_creation_time
            ),
            total_buckets=_given(self.total_buckets, change.total_buckets),
        )

    def replaced(self, change: PartitionChange) -> PartitionSums:
        """Return the partition with the counts that a change gives."""
        return evolve(
            self,
            records=_given(self.records, change.records),
            size_in_bytes=_given(self.size_in_bytes, change.size_in_bytes),
            files=_given(self.files, change.files),
            last_file_creation_time=_given(
                self.last_file_creation_time, change.last_file_creation_time
            ),
            total_buckets=_given(self.total_buckets, change.total_buckets),
        )


def _sum(count: int | None, change: int | UnsetType, sign: int) -> int | None:
    if isinstance(change, UnsetType):
        return count
    return (count or 0) + sign * change


def _later(one: int | None, other: int | UnsetType) -> int | None:
    if isinstance(other, UnsetType):
        return one
    return other if one is None else max(one, other)


def _given(count: int | None, change: int | UnsetType) -> int | None:
    return count if isinstance(change, UnsetType) else change


@frozen
class PartitionTotals:
    """Sums over all partitions; unknown counts are zero."""

    records: int = 0
    size_in_bytes: int = 0
    files: int = 0
    last_file_creation_time: int = 0


@define
class PartitionIndex:
    """The partitions of one line of a table at a version, ordered by name.

    Attributes:
        keys: The table's partition keys.
        line: The branch, by its name at the version; None for the main line.
        version: The version; before the line's first commit the one before that.
        newest_id: The line's newest snapshot; 0 for none.
    """

    keys: tuple[str, ...]
    line: str | None = None
    version: int = -1
    newest_id: int = 0
    _entries: dict[_Values, PartitionSums] = Factory(dict)
    _order: list[_Place] = Factory(list)
    _snapshots: dict[int, int] = Factory(dict)
    """The commit of each snapshot that can be removed, by id, ascending."""
    _unknown: set[int] = Factory(set)
    """Snapshots that made unknown changes since the manifests were read."""
    _base_id: int = 0
    """The snapshot whose manifests were read; 0 for none."""
    _records: int = 0
    _size: int = 0
    _files: int = 0
    _created: int = 0
    _skipped: int = 0
    """Transactions of the first commit before the line begins."""

    @classmethod
    def of_line(cls, keys: tuple[str, ...], start: BranchStart | None) -> PartitionIndex:
        """Return the index of a line before its first commit.

        Args:
            keys: The table's partition keys.
            start: The beginning of the branch; None for the main line.
        """
        if start is None:
            return cls(keys)
        return cls(keys, start.name, start.version - 1, skipped=start.transaction)

    def __len__(self) -> int:
        return len(self._order)

    @property
    def totals(self) -> PartitionTotals:
        """The sums over all partitions."""
        return PartitionTotals(self._records, self._size, self._files, self._created)

    @property
    def needs_manifests(self) -> bool:
        """True if `rebase` has to set the sums before the partitions are read."""
        return bool(self._unknown)

    def get(self, spec: Mapping[str, str]) -> PartitionSums | None:
        """Return a partition by its spec; None if it does not exist."""
        return self._entries.get(tuple(spec.get(key, "") for key in self.keys))

    def descending(self, prefix: str = "", before: str | None = None) -> Iterator[PartitionSums]:
        """Yield the partitions in descending order of their names.

        Args:
            prefix: Only those whose names begin with it.
            before: Only those whose names are less than it.
        """
        order, entries = self._order, self._entries
        start = bisect_left(order, prefix, key=_name_of_place) if prefix else 0
        end = len(order)
        if prefix:
            end = bisect_right(order, prefix, key=lambda place: place[0][: len(prefix)])
        if before is not None:
            end = min(end, bisect_left(order, before, key=_name_of_place))
        for number in range(end - 1, start - 1, -1):
            yield entries[order[number][1]]

    def named(self, name: str) -> Iterator[PartitionSums]:
        """Yield the partitions of a name; several have one only if values hold `/` and `=`."""
        for number in range(bisect_left(self._order, name, key=_name_of_place), len(self._order)):
            found, key = self._order[number]
            if found != name:
                return
            yield self._entries[key]

    def apply(self, commit: Commit[TableEvent], changes_of: ChangesOf, commit_at: CommitAt) -> None:
        """Fold the next commit.

        Args:
            commit: The commit.
            changes_of: Reads the list of an event.
            commit_at: Reads an earlier commit, whose snapshot is removed.

        Raises:
            DamagedLogError: A partition has other keys than the table.
        """
        for transaction in commit.transactions[self._skipped :]:
            if self.line is None:
                self._apply_main(transaction, commit.version, changes_of, commit_at)
            else:
                self._apply_branch(transaction, changes_of)
        self.version, self._skipped = commit.version, 0

    def rebase(self, sums: Iterable[PartitionSums], snapshot_id: int) -> None:
        """Set the sums that are read from the manifests of the newest snapshot.

        Marks stay, and partitions that were created and of which nothing was ever reported.

        Args:
            sums: The partitions with files.
            snapshot_id: The snapshot; 0 if there is none.
        """
        entries = {key: each for key, each in self._entries.items() if each.is_unknown}
        for each in sums:
            key = tuple(each.spec.values())
            known = self._entries.get(key)
            if known is not None:
                # Files that an engine deleted since are in no manifest.
                times = (known.last_file_creation_time, each.last_file_creation_time)
                entries[key] = evolve(
                    each,
                    is_done=known.is_done,
                    is_created=known.is_created,
                    last_file_creation_time=max((at for at in times if at), default=None),
                )
            else:
                entries[key] = each
        self._entries = entries
        self._order = sorted((each.name, key) for key, each in entries.items())
        self._unknown.clear()
        self._base_id = self.newest_id = snapshot_id
        self._records = sum(each.records or 0 for each in entries.values())
        self._size = sum(each.size_in_bytes or 0 for each in entries.values())
        self._files = sum(each.files or 0 for each in entries.values())
        for each in entries.values():
            self._created = max(self._created, each.last_file_creation_time or 0)

    def _apply_main(
        self,
        transaction: Transaction[TableEvent],
        version: int,
        changes_of: ChangesOf,
        commit_at: CommitAt,
    ) -> None:
        reported = {
            each.snapshot_id
            for each in transaction.events
            if isinstance(each, PartitionsUpdated) and isinstance(each.branch_name, UnsetType)
        }
        for event in transaction.events:
            if isinstance(event, SnapshotCommitted):
                self._add_snapshot(event.snapshot_id, version)
                if event.snapshot_id not in reported and event.commit_kind != "ANALYZE":
                    self._unknown.add(event.snapshot_id)
            elif isinstance(event, PartitionsUpdated):
                if isinstance(event.branch_name, UnsetType):
                    self._change(changes_of(event), 1)
            elif isinstance(event, SnapshotsRemoved):
                self._remove(event.snapshot_ids, changes_of, commit_at)
            elif isinstance(event, SnapshotsExpired):
                self._expire(event.earliest_snapshot_id)

    def _add_snapshot(self, snapshot_id: int, version: int) -> None:
        self._snapshots[snapshot_id] = version
        if snapshot_id < self.newest_id:
            # An expired snapshot is readable again, by a tag.
            self._snapshots = dict(sorted(self._snapshots.items()))
        self.newest_id = max(self.newest_id, snapshot_id)

    def _expire(self, earliest: int) -> None:
        for each in [*takewhile(lambda snapshot_id: snapshot_id < earliest, self._snapshots)]:
            del self._snapshots[each]

    def _apply_branch(self, transaction: Transaction[TableEvent], changes_of: ChangesOf) -> None:
        reported = {
            (each.branch_name, each.snapshot_id)
            for each in transaction.events
            if isinstance(each, PartitionsUpdated)
        }
        for event in transaction.events:
            if isinstance(event, PartitionsUpdated) and event.branch_name == self.line:
                self._change(changes_of(event), 1)
            elif isinstance(event, PaimonBranchUpdated):
                if event.renamed_from == self.line:
                    self.line = event.branch_name
                if event.branch_name != self.line:
                    continue
                added = {} if isinstance(event.added, UnsetType) else event.added
                newest = max((*_snapshot_ids(added), 0))
                gone = max((*_snapshot_ids(event.removed), 0))
                is_reported = not newest or (self.line, newest) in reported
                if not is_reported or gone >= self.newest_id > newest:
                    # The branch begins with a snapshot, or is rolled back.
                    self._unknown.add(newest)
                self.newest_id = max(self.newest_id, newest)

    def _remove(
        self, snapshot_ids: Sequence[int], changes_of: ChangesOf, commit_at: CommitAt
    ) -> None:
        """Take back the changes of snapshots that a rollback removed."""
        versions = {each: self._snapshots.pop(each, None) for each in snapshot_ids}
        newest = max(self._snapshots, default=0)
        if newest >= self.newest_id:
            return
        self.newest_id = newest
        self._unknown = {each for each in self._unknown if each <= newest}
        if newest < self._base_id or None in versions.values() or not newest:
            self._unknown.add(newest)
            return
        for snapshot_id, version in versions.items():
            if version is not None and snapshot_id > newest:
                for event in _events_of_snapshot(commit_at(version), snapshot_id):
                    self._change(changes_of(event), -1)
        self._sweep()

    def _change(self, changes: Sequence[PartitionChange], sign: int) -> None:
        """Apply changes in order; -1 takes back those that added."""
        added: list[_Place] = []
        removed: set[_Place] = set()
        for change in changes:
            key = self._key(change)
            before = self._entries.get(key)
            after = self._changed(before, change, sign)
            if after is before:
                continue
            self._count(before, -1)
            self._count(after, 1)
            if after is None:
                del self._entries[key]
                removed.add((_name(self.keys, key), key))
                continue
            self._entries[key] = after
            if before is None:
                place = _name(self.keys, key), key
                if place in removed:
                    removed.discard(place)
                else:
                    added.append(place)
        self._reorder([each for each in added if each not in removed], removed.difference(added))

    def _changed(
        self, before: PartitionSums | None, change: PartitionChange, sign: int
    ) -> PartitionSums | None:
        """Return a partition after a change; None if it does not exist then."""
        match change.action:
            case "ADD":
                after = (before or PartitionSums(change.spec)).added(change, sign)
                # While sums are unknown they may be less than those of the changes.
                is_final = sign > 0 and not self._unknown
                return None if is_final and after.is_gone else after
            case "REPLACE" if sign > 0 and before is not None:
                return before.replaced(change)
            case "CREATE" if sign > 0:
                return before or PartitionSums(change.spec, is_created=True)
            case "DROP" if sign > 0:
                return None
            case "MARK_DONE" if sign > 0 and before is not None:
                return evolve(before, is_done=True)
        return before

    def _sweep(self) -> None:
        """Remove the partitions without files, or make them as they were created."""
        if self._unknown:
            return
        gone = [(key, each) for key, each in self._entries.items() if each.is_gone]
        removed = set()
        for key, each in gone:
            self._count(each, -1)
            if each.is_created:
                self._entries[key] = PartitionSums(each.spec, is_done=each.is_done, is_created=True)
            else:
                del self._entries[key]
                removed.add((_name(self.keys, key), key))
        self._reorder([], removed)

    def _reorder(self, added: list[_Place], removed: set[_Place]) -> None:
        if len(removed) > _FEW:
            self._order = [each for each in self._order if each not in removed]
        else:
            for each in removed:
                del self._order[bisect_left(self._order, each)]
        if len(added) > _FEW:
            self._order += added
            self._order.sort()
        else:
            for each in added:
                insort(self._order, each)

    def _count(self, sums: PartitionSums | None, sign: int) -> None:
        if sums is not None:
            self._records += sign * (sums.records or 0)
            self._size += sign * (sums.size_in_bytes or 0)
            self._files += sign * (sums.files or 0)
            self._created = max(self._created, sums.last_file_creation_time or 0)

    def _key(self, change: PartitionChange) -> _Values:
        spec = change.spec
        if tuple(spec) != self.keys:
            raise DamagedLogError(
                f"a commit has partition {spec}, and the table's partition keys are "
                f"{list(self.keys)}; lakeledger never writes this",
                f"version {self.version + 1}",
            )
        return tuple(spec.values())


def _name_of_place(place: _Place) -> str:
    return place[0]


def _name(keys: Sequence[str], values: Sequence[str]) -> str:
    return "/".join(f"{key}={value}" for key, value in zip(keys, values, strict=True))


def _events_of_snapshot(
    commit: Commit[TableEvent], snapshot_id: int
) -> Iterator[PartitionsUpdated]:
    for transaction in commit.transactions:
        for event in transaction.events:
            if (
                isinstance(event, PartitionsUpdated)
                and isinstance(event.branch_name, UnsetType)
                and event.snapshot_id == snapshot_id
            ):
                yield event


def _snapshot_ids(paths: Iterable[str]) -> Iterator[int]:
    """Yield the ids in the paths of a branch's snapshot files."""
    for each in paths:
        digits = each.removeprefix(_SNAPSHOT_FILE)
        if digits != each and digits.isascii() and digits.isdigit():
            yield int(digits)
