"""The catalog: databases, tables and views by name; deciding requests, and folding its stream.

Others may import:
    `facts`       what each kind of event says and names; a new one has its row there
    `requests`    what can be asked
    `intent`      a request, decided on whatever state it meets
    `state`       CatalogState and its entries
    `builder`     the fold of its stream
    `location`    where tables and databases may lie
    `record`      its state in checkpoints; CatalogStream, which the log folds it with
    `history`     every table that its commits name, with all its names
    `birth`       the version 0 of a table that it creates

Inside: `names` holds the rules of names, `moves` decides what is asked of the ledger's place,
`standing` says who came first, `views` decides what is asked of views, and folds them.
"""
