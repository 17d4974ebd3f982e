"""Garbage: the manifests and lists that only expired snapshots name."""

from __future__ import annotations

from attrs import Factory, define

from ledger.evolution.state import TableState
from projections.iceberg.names import FOLDER, Names
from projections.manifest_files.container import read_container
from projections.outputs import Outputs


@define
class Garbage:
    """What a run has to take away.

    A manifest is named by the lists of neighbouring snapshots. So one that an expired snapshot
    names is still needed if the oldest that stays names it, or one that a tag or branch holds; no
    other list has to be looked at.

    Attributes:
        names: Of the table's files.
        outputs: Where they are.
        before: The table where the run begins; None before its first commit.
        target: The table where it ends.
        begins_empty: Whether there was no file at all when the run began.
    """

    names: Names
    outputs: Outputs
    before: TableState | None
    target: TableState
    begins_empty: bool
    _listed: dict[int, list[str]] = Factory(dict)
    _of_branches: set[int] = Factory(set)
    _bases: set[int] = Factory(set)

    def learn(self, snapshot_id: int, manifests: list[str]) -> None:
        """Remember what the list of a snapshot of this run names, whether it is written or not."""
        if snapshot_id <= self.target.earliest_snapshot_id:
            self._listed[snapshot_id] = manifests

    def learn_branch(self, snapshot_id: int, base_id: int, manifests: list[str]) -> None:
        """Remember the same of a branch's snapshot, and which one of main the branch begins with.

        Manifests of that one are named by the branch's lists, too.
        """
        self._listed[snapshot_id] = manifests
        self._of_branches.add(snapshot_id)
        self._bases.add(base_id)

    def paths(self) -> tuple[str, ...]:
        """Return the files to take away: manifests before the lists that tell of them.

        Snapshots that came and went within the run are among them, since a run that was killed may
        have written them.
        """
        gone = self._gone()
        if not gone:
            return ()
        manifests = {path for each in gone for path in self._manifests(each)}
        kept = {path for each in self._oldest() for path in self._manifests(each)}
        lists = [self.names.manifest_list(each) for each in gone]
        return (*sorted(manifests - kept), *lists)

    def _gone(self) -> list[int]:
        if self.begins_empty:
            return []
        first = self.before.earliest_snapshot_id if self.before else 1
        held = self.before.held_snapshot_ids if self.before else ()
        gone = {*range(first, self.target.earliest_snapshot_id), *held, *self._of_branches}
        for each in self.before.branches.values() if self.before else ():
            gone.update(each.snapshot_ids)
        return sorted(each for each in gone if not self.target.reachable(each))

    def _oldest(self) -> set[int]:
        earliest = self.target.earliest_snapshot_id
        held = self.target.held_snapshot_ids
        oldest = {earliest, *(each for each in held if each < earliest)}
        before = self.before.branches.values() if self.before else ()
        begun = {*self._bases, *(each.base_snapshot_id for each in before)}
        oldest.update(each for each in begun if self.target.reachable(each))
        for each in self.target.branches.values():
            oldest.update(each.snapshot_ids[:1])
        return oldest

    def _manifests(self, snapshot_id: int) -> list[str]:
        if snapshot_id in self._listed:
            return self._listed[snapshot_id]
        path = self.names.manifest_list(snapshot_id)
        body = self.outputs.read(path)
        records = () if body is None else read_container(body, path)
        return [f"{FOLDER}/{each['manifest_path'].rpartition('/')[2]}" for each in records]
