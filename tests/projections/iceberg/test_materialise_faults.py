"""Kills, races, and files of others: what a reader finds, and where it ends."""

from __future__ import annotations

import random

import pytest

from ledger import (
    FileChange,
    Schema,
    SetOption,
    SnapshotPlan,
    StoreError,
    Table,
    UnsupportedError,
)
from ledger.table_handle import handle_of
from projections.iceberg import Names, expected, position, rebuild, verify
from projections.iceberg.materialise import project
from projections.iceberg.position import HINT
from tests.lakes import lake_on, memory, orders
from tests.projections.formats import ICEBERG
from tests.projections.iceberg.older_logs import record_file
from tests.projections.iceberg.projecting import (
    Left,
    go_on,
    is_consistent,
    random_table,
)


def test_a_hint_to_another_table_is_reported_and_left_alone() -> None:
    store = memory()
    table = random_table(1, store)
    theirs = {"v99.metadata.json": b'{"table-uuid":"mine"}', "version-hint.text": b"99"}
    for name, body in theirs.items():
        store.create(f"{handle_of(table).path}/metadata/{name}", body)

    with pytest.raises(StoreError, match="points to the metadata of another table"):
        project(handle_of(table))

    assert {path.removeprefix("metadata/") for path in Left.by(table).files} == set(theirs)


@pytest.mark.parametrize("kind", ["-m0.avro", "/snap-", "metadata/0", "metadata/v"])
def test_a_foreign_file_in_the_next_place_is_found_and_rebuilding_makes_way(kind: str) -> None:
    """Projected once already, the next run is in the way of nothing of its own."""
    store = memory()
    table = random_table(1, store)
    project(handle_of(table))
    before = Left.by(table).files
    go_on(table, random.Random(7), 12)
    path = next(
        p for p in expected(handle_of(table)) if kind in p and p not in before and "hint" not in p
    )
    key = f"{handle_of(table).path}/{path}"
    store.create(key, b"mine")

    with pytest.raises(StoreError, match=path):
        project(handle_of(table))
    assert store.read(key) == b"mine"
    assert verify(handle_of(table)).changed == (path,)

    assert rebuild(handle_of(table)).changed == (path,)
    assert verify(handle_of(table)).is_empty
    project(handle_of(table))
    ICEBERG.assert_exact(table)


def test_metadata_of_a_version_to_come_is_found_before_it_sticks_the_projection() -> None:
    """Hadoop's readers look upwards from the hint, so that they would read it, too."""
    store = memory()
    table = random_table(1, store)
    version = project(handle_of(table))
    path = f"metadata/v{version + 1}.metadata.json"
    store.create(f"{handle_of(table).path}/{path}", b"mine")

    assert verify(handle_of(table)).changed == (path,)
    assert rebuild(handle_of(table)).changed == (path,)
    assert path not in Left.by(table).files
    table.alter([SetOption("k", "v")])
    project(handle_of(table))
    ICEBERG.assert_exact(table)


@pytest.mark.parametrize("has_more", [False, True], ids=["as it was", "with more commits"])
@pytest.mark.parametrize("is_lost", [False, True], ids=["damaged", "lost"])
def test_projecting_heals_what_readers_of_the_newest_snapshot_need(
    *, is_lost: bool, has_more: bool
) -> None:
    store = memory()
    table = random_table(1, store)
    version = project(handle_of(table))
    names = Names(table.state.table_id)
    needed = [
        names.metadata(version),
        HINT,
        # A later version needs no more of these two than that they are named.
        *([] if has_more else [names.hadoop(version)]),
        *([] if has_more else [names.manifest_list(table.state.last_snapshot_id)]),
        *(
            each.path
            for each in position.FILE.load(store, handle_of(table).log.layout).manifests
            if not has_more
        ),
    ]
    assert len(needed) > 4 or has_more
    for path in needed:
        key = f"{handle_of(table).path}/{path}"
        whole = store.read(key) or b""
        store.delete(key)
        if not is_lost:
            store.create(key, bytes([*whole[:-1], whole[-1] ^ 1]))
        if has_more:
            table.alter([SetOption("because", path)])
        project(handle_of(table))
        ICEBERG.assert_exact(table)


@pytest.mark.parametrize("damage", [b"3", b"999", b"x", None])
def test_a_hint_that_is_not_the_versions_is_found_and_restored(damage: bytes | None) -> None:
    store = memory()
    table = random_table(1, store)
    version = project(handle_of(table))
    key = f"{handle_of(table).path}/metadata/version-hint.text"
    store.delete(key)
    if damage is not None:
        store.create(key, damage)

    found = verify(handle_of(table))
    assert (*found.missing, *found.changed) == ("metadata/version-hint.text",)
    rebuild(handle_of(table))
    assert store.read(key) == b"%d" % version
    assert verify(handle_of(table)).is_empty


@pytest.mark.parametrize("bit", range(8))
def test_every_flipped_bit_of_a_hint_is_found(bit: int) -> None:
    store = memory()
    table = random_table(1, store)
    project(handle_of(table))
    key = f"{handle_of(table).path}/metadata/version-hint.text"
    body = store.read(key) or b""
    for at in range(len(body)):
        store.replace(key, bytes([*body[:at], body[at] ^ (1 << bit), *body[at + 1 :]]))
        assert verify(handle_of(table)).changed == ("metadata/version-hint.text",)


def test_a_hint_that_a_killed_run_moved_on_is_no_damage() -> None:
    store, table = ICEBERG.halfway(1)
    for writes in range(200):
        if not ICEBERG.kill(store, writes):
            break
        found = verify(handle_of(table))
        assert found.is_empty, (writes, found)


def keyed() -> Table:
    schema = Schema.of({"id": "BIGINT NOT NULL"}, primary_keys=["id"], options={"bucket": "2"})
    return orders(lake_on(memory()), schema)


def test_a_table_with_a_primary_key_projects_its_schema_alone() -> None:
    table = keyed()
    project(handle_of(table))
    newest = Left.by(table).metadata(0, table)
    assert newest["schemas"][0]["identifier-field-ids"] == [0]

    record_file(table, FileChange(path="a.parquet", record_count=1, file_size_in_bytes=1))
    with pytest.raises(UnsupportedError, match="primary key, whose newest rows .* drop the"):
        project(handle_of(table))
    table.delete_files(["a.parquet"])
    table.expire_snapshots(before=2)
    project(handle_of(table))
    assert verify(handle_of(table)).is_empty


def test_an_engines_own_manifests_are_rejected() -> None:
    table = keyed()
    lists = {"base_manifest_list": "manifest-list-1", "delta_manifest_list": "manifest-list-2"}
    table.commit_snapshot(SnapshotPlan("APPEND", commit_user="flink", facts=lists))
    with pytest.raises(UnsupportedError, match="snapshot 1 .* its own Paimon manifests"):
        project(handle_of(table))


def test_a_table_that_is_not_declared_iceberg_is_rejected() -> None:
    table = orders(lake_on(memory()))
    table.alter([SetOption("ledger.formats", "paimon")])
    with pytest.raises(UnsupportedError, match="add iceberg to its option"):
        project(handle_of(table))


def test_a_manifest_that_two_snapshots_share_stays_until_both_expired() -> None:
    store = memory()
    table = random_table(6, store, 0)
    table.alter([SetOption("ledger.reader-grace", "0")])
    rng = random.Random(6)
    while table.state.last_snapshot_id < 12:
        go_on(table, rng, 1)
    first = table.state.earliest_snapshot_id
    table.create_tag("kept", snapshot=first)
    project(handle_of(table))
    table.expire_snapshots(before=table.state.last_snapshot_id)
    project(handle_of(table))
    assert is_consistent(Left.by(table))

    for name in table.state.tags:
        table.delete_tag(name)
    project(handle_of(table))
    ICEBERG.assert_exact(table)
    lists = [path for path in Left.by(table).files if "/snap-" in path]
    assert len(lists) == 1
