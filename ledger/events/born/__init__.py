"""What only tables say that were born elsewhere: their sources' own words.

Others may import:

- `iceberg`: what Iceberg's metadata says besides; schemas and rollbacks of all such tables.
- `paimon`: what Paimon's files say besides.
- `delta`: how far a Delta log was followed, and its words for the table as a whole.
"""
