"""Tables that others own, coming into a ledger and followed from then on: what knows no format.

A format reads its source into transactions, and that is all it does. Trying them before anything is
written, landing each once, going on after an interruption, telling what came and the command are
here.

Others may import:
    `importing`  a format's import: its plan, and its landing
    `promoting`  letting the ledger own a table that others owned
    `trial`      the table as what is planned leaves it, tried event by event
    `files`      the files of a source, read wherever it lies
    `many`       which tables there are in a folder
    `deriving`   the SchemaChanges between two schemas, found by field id
    `command`    what a format's command does

Inside: `mirrors` are the handles by which a process looks again and again.
"""
