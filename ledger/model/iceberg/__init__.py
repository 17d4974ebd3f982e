"""Iceberg's objects in Iceberg's own JSON, for events, states, metadata files and REST updates.

Others may import:

- `layout`: partition specs and sort orders, and a table's specs by their ids.
- `snapshot`: snapshots, refs, logs, statistics files and encryption keys.
"""
