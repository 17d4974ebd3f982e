"""Spark data source: the ledger's log as DataFrames, and rows written as snapshots."""

from __future__ import annotations

from projections.source.registration import register, tiles
from projections.source.row_distribution import distribute, write

__all__ = ["distribute", "register", "tiles", "write"]
