"""Delta tables that others made, coming into the ledger with their history.

Others may import:
    `importing`  the way in
    `command`    its command
    `promoting`  letting the ledger own such a table, as the entry point names it

Inside: `source` finds the log and what of it is left, `reading` its actions in commits and every
kind of checkpoint, `files` an added file as the ledger lists it, `plan` says each version in
events.
"""
