"""The objects of the metadata API that are not the ledger's own, by resource.

Others may import:
    `databases`   databases
    `functions`   functions
    `partitions`  partitions and their statistics
    `refs`        tags, branches, consumers
    `service`     the catalog itself, and errors
    `snapshots`   snapshots and instants
    `tables`      tables
    `views`       views
    `parts`       what many objects share
"""
