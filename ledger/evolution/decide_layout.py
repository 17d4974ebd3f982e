"""From what is asked of partition specs and sort orders to the facts, every id resolved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import assert_never

from ledger.events.schema_events import SchemaEvent, UpdateKeys
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
from ledger.events.spec_events import PartitionSpecUpdated, SortOrderReplaced
from ledger.evolution.layout_fold import LayoutTrail
from ledger.evolution.rules import Rules
from ledger.evolution.sources import Sources
from ledger.evolution.spec_draft import SpecDraft, writable_transform
from ledger.evolution.specs import identity_spec, order_records, spec_records
from ledger.evolution.state import TableState
from ledger.model.errors import InvalidChangeError
from ledger.model.partition import PartitionField, PartitionSpec, SortField, SortOrder
from ledger.model.schema import Schema
from ledger.model.transform import transform_of

LayoutEvent = PartitionSpecUpdated | SortOrderReplaced
_Shape = tuple[tuple[int, str, str], ...]


class LayoutIntent:
    """What a writer wants of a table's layout, decided on whatever it meets.

    Args:
        changes: What is asked, in order.
        highest: The highest field id that the writer saw; see `Sources`.
    """

    def __init__(self, changes: Sequence[SpecChange], highest: int) -> None:
        self._changes = tuple(changes)
        self._sources = Sources(highest)
        self._first: tuple[LayoutEvent, ...] | None = None

    def __bool__(self) -> bool:
        """Whether anything is asked."""
        return bool(self._changes)

    def decide(self, layout: LayoutTrail, schema: Schema, rules: Rules) -> Iterator[LayoutEvent]:
        """Yield the facts that the changes become, and fold them into `layout`.

        Raises:
            InvalidChangeError: A rule forbids a change.
        """
        is_done = self._has_spec(layout)
        decided: list[LayoutEvent] = []
        for change in self._changes:
            if is_done and isinstance(change, UpdatePartitionSpec):
                continue
            event = decide_layout(layout, change, schema=schema, sources=self._sources, rules=rules)
            if event is not None:
                layout.apply(event)
                decided.append(event)
                yield event
        # The first decision's stay: they are what the writer meant.
        self._first = self._first or tuple(decided)

    def _has_spec(self, layout: LayoutTrail) -> bool:
        """Whether somebody else made the very spec that was asked for, since the first decision."""
        specs = [each for each in self._first or () if isinstance(each, PartitionSpecUpdated)]
        if not specs:
            return False
        wanted = specs[-1]
        there = [layout.spec] if wanted.set_default else layout.specs
        shape = tuple((each.source_id, each.name, each.transform) for each in wanted.fields)
        return any(_shape(each.fields) == shape for each in there)


def layout_before(state: TableState, schema: Schema, events: Sequence[SchemaEvent]) -> LayoutTrail:
    """Return the layout that a transaction's layout changes begin with.

    Args:
        state: The table before the transaction.
        schema: Its schema after the transaction's schema events.
        events: Those.

    Raises:
        InvalidChangeError: The keys change, and the specs or orders were evolved already.
    """
    if not any(isinstance(each, UpdateKeys) for each in events):
        return LayoutTrail.of(state)
    # Names may have followed their columns since.
    first = [(each.source_id, each.transform) for each in identity_spec(state.schema).fields]
    there = [[(each.source_id, each.transform) for each in spec.fields] for spec in state.specs]
    if there != [first] or state.sort_orders != (SortOrder(),):
        raise InvalidChangeError(
            "the table's partition spec or sort order was changed, so its keys cannot be set by "
            "options any more; update the partition spec or the identifier fields instead"
        )
    return LayoutTrail((identity_spec(schema),))


def decide_layout(
    layout: LayoutTrail, change: SpecChange, *, schema: Schema, sources: Sources, rules: Rules
) -> LayoutEvent | None:
    """Return the fact that a change of layout becomes; None when everything is so already.

    Args:
        layout: The specs and orders at this point of the transaction.
        change: What is asked.
        schema: The schema at this point of the transaction.
        sources: Finds columns.
        rules: Whose rules apply.

    Raises:
        InvalidChangeError: A rule forbids it.
    """
    match change:
        case UpdatePartitionSpec():
            return _decide_spec(layout, change, schema=schema, sources=sources, rules=rules)
        case ReplaceSortOrder():
            return _decide_order(layout, change, schema=schema, sources=sources)
        case _:
            assert_never(change)


def _decide_spec(
    layout: LayoutTrail,
    change: UpdatePartitionSpec,
    *,
    schema: Schema,
    sources: Sources,
    rules: Rules,
) -> PartitionSpecUpdated | None:
    draft = SpecDraft(layout, format_version=rules.format_version)
    for update in change.updates:
        _update(draft, update, schema, sources)
    fields = draft.fields(schema)
    there = next((each for each in layout.specs if _shape(each.fields) == _shape(fields)), None)
    if there is not None and (not change.set_default or there.spec_id == layout.default_spec_id):
        return None
    next_id = max(each.spec_id for each in layout.specs) + 1
    spec = there or PartitionSpec(next_id, fields)
    return PartitionSpecUpdated(
        updates=change.updates,
        set_default=change.set_default,
        spec_id=spec.spec_id,
        fields=spec_records(spec),
    )


def _shape(fields: Sequence[PartitionField]) -> _Shape:
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


def _decide_order(
    layout: LayoutTrail, change: ReplaceSortOrder, *, schema: Schema, sources: Sources
) -> SortOrderReplaced | None:
    fields = tuple(_sort_field(each, schema, sources) for each in change.columns)
    there = next((each for each in layout.sort_orders if each.fields == fields), None)
    if there is not None and there.order_id == layout.default_order_id:
        return None
    # Id 0 is the unsorted order's for ever.
    next_id = max(each.order_id for each in layout.sort_orders) + 1 if fields else 0
    order = there or SortOrder(next_id, fields)
    return SortOrderReplaced(
        columns=change.columns, order_id=order.order_id, fields=order_records(order)
    )


def _sort_field(column: SortColumn, schema: Schema, sources: Sources) -> SortField:
    source = sources.find(schema, column.source)
    transform = writable_transform(column.transform, source)
    nulls = column.null_order or ("nulls-first" if column.direction == "asc" else "nulls-last")
    return SortField(source.id, transform.text, column.direction, nulls)
