"""Scan planning: filters, partition pruning, column bounds.

Source: the Iceberg specification, scan planning.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ledger.model import exporter

if TYPE_CHECKING:
    from ledger.planning.bound_value import holds_for, value_to_bytes
    from ledger.planning.expression import (
        FALSE,
        TRUE,
        Always,
        And,
        BoundColumn,
        Expression,
        Not,
        Op,
        Or,
        Predicate,
        Verdict,
        text_of,
        without_not,
    )
    from ledger.planning.filter import parse_filter
    from ledger.planning.plan import FilePlan, SpecCounts, plan_files

__all__ = [
    "FALSE",
    "TRUE",
    "Always",
    "And",
    "BoundColumn",
    "Expression",
    "FilePlan",
    "Not",
    "Op",
    "Or",
    "Predicate",
    "SpecCounts",
    "Verdict",
    "holds_for",
    "parse_filter",
    "plan_files",
    "text_of",
    "value_to_bytes",
    "without_not",
]

if not TYPE_CHECKING:
    __getattr__ = exporter(
        __name__,
        {
            "ledger.planning.bound_value": (
                "holds_for",
                "value_to_bytes",
            ),
            "ledger.planning.expression": (
                "FALSE",
                "TRUE",
                "Always",
                "And",
                "BoundColumn",
                "Expression",
                "Not",
                "Op",
                "Or",
                "Predicate",
                "Verdict",
                "text_of",
                "without_not",
            ),
            "ledger.planning.filter": ("parse_filter",),
            "ledger.planning.plan": (
                "FilePlan",
                "SpecCounts",
                "plan_files",
            ),
        },
    )
