from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import s3_replay
from tests.stores.servers.buckets import S3Server, root


@pytest.mark.long
def test_replaying_from_a_bucket_takes_few_requests_through_segments(
    seaweedfs: S3Server, tmp_path: Path
) -> None:
    report = s3_replay.run(
        root(seaweedfs, "replayed"), seaweedfs.options, tmp_path, size=850, repeats=1, width=6
    )

    assert report.fingerprint.endswith("commits=850 segments=1")
    # The first commits are read one by one, since their number is unknown.
    assert report.value("requests through segments") < 250
    assert report.value("requests for the log's files") > 850
