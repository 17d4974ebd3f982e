"""Published statistics that were lost or damaged, and publications that are refused in time."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from ledger import Schema, SnapshotPlan, Table, UnsupportedError
from ledger.table_handle import handle_of
from projections.iceberg import position
from projections.iceberg import statistics_files as publish_iceberg
from projections.materialising import outputs_of
from projections.paimon import materialise as paimon
from projections.paimon import statistics_file as publish_paimon
from projections.statistics import Kept
from projections.statistics.publishing import Published
from tests.lakes import data_file, lake_on, memory, orders


@pytest.fixture
def table() -> Table:
    table = orders(lake_on(memory()))
    table.append([data_file("a.parquet"), data_file("b.parquet", "2013-01-02")])
    return table


def for_iceberg(table: Table) -> Published:
    return publish_iceberg.publish_partition_statistics(
        handle_of(table), Kept.of(handle_of(table).log), table.at()
    )


def cut(table: Table, path: str) -> bytes:
    """Let a file lose its end; return what it was."""
    outputs = outputs_of(handle_of(table))
    body = outputs.read(path)
    assert body is not None
    outputs.store.replace(outputs.key(path), body[:-1])
    return body


def test_a_cut_file_is_written_again_for_iceberg_and_never_named_as_it_is(table: Table) -> None:
    path = for_iceberg(table).path
    named = dict(table.state.partition_statistics)
    body = cut(table, path)

    assert not for_iceberg(table).is_new
    assert outputs_of(handle_of(table)).read(path) == body
    assert table.state.partition_statistics == named


@pytest.mark.parametrize("mishap", ["lost", "cut"])
def test_a_file_is_written_again_for_paimon(table: Table, mishap: str) -> None:
    path = publish_paimon.publish(handle_of(table)).path
    body = cut(table, path)
    if mishap == "lost":
        outputs_of(handle_of(table)).remove(path)
    version = table.state.version

    assert not publish_paimon.publish(handle_of(table)).is_new
    assert outputs_of(handle_of(table)).read(path) == body
    assert table.state.version == version


@pytest.mark.parametrize("user", ["spark", publish_paimon.COMMIT_USER])
def test_statistics_that_cannot_be_recomputed_are_followed_by_new_ones(
    table: Table, user: str
) -> None:
    plan = SnapshotPlan("ANALYZE", commit_user=user, facts={"statistics": "stat-lost-0"})
    table.commit_snapshot(plan)

    found = publish_paimon.publish(handle_of(table))

    assert (found.snapshot_id, found.is_new) == (2, True)
    assert outputs_of(handle_of(table)).read(found.path) is not None
    assert paimon.verify(handle_of(table)).is_empty


def test_an_unpartitioned_table_has_no_statistics_by_partition() -> None:
    table = orders(lake_on(memory()), Schema.of({"id": "BIGINT"}))
    table.append([replace(data_file("a.parquet"), partition=())])

    with pytest.raises(UnsupportedError, match=r"shop.orders is not partitioned.*partition it"):
        for_iceberg(table)
    assert table.state.partition_statistics == {}


def test_what_a_format_rejects_is_not_published(table: Table) -> None:
    lists = {"base_manifest_list": "manifest-list-1", "delta_manifest_list": "manifest-list-2"}
    table.commit_snapshot(SnapshotPlan("APPEND", facts=lists))
    version = table.state.version

    with pytest.raises(UnsupportedError, match="was written by an engine"):
        publish_iceberg.publish_partition_statistics(
            handle_of(table), Kept.of(handle_of(table).log), table.at(snapshot=1)
        )
    assert table.state.version == version
    assert position.FILE.load(handle_of(table).log.store, handle_of(table).log.layout).version == -1
