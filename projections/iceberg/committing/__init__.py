"""What Iceberg's REST catalog does with a commit: requirements, updates, the metadata after it.

Pure. No command reaches it yet: it is how an engine's commit to a table will be checked and
applied, and its tests hold it against what Java's catalogs do.

Others may import:
    `updates`       what a commit asks for, and its JSON
    `requirements`  what must still hold for it
    `fold`          a table's metadata after it
    `views`         a view's
    `creation`      updates that create a table
    `heads`         updates of branches and tags, and what was current when
    `expiry`        updates that expire snapshots
    `file_names`    how engines name metadata files

Inside: `batch` is one commit on its way through `fold_layouts` and `fold_snapshots`.

Source: the Iceberg table, view and REST catalog specifications.

Example:
    >>> from projections.iceberg.committing.creation import NewTable, creating
    >>> from projections.iceberg.committing.fold import apply_updates
    >>> from projections.iceberg.metadata.schema import Schema
    >>> from projections.iceberg.metadata.table_json import read_metadata, write_metadata
    >>> new = NewTable(uuid="9c12d441", location="mem:/t", schema=Schema(0))
    >>> table = apply_updates(None, creating(new), now_ms=1)
    >>> read_metadata(write_metadata(table)) == table
    True
"""
