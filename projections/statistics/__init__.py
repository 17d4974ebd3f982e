"""Statistics over a table's history, per partition and per snapshot."""

from __future__ import annotations

from projections.statistics.materialise import rebuild, refresh, verify
from projections.statistics.session import spark_session
from projections.statistics.tile_rows import Kept

__all__ = ["Kept", "rebuild", "refresh", "spark_session", "verify"]
