"""Delta: a table's `_delta_log`, with classic checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.model import exporter

if TYPE_CHECKING:
    from projections.delta.actions import Reconciled, checkpoint_path, commit_path, is_checkpoint
    from projections.delta.checkpoint import from_parquet
    from projections.delta.materialise import DELTA

__all__ = ["DELTA", "Reconciled", "checkpoint_path", "commit_path", "from_parquet", "is_checkpoint"]

if not TYPE_CHECKING:
    __getattr__ = exporter(
        __name__,
        {
            "projections.delta.actions": (
                "Reconciled",
                "checkpoint_path",
                "commit_path",
                "is_checkpoint",
            ),
            "projections.delta.checkpoint": ("from_parquet",),
            "projections.delta.materialise": ("DELTA",),
        },
    )
