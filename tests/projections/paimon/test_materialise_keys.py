"""Tables with a primary key: what their engine says is carried, what only it knows is refused."""

from __future__ import annotations

import pytest

from ledger import Schema, SnapshotPlan, Table, UnsupportedError
from ledger.table_handle import handle_of
from projections.paimon import PAIMON, expected, snapshot_from_json, verify
from tests.lakes import lake_on, memory, orders

LISTS = {
    "base_manifest_list": "manifest-list-1",
    "delta_manifest_list": "manifest-list-2",
    "changelog_manifest_list": "manifest-list-3",
    "index_manifest": "index-manifest-1",
    "watermark": 7,
}


def keyed() -> Table:
    schema = Schema.of({"id": "BIGINT NOT NULL"}, primary_keys=["id"], options={"bucket": "2"})
    return orders(lake_on(memory()), schema)


def test_an_engines_snapshot_is_carried_unchanged() -> None:
    table = keyed()
    table.commit_snapshot(SnapshotPlan("COMPACT", commit_user="flink", facts=LISTS))
    table.create_tag("t")
    PAIMON.project(handle_of(table))

    written = snapshot_from_json(expected(handle_of(table))["snapshot/snapshot-1"])
    assert written == table.at().snapshot
    assert written.base_manifest_list == "manifest-list-1"
    assert {"schema/schema-0", "snapshot/snapshot-1", "tag/tag-t"} <= set(
        expected(handle_of(table))
    )
    assert not any("manifest/" in path for path in expected(handle_of(table)))
    assert verify(handle_of(table)).is_empty


def test_a_snapshot_that_names_no_lists_of_its_engine_is_rejected() -> None:
    table = keyed()
    table.commit_snapshot(SnapshotPlan("ANALYZE"))
    with pytest.raises(UnsupportedError, match="primary key"):
        PAIMON.project(handle_of(table))
