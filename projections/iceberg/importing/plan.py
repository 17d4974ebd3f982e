"""What an import would commit: decided as a whole, and tried, before anything is written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from attrs import define, frozen
from msgspec import UNSET, UnsetType

from ledger.events import TableEvent
from ledger.events import iceberg_events as e
from ledger.events.commit import NEWEST_FORMAT, Transaction
from ledger.events.spec_events import PartitionFieldRecord, SortFieldRecord
from ledger.events.table_events import SchemaRecord, TableCreated, TableName
from ledger.evolution.fold.table_builder import TableBuilder
from ledger.evolution.state import TableState
from ledger.model.errors import InvalidChangeError, UnsupportedError
from ledger.model.schema import highest_field_id
from ledger.model.types.wire import field_from_wire
from projections.iceberg.importing import metadata as m
from projections.iceberg.importing.differences import counters, difference
from projections.iceberg.importing.schemas import ledger_schema
from projections.iceberg.importing.sources import MetadataFile
from projections.iceberg.importing.steps import Step, steps
from projections.iceberg.metadata.table import TableMetadata


@frozen
class Birth:
    """What a table begins with that comes from Iceberg.

    Attributes:
        schema: Its first schema.
        born: Where it comes from.
        partition_spec: Spec 0, if the source has one.
        sort_order: Order 1, if the source began with it.
        millis: When it was made, as far as anything tells; Unix milliseconds.
    """

    schema: SchemaRecord
    born: e.IcebergBirth
    partition_spec: tuple[PartitionFieldRecord, ...] | UnsetType
    sort_order: tuple[SortFieldRecord, ...] | UnsetType
    millis: int

    @classmethod
    def of(cls, first: TableMetadata, source: str) -> Birth:
        """Return how a table begins whose oldest metadata file is known.

        Raises:
            UnsupportedError: The ledger cannot hold its first schema, spec or order.
        """
        formats = first.properties.get(m.FORMATS, "iceberg")
        if formats != "iceberg":
            raise UnsupportedError(
                f"the source has the property {m.FORMATS}={formats}, which in the ledger says "
                "iceberg for its table; take it away there"
            )
        schema = ledger_schema(first.schemas[0], first.format_version)
        fields = tuple(map(field_from_wire, schema.fields))
        spec, order = first.specs_by_id.get(0), first.orders_by_id.get(1)
        begins_sorted = order is not None and 0 not in first.orders_by_id
        return cls(
            SchemaRecord(
                fields=schema.fields,
                highest_field_id=highest_field_id(fields),
                options={m.FORMATS: "iceberg"},
                identifier_field_ids=schema.identifier_field_ids,
            ),
            e.IcebergBirth(
                source=source,
                location=first.location,
                format_version=first.format_version,
                schema_id=schema.schema_id,
                table_uuid=first.table_uuid or UNSET,
                text=schema.text,
            ),
            UNSET if spec is None else m.spec_part(spec),
            m.order_part(order) if begins_sorted and order is not None else UNSET,
            min(_times(first)),
        )

    def facts(self) -> dict[str, Any]:
        """Return what its creation says, by the keys of `TableCreated`, as far as there is any."""
        facts = {
            "schema": self.schema,
            "born": self.born,
            "partition_spec": self.partition_spec,
            "sort_order": self.sort_order,
        }
        return {key: each for key, each in facts.items() if each is not UNSET}

    def event(self, table_id: str) -> TableCreated:
        """Return the creation, of a table that has no name yet."""
        return TableCreated(
            identifier=TableName("", ""),
            table_id=table_id,
            path="",
            field_id_policy="iceberg",
            **self.facts(),
        )


def _times(metadata: TableMetadata) -> Iterator[int]:
    yield metadata.last_updated_ms
    yield from (each.timestamp_ms for each in metadata.snapshots)
    yield from (each.timestamp_ms for each in metadata.snapshot_log)
    yield from (each.timestamp_ms for each in metadata.metadata_log)


@frozen
class Planned:
    """One transaction to come.

    Attributes:
        events: What it says.
        millis: When that happened.
        author: Who did it, as far as the source says.
        metadata_file: The file that it was read from.
    """

    events: tuple[TableEvent, ...]
    millis: int
    author: str
    metadata_file: str


def unborn(birth: Birth) -> TableState:
    """Return the table as its creation will leave it, to plan on."""
    builder = TableBuilder()
    builder.begin(0, birth.millis, NEWEST_FORMAT)
    builder.add(Transaction(id="", events=(birth.event("unborn"),)))
    return builder.freeze()


@define
class Planner:
    """Plans what is to come, on the table as everything planned so far leaves it.

    Attributes:
        state: The table.
        now_millis: Nothing takes effect later.
    """

    state: TableState
    now_millis: int

    def plan(self, files: Sequence[MetadataFile]) -> Iterator[Planned]:
        """Yield the transactions that metadata files bring, oldest first.

        Raises:
            UnsupportedError: The ledger cannot hold what one says; the message names it.
        """
        before = m.metadata_of(self.state)
        for each in files:
            for step in steps(before, each.metadata):
                yield self._planned(before, step, each)
                before = step.target
            self._refuse_inexact(each)

    def _planned(self, before: TableMetadata, step: Step, file: MetadataFile) -> Planned:
        millis = min(max(self.state.effective_millis, step.millis), self.now_millis)
        events = difference(self.state, before, step.target)
        state = self._folded(events, millis, step.author)
        if step.is_whole:
            followed = e.SourceFollowed(file.url, step.target.last_updated_ms)
            events = (*events, *counters(state, step.target), followed)
            state = self._folded(events, millis, step.author)
        self.state = state
        return Planned(events, millis, step.author, file.url)

    def _folded(self, events: tuple[TableEvent, ...], millis: int, author: str) -> TableState:
        builder = TableBuilder(self.state)
        time_millis = max(self.state.time_millis, millis)
        builder.begin(self.state.version + 1, time_millis, NEWEST_FORMAT)
        told = Transaction[TableEvent](
            id="", author=author, effective_time_millis=millis, events=events
        )
        try:
            builder.add(told)
        except InvalidChangeError as error:
            raise UnsupportedError(
                f"the ledger cannot hold what the source says: {error}"
            ) from error
        return builder.freeze()

    def _refuse_inexact(self, file: MetadataFile) -> None:
        wrong = m.disagreements(m.metadata_of(self.state), file.metadata)
        if wrong:
            said = ", ".join(each.replace("_", "-") for each in wrong)
            raise UnsupportedError(f"the ledger cannot hold the {said} of {file.url} exactly")
