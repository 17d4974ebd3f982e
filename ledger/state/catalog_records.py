"""Records of the catalog's entries in checkpoints, and the formats of its paged mappings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
from msgspec import Raw, Struct, field

from ledger.events.catalog import ViewRecord
from ledger.events.functions import FunctionRecord
from ledger.model.errors import InvalidChangeError
from ledger.model.names import Identifier
from ledger.state.catalog import (
    Audit,
    DatabaseEntry,
    DroppedTable,
    FunctionEntry,
    TableEntry,
    ViewEntry,
    identifier_sort_key,
)
from ledger.state.definitions import (
    function_from_record,
    function_to_record,
    view_from_record,
    view_to_record,
)
from ledger.state.iceberg_view import IcebergView
from ledger.state.paged_map import EntryFormat, forged_entry_error
from ledger.state.used_locations import UsedLocation, combine_uses

_MOST_DIGITS: Final = 9

_R = TypeVar("_R")
_V = TypeVar("_V")


class EntryRecord(
    Struct, frozen=True, gc=False, omit_defaults=True, rename="camel", forbid_unknown_fields=True
):
    """Base of the catalog's records."""


class _AuditRecord(EntryRecord, frozen=True):
    created_at: int
    created_by: str
    updated_at: int
    updated_by: str


class DatabaseRecord(EntryRecord, frozen=True):
    """A database."""

    name: str
    path: str
    audit: _AuditRecord
    options: dict[str, str] = {}


class TableRecord(EntryRecord, frozen=True):
    """A table."""

    database: str
    name: str
    table_id: str
    path: str
    audit: _AuditRecord
    created_version: int
    is_external: bool = False
    undropped_version: int = -1
    unsealed_version: int = -1


class DroppedTableRecord(EntryRecord, frozen=True):
    """A dropped table."""

    table: TableRecord
    dropped_version: int
    is_purge_requested: bool = field(default=False, name="purge")
    is_purged: bool = field(default=False, name="purged")


class ViewEntryRecord(EntryRecord, frozen=True, kw_only=True):
    """A view."""

    database: str
    name: str
    view_id: str
    schema: ViewRecord | None = None
    audit: _AuditRecord
    iceberg: IcebergView | None = None


class FunctionEntryRecord(EntryRecord, frozen=True, kw_only=True):
    """A function."""

    database: str
    name: str
    function_id: str
    function: FunctionRecord
    audit: _AuditRecord


def _audit_record(audit: Audit) -> _AuditRecord:
    return _AuditRecord(audit.created_at, audit.created_by, audit.updated_at, audit.updated_by)


def _audit_from_record(record: _AuditRecord) -> Audit:
    return Audit(record.created_at, record.created_by, record.updated_at, record.updated_by)


def database_entry_record(entry: DatabaseEntry) -> DatabaseRecord:
    """Return the record of a database."""
    return DatabaseRecord(entry.name, entry.path, _audit_record(entry.audit), dict(entry.options))


def database_entry_from_record(record: DatabaseRecord) -> DatabaseEntry:
    """Return a database from its record."""
    return DatabaseEntry(record.name, record.path, record.options, _audit_from_record(record.audit))


def table_entry_record(entry: TableEntry) -> TableRecord:
    """Return the record of a table."""
    return TableRecord(
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


def table_entry_from_record(record: TableRecord) -> TableEntry:
    """Return a table from its record."""
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


def dropped_record(dropped: DroppedTable) -> DroppedTableRecord:
    """Return the record of a dropped table."""
    return DroppedTableRecord(
        table_entry_record(dropped.entry),
        dropped.dropped_version,
        dropped.is_purge_requested,
        dropped.is_purged,
    )


def dropped_from_record(record: DroppedTableRecord) -> DroppedTable:
    """Return a dropped table from its record."""
    return DroppedTable(
        table_entry_from_record(record.table),
        record.dropped_version,
        record.is_purge_requested,
        record.is_purged,
    )


def view_entry_record(entry: ViewEntry) -> ViewEntryRecord:
    """Return the record of a view."""
    name = entry.identifier
    return ViewEntryRecord(
        database=name.database,
        name=name.name,
        view_id=entry.view_id,
        schema=view_to_record(entry.schema) if entry.iceberg is None else None,
        audit=_audit_record(entry.audit),
        iceberg=entry.iceberg,
    )


def view_entry_from_record(record: ViewEntryRecord) -> ViewEntry:
    """Return a view from its record.

    Raises:
        msgspec.ValidationError: It has neither a schema nor Iceberg metadata.
    """
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


def function_entry_record(entry: FunctionEntry) -> FunctionEntryRecord:
    """Return the record of a function."""
    return FunctionEntryRecord(
        database=entry.identifier.database,
        name=entry.identifier.name,
        function_id=entry.function_id,
        function=function_to_record(entry.function),
        audit=_audit_record(entry.audit),
    )


def function_entry_from_record(record: FunctionEntryRecord) -> FunctionEntry:
    """Return a function from its record."""
    return FunctionEntry(
        Identifier(record.database, record.name),
        record.function_id,
        function_from_record(record.function),
        _audit_from_record(record.audit),
    )


def _identifier_text(identifier: Identifier) -> str:
    # The length tells where the database's name ends, whatever characters a log holds.
    return f"{len(identifier.database)}:{identifier.database}.{identifier.name}"


def _identifier_of_text(text: str) -> Identifier:
    digits, _, rest = text.partition(":")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS):
        raise forged_entry_error(text)
    length = int(digits)
    return Identifier(rest[:length], rest[length + 1 :])


def _same(value: _V) -> _V:
    return value


def _decoded(record_type: type[_R], make: Callable[[_R], _V]) -> Callable[[Raw], _V]:
    decode = msgspec.json.Decoder(record_type).decode
    return lambda raw: make(decode(raw))


def _refuse_second_table(_text: str, there: TableEntry, _new: TableEntry) -> TableEntry:
    raise name_taken_error(there.identifier)


def _refuse_second_id(text: str, there: Identifier, _new: Identifier) -> Identifier:
    raise duplicate_id_error("table", text, there)


def _refuse_second_drop(text: str, there: DroppedTable, _new: DroppedTable) -> DroppedTable:
    raise contradiction_error(f"table {there.identifier} with id {text} was dropped before")


def name_taken_error(identifier: Identifier) -> InvalidChangeError:
    """Return the error for a second table or view of a name."""
    return contradiction_error(f"{identifier} exists already; choose another name")


def duplicate_id_error(kind: str, new_id: str, identifier: Identifier) -> InvalidChangeError:
    """Return the error for an id that another object has."""
    return contradiction_error(f"{kind} id {new_id} is {identifier}'s; take a fresh one")


def contradiction_error(message: str) -> InvalidChangeError:
    """Return the error for an event that contradicts the state."""
    return InvalidChangeError(message, kind="ILLEGAL_STATE")


TABLES: Final = EntryFormat[Identifier, TableEntry](
    text_of=_identifier_text,
    key_of=_identifier_of_text,
    record_of=table_entry_record,
    value_of=_decoded(TableRecord, table_entry_from_record),
    order=lambda key, _: identifier_sort_key(key),
    combine=_refuse_second_table,
)
"""The tables of a catalog by name."""

TABLE_NAMES: Final = EntryFormat[str, Identifier](
    text_of=_same,
    key_of=_same,
    record_of=lambda name: [name.database, name.name],
    value_of=_decoded(tuple[str, str], lambda pair: Identifier(*pair)),
    order=lambda key, _: key,
    combine=_refuse_second_id,
)
"""The names of the tables by id."""

DROPPED_TABLES: Final = EntryFormat[str, DroppedTable](
    text_of=_same,
    key_of=_same,
    record_of=dropped_record,
    value_of=_decoded(DroppedTableRecord, dropped_from_record),
    order=lambda key, value: (value().dropped_version, key),
    combine=_refuse_second_drop,
)
"""The dropped tables by id."""

LOCATIONS: Final = EntryFormat[str, UsedLocation](
    text_of=_same,
    key_of=_same,
    record_of=_same,
    value_of=msgspec.json.Decoder(UsedLocation).decode,
    order=lambda key, _: key,
    combine=combine_uses,
)
"""The used locations, and the folders above them, by key."""
