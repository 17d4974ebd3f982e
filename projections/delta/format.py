"""Entry point of the Delta format."""

from __future__ import annotations

from projections.lazy_format import LazyFormat

DELTA = LazyFormat(
    rules="projections.delta.rules:RULES",
    kept="projections.delta.materialise:DELTA",
    project="projections.delta.materialise:project",
    command="projections.delta.command:COMMAND",
    planned="projections.delta.planned:planned",
    importer="projections.delta.importing:DELTA",
    import_command="projections.delta.command:register",
    column_names="projections.delta.rules:names_in_new_files",
    promoter="projections.delta.importing:PROMOTE",
)
"""The Delta format's rules, files and other parts; see `ledger.formats`."""
