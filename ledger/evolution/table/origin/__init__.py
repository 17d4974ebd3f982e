"""Origins: where a table comes from, and the questions whose answers depend on it.

Others may import:

- `native`: the origin of tables that the ledger created, and the answers that origins share.
- `iceberg`: the origin of tables imported from Iceberg.
- `iceberg_builder`: the fold of events of tables imported from Iceberg.
- `paimon`: the origin of tables imported from Paimon.
- `delta`: the origin of tables imported from Delta.
- `operations`: the table of events that only imported tables have.
- `summary`: Iceberg's summary of a snapshot, counted.
"""
