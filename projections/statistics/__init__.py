"""Statistics over a table's whole history: per partition, and at every snapshot.

`refresh` keeps them under the table's `_ledger/statistics/`, reading only what is new; `query`
asks them; `verify` computes them again in full. Two engines count by one `definition`: this
process over Arrow, and Spark for bulk, which is imported only then. `compute` gives DataFrames to
whoever goes on in Spark.
"""

from __future__ import annotations

from projections.statistics.job import Statistics, compute, compute_from
from projections.statistics.kept import Kept
from projections.statistics.materialise import rebuild, refresh, verify
from projections.statistics.session import spark_session

__all__ = [
    "Kept",
    "Statistics",
    "compute",
    "compute_from",
    "rebuild",
    "refresh",
    "spark_session",
    "verify",
]
