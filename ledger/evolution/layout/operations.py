"""The rows of what can be asked of partition specs and sort orders."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ledger.events.spec_changes import ReplaceSortOrder, UpdatePartitionSpec
from ledger.events.spec_events import PartitionSpecUpdated, SortOrderReplaced
from ledger.evolution.layout.deciding import decide_order, decide_spec
from ledger.evolution.operation import Cell, Cells, LayoutOperation
from ledger.model.path_text import shown_path


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
    order = f" order {fact.order_id}" if isinstance(fact, SortOrderReplaced) else ""
    return f"files are sorted by{order}: {fields or 'unsorted'}"


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
