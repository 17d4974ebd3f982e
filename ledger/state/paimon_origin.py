"""Origin of a table imported from Paimon.

The origin is what Paimon's folders list: every existing schema and snapshot, and branches. Ids are
the source's, and are used again after it rolled back. Once the ledger owns the table they continue
from there, and `sums` covers the files that the ledger lists itself.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import ClassVar, Final

from attrs import evolve
from msgspec import UnsetType, field
from msgspec.structs import replace

from ledger.events.imported import ImportedPaimonTable, PaimonBranchUpdated, SchemaNamed
from ledger.model.errors import InvalidChangeError, NotFoundError
from ledger.model.schema import Schema
from ledger.model.snapshot import UNKNOWN_TOTALS, EngineBranch, Snapshot, Totals
from ledger.state.native_origin import (
    ImportedOrigin,
    LedgerNumberedOrigin,
    ListedSchemas,
    OriginSnapshot,
    SchemaChangeEffects,
    SnapshotState,
    abbreviate_ids,
    missing_branch_error,
)
from ledger.state.schema_record import StoredSchema, schema_of, stored_schema
from ledger.state.snapshots import MAIN, SnapshotTrail

UNKNOWN: Final = -1
"""Value of a count that the source does not give."""

OWN_FOLDER: Final = "."
"""Source and location of a table whose engines write into its own folder."""


class PaimonOrigin(LedgerNumberedOrigin, ImportedOrigin, frozen=True, kw_only=True, tag="paimon"):
    """Origin of a table that was imported from Paimon: its schemas and snapshots there.

    Attributes:
        location: Its folder there, or `OWN_FOLDER`; see `folder`.
        schemas: By id.
        snapshots: Those that are not expired, by id.
        kept: Those that are expired and kept by tags, by id.
        added_in: The commit of the ledger that added each of both.
        branches: By name, the texts of each one's files, by path.
        branch_added_in: By the name of a branch, the commit that created it or gave it the name.
        rolled_back_in: By the name of a line, main or a branch, the last commit that removed its
            newest snapshot, so that their ids are given again.
        promoted_in: The commit by which the ledger became its owner; -1 while it is mirrored.
        source_last_id: The last snapshot that its source gave; 0 for none, and while it is
            mirrored.
        sums: Over the live files that the ledger lists, once it owns the table.
    """

    format_name: ClassVar[str] = "paimon"

    location: str
    schemas: dict[int, StoredSchema]
    snapshots: dict[int, Snapshot] = field(default_factory=dict)
    kept: dict[int, Snapshot] = field(default_factory=dict, name="taggedSnapshots")
    added_in: dict[int, int] = field(default_factory=dict, name="addedVersions")
    branches: dict[str, dict[str, str]] = field(default_factory=dict)
    branch_added_in: dict[str, int] = field(default_factory=dict, name="branchVersions")
    rolled_back_in: dict[str, int] = field(default_factory=dict, name="rolledBackVersions")
    promoted_in: int = field(default=-1, name="promotedVersion")
    source_last_id: int = field(default=0, name="sourceLastSnapshotId")
    sums: Totals = field(default=Totals(), name="totals")

    @classmethod
    def of_creation(cls, creation: ImportedPaimonTable, first: Schema) -> PaimonOrigin:
        """Return the origin of a new table, whose first schema is given."""
        return cls(
            source=creation.source,
            location=creation.location,
            schemas={creation.schema_id: stored_schema(first)},
        )

    @property
    def current(self) -> Snapshot | None:
        """The newest snapshot of the main line."""
        return self.snapshots[max(self.snapshots)] if self.snapshots else None

    @property
    def readable_snapshots(self) -> Mapping[int, Snapshot]:
        """All snapshots that can be read, by id."""
        return {**self.kept, **self.snapshots}

    def ids_given_since(self, line: str) -> int:
        """Return the commit since which each snapshot id of a line is given once; 0 for the first.

        A rollback gives ids again, and so does a new branch of the name of a dropped one.

        Args:
            line: The name of a branch, or main.
        """
        return max(self.rolled_back_in.get(line, 0), self.branch_added_in.get(line, 0))

    def folder(self, own: str) -> str:
        """Return the folder in which its engines write.

        Args:
            own: The table's own folder.
        """
        return own if self.location == OWN_FOLDER else self.location

    def manifest_folder(self, own: str) -> str:
        """See `LedgerNumberedOrigin`."""
        return self.folder(own)

    @property
    def lists_files_since(self) -> int:
        """See `LedgerNumberedOrigin`."""
        return max(0, self.promoted_in)

    def lists_files(self, snapshot_id: int) -> bool:
        """Return True if the ledger made a snapshot, and so lists its files itself."""
        return self.is_promoted and snapshot_id > self.source_last_id

    def counted_since_version(self, snapshot_id: int) -> int | None:
        """See `LedgerNumberedOrigin`; snapshots of the source may have had the same ids before."""
        return self.promoted_in if self.lists_files(snapshot_id) else None

    def listed_snapshot(self, snapshot_id: int) -> OriginSnapshot | None:
        """See `LedgerNumberedOrigin`."""
        found = self.snapshots.get(snapshot_id) or self.kept.get(snapshot_id)
        if found is None:
            return None
        return OriginSnapshot(self.added_in[snapshot_id], found, paimon_totals(found))

    def listed_schemas(self, newest: Schema) -> ListedSchemas:
        """See `LedgerNumberedOrigin`."""
        del newest
        return ListedSchemas(sorted(self.schemas), self.schema)

    def snapshot_ids(self, state: SnapshotState) -> tuple[int, ...]:
        """See `LedgerNumberedOrigin`."""
        del state
        return tuple(sorted(self.readable_snapshots, reverse=True))

    def is_readable(self, state: SnapshotState, snapshot_id: int) -> bool:
        """See `LedgerNumberedOrigin`."""
        del state
        return snapshot_id in self.snapshots or snapshot_id in self.kept

    def readable_range_text(self, state: SnapshotState) -> str:
        """See `LedgerNumberedOrigin`."""
        return abbreviate_ids(self.snapshot_ids(state))

    def all_branches(self, state: SnapshotState) -> Mapping[str, EngineBranch]:
        """See `LedgerNumberedOrigin`; a branch numbers its snapshots by itself, as main does."""
        del state
        return {
            name: EngineBranch(name=name, snapshot_ids=_snapshot_ids(files), totals=UNKNOWN_TOTALS)
            for name, files in sorted(self.branches.items())
        }

    def branch_not_found_error(self, state: SnapshotState, name: str) -> NotFoundError:
        """Return the error that the ledger commits to no branch of a name, though engines may."""
        if name not in self.branches:
            return missing_branch_error(name, self.all_branches(state))
        return NotFoundError(
            f"branch {name!r} is Paimon's, and the ledger itself reads and commits to main only; "
            "read it by an engine of Paimon"
        )

    def snapshot_lineage(self, snapshot_id: int) -> tuple[int, ...]:
        """Return the existing ancestors of a snapshot and the snapshot itself, oldest first."""
        return (*sorted(each for each in self.snapshots if each < snapshot_id), snapshot_id)

    def has_parent(self, snapshot_id: int) -> bool:
        """Return True if a snapshot has a parent, though that may have been removed."""
        return snapshot_id > 1

    def snapshot_time_millis(self, snapshot_id: int) -> int:
        """Return when a snapshot was made, Unix milliseconds."""
        return self.readable_snapshots[snapshot_id].time_millis

    @property
    def totals(self) -> Totals:
        """The sums after the newest snapshot; -1 where its source does not give them."""
        current = self.current
        is_listed = current is not None and self.lists_files(current.id)
        return self.sums if is_listed else paimon_totals(current)

    def schema_change_effects(self, before: Schema, after: Schema) -> SchemaChangeEffects:
        """Return the id of a changed schema, which Paimon numbers, of a table that engines own."""
        del before
        if self.is_promoted:
            return SchemaChangeEffects((), after.id)
        named = SchemaNamed(max(self.schemas) + 1)
        return SchemaChangeEffects((named,), named.schema_id)

    def schema(self, schema_id: int) -> Schema:
        """Return one of the schemas.

        Raises:
            InvalidChangeError: There is none of that id.
        """
        found = self.schemas.get(schema_id)
        if found is None:
            raise _contradiction_error(
                f"schema {schema_id} does not exist; there are {sorted(self.schemas)}"
            )
        return schema_of(found)

    def with_schema(self, schema: Schema) -> PaimonOrigin:
        """Return the table with one more schema.

        Raises:
            InvalidChangeError: There is one of that id.
        """
        if schema.id in self.schemas:
            raise _contradiction_error(f"schema {schema.id} exists already")
        return replace(self, schemas={**self.schemas, schema.id: stored_schema(schema)})

    def without_schemas(self, schema_ids: Iterable[int], current: int) -> PaimonOrigin:
        """Return the table without some schemas.

        Raises:
            InvalidChangeError: One does not exist, or is the current one.
        """
        left = dict(self.schemas)
        for each in schema_ids:
            if each == current or left.pop(each, None) is None:
                raise _contradiction_error(
                    f"schema {each} does not exist or is current, and cannot be removed"
                )
        return replace(self, schemas=left)

    def with_source_snapshot(self, snapshot: Snapshot, version: int) -> PaimonOrigin:
        """Return the table with one more snapshot.

        Args:
            snapshot: The snapshot.
            version: The commit that holds it.

        Raises:
            InvalidChangeError: There is one of that id, or its schema does not exist.
        """
        if snapshot.id in self.snapshots or snapshot.id in self.kept:
            raise _contradiction_error(f"snapshot {snapshot.id} exists already")
        self.schema(snapshot.schema_id)
        return self._with_snapshot(snapshot, version)

    def _with_snapshot(self, snapshot: Snapshot, version: int) -> PaimonOrigin:
        return replace(
            self,
            snapshots={**self.snapshots, snapshot.id: snapshot},
            added_in={**self.added_in, snapshot.id: version},
        )

    def promoted(self, version: int) -> PaimonOrigin:
        """Return the table once the ledger owns it.

        Args:
            version: The commit of the promotion.

        Raises:
            InvalidChangeError: The ledger owns it already.
        """
        if self.is_promoted:
            raise _contradiction_error("a table is promoted once")
        return replace(self, promoted_in=version, source_last_id=max(self.snapshots, default=0))

    def next_snapshot_trail(self) -> SnapshotTrail:
        """Return the trail that the ledger's next snapshot continues."""
        return SnapshotTrail(self.current, self.sums)

    def with_own_snapshot(self, trail: SnapshotTrail, version: int) -> PaimonOrigin:
        """Return the table with one more of the ledger's own snapshots.

        Args:
            trail: `next_snapshot_trail`, after it.
            version: The commit that holds it.
        """
        snapshot = trail.snapshot()
        if snapshot is None:
            raise AssertionError("the trail has just been given one")
        return replace(self._with_snapshot(snapshot, version), sums=trail.totals())

    def with_times_clamped(self, latest_millis: int) -> PaimonOrigin:
        """Return the table with the ledger's own snapshots at most as late as a time."""
        if not self.is_promoted:
            return self
        return replace(
            self,
            snapshots=_clamp_snapshot_times(self.snapshots, latest_millis, self.source_last_id),
            kept=_clamp_snapshot_times(self.kept, latest_millis, self.source_last_id),
        )

    def without_expired(self, earliest: int, tagged: Collection[int]) -> PaimonOrigin:
        """Return the table without the snapshots before one, except those that tags keep."""
        gone = {each: it for each, it in self.snapshots.items() if each < earliest}
        return self._replace_snapshots(
            {each: it for each, it in self.snapshots.items() if each >= earliest},
            {**self.kept, **gone},
            tagged,
        )

    def without_snapshots(
        self, snapshot_ids: Collection[int], tagged: Collection[int], version: int
    ) -> PaimonOrigin:
        """Return the table without some snapshots, which a rollback removed.

        Args:
            snapshot_ids: The ids of the snapshots.
            tagged: The ids of those that tags name.
            version: The commit that removes them.

        Raises:
            InvalidChangeError: One does not exist.
        """
        readable_snapshots = self.readable_snapshots
        for each in snapshot_ids:
            if each not in readable_snapshots:
                raise _contradiction_error(f"snapshot {each} does not exist and cannot be removed")
        gone = set(snapshot_ids)
        rolled_back = self.rolled_back_in
        if self.snapshots and max(self.snapshots) in gone:
            rolled_back = {**rolled_back, MAIN: version}
        left = self._replace_snapshots(
            {each: it for each, it in self.snapshots.items() if each not in gone},
            {each: it for each, it in self.kept.items() if each not in gone},
            tagged,
        )
        return replace(left, rolled_back_in=rolled_back)

    def without_untagged_expired(self, tagged: Collection[int]) -> PaimonOrigin:
        """Return the table with only those expired snapshots that tags keep."""
        return self._replace_snapshots(self.snapshots, self.kept, tagged)

    def _replace_snapshots(
        self,
        snapshots: dict[int, Snapshot],
        kept: dict[int, Snapshot],
        tagged: Collection[int],
    ) -> PaimonOrigin:
        kept = {each: it for each, it in kept.items() if each in tagged}
        return replace(
            self,
            snapshots=snapshots,
            kept=kept,
            added_in={
                each: version
                for each, version in self.added_in.items()
                if each in snapshots or each in kept
            },
        )

    def with_branch_files(self, event: PaimonBranchUpdated, version: int) -> PaimonOrigin:
        """Return the table with a branch after an update of its files.

        Args:
            event: The update.
            version: The commit that holds it.

        Raises:
            InvalidChangeError: A file to remove does not exist, the branch of the former name does
                not, or one of the new name does.
        """
        branches, renamed = dict(self.branches), event.renamed_from
        if not isinstance(renamed, UnsetType):
            if renamed not in branches or event.branch_name in branches:
                raise _contradiction_error(
                    f"branch {renamed} cannot be renamed to {event.branch_name}; there are "
                    f"{sorted(branches)}"
                )
            branches[event.branch_name] = branches.pop(renamed)
        files = dict(branches.get(event.branch_name, {}))
        for each in event.removed:
            if files.pop(each, None) is None:
                raise _contradiction_error(f"branch {event.branch_name} has no {each} to remove")
        if not isinstance(event.added, UnsetType):
            files |= event.added
        branches[event.branch_name] = files
        branches = {name: each for name, each in branches.items() if each}
        rolled_back = {
            name: version
            for name, before in self.branches.items()
            if (after := branches.get(name, {})) is not before
            and (newest := _newest_snapshot_path(before)) is not None
            and after.get(newest) != before[newest]
        }
        rolled_back = {**self.rolled_back_in, **rolled_back}
        added = dict.fromkeys(branches.keys() - self.branches.keys(), version)
        added = {**self.branch_added_in, **added}
        return replace(
            self,
            branches=branches,
            branch_added_in={name: it for name, it in added.items() if name in branches},
            rolled_back_in={
                name: it for name, it in rolled_back.items() if name in branches or name == MAIN
            },
        )


_SNAPSHOT_FILE: Final = "snapshot/snapshot-"


def _newest_snapshot_path(files: Iterable[str]) -> str | None:
    """Return the path of the newest snapshot of a branch's files; None without one."""
    ids = _snapshot_ids(files)
    return f"{_SNAPSHOT_FILE}{ids[-1]}" if ids else None


def _snapshot_ids(files: Iterable[str]) -> tuple[int, ...]:
    """Return the ids of the snapshots of a branch's files, oldest first."""
    ids = (each.removeprefix(_SNAPSHOT_FILE) for each in files if each.startswith(_SNAPSHOT_FILE))
    return tuple(sorted(int(each) for each in ids if each.isascii() and each.isdigit()))


def _clamp_snapshot_times(
    snapshots: Mapping[int, Snapshot], latest_millis: int, source_last_id: int
) -> dict[int, Snapshot]:
    return {
        number: evolve(each, time_millis=min(each.time_millis, latest_millis))
        if number > source_last_id
        else each
        for number, each in snapshots.items()
    }


def paimon_totals(snapshot: Snapshot | None) -> Totals:
    """Return the sums after a snapshot, as far as it gives them; unknown ones are -1."""
    if snapshot is None:
        return Totals()
    return Totals(snapshot.total_record_count, UNKNOWN, UNKNOWN)


def _contradiction_error(message: str) -> InvalidChangeError:
    return InvalidChangeError(message, kind="ILLEGAL_STATE")
