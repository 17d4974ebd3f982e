"""Limits on a batch of a stream, which Spark has from version 4.2 on."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

_MODULE: Final = "pyspark.sql.streaming.datasource"

HAS_READ_LIMITS: Final = find_spec(_MODULE) is not None
"""True if Spark passes the start of a batch and a limit to a Python source."""

SupportsTriggerAvailableNow: Any = (
    import_module(_MODULE).SupportsTriggerAvailableNow if HAS_READ_LIMITS else object
)
"""Mark of a reader that ends a query with `Trigger.AvailableNow` by itself; none in Spark 4.1."""


def read_limit(most: int | None) -> Any:
    """Return Spark's limit of at most `most` commits in a batch; None for all.

    Spark's limits count rows or files, and it passes a limit on as it was given. That of rows
    stands for commits here.
    """
    limits = import_module(_MODULE)
    return limits.ReadAllAvailable() if most is None else limits.ReadMaxRows(most)


def most_rows(limit: Any) -> int | None:
    """Return the number in a limit of `read_limit`; None for no limit, as Spark 4.1 passes."""
    return getattr(limit, "max_rows", None)
