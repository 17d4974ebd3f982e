"""Operation rows of events that only imported tables have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from msgspec import UNSET, UnsetType

from ledger.decide.operation import Cell, Operation
from ledger.events import imported as e
from ledger.events.imported import DeltaFollowed, PaimonBranchUpdated
from ledger.events.partitions import PartitionAction, PartitionsUpdated
from ledger.model.messages import counted, moment
from ledger.state.iceberg_origin import author_of, count_of


def _snapshot_cells(fact: e.SnapshotAdded | e.SnapshotReplaced) -> Iterator[tuple[Cell, Any]]:
    yield ("snapshot", fact.snapshot.snapshot_id), fact.snapshot


def _removed_snapshot_cells(fact: e.SnapshotsRemoved) -> Iterator[tuple[Cell, Any]]:
    for each in fact.snapshot_ids:
        yield ("snapshot", each), None


def ref_cells(fact: e.SnapshotRefSet) -> Iterator[tuple[Cell, Any]]:
    """Yield the cell of a ref, with the snapshot that it points to."""
    yield ("ref", fact.ref_name), fact.ref


def removed_ref_cells(fact: e.SnapshotRefRemoved) -> Iterator[tuple[Cell, Any]]:
    """Yield the cell of a ref that was removed."""
    yield ("ref", fact.ref_name), None


def _replaced_schema_cells(fact: e.SchemaReplaced) -> Iterator[tuple[Cell, Any]]:
    yield ("columns",), (fact.fields, fact.identifier_field_ids)


def _current_schema_cells(fact: e.SchemaNamed | e.CurrentSchemaSet) -> Iterator[tuple[Cell, Any]]:
    yield ("currentSchema",), fact.schema_id


def _added_schema_cells(fact: e.SchemaAdded) -> Iterator[tuple[Cell, Any]]:
    yield ("schema", fact.schema.schema_id), fact.schema


def _removed_schema_cells(fact: e.SchemasRemoved) -> Iterator[tuple[Cell, Any]]:
    for each in fact.schema_ids:
        yield ("schema", each), None


def _removed_layout_cells(fact: e.LayoutsRemoved) -> Iterator[tuple[Cell, Any]]:
    for each in fact.spec_ids:
        yield ("partitionSpec", each), None
    for each in fact.order_ids:
        yield ("sortOrder", each), None


def _removed_statistics_cells(fact: e.StatisticsRemoved) -> Iterator[tuple[Cell, Any]]:
    for each in fact.snapshot_ids:
        yield ("statistics", each), None
    for each in fact.of_partitions:
        yield ("partitionStatistics", each), None


def _encryption_key_cells(fact: e.EncryptionKeyAdded) -> Iterator[tuple[Cell, Any]]:
    yield ("encryptionKey", fact.encryption_key.key_id), fact.encryption_key


def _removed_key_cells(fact: e.EncryptionKeyRemoved) -> Iterator[tuple[Cell, Any]]:
    yield ("encryptionKey", fact.key_id), None


def _log_update_cells(
    fact: e.SnapshotLogUpdated | e.MetadataLogUpdated,
) -> Iterator[tuple[Cell, Any]]:
    name = "snapshotLog" if isinstance(fact, e.SnapshotLogUpdated) else "metadataLog"
    yield (name,), (fact.dropped, fact.added)


def _table_fact_cells(fact: e.TableFactsSet) -> Iterator[tuple[Cell, Any]]:
    for name in fact.__struct_fields__:
        value = getattr(fact, name)
        if value is not UNSET:
            yield ("tableFact", name), value


def _followed_source_cells(fact: e.SourceFollowed) -> Iterator[tuple[Cell, Any]]:
    yield ("source",), fact.metadata_file


def _followed_delta_cells(fact: DeltaFollowed) -> Iterator[tuple[Cell, Any]]:
    yield ("source",), fact.delta_version


def _paimon_branch_cells(fact: PaimonBranchUpdated) -> Iterator[tuple[Cell, Any]]:
    yield ("branch", fact.branch_name), fact.added
    if not isinstance(fact.renamed_from, UnsetType):
        yield ("branch", fact.renamed_from), None


def _partition_cells(fact: PartitionsUpdated) -> Iterator[tuple[Cell, Any]]:
    branch = None if isinstance(fact.branch_name, UnsetType) else fact.branch_name
    if not isinstance(fact.snapshot_id, UnsetType):
        yield ("partitionStatistics", branch, fact.snapshot_id), fact.partitions
        return
    for each in fact.partitions:
        yield ("partition", branch, *each.spec.values()), each


def describe_ref(fact: e.SnapshotRefSet) -> str:
    """Return the snapshot that a branch or tag points to, as display text."""
    return f"{fact.ref.type} {fact.ref_name} points to snapshot {fact.ref.snapshot_id}"


def describe_removed_ref(fact: e.SnapshotRefRemoved) -> str:
    """Return that a branch or tag was removed, as display text."""
    return f"removed the branch or tag {fact.ref_name}"


def _describe_branch(fact: PaimonBranchUpdated) -> str:
    added = 0 if isinstance(fact.added, UnsetType) else len(fact.added)
    went = len(fact.removed)
    if not isinstance(fact.renamed_from, UnsetType):
        return f"renamed branch {fact.renamed_from} to {fact.branch_name}"
    return f"updated branch {fact.branch_name}: {added} of its files added, {went} removed"


_PARTITION_VERBS: dict[PartitionAction, str] = {
    "ADD": "added to the statistics of",
    "REPLACE": "replaced the statistics of",
    "CREATE": "created",
    "DROP": "dropped",
    "MARK_DONE": "marked as done",
}


def _describe_partitions(fact: PartitionsUpdated) -> str:
    where = "" if isinstance(fact.branch_name, UnsetType) else f" of branch {fact.branch_name}"
    changes = fact.changes
    listed = isinstance(changes, UnsetType)
    count = len(fact.partitions) if isinstance(changes, UnsetType) else changes.count
    if not isinstance(fact.snapshot_id, UnsetType):
        return f"snapshot {fact.snapshot_id}{where} changed {counted(count, 'partition')}"
    if not listed:
        return f"changed {counted(count, 'partition')}{where}"
    found: dict[PartitionAction, list[str]] = {}
    for each in fact.partitions:
        name = "/".join(f"{key}={value}" for key, value in each.spec.items())
        found.setdefault(each.action, []).append(name)
    parts = (
        f"{_PARTITION_VERBS[action]} partition {names[0]}"
        if len(names) == 1
        else f"{_PARTITION_VERBS[action]} {counted(len(names), 'partition')}"
        for action, names in found.items()
    )
    return f"{', '.join(parts) or 'changed no partitions'}{where}"


def _describe_snapshot(fact: e.SnapshotAdded) -> str:
    snapshot = fact.snapshot
    summary = snapshot.summary or {}
    counts = [
        f"{sign}{counted(count, what)}"
        for sign, key, what in (
            ("+", "added-records", "row"),
            ("-", "deleted-records", "row"),
            ("+", "added-data-files", "file"),
            ("-", "deleted-data-files", "file"),
        )
        if (count := count_of(summary, key, absent=-1)) >= 0
    ]
    author = author_of(summary)
    text = ", ".join([summary.get("operation", "unknown operation"), *counts])
    by = f", by {author}" if author else ""
    return f"snapshot {snapshot.snapshot_id} of {moment(snapshot.timestamp_ms)}: {text}{by}"


def _noun_with_ids(noun: str, ids: tuple[int, ...]) -> str:
    plural = "s" if len(ids) > 1 else ""
    return f"{noun}{plural} {', '.join(map(str, ids))}" if ids else ""


def _describe_removal(*parts: str) -> str:
    return "removed " + " and ".join(filter(None, parts))


def _describe_log(what: str, fact: e.SnapshotLogUpdated | e.MetadataLogUpdated) -> str:
    gone = f", the oldest {fact.dropped:,} removed" if fact.dropped else ""
    return f"{what}: {counted(len(fact.added), 'entry', 'entries')} added{gone}"


def _describe_table_facts(fact: e.TableFactsSet) -> str:
    text = ", ".join(
        f"{cell[1].replace('_', ' ')} {value}" for cell, value in _table_fact_cells(fact)
    )
    return f"set {text or 'nothing'}"


ORIGIN_OPERATIONS: tuple[Operation, ...] = (
    Operation(facts=(e.SnapshotAdded,), sets=_snapshot_cells, says=_describe_snapshot),
    Operation(
        facts=(e.SnapshotReplaced,),
        sets=_snapshot_cells,
        says=lambda it: f"the metadata of snapshot {it.snapshot.snapshot_id} changed",
    ),
    Operation(
        facts=(e.SnapshotsRemoved,),
        sets=_removed_snapshot_cells,
        says=lambda it: _describe_removal(_noun_with_ids("snapshot", it.snapshot_ids)),
    ),
    Operation(
        facts=(e.SchemaReplaced,),
        sets=_replaced_schema_cells,
        says=lambda it: f"replaced the columns by {', '.join(each.name for each in it.fields)}",
    ),
    Operation(
        facts=(e.SchemaNamed,),
        sets=_current_schema_cells,
        says=lambda it: f"the columns are schema {it.schema_id}",
    ),
    Operation(
        facts=(e.SchemaAdded,),
        sets=_added_schema_cells,
        says=lambda it: f"added schema {it.schema.schema_id}, which is not the current one",
    ),
    Operation(
        facts=(e.CurrentSchemaSet,),
        sets=_current_schema_cells,
        says=lambda it: f"schema {it.schema_id} is the current one",
    ),
    Operation(
        facts=(e.SchemasRemoved,),
        sets=_removed_schema_cells,
        says=lambda it: _describe_removal(_noun_with_ids("schema", it.schema_ids)),
    ),
    Operation(
        facts=(e.LayoutsRemoved,),
        sets=_removed_layout_cells,
        says=lambda it: _describe_removal(
            _noun_with_ids("partition spec", it.spec_ids),
            _noun_with_ids("sort order", it.order_ids),
        ),
    ),
    Operation(
        facts=(e.StatisticsRemoved,),
        sets=_removed_statistics_cells,
        says=lambda it: _describe_removal(
            _noun_with_ids("the statistics of snapshot", it.snapshot_ids),
            _noun_with_ids("the partition statistics of snapshot", it.of_partitions),
        ),
    ),
    Operation(
        facts=(e.EncryptionKeyAdded,),
        sets=_encryption_key_cells,
        says=lambda it: f"added the encryption key {it.encryption_key.key_id}",
    ),
    Operation(
        facts=(e.EncryptionKeyRemoved,),
        sets=_removed_key_cells,
        says=lambda it: f"removed the encryption key {it.key_id}",
    ),
    Operation(
        facts=(e.SnapshotLogUpdated,),
        sets=_log_update_cells,
        says=lambda it: _describe_log("the snapshot log", it),
    ),
    Operation(
        facts=(e.MetadataLogUpdated,),
        sets=_log_update_cells,
        says=lambda it: _describe_log("the metadata log", it),
    ),
    Operation(facts=(e.TableFactsSet,), sets=_table_fact_cells, says=_describe_table_facts),
    Operation(
        facts=(e.SourceFollowed,),
        sets=_followed_source_cells,
        says=lambda it: f"followed the source up to {it.metadata_file}",
    ),
    Operation(
        facts=(DeltaFollowed,),
        sets=_followed_delta_cells,
        says=lambda it: f"followed the source up to its version {it.delta_version}",
    ),
    Operation(facts=(PaimonBranchUpdated,), sets=_paimon_branch_cells, says=_describe_branch),
    Operation(
        facts=(PartitionsUpdated,), sets=_partition_cells, says=_describe_partitions, alters=False
    ),
)
