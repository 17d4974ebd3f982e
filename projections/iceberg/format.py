"""Iceberg as a format of tables: what the entry point of `lakeledger.formats` names."""

from __future__ import annotations

from projections.lazy_format import LazyFormat

ICEBERG = LazyFormat(
    rules="projections.iceberg.rules.answers:RULES",
    kept="projections.iceberg.materialise:ICEBERG",
    project="projections.iceberg.materialise:project",
    command="projections.iceberg.command:COMMAND",
    planned="projections.iceberg.planned:planned",
    scan="projections.iceberg.rows:scan",
    importer="projections.iceberg.importing.importing:ICEBERG",
    promoter="projections.iceberg.importing.promoting:PROMOTE",
    engine_files="projections.iceberg.engines:engine_files",
    import_command="projections.iceberg.importing.command:register",
    engine_manifests="projections.iceberg.statistics.engine_manifests:ICEBERG",
    publisher="projections.iceberg.statistics.publisher:ICEBERG",
)
"""Its rules, its files and what else the ledger asks of a format; see `ledger.formats`."""
