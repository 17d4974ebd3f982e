"""What Paimon cannot say of a table, beside the rules of its own schemas (`validation`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ledger.evolution.declared.format import Refusal
from ledger.evolution.options.deciding import IMMUTABLE_OPTIONS
from ledger.model.iceberg.layout import PartitionSpec
from ledger.model.schema import Schema
from ledger.model.types import DataField
from ledger.model.types.text import format_type
from ledger.model.types.walk import type_places

_LACKING = frozenset({"UUID", "UNKNOWN"})


def column_problems(columns: Iterable[DataField]) -> Iterator[Refusal]:
    """Yield what Paimon cannot say of some columns, at every depth."""
    for place in type_places(columns):
        what = f"column {place.name}"
        if place.type.root in _LACKING:
            instead = "take BINARY(16)" if place.type.root == "UUID" else "name its type"
            yield Refusal(what, f"Paimon has no {place.type.root}", instead)
        if place.field is not None and place.field.initial_default is not None:
            yield Refusal(
                what,
                "a column that older files lack reads as NULL, never as a default",
                "add it without one and set the default afterwards, which new rows get",
            )


def spec_problems(schema: Schema, specs: Iterable[PartitionSpec]) -> Iterator[Refusal]:
    """Yield the partition keys in which a file of some specs would not be single-valued."""
    for spec in specs:
        kept = {each.source_id for each in spec.fields if each.transform == "identity"}
        for name in schema.partition_keys:
            if schema.field(name).id not in kept:
                yield Refusal(
                    f"partition spec {spec.spec_id}",
                    f"it lacks identity({name}), and a file of a partition key has one value in it",
                    f"keep the field of {name}; other fields may come and go",
                )


def step_problems(before: Schema, after: Schema) -> Iterator[Refusal]:
    """Yield what became of a table, while Paimon was not asked, that its files do not survive.

    Args:
        before: A schema of files that can be read.
        after: The schema now.
    """
    yield from _key_problems(before, after)
    old_ids = {place.field.id for place in type_places(before.fields) if place.field}
    for column in after.fields:
        if not column.type.nullable and column.id not in old_ids:
            yield Refusal(
                f"column {column.name}",
                "it is NOT NULL, and older files have no value for it",
                "make it nullable first",
            )
    yield from _option_problems(before, after)


def _key_problems(before: Schema, after: Schema) -> Iterator[Refusal]:
    for what in ("partition", "primary"):
        old, new = _keys(before, what), _keys(after, what)
        if [each.id for each in old] != [each.id for each in new]:
            yield Refusal(
                f"the {what} key",
                f"files of schema {before.id} are laid out by another one, "
                f"{[each.name for each in old]}",
                "create a new table",
            )
            continue
        for earlier, later in zip(old, new, strict=True):
            if earlier.type != later.type:
                yield Refusal(
                    f"column {later.name}",
                    f"key columns keep their types, and it was {format_type(earlier.type)} in "
                    f"schema {before.id}, which has files",
                    "create a new table",
                )


def _keys(schema: Schema, what: str) -> list[DataField]:
    names = schema.partition_keys if what == "partition" else schema.primary_keys
    return [schema.field(name) for name in names]


def _option_problems(before: Schema, after: Schema) -> Iterator[Refusal]:
    old, new = before.options, after.options
    for key in sorted(IMMUTABLE_OPTIONS & {*old, *new}):
        if old.get(key) != new.get(key):
            yield Refusal(
                f"option {key}",
                f"it is fixed once there are snapshots, and was {old.get(key)!r} in schema "
                f"{before.id}, which has files",
                f"set it back to {old[key]!r}" if key in old else "remove it",
            )
