"""The event that records a snapshot of Paimon, attribute by attribute."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ledger.events.snapshots import CommittedFacts, SnapshotCommitted
from ledger.model.snapshot import Snapshot

_NOT_RECORDED: Final = {
    *("snapshot_id", "files", "changes", "named_schema_ids", "last_file_creation_time"),
    *("summary", "delta_file_count", "delta_file_size_in_bytes"),
}
_ATTRIBUTES: Final = {
    each: "properties" if each == "snapshot_properties" else each
    for each in CommittedFacts.__struct_fields__
    if each not in _NOT_RECORDED
}
"""The attributes of a snapshot that its event records, by their names in the event."""


def snapshot_facts(snapshot: Snapshot) -> dict[str, Any]:
    """Return the attributes of a snapshot that is set, by the names of its event, without its time.

    Args:
        snapshot: The snapshot.
    """
    values = {name: getattr(snapshot, attribute) for name, attribute in _ATTRIBUTES.items()}
    return {
        name: dict(value) if isinstance(value, Mapping) else value
        for name, value in values.items()
        if value is not None
    }


def snapshot_event(snapshot: Snapshot) -> SnapshotCommitted:
    """Return the event that records a snapshot of an engine, its time included."""
    return SnapshotCommitted(
        snapshot_id=snapshot.id,
        time_millis=snapshot.time_millis,
        **snapshot_facts(snapshot),
    )
