"""The rows of what only happens to tables that were born in Iceberg; nobody asks for it here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET

from ledger.events.born import iceberg as e
from ledger.events.born.delta import DeltaFollowed
from ledger.events.born.paimon import PaimonBranchUpdated
from ledger.evolution.operation import Cell, Operation


def _snapshot(fact: e.SnapshotAdded) -> Iterator[tuple[Cell, Any]]:
    yield ("snapshot", fact.snapshot.snapshot_id), fact.snapshot


def _no_snapshots(fact: e.SnapshotsRemoved) -> Iterator[tuple[Cell, Any]]:
    for each in fact.snapshot_ids:
        yield ("snapshot", each), None


def ref_cells(fact: e.SnapshotRefSet) -> Iterator[tuple[Cell, Any]]:
    """Yield what a branch or tag points to."""
    yield ("ref", fact.ref_name), fact.ref


def no_ref_cells(fact: e.SnapshotRefRemoved) -> Iterator[tuple[Cell, Any]]:
    """Yield that a branch or tag points to nothing."""
    yield ("ref", fact.ref_name), None


def _columns(fact: e.SchemaReplaced) -> Iterator[tuple[Cell, Any]]:
    yield ("columns",), (fact.fields, fact.identifier_field_ids)


def _current_schema(fact: e.SchemaNamed | e.CurrentSchemaSet) -> Iterator[tuple[Cell, Any]]:
    yield ("currentSchema",), fact.schema_id


def _schema(fact: e.SchemaAdded) -> Iterator[tuple[Cell, Any]]:
    yield ("schema", fact.schema.schema_id), fact.schema


def _no_schemas(fact: e.SchemasRemoved) -> Iterator[tuple[Cell, Any]]:
    for each in fact.schema_ids:
        yield ("schema", each), None


def _no_layouts(fact: e.LayoutsRemoved) -> Iterator[tuple[Cell, Any]]:
    for each in fact.spec_ids:
        yield ("partitionSpec", each), None
    for each in fact.order_ids:
        yield ("sortOrder", each), None


def _no_statistics(fact: e.StatisticsRemoved) -> Iterator[tuple[Cell, Any]]:
    for each in fact.snapshot_ids:
        yield ("statistics", each), None
    for each in fact.of_partitions:
        yield ("partitionStatistics", each), None


def _key(fact: e.EncryptionKeyAdded) -> Iterator[tuple[Cell, Any]]:
    yield ("encryptionKey", fact.encryption_key.key_id), fact.encryption_key


def _no_key(fact: e.EncryptionKeyRemoved) -> Iterator[tuple[Cell, Any]]:
    yield ("encryptionKey", fact.key_id), None


def _logged(fact: e.SnapshotLogUpdated | e.MetadataLogUpdated) -> Iterator[tuple[Cell, Any]]:
    name = "snapshotLog" if isinstance(fact, e.SnapshotLogUpdated) else "metadataLog"
    yield (name,), (fact.dropped, fact.added)


def _facts(fact: e.TableFactsSet) -> Iterator[tuple[Cell, Any]]:
    for name in fact.__struct_fields__:
        value = getattr(fact, name)
        if value is not UNSET:
            yield ("tableFact", name), value


def _followed(fact: e.SourceFollowed) -> Iterator[tuple[Cell, Any]]:
    yield ("source",), fact.metadata_file


def _followed_delta(fact: DeltaFollowed) -> Iterator[tuple[Cell, Any]]:
    yield ("source",), fact.delta_version


def _branch(fact: PaimonBranchUpdated) -> Iterator[tuple[Cell, Any]]:
    yield ("branch", fact.branch_name), fact.added


BORN_OPERATIONS: tuple[Operation, ...] = (
    Operation(facts=(e.SnapshotAdded,), sets=_snapshot, claims=_snapshot),
    Operation(
        facts=(e.SnapshotsRemoved,),
        sets=_no_snapshots,
        claims=_no_snapshots,
    ),
    Operation(
        facts=(e.SchemaReplaced,),
        sets=_columns,
        claims=_columns,
    ),
    Operation(
        facts=(e.SchemaNamed,),
        sets=_current_schema,
        claims=_current_schema,
    ),
    Operation(
        facts=(e.SchemaAdded,),
        sets=_schema,
        claims=_schema,
    ),
    Operation(
        facts=(e.CurrentSchemaSet,),
        sets=_current_schema,
        claims=_current_schema,
    ),
    Operation(
        facts=(e.SchemasRemoved,),
        sets=_no_schemas,
        claims=_no_schemas,
    ),
    Operation(
        facts=(e.LayoutsRemoved,),
        sets=_no_layouts,
        claims=_no_layouts,
    ),
    Operation(
        facts=(e.StatisticsRemoved,),
        sets=_no_statistics,
        claims=_no_statistics,
    ),
    Operation(
        facts=(e.EncryptionKeyAdded,),
        sets=_key,
        claims=_key,
    ),
    Operation(
        facts=(e.EncryptionKeyRemoved,),
        sets=_no_key,
        claims=_no_key,
    ),
    Operation(
        facts=(e.SnapshotLogUpdated,),
        sets=_logged,
        claims=_logged,
    ),
    Operation(
        facts=(e.MetadataLogUpdated,),
        sets=_logged,
        claims=_logged,
    ),
    Operation(facts=(e.TableFactsSet,), sets=_facts, claims=_facts),
    Operation(
        facts=(e.SourceFollowed,),
        sets=_followed,
        claims=_followed,
    ),
    Operation(
        facts=(DeltaFollowed,),
        sets=_followed_delta,
        claims=_followed_delta,
    ),
    Operation(facts=(PaimonBranchUpdated,), sets=_branch, claims=_branch),
)
