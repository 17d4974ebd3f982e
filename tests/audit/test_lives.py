"""The history of a column: each kind of event has its rule."""

from __future__ import annotations

from typing import get_args

from ledger.audit.column_history import _RULES
from ledger.events import TableEvent


def test_every_fact_of_a_table_has_a_rule_and_none_of_a_column_falls_back_to_another() -> None:
    assert set(_RULES) == set(get_args(TableEvent))
