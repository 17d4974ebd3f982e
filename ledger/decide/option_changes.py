"""Decisions on options, on the table's comment and on its keys.

Source: Paimon's SchemaManager and the options that CoreOptions marks immutable; newer releases add
rows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from ledger.decide.column_draft import ChangeAnchor, SchemaDraft
from ledger.decide.errors import argument_error, runtime_error, state_error, unsupported_error
from ledger.decide.table_options import (
    KEY_OPTIONS,
    TableOptions,
    comma_list,
    parse_integer_option,
    split_option_columns,
)
from ledger.events.schema import DropPrimaryKey, RemoveOption, SetOption, UpdateComment
from ledger.state.declared_formats import is_rules_option

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
"""Options that can neither be set to another value nor removed while snapshots exist."""


def check_set_option(old: TableOptions, key: str, value: str) -> None:
    """Reject setting an option that a table with snapshots cannot change.

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


def check_remove_option(old: TableOptions, key: str) -> None:
    """Reject removing an option that a table with snapshots cannot reset, set or not.

    Raises:
        InvalidChangeError: UNSUPPORTED, naming the rule.
    """
    _check_immutable(key)
    guard = _REMOVE_GUARDS.get(key)
    if guard is not None:
        guard(old, key)


def _check_immutable(key: str) -> None:
    if key in IMMUTABLE_OPTIONS:
        raise unsupported_error(
            f"option {key} cannot change while the table has snapshots; create a new table"
        )


def _guard_bucket_change(old: TableOptions, key: str, value: str) -> None:
    before, after = old.number(key, -1), parse_integer_option(key, value)
    if before == -1:
        raise unsupported_error(
            "option bucket is -1 (its default), which cannot become a fixed number"
        )
    if after == -1:
        raise unsupported_error("option bucket cannot become -1 while the table has snapshots")


def _guard_option_reset(_old: TableOptions, key: str) -> None:
    raise unsupported_error(f"option {key} cannot be reset while the table has snapshots")


def _guard_deletion_vectors(old: TableOptions, key: str, value: str) -> None:
    if old.is_true("deletion-vectors.modifiable"):
        return
    if old.is_true(key) != (value.lower() == "true"):
        raise unsupported_error(
            f"option {key} cannot be switched while the table has snapshots; "
            "set deletion-vectors.modifiable=true first if duplicates are impossible"
        )


def _guard_true_to_false(old: TableOptions, key: str, value: str) -> None:
    if old.is_true(key) and value.lower() != "true":
        raise unsupported_error(f"option {key} cannot go from true to false")


def _guard_clustering_override(old: TableOptions, key: str, _value: str) -> None:
    if "pk-clustering-override" in old.values:
        raise unsupported_error(f"option {key} is fixed by pk-clustering-override")


_SET_GUARDS: Mapping[str, Callable[[TableOptions, str, str], None]] = {
    "bucket": _guard_bucket_change,
    "deletion-vectors.enabled": _guard_deletion_vectors,
    "ignore-delete": _guard_true_to_false,
    "ignore-update-before": _guard_true_to_false,
    "clustering.columns": _guard_clustering_override,
}
_REMOVE_GUARDS: Mapping[str, Callable[[TableOptions, str], None]] = {
    "bucket": _guard_option_reset,
    "deletion-vectors.enabled": lambda old, key: _guard_deletion_vectors(old, key, "false"),
    "clustering.columns": lambda old, key: _guard_clustering_override(old, key, ""),
}


def resolve_key_lists(
    options: Mapping[str, str], primary_keys: Sequence[str], partition_keys: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return primary key and partition keys, given as lists or as options.

    Raises:
        InvalidChangeError: RUNTIME: one of them is given as a list and as an option.
    """
    primary, partition = KEY_OPTIONS
    return (
        _key_columns_from(options, primary, primary_keys),
        _key_columns_from(options, partition, partition_keys),
    )


def _key_columns_from(
    options: Mapping[str, str], key: str, listed: Sequence[str]
) -> tuple[str, ...]:
    value = options.get(key)
    if value is None:
        return tuple(listed)
    if listed:
        raise runtime_error(f"{key} is defined twice, as option {value!r} and as {list(listed)}")
    return comma_list(value)


def check_key_columns(
    names: Sequence[str], primary_keys: Sequence[str], partition_keys: Sequence[str]
) -> None:
    """Reject duplicate columns, repeated or unknown keys, and a key of partition keys only.

    Raises:
        InvalidChangeError: ILLEGAL_STATE.
    """
    _check_unique("columns", names)
    for what, keys in (("partition keys", partition_keys), ("primary key", primary_keys)):
        _check_unique(what, keys)
        missing = [each for each in keys if each not in names]
        if missing:
            raise state_error(
                f"{what} {list(keys)}: {missing} are not among the columns {list(names)}"
            )
    if primary_keys and set(primary_keys) <= set(partition_keys):
        raise state_error(
            f"primary key {list(primary_keys)} has only partition keys: "
            "every partition would hold one row; add a column to the key"
        )


def _check_unique(what: str, names: Sequence[str]) -> None:
    if len(set(names)) == len(names):
        return
    repeated = [name for name, times in Counter(names).items() if times > 1]
    raise state_error(f"{what} {list(names)} name {repeated} more than once")


def keys_are_nullable(options: Mapping[str, str]) -> bool:
    """Return whether primary-key columns hold NULL in this table."""
    return TableOptions(options).flag("primary-key.nullable")


def decide_set_option(draft: SchemaDraft, change: SetOption) -> ChangeAnchor:
    """Set an option, unless it has that value in the schema before the batch.

    Raises:
        InvalidChangeError: The key is empty; UNSUPPORTED for `type`, and by the guards of tables
            with snapshots.
    """
    key, value = change.key, change.value
    if not key:
        raise argument_error("the key of an option is empty; give a name")
    named = draft.option_column_ids(split_option_columns(key, value))
    if _is_option_unchanged(draft, key, value):
        # Paimon stores nothing here, even when an earlier change of the batch set something else.
        if draft.working.options.get(key) != value:
            return ChangeAnchor(named=named, lapsed=True)
        draft.record(change)
        return ChangeAnchor(named=named)
    if key == "type" and draft.rules.paimon:
        raise unsupported_error("option type can never change, with or without snapshots")
    if _is_snapshot_guarded(draft, key):
        check_set_option(draft.old_options, key, value)
    draft.record(change)
    return ChangeAnchor(named=named)


def decide_remove_option(draft: SchemaDraft, change: RemoveOption) -> ChangeAnchor:
    """Remove an option; one that is not set is no error.

    Raises:
        InvalidChangeError: UNSUPPORTED for `type`, and by the guards of tables with snapshots.
    """
    if change.key == "type" and draft.rules.paimon:
        raise unsupported_error("option type can never be removed, with or without snapshots")
    if _is_snapshot_guarded(draft, change.key):
        check_remove_option(draft.old_options, change.key)
    anchor = ChangeAnchor(named=draft.option_column_ids(split_option_columns(change.key, None)))
    draft.record(change)
    return anchor


def decide_table_comment(draft: SchemaDraft, change: UpdateComment) -> ChangeAnchor:
    """Set or remove the table's comment."""
    draft.record(change)
    return ChangeAnchor()


def decide_drop_primary_key(draft: SchemaDraft, change: DropPrimaryKey) -> ChangeAnchor:
    """Drop the primary key; its columns stay NOT NULL.

    Raises:
        InvalidChangeError: UNSUPPORTED: the table has snapshots.
    """
    if draft.has_snapshots and draft.rules.paimon:
        raise unsupported_error("the primary key cannot be dropped while the table has snapshots")
    draft.record(change)
    return ChangeAnchor()


def _is_snapshot_guarded(draft: SchemaDraft, key: str) -> bool:
    """Return whether an option may be fixed by snapshots; the two options of keys always may."""
    return draft.has_snapshots and (draft.rules.paimon or key in KEY_OPTIONS)


def _is_option_unchanged(draft: SchemaDraft, key: str, value: str) -> bool:
    if is_rules_option(key):
        # Not in Paimon's rules: options that select the rules take the batch's last value.
        return False
    old = draft.old.options.get(key)
    if old == value:
        return True
    if key == "type":
        return value.lower() == (old or "table").lower()
    if old is None and key == "primary-key":
        return comma_list(value) == draft.old.primary_keys
    if old is None and key == "partition":
        return comma_list(value) == draft.old.partition_keys
    return False


def option_event(key: str, value: str | None) -> SetOption | RemoveOption:
    """Return the event that sets an option to a value, or removes it."""
    return RemoveOption(key) if value is None else SetOption(key, value)
