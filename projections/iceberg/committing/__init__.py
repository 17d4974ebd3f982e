"""Commits of the Iceberg REST catalog: requirements, updates, and the events that they become.

Pure but for `commit`, which appends the events.

Others may import:
    `commit`        commits updates, or an expiry, to a table that the ledger owns
    `updates`       the updates and their JSON
    `requirements`  the conditions of a commit
    `fold`          a table's metadata after updates
    `heads`         updates of branches and tags, and the snapshot of a time
    `expiry`        updates that expire snapshots

Inside: `batch` is one commit on its way through `fold_layouts` and `fold_snapshots`.

Source: the Iceberg table and REST catalog specifications.
"""
