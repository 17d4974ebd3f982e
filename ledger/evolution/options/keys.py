"""The rules that hold between columns, primary key and partition keys.

Source: Paimon's TableSchema and Schema.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from ledger.evolution.options.naming import KEY_OPTIONS
from ledger.evolution.options.reading import TableOptions, comma_list
from ledger.evolution.refusals import runtime, state


def key_lists(
    options: Mapping[str, str], primary_keys: Sequence[str], partition_keys: Sequence[str]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return primary key and partition keys, wherever they were given.

    Raises:
        InvalidChangeError: RUNTIME: one of them is given as a list and as an option.
    """
    primary, partition = KEY_OPTIONS
    return (
        _one_of(options, primary, primary_keys),
        _one_of(options, partition, partition_keys),
    )


def _one_of(options: Mapping[str, str], key: str, listed: Sequence[str]) -> tuple[str, ...]:
    value = options.get(key)
    if value is None:
        return tuple(listed)
    if listed:
        raise runtime(f"{key} is defined twice, as option {value!r} and as {list(listed)}")
    return comma_list(value)


def check_keys(
    names: Sequence[str], primary_keys: Sequence[str], partition_keys: Sequence[str]
) -> None:
    """Refuse duplicate columns, repeated or unknown keys, and a key of partition keys alone.

    Raises:
        InvalidChangeError: ILLEGAL_STATE.
    """
    _check_unique("columns", names)
    for what, keys in (("partition keys", partition_keys), ("primary key", primary_keys)):
        _check_unique(what, keys)
        missing = [each for each in keys if each not in names]
        if missing:
            raise state(f"{what} {list(keys)}: {missing} are not among the columns {list(names)}")
    if primary_keys and set(primary_keys) <= set(partition_keys):
        raise state(
            f"primary key {list(primary_keys)} has partition keys alone: "
            "every partition would hold one row; add a column to the key"
        )


def _check_unique(what: str, names: Sequence[str]) -> None:
    if len(set(names)) == len(names):
        return
    repeated = [name for name, times in Counter(names).items() if times > 1]
    raise state(f"{what} {list(names)} name {repeated} more than once")


def keys_are_nullable(options: Mapping[str, str]) -> bool:
    """Return whether primary-key columns hold NULL in this table."""
    return TableOptions(options).flag("primary-key.nullable")
