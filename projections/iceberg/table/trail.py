"""Trail: the parts of a table's metadata that grow with its history, as rendered JSON.

One more version takes them from the metadata file before it as they stand there, so that it costs
the bytes themselves and nothing for what they say.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from attrs import Factory, define

from ledger.model.iceberg.snapshot import IcebergSnapshot, MetadataLogEntry, SnapshotLogEntry
from projections.iceberg.metadata.schema import Schema
from projections.iceberg.metadata.schema_json import schema_from_json, schema_to_json
from projections.iceberg.metadata.table import TableMetadata
from projections.iceberg.metadata.table_json import write_metadata

_Raw = msgspec.Raw
_encode = msgspec.json.encode


class _Grown(msgspec.Struct, rename="kebab"):
    """The keys of a metadata file that a trail takes over."""

    last_updated_ms: int
    current_schema_id: int
    schemas: list[_Raw]
    snapshots: list[_Raw]
    snapshot_log: list[SnapshotLogEntry]
    metadata_log: list[MetadataLogEntry]


class _Numbered(msgspec.Struct, rename="kebab"):
    snapshot_id: int


class _Timed(msgspec.Struct, rename="kebab"):
    timestamp_ms: int


class _Rows(msgspec.Struct, rename="kebab"):
    first_row_id: int | None = None


class _Schema(msgspec.Struct, rename="kebab"):
    schema_id: int


@define
class Trail:
    """Schemas, snapshots and logs, oldest first.

    Attributes:
        last_updated_ms: When the newest version was committed.
        schema_id: The current schema's id.
        schemas: By id.
        snapshots: By id.
        snapshot_log: Which snapshot was current since when.
        metadata_log: The metadata files before the newest.
    """

    last_updated_ms: int = 0
    schema_id: int = 0
    schemas: dict[int, bytes] = Factory(dict)
    snapshots: dict[int, bytes] = Factory(dict)
    snapshot_log: list[SnapshotLogEntry] = Factory(list)
    metadata_log: list[MetadataLogEntry] = Factory(list)

    @classmethod
    def of(cls, body: bytes) -> Trail:
        """Return what a metadata file that the ledger projected holds."""
        grown = msgspec.json.decode(body, type=_Grown)
        schema_id, snapshot_id = msgspec.json.Decoder(_Schema), msgspec.json.Decoder(_Numbered)
        return cls(
            last_updated_ms=grown.last_updated_ms,
            schema_id=grown.current_schema_id,
            schemas={schema_id.decode(each).schema_id: bytes(each) for each in grown.schemas},
            snapshots={
                snapshot_id.decode(each).snapshot_id: bytes(each) for each in grown.snapshots
            },
            snapshot_log=grown.snapshot_log,
            metadata_log=grown.metadata_log,
        )

    @property
    def schema_body(self) -> bytes:
        """The current schema."""
        return self.schemas[self.schema_id]

    def schema(self, schema_id: int) -> Schema:
        """Return one of the schemas."""
        return schema_from_json(msgspec.json.decode(self.schemas[schema_id]))

    def add_schema(self, schema: Schema) -> None:
        """Make a schema current; one with the same content stays under the id that it has."""
        body = _encode(schema_to_json(schema))
        content = _content(body)
        for known_id, known in self.schemas.items():
            if _content(known) == content:
                self.schema_id = known_id
                return
        self.schemas[schema.schema_id] = body
        self.schema_id = schema.schema_id

    def add_snapshot(self, snapshot: IcebergSnapshot) -> None:
        """Add a snapshot that is not in the log yet."""
        self.snapshots[snapshot.snapshot_id] = _encode(snapshot)

    def timestamp_ms(self, snapshot_id: int) -> int:
        """Return when a snapshot was made, one that is not dropped."""
        return msgspec.json.decode(self.snapshots[snapshot_id], type=_Timed).timestamp_ms

    def has_row_ids(self, snapshot_id: int) -> bool:
        """Whether the rows of a snapshot, one that is not dropped, have ids."""
        body = self.snapshots.get(snapshot_id)
        return body is not None and msgspec.json.decode(body, type=_Rows).first_row_id is not None

    def log_snapshot(self, snapshot_id: int, timestamp_ms: int) -> None:
        """Log the snapshot that is current after a commit."""
        self.snapshot_log.append(SnapshotLogEntry(timestamp_ms, snapshot_id))

    def correct_clock(self, latest_ms: int) -> None:
        """Let nothing so far be later than a time: readers refuse logs whose times go back."""
        self.last_updated_ms = min(self.last_updated_ms, latest_ms)
        for snapshot_id, body in self.snapshots.items():
            keys: dict[str, Any] = msgspec.json.decode(body, type=dict[str, _Raw])
            if int(bytes(keys["timestamp-ms"])) > latest_ms:
                keys["timestamp-ms"] = latest_ms
                self.snapshots[snapshot_id] = _encode(keys)
        self.snapshot_log = [
            SnapshotLogEntry(min(each.timestamp_ms, latest_ms), each.snapshot_id)
            for each in self.snapshot_log
        ]
        self.metadata_log = [
            MetadataLogEntry(min(each.timestamp_ms, latest_ms), each.metadata_file)
            for each in self.metadata_log
        ]

    def drop_snapshots(self, is_kept: Callable[[int], bool]) -> None:
        """Take away expired snapshots, and the log up to the last one of them."""
        gone = [each for each in self.snapshots if not is_kept(each)]
        if not gone:
            return
        for each in gone:
            del self.snapshots[each]
        log = self.snapshot_log
        gaps = [n for n, each in enumerate(log, 1) if each.snapshot_id not in self.snapshots]
        self.snapshot_log = log[gaps[-1] :] if gaps else log

    def log_metadata(self, file: str, most: int) -> None:
        """Log the metadata file that was the newest until now."""
        self.metadata_log.append(MetadataLogEntry(self.last_updated_ms, file))
        del self.metadata_log[: -max(1, most)]

    def render(self, metadata: TableMetadata) -> bytes:
        """Return a metadata file: what is given, with the schemas and snapshots of the trail."""
        # A dict of Raw keeps the order of keys, and what stands in each as it is.
        file: dict[str, Any] = msgspec.json.decode(write_metadata(metadata), type=dict[str, _Raw])
        if "schema" in file:
            file["schema"] = _Raw(self.schema_body)
        file["schemas"] = _list(self.schemas)
        file["snapshots"] = _list(self.snapshots)
        return _encode(file)


def _list(bodies: dict[int, bytes]) -> msgspec.Raw:
    return _Raw(b"[" + b",".join(bodies.values()) + b"]")


def _content(body: bytes) -> bytes:
    """Return what stands in a schema behind its type and its id."""
    return body.split(b",", 2)[2]
