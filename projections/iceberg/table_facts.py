"""Facts of a table for manifests and metadata, version by version."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from attrs import Factory, define, frozen
from msgspec.structs import replace

import projections.iceberg.metadata_schema as iceberg
from ledger.model import iceberg_objects as iceberg_schemas
from ledger.model import types as t
from ledger.model.arrow_types import nested_ids
from ledger.model.errors import UnsupportedError
from ledger.model.iceberg_types import default_json, iceberg_type
from ledger.model.schema import Schema
from ledger.model.transforms import field_types
from ledger.model.types.text import format_type, parse_type
from ledger.state.declared_formats import Rules
from ledger.state.table import TableState
from projections.iceberg.manifest_entry import TableFacts
from projections.iceberg.metadata_schema import (
    DEFAULTS_SINCE,
    ListType,
    MapType,
    NestedField,
    StructType,
    Type,
    primitive_type,
)
from projections.iceberg.position import IcebergPosition
from projections.iceberg.table_file import MetadataTrail
from projections.iceberg.table_metadata import SEQUENCES_SINCE


def iceberg_schema(schema: Schema, *, schema_id: int, format_version: int) -> iceberg.Schema:
    """Convert a schema to Iceberg's for a format version.

    Lists and maps have the ids assigned with the schema, or else those of Paimon's
    formula, which files written through `Schema.to_arrow` contain.

    Args:
        schema: The ledger's schema.
        schema_id: Iceberg's id for it.
        format_version: 1, 2 or 3; defaults need 3 and are left out before.

    Raises:
        UnsupportedError: Iceberg cannot express a column; the message names it.

    Example:
        >>> lists = Schema.of({"a": t.ArrayType(t.IntType())})
        >>> made = iceberg_schema(lists, schema_id=0, format_version=2)
        >>> made.fields[0].type.element_id
        536870912
    """
    fields = tuple(_convert_field(each, each.name, format_version) for each in schema.fields)
    return iceberg.Schema(schema_id, fields, _identifier_field_ids(schema))


def iceberg_column(member: t.DataField, format_version: int) -> NestedField:
    """Convert a column to Iceberg's for a format version; see `iceberg_schema`."""
    return _convert_field(member, member.name, format_version)


def _identifier_field_ids(schema: Schema) -> tuple[int, ...]:
    """Return the identifier fields: those that were set, or else the primary key's."""
    if schema.identifier_field_ids:
        return schema.identifier_field_ids
    keys = [schema.field(name) for name in schema.primary_keys]
    inexact = (t.FloatType, t.DoubleType)
    if any(each.type.nullable or isinstance(each.type, inexact) for each in keys):
        return ()
    return tuple(each.id for each in keys)


def _convert_field(member: t.DataField, path: str, format_version: int) -> NestedField:
    defaults = {}
    if format_version >= DEFAULTS_SINCE:
        defaults = {
            "initial_default": _default_json(member.initial_default, member.type, path),
            "write_default": _default_json(member.default_value, member.type, path),
        }
    return NestedField(
        id=member.id,
        name=member.name,
        type=_convert_type(member.type, _TypePosition(path, format_version, member.id)),
        required=not member.type.nullable,
        doc=member.description,
        **defaults,
    )


def _default_json(text: str | None, data_type: t.DataType, path: str) -> Any:
    return None if text is None else default_json(text, data_type, path)


@frozen
class _TypePosition:
    """Position of a type: its path, the nearest named field, the lists and maps below that."""

    path: str
    format_version: int
    field_id: int
    depth: int = 0

    def inside(self, name: str) -> _TypePosition:
        return _TypePosition(
            f"{self.path}.{name}", self.format_version, self.field_id, self.depth + 1
        )

    def ids(self, data_type: t.DataType) -> tuple[int, ...]:
        return nested_ids(data_type, self.field_id, self.depth + 1)


def _convert_type(data_type: t.DataType, place: _TypePosition) -> Type:
    match data_type:
        case t.RowType(fields=fields):
            members = (
                _convert_field(each, f"{place.path}.{each.name}", place.format_version)
                for each in fields
            )
            return StructType(tuple(members))
        case t.ArrayType(element=element):
            (number,) = place.ids(data_type)
            return ListType(
                element_id=number,
                element=_convert_type(element, place.inside("element")),
                element_required=not element.nullable,
            )
        case t.MapType():
            return _convert_map(data_type, place)
        case _:
            return _convert_primitive(data_type, place)


def _convert_map(data_type: t.MapType, place: _TypePosition) -> MapType:
    key_id, value_id = place.ids(data_type)
    return MapType(
        key_id=key_id,
        key=_convert_type(data_type.key, place.inside("key")),
        value_id=value_id,
        value=_convert_type(data_type.value, place.inside("value")),
        value_required=not data_type.value.nullable,
    )


def _convert_primitive(data_type: t.DataType, place: _TypePosition) -> Type:
    try:
        return primitive_type(iceberg_type(data_type, format_version=place.format_version))
    except UnsupportedError as error:
        raise UnsupportedError(
            f"column {place.path} is not possible in an Iceberg table: {error}"
        ) from error


_NO_COLUMNS = b'{"type":"struct","schema-id":0,"fields":[]}'
"""Schema in manifests as long as Iceberg could express no schema of the table."""


@define
class TableFactsFold:
    """Fold of a table's schema, format version and specs over its commits.

    A schema that Iceberg cannot express is no problem once no snapshot of it can be read. One
    that a later format version can express gets its id when that version is declared.

    Attributes:
        location: The table's URI.
        data_location: The URI from which data file paths start.
        trail: The schemas, snapshots and logs.
        facts: The facts after the newest commit.
        schema: The ledger's schema after the newest commit.
        schema_ids: As in `IcebergPosition`.
        problem: The error if Iceberg cannot express the schema; else None.
    """

    location: str
    data_location: str
    trail: MetadataTrail
    facts: TableFacts
    schema: Schema | None
    schema_ids: list[tuple[int, int]]
    problem: UnsupportedError | None = None
    _waiting: dict[int, tuple[Schema, UnsupportedError]] = Factory(dict)
    _unsaid: dict[int, tuple[iceberg_schemas.IcebergSnapshot, int, UnsupportedError]] = Factory(
        dict
    )

    @classmethod
    def at(
        cls,
        location: str,
        data_location: str,
        trail: MetadataTrail,
        start: IcebergPosition,
        before: TableState | None,
    ) -> TableFactsFold:
        """Return the fold at a position.

        Args:
            location: The table's URI.
            data_location: The URI from which data file paths start.
            trail: The trail at the position.
            start: The position.
            before: The table's state there; None before its first commit.
        """
        facts = TableFacts(
            location,
            start.format_version,
            start.first_sequenced,
            schema=trail.schema_body if before else b"",
            specs={each.spec_id: each for each in before.specs} if before else {},
            types={key: parse_type(text) for key, text in start.source_types.items()},
            data_location=data_location,
        )
        schema = before.schema if before else None
        return cls(location, data_location, trail, facts, schema, list(start.schema_ids))

    def learn(self, state: TableState, last_snapshot_id: int) -> None:
        """Apply a version that changed more than files and tags.

        Args:
            state: The table's state after it.
            last_snapshot_id: The newest snapshot before it.
        """
        facts, schema = self.facts, state.schema
        rules = Rules.of(schema.options)
        version = max(facts.format_version, rules.format_version)
        if schema != self.schema or version != facts.format_version:
            self._learn_schema(schema, version, is_declared="iceberg" in rules.formats)
        self.schema = schema
        is_first = version >= SEQUENCES_SINCE > facts.format_version
        self.facts = TableFacts(
            self.location,
            version,
            last_snapshot_id + 1 if is_first else facts.first_sequenced,
            schema=self.trail.schema_body if self.trail.schemas else _NO_COLUMNS,
            specs={each.spec_id: each for each in state.specs},
            types=self._source_types(state),
            data_location=self.data_location,
        )

    def _learn_schema(self, schema: Schema, version: int, *, is_declared: bool) -> None:
        self.problem = self._make_schema_current(schema, version)
        if self.problem is not None:
            self._waiting[schema.id] = schema, self.problem
        elif is_declared and self._waiting:
            # Done here, so that a position stored later need not record pending ids.
            for older, _ in self._waiting.values():
                self._make_schema_current(older, version)
            self._waiting.clear()
            self._make_schema_current(schema, version)
            self._add_waiting_snapshots()

    def _make_schema_current(self, schema: Schema, version: int) -> UnsupportedError | None:
        """Make a schema current; return the error if Iceberg cannot express it."""
        try:
            made = iceberg_schema(schema, schema_id=schema.id, format_version=version)
        except UnsupportedError as error:
            return error
        self.trail.add_schema(made)
        ids = dict(self.schema_ids)
        if self._waiting or not ids or self.schema_ids[-1][1] != self.trail.schema_id:
            ids[schema.id] = self.trail.schema_id
            self.schema_ids = sorted(ids.items())
        return None

    def _add_waiting_snapshots(self) -> None:
        said = dict(self.schema_ids)
        for key, (snapshot, ledger_id, _) in list(self._unsaid.items()):
            if ledger_id in said:
                del self._unsaid[key]
                if key in self.trail.snapshots:
                    self.trail.add_snapshot(replace(snapshot, schema_id=said[ledger_id]))

    def add_snapshot(self, snapshot: iceberg_schemas.IcebergSnapshot, ledger_id: int) -> None:
        """Add a snapshot with Iceberg's id of its schema to the trail.

        Args:
            snapshot: The snapshot, without a schema id.
            ledger_id: The ledger's id of its schema.
        """
        self.trail.add_snapshot(replace(snapshot, schema_id=self.schema_id(ledger_id)))
        if ledger_id in self._waiting:
            problem = self._waiting[ledger_id][1]
            self._unsaid[snapshot.snapshot_id] = snapshot, ledger_id, problem

    def inexpressible_error(self, is_kept: Callable[[int], bool]) -> UnsupportedError | None:
        """Return the error if Iceberg cannot express the schema, or that of a kept snapshot."""
        if self.problem is not None:
            return self.problem
        for snapshot_id, (_, _, problem) in self._unsaid.items():
            if is_kept(snapshot_id):
                return UnsupportedError(
                    f"snapshot {snapshot_id} has a schema that Iceberg cannot express: "
                    f"{problem.message}; expire the snapshots up to it, and delete their tags"
                )
        return None

    def _source_types(self, state: TableState) -> dict[int, t.DataType]:
        known = field_types(state.schema)
        sources = {each.source_id for spec in state.specs for each in spec.fields}
        return {
            each: known.get(each) or self.facts.types.get(each, t.UnknownType())
            for each in sorted(sources)
        }

    @property
    def source_types(self) -> dict[int, str]:
        """Types of partition source columns by field id, as stored in a position."""
        return {key: format_type(each) for key, each in self.facts.types.items()}

    def schema_id(self, ledger_id: int) -> int:
        """Return Iceberg's id of a ledger schema."""
        fitting = [iceberg_id for first, iceberg_id in self.schema_ids if first <= ledger_id]
        return fitting[-1] if fitting else self.trail.schema_id

    def iceberg_ids(self, ledger_ids: Iterable[int]) -> tuple[int, ...]:
        """Return Iceberg's ids of some ledger schemas, each once, the last used last."""
        newest_first = map(self.schema_id, sorted(ledger_ids, reverse=True))
        return tuple(reversed(dict.fromkeys(newest_first)))
