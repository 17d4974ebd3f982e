"""A trial of what is about to come in is the table as it will be, and changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

import ledger
from ledger import InvalidInputError, SetOption
from ledger.events import DeltaFollowed, SchemaRecord, SnapshotsExpired
from ledger.events.imported import ImportedDeltaTable
from ledger.ledger_writes import adopt_table
from ledger.model import FieldObject
from ledger.table_handle import handle_of
from ledger.table_writes import commit_imported
from projections.importing.trial import PlanningState
from tests.lakes import lake_on, memory, orders


def test_a_look_ahead_has_what_was_added_and_leaves_the_trial_as_it_was() -> None:
    trial = PlanningState(orders(lake_on(memory())).state, now_millis=1_900_000_000_000)

    ahead = trial.after([SetOption("team", "a")], 1_800_000_000_000, "ann")

    assert ahead.schema.options["team"] == "a"
    assert "team" not in trial.schema.options


def test_what_no_log_may_hold_is_rejected_before_it_is_tried() -> None:
    trial = PlanningState(orders(lake_on(memory())).state, now_millis=1_900_000_000_000)

    with pytest.raises(InvalidInputError, match="v2.json: earliestSnapshotId is 0, out of 1 to"):
        trial.take([SnapshotsExpired(earliest_snapshot_id=0)], 0, "", "v2.json")

    assert trial.state.version == 0


def test_the_doors_themselves_take_nothing_that_no_log_may_hold(tmp_path: Path) -> None:
    lake = ledger.open(str(tmp_path), author="bob")
    origin = ImportedDeltaTable(source="/theirs", table_id="u")
    columns = SchemaRecord(
        fields=(FieldObject(id=-1, name="id", type="INT"),), highest_field_id=1, options={}
    )
    facts = {"field_id_policy": "paimon", "origin": origin}
    with pytest.raises(InvalidInputError, match="the creation of d.t: id is -1"):
        adopt_table(handle_of(lake), "d.t", {"schema": columns, **facts})
    assert not [*tmp_path.rglob("*.json")]
    sound = replace(columns, fields=(FieldObject(id=0, name="id", type="INT"),))
    table = adopt_table(handle_of(lake), "d.t", {"schema": sound, **facts})
    news = DeltaFollowed(delta_version=-1, timestamp_millis=1)
    with pytest.raises(InvalidInputError, match="/theirs: deltaVersion is -1"):
        commit_imported(table, (news,), table.state.version)
    assert table.again().state.version == table.state.version
