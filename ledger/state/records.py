"""Records of table and catalog states, for checkpoints.

A record is a cache: another fold version's is ignored, and any can be rebuilt from the log.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from operator import attrgetter
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from ledger.events import TableEvent
from ledger.events.catalog import CatalogEvent
from ledger.model.iceberg_layout import (
    FIRST_PARTITION_FIELD_ID,
    LazyPartitionSpecs,
    SortOrder,
    decode_record_part,
)
from ledger.model.iceberg_objects import PartitionStatisticsFile, StatisticsFile
from ledger.model.instant import ClockCorrection
from ledger.model.schema import Schema
from ledger.model.snapshot import Branch, Snapshot, Tag, Totals
from ledger.state.catalog import CatalogState
from ledger.state.catalog_builder import CatalogBuilder
from ledger.state.catalog_records import (
    DROPPED_TABLES,
    LOCATIONS,
    TABLE_NAMES,
    TABLES,
    DatabaseRecord,
    DroppedTableRecord,
    EntryRecord,
    FunctionEntryRecord,
    TableRecord,
    ViewEntryRecord,
    database_entry_from_record,
    database_entry_record,
    dropped_from_record,
    dropped_record,
    function_entry_from_record,
    function_entry_record,
    table_entry_from_record,
    table_entry_record,
    view_entry_from_record,
    view_entry_record,
)
from ledger.state.delta_origin import DeltaOrigin
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.state.native_origin import NATIVE, NativeOrigin
from ledger.state.owner import LEDGER, Owner
from ledger.state.paged_map import EntryFormat, PagedMap, PageFiles, PagesRecord, page_count
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.schema_record import (
    LazySchemaRecord,
    StoredSchema,
    decode_schema_record,
    preencoded_schema,
)
from ledger.state.stream import EncodedCheckpoint
from ledger.state.table import TableState
from ledger.state.table_builder import TableBuilder
from ledger.state.used_locations import UsedLocation, use_location

FOLD_VERSION = 3
"""The fold version of tables."""

CATALOG_FOLD_VERSION = 4
"""The fold version of the catalog."""


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

    def encode_checkpoint(self, state: TableState) -> EncodedCheckpoint:
        """Return the state's record: the checkpoint of a table has no pages."""
        return EncodedCheckpoint(self.encode_state(state))

    def decode_checkpoint(self, record: bytes | memoryview, _files: PageFiles) -> TableState:
        """Return the state of a record; see `decode_state`."""
        return self.decode_state(record)

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


class _CatalogRecord(EntryRecord, frozen=True):
    """The catalog's state."""

    version: int
    time_millis: int
    effective_millis: int
    databases: tuple[DatabaseRecord, ...]
    tables: tuple[TableRecord, ...]
    views: tuple[ViewEntryRecord, ...]
    used_paths: tuple[str, ...]
    corrections: tuple[ClockCorrection, ...] = ()
    place: str = field(default="", name="location")
    placed_version: int = field(default=-1, name="locationVersion")
    aliases: tuple[str, ...] = ()
    ledger_id: str = ""
    copied_from: str = ""
    keeps_outside: bool = field(default=False, name="hasSidecars")
    dropped: tuple[DroppedTableRecord, ...] = ()
    functions: tuple[FunctionEntryRecord, ...] = ()


class _CatalogCheckpoint(EntryRecord, frozen=True):
    """The same in a checkpoint, with mappings that may be in pages."""

    version: int
    time_millis: int
    effective_millis: int
    databases: tuple[DatabaseRecord, ...]
    views: tuple[ViewEntryRecord, ...]
    tables: PagesRecord
    table_names: PagesRecord
    dropped: PagesRecord
    locations: PagesRecord
    used_path_count: int
    corrections: tuple[ClockCorrection, ...] = ()
    place: str = field(default="", name="location")
    placed_version: int = field(default=-1, name="locationVersion")
    aliases: tuple[str, ...] = ()
    ledger_id: str = ""
    copied_from: str = ""
    keeps_outside: bool = field(default=False, name="hasSidecars")
    functions: tuple[FunctionEntryRecord, ...] = ()


_SAME_IN_CATALOG = (
    *("version", "time_millis", "effective_millis", "corrections", "keeps_outside"),
    *("place", "placed_version", "aliases", "ledger_id", "copied_from"),
)
"""Fields that a record holds in the same form as the state."""

_PAGED: Mapping[str, EntryFormat[Any, Any]] = {
    "tables": TABLES,
    "table_names": TABLE_NAMES,
    "dropped": DROPPED_TABLES,
    "locations": LOCATIONS,
}
"""The formats of the state's mappings that checkpoints hold in pages, by field."""

_CATALOG_DECODER = msgspec.json.Decoder(_CatalogRecord)
_CATALOG_CHECKPOINT_DECODER = msgspec.json.Decoder(_CatalogCheckpoint)
_CATALOG_ENCODER = msgspec.json.Encoder(order="deterministic")


class CatalogStream:
    """Codec and fold of the catalog's stream, as the log uses them."""

    fold_version: int = CATALOG_FOLD_VERSION
    event_types: object = CatalogEvent

    def builder(self, state: CatalogState | None) -> CatalogBuilder:
        """Return a builder that starts from `state`, or before version 0."""
        return CatalogBuilder(state)

    def encode_state(self, state: CatalogState) -> bytes:
        """Return the state's record as JSON; equal states give equal bytes."""
        record = _CatalogRecord(
            **_common_fields(state),
            tables=tuple(map(table_entry_record, state.tables.values())),
            used_paths=tuple(sorted(state.used_paths)),
            dropped=tuple(map(dropped_record, state.dropped.values())),
        )
        return _CATALOG_ENCODER.encode(record)

    def decode_state(self, record: bytes | memoryview) -> CatalogState:
        """Return the state of a record.

        Raises:
            msgspec.DecodeError: The bytes are no record of this fold version.
        """
        read = _CATALOG_DECODER.decode(record)
        tables = [*map(table_entry_from_record, read.tables)]
        dropped = [*map(dropped_from_record, read.dropped)]
        locations: dict[str, UsedLocation] = {}
        for path in read.used_paths:
            use_location(locations, path)
        pages = page_count(len(read.used_paths))
        return CatalogState(
            **_common_values(read),
            used_path_count=len(read.used_paths),
            tables=PagedMap.of(TABLES, {each.identifier: each for each in tables}, pages=pages),
            table_names=PagedMap.of(
                TABLE_NAMES, {each.table_id: each.identifier for each in tables}, pages=pages
            ),
            dropped=PagedMap.of(
                DROPPED_TABLES, {each.table_id: each for each in dropped}, pages=pages
            ),
            locations=PagedMap.of(LOCATIONS, locations, pages=pages),
        )

    def encode_checkpoint(self, state: CatalogState) -> EncodedCheckpoint:
        """Return the state as a checkpoint holds it: entries of tables and locations in pages."""
        records: dict[str, Any] = {}
        pages: dict[str, bytes] = {}
        for name in _PAGED:
            records[name], bodies = getattr(state, name).record()
            pages |= bodies

        def mark_stored() -> None:
            for name, record in records.items():
                if "pages" in record:
                    getattr(state, name).mark_stored(record["pages"])

        common = _common_fields(state)
        record = _CatalogCheckpoint(**common, used_path_count=state.used_path_count, **records)
        return EncodedCheckpoint(_CATALOG_ENCODER.encode(record), pages, mark_stored)

    def decode_checkpoint(self, record: bytes | memoryview, files: PageFiles) -> CatalogState:
        """Return the state of a checkpoint; pages are read when they are asked for.

        Raises:
            msgspec.DecodeError: The bytes are no checkpoint of this fold version.
        """
        read = _CATALOG_CHECKPOINT_DECODER.decode(record)
        maps: dict[str, Any] = {
            name: PagedMap.of_record(form, getattr(read, name), files, attrgetter(name))
            for name, form in _PAGED.items()
        }
        return CatalogState(**_common_values(read), used_path_count=read.used_path_count, **maps)

    def decode_outline(self, record: bytes | memoryview) -> CatalogState:
        """Return the fields of a checkpoint that searches read; it has no tables.

        Raises:
            msgspec.DecodeError: As of `decode_checkpoint`.
        """
        return CatalogState(**_common_values(_CATALOG_CHECKPOINT_DECODER.decode(record)))


def _common_fields(state: CatalogState) -> dict[str, Any]:
    """Return the fields of the state that records of both kinds hold, as records."""
    return {
        **{name: getattr(state, name) for name in _SAME_IN_CATALOG},
        "databases": tuple(map(database_entry_record, state.databases.values())),
        "views": tuple(map(view_entry_record, state.views.values())),
        "functions": tuple(map(function_entry_record, state.functions.values())),
    }


def _common_values(read: _CatalogRecord | _CatalogCheckpoint) -> dict[str, Any]:
    """Return the fields of a record that records of both kinds hold, as values."""
    views = map(view_entry_from_record, read.views)
    functions = map(function_entry_from_record, read.functions)
    return {
        **{name: getattr(read, name) for name in _SAME_IN_CATALOG},
        "databases": {each.name: database_entry_from_record(each) for each in read.databases},
        "views": {each.identifier: each for each in views},
        "functions": {each.identifier: each for each in functions},
    }
