"""Branches and tags: the updates that create and move them, and which snapshot was current when.

Source: the Iceberg table specification, "Point in Time Reads"; Java's ManageSnapshots interface and
its implementations, and SnapshotUtil.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from ledger.model.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from ledger.model.iceberg.snapshot import MAIN, IcebergSnapshot, SnapshotRef
from projections.iceberg.committing.updates import RemoveSnapshotRef, SetSnapshotRef
from projections.iceberg.metadata.table import TableMetadata


def set_ref(name: str, ref: SnapshotRef) -> SetSnapshotRef:
    """Return the update that makes a ref what is given."""
    values = msgspec.structs.asdict(ref)
    return SetSnapshotRef(ref_name=name, **values)


def create_ref(metadata: TableMetadata, name: str, ref: SnapshotRef) -> SetSnapshotRef:
    """Return the update that creates a branch or tag.

    Raises:
        AlreadyExistsError: The name is taken.
        NotFoundError: There is no such snapshot.
    """
    if name in metadata.refs:
        raise AlreadyExistsError(f"{name} is a {metadata.refs[name].type} of the table")
    metadata.snapshot(ref.snapshot_id)
    return set_ref(name, ref)


def remove_ref(metadata: TableMetadata, name: str) -> RemoveSnapshotRef:
    """Return the update that removes a branch or tag other than `main`.

    Raises:
        NotFoundError: There is none of that name.
        InvalidInputError: It is `main`.
    """
    if name == MAIN:
        raise InvalidInputError("main cannot be removed")
    _ref(metadata, name)
    return RemoveSnapshotRef(ref_name=name)


def set_current_snapshot(metadata: TableMetadata, snapshot_id: int) -> SetSnapshotRef:
    """Return the update that moves `main` to any snapshot.

    Raises:
        NotFoundError: There is no such snapshot.
    """
    metadata.snapshot(snapshot_id)
    return _moved(metadata, MAIN, snapshot_id)


def rollback_to(metadata: TableMetadata, snapshot_id: int) -> SetSnapshotRef:
    """Return the update that moves `main` back to an ancestor of its head.

    Raises:
        NotFoundError: There is no such snapshot.
        InvalidInputError: It is not an ancestor.
    """
    metadata.snapshot(snapshot_id)
    current = metadata.current_snapshot_id
    if current is None or not is_ancestor(metadata, snapshot_id, of=current):
        raise InvalidInputError(
            f"snapshot {snapshot_id} is not an ancestor of the current one, {current}"
        )
    return _moved(metadata, MAIN, snapshot_id)


def rollback_to_time(metadata: TableMetadata, timestamp_ms: int) -> SetSnapshotRef:
    """Return the update that moves `main` back to its newest ancestor made before a time.

    Raises:
        NotFoundError: None was made before.
    """
    current = metadata.current_snapshot_id
    behind = () if current is None else ancestors(metadata, current)
    past = [each for each in behind if each.timestamp_ms < timestamp_ms]
    if not past:
        raise NotFoundError(f"no ancestor of the current snapshot is older than {timestamp_ms}")
    newest = max(past, key=lambda each: each.timestamp_ms)
    return _moved(metadata, MAIN, newest.snapshot_id)


def fast_forward(metadata: TableMetadata, name: str, to: str) -> SetSnapshotRef:
    """Return the update that moves a branch, or creates it, to where another ref is.

    Raises:
        NotFoundError: There is no such ref to move to.
        InvalidInputError: The branch has snapshots that the other ref has not, or is a tag.
    """
    target = _ref(metadata, to).snapshot_id
    moved = metadata.refs.get(name)
    if moved is None:
        return set_ref(name, SnapshotRef(snapshot_id=target, type="branch"))
    if moved.type != "branch" or not is_ancestor(metadata, moved.snapshot_id, of=target):
        raise InvalidInputError(f"{name} is not a branch whose head lies behind {to}")
    return _moved(metadata, name, target)


def _moved(metadata: TableMetadata, name: str, snapshot_id: int) -> SetSnapshotRef:
    ref = metadata.refs.get(name) or SnapshotRef(snapshot_id=snapshot_id, type="branch")
    return set_ref(name, msgspec.structs.replace(ref, snapshot_id=snapshot_id))


def _ref(metadata: TableMetadata, name: str) -> SnapshotRef:
    found = metadata.refs.get(name)
    if found is None:
        raise NotFoundError(f"the table has no branch or tag {name}")
    return found


def snapshot_id_as_of(metadata: TableMetadata, timestamp_ms: int) -> int:
    """Return the snapshot that was current at a time, in milliseconds since 1970.

    It is the one of the log's newest entry that is not younger; of entries of the same time, the
    first. The log need not be in order, and only the log knows of rollbacks.

    Raises:
        NotFoundError: The log begins later.
    """
    past = [each for each in metadata.snapshot_log if each.timestamp_ms <= timestamp_ms]
    if not past:
        first = metadata.snapshot_log[0].timestamp_ms if metadata.snapshot_log else "nowhere"
        raise NotFoundError(f"no snapshot as of {timestamp_ms}; the log begins at {first}")
    return max(past, key=lambda entry: entry.timestamp_ms).snapshot_id


def ancestors(metadata: TableMetadata, snapshot_id: int) -> Iterator[IcebergSnapshot]:
    """Yield a snapshot and what lies behind it, newest first, until an expired parent."""
    known = metadata.snapshots_by_id
    seen: set[int] = set()
    following: int | None = snapshot_id
    while following is not None and following in known and following not in seen:
        seen.add(following)
        yield known[following]
        following = known[following].parent_snapshot_id


def is_ancestor(metadata: TableMetadata, snapshot_id: int, of: int) -> bool:
    """Return whether a snapshot is `of` itself or lies behind it."""
    return any(each.snapshot_id == snapshot_id for each in ancestors(metadata, of))
