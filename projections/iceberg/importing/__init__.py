"""Iceberg tables that others made, coming into the ledger with their history.

Others may import:
    `importing`  reading a source into transactions, as the entry point names it
    `command`    its command
    `metadata`   what a born table's state is in Iceberg's words
    `schemas`    what a schema is on either side
    `differences` the events from one state of metadata to another
    `promoting`  letting the ledger own such a table, as the entry point names it

Inside: `sources` reads what is there, `steps` parts what two of its files tell into moments,
`moved` how far a part of one has moved on in the other, `plan` goes through all of it; `catalogs`
swaps a catalog's pointer. What knows no format stands in `projections.importing`.
"""
