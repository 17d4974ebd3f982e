"""Entry point of the Paimon format."""

from __future__ import annotations

from projections.lazy_format import LazyFormat

PAIMON = LazyFormat(
    rules="projections.paimon.rules:RULES",
    kept="projections.paimon.materialise:PAIMON",
    project="projections.paimon.materialise:project",
    command="projections.paimon.command:COMMAND",
    planned="projections.paimon.command:planned",
    importer="projections.paimon.importing:PAIMON",
    engine_files="projections.paimon.engine_files:engine_files",
    import_command="projections.paimon.command:register",
    promoter="projections.paimon.importing:PROMOTE",
    engine_manifests="projections.paimon.engine_files:PAIMON",
    engine_lists="projections.paimon.engine_lists:LISTS",
    engine_problems="projections.paimon.partition_check:partition_problems",
    publisher="projections.paimon.statistics_file:PAIMON",
    engine_tags="projections.paimon.served_tags:change_tag",
)
"""Paimon's rules, files and other parts; see `ledger.formats`."""
