"""Fold of snapshot events and of branches.

A branch begins with a snapshot of main and continues with its own. Main continues independently
until it is fast-forwarded: then it gets one more snapshot, with the branch's contents, and the
branch begins with that one. Ids of a branch's own snapshots are never assigned again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import evolve
from msgspec import UNSET, UnsetType

from ledger.events.imported import SnapshotRefRemoved, SnapshotRefSet
from ledger.events.snapshots import (
    BranchCommitted,
    ListingEvent,
    RolledBack,
    SnapshotCommitted,
    SnapshotsExpired,
)
from ledger.model.errors import InvalidChangeError
from ledger.model.snapshot import BRANCH_IDS, Branch, Snapshot, Totals, branch_number

T = TypeVar("T")


def _value_or_none(value: T | UnsetType) -> T | None:
    return None if value is UNSET else value


def snapshot_of(event: ListingEvent, time_millis: int) -> Snapshot:
    """Return the snapshot that an event made at that time, or at the time that its engine gave it.

    A rollback is an OVERWRITE that restores older contents, as Paimon's "as latest" does.
    """
    if isinstance(event, RolledBack):
        return Snapshot(
            id=event.snapshot_id,
            schema_id=event.schema_id,
            commit_kind="OVERWRITE",
            commit_user=event.commit_user,
            commit_identifier=event.commit_identifier,
            time_millis=time_millis,
            total_record_count=event.total_record_count,
            delta_record_count=event.delta_record_count,
        )
    if isinstance(event, SnapshotCommitted) and not isinstance(event.time_millis, UnsetType):
        time_millis = event.time_millis
    return Snapshot(
        id=event.snapshot_id,
        schema_id=event.schema_id,
        commit_kind=event.commit_kind,
        commit_user=event.commit_user,
        commit_identifier=event.commit_identifier,
        time_millis=time_millis,
        total_record_count=event.total_record_count,
        delta_record_count=event.delta_record_count,
        base_manifest_list=_value_or_none(event.base_manifest_list),
        base_manifest_list_size=_value_or_none(event.base_manifest_list_size),
        delta_manifest_list=_value_or_none(event.delta_manifest_list),
        delta_manifest_list_size=_value_or_none(event.delta_manifest_list_size),
        changelog_manifest_list=_value_or_none(event.changelog_manifest_list),
        changelog_manifest_list_size=_value_or_none(event.changelog_manifest_list_size),
        index_manifest=_value_or_none(event.index_manifest),
        log_offsets=_value_or_none(event.log_offsets),
        changelog_record_count=_value_or_none(event.changelog_record_count),
        watermark=_value_or_none(event.watermark),
        statistics=_value_or_none(event.statistics),
        uuid=_value_or_none(event.uuid),
        properties=_value_or_none(event.snapshot_properties),
        next_row_id=_value_or_none(event.next_row_id),
        writer_version=_value_or_none(event.writer_version),
        operation=_value_or_none(event.operation),
    )


class SnapshotTrail:
    """Snapshots in a table's builder: the newest event and the running totals."""

    __slots__ = (
        "_before",
        "base",
        "file_count",
        "file_size_in_bytes",
        "last_file_creation_time",
        "last_id",
        "newest",
        "newest_millis",
        "record_count",
    )

    def __init__(self, base: Snapshot | None, totals: Totals) -> None:
        self._before = totals
        self.base = base
        self.newest: ListingEvent | None = None
        self.newest_millis = 0
        self.last_id = base.id if base else 0
        self.record_count = totals.record_count
        self.file_count = totals.file_count
        self.file_size_in_bytes = totals.file_size_in_bytes
        self.last_file_creation_time = totals.last_file_creation_time

    def apply(self, event: ListingEvent, schema_id: int, time_millis: int) -> None:
        """Fold one snapshot.

        Raises:
            InvalidChangeError: Its id, schema id or total contradicts what came before.
        """
        snapshot_id = event.snapshot_id
        records = self.record_count + event.delta_record_count
        if snapshot_id != self.last_id + 1 or event.schema_id > schema_id:
            raise InvalidChangeError(
                f"snapshot {event.snapshot_id} with schema {event.schema_id} cannot follow "
                f"snapshot {self.last_id} with schema {schema_id}",
                kind="ILLEGAL_STATE",
            )
        if event.total_record_count != records:
            raise InvalidChangeError(
                f"snapshot {event.snapshot_id} says {event.total_record_count} records in total; "
                f"{self.record_count} and its {event.delta_record_count} make {records}",
                kind="ILLEGAL_STATE",
            )
        self.record_count = records
        self.file_count += event.delta_file_count
        self.file_size_in_bytes += event.delta_file_size_in_bytes
        created = event.last_file_creation_time
        if created is not UNSET:
            before = self.last_file_creation_time
            if before is None or created > before:
                self.last_file_creation_time = created
        self.last_id = snapshot_id
        self.newest = event
        self.newest_millis = time_millis

    def snapshot(self) -> Snapshot | None:
        """Return the newest snapshot."""
        if self.newest is None:
            return self.base
        return snapshot_of(self.newest, self.newest_millis)

    def clamp_times(self, latest_millis: int) -> None:
        """Limit the time of the newest snapshot to a latest one."""
        self.newest_millis = min(self.newest_millis, latest_millis)
        if self.base is not None and self.base.time_millis > latest_millis:
            self.base = evolve(self.base, time_millis=latest_millis)

    def totals(self) -> Totals:
        """Return the sums after the newest snapshot."""
        if self.newest is None:
            return self._before
        return Totals(
            self.record_count,
            self.file_size_in_bytes,
            self.file_count,
            self.last_file_creation_time,
        )


MAIN = "main"
"""The main line of every table; no branch has this name."""


class BranchTrail:
    """Branches in a table's builder.

    Args:
        branches: The existing ones, by name; the mapping is never changed.
        last_number: How many were ever created.
    """

    __slots__ = ("branches", "last_number")

    def __init__(self, branches: Mapping[str, Branch], last_number: int) -> None:
        self.branches = branches
        self.last_number = last_number

    def begin(self, event: SnapshotRefSet, version: int, last_snapshot_id: int) -> None:
        """Begin a branch, new or reset, with a snapshot of main.

        Raises:
            InvalidChangeError: It is not a branch, or there is no such snapshot.
        """
        ref, base, name = event.ref, event.base, event.ref_name
        if name == MAIN or ref.type != "branch" or isinstance(base, UnsetType):
            raise _contradiction_error(
                f"ref {name!r} is not a branch that a table of the ledger can have"
            )
        if not 1 <= ref.snapshot_id <= last_snapshot_id or not 0 < base.version <= version:
            raise _contradiction_error(
                f"branch {name!r} begins with snapshot {ref.snapshot_id} of version "
                f"{base.version}; the newest is {last_snapshot_id}"
            )
        there = self.branches.get(name)
        number = self.last_number + 1 if there is None else there.number
        first = number * BRANCH_IDS + 1 if there is None else there.next_id
        self.last_number = max(number, self.last_number)
        self._store_branch(
            Branch(
                name=name,
                number=number,
                base_snapshot_id=ref.snapshot_id,
                base_version=base.version,
                since_version=version,
                first_snapshot_id=first,
                earliest_snapshot_id=first,
                totals=Totals(
                    base.record_count,
                    base.file_size_in_bytes,
                    base.file_count,
                    _value_or_none(base.last_file_creation_time),
                ),
                min_snapshots_to_keep=ref.min_snapshots_to_keep,
                max_snapshot_age_millis=ref.max_snapshot_age_ms,
                max_ref_age_millis=ref.max_ref_age_ms,
            )
        )

    def end(self, event: SnapshotRefRemoved) -> None:
        """Remove a branch.

        Raises:
            InvalidChangeError: There is none of that name.
        """
        gone = self._existing_branch(event.ref_name)
        self.branches = {n: each for n, each in self.branches.items() if n != gone.name}

    def commit(self, event: BranchCommitted, schema_id: int, moment: int) -> None:
        """Add a snapshot to a branch.

        Raises:
            InvalidChangeError: It contradicts what came before.
        """
        branch = self._existing_branch(event.branch_name)
        if event.parent_snapshot_id != branch.head_id:
            raise _contradiction_error(
                f"snapshot {event.snapshot_id} follows {event.parent_snapshot_id} on branch "
                f"{branch.name!r}, whose newest is {branch.head_id}"
            )
        trail = SnapshotTrail(branch.snapshot, branch.totals)
        trail.last_id = branch.next_id - 1
        trail.apply(event, schema_id, moment)
        self._store_branch(evolve(branch, snapshot=trail.snapshot(), totals=trail.totals()))

    def rebase_on_fast_forward(
        self, event: SnapshotCommitted, version: int, totals: Totals
    ) -> None:
        """Begin a branch with the snapshot by which main was fast-forwarded to it.

        Args:
            event: That snapshot.
            version: Its commit.
            totals: Main's sums after it.

        Raises:
            InvalidChangeError: Main is no ancestor of the branch, or their contents differ.
        """
        head: Any = event.fast_forward_to
        branch = self._existing_branch(head.branch_name)
        if (branch.head_id, branch.base_snapshot_id) != (head.snapshot_id, event.snapshot_id - 1):
            raise _contradiction_error(
                f"snapshot {event.snapshot_id} fast-forwards to snapshot {head.snapshot_id} of "
                f"branch {branch.name!r}, which begins with {branch.base_snapshot_id} and ends "
                f"with {branch.head_id}"
            )
        if _comparable_counts(branch.totals) != _comparable_counts(totals):
            raise _contradiction_error(
                f"snapshot {event.snapshot_id} makes {totals.record_count} records in "
                f"{totals.file_count} files; branch {branch.name!r} has "
                f"{branch.totals.record_count} in {branch.totals.file_count}"
            )
        self._store_branch(
            evolve(
                branch,
                base_snapshot_id=event.snapshot_id,
                base_version=version,
                since_version=version,
                first_snapshot_id=branch.next_id,
                earliest_snapshot_id=branch.next_id,
                snapshot=None,
                totals=totals,
            )
        )

    def expire(self, event: SnapshotsExpired) -> None:
        """Expire a branch's own snapshots before one.

        Raises:
            InvalidChangeError: That one is not one of them.
        """
        earliest = event.earliest_snapshot_id
        number = branch_number(earliest)
        branch = next((each for each in self.branches.values() if each.number == number), None)
        if branch is None or earliest not in branch.snapshot_ids:
            raise _contradiction_error(
                f"snapshots before {earliest} cannot expire: no branch has that one"
            )
        self._store_branch(evolve(branch, earliest_snapshot_id=earliest))

    def clamp_times(self, latest_millis: int) -> None:
        """Limit the times of snapshots to a latest one."""
        for each in self.branches.values():
            if each.snapshot is not None and each.snapshot.time_millis > latest_millis:
                earlier = evolve(each.snapshot, time_millis=latest_millis)
                self._store_branch(evolve(each, snapshot=earlier))

    def _store_branch(self, branch: Branch) -> None:
        self.branches = {**self.branches, branch.name: branch}

    def _existing_branch(self, name: str) -> Branch:
        found = self.branches.get(name)
        if found is None:
            raise _contradiction_error(f"branch {name!r} does not exist")
        return found


def _comparable_counts(totals: Totals) -> tuple[int, int, int]:
    return totals.record_count, totals.file_count, totals.file_size_in_bytes


def _contradiction_error(message: str) -> InvalidChangeError:
    return InvalidChangeError(message, kind="ILLEGAL_STATE")
