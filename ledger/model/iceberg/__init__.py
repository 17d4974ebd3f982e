"""Iceberg's objects in Iceberg's own JSON, for events, states, metadata files and REST updates.

Others may import:

- `snapshot`: snapshots, refs, logs, statistics files and encryption keys.
"""
