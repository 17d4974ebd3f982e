"""What can be asked of partition specs and sort orders: how it is decided, and its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, assert_never

from ledger.events.spec_changes import (
    AddPartitionField,
    RemovePartitionField,
    RenamePartitionField,
    ReplaceSortOrder,
    SortColumn,
    SpecUpdate,
    UpdatePartitionSpec,
)
from ledger.events.spec_events import PartitionSpecUpdated, SortOrderReplaced
from ledger.evolution.declared.rules import Rules
from ledger.evolution.layout.fold import LayoutTrail
from ledger.evolution.layout.sources import Sources
from ledger.evolution.layout.spec_draft import SpecDraft, writable_transform
from ledger.evolution.operation import Cell, Cells, LayoutOperation
from ledger.model.errors import InvalidChangeError
from ledger.model.iceberg.layout import PartitionField, PartitionSpec, SortField, SortOrder
from ledger.model.path_text import shown_path
from ledger.model.schema import Schema
from ledger.model.transforms import transform_of

LayoutEvent = PartitionSpecUpdated | SortOrderReplaced
_Shape = tuple[tuple[int, str, str], ...]


def decide_spec(
    layout: LayoutTrail,
    change: UpdatePartitionSpec,
    schema: Schema,
    sources: Sources,
    rules: Rules,
) -> PartitionSpecUpdated | None:
    """Return the spec that updates make of the default one; None when it is there already.

    Args:
        layout: The specs and orders at this point of the transaction.
        change: What is asked.
        schema: The schema at this point of the transaction.
        sources: Finds columns.
        rules: Whose rules apply.

    Raises:
        InvalidChangeError: A rule forbids it.
    """
    draft = SpecDraft(layout, format_version=rules.format_version)
    for update in change.updates:
        _update(draft, update, schema, sources)
    fields = draft.fields(schema)
    wanted = shape_of(fields)
    # A table has as many specs as it ever had layouts.
    alike = (each for each in layout.specs if len(each.fields) == len(fields))
    there = next((each for each in alike if shape_of(each.fields) == wanted), None)
    if there is not None and (not change.set_default or there.spec_id == layout.default_spec_id):
        return None
    next_id = max(each.spec_id for each in layout.specs) + 1
    spec = there or PartitionSpec(next_id, fields)
    return PartitionSpecUpdated(
        updates=change.updates,
        set_default=change.set_default,
        spec_id=spec.spec_id,
        fields=spec.fields,
    )


def shape_of(fields: Sequence[PartitionField]) -> _Shape:
    """Return what makes two specs the same to Iceberg: not the field ids."""
    return tuple((each.source_id, each.name, each.transform) for each in fields)


def _update(draft: SpecDraft, update: SpecUpdate, schema: Schema, sources: Sources) -> None:
    match update:
        case AddPartitionField():
            source = sources.find(schema, update.source)
            draft.add(source, writable_transform(update.transform, source), update.name)
        case RemovePartitionField(name=str(name), source=None, transform=None):
            draft.remove(name)
        case RemovePartitionField(name=None, source=tuple(path), transform=transform):
            found = sources.find(schema, path)
            draft.remove_transform(found, transform_of(transform or "identity"))
        case RemovePartitionField():
            raise InvalidChangeError(
                "a partition field is removed by its name or by its source and transform; "
                "give one of the two"
            )
        case RenamePartitionField():
            draft.rename(update.name, update.new_name)
        case _:
            assert_never(update)


def decide_order(
    layout: LayoutTrail,
    change: ReplaceSortOrder,
    schema: Schema,
    sources: Sources,
    _rules: Rules,
) -> SortOrderReplaced | None:
    """Return the order that files are sorted by from now on; None when it is the default already.

    The arguments are those of `decide_spec`.

    Raises:
        InvalidChangeError: A source is missing, or a transform does not accept it.
    """
    fields = tuple(_sort_field(each, schema, sources) for each in change.columns)
    there = next((each for each in layout.sort_orders if each.fields == fields), None)
    if there is not None and there.order_id == layout.default_order_id:
        return None
    # Id 0 is the unsorted order's for ever.
    next_id = max(each.order_id for each in layout.sort_orders) + 1 if fields else 0
    order = there or SortOrder(next_id, fields)
    return SortOrderReplaced(columns=change.columns, order_id=order.order_id, fields=order.fields)


def _sort_field(column: SortColumn, schema: Schema, sources: Sources) -> SortField:
    source = sources.find(schema, column.source)
    transform = writable_transform(column.transform, source)
    nulls = column.null_order or ("nulls-first" if column.direction == "asc" else "nulls-last")
    return SortField(
        transform=transform.text, source_id=source.id, direction=column.direction, null_order=nulls
    )


def _spec(fact: PartitionSpecUpdated) -> Iterator[tuple[Cell, Any]]:
    layout = tuple((each.source_id, each.transform, each.name) for each in fact.fields)
    yield ("partitionSpec",), (fact.set_default, *layout)


def _order(fact: SortOrderReplaced) -> Iterator[tuple[Cell, Any]]:
    order = (
        (each.source_id, each.transform, each.direction, each.null_order) for each in fact.fields
    )
    yield ("sortOrder",), tuple(order)


def _with_sources(sets: Cells) -> Cells:
    """Return the claims of a layout: what it sets, and that its columns are there."""

    def claims(fact: Any) -> Iterator[tuple[Cell, Any]]:
        yield from sets(fact)
        for each in fact.fields:
            yield ("column", each.source_id, "exists"), True

    return claims


def _says_spec(fact: UpdatePartitionSpec) -> str:
    if not isinstance(fact, PartitionSpecUpdated):
        # What a plan wants has no spec yet.
        return f"change the partition spec: {len(fact.updates)} of its fields"
    fields = ", ".join(f"{each.name}={each.transform}" for each in fact.fields)
    said = "files are partitioned by" if fact.set_default else "added"
    return f"{said} partition spec {fact.spec_id}: {fields or 'unpartitioned'}"


def _says_order(fact: ReplaceSortOrder) -> str:
    fields = ", ".join(
        f"{shown_path(each.source)} {each.direction}"
        if each.transform == "identity"
        else f"{each.transform} of {shown_path(each.source)} {each.direction}"
        for each in fact.columns
    )
    if not isinstance(fact, SortOrderReplaced):
        return f"files are sorted by: {fields or 'unsorted'}"
    said = "files are sorted by" if fact.set_default else "added sort"
    return f"{said} order {fact.order_id}: {fields or 'unsorted'}"


LAYOUT_OPERATIONS: tuple[LayoutOperation, ...] = (
    LayoutOperation(
        asked=UpdatePartitionSpec,
        facts=(PartitionSpecUpdated,),
        decide=decide_spec,
        sets=_spec,
        claims=_with_sources(_spec),
        says=_says_spec,
    ),
    LayoutOperation(
        asked=ReplaceSortOrder,
        facts=(SortOrderReplaced,),
        decide=decide_order,
        sets=_order,
        claims=_with_sources(_order),
        says=_says_order,
    ),
)
