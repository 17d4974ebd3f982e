"""What renames in a batch do to the primary key and to the options that name columns.

Source: Paimon's SchemaManager. It maps old names to new ones once, after the batch,
which goes wrong when a name is renamed twice or freed and taken again. Such a batch is refused:
with Paimon's own error where it has one, and where it would silently point an option or the key at
another column, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ledger.events.schema_changes import RenameColumn
from ledger.evolution.directives import MAP_LAYOUT_SUFFIXES
from ledger.evolution.refusals import state

_VALUE_OPTIONS = ("bucket-key", "sequence.field")
_KEY_SUFFIXES = (
    "aggregate-function",
    "ignore-retract",
    "distinct",
    "list-agg-delimiter",
    *MAP_LAYOUT_SUFFIXES,
)
_KEY_AND_VALUE = re.compile(r"fields\.(?P<names>.+)\.(?P<suffix>sequence-group|nested-key)")


def renamed_options(options: Mapping[str, str], renames: Sequence[RenameColumn]) -> dict[str, str]:
    """Return the options as Paimon rewrites them after a batch with these renames.

    Raises:
        InvalidChangeError: ILLEGAL_STATE: two of them begin at the same column.

    Example:
        >>> renamed_options({"sequence.field": "v"}, [RenameColumn(("v",), "w")])
        {'sequence.field': 'w'}
    """
    names: dict[str, str] = {}
    for rename in renames:
        if rename.field_names[0] in names:
            raise state(
                f"two renames of one batch begin at {rename.field_names[0]}; use two transactions"
            )
        names[rename.field_names[0]] = rename.new_name
    return _rewritten(options, names)


def followed_options(options: Mapping[str, str], renames: Sequence[RenameColumn]) -> dict[str, str]:
    """Return the options with every name following its column, one rename after the other."""
    current = dict(options)
    for rename in renames:
        if len(rename.field_names) == 1:
            current = _rewritten(current, {rename.field_names[0]: rename.new_name})
    return current


def renamed_keys(keys: Sequence[str], renames: Sequence[RenameColumn]) -> tuple[str, ...]:
    """Return the primary key as Paimon rewrites it: each name mapped once."""
    names = {each.field_names[0]: each.new_name for each in renames if len(each.field_names) == 1}
    return tuple(names.get(each, each) for each in keys)


def _rewritten(options: Mapping[str, str], names: Mapping[str, str]) -> dict[str, str]:
    renewed = dict(options)
    for key in _VALUE_OPTIONS:
        if renewed.get(key, "").strip():
            renewed[key] = _mapped(renewed[key], names)
    for old, new in names.items():
        for suffix in _KEY_SUFFIXES:
            value = renewed.pop(f"fields.{old}.{suffix}", None)
            if value is not None:
                renewed[f"fields.{new}.{suffix}"] = value
    moved: dict[str, str] = {}
    for key in list(renewed):
        found = _KEY_AND_VALUE.fullmatch(key)
        if found is not None:
            new_key = f"fields.{_mapped(found['names'], names)}.{found['suffix']}"
            moved[new_key] = _mapped(renewed.pop(key), names)
    return renewed | moved


def _mapped(listed: str, names: Mapping[str, str]) -> str:
    return ",".join(names.get(each, each) for each in listed.split(","))
