"""A catalog's state as a record, for checkpoints; and CatalogStream, which the log folds it with.

A record is a cache: another fold version's is ignored, and any can be made again from the log.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct, field

from ledger.events.catalog_events import CatalogEvent, ViewRecord
from ledger.evolution.catalog.builder import CatalogBuilder
from ledger.evolution.catalog.state import (
    Audit,
    CatalogState,
    DatabaseEntry,
    TableEntry,
    ViewEntry,
    by_name,
)
from ledger.evolution.catalog.views.cells import view_from_record, view_to_record
from ledger.model.identifier import Identifier
from ledger.model.instant import ClockCorrection

FOLD_VERSION = 1


class _Record(
    Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """What all of these records share."""


class _Audit(_Record, frozen=True):
    created_at: int
    created_by: str
    updated_at: int
    updated_by: str


class _Database(_Record, frozen=True):
    name: str
    path: str
    audit: _Audit
    options: dict[str, str] = {}


class _Table(_Record, frozen=True):
    database: str
    name: str
    table_id: str
    path: str
    audit: _Audit
    created_version: int
    is_external: bool = False


class _View(_Record, frozen=True):
    database: str
    name: str
    view_id: str
    schema: ViewRecord
    audit: _Audit


class _State(_Record, frozen=True):
    version: int
    time_millis: int
    effective_millis: int
    databases: tuple[_Database, ...]
    tables: tuple[_Table, ...]
    views: tuple[_View, ...]
    used_paths: tuple[str, ...]
    corrections: tuple[ClockCorrection, ...] = ()
    place: str = field(default="", name="location")
    placed_version: int = field(default=-1, name="locationVersion")
    aliases: tuple[str, ...] = ()
    ledger_id: str = ""
    copied_from: str = ""
    keeps_outside: bool = field(default=False, name="hasSidecars")


_SAME = (
    *("version", "time_millis", "effective_millis", "corrections", "keeps_outside"),
    *("place", "placed_version", "aliases", "ledger_id", "copied_from"),
)
"""What a record holds as the value does."""

_DECODER = msgspec.json.Decoder(_State)
_ENCODER = msgspec.json.Encoder(order="deterministic")


class CatalogStream:
    """The catalog's stream, as the log sees it."""

    fold_version: int = FOLD_VERSION
    event_types: object = CatalogEvent

    def builder(self, state: CatalogState | None) -> CatalogBuilder:
        """Return a builder at `state`, or before version 0."""
        return CatalogBuilder(state)

    def encode_state(self, state: CatalogState) -> bytes:
        """Return the state's record as JSON; equal states give equal bytes."""
        tables = (state.tables[name] for name in sorted(state.tables, key=by_name))
        views = (state.views[name] for name in sorted(state.views, key=by_name))
        record = _State(
            **{name: getattr(state, name) for name in _SAME},
            databases=tuple(_database_record(each) for _, each in sorted(state.databases.items())),
            tables=tuple(map(_table_record, tables)),
            views=tuple(map(_view_record, views)),
            used_paths=tuple(sorted(state.used_paths)),
        )
        return _ENCODER.encode(record)

    def decode_state(self, record: bytes | memoryview) -> CatalogState:
        """Return the state of a record.

        Raises:
            msgspec.DecodeError: The bytes are no record of this fold version.
        """
        read = _DECODER.decode(record)
        tables = map(_table, read.tables)
        views = map(_view, read.views)
        return CatalogState(
            **{name: getattr(read, name) for name in _SAME},
            databases={each.name: _database(each) for each in read.databases},
            tables={each.identifier: each for each in tables},
            views={each.identifier: each for each in views},
            used_paths=frozenset(read.used_paths),
        )

    def decode_outline(self, record: bytes | memoryview) -> CatalogState:
        """Return the state of a record, all of which is short.

        Raises:
            msgspec.DecodeError: As of `decode_state`.
        """
        return self.decode_state(record)


def _audit_record(audit: Audit) -> _Audit:
    return _Audit(audit.created_at, audit.created_by, audit.updated_at, audit.updated_by)


def _audit(record: _Audit) -> Audit:
    return Audit(record.created_at, record.created_by, record.updated_at, record.updated_by)


def _database_record(entry: DatabaseEntry) -> _Database:
    return _Database(entry.name, entry.path, _audit_record(entry.audit), dict(entry.options))


def _database(record: _Database) -> DatabaseEntry:
    return DatabaseEntry(record.name, record.path, record.options, _audit(record.audit))


def _table_record(entry: TableEntry) -> _Table:
    return _Table(
        database=entry.identifier.database,
        name=entry.identifier.name,
        table_id=entry.table_id,
        path=entry.path,
        audit=_audit_record(entry.audit),
        created_version=entry.created_version,
        is_external=entry.is_external,
    )


def _table(record: _Table) -> TableEntry:
    return TableEntry(
        Identifier(record.database, record.name),
        record.table_id,
        record.path,
        record.is_external,
        _audit(record.audit),
        record.created_version,
    )


def _view_record(entry: ViewEntry) -> _View:
    name = entry.identifier
    record = view_to_record(entry.schema)
    return _View(name.database, name.name, entry.view_id, record, _audit_record(entry.audit))


def _view(record: _View) -> ViewEntry:
    return ViewEntry(
        Identifier(record.database, record.name),
        record.view_id,
        view_from_record(record.schema),
        _audit(record.audit),
    )
