"""Verification: commits, sidecar files, caches and data files against the log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.model import exporter

if TYPE_CHECKING:
    from ledger.history.verifying.subject import Expected, Finding, Subject
    from ledger.history.verifying.verify import Verification, repair

__all__ = ["Expected", "Finding", "Subject", "Verification", "repair"]

if not TYPE_CHECKING:
    __getattr__ = exporter(
        __name__,
        {
            "ledger.history.verifying.subject": ("Expected", "Finding", "Subject"),
            "ledger.history.verifying.verify": ("Verification", "repair"),
        },
    )
