from __future__ import annotations

from benchmarks import s3_latency
from tests.stores.servers.buckets import S3Server, root


def test_the_benchmark_of_a_bucket_runs_and_makes_its_commits(seaweedfs: S3Server) -> None:
    report = s3_latency.run(root(seaweedfs, "bench"), seaweedfs.options, repeats=2, width=6)
    assert report.fingerprint == "(version, columns)=(3, 6)"
    assert all(figure.value > 0 for figure in report.figures)
