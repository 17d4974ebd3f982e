"""Iceberg: metadata files, manifest lists and manifests, format versions 1 to 3."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Unpack

from ledger.model import exporter

if TYPE_CHECKING:
    from ledger.log.request import Appended, CommitOptions
    from ledger.state.table import TableState
    from ledger.table import Table
    from projections.iceberg.expiry import (
        Retention,
        expiring,
        remove_ref,
        rollback_to,
        set_current_snapshot,
    )
    from projections.iceberg.imported_metadata import metadata_of
    from projections.iceberg.importing import open_source
    from projections.iceberg.materialise import (
        ICEBERG,
        IcebergFiles,
        advance,
        expected,
        rebuild,
        verify,
    )
    from projections.iceberg.metadata_update import apply_updates
    from projections.iceberg.position import Names
    from projections.iceberg.rest_updates import (
        StaleBaseError,
        check_requirements,
        requirement_from_json,
        requirement_to_json,
        requirements_of,
        table_update_from_json,
    )
    from projections.iceberg.statistics_files import partition_statistics_table
    from projections.iceberg.table_json import read_after, read_metadata, write_metadata
    from projections.iceberg.table_metadata import TableMetadata

__all__ = [
    "ICEBERG",
    "IcebergFiles",
    "Names",
    "Retention",
    "StaleBaseError",
    "TableMetadata",
    "advance",
    "apply_updates",
    "check_requirements",
    "commit_updates",
    "expected",
    "expire_snapshots",
    "expiring",
    "metadata_of",
    "open_source",
    "partition_statistics_table",
    "read_after",
    "read_metadata",
    "rebuild",
    "remove_ref",
    "requirement_from_json",
    "requirement_to_json",
    "requirements_of",
    "rollback_to",
    "set_current_snapshot",
    "table_update_from_json",
    "verify",
    "write_metadata",
]


def commit_updates(
    table: Table,
    updates: Iterable[dict[str, Any]],
    requirements: Iterable[dict[str, Any]] = (),
    **options: Unpack[CommitOptions],
) -> Appended[TableState]:
    """Commit updates of the Iceberg REST catalog to a table that engines or the ledger own.

    Args:
        table: A table from Iceberg, or one that declares it.
        updates: In order, as decoded JSON; see `rest_commit` for what they may change.
        requirements: The conditions under which they are committed, as decoded JSON.
        options: See CommitOptions.

    Raises:
        InvalidInputError: An update or requirement cannot be read, or contradicts the table.
        InvalidChangeError: An update is not allowed here.
        StaleBaseError: A requirement does not hold.
        UnsupportedError: The table does not declare Iceberg, or the ledger cannot make it what the
            updates ask for.
        CommitUnknownError: The store did not answer, so the commit may have been made.
    """
    from ledger.table_handle import handle_of
    from projections.iceberg import rest_commit

    return rest_commit.commit_updates(handle_of(table), updates, requirements, **options)


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
        now_ms: The time from which ages count, in milliseconds since 1970.
        older_than_ms: Snapshots made before may expire; by default as the table's properties say.
        retain_last: The least number of snapshots kept on each branch; by default as the
            properties say.
        options: See CommitOptions.

    Raises:
        InvalidInputError: `retain_last` is below 1, or the table's files must not be deleted.
        InvalidChangeError: The table is imported and not promoted.
        UnsupportedError: The table is not from Iceberg.
        CommitUnknownError: The store did not answer, so the commit may have been made.
    """
    from ledger.table_handle import handle_of
    from projections.iceberg import rest_commit
    from projections.iceberg.expiry import Retention

    return rest_commit.expire_snapshots(
        handle_of(table), Retention(older_than_ms, retain_last), now_ms, **options
    )


if not TYPE_CHECKING:
    __getattr__ = exporter(
        __name__,
        {
            "projections.iceberg.expiry": (
                "Retention",
                "expiring",
                "remove_ref",
                "rollback_to",
                "set_current_snapshot",
            ),
            "projections.iceberg.imported_metadata": ("metadata_of",),
            "projections.iceberg.importing": ("open_source",),
            "projections.iceberg.materialise": (
                "ICEBERG",
                "IcebergFiles",
                "advance",
                "expected",
                "rebuild",
                "verify",
            ),
            "projections.iceberg.position": ("Names",),
            "projections.iceberg.metadata_update": ("apply_updates",),
            "projections.iceberg.rest_updates": (
                "StaleBaseError",
                "check_requirements",
                "requirement_from_json",
                "requirement_to_json",
                "requirements_of",
                "table_update_from_json",
            ),
            "projections.iceberg.statistics_files": ("partition_statistics_table",),
            "projections.iceberg.table_json": (
                "read_after",
                "read_metadata",
                "write_metadata",
            ),
            "projections.iceberg.table_metadata": ("TableMetadata",),
        },
    )
