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
    `committing`   updates of the REST catalog, committed to tables that the ledger owns

Inside: `project` is one run over the log, on `table` and `snapshots`, or by `born` of a table that
comes from Iceberg, with `promoted` for the ledger's own snapshots of it; `engines` reads what
engines' manifests list; `position` says where it stands, `standing` compares what stands;
`rules` says what Iceberg can hold.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Unpack

if TYPE_CHECKING:
    from ledger.evolution.state import TableState
    from ledger.log.request import Appended, CommitOptions
    from ledger.table import Table

__all__ = ["commit_updates", "expire_snapshots"]


def commit_updates(
    table: Table,
    updates: Iterable[dict[str, Any]],
    requirements: Iterable[dict[str, Any]] = (),
    **options: Unpack[CommitOptions],
) -> Appended[TableState]:
    """Commit updates of the Iceberg REST catalog to a table that the ledger owns.

    Args:
        table: A table from Iceberg.
        updates: In order, as decoded JSON; see `committing.commit` for what they may change.
        requirements: The conditions under which they are committed, as decoded JSON.
        options: See CommitOptions.

    Raises:
        InvalidInputError: An update or requirement cannot be read, or contradicts the table.
        InvalidChangeError: An update is not allowed here.
        StaleBaseError: A requirement does not hold.
        UnsupportedError: The table is not from Iceberg, or its types cannot say a schema.
        CommitUnknownError: The store gave no answer.
    """
    from projections.iceberg.committing import commit

    return commit.commit_updates(table, updates, requirements, **options)


def expire_snapshots(
    table: Table,
    now_ms: int,
    older_than_ms: int | None = None,
    retain_last: int | None = None,
    **options: Unpack[CommitOptions],
) -> Appended[TableState]:
    """Expire the snapshots, branches and tags that Iceberg's retention rules do not keep.

    Args:
        table: A table from Iceberg that the ledger owns.
        now_ms: The time that ages count from, in milliseconds since 1970.
        older_than_ms: Snapshots made before may go; by default those of the table's properties.
        retain_last: At least so many snapshots of each branch stay; by default as the properties
            say.
        options: See CommitOptions.

    Raises:
        InvalidInputError: `retain_last` is below 1, or the table must not lose files.
        InvalidChangeError: The table follows a source.
        UnsupportedError: The table is not from Iceberg.
        CommitUnknownError: The store gave no answer.
    """
    from projections.iceberg.committing import commit
    from projections.iceberg.committing.expiry import Retention

    return commit.expire_snapshots(table, Retention(older_than_ms, retain_last), now_ms, **options)
