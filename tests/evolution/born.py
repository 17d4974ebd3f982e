"""Imported tables, event by event; Iceberg's has one of every kind of its facts."""

from __future__ import annotations

from typing import Any

from ledger import SetOption, SortColumn
from ledger.events import (
    ColumnAdded,
    DeltaFollowed,
    PaimonBranchUpdated,
    PartitionChange,
    PartitionSpecUpdated,
    PartitionStatisticsSet,
    PartitionsUpdated,
    RolledBack,
    SchemaRecord,
    SnapshotCommitted,
    SnapshotsExpired,
    SortOrderReplaced,
    TableCreated,
    TableEvent,
    TablePromoted,
    TagCreated,
    TagDeleted,
    TagReplaced,
)
from ledger.events import imported as e
from ledger.events.imported import ImportedDeltaTable, ImportedPaimonTable
from ledger.log import Commit, Transaction
from ledger.model import FieldObject, PartitionField, SortField
from ledger.model import iceberg_objects as s
from ledger.state import TableBuilder
from tests.evolution import folds
from tests.evolution.folds import NAME

ID = FieldObject(1, "id", "BIGINT NOT NULL")
DAY = FieldObject(2, "day", "DATE")
FIRST, SECOND, STAGED = 7_000_000_000_000_000_001, 5, 9_000_000_000_000_000_009

CREATED = TableCreated(
    identifier=NAME,
    table_id="t",
    path="db.db/t",
    schema=SchemaRecord((ID,), highest_field_id=1),
    field_id_policy="iceberg",
    origin=e.ImportedIcebergTable(
        source="file:/lake/t", location="file:/lake/t", format_version=2, schema_id=0
    ),
)


def snapshot(number: int, sequence: int, **more: Any) -> e.SnapshotAdded:
    facts = {"timestamp_ms": sequence * 10, "schema_id": 0, "manifest_list": "m", **more}
    return e.SnapshotAdded(s.IcebergSnapshot(snapshot_id=number, sequence_number=sequence, **facts))


def ref(number: int, **more: Any) -> s.SnapshotRef:
    return s.SnapshotRef(snapshot_id=number, **{"type": "branch", **more})


STATISTICS = s.StatisticsFile(
    snapshot_id=FIRST,
    statistics_path="s3://b/a.puffin",
    file_size_in_bytes=9,
    file_footer_size_in_bytes=3,
    blob_metadata=(s.BlobMetadata(type="ndv", snapshot_id=FIRST, sequence_number=1, fields=(1,)),),
)
KEY = s.EncryptionKey(key_id="k", encrypted_key_metadata="AA==")

LIFE: tuple[tuple[TableEvent, ...], ...] = (
    (
        snapshot(FIRST, 1, summary={"operation": "append", "total-records": "3"}),
        e.SnapshotRefSet("main", ref(FIRST)),
        e.SnapshotLogUpdated(added=(s.SnapshotLogEntry(timestamp_ms=10, snapshot_id=FIRST),)),
    ),
    (
        ColumnAdded(("day",), "DATE", field_id=2),
        e.SchemaNamed(1),
        SetOption("owner", "ann"),
        PartitionSpecUpdated((), spec_id=4, fields=(PartitionField("d", "day", 2, field_id=1000),)),
        SortOrderReplaced(
            (SortColumn(("id",)),),
            order_id=3,
            fields=(
                SortField(
                    transform="identity", source_id=1, direction="asc", null_order="nulls-first"
                ),
            ),
        ),
    ),
    (
        snapshot(SECOND, 2, parent_snapshot_id=FIRST, schema_id=1, first_row_id=0, added_rows=4),
        e.SnapshotRefSet("main", ref(SECOND)),
        e.SnapshotRefSet("v1", ref(FIRST, type="tag", max_ref_age_ms=5)),
    ),
    (snapshot(STAGED, 3, parent_snapshot_id=SECOND),),
    (e.SnapshotRefSet("main", ref(FIRST)), e.CurrentSchemaSet(0)),
    (
        e.StatisticsSet(STATISTICS),
        PartitionStatisticsSet(s.PartitionStatisticsFile(FIRST, "s3://b/p.parquet", 2)),
        e.EncryptionKeyAdded(KEY),
        e.SchemaAdded(e.IcebergSchema(schema_id=9, fields=(ID, DAY), identifier_field_ids=(1,))),
        e.MetadataLogUpdated(added=(s.MetadataLogEntry(timestamp_ms=1, metadata_file="a"),)),
        e.TableFactsSet(format_version=3, last_column_id=7, last_partition_id=1004, next_row_id=8),
    ),
    (e.SchemaReplaced((DAY, ID)), e.SchemaNamed(10)),
    (
        e.SnapshotRefRemoved("v1"),
        e.SnapshotsRemoved((SECOND,)),
        e.SnapshotReplaced(snapshot(STAGED, 3).snapshot),
        e.SchemasRemoved((9,)),
        e.LayoutsRemoved(spec_ids=(0,), order_ids=(0,)),
        e.StatisticsRemoved(snapshot_ids=(FIRST,), of_partitions=(FIRST,)),
        e.EncryptionKeyRemoved("k"),
        e.SourceFollowed("file:/lake/t/metadata/2.json", 77),
    ),
)
"""Its events, commit by commit."""

_ID, _DAY = FieldObject(0, "id", "BIGINT NOT NULL"), FieldObject(4, "day", "DATE")
_IN_PAIMON = TableCreated(
    identifier=NAME,
    table_id="t",
    path="db.db/t",
    schema=SchemaRecord((_ID,), highest_field_id=0, options={"bucket": "2"}),
    origin=ImportedPaimonTable(source="/lake/t", location="file:/lake/t", schema_id=2),
)
PAIMON_LIFE: tuple[tuple[TableEvent, ...], ...] = (
    (_IN_PAIMON,),
    (folds.snapshot(3, schema_id=2, base_manifest_list="m"),),
    (
        ColumnAdded(("day",), "DATE", field_id=4),
        SetOption("bucket", "3"),
        e.TableFactsSet(last_column_id=7),
        e.SchemaNamed(3),
    ),
    (
        folds.snapshot(5, schema_id=3, base_manifest_list="n"),
        TagCreated(tag_name="kept", snapshot_id=3),
    ),
    (SnapshotsExpired(earliest_snapshot_id=5),),
    (PaimonBranchUpdated(branch_name="dev", added={"schema/schema-0": "{}", "tag/tag-a": "{}"}),),
    (folds.snapshot(6, schema_id=3, base_manifest_list="o"),),
    (e.CurrentSchemaSet(2), e.SnapshotsRemoved((6,)), e.SchemasRemoved(())),
    (e.SchemaReplaced((_DAY, _ID)), e.SchemaNamed(4)),
    (
        folds.snapshot(6, schema_id=4, base_manifest_list="p"),
        PaimonBranchUpdated(branch_name="dev", removed=("tag/tag-a",)),
    ),
    (
        folds.snapshot(8, schema_id=4, base_manifest_list="q"),
        PartitionsUpdated(
            snapshot_id=8,
            partitions=(
                PartitionChange(
                    spec={"day": "2024-01-01"},
                    records=-2,
                    size_in_bytes=-90,
                    files=-1,
                    last_file_creation_time=1_704_067_200_000,
                    total_buckets=2,
                ),
            ),
        ),
        PartitionsUpdated(
            partitions=(
                PartitionChange(spec={"day": "2024-01-02"}, action="CREATE"),
                PartitionChange(spec={"day": "2024-01-02"}, action="MARK_DONE"),
            )
        ),
    ),
    (
        PaimonBranchUpdated(branch_name="prod", renamed_from="dev", added={"tag/tag-b": "{}"}),
        SetOption("bucket", "4"),
        e.SchemaNamed(5, time_millis=70),
        folds.snapshot(9, schema_id=5, base_manifest_list="r", time_millis=80),
        TagCreated(tag_name="copied", snapshot_id=9, create_time_millis=90),
        TagReplaced(tag_name="kept", snapshot_id=8, create_time_millis=60),
    ),
)
"""A table imported from Paimon, its creation first."""

_IN_DELTA = TableCreated(
    identifier=NAME,
    table_id="t",
    path="db.db/t",
    schema=SchemaRecord((ID,), highest_field_id=1),
    origin=ImportedDeltaTable(source="/lake/t", table_id="u"),
)
DELTA_LIFE: tuple[tuple[TableEvent, ...], ...] = (
    (_IN_DELTA,),
    (
        DeltaFollowed(
            delta_version=4,
            timestamp_millis=90,
            protocol="{}",
            metadata='{"id":"u"}',
            columns={"id": 1},
        ),
    ),
    (
        ColumnAdded(("day",), "DATE", field_id=2),
        folds.snapshot(1, schema_id=1),
        DeltaFollowed(
            delta_version=5,
            timestamp_millis=95,
            sha256=64 * "a",
            metadata='{"id":"v"}',
            columns={"day": 2},
            txns={"job": 7},
        ),
    ),
    (e.SchemaReplaced((DAY, ID)), DeltaFollowed(delta_version=9, timestamp_millis=80)),
)
"""A table imported from Delta, its creation first."""

PROMOTED = TablePromoted(source="file:/lake/t", catalog="prod:s.t", last_snapshot_id=5)
OWN = 6


def own(number: int, **facts: object) -> SnapshotCommitted:
    summary = {"operation": "append", "total-records": "13"}
    return folds.snapshot(
        number, **{"schema_id": 0, "total_record_count": 13, "summary": summary, **facts}
    )


PROMOTED_LIFE: tuple[tuple[TableEvent, ...], ...] = (
    (CREATED,),
    (snapshot(FIRST, 1, summary={"total-records": "3"}), e.SnapshotRefSet("main", ref(FIRST))),
    (PROMOTED, own(OWN, commit_kind="COMPACT")),
    (
        ColumnAdded(("day",), "DATE", field_id=2),
        e.SchemaNamed(1),
        own(OWN + 1, schema_id=1),
        TagCreated(tag_name="v1", snapshot_id=OWN, time_retained_millis=9),
    ),
    (
        RolledBack(
            snapshot_id=OWN + 2,
            schema_id=1,
            commit_user="ann",
            total_record_count=3,
            delta_record_count=-10,
            summary={"operation": "overwrite"},
            target_snapshot_id=FIRST,
        ),
        TagReplaced(tag_name="v1", snapshot_id=OWN + 1),
    ),
    (TagDeleted(tag_name="v1"), e.SnapshotsRemoved((FIRST, OWN + 1))),
    (e.TableFactsSet(format_version=3, next_row_id=4),),
    (own(OWN + 3, schema_id=1, next_row_id=14),),
)
"""A table from Iceberg that the ledger owns since its third commit."""

LIVES: dict[str, tuple[tuple[TableEvent, ...], ...]] = {
    "iceberg": ((CREATED,), *LIFE),
    "paimon": PAIMON_LIFE,
    "delta": DELTA_LIFE,
    "promoted": PROMOTED_LIFE,
}


def commit(version: int, *events: TableEvent) -> Commit[TableEvent]:
    transaction = Transaction[TableEvent](
        asked=64 * "0", id=f"t{version}", author="ann", events=events
    )
    return Commit(
        format=3,
        version=version,
        time_millis=version * 100 + 100,
        transactions=(transaction,),
    )


def commits(life: str = "iceberg") -> list[Commit[TableEvent]]:
    return [commit(version, *events) for version, events in enumerate(LIVES[life])]


def builder_of(until: int | None = None, life: str = "iceberg") -> TableBuilder:
    """The table right after a commit."""
    builder = TableBuilder()
    for each in commits(life)[: None if until is None else until + 1]:
        builder.commit(each)
    return builder
