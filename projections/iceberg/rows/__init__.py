"""Reading rows: a table at an instant as a scan of PyIceberg.

Others may import:
    `scan`  the scan, which the package's entry point names

Inside: `reading` makes it, of `files` (PyIceberg's way to them) and `scanning` (the ledger's plan).
"""

from __future__ import annotations

from projections.iceberg.rows.reading import scan

__all__ = ["scan"]
