"""Entry point of the Delta format."""

from __future__ import annotations

from projections.lazy_format import LazyFormat

DELTA = LazyFormat(
    rules="projections.delta.rules:RULES",
    kept="projections.delta.materialise:DELTA",
    project="projections.delta.materialise:project",
    command="projections.delta.command:COMMAND",
    planned="projections.delta.materialise:planned",
    importer="projections.delta.importing:DELTA",
    import_command="projections.delta.command:register",
    promoter="projections.delta.importing:PROMOTE",
)
"""Its rules, its files and what else the ledger asks of a format; see `ledger.formats`."""
