"""Kills, races, and files of others: what a reader finds, and where it ends."""

from __future__ import annotations

import random

import pytest

from ledger import FileChange, Schema, SetOption, SnapshotPlan, StoreError, Table, UnsupportedError
from projections.iceberg.materialise import expected, project, rebuild, verify
from projections.materialisation import Difference
from tests.lakes import lake_on, memory, orders
from tests.projections.formats import ICEBERG
from tests.projections.iceberg.older_logs import record_file
from tests.projections.iceberg.projecting import Left, go_on, is_consistent, random_table


@pytest.mark.parametrize("kind", ["-m0.avro", "/snap-", "metadata/0", "metadata/v"])
def test_a_foreign_file_in_the_way_is_reported_and_left_alone(kind: str) -> None:
    store = memory()
    table = random_table(1, store)
    path = next(path for path in expected(table) if kind in path and "hint" not in path)
    key = f"{table.path}/{path}"
    store.create(key, b"mine")

    with pytest.raises(StoreError, match=path) as raised:
        project(table)

    assert raised.value.kind == "FOREIGN_FILE"
    assert store.read(key) == b"mine"
    store.delete(key)
    project(table)
    ICEBERG.assert_exact(table)


def test_foreign_files_are_listed_and_outlive_everything() -> None:
    store = memory()
    table = random_table(1, store)
    project(table)
    foreign = ("metadata/00001-mine.metadata.json", "metadata/mine-m0.avro", "metadata/mine.stats")
    for path in foreign:
        store.create(f"{table.path}/{path}", b"mine")

    assert verify(table) == Difference(foreign=foreign)

    go_on(table, random.Random(1), 20)
    project(table)
    rebuild(table)
    assert verify(table) == Difference(foreign=foreign)


def test_a_hint_to_another_table_is_reported_and_left_alone() -> None:
    store = memory()
    table = random_table(1, store)
    theirs = {"v99.metadata.json": b'{"table-uuid":"mine"}', "version-hint.text": b"99"}
    for name, body in theirs.items():
        store.create(f"{table.path}/metadata/{name}", body)

    with pytest.raises(StoreError, match="leads to the metadata of another table"):
        project(table)

    assert {path.removeprefix("metadata/") for path in Left.by(table).files} == set(theirs)


def keyed() -> Table:
    schema = Schema.of({"id": "BIGINT NOT NULL"}, primary_keys=["id"], options={"bucket": "2"})
    return orders(lake_on(memory()), schema)


def test_a_table_with_a_primary_key_projects_its_schema_alone() -> None:
    table = keyed()
    project(table)
    newest = Left.by(table).metadata(0, table)
    assert newest["schemas"][0]["identifier-field-ids"] == [0]

    record_file(table, FileChange(path="a.parquet", record_count=1, file_size_in_bytes=1))
    with pytest.raises(UnsupportedError, match="primary key, whose newest rows .* drop the"):
        project(table)
    table.delete_files(["a.parquet"])
    table.expire_snapshots(before=2)
    project(table)
    assert verify(table).is_empty


def test_an_engines_own_manifests_are_refused() -> None:
    table = keyed()
    lists = {"base_manifest_list": "manifest-list-1", "delta_manifest_list": "manifest-list-2"}
    table.commit_snapshot(SnapshotPlan("APPEND", commit_user="flink", facts=lists))
    with pytest.raises(UnsupportedError, match="snapshot 1 .* Paimon manifests of its own"):
        project(table)


def test_a_table_that_is_not_declared_iceberg_is_refused() -> None:
    table = orders(lake_on(memory()))
    table.alter([SetOption("ledger.formats", "paimon")])
    with pytest.raises(UnsupportedError, match="add iceberg to its option"):
        project(table)


def test_a_manifest_that_two_snapshots_share_stays_until_both_expired() -> None:
    store = memory()
    table = random_table(6, store, 0)
    rng = random.Random(6)
    while table.state.last_snapshot_id < 12:
        go_on(table, rng, 1)
    first = table.state.earliest_snapshot_id
    table.create_tag("kept", snapshot=first)
    project(table)
    table.expire_snapshots(before=table.state.last_snapshot_id)
    project(table)
    assert is_consistent(Left.by(table))

    for name in table.state.tags:
        table.delete_tag(name)
    project(table)
    ICEBERG.assert_exact(table)
    lists = [path for path in Left.by(table).files if "/snap-" in path]
    assert len(lists) == 1
