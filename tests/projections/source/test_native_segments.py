"""Spark reads the segments of a table as plain Parquet: every commit once, as the log has it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from ledger.stores import LocalStore
from projections.source.bounds import Bounds
from projections.source.span_planning import spans
from tests.log.long_logs import ROOT, long_log
from tests.projections.source.test_planning import asked

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COMMITS = 1_700
SEALED = 1_600


def laid_out(folder: Path) -> dict[int, bytes]:
    """Put a ledger with a long log into a folder; return its commits' files."""
    store = LocalStore(folder)
    for key, body in long_log(COMMITS).items():
        store.replace(key, body)
    return {each: store.read(f"{ROOT}/log/{each:020d}.json") or b"" for each in range(COMMITS + 1)}


def test_spark_reads_a_folder_of_segments_as_the_log_has_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    files = laid_out(tmp_path)
    rows = spark.read.parquet(str(tmp_path / ROOT / "segments"))

    lines = {each.version: each.line.encode() for each in rows.select("version", "line").collect()}
    assert rows.count() == len(lines) == SEALED + 1
    assert lines == {version: files[version] for version in lines}

    events = rows.selectExpr("version", "explode(transactions) AS t").selectExpr(
        "version", "t.author", "posexplode(t.events) AS (place, e)"
    )
    found = {(each.version, each.place): each for each in events.collect()}
    for version in (0, 1, 777, SEALED):
        (transaction,) = msgspec.json.decode(files[version])["transactions"]
        for place, event in enumerate(transaction["events"]):
            row = found[version, place]
            assert (row.author, row.e.type) == (transaction["author"], event["type"])
            assert msgspec.json.decode(row.e.event) == event
    assert len(found) == sum(
        len(msgspec.json.decode(files[each])["transactions"][0].get("events", ()))
        for each in range(SEALED + 1)
    )


def test_the_chain_can_be_checked_in_sql_alone(spark: SparkSession, tmp_path: Path) -> None:
    laid_out(tmp_path)
    rows = spark.read.parquet(str(tmp_path / ROOT / "segments"))
    rows.createOrReplaceTempView("sealed_commits")
    (row,) = spark.sql(
        """
        SELECT count(*) AS links FROM sealed_commits a JOIN sealed_commits b
        ON b.version = a.version + 1
        AND get_json_object(b.line, '$.parent') = concat('sha256:', sha2(a.line, 256))
        """
    ).collect()

    assert row.links == SEALED


def test_what_tasks_share_is_cut_where_segments_are(tmp_path: Path) -> None:
    laid_out(tmp_path)

    wanted = asked(tmp_path, versionsPerPartition="1000")
    found = [(each.first, each.end.version) for each in spans(wanted, Bounds())]

    assert found == [(0, 800), (801, 1_600), (1_601, 1_700)]
