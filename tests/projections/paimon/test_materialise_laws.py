"""Laws of the Paimon files on a store, over random histories."""

from __future__ import annotations

import pytest

from ledger.table_handle import handle_of
from projections.paimon.materialise import project
from tests.lakes import memory
from tests.projections.formats import PAIMON
from tests.projections.paimon.projecting import Left, is_consistent, random_table
from tests.thorough import some

SEEDS = some(range(12), 4)


@pytest.mark.parametrize("seed", SEEDS)
def test_manifests_fold_to_the_live_files_at_every_snapshot_and_tag(seed: int) -> None:
    table = random_table(seed, memory(), 120)
    project(handle_of(table))
    left = Left.by(table)

    assert is_consistent(left)
    state = table.state
    kept = [
        f"snapshot/snapshot-{each}"
        for each in range(state.earliest_snapshot_id, state.last_snapshot_id + 1)
    ]
    leaving = PAIMON.leaving(table)
    found = {path: each for path, each in left.snapshots().items() if path not in leaving}
    assert sorted(found) == sorted([*kept, *(f"tag/tag-{name}" for name in state.tags)])
    for path, snapshot in found.items():
        then = table.at(snapshot=snapshot.id)
        assert left.live(table, snapshot) == sorted(each.path for each in then.files), path
        assert snapshot.total_record_count == then.totals.record_count
        if path.startswith("tag/"):
            assert table.at(tag=path.removeprefix("tag/tag-")).snapshot == then.snapshot
        else:
            assert path == f"snapshot/snapshot-{snapshot.id}"
