"""Iceberg: a table's metadata files, manifest lists and manifests, of format versions 1 to 3.

Others may import:
    `format`       Iceberg as a format of tables, which the entry point names
    `materialise`  keeping the files on a store
    `command`      its flags on the command line
    `planned`      what a change would write, and what readers get wrong of it
    `names`        the names of the files
    `manifests`    manifests and lists
    `metadata`     the pure model of a metadata file
    `rows`         reading rows by PyIceberg
    `statistics`   its part in what `lakeledger stats` counts and publishes
    `importing`    tables that others made, coming into the ledger with their history

Inside: `project` is one run over the log, on `table` and `snapshots`, or by `born` of a table that
comes from Iceberg, with `promoted` for the ledger's own snapshots of it; `engines` reads what
engines' manifests list; `position` says where it stands, `standing` compares what stands;
`committing` applies what engines commit; `rules` says what Iceberg can hold.
"""
