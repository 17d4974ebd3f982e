"""Statistics over a table's whole history: per partition, and at every snapshot.

`refresh` keeps them under the table's `_ledger/statistics/`, reading only what is new; `verify`
computes them again in full. There is one `fold`, by one `definition`, wherever it runs: in this
process, or in Spark's executors for bulk. `compute` gives DataFrames to whoever goes on in Spark.

Others may import:
    `definition`    what is counted, as data
    `fold`          from entries to deltas, from deltas to sums
    `reading`       a table's file changes as rows
    `columns`       what entries say of columns
    `keeping`       tiles beside the log, and the position
    `shown`         what people ask, and how they see it
    `publishing`    what a format brings so that its readers find statistics
    `spark`         executors, sessions, DataFrames; which engine computes
    `command`       `lakeledger stats`
    `verification`  what `lakeledger verify` asks of them
"""

from __future__ import annotations

from projections.statistics.keeping.kept import Kept
from projections.statistics.keeping.materialise import rebuild, refresh, verify
from projections.statistics.spark.job import Statistics, compute, compute_from
from projections.statistics.spark.session import spark_session

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
