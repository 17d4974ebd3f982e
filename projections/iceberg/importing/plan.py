"""What an import of Iceberg's metadata files would commit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import UNSET

from ledger.events.born import iceberg as e
from ledger.events.table_events import SchemaRecord
from ledger.evolution.declared.rules import FORMATS_OPTION
from ledger.model.errors import UnsupportedError
from ledger.model.schema import highest_field_id
from ledger.model.types.wire import field_from_wire
from projections.iceberg.importing import metadata as m
from projections.iceberg.importing.differences import counters, difference
from projections.iceberg.importing.schemas import ledger_schema
from projections.iceberg.importing.sources import MetadataFile
from projections.iceberg.importing.steps import Step, steps
from projections.iceberg.metadata.schema import Schema
from projections.iceberg.metadata.table import TableMetadata
from projections.importing.trial import ImportedBirth, Planned, Trial


def birth_of(first: TableMetadata, source: str) -> ImportedBirth:
    """Return how a table begins whose oldest metadata file is known.

    Args:
        first: What that file says.
        source: Whose table it is.

    Raises:
        UnsupportedError: The ledger cannot hold its first schema, spec or order.
    """
    formats = first.properties.get(FORMATS_OPTION, "iceberg")
    if formats != "iceberg":
        raise UnsupportedError(
            f"the source has the property {FORMATS_OPTION}={formats}, which in the ledger says "
            "iceberg for its table; take it away there"
        )
    schema = ledger_schema(_first_schema(first), first.format_version)
    fields = tuple(map(field_from_wire, schema.fields))
    spec, order = first.specs_by_id.get(0), first.orders_by_id.get(1)
    begins_sorted = order is not None and 0 not in first.orders_by_id
    return ImportedBirth(
        schema=SchemaRecord(
            fields=schema.fields,
            highest_field_id=highest_field_id(fields),
            options={FORMATS_OPTION: "iceberg"},
            identifier_field_ids=schema.identifier_field_ids,
        ),
        born=e.IcebergBirth(
            source=source,
            location=first.location,
            format_version=first.format_version,
            schema_id=schema.schema_id,
            table_uuid=first.table_uuid or UNSET,
            text=schema.text,
        ),
        millis=min(_times(first)),
        field_id_policy="iceberg",
        partition_spec=UNSET if spec is None else spec.fields,
        sort_order=order.fields if begins_sorted and order is not None else UNSET,
    )


def _first_schema(first: TableMetadata) -> Schema:
    """Return the oldest schema that was the current one once, as far as a file says."""
    # Iceberg gives 0 to the schema of a new table, and a snapshot names the current one.
    current = {0, first.current_schema_id, *(each.schema_id for each in first.snapshots)}
    known = (each for each in first.schemas if each.schema_id in current)
    return min(known, key=lambda each: each.schema_id)


def _times(metadata: TableMetadata) -> Iterator[int]:
    yield metadata.last_updated_ms
    yield from (each.timestamp_ms for each in metadata.snapshots)
    yield from (each.timestamp_ms for each in metadata.snapshot_log)
    yield from (each.timestamp_ms for each in metadata.metadata_log)


def planned(
    trial: Trial, files: Sequence[MetadataFile], known: m.Standing | None = None
) -> Iterator[Planned]:
    """Yield the transactions that metadata files bring, oldest first.

    Args:
        trial: The table as it stands; afterwards, as all of them leave it.
        files: The files, oldest first.
        known: The table as it stands, where somebody has said it in Iceberg's words.

    Raises:
        UnsupportedError: The ledger cannot hold what one says; the message names it.
    """
    for each in files:
        begun = known or m.standing(trial.state, each.metadata)
        before = begun.metadata
        for step in steps(before, each.metadata):
            yield _planned(trial, before, step, each)
            before = step.target
        known = m.standing(trial.state, each.metadata, begun)
        _refuse_inexact(known.metadata, each)


def _planned(trial: Trial, before: TableMetadata, step: Step, file: MetadataFile) -> Planned:
    events = difference(trial, before, step.target)
    if step.is_whole:
        state = trial.after(events, step.millis, step.author)
        followed = e.SourceFollowed(file.url, step.target.last_updated_ms)
        events = (*events, *counters(state, step.target), followed)
    return trial.take(events, step.millis, step.author, file.url)


def _refuse_inexact(made: TableMetadata, file: MetadataFile) -> None:
    wrong = m.disagreements(made, file.metadata)
    if wrong:
        said = ", ".join(each.replace("_", "-") for each in wrong)
        raise UnsupportedError(f"the ledger cannot hold the {said} of {file.url} exactly")
