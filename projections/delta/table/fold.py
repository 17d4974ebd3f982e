"""TableFold: what protocol and metadata say of a table while its commits go by.

A schema that Delta cannot say leaves the metadata as it was; it is a problem only where a snapshot
of it can be read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec
from attrs import Factory, define

from ledger.evolution.state import TableState
from ledger.evolution.table.origin.delta import DeltaOrigin
from ledger.model.errors import UnsupportedError
from ledger.model.schema import Schema
from projections.delta.position import DeltaPosition
from projections.delta.table.columns import nested_ids_of
from projections.delta.table.mapping import (
    HeldNames,
    clashes,
    fields_of,
    physical_names,
    renames_or_drops,
)
from projections.delta.table.metadata import (
    COLUMN_MAPPING,
    TableMetadata,
    features_of,
    protocol_json,
)
from projections.delta.table.types import Naming, type_changes

Schemas = Callable[[Iterable[int]], Mapping[int, Schema]]
"""Finds schemas of the table by their ids."""


@define
class TableFold:
    """A table's protocol and metadata.

    Attributes:
        schemas: Finds older schemas.
        protocol: As JSON; empty before the first commit.
        metadata: As JSON.
        features: The table features that were ever needed.
        said: The schema that the metadata is of.
        changes: What types were before.
        live: How many live files use the names of a schema, by its id.
        problem: Why Delta cannot say the newest schema; None if it can.
    """

    schemas: Schemas
    protocol: bytes = b""
    metadata: bytes = b""
    features: frozenset[str] = frozenset()
    said: Schema | None = None
    changes: dict[int, tuple[dict[str, str], ...]] = Factory(dict)
    live: dict[int, int] = Factory(dict)
    problem: UnsupportedError | None = None

    @classmethod
    def at(cls, start: DeltaPosition, before: TableState | None, schemas: Schemas) -> TableFold:
        """Return what holds at a position.

        Args:
            start: The position.
            before: The table there; None before its first commit.
            schemas: Finds older schemas.
        """
        said = None
        if before is not None and start.schema_id >= 0:
            is_newest = start.schema_id == before.schema.id
            said = before.schema if is_newest else schemas([start.schema_id])[start.schema_id]
        return cls(
            schemas,
            start.protocol.encode(),
            start.metadata.encode(),
            frozenset(start.features),
            said,
            dict(start.type_changes),
            dict(start.live),
        )

    @property
    def is_mapped(self) -> bool:
        """Whether columns have names of their own in files."""
        return COLUMN_MAPPING in self.features

    def says(self, schema: Schema) -> bool:
        """Whether the metadata is of a schema."""
        return self.said is not None and self.said.id == schema.id

    def count(self, schema_id: int, files: int) -> None:
        """Take note that files come or go, a negative number."""
        found = self.live.get(schema_id, 0) + files
        self.live[schema_id] = found
        if found <= 0:
            del self.live[schema_id]

    def learn(self, state: TableState) -> Iterator[bytes]:
        """Go on to a schema or to other live files; yield the lines that say what is new.

        Args:
            state: The table's.
        """
        self.problem = None
        try:
            protocol, metadata = self._said(state)
        except UnsupportedError as error:
            self.problem = error
            return
        if protocol != self.protocol:
            self.protocol = protocol
            yield b'{"protocol":%s}\n' % protocol
        if metadata != self.metadata:
            self.metadata = metadata
            yield b'{"metaData":%s}\n' % metadata
        self.said = state.schema

    def _said(self, state: TableState) -> tuple[bytes, bytes]:
        schema = state.schema
        held = HeldNames.of(self.schemas(self.live).values())
        for place, reason in clashes(schema, held):
            raise UnsupportedError(
                f"column {place.name} has no one name by which Delta finds it: {reason}; rewrite "
                "the older files under one name"
            )
        physical = physical_names(schema, held)
        changes = self._changed(schema)
        mapped = self.is_mapped or self._leaves_names(schema, physical)
        features = features_of(schema, self.features, is_mapped=mapped, changes=changes)
        # Only tables that come from Delta carry ids there that Delta's readers knew.
        is_imported = isinstance(state.origin, DeltaOrigin)
        nested = nested_ids_of(schema, physical) if mapped and is_imported else {}
        table_id, created_millis = _identity(state)
        made = TableMetadata(
            table_id,
            created_millis,
            schema,
            state.spec,
            Naming(physical if mapped else None, changes, nested),
            features,
        ).to_json()
        self.features, self.changes = features, changes
        return protocol_json(features), made

    def _leaves_names(self, schema: Schema, physical: Mapping[int, str]) -> bool:
        if any(place.path[-1] != physical[each] for place, each in fields_of(schema)):
            return True
        return bool(self.live) and self.said is not None and renames_or_drops(self.said, schema)

    def _changed(self, schema: Schema) -> dict[int, tuple[dict[str, str], ...]]:
        """Return what types were before, with what this step adds."""
        there = {each: place for place, each in fields_of(schema)}
        changes = {each: found for each, found in self.changes.items() if each in there}
        if self.said is None or not self.live or self.said.fields == schema.fields:
            return changes
        for place, each in fields_of(self.said):
            if each in there:
                found = type_changes(place.type, there[each].type)
                more = tuple(change.to_json() for change in found)
                if more:
                    changes[each] = (*changes.get(each, ()), *more)
        return changes


def _identity(state: TableState) -> tuple[str, int]:
    """Return the table's id and when it was created, as Delta's readers know them."""
    if not isinstance(state.origin, DeltaOrigin):
        return state.table_id, state.created_at
    found = msgspec.json.decode(state.origin.metadata, type=_Identity)
    return found.id, state.created_at if found.created_time is None else found.created_time


class _Identity(msgspec.Struct, rename="camel"):
    id: str
    created_time: int | None = None
