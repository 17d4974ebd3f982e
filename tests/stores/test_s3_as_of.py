from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import s3_as_of
from tests.stores.servers.buckets import S3Server, root


@pytest.mark.long
def test_older_states_in_a_bucket_take_few_requests(seaweedfs: S3Server, tmp_path: Path) -> None:
    report = s3_as_of.run(
        root(seaweedfs, "asked"), seaweedfs.options, tmp_path, size=220, repeats=2, width=6
    )

    assert report.fingerprint == "commits=220 (version, snapshot)=(220, 110)"
    for name in ("log --limit 10", "show --at", "as of a version"):
        assert 0 < report.value(f"{name}, most requests") < 160
