"""Statistics over a table's whole history, at scale: per partition and at every snapshot.

`compute` reads the log in parallel on Spark, `write` keeps the result under the table. Spark is
imported when it is needed, so that everything else works without it.
"""

from __future__ import annotations

from projections.statistics.job import Statistics, compute, compute_from, write
from projections.statistics.session import spark_session

__all__ = ["Statistics", "compute", "compute_from", "spark_session", "write"]
