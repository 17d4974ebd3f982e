"""Paimon tables that others made, coming into the ledger with their history.

Others may import:
    `importing`  reading a source into transactions, as the entry point names it
    `command`    its command
    `promoting`  letting the ledger own such a table, as the entry point names it

Inside: `sources` reads what is there, `plan` says in events what is new in it. What knows no format
stands in `projections.importing`.
"""
