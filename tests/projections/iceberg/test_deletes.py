"""Iceberg's manifests say of files their order, their rows' ids and what they delete."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from ledger import FileChange, SnapshotPlan, Table
from ledger.table_handle import handle_of
from projections.iceberg import ICEBERG, verify
from tests.files.test_later_facts import by_value, data, lived, table_on, vector
from tests.lakes import lake_on, memory
from tests.projections.iceberg.projecting import DELETED, Left
from tests.thorough import some

CONTENTS = {"data": 0, "position-deletes": 1, "equality-deletes": 2}


def newest(table: Table) -> tuple[dict[str, Any], list[dict[str, Any]], dict[str, Any]]:
    """Return the newest snapshot, its live entries, and the table's metadata."""
    left = Left.wanted(table)
    metadata = left.metadata(table.state.version, table)
    snapshot = metadata["snapshots"][-1]
    both = zip(left.entries(snapshot), left.data_files(snapshot), strict=True)
    live = [{**each, "data_file": file} for each, file in both if each["status"] != DELETED]
    return snapshot, live, metadata


def facts(entry: dict[str, Any]) -> dict[str, Any]:
    """Return what an entry says that a file change says."""
    file = entry["data_file"]
    named = ("content_offset", "content_size_in_bytes", "referenced_data_file", "equality_ids")
    return {
        "content": file["content"],
        "path": file["file_path"],
        "sort_order_id": file["sort_order_id"],
        "rows": file["record_count"],
        **{name: file[name] for name in named if file.get(name) is not None},
    }


def wanted(table: Table, file: FileChange) -> dict[str, Any]:
    def uri(path: str) -> str:
        return f"{table.location}/{path}"

    found: dict[str, Any] = {
        "content": CONTENTS[file.content],
        "path": uri(file.stored_at),
        "sort_order_id": file.sort_order_id or 0,
        "rows": file.record_count,
    }
    if file.equality_ids:
        found["equality_ids"] = list(file.equality_ids)
    if file.referenced_data_file:
        found["referenced_data_file"] = uri(file.referenced_data_file)
    if isinstance(file.content_offset, int):
        found["content_offset"] = file.content_offset
        found["content_size_in_bytes"] = file.content_size_in_bytes
    return found


def key(each: dict[str, Any]) -> tuple[str, int]:
    return each["path"], each.get("content_offset", -1)


def test_manifests_say_what_files_say() -> None:
    table = table_on(memory())
    table.replace_sort_order().asc("id").commit()
    files = [
        data("a.parquet", sort_order_id=1),
        by_value("e.parquet", 1, 0, sort_order_id=1),
        vector("a.parquet", 4),
        data("b.parquet"),
        vector("b.parquet", 44),
    ]
    table.append(files)
    snapshot, live, _ = newest(table)
    assert sorted(map(facts, live), key=key) == sorted(
        (wanted(table, each) for each in files), key=key
    )
    # One Puffin file is two vectors; each is an entry of a manifest of deletes.
    assert {e["data_file"]["file_format"] for e in live if "v.puffin" in str(e)} == {"PUFFIN"}
    said = snapshot["summary"]
    assert said["operation"] == "overwrite"
    assert {name: each for name, each in said.items() if name.startswith("added-")} == {
        "added-data-files": "2",
        "added-delete-files": "3",
        "added-dvs": "2",
        "added-equality-delete-files": "1",
        "added-equality-deletes": "10",
        "added-files-size": "2300",
        "added-position-deletes": "6",
        "added-records": "20",
    }
    assert said["total-equality-deletes"] == "10"
    assert said["total-position-deletes"] == "6"
    assert said["total-delete-files"] == "3"
    table.delete_files(["v.puffin#4", "e.parquet"])
    snapshot, live, _ = newest(table)
    assert snapshot["summary"]["removed-dvs"] == "1"
    assert snapshot["summary"]["removed-equality-deletes"] == "10"
    assert len(live) == 3


def test_rows_keep_the_ids_that_a_file_says_and_others_get_the_next() -> None:
    table = table_on(memory())
    table.append([data("a.parquet")])
    table.append([data("b.parquet", first_row_id=100), data("c.parquet")])
    table.append([data("d.parquet")])
    snapshot, live, metadata = newest(table)
    ids = {each["data_file"]["file_path"].rpartition("/")[2]: each["row_id"] for each in live}
    assert ids == {"a.parquet": 0, "b.parquet": 100, "c.parquet": 110, "d.parquet": 120}
    assert metadata["next-row-id"] == 130
    given = [(e["first-row-id"], e["added-rows"]) for e in metadata["snapshots"]]
    assert given == [(0, 10), (10, 110), (120, 10)]
    table.delete_files("b.parquet")
    table.rollback(snapshot=3)
    _, live, metadata = newest(table)
    back = {each["data_file"]["file_path"].rpartition("/")[2]: each["row_id"] for each in live}
    assert back == ids
    assert metadata["next-row-id"] == 130
    del snapshot


def test_a_branch_says_what_its_files_say() -> None:
    table = table_on(memory())
    table.append([data("a.parquet")])
    audit = table.branch("audit")
    audit.create()
    audit.commit_snapshot(SnapshotPlan("OVERWRITE", (vector("a.parquet", 4),)))
    snapshot, live, _ = newest(table)
    assert snapshot["snapshot-id"] > 10**12
    assert snapshot["summary"]["added-dvs"] == "1"
    assert {each["data_file"]["content"] for each in live} == {0, 1}
    audit.fast_forward()
    assert {each.path for each in table.at().files} == {"a.parquet", "v.puffin#4"}


@pytest.mark.parametrize("seed", some(range(8), 1))
def test_manifests_hold_exactly_the_live_files_at_every_version(seed: int) -> None:
    store, rng = memory(), random.Random(seed)
    table = table_on(store)
    for _ in range(4):
        lived(table, rng, 12)
        table.rollback(snapshot=rng.randrange(1, table.state.last_snapshot_id + 1))
        ICEBERG.project(handle_of(table))
        _, live, metadata = newest(table)
        said = sorted(map(facts, live), key=key)
        assert said == sorted((wanted(table, each) for each in table.at().files), key=key)
        rows = sorted(
            (each["row_id"], each["row_id"] + each["data_file"]["record_count"])
            for each in live
            if each["data_file"]["content"] == 0
        )
        assert all(before[1] <= after[0] for before, after in itertools.pairwise(rows))
        assert not rows or rows[-1][1] <= metadata["next-row-id"]
        assert verify(handle_of(lake_on(store).table("shop.orders"))).is_empty
