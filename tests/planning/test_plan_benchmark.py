from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import plan_files

pytestmark = pytest.mark.usefixtures("nothing_old_to_collect")


def test_the_benchmark_plans_the_same_files_each_time(tmp_path: Path) -> None:
    report = plan_files.run(tmp_path, size=2000, repeats=1)
    again = plan_files.run(tmp_path, size=2000, repeats=1)
    assert report.fingerprint == again.fingerprint
    assert report.fingerprint == "files=2000 kept=1 by metrics alone=10"
    assert all(figure.value > 0 for figure in report.figures)
