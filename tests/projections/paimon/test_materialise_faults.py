"""Files that readers still need: what is tagged outlives an expiry, and goes with its tag."""

from __future__ import annotations

import random

from ledger.table_handle import handle_of
from projections.paimon.materialise import project
from tests.lakes import memory
from tests.projections.formats import PAIMON
from tests.projections.paimon.projecting import Left, go_on, random_table


def test_expiry_keeps_what_tags_name() -> None:
    store = memory()
    table = random_table(3, store, 0)
    rng = random.Random(5)
    while table.state.last_snapshot_id < 12:
        go_on(table, rng, 1)
    first = table.state.earliest_snapshot_id
    table.create_tag("kept", snapshot=first)
    project(handle_of(table))
    before = Left.by(table)
    table.expire_snapshots(before=table.state.last_snapshot_id)
    project(handle_of(table))
    after = Left.by(table)

    assert f"snapshot/snapshot-{first}" not in after.files
    tagged = after.snapshots()["tag/tag-kept"]
    assert after.entries(tagged) == before.entries(tagged)
    assert after.live(table, tagged) == [each.path for each in table.at(tag="kept").files]

    for name in table.state.tags:
        table.delete_tag(name)
    project(handle_of(table))
    PAIMON.assert_exact(table)
    assert len(Left.by(table).snapshots()) == 1
