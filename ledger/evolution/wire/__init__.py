"""Changes and first schemas from and to the JSON of DLF's page, of Paimon's wire and the ledger's.

Others may import:
    `changes`      SchemaChanges, and changes of the layout
    `schema`       a first schema
    `reading`      one reader a kind of change

Inside: `members` reads members of JSON objects, with errors that say where.
"""
