from __future__ import annotations

import re
from typing import Any, get_args

import pytest

from ledger import SortColumn
from ledger.cli.phrases import phrases
from ledger.decide import in_words, planned_words
from ledger.events import (
    CatalogEvent,
    ClockCorrected,
    FormatRulesRaised,
    LedgerCopied,
    LedgerMoved,
    OwnerSet,
    PaimonBranchUpdated,
    PartitionChange,
    PartitionStatisticsSet,
    PartitionsUpdated,
    PlaceAliased,
    TableEvent,
)
from ledger.events import catalog as c
from ledger.events import functions as f
from ledger.events import iceberg_views as v
from ledger.events import imported as i
from ledger.events import schema as e
from ledger.events import schema as p
from ledger.events import schema as s
from ledger.events import snapshots as n
from ledger.events import table as t
from ledger.log import Transaction
from ledger.model import (
    BlobMetadata,
    FieldObject,
    IcebergViewVersion,
    PartitionField,
    PartitionStatisticsFile,
    StatisticsFile,
    ViewRepresentation,
)
from ledger.model.functions import (
    FileFunctionDefinition,
    FunctionFileResource,
    LambdaFunctionDefinition,
    SqlFunctionDefinition,
)
from tests.evolution.born import DELTA_LIFE, PROMOTED_LIFE, commits, snapshot

A = t.TableName("shop", "a")
B = t.TableName("shop", "b")
FILE = FileFunctionDefinition(
    (FunctionFileResource("jar", "/lib/area.jar"),), "java", "com.shop.Area", "eval"
)
LAMBDA = LambdaFunctionDefinition("(a, b) -> a * b", "java")
AREA = f.FunctionRecord(
    input_params=(FieldObject(0, "a", "DOUBLE"), FieldObject(1, "b", "DOUBLE NOT NULL")),
    return_params=(FieldObject(0, "area", "DOUBLE"),),
    deterministic=True,
    definitions={"flink": FILE, "spark": LAMBDA, "trino": SqlFunctionDefinition("a * b")},
    comment="of a rectangle",
    options={"k": "v"},
)
VIEW_UPDATES = (
    v.ViewUuidAssigned("f3"),
    v.ViewFormatUpgraded(1),
    v.ViewLocationSet("s3://a"),
    v.ViewPropertiesSet({"b": "c"}),
    v.ViewSchemaAdded(i.IcebergSchema(schema_id=0, fields=(FieldObject(1, "id", "BIGINT"),))),
    v.ViewVersionAdded(
        IcebergViewVersion(
            version_id=1,
            timestamp_ms=5,
            schema_id=0,
            summary={"engine-name": "Spark"},
            default_catalog="lake",
            default_namespace=("shop",),
            representations=(
                ViewRepresentation("sql", "SELECT 1 AS id", "spark"),
                ViewRepresentation("sql", "SELECT BIGINT '1' AS id", "trino"),
            ),
        )
    ),
    v.CurrentViewVersionSet(1, 5),
)
VIEW_PHRASE = (
    "location s3://a, set property b, added version 1 (spark, trino), version 1 is current"
)
SUMS: dict[str, Any] = {
    "snapshot_id": 3,
    "schema_id": 0,
    "commit_user": "u",
    "total_record_count": 5,
    "delta_record_count": -2,
    "delta_file_count": -1,
    "delta_file_size_in_bytes": -1500,
}
SCHEMA = t.SchemaRecord((), 0)
BUCKET = PartitionField("a_bucket", "bucket[4]", 0, field_id=1000)

LINE: dict[str, Any] = {
    "schema_id": 0,
    "commit_user": "u",
    "commit_kind": "APPEND",
    "total_record_count": 5,
    "delta_record_count": 3,
    "delta_file_count": 1,
    "delta_file_size_in_bytes": 80,
}
FORWARDED = (
    "snapshot 2: fast-forwarded to branch audit (snapshot 1000000000002), +3 rows, +1 file, +80 B"
)
CASES: list[tuple[object, str]] = [
    (
        n.BranchCommitted(
            snapshot_id=1_000_000_000_001, branch_name="audit", parent_snapshot_id=1, **LINE
        ),
        "branch audit: snapshot 1000000000001: APPEND, +3 rows, +1 file, +80 B",
    ),
    (
        n.BranchCommitted(
            snapshot_id=1_000_000_000_002,
            branch_name="audit",
            parent_snapshot_id=1_000_000_000_001,
            target_snapshot_id=1,
            **LINE,
        ),
        "branch audit: snapshot 1000000000002: rolled back to snapshot 1, +3 rows, +1 file, +80 B",
    ),
    (
        n.SnapshotCommitted(
            snapshot_id=2, fast_forward_to=n.BranchHead("audit", 1_000_000_000_002), **LINE
        ),
        FORWARDED,
    ),
    (e.ColumnAdded(("r", "a"), "INT", field_id=4), "added column r.a INT (id 4)"),
    (e.ColumnRenamed(("a",), "b", field_id=4), "renamed column a to b (id 4)"),
    (e.ColumnDropped(("a",), field_id=4), "dropped column a (id 4)"),
    (
        e.ColumnUndropped(field_names=("r", "a"), data_type="INT", field_id=4),
        "restored column r.a INT (id 4)",
    ),
    (e.ColumnTypeUpdated(("a",), "BIGINT", field_id=4), "changed column a (id 4) to BIGINT"),
    (
        e.ColumnNullabilityUpdated(("a",), new_nullability=False, field_id=4),
        "forbade NULL in column a (id 4)",
    ),
    (e.ColumnCommentUpdated(("a",), "x", field_id=4), "commented column a (id 4)"),
    (e.ColumnCommentUpdated(("a",), field_id=4), "removed the comment of column a (id 4)"),
    (
        e.ColumnDefaultValueUpdated(("a",), "5", field_id=4),
        "set the default of column a (id 4) to 5",
    ),
    (e.ColumnDefaultValueUpdated(("a",), field_id=4), "removed the default of column a (id 4)"),
    (e.ColumnMoved(s.Move("a", "FIRST"), field_id=4), "moved column a first (id 4)"),
    (
        e.ColumnMoved(s.Move("a", "AFTER", "b"), ("r", "a"), field_id=4),
        "moved column r.a after b (id 4)",
    ),
    (s.SetOption("k", "v"), "set option k to v"),
    (s.RemoveOption("k"), "removed option k"),
    (s.UpdateComment("x"), "changed the table's comment"),
    (s.DropPrimaryKey(), "dropped the primary key"),
    (LedgerMoved("s3://b/lake"), "moved the ledger to s3://b/lake"),
    (PlaceAliased("/mnt/lake"), "noted that /mnt/lake leads to the ledger, too"),
    (
        LedgerCopied(place="/lake", ledger_id="b", copied_from="a"),
        "made this a copy of ledger a, at /lake",
    ),
    (
        c.ValuesErased(3, 2),
        "erased 3 authors, messages, maps of properties or values of columns, of 2 changes",
    ),
    (
        c.ValuesErased(3, 2, "0198", 4),
        "erased 3 bounds and partition values of column 4 of table 0198",
    ),
    (
        ClockCorrected(first_version=3, true_time_millis=1_356_998_400_000),
        "corrected the clock: the commits from version 3 on took effect by 2013-01-01 00:00:00",
    ),
    (
        OwnerSet(owner="served", protocol="iceberg"),
        "served: engines commit data through the iceberg protocol",
    ),
    (
        OwnerSet(owner="ledger"),
        "taken back: the ledger commits data, and engines no longer do",
    ),
    (
        FormatRulesRaised(rules={"toy": 3, "paimon": 2}),
        "the rules of its formats are at least paimon 2, toy 3 from now on",
    ),
    (e.IdentifierFieldsSet((("r", "a"),), field_ids=(4,)), "set the identifier fields to ['r.a']"),
    (
        p.PartitionSpecUpdated((), spec_id=1, fields=(BUCKET,)),
        "files are partitioned by partition spec 1: a_bucket=bucket[4]",
    ),
    (
        p.PartitionSpecUpdated((), set_default=False, spec_id=2, fields=()),
        "added partition spec 2: unpartitioned",
    ),
    (
        p.UpdatePartitionSpec(
            (
                p.AddPartitionField(("r", "a"), "bucket[4]", "b"),
                p.AddPartitionField(("day",)),
                p.RemovePartitionField("old"),
                p.RemovePartitionField(source=("t",), transform="day"),
                p.RenamePartitionField("x", "y"),
            )
        ),
        (
            "changed the partition spec: add bucket[4] of r.a as b, add day, remove old, "
            "remove day of t, rename x to y"
        ),
    ),
    (
        p.UpdatePartitionSpec((p.RemovePartitionField(source=("t",)),), set_default=False),
        "added a partition spec: remove t",
    ),
    (p.ReplaceSortOrder((SortColumn(("a",)),)), "files are sorted by: a asc"),
    (p.ReplaceSortOrder(()), "files are unsorted"),
    (
        p.SortOrderReplaced(
            (SortColumn(("a",)), SortColumn(("r", "b"), "day", "desc")), order_id=1, fields=()
        ),
        "files are sorted by order 1: a asc, day of r.b desc",
    ),
    (p.SortOrderReplaced((), order_id=0, fields=()), "files are sorted by order 0: unsorted"),
    (
        p.SortOrderReplaced((SortColumn(("a",)),), set_default=False, order_id=2, fields=()),
        "added sort order 2: a asc",
    ),
    (e.UpdateKeys(("p",)), "set the partition keys to ['p'], the primary keys to []"),
    (
        n.SnapshotCommitted(commit_kind="OVERWRITE", **SUMS),
        "snapshot 3: OVERWRITE, -2 rows, -1 file, -1.5 kB",
    ),
    (
        n.RolledBack(target_snapshot_id=1, target_tag_name="v1", **SUMS),
        "snapshot 3: rolled back to snapshot 1 (tag v1), -2 rows, -1 file, -1.5 kB",
    ),
    (n.SnapshotsExpired(earliest_snapshot_id=3), "expired the snapshots before 3"),
    (
        PartitionStatisticsSet(PartitionStatisticsFile(3, "metadata/x", 9)),
        "published partition statistics of snapshot 3",
    ),
    (
        i.StatisticsSet(
            StatisticsFile(
                snapshot_id=3,
                statistics_path="metadata/x.stats",
                file_size_in_bytes=90,
                file_footer_size_in_bytes=40,
                blob_metadata=(
                    BlobMetadata(
                        type="apache-datasketches-theta-v1",
                        snapshot_id=3,
                        sequence_number=3,
                        fields=(1,),
                        properties={"ndv": "7"},
                    ),
                ),
            )
        ),
        "published statistics of snapshot 3",
    ),
    (n.TagCreated(tag_name="v1", snapshot_id=3), "tagged snapshot 3 as v1"),
    (n.TagReplaced(tag_name="v1", snapshot_id=3), "moved tag v1 to snapshot 3"),
    (n.TagDeleted(tag_name="v1"), "deleted tag v1"),
    (
        t.TableCreated(identifier=A, table_id="i", path="p", schema=SCHEMA),
        "created table shop.a with 0 columns",
    ),
    (t.TableDropped(identifier=A, table_id="i"), "dropped table shop.a"),
    (
        t.TableDropped(identifier=A, table_id="i", purge=True),
        "dropped table shop.a; its files are to be deleted",
    ),
    (t.TableUndropped(identifier=A, table_id="i", sealed_version=3), "restored table shop.a"),
    (
        t.TablePurged(identifier=A, table_id="i"),
        "began to delete the files of dropped table shop.a",
    ),
    (
        t.TableRenamed(source=A, destination=B, table_id="i"),
        "renamed table shop.a to shop.b",
    ),
    (c.DatabaseCreated(name="shop", path="p"), "created database shop"),
    (c.DatabaseAltered(name="shop"), "changed options of database shop"),
    (c.DatabaseDropped(name="shop"), "dropped database shop"),
    (
        c.ViewCreated(identifier=A, view_id="i", schema=c.ViewRecord((), "q")),
        "created view shop.a",
    ),
    (c.ViewAltered(identifier=A, view_id="i", changes=()), "changed view shop.a"),
    (
        c.ViewCreated(identifier=A, view_id="i", updates=VIEW_UPDATES),
        f"created Iceberg view shop.a: {VIEW_PHRASE}",
    ),
    (
        c.IcebergViewUpdated(
            identifier=A,
            view_id="i",
            updates=(v.ViewPropertiesRemoved(("b", "c")), v.ViewVersionsRemoved((1, 2))),
        ),
        "changed Iceberg view shop.a: removed properties b, c, removed versions 1, 2",
    ),
    (c.ViewRenamed(source=A, destination=B, view_id="i"), "renamed view shop.a to shop.b"),
    (
        PaimonBranchUpdated(branch_name="b", added={"schema/schema-0": ""}, removed=("x",)),
        "updated branch b: 1 of its files added, 1 removed",
    ),
    (
        PaimonBranchUpdated(branch_name="c", renamed_from="b"),
        "renamed branch b to c",
    ),
    (
        PartitionsUpdated(
            snapshot_id=7,
            partitions=(PartitionChange(spec={"d": "1"}, records=2, size_in_bytes=9, files=1),),
        ),
        "snapshot 7 changed 1 partition",
    ),
    (
        PartitionsUpdated(
            branch_name="b",
            partitions=(
                PartitionChange(spec={"d": "1", "h": "2"}, action="CREATE"),
                PartitionChange(spec={"d": "1", "h": "3"}, action="CREATE"),
                PartitionChange(spec={"d": "1", "h": "2"}, action="MARK_DONE"),
                PartitionChange(spec={"d": "0", "h": "9"}, action="DROP"),
            ),
        ),
        (
            "created 2 partitions, marked as done partition d=1/h=2, dropped partition d=0/h=9 of "
            "branch b"
        ),
    ),
    (
        PartitionsUpdated(changes=n.ChangesReference(path="changes/x", sha256="", count=10_000)),
        "changed 10,000 partitions",
    ),
    (c.ViewDropped(identifier=A, view_id="i"), "dropped view shop.a"),
    (
        c.FunctionCreated(identifier=A, function_id="i", function=AREA),
        "created function shop.a",
    ),
    (
        c.FunctionAltered(
            identifier=A,
            function_id="i",
            changes=(
                e.SetOption("k", "v"),
                e.RemoveOption("k"),
                e.UpdateComment("b"),
                f.AddDefinition("flink", FILE),
                f.UpdateDefinition("flink", LAMBDA),
                f.DropDefinition("flink"),
            ),
        ),
        "changed function shop.a",
    ),
    (c.FunctionDropped(identifier=A, function_id="i"), "dropped function shop.a"),
]


@pytest.mark.parametrize(("event", "said"), CASES, ids=lambda each: type(each).__name__)
def test_an_event_reads_as_one_phrase(event: object, said: str) -> None:
    assert in_words(event) == said


@pytest.mark.parametrize(
    ("event", "said"),
    [
        each
        for each in CASES
        if isinstance(
            each[0],
            (
                *get_args(e.SchemaEvent),
                *(n.TagCreated, n.TagDeleted, n.TagReplaced),
                *(p.UpdatePartitionSpec, p.ReplaceSortOrder),
            ),
        )
    ],
    ids=lambda each: type(each).__name__,
)
def test_a_planned_change_reads_as_one_that_is_to_come(event: object, said: str) -> None:
    planned = planned_words(event)

    assert "will " in planned
    assert planned.rsplit(maxsplit=1)[-1] == said.rsplit(maxsplit=1)[-1]
    assert not re.search(
        r"\b(are|(add|chang|dropp|remov|renam|restor|mov|comment|tagg)ed)\b", planned
    )


STATISTICS_GONE = (
    "removed the statistics of snapshot 7000000000000000001 "
    "and the partition statistics of snapshot 7000000000000000001"
)
IMPORTED_PHRASES = (
    "created table db.t with 1 column, from Iceberg's file:/lake/t",
    "snapshot 7000000000000000001 of 1970-01-01 00:00:00: append",
    "branch main points to snapshot 7000000000000000001",
    "the snapshot log: 1 entry added",
    "added column day DATE (id 2)",
    "the columns are schema 1",
    "set option owner to ann",
    "files are partitioned by partition spec 4: d=day",
    "files are sorted by order 3: id asc",
    "snapshot 5 of 1970-01-01 00:00:00: unknown operation",
    "branch main points to snapshot 5",
    "tag v1 points to snapshot 7000000000000000001",
    "snapshot 9000000000000000009 of 1970-01-01 00:00:00: unknown operation",
    "branch main points to snapshot 7000000000000000001",
    "schema 0 is the current one",
    "published statistics of snapshot 7000000000000000001",
    "published partition statistics of snapshot 7000000000000000001",
    "added the encryption key k",
    "added schema 9, which is not the current one",
    "the metadata log: 1 entry added",
    "set format version 3, last column id 7, last partition id 1004, next row id 8",
    "replaced the columns by day, id",
    "the columns are schema 10",
    "removed the branch or tag v1",
    "removed snapshot 5",
    "the metadata of snapshot 9000000000000000009 changed",
    "removed schema 9",
    "removed partition spec 0 and sort order 0",
    STATISTICS_GONE,
    "removed the encryption key k",
    "followed the source up to file:/lake/t/metadata/2.json",
)


def test_the_history_of_a_table_from_iceberg_reads_as_phrases() -> None:
    worded = [in_words(event) for each in commits() for event in each.transactions[0].events]
    assert tuple(worded) == IMPORTED_PHRASES


def test_the_phrase_of_a_snapshot_names_its_operation_and_its_user() -> None:
    summary = {"operation": "overwrite", "added-records": "3", "deleted-data-files": "1"}
    worded = in_words(snapshot(5, 1, summary={**summary, "user": "ann"}))
    assert worded == ("snapshot 5 of 1970-01-01 00:00:00: overwrite, +3 rows, -1 file, by ann")


def test_every_event_of_the_log_has_a_phrase() -> None:
    known = {type(event) for event, _ in CASES}
    known |= {type(event) for each in commits() for event in each.transactions[0].events}
    lives = (*DELTA_LIFE, *PROMOTED_LIFE)
    known |= {type(event) for events in lives for event in events}

    assert {*get_args(TableEvent), *get_args(CatalogEvent)} <= known


def test_a_transaction_that_changed_nothing_says_so() -> None:
    assert phrases(Transaction(asked="", id="x")) == [
        "nothing: everything requested was already in place"
    ]
