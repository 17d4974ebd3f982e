"""What Paimon cannot say of a table, beside the rules of its own schemas (`validation`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ledger.evolution.legality_rule import broken
from ledger.evolution.type_places import type_places
from ledger.model.errors import FormatError
from ledger.model.partition import PartitionSpec
from ledger.model.schema import Schema
from ledger.model.types import DataField

_LACKING = frozenset({"UUID", "UNKNOWN"})


def column_problems(columns: Iterable[DataField]) -> Iterator[FormatError]:
    """Yield what Paimon cannot say of some columns, at every depth."""
    for place in type_places(columns):
        what = f"column {place.name}"
        if place.type.root in _LACKING:
            instead = "take BINARY(16)" if place.type.root == "UUID" else "name its type"
            yield broken("paimon", what, f"Paimon has no {place.type.root}", instead)
        if place.field is not None and place.field.initial_default is not None:
            yield broken(
                "paimon",
                what,
                "a column that older files lack reads as NULL, never as a default",
                "add it without one and set the default afterwards, which new rows get",
            )


def spec_problems(schema: Schema, specs: Iterable[PartitionSpec]) -> Iterator[FormatError]:
    """Yield the partition keys in which a file of some specs would not be single-valued."""
    for spec in specs:
        kept = {each.source_id for each in spec.fields if each.transform == "identity"}
        for name in schema.partition_keys:
            if schema.field(name).id not in kept:
                yield broken(
                    "paimon",
                    f"partition spec {spec.spec_id}",
                    f"it lacks identity({name}), and a file of a partition key has one value in it",
                    f"keep the field of {name}; other fields may come and go",
                )
