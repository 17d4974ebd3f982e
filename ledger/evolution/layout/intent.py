"""LayoutIntent: the changes of layout that one transaction wants, decided on whatever it meets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ledger.events.schema_events import SchemaEvent, UpdateKeys
from ledger.events.spec_changes import SpecChange, UpdatePartitionSpec
from ledger.events.spec_events import PartitionSpecUpdated, SortOrderReplaced
from ledger.evolution.declared.rules import Rules
from ledger.evolution.layout.fold import LayoutTrail, identity_spec
from ledger.evolution.layout.operations import shape_of
from ledger.evolution.layout.sources import Sources
from ledger.evolution.operation import LayoutOperation
from ledger.evolution.operations import operation
from ledger.evolution.state import TableState
from ledger.model.errors import InvalidChangeError
from ledger.model.iceberg.layout import SortOrder
from ledger.model.schema import Schema

LayoutEvent = PartitionSpecUpdated | SortOrderReplaced


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
            decide = operation(change, LayoutOperation).decide
            event = decide(layout, change, schema, self._sources, rules)
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
        return any(shape_of(each.fields) == shape for each in there)


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
    if there != [first] or state.sort_orders != (SortOrder(0),):
        raise InvalidChangeError(
            "the table's partition spec or sort order was changed, so its keys cannot be set by "
            "options any more; update the partition spec or the identifier fields instead"
        )
    return LayoutTrail((identity_spec(schema),))
