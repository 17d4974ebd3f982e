"""What went wrong and harmed nothing, told through structlog."""

from __future__ import annotations


def warn(logger: str, event: str, **facts: object) -> None:
    """Tell whoever listens; who does not configure structlog sees a line on its own default."""
    # It brings rich and asyncio along, a third of what importing the ledger would take.
    import structlog

    structlog.get_logger(logger).warning(event, **facts)
