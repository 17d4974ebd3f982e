"""Iceberg tables that others made, coming into the ledger with their history.

Others may import:
    `importing`  the way in
    `command`    its command
    `metadata`   what a born table's state is in Iceberg's words

Inside: `sources` reads what is there, `steps` parts what two of its files tell into moments,
`differences` says each moment in events, `deriving` the SchemaChanges among them, `schemas` what a
schema is on either side, `plan` tries all of it before anything is written.
"""
