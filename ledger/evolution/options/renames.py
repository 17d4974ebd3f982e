"""What renames in a batch do to the primary key and to the options that name columns.

Source: Paimon's SchemaManager. It maps old names to new ones once, after the batch,
which goes wrong when a name is renamed twice or freed and taken again. Such a batch is refused:
with Paimon's own error where it has one, and where it would silently point an option or the key at
another column, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from ledger.events.schema_changes import RenameColumn
from ledger.evolution.options.naming import ColumnNames, column_option, option_text
from ledger.evolution.refusals import state


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
    return dict(_renamed(key, value, names) for key, value in options.items())


def _renamed(key: str, value: str, names: Mapping[str, str]) -> tuple[str, str]:
    row = column_option(key)
    if row is None or not row.carried:
        return key, value
    found = row.pattern.fullmatch(key)
    inside = found["columns"] if found is not None and found.groups() else ""
    if row.value is not None:
        return _with_columns(key, inside, _mapped(inside, names)), _mapped(value, names)
    renamed = inside
    for old, new in names.items():
        # One after the other, as Paimon takes these keys.
        renamed = new if renamed == old else renamed
    return _with_columns(key, inside, renamed), value


def _with_columns(key: str, inside: str, renamed: str) -> str:
    prefix = "fields."
    return prefix + renamed + key.removeprefix(prefix + inside) if inside else key


def strayed_options(
    options: Mapping[str, str],
    renames: Sequence[RenameColumn],
    meant: Callable[[str], Sequence[int | None]],
    names: ColumnNames,
) -> Iterator[str]:
    """Yield the options that would name other columns than they mean, after Paimon's renames.

    Args:
        options: As the changes of the batch left them.
        renames: Those of the batch.
        meant: Gives the field ids that an option means.
        names: The columns as the batch leaves them.
    """
    mapped = {each.field_names[0]: each.new_name for each in renames}
    for key, value in options.items():
        row = column_option(key)
        if row is None or row.named:
            continue
        after = option_text(*_renamed(key, value, mapped))
        said = after.mentions if after is not None else ()
        ids = meant(key)
        # A new name may have a comma, or be none at all.
        if len(said) != len(ids) or any(
            (wanted := names.said(each, found)) is not None and wanted != each.text
            for each, found in zip(said, ids, strict=True)
        ):
            yield key


def renamed_keys(keys: Sequence[str], renames: Sequence[RenameColumn]) -> tuple[str, ...]:
    """Return the primary key as Paimon rewrites it: each name mapped once."""
    names = {each.field_names[0]: each.new_name for each in renames if len(each.field_names) == 1}
    return tuple(names.get(each, each) for each in keys)


def _mapped(listed: str, names: Mapping[str, str]) -> str:
    return ",".join(names.get(each, each) for each in listed.split(","))
