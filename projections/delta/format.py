"""Delta as a format of tables: what the entry point of `lakeledger.formats` names."""

from __future__ import annotations

from projections.lazy_format import LazyFormat

DELTA = LazyFormat(
    rules="projections.delta.rules.answers:RULES",
    kept="projections.delta.materialise:DELTA",
    project="projections.delta.materialise:project",
    command="projections.delta.command:COMMAND",
    planned="projections.delta.planned:planned",
    importer="projections.delta.importing.importing:DELTA",
    import_command="projections.delta.importing.command:register",
    promoter="projections.delta.importing.promoting:PROMOTE",
)
"""Its rules, its files and what else the ledger asks of a format; see `ledger.formats`."""
