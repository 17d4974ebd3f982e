"""Folding events of Iceberg tables costs the same for each event, however long the history."""

from __future__ import annotations

import sys
from types import FrameType
from typing import Any

from benchmarks.iceberg_fold import folded
from ledger.state import IcebergOrigin


def steps(snapshots: int) -> int:
    """The calls and lines that folding a life takes."""
    count = 0

    def trace(_frame: FrameType, _event: str, _argument: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    sys.settrace(trace)
    try:
        folded(snapshots)
    finally:
        sys.settrace(None)
    return count


def test_ten_times_the_snapshots_take_at_most_twelve_times_the_steps() -> None:
    assert steps(300) <= 12 * steps(30)


def test_the_log_of_current_snapshots_keeps_what_follows_the_last_one_that_went() -> None:
    state = folded(20).freeze()
    origin = state.origin_of_kind(IcebergOrigin)
    assert [each.snapshot_id for each in origin.snapshot_log] == [20]
    assert list(origin.snapshots) == [20]
