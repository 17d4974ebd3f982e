"""Kills, races, and files of others: what a reader finds, and where it ends."""

from __future__ import annotations

import random

import pytest

from ledger import StoreError
from projections.paimon.materialise import expected, project, rebuild, verify
from tests.lakes import memory
from tests.projections.formats import PAIMON
from tests.projections.paimon.projecting import Left, go_on, random_table


@pytest.mark.parametrize("kind", ["schema", "snapshot", "manifest"])
def test_a_foreign_file_in_the_way_is_reported_and_left_alone(kind: str) -> None:
    store = memory()
    table = random_table(1, store)
    path = next(path for path in expected(table) if path.startswith(f"{kind}/{kind}-"))
    key = f"{table.path}/{path}"
    store.create(key, b"mine")

    with pytest.raises(StoreError, match=path) as raised:
        project(table)

    assert raised.value.kind == "FOREIGN_FILE"
    assert store.read(key) == b"mine"
    store.delete(key)
    project(table)
    PAIMON.assert_exact(table)


def test_foreign_files_are_listed_and_outlive_everything() -> None:
    store = memory()
    table = random_table(1, store)
    project(table)
    foreign = ("snapshot/snapshot-x", "tag/tag-mine", "manifest/manifest-mine")
    for path in foreign:
        store.create(f"{table.path}/{path}", b"mine")

    assert verify(table).is_empty
    assert verify(table).foreign == foreign

    go_on(table, random.Random(1), 20)
    project(table)
    rebuild(table)
    assert verify(table).foreign == foreign


def test_expiry_keeps_what_tags_name() -> None:
    store = memory()
    table = random_table(3, store, 0)
    rng = random.Random(5)
    while table.state.last_snapshot_id < 12:
        go_on(table, rng, 1)
    first = table.state.earliest_snapshot_id
    table.create_tag("kept", snapshot=first)
    project(table)
    before = Left.by(table)
    table.expire_snapshots(before=table.state.last_snapshot_id)
    project(table)
    after = Left.by(table)

    assert f"snapshot/snapshot-{first}" not in after.files
    tagged = after.snapshots()["tag/tag-kept"]
    assert after.entries(tagged) == before.entries(tagged)
    assert after.live(table, tagged) == [each.path for each in table.at(tag="kept").files]

    for name in table.state.tags:
        table.delete_tag(name)
    project(table)
    PAIMON.assert_exact(table)
    assert len(Left.by(table).snapshots()) == 1
