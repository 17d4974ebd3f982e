"""Deciding changes of options, of the table's comment and of the primary key as a whole."""

from __future__ import annotations

from ledger.events.schema_changes import (
    DropPrimaryKey,
    RemoveOption,
    SetOption,
    UpdateComment,
)
from ledger.evolution.columns.anchor import Anchor
from ledger.evolution.columns.draft import Draft
from ledger.evolution.declared.rules import declares_rules
from ledger.evolution.options import guards as option_guards
from ledger.evolution.options.naming import KEY_OPTIONS, option_text
from ledger.evolution.options.reading import comma_list
from ledger.evolution.refusals import unsupported


def decide_set_option(draft: Draft, change: SetOption) -> Anchor:
    """Set an option, unless the schema before the batch says the same already.

    Raises:
        InvalidChangeError: UNSUPPORTED for `type`, and by the guards of tables with snapshots.
    """
    key, value = change.key, change.value
    named = draft.columns_named(option_text(key, value))
    if _is_unchanged(draft, key, value):
        # Paimon stores nothing here, even when an earlier change of the batch set something else.
        if draft.working.options.get(key) != value:
            return Anchor(named=named, lapsed=True)
        draft.record(change)
        return Anchor(named=named)
    if key == "type" and draft.rules.paimon:
        raise unsupported("option type can never change, with or without snapshots")
    if _is_guarded(draft, key):
        option_guards.check_set(draft.old_options, key, value)
    draft.record(change)
    return Anchor(named=named)


def decide_remove_option(draft: Draft, change: RemoveOption) -> Anchor:
    """Remove an option; one that is not set is removed in silence.

    Raises:
        InvalidChangeError: UNSUPPORTED for `type`, and by the guards of tables with snapshots.
    """
    if change.key == "type" and draft.rules.paimon:
        raise unsupported("option type can never be removed, with or without snapshots")
    if _is_guarded(draft, change.key):
        option_guards.check_remove(draft.old_options, change.key)
    anchor = Anchor(named=draft.columns_named(option_text(change.key, None)))
    draft.record(change)
    return anchor


def decide_table_comment(draft: Draft, change: UpdateComment) -> Anchor:
    """Set or remove the table's comment."""
    draft.record(change)
    return Anchor()


def decide_drop_primary_key(draft: Draft, change: DropPrimaryKey) -> Anchor:
    """Drop the primary key; its columns stay NOT NULL.

    Raises:
        InvalidChangeError: UNSUPPORTED: the table has snapshots.
    """
    if draft.has_snapshots and draft.rules.paimon:
        raise unsupported("the primary key cannot be dropped while the table has snapshots")
    draft.record(change)
    return Anchor()


def _is_guarded(draft: Draft, key: str) -> bool:
    """Return whether an option may be one that snapshots fix; the keys' two are in any table."""
    return draft.has_snapshots and (draft.rules.paimon or key in KEY_OPTIONS)


def _is_unchanged(draft: Draft, key: str, value: str) -> bool:
    if declares_rules(key):
        # Paimon knows none of them: whose rules hold is what the batch said last.
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
    """Return the fact that an option has this value, or none."""
    return RemoveOption(key) if value is None else SetOption(key, value)
