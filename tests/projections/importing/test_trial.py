"""A trial of what is about to come in is the table as it will be, and changes nothing."""

from __future__ import annotations

from ledger import SetOption
from projections.importing.trial import Trial
from tests.lakes import lake_on, memory, orders


def test_a_look_ahead_has_what_was_added_and_leaves_the_trial_as_it_was() -> None:
    trial = Trial(orders(lake_on(memory())).state, now_millis=1_900_000_000_000)

    ahead = trial.after([SetOption("team", "a")], 1_800_000_000_000, "ann")

    assert ahead.schema.options["team"] == "a"
    assert "team" not in trial.schema.options
