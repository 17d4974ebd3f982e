"""Beginnings of the branches of a Paimon table in the log.

A branch keeps its contents when it is renamed, and a name may be given again after that or after a
drop. So a branch is identified by its beginning, not by its name.

Source: Paimon's FileSystemBranchManager.
"""

from __future__ import annotations

from attrs import Factory, define, frozen
from msgspec import UnsetType

from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.events.imported import PaimonBranchUpdated


@frozen
class BranchStart:
    """Beginning of a branch.

    Attributes:
        name: Its name then.
        version: The version of the commit that created it.
        transaction: The number of the transaction in that commit.
    """

    name: str
    version: int
    transaction: int


@define
class BranchStarts:
    """The beginnings of the branches that exist at a version.

    Attributes:
        version: The version; -1 before the first commit.
        by_name: The beginnings, by the branch's name at that version.
    """

    version: int = -1
    by_name: dict[str, BranchStart] = Factory(dict)
    _paths: dict[str, set[str]] = Factory(dict)

    def apply(self, commit: Commit[TableEvent]) -> None:
        """Fold the next commit."""
        for number, transaction in enumerate(commit.transactions):
            for event in transaction.events:
                if isinstance(event, PaimonBranchUpdated):
                    self._update(event, BranchStart(event.branch_name, commit.version, number))
        self.version = commit.version

    def _update(self, event: PaimonBranchUpdated, start: BranchStart) -> None:
        name, former = event.branch_name, event.renamed_from
        if not isinstance(former, UnsetType):
            self.by_name[name] = self.by_name.pop(former)
            self._paths[name] = self._paths.pop(former)
        self.by_name.setdefault(name, start)
        paths = self._paths.setdefault(name, set())
        paths.difference_update(event.removed)
        if not isinstance(event.added, UnsetType):
            paths.update(event.added)
        if not paths:
            # A branch without files is deleted.
            del self.by_name[name], self._paths[name]
