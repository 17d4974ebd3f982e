"""Tables that were born elsewhere: what their states hold besides, and how their events fold.

Others may import:

- `iceberg`: of one that was born in Iceberg.
- `delta`: of one that was born in Delta.
- `paimon`: of one that was born in Paimon.
- `operations`: the rows of what happens to such tables.
- `promoted`: what is decided for a table from Iceberg that the ledger owns now.
- `summary`: what Iceberg says of a snapshot, counted.
"""
