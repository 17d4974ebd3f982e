"""Iceberg's own readers count a table's partitions as the statistics do, and read what we publish.

Spark reads Iceberg's `partitions` table from the projected manifests, PyIceberg does so too, and
Iceberg's Java computes partition statistics of its own.
"""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from pyiceberg.manifest import ManifestContent
from pyiceberg.table import StaticTable

from benchmarks import partition_statistics
from ledger import Ledger, Schema
from ledger.events import RolledBack
from ledger.table_handle import handle_of
from projections.iceberg import Names
from projections.iceberg import statistics_files as publish_distinct
from projections.iceberg import statistics_files as publish_iceberg
from projections.iceberg.materialise import project
from projections.statistics.analyze import analyze
from tests.readers.iceberg_runtime import catalog_of
from tests.readers.partition_lives import DecisionContext, Lived, a_lake, lived

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Paimon has no delete files of that sort.
ICEBERG = (("ledger.formats", "iceberg"),)
COURSES = [
    DecisionContext(1, (("format-version", "1"),)),
    DecisionContext(2),
    DecisionContext(3, ICEBERG, deletes=True),
    DecisionContext(7, ICEBERG, deletes=True),
    DecisionContext(4, (("format-version", "3"),)),
]

NULL = "__DEFAULT_PARTITION__"

Row = dict[str, Any]
Figures = tuple[int, ...]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    return a_lake(tmp_path_factory.mktemp("iceberg_agrees"))


@pytest.fixture(scope="module")
def lives(lake: Ledger) -> dict[DecisionContext, Lived]:
    found = {each: lived(lake, each) for each in COURSES}
    for each in found.values():
        project(handle_of(each.table))
    return found


@pytest.fixture(params=COURSES, ids=str)
def life(lives: dict[DecisionContext, Lived], request: pytest.FixtureRequest) -> Lived:
    course: DecisionContext = request.param
    return lives[course]


def test_the_histories_hold_everything_that_can_happen(lives: dict[DecisionContext, Lived]) -> None:
    kinds = {"APPEND", "OVERWRITE", "COMPACT", "RolledBack", "SnapshotsExpired", "evolution"}
    assert set.union(*(each.happenings() for each in lives.values())) == kinds
    assert all(len(each.instants()) == 4 for each in lives.values())


def name_of(life: Lived) -> str:
    return f"{catalog_of(handle_of(life.table).ledger_url)}.`shop.db`.{life.table.identifier.name}"


def by_day(rows: list[Row]) -> dict[str, Figures]:
    """Return records, files and bytes of data files by day; Iceberg counts no bytes of deletes."""
    found: dict[str, Figures] = {}
    for row in rows:
        day = row["partition"]["day"]
        text = NULL if day is None else day.isoformat()
        figures = (
            row["record_count"] + row["position_delete_record_count"],
            row["file_count"] + row["position_delete_file_count"],
            row["total_data_file_size_in_bytes"],
        )
        before = found.get(text, (0, 0, 0))
        found[text] = tuple(map(sum, zip(before, figures, strict=True)))
    return found


def agree(life: Lived, tag: str | None, rows: list[Row]) -> None:
    deletes: Counter[str] = Counter()
    for file in life.table.at(tag=tag).files:
        if file.content != "data":
            deletes[str(file.partition[0] or NULL)] += file.file_size_in_bytes
    assert by_day(rows) == {
        day: (each.record_count, each.file_count, each.file_size_in_bytes - deletes[day])
        for day, each in life.shown(tag).items()
    }


def test_sparks_partitions_are_those_of_the_statistics(iceberg: SparkSession, life: Lived) -> None:
    for tag in life.instants():
        travel = "" if tag is None else f" VERSION AS OF '{tag}'"
        query = f"SELECT * FROM {name_of(life)}.partitions{travel}"  # noqa: S608 - written here
        agree(life, tag, [each.asDict(recursive=True) for each in iceberg.sql(query).collect()])


def opened(life: Lived) -> StaticTable:
    state = life.table.state
    path = Names(state.table_id).metadata(state.version)
    return StaticTable.from_metadata(f"{life.table.location}/{path}")


def test_pyicebergs_partitions_are_those_of_the_statistics(life: Lived) -> None:
    project(handle_of(life.table))
    for tag, snapshot_id in life.instants().items():
        theirs = opened(life)
        agree(
            life,
            tag,
            [*theirs.inspect.partitions(snapshot_id).to_pylist(), *unplanned(theirs, snapshot_id)],
        )


def day_of(days: int | None) -> date | None:
    return None if days is None else date(1970, 1, 1) + timedelta(days=days)


def unplanned(table: StaticTable, snapshot_id: int) -> list[Row]:
    """Return deletes that PyIceberg plans no scan with, so counts none: no data is as old."""
    snapshot = table.snapshot_by_id(snapshot_id)
    assert snapshot is not None
    manifests = snapshot.manifests(table.io)
    data = [each for each in manifests if each.content == ManifestContent.DATA]
    oldest = min((each.min_sequence_number or 0 for each in data), default=0)
    return [
        {
            "partition": {"day": day_of(entry.data_file.partition[0])},
            "record_count": 0,
            "file_count": 0,
            "total_data_file_size_in_bytes": 0,
            "position_delete_record_count": entry.data_file.record_count,
            "position_delete_file_count": 1,
        }
        for manifest in manifests
        if manifest.content == ManifestContent.DELETES and (manifest.sequence_number or 0) < oldest
        for entry in manifest.fetch_manifest_entry(table.io)
    ]


class JavaStatistics:
    """Iceberg's Java on one table: the files of partition statistics that it reads and writes."""

    def __init__(self, session: SparkSession, life: Lived) -> None:
        jvm = session._jvm
        assert jvm is not None
        self._java = jvm.java.lang
        self._iceberg = jvm.org.apache.iceberg
        java_session, name = session._jsparkSession, name_of(life)
        self.table = self._iceberg.spark.Spark3Util.loadIcebergTable(java_session, name)

    def computed(self) -> Any:
        """Return a file that Java computes for the newest snapshot, and writes."""
        return self._iceberg.PartitionStatsHandler.computeAndWriteStatsFile(self.table)

    def named(self) -> dict[int, Any]:
        """Return the files that the metadata names, by snapshot."""
        return {each.snapshotId(): each for each in self.table.partitionStatisticsFiles()}

    def rows(self, file: Any) -> dict[tuple[Any, ...], Figures]:
        """Return what a file counts, by spec and partition values; what holds no file is left out.

        It is read as Java's own incremental computation reads it.
        """
        struct = self._iceberg.Partitioning.partitionType(self.table)
        version = self.table.operations().current().formatVersion()
        handler = self._iceberg.PartitionStatsHandler
        found: dict[tuple[Any, ...], Figures] = {}
        opened = self.table.io().newInputFile(file.path())
        rows = handler.readPartitionStatsFile(handler.schema(struct, version), opened).iterator()
        anything = self._java.Class.forName("java.lang.Object")
        while rows.hasNext():
            row = rows.next()
            places = range(struct.fields().size())
            values = (row.partition().get(place, anything) for place in places)
            figures = (
                row.dataRecordCount(),
                row.dataFileCount(),
                row.totalDataFileSizeInBytes(),
                row.positionDeleteRecordCount(),
                row.positionDeleteFileCount(),
                row.equalityDeleteRecordCount(),
                row.equalityDeleteFileCount(),
                row.dvCount() or 0,
            )
            if any(figures):
                found[(row.specId(), *values)] = figures
        return found


def test_icebergs_java_computes_the_partition_statistics_that_are_published(
    iceberg: SparkSession, life: Lived
) -> None:
    own = JavaStatistics(iceberg, life)
    computed = own.rows(own.computed())

    published = publish_iceberg.publish_partition_statistics(
        handle_of(life.table), life.kept, life.table.at()
    )

    reread = JavaStatistics(iceberg, life)
    file = reread.named()[published.snapshot_id]
    assert file.path() == f"{life.table.location}/{published.path}"
    assert Path(file.path().removeprefix("file://")).stat().st_size == file.fileSizeInBytes()
    assert computed
    assert reread.rows(file) == computed
    # The table still opens, and counts as before.
    query = f"SELECT * FROM {name_of(life)}.partitions"  # noqa: S608 - written here
    agree(life, None, [each.asDict(recursive=True) for each in iceberg.sql(query).collect()])
    named = {e.snapshot_id: e for e in opened(life).metadata.partition_statistics}
    assert named[published.snapshot_id].statistics_path == file.path()


def test_icebergs_java_continues_from_statistics_that_were_published_earlier(
    iceberg: SparkSession, lake: Ledger
) -> None:
    life = lived(lake, DecisionContext(11, ICEBERG, deletes=True))
    table = life.table
    # What a rollback brings back was added long ago, and Java's increments count what is added.
    rolled_back = [
        event.snapshot_id
        for commit in table.events()
        for transaction in commit.transactions
        for event in transaction.events
        if isinstance(event, RolledBack)
    ]
    oldest = max([table.state.earliest_snapshot_id, *rolled_back])
    assert oldest < table.state.last_snapshot_id
    publish_iceberg.publish_partition_statistics(
        handle_of(table), life.kept, table.at(snapshot=oldest)
    )
    java = JavaStatistics(iceberg, life)
    assert set(java.named()) == {oldest}

    incremental = java.rows(java.computed())

    newest = publish_iceberg.publish_partition_statistics(handle_of(table), life.kept, table.at())
    java = JavaStatistics(iceberg, life)
    assert incremental == java.rows(java.named()[newest.snapshot_id])


def test_java_reads_the_sketches_that_are_published_and_makes_the_same(
    iceberg: SparkSession, lake: Ledger, tmp_path: Path
) -> None:
    columns = {"id": "BIGINT", "city": "STRING", "price": "DECIMAL(9, 2)", "on": "DATE"}
    table = lake.create_table("shop.sketched", Schema.of(columns, options=dict(ICEBERG)))
    for number in range(3):
        rows = {
            "id": pa.array(range(number * 50, number * 50 + 100)),
            "city": pa.array([f"c{each % (5 + number)}" for each in range(99)] + [None]),
            "price": pa.array([Decimal(each % 7).scaleb(-2) for each in range(100)]).cast(
                pa.decimal128(9, 2)
            ),
            "on": pa.array([date(2024, 1, 1 + each % 3) for each in range(100)]),
        }
        path = tmp_path / f"{number}.parquet"
        parquet.write_table(pa.table(rows), path)
        table.add_files([str(path)])

    found = analyze(table, spark=iceberg)
    publish_distinct.publish_distinct_counts(
        handle_of(table), table.at(), found.snapshot_id, found.sketches, found.distinct
    )

    assert list(found.distinct.values()) == [200, 7, 7, 3]
    java = JavaSketches(iceberg, f"{catalog_of(handle_of(table).ledger_url)}.`shop.db`.sketched")
    named = java.named()
    assert java.counts(named) == {key: str(each) for key, each in found.distinct.items()}
    # What Java reads the data for gives the very bytes.
    computed = java.computed()
    assert java.counts(computed) == java.counts(named)
    assert java.bodies(computed) == java.bodies(named)


@pytest.mark.usefixtures("iceberg")
def test_the_benchmark_of_partition_statistics_finds_what_java_finds(tmp_path: Path) -> None:
    report = partition_statistics.run(tmp_path, commits=2, files=5, partitions=3, repeats=1)
    assert report.fingerprint == "files=10 partitions=3"


class JavaSketches:
    """Iceberg's Java on one table: Puffin files that it reads and writes."""

    def __init__(self, session: SparkSession, name: str) -> None:
        jvm = session._jvm
        assert jvm is not None
        self._iceberg: Any = jvm.org.apache.iceberg
        self._buffers: Any = jvm.org.apache.iceberg.util.ByteBuffers
        self._session = session._jsparkSession
        self._table = self._iceberg.spark.Spark3Util.loadIcebergTable(self._session, name)

    def named(self) -> Any:
        """Return the file that the metadata names."""
        (file,) = self._table.statisticsFiles()
        assert file.snapshotId() == self._table.currentSnapshot().snapshotId()
        return file

    def computed(self) -> Any:
        """Return a file that Java computes for the newest snapshot, and writes."""
        actions = self._iceberg.spark.actions.SparkActions.get(self._session)
        return actions.computeTableStats(self._table).execute().statisticsFile()

    def counts(self, file: Any) -> dict[int, str]:
        """Return what a file says without being read: different values by field id."""
        return {each.fields().get(0): each.properties().get("ndv") for each in file.blobMetadata()}

    def bodies(self, file: Any) -> dict[int, bytes]:
        """Return the sketches that stand in a file, by field id, as Java reads them."""
        stored = self._table.io().newInputFile(file.path())
        reader = (
            self._iceberg.puffin.Puffin.read(stored)
            .withFileSize(file.fileSizeInBytes())
            .withFooterSize(file.fileFooterSizeInBytes())
            .build()
        )
        blobs = reader.fileMetadata().blobs()
        read = reader.readAll(blobs).iterator()
        found = {}
        while read.hasNext():
            pair = read.next()
            blob, body = pair.first(), pair.second()
            assert blob.type() == "apache-datasketches-theta-v1"
            found[blob.inputFields().get(0)] = bytes(self._buffers.toByteArray(body))
        return found
