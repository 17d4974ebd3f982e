"""Which options may still change once a table has snapshots. Data first; newer releases add rows.

Source: Paimon's SchemaManager and the options that CoreOptions marks immutable.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ledger.evolution.options.reading import TableOptions, whole
from ledger.evolution.refusals import unsupported

IMMUTABLE_OPTIONS = frozenset(
    {
        "aggregation.remove-record-on-delete",
        "blob-descriptor-field",
        "blob-field",
        "blob-view-field",
        "bucket-function.type",
        "bucket-key",
        "data-evolution.enabled",
        "data-file.path-directory",
        "dynamic-bucket.initial-buckets",
        "force-lookup",
        "index-file-in-data-file-dir",
        "merge-engine",
        "partial-update.remove-record-on-delete",
        "partial-update.remove-record-on-sequence-group",
        "partition",
        "pk-clustering-override",
        "primary-key",
        "primary-key.nullable",
        "row-tracking.enabled",
        "rowkind.field",
        "sequence.snapshot-ordering",
        "type",
    }
)
"""Neither set to another value nor removed while snapshots exist."""


def check_set(old: TableOptions, key: str, value: str) -> None:
    """Refuse to set an option that a table with snapshots cannot change.

    Args:
        old: The options before the batch.
        key: The option.
        value: Its new value, already known to differ from the old one.

    Raises:
        InvalidChangeError: UNSUPPORTED, naming the rule.
    """
    _check_immutable(key)
    guard = _SET_GUARDS.get(key)
    if guard is not None:
        guard(old, key, value)


def check_remove(old: TableOptions, key: str) -> None:
    """Refuse to remove an option that a table with snapshots cannot reset, set or not.

    Raises:
        InvalidChangeError: UNSUPPORTED, naming the rule.
    """
    _check_immutable(key)
    match key:
        case "bucket":
            raise unsupported("option bucket cannot be reset while the table has snapshots")
        case "deletion-vectors.enabled":
            _guard_deletion_vectors(old, key, "false")
        case "clustering.columns":
            _guard_clustering(old, key, "")
        case _:
            return


def _check_immutable(key: str) -> None:
    if key in IMMUTABLE_OPTIONS:
        raise unsupported(
            f"option {key} cannot change while the table has snapshots; create a new table"
        )


def _guard_bucket(old: TableOptions, key: str, value: str) -> None:
    before, after = old.number(key, -1), whole(key, value)
    if before == -1:
        raise unsupported("option bucket is -1 (its default), which cannot become a fixed number")
    if after == -1:
        raise unsupported("option bucket cannot become -1 while the table has snapshots")


def _guard_deletion_vectors(old: TableOptions, key: str, value: str) -> None:
    if old.is_true("deletion-vectors.modifiable"):
        return
    if old.is_true(key) != (value.lower() == "true"):
        raise unsupported(
            f"option {key} cannot be switched while the table has snapshots; "
            "set deletion-vectors.modifiable=true first if duplicates are impossible"
        )


def _guard_no_way_back(old: TableOptions, key: str, value: str) -> None:
    if old.is_true(key) and value.lower() != "true":
        raise unsupported(f"option {key} cannot go from true to false")


def _guard_clustering(old: TableOptions, key: str, _value: str) -> None:
    if "pk-clustering-override" in old.values:
        raise unsupported(f"option {key} is fixed by pk-clustering-override")


_SET_GUARDS: Mapping[str, Callable[[TableOptions, str, str], None]] = {
    "bucket": _guard_bucket,
    "deletion-vectors.enabled": _guard_deletion_vectors,
    "ignore-delete": _guard_no_way_back,
    "ignore-update-before": _guard_no_way_back,
    "clustering.columns": _guard_clustering,
}
