"""Writes of data to a table that engines own, by the library.

A list of files becomes a snapshot of the engines' kind: manifests and a manifest list are written
first, then `addSnapshot` and `setSnapshotRef` are committed as a request of an engine is. On each
state that the commit meets the list is written again for the snapshot that is current then.

Source: the Iceberg table specification, "Optimistic Concurrency".
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any, Final

from attrs import Factory, define
from msgspec.structs import replace

import projections.iceberg.rest_updates as u
from ledger.decide.changes import CommitSnapshot
from ledger.decide.format_rules import refuse_unresolvable_names
from ledger.decide.name_mapping import NAME_MAPPING, learn_names, named_parts
from ledger.decide.snapshots import is_read_by_name, snapshot_listing_facts
from ledger.decide.table_options import MarkedColumns
from ledger.engine_writes import EngineWrites
from ledger.files.snapshot_plan import SnapshotPlan
from ledger.formats import INSTALLED
from ledger.log.request import Appended, CommitOptions
from ledger.model.errors import (
    CommitConflictError,
    InvalidChangeError,
    InvalidInputError,
    NotFoundError,
)
from ledger.model.file_change import FileChange
from ledger.model.iceberg_objects import MAIN, IcebergSnapshot, SnapshotRef
from ledger.model.types import LONG_MAX
from ledger.state.iceberg_origin import IcebergOrigin, summary_after
from ledger.state.stream import AlreadyCommitted
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.iceberg import expiry
from projections.iceberg.engine_files import EngineManifests
from projections.iceberg.position import metadata_folder
from projections.iceberg.rest_commit import decide_update_events
from projections.iceberg.rest_updates import TableUpdate
from projections.iceberg.served import write_ledger_lists
from projections.iceberg.served_branches import (
    branch_head,
    commit_decided,
    delete_branch,
    fast_forward,
    served_origin,
    set_branch,
)
from projections.iceberg.served_files import ManifestFiles
from projections.iceberg.snapshot_writing import SnapshotBase, SnapshotWriter
from projections.iceberg.table_metadata import SEQUENCES_SINCE, TableMetadata

_PROPERTIES: Final = "snapshot_properties"


def commit_snapshot(
    table: TableHandle, plan: SnapshotPlan, options: CommitOptions, *, branch: str | None = None
) -> Appended[TableState]:
    """Commit a snapshot of file changes to main, or to a branch; see `Table.commit_snapshot`.

    Raises:
        InvalidChangeError: A file to add is live, one to delete is not, or engines own the table's
            data no more.
        NotFoundError: The branch does not exist.
        CommitConflictError: A concurrent writer added or removed files that an overwrite concerns,
            or deleted rows of a file to remove.
        UnsupportedError: Iceberg cannot express a file.
    """
    ref = branch or MAIN
    # Before the look-up of the commit id, which reads newer commits.
    seen = table.state if table.log.head is None else table.log.head.state
    asked = ["snapshot", _without_personal_values(table, plan), *([] if branch is None else [ref])]
    key = plan.key
    if key is not None and "commit_id" not in options:
        # As the key of a ledger's snapshot, it is found even once the snapshot expired.
        options = {**options, "commit_id": f"{ref}:{key}", "asked": ["snapshotKey", ref, key]}
    found = table.committed_before(options.get("commit_id"), options.get("asked", asked))
    if found is not None:
        return found
    snapshot_id = _snapshot_id_of(table, ref, key)
    return commit_decided(
        table, asked, lambda: _SnapshotCommit(table, plan, ref, snapshot_id, seen).decide, options
    )


def _without_personal_values(table: TableHandle, plan: SnapshotPlan) -> SnapshotPlan:
    head = table.state if table.log.head is None else table.log.head.state
    return plan.without_values(head, head.schema)


def _snapshot_id_of(table: TableHandle, ref: str, key: str | None) -> int:
    """Return a random 63-bit snapshot id; for a snapshot with a key, the same one each time."""
    if key is None:
        return secrets.randbelow(LONG_MAX) + 1
    digest = hashlib.sha256(f"{table.location}\n{ref}\n{key}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1 or 1


@define
class _SnapshotCommit:
    """One request of `commit_snapshot`, decided on each state that it meets.

    Attributes:
        table: The table.
        plan: The requested snapshot.
        ref: The branch.
        snapshot_id: The id of its snapshot.
        seen: The state that the writer saw.
        first: The change as decided first, on that state if it allows the change.
        known_deletes: The paths of the delete files of the state of `first`.
    """

    table: TableHandle
    plan: SnapshotPlan
    ref: str
    snapshot_id: int
    seen: TableState
    first: CommitSnapshot | None = None
    known_deletes: frozenset[str] = frozenset()
    _writer: SnapshotWriter = Factory(
        lambda self: SnapshotWriter(self.table, self.snapshot_id), takes_self=True
    )

    def decide(self, state: TableState) -> Any:
        """Return the events of the snapshot on a state."""
        origin = served_origin(state)
        if self.snapshot_id in origin.snapshots:
            return AlreadyCommitted(origin.added_in[self.snapshot_id])
        if self.first is None and self.seen.version != state.version and self._removes_files:
            self._decide_on_seen()
        head, manifests, parent, files = self._files_on(state)
        change = self._change_on(state, files, parent)
        mapping = _checked_name_mapping(self.table, state, change)
        now_ms = self.table.setting.now_millis()

        def updates(before: TableMetadata) -> list[TableUpdate]:
            added = [each for each in change.files if each.kind == "ADD"]
            removed = [each for each in change.files if each.kind == "DELETE"]
            properties = change.facts.get(_PROPERTIES) or {}
            summary = summary_after(parent, change.files, change.commit_kind, properties)
            snapshot = _new_snapshot(self.snapshot_id, before, parent, summary, now_ms)
            base = snapshot_base(state, manifests, parent)
            made = self._writer.with_changes(snapshot, base, added, files.holders(removed))
            return [*mapping, *_ref_updates(made, self.ref, head)]

        return decide_update_events(state, self.table.location, updates, now_ms=now_ms)

    @property
    def _removes_files(self) -> bool:
        return bool(self.plan.delete) or self.plan.where is not None

    def _decide_on_seen(self) -> None:
        """Set `first`, unless the state that the writer saw does not allow the change.

        Raises:
            CommitConflictError: The manifests of that state were deleted since then.
        """
        with suppress(InvalidInputError, NotFoundError):
            branch_head(served_origin(self.seen), self.ref)
            try:
                _, _, parent, files = self._files_on(self.seen)
            except NotFoundError as error:
                version = self.seen.version
                raise CommitConflictError(
                    f"the files of version {version}, which this writer has read, are not known "
                    f"any more: {error}; read the table again and retry",
                    "files",
                    version,
                ) from error
            self._change_on(self.seen, files, parent)

    def _files_on(
        self, state: TableState
    ) -> tuple[SnapshotRef | None, EngineManifests, IcebergSnapshot | None, ManifestFiles]:
        """Return the branch's ref on a state, its manifests, newest snapshot and live files."""
        origin = served_origin(state)
        head = branch_head(origin, self.ref)
        manifests = EngineManifests.of(self.table, state)
        parent = None if head is None else origin.snapshots[head.snapshot_id]
        return head, manifests, parent, ManifestFiles.of(self.table, manifests, parent)

    def _change_on(
        self, state: TableState, files: ManifestFiles, parent: IcebergSnapshot | None
    ) -> CommitSnapshot:
        """Return the changes of files on a state; an overwrite removes what its writer saw.

        Raises:
            InvalidChangeError, CommitConflictError: See `commit_snapshot`.
        """
        plan, unknown = self.plan, self.plan.facts.keys() - {_PROPERTIES}
        if unknown:
            raise InvalidChangeError(
                f"a snapshot of Iceberg has no {min(unknown)}, and engines own the table: leave "
                f"that out, or put it into {_PROPERTIES}"
            )
        try:
            change = plan.on(state, files, lambda _: None, _without_bounds, lambda listed: listed)
        except InvalidChangeError as error:
            if self.first is None:
                raise
            version = _version_of(state, parent)
            said = f"{error} (it was possible before version {version})"
            raise CommitConflictError(said, "files", version) from error
        change = replace(change, files=change.written)
        if self.first is None:
            self.first = change
            if self._removes_files:
                self.known_deletes = frozenset(each.path for each in files.delete_files())
            return change
        version = _version_of(state, parent)
        if plan.where is not None:
            change = _overwrite_of_seen(self.first, change, version)
        removed = (each for each in change.files if each.kind == "DELETE")
        delete = files.find_new_delete(removed, self.known_deletes, state)
        if delete is not None:
            raise _row_delete_conflict_error(delete.path, version)
        return change


def _overwrite_of_seen(
    first: CommitSnapshot, change: CommitSnapshot, version: int
) -> CommitSnapshot:
    """Return an overwrite that removes only the files that its writer saw.

    Raises:
        CommitConflictError: The files that it concerns are others by now.
    """
    seen, now = (
        {each.path for each in it.files if each.kind == "DELETE"} for it in (first, change)
    )
    touched = seen - now
    if change.isolation == "serializable":
        touched |= now - seen
    if touched:
        raise _overwrite_conflict_error(min(touched), version)
    kept = tuple(e for e in change.files if e.kind == "ADD" or e.path in seen)
    return replace(change, files=kept, written=kept)


def _version_of(state: TableState, snapshot: IcebergSnapshot | None) -> int:
    """Return the version that added a snapshot, which is the newest of a branch."""
    origin = state.origin_of_kind(IcebergOrigin)
    return state.version if snapshot is None else origin.added_in[snapshot.snapshot_id]


def _overwrite_conflict_error(path: str, version: int) -> CommitConflictError:
    subject = f"file {path}"
    return CommitConflictError(
        f"{subject} was added or removed by another writer up to version {version}, in the "
        "partitions that this overwrites; read the table again and retry",
        subject,
        version,
    )


def _row_delete_conflict_error(path: str, version: int) -> CommitConflictError:
    subject = f"file {path}"
    return CommitConflictError(
        f"{subject}, which another writer added up to version {version}, deletes rows of a data "
        "file that this removes; read the table again and retry",
        subject,
        version,
    )


def _without_bounds(state: TableState, files: Sequence[FileChange]) -> Sequence[FileChange]:
    """Return files without the bounds of personal columns, which no manifest could erase."""
    marked = MarkedColumns.of(state.schema) if state.keeps_outside else None
    if marked is None:
        return files
    return [replace(marked.without(each, None), partition=each.partition) for each in files]


def rollback(
    table: TableHandle,
    snapshot: int | None,
    tag: str | None,
    options: CommitOptions,
    *,
    branch: str | None = None,
) -> Appended[TableState]:
    """Commit a snapshot with the data of an older one; see `Table.rollback`.

    Its manifest list names the manifests of the older snapshot.

    Raises:
        NotFoundError: The snapshot, the tag or the branch does not exist.
        InvalidChangeError: The branch does not have the snapshot, or engines own the table's data
            no more.
    """
    ref, writer = branch or MAIN, SnapshotWriter(table, _snapshot_id_of(table, "", None))

    def decide(state: TableState) -> Any:
        origin = served_origin(state)
        if writer.snapshot_id in origin.snapshots:
            return AlreadyCommitted(origin.added_in[writer.snapshot_id])
        target_id = state.tag(tag).snapshot_id if tag is not None else snapshot
        target = origin.snapshots.get(-1 if target_id is None else target_id)
        head = branch_head(origin, ref)
        if target is None or head is None:
            raise NotFoundError(
                f"snapshot {target_id} does not exist or was expired; there are "
                f"{origin.readable_range_text(state)}"
            )
        if branch is not None and target_id not in origin.snapshot_lineage(head.snapshot_id):
            raise NotFoundError(f"branch {ref!r} does not have snapshot {target_id}")
        manifests = EngineManifests.of(table, state)
        parent = origin.snapshots[head.snapshot_id]
        changes = _difference(manifests, parent, target)
        now_ms = table.setting.now_millis()

        def updates(before: TableMetadata) -> list[TableUpdate]:
            summary = summary_after(parent, changes, "OVERWRITE", {})
            made = _new_snapshot(writer.snapshot_id, before, parent, summary, now_ms)
            base = snapshot_base(state, manifests, parent)
            made = writer.with_content_of(made, base, target)
            return list(_ref_updates(made, ref, head))

        return decide_update_events(state, table.location, updates, now_ms=now_ms)

    asked = ["rollback", snapshot, tag] if branch is None else ["rollbackBranch", ref, snapshot]
    return commit_decided(table, asked, lambda: decide, options)


def _difference(
    manifests: EngineManifests, before: IcebergSnapshot, after: IcebergSnapshot
) -> tuple[FileChange, ...]:
    older = {each.path: each for each in manifests.files(before)}
    newer = {each.path: each for each in manifests.files(after)}
    gone = (replace(each, kind="DELETE") for path, each in older.items() if path not in newer)
    return (*gone, *(each for path, each in newer.items() if path not in older))


def snapshot_base(
    state: TableState, manifests: EngineManifests, parent: IcebergSnapshot | None
) -> SnapshotBase:
    """Return the table as a new snapshot meets it."""
    origin = manifests.origin
    folder = metadata_folder(state.schema.options, origin.location)
    return SnapshotBase(manifests, parent, folder, origin.next_row_id)


def _new_snapshot(
    snapshot_id: int,
    before: TableMetadata,
    parent: IcebergSnapshot | None,
    summary: dict[str, str],
    now_ms: int,
) -> IcebergSnapshot:
    """Return a snapshot without its manifest list and row ids."""
    sequenced = before.format_version >= SEQUENCES_SINCE
    return IcebergSnapshot(
        snapshot_id=snapshot_id,
        parent_snapshot_id=None if parent is None else parent.snapshot_id,
        sequence_number=before.last_sequence_number + 1 if sequenced else 0,
        timestamp_ms=max(now_ms, before.last_updated_ms),
        summary=summary,
        schema_id=before.current_schema_id,
    )


def _ref_updates(
    snapshot: IcebergSnapshot, name: str, head: SnapshotRef | None
) -> Iterator[TableUpdate]:
    yield u.AddSnapshot(snapshot=snapshot)
    ref = SnapshotRef(snapshot_id=snapshot.snapshot_id, type="branch")
    moved = ref if head is None else replace(head, snapshot_id=snapshot.snapshot_id)
    yield expiry.set_ref(name, moved)


def _checked_name_mapping(
    table: TableHandle, state: TableState, change: CommitSnapshot
) -> list[TableUpdate]:
    """Check a snapshot's files, as of a table that the ledger owns; return a new name mapping.

    Raises:
        InvalidChangeError: A file is named twice, or does not fit the table.
        FormatError: Iceberg cannot express a file.
    """
    schema, files = state.schema, change.files
    snapshot_listing_facts(
        state, change, INSTALLED, snapshot_id=1, schema_id=schema.id, before=state.totals
    )
    if files:
        refuse_unresolvable_names(schema, files, state, table.past, INSTALLED)
    used = {each.schema_id for each in files if is_read_by_name(each)}
    named = state.origin.schemas_to_map(used, schema)
    text = schema.options.get(NAME_MAPPING)
    found = learn_names(text, map(named_parts, named)) if named else text
    if found is None or found == text:
        return []
    return [u.SetProperties(updates={NAME_MAPPING: found})]


def live_files(table: TableHandle, state: TableState) -> ManifestFiles:
    """Return the live files of the newest snapshot of main."""
    manifests = EngineManifests.of(table, state)
    return ManifestFiles.of(table, manifests, manifests.origin.current)


WRITES: Final = EngineWrites(
    commit_snapshot=commit_snapshot,
    rollback=rollback,
    set_branch=set_branch,
    delete_branch=delete_branch,
    fast_forward=fast_forward,
    live_files=live_files,
    prepare=write_ledger_lists,
)
"""Writes of the library to tables whose data Iceberg's engines commit."""
