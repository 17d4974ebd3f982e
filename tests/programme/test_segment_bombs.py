"""Segments that unpack to gigabytes: passed over, and found, in bounded memory."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.programme.segment_bomb_worker import CASES
from tests.programs import output_of

WORKER = "tests.programme.segment_bomb_worker"
MOST_MIB = 128


@pytest.mark.parametrize("case", CASES)
def test_a_segment_far_bigger_than_it_looks_is_passed_over_in_bounded_memory(
    case: str, tmp_path: Path
) -> None:
    bomb = str(tmp_path / "bomb.parquet")
    # Made by another process: what it took does not count.
    output_of("-m", WORKER, "make", case, bomb)
    found = json.loads(output_of("-m", WORKER, "read", case, bomb).splitlines()[-1])

    assert found["bytes"] < 1_000_000
    assert (found["read"], found["same"]) == (False, False)
    assert found["grown_mib"] < MOST_MIB, found
