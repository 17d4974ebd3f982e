"""Paimon's small files, as Java writes them: read, and written byte for byte.

Others may import:
    `json`             the JSON that all of them are
    `schema_file`      schema-N
    `snapshot_file`    snapshot-N, tag-NAME, and consumer-ID
    `statistics_file`  what ANALYZE leaves
"""
