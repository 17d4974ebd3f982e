"""Distinct counts of columns, published for Iceberg's readers as a Puffin file."""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from ledger import InvalidInputError, SnapshotPlan, Table
from ledger.events import StatisticsSet
from ledger.table_handle import handle_of
from projections.iceberg import statistics_files as publish_distinct
from projections.iceberg import verify
from projections.materialising import outputs_of
from projections.statistics.column_history import decompress_sketch
from projections.statistics.publishing import Published
from tests.projections.statistics.publishing import a_file, a_table, metadata

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TWO = bytes.fromhex("0104033f011acc930269cb8f136c80ff0b186cffee6f750648")
"""A theta sketch of two values, as Spark compresses it."""

ONE = bytes.fromhex("01030300003acc9363424f08aa0a4276")


def published(
    table: Table, sketches: dict[int, bytes], *, analysed: int | None = None, **at: Any
) -> Published:
    counts = {key: 2 if each == TWO else 1 for key, each in sketches.items()}
    then = table.at(**at)
    number = then.state.last_snapshot_id if analysed is None else analysed
    return publish_distinct.publish_distinct_counts(
        handle_of(table), then, number, sketches, counts
    )


def blobs(table: Table, path: str) -> list[tuple[dict[str, Any], bytes]]:
    """Return what a Puffin file says of its blobs, and each, as the specification reads them."""
    body = outputs_of(handle_of(table)).read(path)
    assert body is not None
    assert body[:4] == body[-4:] == b"PFA1"
    size, flags = struct.unpack("<ii", body[-12:-4])
    assert flags == 0
    assert body[-16 - size : -12 - size] == b"PFA1"
    footer = msgspec.json.decode(body[-12 - size : -12])
    assert footer["properties"] == {"created-by": "lakeledger"}
    return [
        (each, body[each["offset"] : each["offset"] + each["length"]]) for each in footer["blobs"]
    ]


def test_the_metadata_names_a_file_with_a_sketch_a_column() -> None:
    table = a_table()
    table.append([a_file("a")])
    table.append([a_file("b")])

    found = published(table, {3: ONE, 0: TWO})

    body = outputs_of(handle_of(table)).read(found.path)
    assert body is not None
    said = {"snapshot-id": 2, "sequence-number": 2, "type": "apache-datasketches-theta-v1"}
    assert metadata(table)["statistics"] == [
        {
            "snapshot-id": 2,
            "statistics-path": f"{table.location}/{found.path}",
            "file-size-in-bytes": len(body),
            "file-footer-size-in-bytes": len(body) - 4 - len(decompress_sketch(TWO)) - len(ONE),
            "blob-metadata": [
                {**said, "fields": [0], "properties": {"ndv": "2"}},
                {**said, "fields": [3], "properties": {"ndv": "1"}},
            ],
        }
    ]
    assert [each for _, each in blobs(table, found.path)] == [decompress_sketch(TWO), ONE]
    assert [blob["properties"]["ndv"] for blob, _ in blobs(table, found.path)] == ["2", "1"]
    assert (found.is_new, found.version) == (True, table.state.version)
    assert verify(handle_of(table)).is_empty


def test_the_same_again_is_no_event_and_a_lost_file_is_written_again() -> None:
    table = a_table()
    table.append([a_file("a")])
    first = published(table, {0: TWO})
    body = outputs_of(handle_of(table)).read(first.path)
    outputs_of(handle_of(table)).remove(first.path)

    second = published(table, {0: TWO})

    assert (second.is_new, second.path, second.version) == (False, first.path, first.version)
    assert outputs_of(handle_of(table)).read(first.path) == body


def test_what_a_later_analysis_finds_takes_the_place_of_an_earlier_one() -> None:
    table = a_table()
    table.append([a_file("a")])
    first = published(table, {0: TWO})

    second = published(table, {0: ONE})

    assert second.is_new
    assert [each["statistics-path"] for each in metadata(table)["statistics"]] == [  # type: ignore[attr-defined]
        f"{table.location}/{second.path}"
    ]
    assert outputs_of(handle_of(table)).read(first.path) is None
    assert outputs_of(handle_of(table)).read(second.path) is not None


def test_files_go_with_their_snapshots_and_those_of_tags_stay() -> None:
    table = a_table()
    paths = {}
    for number in (1, 2, 3):
        table.append([a_file(str(number))])
        paths[number] = published(table, {0: TWO}).path
    table.create_tag("one", snapshot=1)

    table.expire_snapshots(before=3)
    paths[3] = published(table, {0: TWO}).path

    there = {number for number, path in paths.items() if outputs_of(handle_of(table)).read(path)}
    assert there == set(table.state.statistics) == {1, 3}
    assert verify(handle_of(table)).is_empty


def test_an_engines_file_of_another_name_is_left_where_it_is() -> None:
    table = a_table()
    table.append([a_file("a")])
    outputs_of(handle_of(table)).put("metadata/1-theirs.stats", b"theirs")
    table.set_statistics(1, "metadata/1-theirs.stats", 6, 3, [])

    assert published(table, {0: ONE}).is_new

    assert outputs_of(handle_of(table)).read("metadata/1-theirs.stats") == b"theirs"


def test_an_analysis_holds_for_the_snapshot_that_says_it_and_for_no_other() -> None:
    table = a_table()
    table.append([a_file("a")])
    table.commit_snapshot(SnapshotPlan("ANALYZE", commit_user="u"))

    found = published(table, {0: ONE}, analysed=1)

    assert found.snapshot_id == 2
    ((blob, _),) = blobs(table, found.path)
    assert (blob["snapshot-id"], blob["sequence-number"]) == (1, 1)
    table.append([a_file("b")])
    with pytest.raises(InvalidInputError, match="analyze the table again"):
        published(table, {0: ONE}, analysed=2)


def test_tables_of_format_version_1_have_no_sequence_numbers() -> None:
    table = a_table(options={"format-version": "1"})
    table.append([a_file("a")])

    ((blob, _),) = blobs(table, published(table, {0: ONE}).path)

    assert blob["sequence-number"] == 0


def test_a_publication_is_a_line_of_the_log() -> None:
    table = a_table()
    table.append([a_file("a")])
    table.append([a_file("b")])
    published(table, {0: ONE}, snapshot=1)

    (event,) = next(table.events(table.state.version)).transactions[0].events
    assert isinstance(event, StatisticsSet)
    assert event.statistics.snapshot_id == 1


@pytest.mark.parametrize("size", [0, 1, 9, 300, 4097])
def test_java_reads_our_plain_form_of_a_sketch_as_the_same(spark: SparkSession, size: int) -> None:
    from pyspark.sql import functions as F

    values = spark.range(size).selectExpr("cast(cast(id as string) as binary) as value")
    once = values.agg(F.theta_sketch_agg("value").alias("value"))
    row = once.agg(F.theta_union_agg("value").alias("value")).first()
    assert row is not None

    plain = decompress_sketch(bytes(row["value"]))
    assert (plain != bytes(row["value"])) == (size > 1)

    both = spark.createDataFrame([(plain,)], "value binary").select(
        F.theta_sketch_estimate("value").alias("count"), "value"
    )
    read = both.agg(F.max("count").alias("count"), F.theta_union_agg("value").alias("value"))
    (found,) = read.collect()
    assert found["count"] == once.select(F.theta_sketch_estimate("value")).collect()[0][0]
    assert bytes(found["value"]) == bytes(row["value"])


def test_bytes_that_are_no_sketch_are_rejected() -> None:
    rng = random.Random(3)
    for cut in range(len(TWO)):
        with pytest.raises(InvalidInputError):
            decompress_sketch(TWO[:cut])
    with pytest.raises(InvalidInputError, match="version 9"):
        decompress_sketch(TWO[:1] + b"\x09" + TWO[2:])
    for _ in range(300):
        body = bytearray(TWO)
        body[rng.randrange(len(body))] = rng.randrange(256)
        try:
            decompress_sketch(bytes(body))
        except InvalidInputError:
            continue
