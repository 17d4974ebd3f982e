"""Paimon as a format of tables: what the entry point of `lakeledger.formats` names."""

from __future__ import annotations

from projections.lazy_format import LazyFormat

PAIMON = LazyFormat(
    rules="projections.paimon.rules.answers:RULES",
    kept="projections.paimon.materialise:PAIMON",
    project="projections.paimon.materialise:project",
    command="projections.paimon.command:COMMAND",
    planned="projections.paimon.planned:planned",
    importer="projections.paimon.importing.importing:PAIMON",
    engine_files="projections.paimon.engines:engine_files",
    import_command="projections.paimon.importing.command:register",
    promoter="projections.paimon.importing.promoting:PROMOTE",
    engine_manifests="projections.paimon.statistics.engine_manifests:PAIMON",
    publisher="projections.paimon.statistics.publisher:PAIMON",
)
"""Its rules, its files and what else the ledger asks of a format; see `ledger.formats`."""
