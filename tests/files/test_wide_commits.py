from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import wide_commits

pytestmark = pytest.mark.usefixtures("nothing_old_to_collect")


def test_commits_after_a_wide_one_are_timed(tmp_path: Path) -> None:
    report = wide_commits.run(tmp_path, sizes=(100, 2_000))

    assert report.fingerprint == "100 2000"
    assert all(figure.value > 0 for figure in report.figures if figure.unit != "bytes")
    assert not any(tmp_path.iterdir())
