"""Branches of the ledger's own tables, folded: lines of snapshots beside main.

A branch begins with a snapshot of main and goes on with its own. Main goes on as if there were
none, until it is fast-forwarded: then it gets one snapshot more, with the branch's contents, and
the branch begins with that one. Ids of a branch's own snapshots are never given out again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from attrs import evolve
from msgspec import UNSET, UnsetType

from ledger.events.born.iceberg import SnapshotRefRemoved, SnapshotRefSet
from ledger.events.snapshot_events import BranchCommitted, SnapshotCommitted, SnapshotsExpired
from ledger.evolution.table.snapshot_fold import SnapshotTrail
from ledger.model.errors import InvalidChangeError
from ledger.model.snapshot import BRANCH_IDS, Branch, Totals, branch_number

MAIN = "main"
"""The line that every table has; no branch is called that."""

T = TypeVar("T")


class BranchTrail:
    """The branches half of a table's builder.

    Args:
        branches: Those that are there, by name; the mapping is never changed.
        last_number: How many there ever were.
    """

    __slots__ = ("branches", "last_number")

    def __init__(self, branches: Mapping[str, Branch], last_number: int) -> None:
        self.branches = branches
        self.last_number = last_number

    def begin(self, event: SnapshotRefSet, version: int, last_snapshot_id: int) -> None:
        """Let a branch begin with a snapshot of main, a new one or one that is there.

        Raises:
            InvalidChangeError: It is no branch, or there is no such snapshot.
        """
        ref, base, name = event.ref, event.base, event.ref_name
        if name == MAIN or ref.type != "branch" or isinstance(base, UnsetType):
            raise _illegal(f"ref {name!r} is no branch that a table of the ledger's own can have")
        if not 1 <= ref.snapshot_id <= last_snapshot_id or not 0 < base.version <= version:
            raise _illegal(
                f"branch {name!r} begins with snapshot {ref.snapshot_id} of version "
                f"{base.version}; the newest is {last_snapshot_id}"
            )
        there = self.branches.get(name)
        number = self.last_number + 1 if there is None else there.number
        first = number * BRANCH_IDS + 1 if there is None else there.next_id
        self.last_number = max(number, self.last_number)
        self._keep(
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
                    _present(base.last_file_creation_time),
                ),
                min_snapshots_to_keep=ref.min_snapshots_to_keep,
                max_snapshot_age_millis=ref.max_snapshot_age_ms,
                max_ref_age_millis=ref.max_ref_age_ms,
            )
        )

    def end(self, event: SnapshotRefRemoved) -> None:
        """Let a branch be gone.

        Raises:
            InvalidChangeError: There is none of that name.
        """
        gone = self._named(event.ref_name)
        self.branches = {n: each for n, each in self.branches.items() if n != gone.name}

    def commit(self, event: BranchCommitted, schema_id: int, moment: int) -> None:
        """Let a branch have one snapshot more.

        Raises:
            InvalidChangeError: It contradicts what came before.
        """
        branch = self._named(event.branch_name)
        if event.parent_snapshot_id != branch.head_id:
            raise _illegal(
                f"snapshot {event.snapshot_id} follows {event.parent_snapshot_id} on branch "
                f"{branch.name!r}, whose newest is {branch.head_id}"
            )
        trail = SnapshotTrail(branch.snapshot, branch.totals)
        trail.last_id = branch.next_id - 1
        trail.apply(event, schema_id, moment)
        self._keep(evolve(branch, snapshot=trail.snapshot(), totals=trail.totals()))

    def reached(self, event: SnapshotCommitted, version: int, totals: Totals) -> None:
        """Let a branch begin with the snapshot that main was fast-forwarded to it by.

        Args:
            event: That snapshot.
            version: Its commit.
            totals: Main's sums after it.

        Raises:
            InvalidChangeError: Main is no ancestor of the branch, or holds something else now.
        """
        head: Any = event.fast_forward_to
        branch = self._named(head.branch_name)
        if (branch.head_id, branch.base_snapshot_id) != (head.snapshot_id, event.snapshot_id - 1):
            raise _illegal(
                f"snapshot {event.snapshot_id} fast-forwards to snapshot {head.snapshot_id} of "
                f"branch {branch.name!r}, which begins with {branch.base_snapshot_id} and ends "
                f"with {branch.head_id}"
            )
        if _counts(branch.totals) != _counts(totals):
            raise _illegal(
                f"snapshot {event.snapshot_id} makes {totals.record_count} records in "
                f"{totals.file_count} files; branch {branch.name!r} has "
                f"{branch.totals.record_count} in {branch.totals.file_count}"
            )
        self._keep(
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
        """Let a branch's own snapshots before one be gone.

        Raises:
            InvalidChangeError: That one is none of them.
        """
        earliest = event.earliest_snapshot_id
        number = branch_number(earliest)
        branch = next((each for each in self.branches.values() if each.number == number), None)
        if branch is None or earliest not in branch.snapshot_ids:
            raise _illegal(f"snapshots before {earliest} cannot expire: no branch has that one")
        self._keep(evolve(branch, earliest_snapshot_id=earliest))

    def correct(self, latest_millis: int) -> None:
        """Let no snapshot be later than a time."""
        for each in self.branches.values():
            if each.snapshot is not None and each.snapshot.time_millis > latest_millis:
                earlier = evolve(each.snapshot, time_millis=latest_millis)
                self._keep(evolve(each, snapshot=earlier))

    def _keep(self, branch: Branch) -> None:
        self.branches = {**self.branches, branch.name: branch}

    def _named(self, name: str) -> Branch:
        found = self.branches.get(name)
        if found is None:
            raise _illegal(f"branch {name!r} does not exist")
        return found


def _counts(totals: Totals) -> tuple[int, int, int]:
    return totals.record_count, totals.file_count, totals.file_size_in_bytes


def _present(value: T | UnsetType) -> T | None:
    return None if value is UNSET else value


def _illegal(message: str) -> InvalidChangeError:
    return InvalidChangeError(message, kind="ILLEGAL_STATE")
