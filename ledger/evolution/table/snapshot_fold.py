"""How a snapshot event becomes the Snapshot value that readers see."""

from __future__ import annotations

from typing import TypeVar

from attrs import evolve
from msgspec import UNSET, UnsetType

from ledger.events.snapshot_events import ListingEvent, RolledBack
from ledger.model.errors import InvalidChangeError
from ledger.model.snapshot import Snapshot, Totals

T = TypeVar("T")


def _present(value: T | UnsetType) -> T | None:
    return None if value is UNSET else value


def snapshot_of(event: ListingEvent, time_millis: int) -> Snapshot:
    """Return the snapshot that an event made at that time.

    A rollback is an OVERWRITE that puts older contents back, as Paimon's "as latest" has it.
    """
    if isinstance(event, RolledBack):
        return Snapshot(
            id=event.snapshot_id,
            schema_id=event.schema_id,
            commit_kind="OVERWRITE",
            commit_user=event.commit_user,
            commit_identifier=event.commit_identifier,
            time_millis=time_millis,
            total_record_count=event.total_record_count,
            delta_record_count=event.delta_record_count,
        )
    return Snapshot(
        id=event.snapshot_id,
        schema_id=event.schema_id,
        commit_kind=event.commit_kind,
        commit_user=event.commit_user,
        commit_identifier=event.commit_identifier,
        time_millis=time_millis,
        total_record_count=event.total_record_count,
        delta_record_count=event.delta_record_count,
        base_manifest_list=_present(event.base_manifest_list),
        base_manifest_list_size=_present(event.base_manifest_list_size),
        delta_manifest_list=_present(event.delta_manifest_list),
        delta_manifest_list_size=_present(event.delta_manifest_list_size),
        changelog_manifest_list=_present(event.changelog_manifest_list),
        changelog_manifest_list_size=_present(event.changelog_manifest_list_size),
        index_manifest=_present(event.index_manifest),
        log_offsets=_present(event.log_offsets),
        changelog_record_count=_present(event.changelog_record_count),
        watermark=_present(event.watermark),
        statistics=_present(event.statistics),
        uuid=_present(event.uuid),
        properties=_present(event.snapshot_properties),
        next_row_id=_present(event.next_row_id),
        writer_version=_present(event.writer_version),
        operation=_present(event.operation),
    )


class SnapshotTrail:
    """The snapshot half of a table's builder: the newest event and the running totals."""

    __slots__ = (
        "_before",
        "base",
        "file_count",
        "file_size_in_bytes",
        "last_file_creation_time",
        "last_id",
        "newest",
        "newest_millis",
        "record_count",
    )

    def __init__(self, base: Snapshot | None, totals: Totals) -> None:
        self._before = totals
        self.base = base
        self.newest: ListingEvent | None = None
        self.newest_millis = 0
        self.last_id = base.id if base else 0
        self.record_count = totals.record_count
        self.file_count = totals.file_count
        self.file_size_in_bytes = totals.file_size_in_bytes
        self.last_file_creation_time = totals.last_file_creation_time

    def apply(self, event: ListingEvent, schema_id: int, time_millis: int) -> None:
        """Fold one snapshot in.

        Raises:
            InvalidChangeError: Its id, schema id or total contradicts what came before.
        """
        snapshot_id = event.snapshot_id
        records = self.record_count + event.delta_record_count
        if snapshot_id != self.last_id + 1 or event.schema_id > schema_id:
            raise InvalidChangeError(
                f"snapshot {event.snapshot_id} with schema {event.schema_id} cannot follow "
                f"snapshot {self.last_id} with schema {schema_id}",
                kind="ILLEGAL_STATE",
            )
        if event.total_record_count != records:
            raise InvalidChangeError(
                f"snapshot {event.snapshot_id} says {event.total_record_count} records in total; "
                f"{self.record_count} and its {event.delta_record_count} make {records}",
                kind="ILLEGAL_STATE",
            )
        self.record_count = records
        self.file_count += event.delta_file_count
        self.file_size_in_bytes += event.delta_file_size_in_bytes
        created = event.last_file_creation_time
        if created is not UNSET:
            before = self.last_file_creation_time
            if before is None or created > before:
                self.last_file_creation_time = created
        self.last_id = snapshot_id
        self.newest = event
        self.newest_millis = time_millis

    def snapshot(self) -> Snapshot | None:
        """Return the newest snapshot."""
        if self.newest is None:
            return self.base
        return snapshot_of(self.newest, self.newest_millis)

    def correct(self, latest_millis: int) -> None:
        """Let no snapshot be later than a time."""
        self.newest_millis = min(self.newest_millis, latest_millis)
        if self.base is not None and self.base.time_millis > latest_millis:
            self.base = evolve(self.base, time_millis=latest_millis)

    def totals(self) -> Totals:
        """Return the sums after the newest snapshot."""
        if self.newest is None:
            return self._before
        return Totals(
            self.record_count,
            self.file_size_in_bytes,
            self.file_count,
            self.last_file_creation_time,
        )
