"""Records of table and catalog states, for checkpoints.

A record is a cache: another fold version's is ignored, and any can be rebuilt from the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from ledger.events import TableEvent
from ledger.events.catalog import CatalogEvent, ViewRecord
from ledger.events.functions import FunctionRecord
from ledger.model.iceberg_layout import (
    FIRST_PARTITION_FIELD_ID,
    LazyPartitionSpecs,
    SortOrder,
    decode_record_part,
)
from ledger.model.iceberg_objects import PartitionStatisticsFile, StatisticsFile
from ledger.model.instant import ClockCorrection
from ledger.model.names import Identifier
from ledger.model.schema import Schema
from ledger.model.snapshot import Branch, Snapshot, Tag, Totals
from ledger.state.catalog import (
    Audit,
    CatalogState,
    DatabaseEntry,
    DroppedTable,
    FunctionEntry,
    TableEntry,
    ViewEntry,
    identifier_sort_key,
)
from ledger.state.catalog_builder import CatalogBuilder
from ledger.state.definitions import (
    function_from_record,
    function_to_record,
    view_from_record,
    view_to_record,
)
from ledger.state.delta_origin import DeltaOrigin
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.state.iceberg_view import IcebergView
from ledger.state.native_origin import NATIVE, NativeOrigin
from ledger.state.owner import LEDGER, Owner
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.schema_record import (
    LazySchemaRecord,
    StoredSchema,
    decode_schema_record,
    preencoded_schema,
)
from ledger.state.table import TableState
from ledger.state.table_builder import TableBuilder

FOLD_VERSION = 3


class _TableStateRecord(Struct, frozen=True, gc=False, omit_defaults=True, rename="camel"):
    version: int
    time_millis: int
    effective_millis: int
    table_id: str
    path: str
    schema: StoredSchema
    specs: Any
    created_at: int
    created_by: str
    updated_at: int
    updated_by: str
    is_external: bool = False
    default_spec_id: int = 0
    last_partition_id: int = FIRST_PARTITION_FIELD_ID - 1
    sort_orders: tuple[SortOrder, ...] = (SortOrder(0),)
    default_order_id: int = 0
    snapshot: Snapshot | None = None
    earliest_snapshot_id: int = 1
    totals: Totals | None = None
    tags: Any = {}
    partition_statistics: dict[int, PartitionStatisticsFile] = {}
    named_schema_ids: tuple[int, ...] = field(default=(), name="nameMappingSchemaIds")
    dropped: bool = False
    corrections: tuple[ClockCorrection, ...] = ()
    format_rules: dict[str, int] = {}
    origin: IcebergOrigin | PaimonOrigin | DeltaOrigin | None = None
    keeps_outside: bool = field(default=False, name="hasSidecars")
    branches: dict[str, Branch] = {}
    last_branch_number: int = 0
    statistics: dict[int, StatisticsFile] = {}
    owner: Owner | None = None


class _LazyTableStateRecord(_TableStateRecord, frozen=True, gc=False, rename="camel"):
    """Decoded form of `_TableStateRecord`; tags and specs stay raw, since few of them are read."""

    schema: LazySchemaRecord
    specs: Raw
    tags: Raw = Raw(b"{}")


class _SchemaOutline(Struct, frozen=True, gc=False, rename="camel"):
    id: int
    highest_field_id: int
    time_millis: int


class _TableStateOutline(Struct, frozen=True, gc=False, rename="camel"):
    """Part of a state that searches read: most of a record is columns and details of origins."""

    version: int
    time_millis: int
    effective_millis: int
    table_id: str
    path: str
    schema: _SchemaOutline
    created_at: int
    created_by: str
    updated_at: int
    updated_by: str
    snapshot: Snapshot | None = None
    earliest_snapshot_id: int = 1
    corrections: tuple[ClockCorrection, ...] = ()
    keeps_outside: bool = field(default=False, name="hasSidecars")
    branches: dict[str, Branch] = {}
    last_branch_number: int = 0


_OUTLINED = tuple(name for name in _TableStateOutline.__struct_fields__ if name != "schema")
_OUTLINE_DECODER = msgspec.json.Decoder(_TableStateOutline)
_DECODER = msgspec.json.Decoder(_LazyTableStateRecord)
_ENCODER = msgspec.json.Encoder()


_CHANGED = {
    *("schema", "specs", "totals", "tags", "partition_statistics", "statistics", "format_rules"),
    *("branches", "origin", "owner"),
}
"""Fields that a record holds in another form, or another order, than the state."""

_SAME = tuple(name for name in _TableStateRecord.__struct_fields__ if name not in _CHANGED)


_SPECS_DECODER = msgspec.json.Decoder(list[Raw])
_NAMES_DECODER = msgspec.json.Decoder(dict[str, Raw])
_TAG_DECODER = msgspec.json.Decoder(Tag)
_NO_TAGS = "tags that are none"


def _may_contain_name(name: object, record: Raw) -> bool:
    """Return whether a record may hold a tag's name; False: it does not."""
    return _ENCODER.encode(name) in bytes(record)


class _LazyTags(MutableMapping[str, Tag]):
    """The tags of a record, each decoded when it is read.

    Args:
        record: Their JSON; a part of the record that few callers read.
        newer: Tags set after it.
    """

    __slots__ = ("_found", "_record", "_was_asked")

    def __init__(self, record: Raw | None, newer: Mapping[str, Tag | Raw]) -> None:
        self._record = record
        self._found = dict(newer)
        self._was_asked = False

    @property
    def _tags_by_name(self) -> dict[str, Tag | Raw]:
        record = self._record
        if record is not None:
            named = decode_record_part(_NAMES_DECODER, record, _NO_TAGS)
            self._found = {**named, **self._found}
            self._record = None
        return self._found

    def __getitem__(self, name: str) -> Tag:
        found = self._tags_by_name[name]
        if isinstance(found, Raw):
            found = self._found[name] = decode_record_part(_TAG_DECODER, found, _NO_TAGS)
        return found

    def __setitem__(self, name: str, tag: Tag) -> None:
        self._found[name] = tag

    def __delitem__(self, name: str) -> None:
        del self._tags_by_name[name]

    def __contains__(self, name: object) -> bool:
        record = self._record
        if name in self._found or record is None:
            return name in self._found
        # Most callers look up once, a name that is new and not in the record.
        is_first, self._was_asked = not self._was_asked, True
        return (not is_first or _may_contain_name(name, record)) and name in self._tags_by_name

    def __iter__(self) -> Iterator[str]:
        return iter(self._tags_by_name)

    def __len__(self) -> int:
        return len(self._tags_by_name)

    def __copy__(self) -> _LazyTags:
        # A state that is continued again decodes all tags and drops the record.
        if self._was_asked:
            self._tags_by_name  # noqa: B018 - is read
        self._was_asked = True
        return _LazyTags(self._record, self._found)

    def __repr__(self) -> str:
        return repr(dict(self))

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)


class TableStream:
    """Codec and fold of a table's stream, as the log uses them."""

    fold_version = FOLD_VERSION
    event_types: object = TableEvent

    def builder(self, state: TableState | None) -> TableBuilder:
        """Return a builder that starts from `state`, or before version 0."""
        return TableBuilder(state)

    def encode_state(self, state: TableState) -> bytes:
        """Return the state's record as JSON."""
        record = _TableStateRecord(
            **{name: getattr(state, name) for name in _SAME},
            schema=preencoded_schema(state.schema),
            specs=tuple(state.specs),
            origin=None if isinstance(state.origin, NativeOrigin) else state.origin,
            totals=state.totals,
            owner=None if state.owner == LEDGER else state.owner,
            tags=dict(sorted(state.tags.items())),
            partition_statistics=dict(sorted(state.partition_statistics.items())),
            statistics=dict(sorted(state.statistics.items())),
            format_rules=dict(sorted(state.format_rules.items())),
            branches=dict(sorted(state.branches.items())),
        )
        return _ENCODER.encode(record)

    def decode_state(self, record: bytes | memoryview) -> TableState:
        """Return the state of a record.

        Raises:
            msgspec.DecodeError: The bytes are no record of this fold version.
        """
        read = _DECODER.decode(record)
        return TableState(
            **{name: getattr(read, name) for name in _SAME},
            schema=decode_schema_record(read.schema),
            specs=LazyPartitionSpecs(_SPECS_DECODER.decode(read.specs)),
            totals=read.totals or Totals(),
            owner=read.owner or LEDGER,
            tags=_LazyTags(read.tags, {}),
            origin=read.origin or NATIVE,
            partition_statistics=read.partition_statistics,
            statistics=read.statistics,
            format_rules=read.format_rules,
            branches=read.branches,
        )

    def decode_outline(self, record: bytes | memoryview) -> TableState:
        """Return the part of a record's state that searches read: no columns, specs, tags or files.

        Raises:
            msgspec.DecodeError: As of `decode_state`.
        """
        read = _OUTLINE_DECODER.decode(record)
        now = read.schema
        return TableState(
            **{name: getattr(read, name) for name in _OUTLINED},
            schema=Schema(
                (), id=now.id, highest_field_id=now.highest_field_id, time_millis=now.time_millis
            ),
            specs=(),
        )


class _CatalogRecordBase(
    Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """Base of the catalog's records."""


class _AuditRecord(_CatalogRecordBase, frozen=True):
    created_at: int
    created_by: str
    updated_at: int
    updated_by: str


class _DatabaseRecord(_CatalogRecordBase, frozen=True):
    name: str
    path: str
    audit: _AuditRecord
    options: dict[str, str] = {}


class _TableRecord(_CatalogRecordBase, frozen=True):
    database: str
    name: str
    table_id: str
    path: str
    audit: _AuditRecord
    created_version: int
    is_external: bool = False
    undropped_version: int = -1
    unsealed_version: int = -1


class _DroppedTableRecord(_CatalogRecordBase, frozen=True):
    table: _TableRecord
    dropped_version: int
    is_purge_requested: bool = field(default=False, name="purge")
    is_purged: bool = field(default=False, name="purged")


class _ViewRecord(_CatalogRecordBase, frozen=True, kw_only=True):
    database: str
    name: str
    view_id: str
    schema: ViewRecord | None = None
    audit: _AuditRecord
    iceberg: IcebergView | None = None


class _FunctionRecord(_CatalogRecordBase, frozen=True, kw_only=True):
    database: str
    name: str
    function_id: str
    function: FunctionRecord
    audit: _AuditRecord


class _CatalogRecord(_CatalogRecordBase, frozen=True):
    version: int
    time_millis: int
    effective_millis: int
    databases: tuple[_DatabaseRecord, ...]
    tables: tuple[_TableRecord, ...]
    views: tuple[_ViewRecord, ...]
    used_paths: tuple[str, ...]
    corrections: tuple[ClockCorrection, ...] = ()
    place: str = field(default="", name="location")
    placed_version: int = field(default=-1, name="locationVersion")
    aliases: tuple[str, ...] = ()
    ledger_id: str = ""
    copied_from: str = ""
    keeps_outside: bool = field(default=False, name="hasSidecars")
    dropped: tuple[_DroppedTableRecord, ...] = ()
    functions: tuple[_FunctionRecord, ...] = ()


_SAME_IN_CATALOG = (
    *("version", "time_millis", "effective_millis", "corrections", "keeps_outside"),
    *("place", "placed_version", "aliases", "ledger_id", "copied_from"),
)
"""Fields that a record holds in the same form as the state."""

_CATALOG_DECODER = msgspec.json.Decoder(_CatalogRecord)
_CATALOG_ENCODER = msgspec.json.Encoder(order="deterministic")


class CatalogStream:
    """Codec and fold of the catalog's stream, as the log uses them."""

    fold_version: int = FOLD_VERSION
    event_types: object = CatalogEvent

    def builder(self, state: CatalogState | None) -> CatalogBuilder:
        """Return a builder that starts from `state`, or before version 0."""
        return CatalogBuilder(state)

    def encode_state(self, state: CatalogState) -> bytes:
        """Return the state's record as JSON; equal states give equal bytes."""
        tables = (state.tables[name] for name in sorted(state.tables, key=identifier_sort_key))
        views = (state.views[name] for name in sorted(state.views, key=identifier_sort_key))
        named = sorted(state.functions, key=identifier_sort_key)
        functions = (state.functions[name] for name in named)
        record = _CatalogRecord(
            **{name: getattr(state, name) for name in _SAME_IN_CATALOG},
            databases=tuple(_database_record(each) for _, each in sorted(state.databases.items())),
            tables=tuple(map(_table_record, tables)),
            views=tuple(map(_view_record, views)),
            used_paths=tuple(sorted(state.used_paths)),
            dropped=tuple(map(_dropped_record, state.dropped.values())),
            functions=tuple(map(_function_record, functions)),
        )
        return _CATALOG_ENCODER.encode(record)

    def decode_state(self, record: bytes | memoryview) -> CatalogState:
        """Return the state of a record.

        Raises:
            msgspec.DecodeError: The bytes are no record of this fold version.
        """
        read = _CATALOG_DECODER.decode(record)
        tables = map(_table_from_record, read.tables)
        views = map(_view_from_record, read.views)
        dropped = map(_dropped_from_record, read.dropped)
        functions = map(_function_from_record, read.functions)
        return CatalogState(
            **{name: getattr(read, name) for name in _SAME_IN_CATALOG},
            databases={each.name: _database_from_record(each) for each in read.databases},
            tables={each.identifier: each for each in tables},
            views={each.identifier: each for each in views},
            used_paths=frozenset(read.used_paths),
            dropped={each.table_id: each for each in dropped},
            functions={each.identifier: each for each in functions},
        )

    def decode_outline(self, record: bytes | memoryview) -> CatalogState:
        """Return the state of a record; nothing is left out, since all of it is short.

        Raises:
            msgspec.DecodeError: As of `decode_state`.
        """
        return self.decode_state(record)


def _audit_record(audit: Audit) -> _AuditRecord:
    return _AuditRecord(audit.created_at, audit.created_by, audit.updated_at, audit.updated_by)


def _audit_from_record(record: _AuditRecord) -> Audit:
    return Audit(record.created_at, record.created_by, record.updated_at, record.updated_by)


def _database_record(entry: DatabaseEntry) -> _DatabaseRecord:
    return _DatabaseRecord(entry.name, entry.path, _audit_record(entry.audit), dict(entry.options))


def _database_from_record(record: _DatabaseRecord) -> DatabaseEntry:
    return DatabaseEntry(record.name, record.path, record.options, _audit_from_record(record.audit))


def _table_record(entry: TableEntry) -> _TableRecord:
    return _TableRecord(
        database=entry.identifier.database,
        name=entry.identifier.name,
        table_id=entry.table_id,
        path=entry.path,
        audit=_audit_record(entry.audit),
        created_version=entry.created_version,
        is_external=entry.is_external,
        undropped_version=entry.undropped_version,
        unsealed_version=entry.unsealed_version,
    )


def _table_from_record(record: _TableRecord) -> TableEntry:
    return TableEntry(
        Identifier(record.database, record.name),
        record.table_id,
        record.path,
        record.is_external,
        _audit_from_record(record.audit),
        record.created_version,
        record.undropped_version,
        record.unsealed_version,
    )


def _dropped_record(dropped: DroppedTable) -> _DroppedTableRecord:
    return _DroppedTableRecord(
        _table_record(dropped.entry),
        dropped.dropped_version,
        dropped.is_purge_requested,
        dropped.is_purged,
    )


def _dropped_from_record(record: _DroppedTableRecord) -> DroppedTable:
    return DroppedTable(
        _table_from_record(record.table),
        record.dropped_version,
        record.is_purge_requested,
        record.is_purged,
    )


def _view_record(entry: ViewEntry) -> _ViewRecord:
    name = entry.identifier
    return _ViewRecord(
        database=name.database,
        name=name.name,
        view_id=entry.view_id,
        schema=view_to_record(entry.schema) if entry.iceberg is None else None,
        audit=_audit_record(entry.audit),
        iceberg=entry.iceberg,
    )


def _view_from_record(record: _ViewRecord) -> ViewEntry:
    if record.iceberg is not None:
        schema = record.iceberg.definition
    elif record.schema is not None:
        schema = view_from_record(record.schema)
    else:
        raise msgspec.ValidationError(f"view {record.name} has neither a schema nor iceberg")
    return ViewEntry(
        Identifier(record.database, record.name),
        record.view_id,
        schema,
        _audit_from_record(record.audit),
        record.iceberg,
    )


def _function_record(entry: FunctionEntry) -> _FunctionRecord:
    return _FunctionRecord(
        database=entry.identifier.database,
        name=entry.identifier.name,
        function_id=entry.function_id,
        function=function_to_record(entry.function),
        audit=_audit_record(entry.audit),
    )


def _function_from_record(record: _FunctionRecord) -> FunctionEntry:
    return FunctionEntry(
        Identifier(record.database, record.name),
        record.function_id,
        function_from_record(record.function),
        _audit_from_record(record.audit),
    )
