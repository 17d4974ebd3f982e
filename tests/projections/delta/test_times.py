"""Creation times of versions of the Delta log, as the log itself says."""

from __future__ import annotations

import pytest

from ledger import DamagedLogError
from projections.delta import commit_path
from projections.delta.actions import DeltaPosition
from projections.delta.delta_log import DeltaLog
from projections.outputs import MemoryOutputs

INFO = b'{"commitInfo":{"inCommitTimestamp":1700000000007}}\n{"add":{}}\n'


def log_with(body: bytes) -> tuple[DeltaLog, MemoryOutputs]:
    outputs = MemoryOutputs()
    outputs.put(commit_path(3), body)
    return DeltaLog(outputs, DeltaPosition(delta_version=5), None), outputs


def test_the_time_of_an_earlier_version_is_read_once() -> None:
    log, outputs = log_with(INFO)
    assert log._time_of(3) == 1_700_000_000_007
    outputs.files.clear()
    assert log._time_of(3) == 1_700_000_000_007
    with pytest.raises(DamagedLogError, match="is missing"):
        log._time_of(4)


@pytest.mark.parametrize("body", [b"", b"{", b'{"add":{}}\n', b'{"commitInfo":{"a":"b"}}\n'])
def test_the_error_of_a_foreign_commit_names_its_file(body: bytes) -> None:
    log, _ = log_with(body)
    with pytest.raises(DamagedLogError, match="is not a commit of the ledger") as raised:
        log._time_of(3)
    assert commit_path(3) in str(raised.value)
    assert raised.value.__cause__ is not None
