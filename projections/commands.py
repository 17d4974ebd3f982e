"""Commands that the projections add to the command line.

The functions' docstrings are what `lakeledger --help` lists.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts import App


def project(app: App) -> None:
    """Keep a table's files in another format beside its log."""
    from projections.command import register

    register(app)


def stats(app: App) -> None:
    """Show a table's partitions and totals at any instant, from its log alone."""
    from projections.statistics.command import register

    register(app)
