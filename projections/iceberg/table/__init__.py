"""What a run knows of a table while its commits go by, and the metadata file that it makes of it.

Others may import:
    `facts_fold`        what manifests and metadata say, from one version to the next
    `trail`             what grows with the history: schemas, snapshots, logs
    `properties`        the table's properties
    `schema`            a ledger's schema as Iceberg's
    `statistics_files`  the statistics that metadata names
    `file`              the metadata file
"""
