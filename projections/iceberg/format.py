"""Entry point of the Iceberg format."""

from __future__ import annotations

from projections.lazy_format import LazyFormat

ICEBERG = LazyFormat(
    rules="projections.iceberg.rules:RULES",
    kept="projections.iceberg.materialise:ICEBERG",
    project="projections.iceberg.materialise:project",
    command="projections.iceberg.command:COMMAND",
    planned="projections.iceberg.planned:planned",
    scan="projections.iceberg.rows:scan",
    importer="projections.iceberg.importing:ICEBERG",
    promoter="projections.iceberg.importing:PROMOTE",
    engine_files="projections.iceberg.engine_files:engine_files",
    referenced_files="projections.iceberg.referenced_files:referenced_files",
    import_command="projections.iceberg.command:register",
    engine_manifests="projections.iceberg.engine_files:ICEBERG",
    engine_writes="projections.iceberg.served_writes:WRITES",
    publisher="projections.iceberg.statistics_files:ICEBERG",
)
"""The Iceberg format's rules, files and other parts; see `ledger.formats`."""
