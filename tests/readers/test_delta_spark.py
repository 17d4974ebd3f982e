"""Delta tables under Delta's own Spark runtime, in one JVM session."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ledger import UpdateColumnType
from ledger.table_handle import handle_of
from projections.delta import DELTA, is_checkpoint
from tests.projections.delta.projecting import Left
from tests.readers.delta_life import Row, plain
from tests.readers.delta_runtime import delta_session
from tests.readers.test_delta_readers import assert_read, folder_of, life, versions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> Iterator[SparkSession]:
    with delta_session(spark) as session:
        yield session


def read_by(session: SparkSession) -> Any:
    def read(folder: str, version: int) -> tuple[list[str], list[Row]]:
        found = session.read.format("delta").option("versionAsOf", version).load(folder)
        # Spark's points in time come as this machine's wall clock.
        points = [each.dataType.typeName() == "timestamp" for each in found.schema]
        rows = [
            tuple(
                plain(each.astimezone(dt.UTC)) if is_point and each else _plain(each)
                for each, is_point in zip(row, points, strict=True)
            )
            for row in found.collect()
        ]
        return found.columns, sorted(rows, key=repr)

    return read


def _plain(value: Any) -> Any:
    if hasattr(value, "asDict"):
        return tuple((key, _plain(each)) for key, each in value.asDict().items())
    if isinstance(value, dict):
        return tuple(sorted((key, _plain(each)) for key, each in value.items()))
    if isinstance(value, list):
        return tuple(_plain(each) for each in value)
    return plain(value)


@pytest.mark.parametrize(
    "how",
    [{"is_mapped": True}, {"has_walls": True}, {"partition": "p_text"}, {"partition": "p_bytes"}],
    ids=str,
)
def test_spark_reads_every_version_as_its_files_do(
    session: SparkSession, tmp_path: Path, how: dict[str, Any]
) -> None:
    # Of a checkpoint that the hint does not lead to, this Delta cannot read the schema under this
    # Spark, its own tables' neither.
    assert_read(read_by(session), *life(tmp_path, 3, interval=1000, **how))


def test_spark_reads_the_newest_version_by_its_checkpoint(
    session: SparkSession, tmp_path: Path
) -> None:
    found, table = life(tmp_path, 3, is_mapped=True)
    newest = max(found.at_snapshot)
    names, rows = read_by(session)(folder_of(table), versions(table)[newest])
    assert (tuple(names), rows) == found.at_snapshot[newest]
    assert any(is_checkpoint(path) for path in Left.by(table).files)


def test_spark_shows_author_and_message_and_reads_an_earlier_time(
    session: SparkSession, tmp_path: Path
) -> None:
    found, table = life(tmp_path, 3, steps=0, partition="p_date")
    table.alter([UpdateColumnType(("small",), "INT")], message="more room", author="grace")
    DELTA.project(handle_of(table))

    history = session.sql(f"DESCRIBE HISTORY delta.`{folder_of(table)}`").collect()
    assert [each.version for each in history] == [4, 3, 2, 1, 0]
    newest = history[0]
    assert (newest.userName, newest.userMetadata) == ("grace", "more room")
    assert newest.operation == "CHANGE COLUMN"
    assert {each.userName for each in history[1:]} == {"ada@prod"}
    assert newest.operationParameters["ledgerVersion"] == str(table.state.version)

    there = versions(table)
    moment = next(each.timestamp for each in history if each.version == there[2])
    then = session.read.format("delta").option("timestampAsOf", str(moment))
    assert then.load(folder_of(table)).count() == len(found.at_snapshot[2][1])
