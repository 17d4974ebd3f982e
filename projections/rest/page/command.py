"""The command `ui`."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import App, Parameter

from ledger.cli import families
from ledger.cli.options import LedgerFlags
from ledger.cli.output import Screen
from ledger.table_handle import handle_of
from projections.rest.authentication import authenticate_local_program
from projections.rest.server import (
    Address,
    bound_socket,
    check_dependencies,
    check_port,
    configure_log,
    exit_with_running_requests,
    serve_until_stopped,
    uri_of,
)

HOST = "127.0.0.1"
"""The one address of the page, which other machines cannot reach: it has no authentication."""

DEFAULT_PORT = 8188
_GRACE_S = 5


def register(app: App) -> None:
    """Add the command `ui`."""
    families.add(app, "ui", ui)


def ui(
    url: Annotated[str | None, Parameter(help="Root of the ledger; or use --ledger.")] = None,
    /,
    *,
    port: Annotated[int, Parameter(help="Port to bind to; 0 for any free port.")] = DEFAULT_PORT,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Show a ledger in a browser: a read-only page on this machine.

    Databases and tables, columns as of any instant, history, blame, differences, snapshots,
    branches and tags, partitions by size, and projections with their lag. The page needs no
    scripts and no network, and commits nothing.

    It is bound to 127.0.0.1 and has no authentication. For other machines, use lakeledger serve
    with --token-file, which shows the same page at /. Ctrl-C and SIGTERM end it.

    Example:
        lakeledger ui lake

        lakeledger ui lake --port 0
    """
    check_dependencies()
    chosen = place.or_at(url)
    check_port(port)
    handle = handle_of(chosen.open())
    configure_log("warning")

    from projections.rest.page.routes import PageSite, page_application
    from projections.rest.served_ledger import ServedLedger

    site = PageSite(ServedLedger(handle), authenticate_local_program)
    with bound_socket(Address(HOST, port)) as listening:
        uri = f"{uri_of(HOST, listening.getsockname()[1])}/"
        ended = serve_until_stopped(
            page_application(site),
            listening,
            [site.pool],
            _GRACE_S,
            lambda: _announce(chosen.screen, handle.url, uri),
        )
    handle.close(_GRACE_S)
    if not ended:
        exit_with_running_requests(_GRACE_S)


def _announce(screen: Screen, ledger: str, uri: str) -> None:
    screen.result({"ledger": ledger, "uri": uri}, lambda to: to.line(f"showing {ledger} at {uri}"))
    sys.stdout.flush()
