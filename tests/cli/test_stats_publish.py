"""`lakeledger stats --publish` and `--view`: statistics in other people's shapes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from pyarrow import parquet

from ledger import Table
from ledger import open as open_ledger
from ledger.table_handle import handle_of
from tests.lakes import data_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.cli.conftest import Run

TABLE = "shop.orders"

pytestmark = pytest.mark.usefixtures("installed")


@pytest.fixture
def orders(shop: Run, tmp_path: Path) -> Table:
    del shop
    table = open_ledger(str(tmp_path / "lake")).table(TABLE)
    table.append([data_file("a.parquet", records=3)])
    table.append([data_file("b.parquet", "2013-01-02", records=5)])
    table.create_tag("v1")
    table.append([data_file("c.parquet", records=4)])
    return table


def test_icebergs_statistics_are_published_once(shop: Run, orders: Table) -> None:
    first = shop("stats", TABLE, "--publish", "iceberg", "--output", "json")
    again = shop("stats", TABLE, "--publish", "iceberg")

    (published,) = first.document["published"]
    path = orders.state.partition_statistics[3].statistics_path
    assert published == {
        "format": "iceberg",
        "snapshotId": 3,
        "path": path,
        "version": orders.state.version,
        "isNew": True,
    }
    assert first.document["recordCount"] == 12
    assert f"published before for iceberg, of snapshot 3: {path}" in again.out
    assert shop("project", "iceberg", TABLE, "--verify").code == 0


def test_a_tag_gets_statistics_of_its_own(shop: Run, orders: Table) -> None:
    ran = shop("stats", TABLE, "--publish", "iceberg", "--at", "tag:v1")

    assert "published for iceberg, of snapshot 2: metadata/partition-stats-2-" in ran.out
    assert set(orders.state.partition_statistics) == {2}


def test_both_formats_are_published_and_icebergs_is_of_the_newest_snapshot(
    shop: Run, orders: Table
) -> None:
    formats = ["--publish", "iceberg", "--publish", "paimon"]
    ran = shop("stats", TABLE, *formats, "--output", "json")

    assert [(each["format"], each["snapshotId"]) for each in ran.document["published"]] == [
        ("paimon", 3),
        ("iceberg", 4),
    ]
    assert ran.document["snapshotId"] == 4
    assert orders.state.snapshot is not None
    assert orders.state.snapshot.commit_kind == "ANALYZE"
    assert shop("verify").code == 0
    again = shop("stats", TABLE, *formats, "--output", "json")
    assert [each["isNew"] for each in again.document["published"]] == [False, False]


def test_partitions_are_listed_as_the_dlf_api_does_at_any_instant(shop: Run, orders: Table) -> None:
    del orders
    ran = shop("stats", TABLE, "--view", "list-partitions", "--output", "json")
    then = shop("stats", TABLE, "--view", "list-partitions", "--at", "snapshot:1")

    assert [each["spec"] for each in ran.document["partitions"]] == [
        {"day": "2013-01-01"},
        {"day": "2013-01-02"},
    ]
    assert "day=2013-01-01" in then.out
    assert "day=2013-01-02" not in then.out


def test_what_a_snapshot_adds_is_said_as_paimons_commits_say_it(shop: Run, orders: Table) -> None:
    del orders
    asked = ["--view", "partition-statistics", "--at", "snapshot:2"]

    ran = shop("stats", TABLE, *asked, "--output", "json")

    assert ran.document == {
        "snapshotId": 2,
        "statistics": [
            {
                "spec": {"day": "2013-01-02"},
                "recordCount": 5,
                "fileSizeInBytes": 500,
                "fileCount": 1,
                "lastFileCreationTime": 1_700_000_000_000,
                "totalBuckets": -1,
            }
        ],
    }
    assert "day=2013-01-02" in shop("stats", TABLE, *asked).out


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        (["shop", "--publish", "iceberg"], "are of one table"),
        (["--view", "list-partitions"], "are of one table"),
        ([TABLE, "--view", "list-partitions", "--history"], "replaces the report"),
        ([TABLE, "--publish", "paimon", "--at", "tag:v1"], "of the newest snapshot"),
        ([TABLE, "--publish", "delta"], "delta"),
        ([TABLE, "--publish", "iceberg", "--verify"], "stand alone"),
    ],
)
def test_mistakes_are_rejected(shop: Run, orders: Table, asked: list[str], says: str) -> None:
    ran = shop("stats", *asked)

    assert ran.code == 2
    assert says in ran.err
    assert orders.state.partition_statistics == {}


def test_different_values_are_counted_in_spark_shown_and_handed_to_readers(
    shop: Run, spark: SparkSession, tmp_path: Path
) -> None:
    del spark
    for day, ids in (("2013-01-01", [1, 2, 2]), ("2013-01-02", [2, 3])):
        path = tmp_path / "data" / f"day={day}" / "a.parquet"
        path.parent.mkdir(parents=True)
        parquet.write_table(pa.table({"id": pa.array(ids, pa.int64())}), path)
        assert shop("add-files", TABLE, path).code == 0

    first = shop("stats", TABLE, "--analyze", "--output", "json")
    again = shop("stats", TABLE, "--analyze", "--publish", "paimon", "--output", "json").document
    formats = ["--publish", "paimon", "--publish", "iceberg"]
    both = shop("stats", TABLE, "--analyze", *formats, "--output", "json").document
    older = shop("stats", TABLE, "--analyze", "--at", "snapshot:1").out

    # Nested columns have no single value.
    counts = {"columns": {"id": 3, "day": 2}, "isExact": True}
    assert first.code == 0
    assert first.document["distinct"] == {"snapshotId": 2, "filesRead": 2, **counts}
    assert again["distinct"] == {"snapshotId": 2, "filesRead": 0, **counts}
    (published,) = again["published"]
    table = open_ledger(str(tmp_path / "lake")).table(TABLE)
    text = (tmp_path / "lake" / handle_of(table).path / published["path"]).read_text()
    assert '"distinctCount" : 3' in text
    # Paimon's says the ANALYZE snapshot, whose files are those of the one before.
    assert [(each["format"], each["snapshotId"], each["isNew"]) for each in both["published"]] == [
        ("paimon", 2, False),
        ("iceberg", 3, True),
        ("iceberg", 3, True),
    ]
    (blob, _) = table.state.statistics[3].blob_metadata
    assert (blob.fields, blob.properties, blob.snapshot_id) == ((0,), {"ndv": "3"}, 3)
    assert shop("project", "iceberg", TABLE, "--verify").code == 0
    shown = [line.split() for line in older.splitlines() if line.split()[:1] in (["id"], ["day"])]
    assert shown == [["id", "2"], ["day", "1"]]


def test_distinct_counts_are_rejected_for_a_database_and_with_another_report(shop: Run) -> None:
    assert shop("stats", "shop", "--analyze").code == 2
    assert shop("stats", TABLE, "--analyze", "--columns").code == 2
