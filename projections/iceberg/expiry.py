"""Expiry of snapshots and refs by Iceberg's rules.

Source: the Iceberg table specification, "Snapshot Retention Policy"; Java's RemoveSnapshots class.

Source: the Iceberg table specification, "Point in Time Reads"; Java's ManageSnapshots interface and
its implementations, and SnapshotUtil.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

import msgspec
from attrs import frozen

from ledger.model.errors import AlreadyExistsError, InvalidInputError, NotFoundError
from ledger.model.iceberg_objects import MAIN, IcebergSnapshot, SnapshotRef
from projections.iceberg.rest_updates import (
    RemoveSnapshotRef,
    RemoveSnapshots,
    SetSnapshotRef,
    TableUpdate,
)
from projections.iceberg.schema_json import boolean_property, integer_property
from projections.iceberg.table_metadata import (
    DEFAULT_MAX_SNAPSHOT_AGE_MS,
    GC_ENABLED,
    MAX_REF_AGE,
    MAX_SNAPSHOT_AGE,
    MIN_SNAPSHOTS_TO_KEEP,
    NEVER_MS,
    TableMetadata,
)


def set_ref(name: str, ref: SnapshotRef) -> SetSnapshotRef:
    """Return the update that sets a ref's properties."""
    values = msgspec.structs.asdict(ref)
    return SetSnapshotRef(ref_name=name, **values)


def create_ref(metadata: TableMetadata, name: str, ref: SnapshotRef) -> SetSnapshotRef:
    """Return the update that creates a branch or tag.

    Raises:
        AlreadyExistsError: The name is taken.
        NotFoundError: There is no such snapshot.
    """
    if name in metadata.refs:
        raise AlreadyExistsError(f"the table has a {metadata.refs[name].type} {name} already")
    metadata.snapshot(ref.snapshot_id)
    return set_ref(name, ref)


def remove_ref(metadata: TableMetadata, name: str) -> RemoveSnapshotRef:
    """Return the update that removes a branch or tag other than `main`.

    Raises:
        NotFoundError: No branch or tag has that name.
        InvalidInputError: It is `main`.
    """
    if name == MAIN:
        raise InvalidInputError("main cannot be removed")
    _existing_ref(metadata, name)
    return RemoveSnapshotRef(ref_name=name)


def set_current_snapshot(metadata: TableMetadata, snapshot_id: int) -> SetSnapshotRef:
    """Return the update that moves `main` to any snapshot.

    Raises:
        NotFoundError: There is no such snapshot.
    """
    metadata.snapshot(snapshot_id)
    return _move_ref_update(metadata, MAIN, snapshot_id)


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
    return _move_ref_update(metadata, MAIN, snapshot_id)


def rollback_to_time(metadata: TableMetadata, timestamp_ms: int) -> SetSnapshotRef:
    """Return the update that moves `main` back to its newest ancestor made before a time.

    Raises:
        NotFoundError: No ancestor is that old.
    """
    current = metadata.current_snapshot_id
    behind = () if current is None else ancestors(metadata, current)
    past = [each for each in behind if each.timestamp_ms < timestamp_ms]
    if not past:
        raise NotFoundError(f"no ancestor of the current snapshot is older than {timestamp_ms}")
    newest = max(past, key=lambda each: each.timestamp_ms)
    return _move_ref_update(metadata, MAIN, newest.snapshot_id)


def fast_forward(metadata: TableMetadata, name: str, to: str) -> SetSnapshotRef:
    """Return the update that moves or creates a branch at the snapshot of another ref.

    Raises:
        NotFoundError: No ref has that name.
        InvalidInputError: The branch is not an ancestor of the other ref, or is a tag.
    """
    target = _existing_ref(metadata, to).snapshot_id
    moved = metadata.refs.get(name)
    if moved is None:
        return set_ref(name, SnapshotRef(snapshot_id=target, type="branch"))
    if moved.type != "branch" or not is_ancestor(metadata, moved.snapshot_id, of=target):
        raise InvalidInputError(f"{name} is not a branch whose head is an ancestor of {to}")
    return _move_ref_update(metadata, name, target)


def _move_ref_update(metadata: TableMetadata, name: str, snapshot_id: int) -> SetSnapshotRef:
    ref = metadata.refs.get(name) or SnapshotRef(snapshot_id=snapshot_id, type="branch")
    return set_ref(name, msgspec.structs.replace(ref, snapshot_id=snapshot_id))


def _existing_ref(metadata: TableMetadata, name: str) -> SnapshotRef:
    found = metadata.refs.get(name)
    if found is None:
        raise NotFoundError(f"the table has no branch or tag {name}")
    return found


def snapshot_id_as_of(metadata: TableMetadata, timestamp_ms: int) -> int:
    """Return the snapshot that was current at a time, in milliseconds since 1970.

    It is that of the newest log entry at or before the time; of entries of the same time, the
    first. The log need not be in order, and only the log records rollbacks.

    Raises:
        NotFoundError: The log begins later.
    """
    past = [each for each in metadata.snapshot_log if each.timestamp_ms <= timestamp_ms]
    if not past:
        first = metadata.snapshot_log[0].timestamp_ms if metadata.snapshot_log else "nowhere"
        raise NotFoundError(f"no snapshot as of {timestamp_ms}; the log begins at {first}")
    return max(past, key=lambda entry: entry.timestamp_ms).snapshot_id


def ancestors(metadata: TableMetadata, snapshot_id: int) -> Iterator[IcebergSnapshot]:
    """Yield a snapshot and its ancestors, newest first, up to an expired parent."""
    known = metadata.snapshots_by_id
    seen: set[int] = set()
    following: int | None = snapshot_id
    while following is not None and following in known and following not in seen:
        seen.add(following)
        yield known[following]
        following = known[following].parent_snapshot_id


def is_ancestor(metadata: TableMetadata, snapshot_id: int, of: int) -> bool:
    """Return whether a snapshot is `of` or one of its ancestors."""
    return any(each.snapshot_id == snapshot_id for each in ancestors(metadata, of))


@frozen
class Retention:
    """Retention rules of an expiry; None takes the table's properties.

    Attributes:
        older_than_ms: Snapshots made before may expire, in milliseconds since 1970.
        retain_last: The least number of snapshots kept on each branch.
    """

    older_than_ms: int | None = None
    retain_last: int | None = None


def expiring(
    metadata: TableMetadata,
    retention: Retention,
    *,
    now_ms: int,
    snapshot_ids: Iterable[int] = (),
) -> list[TableUpdate]:
    """Return the updates that remove expired snapshots and refs; none if there are none.

    Args:
        metadata: The table's metadata.
        retention: The retention rules.
        now_ms: The time from which ages count, in milliseconds since 1970.
        snapshot_ids: Snapshots to remove in any case.

    Raises:
        InvalidInputError: One of `snapshot_ids` is the head of a kept ref, `retain_last` is
            below 1, or the table's files must not be deleted (`gc.enabled`).
    """
    if not boolean_property(metadata.properties, GC_ENABLED, default=True):
        raise InvalidInputError(f"{GC_ENABLED} is false: its files may belong to another table")
    rules = _RetentionLimits.of(metadata, retention, now_ms)
    refs = {name: ref for name, ref in metadata.refs.items() if rules.keeps_ref(name, ref)}
    heads = {ref.snapshot_id: name for name, ref in refs.items()}
    wanted = set(snapshot_ids)
    for snapshot_id in wanted & heads.keys():
        raise InvalidInputError(f"snapshot {snapshot_id} is the head of {heads[snapshot_id]}")
    kept = {
        *heads,
        *_snapshots_kept_by_branches(rules, refs),
        *_recent_unreachable_snapshots(rules, refs),
    }
    gone = tuple(
        each.snapshot_id
        for each in metadata.snapshots
        if each.snapshot_id not in kept or each.snapshot_id in wanted
    )
    removed: list[TableUpdate] = [
        RemoveSnapshotRef(ref_name=name) for name in metadata.refs if name not in refs
    ]
    return [*removed, RemoveSnapshots(snapshot_ids=gone)] if gone else removed


@frozen
class _RetentionLimits:
    metadata: TableMetadata
    now_ms: int
    older_than_ms: int
    retain_last: int
    max_ref_age_ms: int

    @classmethod
    def of(cls, metadata: TableMetadata, retention: Retention, now_ms: int) -> _RetentionLimits:
        properties = metadata.properties
        age_ms = integer_property(properties, MAX_SNAPSHOT_AGE, DEFAULT_MAX_SNAPSHOT_AGE_MS)
        older_than_ms, last = retention.older_than_ms, retention.retain_last
        if last is not None and last < 1:
            raise InvalidInputError(f"retain_last is {last}: at least one snapshot must be kept")
        return cls(
            metadata,
            now_ms,
            now_ms - age_ms if older_than_ms is None else older_than_ms,
            integer_property(properties, MIN_SNAPSHOTS_TO_KEEP, 1) if last is None else last,
            integer_property(properties, MAX_REF_AGE, NEVER_MS),
        )

    def keeps_ref(self, name: str, ref: SnapshotRef) -> bool:
        """Return whether a ref is kept; its age is that of its snapshot."""
        age_ms = self.now_ms - self.metadata.snapshot(ref.snapshot_id).timestamp_ms
        most_ms = self.max_ref_age_ms if ref.max_ref_age_ms is None else ref.max_ref_age_ms
        return name == MAIN or age_ms <= most_ms


def _snapshots_kept_by_branches(
    rules: _RetentionLimits, refs: Mapping[str, SnapshotRef]
) -> Iterator[int]:
    for ref in refs.values():
        if ref.type != "branch":
            continue
        age_ms, least = ref.max_snapshot_age_ms, ref.min_snapshots_to_keep
        cutoff_ms = rules.older_than_ms if age_ms is None else rules.now_ms - age_ms
        for kept, each in enumerate(ancestors(rules.metadata, ref.snapshot_id)):
            enough = kept >= (rules.retain_last if least is None else least)
            # Ancestors of the first expired one are unreachable, however young.
            if enough and each.timestamp_ms < cutoff_ms:
                break
            yield each.snapshot_id


def _recent_unreachable_snapshots(
    rules: _RetentionLimits, refs: Mapping[str, SnapshotRef]
) -> Iterator[int]:
    reachable = {ref.snapshot_id for ref in refs.values()}
    for ref in refs.values():
        if ref.type == "branch":
            reachable.update(
                each.snapshot_id for each in ancestors(rules.metadata, ref.snapshot_id)
            )
    for each in rules.metadata.snapshots:
        if each.snapshot_id not in reachable and each.timestamp_ms >= rules.older_than_ms:
            yield each.snapshot_id
