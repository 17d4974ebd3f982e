"""Foreign files that declare or unpack to gigabytes are rejected by name, in bounded memory."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.programme.foreign_bombs import CASES

REPOSITORY = Path(__file__).parents[2]
MOST_MIB = 512
MOST_SECONDS = 10
LONGEST_FILE = 1_200_000


def read(case: str, folder: Path) -> bytes:
    done = subprocess.run(
        [sys.executable, "-m", "tests.programme.foreign_bombs", case, str(folder)],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        check=True,
        timeout=120,
    )
    return done.stdout


@pytest.mark.parametrize("case", CASES)
def test_a_bomb_is_rejected_by_name_in_bounded_memory_and_time(case: str, tmp_path: Path) -> None:
    CASES[case].build(tmp_path)
    sizes = [each.stat().st_size for each in tmp_path.rglob("*") if each.is_file()]
    found = json.loads(read(case, tmp_path))

    assert max(sizes, default=0) < LONGEST_FILE
    assert found["error"] is not None, "it was read"
    assert "LedgerError" in found["error"], found
    assert CASES[case].name in found["message"], found
    assert found["grown_mib"] < MOST_MIB, found
    assert found["seconds"] < MOST_SECONDS, found
