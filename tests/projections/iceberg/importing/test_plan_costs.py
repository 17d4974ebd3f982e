from __future__ import annotations

import pytest

from benchmarks.importing import metadata_files
from ledger.state import TableBuilder, TableState
from projections.iceberg import read_after
from projections.iceberg.importing import creation_of, plan_import
from projections.iceberg.metadata_folder import MetadataFile
from projections.importing.trial import PlanningState


def states_made(monkeypatch: pytest.MonkeyPatch, snapshots: int) -> int:
    """Return how many states are made to plan the import of a table with so many snapshots."""
    (body,) = metadata_files(snapshots, 1, 0)
    file = read_after(body, None)
    metadata = file.metadata
    trial = PlanningState(creation_of(metadata, "s3://lake/t").state(), 2**50)
    made = []
    freeze = TableBuilder.freeze

    def counted(builder: TableBuilder) -> TableState:
        made.append(builder)
        return freeze(builder)

    with monkeypatch.context() as patched:
        patched.setattr(TableBuilder, "freeze", counted)
        steps = [*plan_import(trial, [MetadataFile("s3://lake/t/1.metadata.json", file, metadata)])]
    assert len(steps) == snapshots
    return len(made)


def test_a_long_history_is_planned_without_a_state_for_each_of_its_snapshots(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each would copy the whole of the table."""
    assert states_made(monkeypatch, 100) == states_made(monkeypatch, 10) <= 5
