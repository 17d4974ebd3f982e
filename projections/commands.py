"""Commands that the projections add to the command line.

The first lines of the docstrings are the summaries in `lakeledger --help`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts import App


def project(app: App) -> None:
    """Project tables' metadata to the files of other formats."""
    from projections.command import register

    register(app)


def serve(app: App) -> None:
    """Serve a ledger through the REST catalogs of Iceberg and of Paimon."""
    from projections.rest.command import register_serve

    register_serve(app)


def serve_token(app: App) -> None:
    """Create a bearer token for clients of a server, and print it once."""
    from projections.rest.command import register_serve_token

    register_serve_token(app)


def stats(app: App) -> None:
    """Show a table's partitions and totals at any instant, from its log alone."""
    from projections.statistics.command import register

    register(app)


def ui(app: App) -> None:
    """Show a ledger in a browser: a read-only page on this machine."""
    from projections.rest.page.command import register

    register(app)
