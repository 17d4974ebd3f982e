"""SnapshotPlan: from what a user asks of files to the change that says so, looked up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from attrs import field, frozen
from msgspec.structs import replace

from ledger.commit_options import fresh_id
from ledger.events.snapshot_events import ChangesReference
from ledger.evolution.state import TableState
from ledger.evolution.table_changes import CommitSnapshot, Isolation
from ledger.evolution.table_intent import snapshot_key_of
from ledger.files.live import LiveFiles
from ledger.model.errors import InvalidChangeError, InvalidInputError
from ledger.model.file_change import FileChange, PartitionValue
from ledger.model.snapshot import BATCH_COMMIT_IDENTIFIER, CommitKind

Outsource = Callable[[Sequence[FileChange]], ChangesReference | None]
"""Writes a long list beside the log; None when it is short enough for a commit."""


def places(state: TableState, where: Mapping[str, PartitionValue]) -> dict[int, PartitionValue]:
    """Return partition values by their place in the default spec.

    Raises:
        InvalidInputError: A name is no partition field.
    """
    names = [each.name for each in state.specs[-1].fields]
    unknown = sorted(set(where) - set(names))
    if unknown:
        raise InvalidInputError(f"{unknown} are no partition keys; there are: {names}")
    return {names.index(name): value for name, value in where.items()}


def files_in(
    live: LiveFiles, state: TableState, where: Mapping[int, PartitionValue]
) -> list[FileChange]:
    """Return the live files that have those partition values."""
    return [
        each
        for each in live.at(state.version).values()
        if all(each.partition[place] == value for place, value in where.items())
    ]


def removals(files: Iterable[FileChange]) -> tuple[FileChange, ...]:
    """Return the DELETEs that take live files away."""
    return tuple(replace(each, kind="DELETE") for each in files)


def live_among(live: LiveFiles, state: TableState, paths: Sequence[str]) -> list[FileChange]:
    """Return the live files of those paths.

    Raises:
        InvalidChangeError: One is not live.
    """
    found = live.lookup(paths, state.version) if paths else {}
    missing = [path for path in paths if path not in found]
    if missing:
        others = f" (nor are {len(missing) - 1} others)" if len(missing) > 1 else ""
        raise InvalidChangeError(
            f"{missing[0]} is not a live file{others}; read the table again and plan anew"
        )
    return [found[path] for path in paths]


def refuse_live(
    live: LiveFiles, state: TableState, adds: Sequence[FileChange], going: Collection[str]
) -> None:
    """Check that no file is added twice.

    Raises:
        InvalidChangeError: One is live already and does not go in the same commit.
    """
    found = live.lookup([each.path for each in adds if each.path not in going], state.version)
    if found:
        raise InvalidChangeError(
            f"{next(iter(found))} is a live file already ({len(found)} of {len(adds)} are); "
            "register each file once"
        )


@frozen
class SnapshotPlan:
    """A snapshot as a user asks for it.

    Attributes:
        kind: APPEND, COMPACT, OVERWRITE or ANALYZE.
        files: Files that come.
        delete: Paths of live files that go.
        where: Partition values by key; every live file that has them goes, too. Empty: all files.
            None: none but those in `delete`.
        isolation: Whether a file that others add under `where` meanwhile is a conflict.
        commit_user: Stable for a stream; None for a fresh one.
        commit_identifier: The stream's own number; the same (user, identifier, kind) is never
            committed twice.
        facts: Further keys of Paimon's snapshot file: `watermark`, `statistics`, ...
    """

    kind: CommitKind
    files: tuple[FileChange, ...] = ()
    delete: tuple[str, ...] = ()
    where: Mapping[str, PartitionValue] | None = field(default=None, hash=False)
    isolation: Isolation = "serializable"
    commit_user: str | None = None
    commit_identifier: int = BATCH_COMMIT_IDENTIFIER
    facts: Mapping[str, Any] = field(factory=dict, hash=False)

    @property
    def key(self) -> str | None:
        """What makes it the same snapshot as another; None when nothing does."""
        if self.commit_user is None:
            return None
        return snapshot_key_of(self.kind, self.commit_identifier, self.commit_user)

    def on(self, head: TableState, live: LiveFiles, outsource: Outsource) -> CommitSnapshot:
        """Return what the plan means on a state.

        Raises:
            InvalidChangeError: A file to add is live, or one to delete is not.
        """
        where = None if self.where is None else places(head, self.where)
        gone = live_among(live, head, self.delete)
        if where is not None:
            gone += files_in(live, head, where)
        refuse_live(live, head, self.files, {each.path for each in gone})
        changes = (*removals(gone), *self.files)
        return CommitSnapshot(
            commit_kind=self.kind,
            commit_user=self.commit_user or fresh_id(),
            commit_identifier=self.commit_identifier,
            files=changes,
            reference=outsource(changes),
            where=where,
            isolation=self.isolation,
            facts=self.facts,
        )
