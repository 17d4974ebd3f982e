"""Expiry: which snapshots and refs are too old to keep.

Source: the Iceberg table specification, "Snapshot Retention Policy"; Java's RemoveSnapshots class.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import frozen

from ledger.model.errors import InvalidInputError
from ledger.model.iceberg.snapshot import MAIN, SnapshotRef
from projections.iceberg.committing.heads import ancestors
from projections.iceberg.committing.updates import RemoveSnapshotRef, RemoveSnapshots, TableUpdate
from projections.iceberg.metadata.properties import (
    DEFAULT_MAX_SNAPSHOT_AGE_MS,
    GC_ENABLED,
    MAX_REF_AGE,
    MAX_SNAPSHOT_AGE,
    MIN_SNAPSHOTS_TO_KEEP,
    NEVER_MS,
)
from projections.iceberg.metadata.table import TableMetadata
from projections.iceberg.metadata.wire import truth, whole_number


@frozen
class Retention:
    """What an expiry keeps; None leaves it to the table's properties.

    Attributes:
        older_than_ms: Snapshots made before, in milliseconds since 1970, may go.
        retain_last: At least so many of each branch stay.
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
    """Return the updates that take away what is too old; none if nothing is.

    Args:
        metadata: The table.
        retention: What stays.
        now_ms: The time that ages count from, in milliseconds since 1970.
        snapshot_ids: Snapshots that go in any case.

    Raises:
        InvalidInputError: One of `snapshot_ids` is the head of a ref that stays, `retain_last` is
            below 1, or the table must not lose files (`gc.enabled`).
    """
    if not truth(metadata.properties, GC_ENABLED, default=True):
        raise InvalidInputError(f"{GC_ENABLED} is false: its files may belong to another table")
    rules = _Rules.of(metadata, retention, now_ms)
    refs = {name: ref for name, ref in metadata.refs.items() if rules.keeps(name, ref)}
    heads = {ref.snapshot_id: name for name, ref in refs.items()}
    wanted = set(snapshot_ids)
    for snapshot_id in wanted & heads.keys():
        raise InvalidInputError(f"snapshot {snapshot_id} is the head of {heads[snapshot_id]}")
    kept = {*heads, *_of_branches(rules, refs), *_of_nobody(rules, refs)}
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
class _Rules:
    metadata: TableMetadata
    now_ms: int
    older_than_ms: int
    retain_last: int
    max_ref_age_ms: int

    @classmethod
    def of(cls, metadata: TableMetadata, retention: Retention, now_ms: int) -> _Rules:
        properties = metadata.properties
        age_ms = whole_number(properties, MAX_SNAPSHOT_AGE, DEFAULT_MAX_SNAPSHOT_AGE_MS)
        older_than_ms, last = retention.older_than_ms, retention.retain_last
        if last is not None and last < 1:
            raise InvalidInputError(f"at least one snapshot stays, not {last}")
        return cls(
            metadata,
            now_ms,
            now_ms - age_ms if older_than_ms is None else older_than_ms,
            whole_number(properties, MIN_SNAPSHOTS_TO_KEEP, 1) if last is None else last,
            whole_number(properties, MAX_REF_AGE, NEVER_MS),
        )

    def keeps(self, name: str, ref: SnapshotRef) -> bool:
        """Return whether a ref stays; its age is that of its snapshot."""
        age_ms = self.now_ms - self.metadata.snapshot(ref.snapshot_id).timestamp_ms
        most_ms = self.max_ref_age_ms if ref.max_ref_age_ms is None else ref.max_ref_age_ms
        return name == MAIN or age_ms <= most_ms


def _of_branches(rules: _Rules, refs: Mapping[str, SnapshotRef]) -> Iterator[int]:
    for ref in refs.values():
        if ref.type != "branch":
            continue
        age_ms, least = ref.max_snapshot_age_ms, ref.min_snapshots_to_keep
        cutoff_ms = rules.older_than_ms if age_ms is None else rules.now_ms - age_ms
        for kept, each in enumerate(ancestors(rules.metadata, ref.snapshot_id)):
            enough = kept >= (rules.retain_last if least is None else least)
            # What lies behind the first one that goes is unreachable, however young.
            if enough and each.timestamp_ms < cutoff_ms:
                break
            yield each.snapshot_id


def _of_nobody(rules: _Rules, refs: Mapping[str, SnapshotRef]) -> Iterator[int]:
    reachable = {ref.snapshot_id for ref in refs.values()}
    for ref in refs.values():
        if ref.type == "branch":
            reachable.update(
                each.snapshot_id for each in ancestors(rules.metadata, ref.snapshot_id)
            )
    for each in rules.metadata.snapshots:
        if each.snapshot_id not in reachable and each.timestamp_ms >= rules.older_than_ms:
            yield each.snapshot_id
