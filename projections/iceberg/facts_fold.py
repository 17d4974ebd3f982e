"""FactsFold: what manifests and metadata say of a table, from one version to the next."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define

from ledger.evolution.rules import Rules
from ledger.evolution.state import TableState
from ledger.model import types as t
from ledger.model.schema import Schema
from ledger.model.transform_path import field_types
from ledger.model.type_text import format_type, parse_type
from projections.iceberg.metadata.table import SEQUENCES_SINCE
from projections.iceberg.position import Position
from projections.iceberg.schema import iceberg_schema
from projections.iceberg.table_facts import TableFacts
from projections.iceberg.trail import Trail


@define
class FactsFold:
    """A table's schema, format version and specs while its commits go by.

    Attributes:
        location: The table's URI.
        trail: Where schemas go.
        facts: What holds after the newest commit.
        schema: The ledger's, after the newest commit.
        schema_ids: As in `Position`.
    """

    location: str
    trail: Trail
    facts: TableFacts
    schema: Schema | None
    schema_ids: list[tuple[int, int]]

    @classmethod
    def at(
        cls, location: str, trail: Trail, start: Position, before: TableState | None
    ) -> FactsFold:
        """Return what holds at a position.

        Args:
            location: The table's URI.
            trail: The one at the position.
            start: The position.
            before: The table there; None before its first commit.
        """
        facts = TableFacts(
            location,
            start.format_version,
            start.first_sequenced,
            schema=trail.schema_body if before else b"",
            specs={each.spec_id: each for each in before.specs} if before else {},
            types={key: parse_type(text) for key, text in start.source_types.items()},
        )
        return cls(
            location, trail, facts, before.schema if before else None, list(start.schema_ids)
        )

    def learn(self, state: TableState, last_snapshot_id: int) -> None:
        """Go on to a version that changed more than files and tags.

        Args:
            state: The table after it.
            last_snapshot_id: The newest snapshot before it.

        Raises:
            UnsupportedError: Iceberg cannot say a column.
        """
        facts, schema = self.facts, state.schema
        version = max(facts.format_version, Rules.of(schema.options).format_version)
        if schema != self.schema or version != facts.format_version:
            made = iceberg_schema(schema, schema_id=schema.id, format_version=version)
            self.trail.add_schema(made)
            if not self.schema_ids or self.schema_ids[-1][1] != self.trail.schema_id:
                self.schema_ids.append((schema.id, self.trail.schema_id))
        self.schema = schema
        is_first = version >= SEQUENCES_SINCE > facts.format_version
        self.facts = TableFacts(
            self.location,
            version,
            last_snapshot_id + 1 if is_first else facts.first_sequenced,
            schema=self.trail.schema_body,
            specs={each.spec_id: each for each in state.specs},
            types=self._source_types(state),
        )

    def _source_types(self, state: TableState) -> dict[int, t.DataType]:
        known = field_types(state.schema)
        sources = {each.source_id for spec in state.specs for each in spec.fields}
        return {
            each: known.get(each) or self.facts.types.get(each, t.UnknownType())
            for each in sorted(sources)
        }

    @property
    def source_types(self) -> dict[int, str]:
        """What a position keeps of the sources' types."""
        return {key: format_type(each) for key, each in self.facts.types.items()}

    def schema_id(self, ledger_id: int) -> int:
        """Return Iceberg's id of a ledger's schema."""
        fitting = [iceberg_id for first, iceberg_id in self.schema_ids if first <= ledger_id]
        return fitting[-1] if fitting else self.trail.schema_id

    def iceberg_ids(self, ledger_ids: Iterable[int]) -> tuple[int, ...]:
        """Return Iceberg's ids of some of the ledger's schemas."""
        return tuple(map(self.schema_id, ledger_ids))
