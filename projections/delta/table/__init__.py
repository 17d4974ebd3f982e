"""What a table is in Delta's words: types, names, values, metadata, and the files that it lists.

Others may import:
    `types`     data types, and what may become of a column's
    `columns`   a schema of Delta's as the ledger's columns
    `mapping`   what files call each column
    `values`    partition values and statistics
    `metadata`  protocol and metadata
    `files`     data files as the actions that bring and take them
    `fold`      protocol and metadata while the ledger's commits go by

Source: the Delta transaction protocol.
"""
