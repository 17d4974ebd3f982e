"""Which columns keep their place: keys and index columns of the schema before the batch."""

from __future__ import annotations

from ledger.evolution.columns.draft import Draft
from ledger.evolution.options.naming import INDEX_COLUMN_OPTIONS
from ledger.evolution.refusals import unsupported


def check_not_partition_key(draft: Draft, path: tuple[str, ...], verb: str) -> None:
    """Refuse to touch a partition column.

    Raises:
        InvalidChangeError: UNSUPPORTED.
    """
    if len(path) == 1 and path[0] in draft.old.partition_keys:
        raise unsupported(f"partition column {path[0]} cannot be {verb}")


def check_not_primary_key(draft: Draft, path: tuple[str, ...], verb: str) -> None:
    """Refuse to touch a primary-key column, under its old name or one given in this batch.

    Raises:
        InvalidChangeError: UNSUPPORTED.
    """
    if len(path) == 1 and path[0] in draft.old.primary_keys:
        raise unsupported(f"primary-key column {path[0]} cannot be {verb}")


def check_not_key(draft: Draft, path: tuple[str, ...]) -> None:
    """Refuse to drop a partition or primary-key column.

    Raises:
        InvalidChangeError: UNSUPPORTED.
    """
    check_not_partition_key(draft, path, "dropped")
    check_not_primary_key(draft, path, "dropped")


def check_not_index_column(draft: Draft, path: tuple[str, ...], verb: str) -> None:
    """Refuse to touch a column that one of Paimon's primary-key indexes is built on.

    Raises:
        InvalidChangeError: UNSUPPORTED.
    """
    if len(path) != 1 or not draft.rules.paimon:
        return
    for option in INDEX_COLUMN_OPTIONS:
        if path[0] in draft.old_options.names(option):
            raise unsupported(f"column {path[0]} is listed in {option}; it cannot be {verb}")
