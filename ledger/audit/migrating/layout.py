"""From one layout to another: partition specs and sort orders as changes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from ledger.events.spec_changes import (
    AddPartitionField,
    RemovePartitionField,
    RenamePartitionField,
    ReplaceSortOrder,
    SortColumn,
    SpecChange,
    SpecUpdate,
    UpdatePartitionSpec,
)
from ledger.evolution.state import TableState
from ledger.model.iceberg.layout import PartitionField, PartitionSpec, SortOrder
from ledger.model.types.walk import type_places

Path = tuple[str, ...]


def layout_changes(
    before: TableState, target: TableState, new_ids: Mapping[int, int]
) -> Iterator[SpecChange]:
    """Yield the changes of specs and orders.

    Where the later specs go on from the earlier ones, every one of them is made, so that each has
    its id.

    Args:
        before: The earlier state.
        target: The later one, its schema in the earlier one's ids.
        new_ids: What stands for ids of the later state's layout.
    """
    paths = {
        each.field.id: each.path
        for each in type_places(target.schema.fields)
        if each.field is not None
    }
    sources = {old: paths[new] for old, new in new_ids.items() if new in paths}
    sources |= {key: path for key, path in paths.items() if key not in sources}
    yield from _specs(before, target, sources, new_ids)
    orders = [_in_ids(each, new_ids) for each in target.sort_orders]
    yield from _orders(before, orders, _in_ids(target.sort_order, new_ids), paths)


def _specs(
    before: TableState, target: TableState, sources: Mapping[int, Path], new_ids: Mapping[int, int]
) -> Iterator[SpecChange]:
    current = before.spec
    goes_on = target.specs[: len(before.specs)] == before.specs
    later = target.specs[len(before.specs) :] if goes_on else ()
    for spec in later:
        yield UpdatePartitionSpec(tuple(_updates(current, spec, sources, new_ids)))
        current = spec
    if not goes_on:
        kept = _beginning(current, target.spec, new_ids)
        yield from _update(current, kept, sources, new_ids)
        current = kept
    yield from _update(current, target.spec, sources, new_ids)


def _beginning(
    before: PartitionSpec, after: PartitionSpec, new_ids: Mapping[int, int]
) -> PartitionSpec:
    """Return a spec without what would stand in front of new fields, but should come behind."""
    wanted = [_key(each, new_ids) for each in after.fields]
    kept = [each for each in before.fields if _key(each, {}) in wanted]
    if [_key(each, {}) for each in kept] != wanted[: len(kept)]:
        kept = [
            each for each, key in zip(before.fields, wanted, strict=False) if _key(each, {}) == key
        ]
    return PartitionSpec(before.spec_id, tuple(kept))


def _update(
    before: PartitionSpec,
    after: PartitionSpec,
    sources: Mapping[int, Path],
    new_ids: Mapping[int, int],
) -> Iterator[SpecChange]:
    updates = tuple(_updates(before, after, sources, new_ids))
    if updates:
        yield UpdatePartitionSpec(updates)


def _key(field: PartitionField, new_ids: Mapping[int, int]) -> tuple[int, str]:
    return new_ids.get(field.source_id, field.source_id), field.transform


def _updates(
    before: PartitionSpec,
    after: PartitionSpec,
    sources: Mapping[int, Path],
    new_ids: Mapping[int, int],
) -> Iterator[SpecUpdate]:
    old = {_key(each, {}): each for each in before.fields}
    new = {_key(each, new_ids): each for each in after.fields}
    voids = {each.field_id for each in after.fields if each.transform == "void"}
    for found, each in old.items():
        if found not in new and each.transform != "void":
            yield RemovePartitionField(name=each.name)
    for found, each in new.items():
        there = old.get(found)
        if there is not None:
            if there.name != each.name:
                yield RenamePartitionField(there.name, each.name)
        elif each.field_id not in voids and each.source_id in sources:
            yield AddPartitionField(sources[each.source_id], each.transform, each.name)


def _in_ids(order: SortOrder, new_ids: Mapping[int, int]) -> SortOrder:
    """Return a later order in the ids of the earlier state."""
    fields = (
        replace(each, source_id=new_ids.get(each.source_id, each.source_id))
        for each in order.fields
    )
    return replace(order, fields=tuple(fields))


def _orders(
    before: TableState, wanted: Sequence[SortOrder], last: SortOrder, paths: Mapping[int, Path]
) -> Iterator[SpecChange]:
    known = before.sort_orders
    later = wanted[len(known) :] if tuple(wanted[: len(known)]) == known else ()
    current = before.sort_order
    for each in (*later, last):
        if each.fields != current.fields:
            yield ReplaceSortOrder(_columns(each, paths))
        current = each


def _columns(order: SortOrder, paths: Mapping[int, Path]) -> tuple[SortColumn, ...]:
    return tuple(
        SortColumn(paths[each.source_id], each.transform, each.direction, each.null_order)
        for each in order.fields
        if each.source_id in paths
    )
