"""A table's state as a record, for checkpoints; and TableStream, which the log folds tables with.

A record is a cache: another fold version's is ignored, and any can be made again from the log.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ledger.events import TableEvent
from ledger.events.commit import OLDEST_FORMAT
from ledger.evolution.state import TableState
from ledger.evolution.table.born import BornTable
from ledger.evolution.table_builder import TableBuilder
from ledger.model.clock_correction import ClockCorrection
from ledger.model.partition import FIRST_PARTITION_FIELD_ID, PartitionSpec, SortOrder
from ledger.model.schema import FieldIdPolicy, Schema
from ledger.model.snapshot import Snapshot, StatisticsFile, Tag, Totals
from ledger.model.types import DataField
from ledger.model.types.wire import FieldObject, field_from_wire, field_to_wire

FOLD_VERSION = 4
SHARED_FOLD_VERSION = 3
"""The record's version until format 2; it lacks the last keys, which were not there to say."""


class _Schema(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    id: int
    fields: tuple[FieldObject, ...]
    highest_field_id: int
    time_millis: int
    partition_keys: tuple[str, ...] = ()
    primary_keys: tuple[str, ...] = ()
    options: dict[str, str] = {}
    comment: str | None = None
    identifier_field_ids: tuple[int, ...] = ()
    field_id_policy: FieldIdPolicy = "paimon"


class _State(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    version: int
    time_millis: int
    effective_millis: int
    table_id: str
    path: str
    schema: _Schema
    specs: tuple[PartitionSpec, ...]
    created_at: int
    created_by: str
    updated_at: int
    updated_by: str
    is_external: bool = False
    default_spec_id: int = 0
    last_partition_id: int = FIRST_PARTITION_FIELD_ID - 1
    sort_orders: tuple[SortOrder, ...] = (SortOrder(),)
    default_order_id: int = 0
    snapshot: Snapshot | None = None
    earliest_snapshot_id: int = 1
    totals: Totals | None = None
    tags: dict[str, Tag] = {}
    partition_statistics: dict[int, StatisticsFile] = {}
    named_schema_ids: tuple[int, ...] = ()
    dropped: bool = False
    format: int = OLDEST_FORMAT
    corrections: tuple[ClockCorrection, ...] = ()
    format_rules: dict[str, int] = {}
    born: BornTable | None = None


_DECODER = msgspec.json.Decoder(_State)
_ENCODER = msgspec.json.Encoder()


_MOST_KNOWN = 20_000
_known: dict[int, tuple[DataField, FieldObject]] = {}
"""What records hold for columns, which few commits change; each by its column's identity."""


def _wire(column: DataField) -> FieldObject:
    # It is held, so that no other column gets its identity.
    known = _known.get(id(column))
    if known is None:
        if len(_known) >= _MOST_KNOWN:
            _known.clear()
        known = _known[id(column)] = column, field_to_wire(column)
    return known[1]


def _schema_record(schema: Schema) -> _Schema:
    return _Schema(
        id=schema.id,
        fields=tuple(map(_wire, schema.fields)),
        highest_field_id=schema.highest_field_id,
        time_millis=schema.time_millis,
        partition_keys=schema.partition_keys,
        primary_keys=schema.primary_keys,
        options=dict(sorted(schema.options.items())),
        comment=schema.comment,
        identifier_field_ids=schema.identifier_field_ids,
        field_id_policy=schema.field_id_policy,
    )


def _schema(record: _Schema) -> Schema:
    return Schema(
        fields=tuple(field_from_wire(each) for each in record.fields),
        partition_keys=record.partition_keys,
        primary_keys=record.primary_keys,
        options=record.options,
        comment=record.comment,
        id=record.id,
        highest_field_id=record.highest_field_id,
        time_millis=record.time_millis,
        identifier_field_ids=record.identifier_field_ids,
        field_id_policy=record.field_id_policy,
    )


class TableStream:
    """A table's stream, as the log sees it."""

    fold_version = FOLD_VERSION
    shared_fold_version = SHARED_FOLD_VERSION
    event_types: object = TableEvent

    def builder(self, state: TableState | None) -> TableBuilder:
        """Return a builder at `state`, or before version 0."""
        return TableBuilder(state)

    def encode_state(self, state: TableState) -> bytes:
        """Return the state's record as JSON."""
        record = _State(
            version=state.version,
            time_millis=state.time_millis,
            effective_millis=state.effective_millis,
            table_id=state.table_id,
            path=state.path,
            schema=_schema_record(state.schema),
            specs=state.specs,
            created_at=state.created_at,
            created_by=state.created_by,
            updated_at=state.updated_at,
            updated_by=state.updated_by,
            is_external=state.is_external,
            default_spec_id=state.default_spec_id,
            last_partition_id=state.last_partition_id,
            sort_orders=state.sort_orders,
            default_order_id=state.default_order_id,
            snapshot=state.snapshot,
            earliest_snapshot_id=state.earliest_snapshot_id,
            totals=state.totals,
            tags=dict(sorted(state.tags.items())),
            partition_statistics=dict(sorted(state.partition_statistics.items())),
            named_schema_ids=state.named_schema_ids,
            dropped=state.dropped,
            format=state.format,
            corrections=state.corrections,
            format_rules=dict(sorted(state.format_rules.items())),
            born=state.born,
        )
        return _ENCODER.encode(record)

    def decode_state(self, record: bytes) -> TableState:
        """Return the state of a record.

        Raises:
            msgspec.DecodeError: The bytes are no record of this or the shared fold version.
        """
        read = _DECODER.decode(record)
        return TableState(
            version=read.version,
            time_millis=read.time_millis,
            effective_millis=read.effective_millis,
            table_id=read.table_id,
            path=read.path,
            is_external=read.is_external,
            schema=_schema(read.schema),
            specs=read.specs,
            default_spec_id=read.default_spec_id,
            last_partition_id=read.last_partition_id,
            sort_orders=read.sort_orders,
            default_order_id=read.default_order_id,
            snapshot=read.snapshot,
            earliest_snapshot_id=read.earliest_snapshot_id,
            totals=read.totals or Totals(),
            tags=read.tags,
            partition_statistics=read.partition_statistics,
            named_schema_ids=read.named_schema_ids,
            created_at=read.created_at,
            created_by=read.created_by,
            updated_at=read.updated_at,
            updated_by=read.updated_by,
            dropped=read.dropped,
            format=read.format,
            corrections=read.corrections,
            format_rules=read.format_rules,
            born=read.born,
        )
