"""What went wrong and harmed nothing, told through structlog."""

from __future__ import annotations

import sys


def warn(logger: str, event: str, **facts: object) -> None:
    """Tell whoever listens; who does not configure structlog sees a line on stderr."""
    # It brings rich and asyncio along, a third of what importing the ledger would take.
    import structlog

    if structlog.is_configured():
        told = structlog.get_logger(logger)
    else:
        # Its own default is stdout, where a line would stand among somebody's results.
        told = structlog.wrap_logger(structlog.PrintLogger(sys.stderr))
    told.warning(event, **facts)
