"""A table's state as a record, for checkpoints; and TableStream, which the log folds tables with.

A record is a cache: another fold version's is ignored, and any can be made again from the log.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct

from ledger.events import TableEvent
from ledger.events.commit import OLDEST_FORMAT
from ledger.evolution.fold.schema_record import StoredSchema, schema_of, stored_schema
from ledger.evolution.fold.table_builder import TableBuilder
from ledger.evolution.state import TableState
from ledger.evolution.table.born import BornTable
from ledger.evolution.table.born_delta import DeltaTable
from ledger.evolution.table.born_paimon import PaimonTable
from ledger.model.clock_correction import ClockCorrection
from ledger.model.partition import FIRST_PARTITION_FIELD_ID, PartitionSpec, SortOrder
from ledger.model.snapshot import Snapshot, StatisticsFile, Tag, Totals

FOLD_VERSION = 4
SHARED_FOLD_VERSION = 3
"""The record's version until format 2; it lacks the last keys, which were not there to say."""


class _State(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    version: int
    time_millis: int
    effective_millis: int
    table_id: str
    path: str
    schema: StoredSchema
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
    paimon: PaimonTable | None = None
    delta: DeltaTable | None = None


_DECODER = msgspec.json.Decoder(_State)
_ENCODER = msgspec.json.Encoder()


_CHANGED = {"schema", "totals", "tags", "partition_statistics", "format_rules"}
"""What a record holds in another shape, or another order, than the value."""

_SAME = tuple(name for name in _State.__struct_fields__ if name not in _CHANGED)


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
            **{name: getattr(state, name) for name in _SAME},
            schema=stored_schema(state.schema),
            totals=state.totals,
            tags=dict(sorted(state.tags.items())),
            partition_statistics=dict(sorted(state.partition_statistics.items())),
            format_rules=dict(sorted(state.format_rules.items())),
        )
        return _ENCODER.encode(record)

    def decode_state(self, record: bytes) -> TableState:
        """Return the state of a record.

        Raises:
            msgspec.DecodeError: The bytes are no record of this or the shared fold version.
        """
        read = _DECODER.decode(record)
        return TableState(
            **{name: getattr(read, name) for name in _SAME},
            schema=schema_of(read.schema),
            totals=read.totals or Totals(),
            tags=read.tags,
            partition_statistics=read.partition_statistics,
            format_rules=read.format_rules,
        )
