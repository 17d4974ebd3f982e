"""Decision of a table's schema and layout changes, before format checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from msgspec import Struct

from ledger.decide.column_draft import Anchor
from ledger.decide.commit_policies import Asker, refuse_commit
from ledger.decide.format_rules import Batch, History
from ledger.decide.layout import shape_of
from ledger.decide.operation import LayoutOperation
from ledger.decide.operations import BY_ASKED, operation
from ledger.decide.schema_batch import Decision, decide_schema, resolve_schema
from ledger.events import TableEvent
from ledger.events.layout import (
    PartitionSpecUpdated,
    SortOrderReplaced,
    SpecChange,
    UpdatePartitionSpec,
)
from ledger.events.schema import RemoveOption, SchemaChange, SchemaEvent, SetOption, UpdateKeys
from ledger.model.errors import InvalidChangeError, NotFoundError, TableDroppedError
from ledger.model.iceberg_layout import SortOrder
from ledger.model.schema import Schema
from ledger.state.declared_formats import Rules
from ledger.state.layout import LayoutTrail, Sources, identity_spec
from ledger.state.stream import Landed
from ledger.state.table import TableState

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


RulesOf = Callable[[Mapping[str, str]], Rules]
"""Gives the rules that a table's options mean."""


class Decided(Struct, frozen=True):
    """What changes came to.

    Attributes:
        events: The facts, in order.
        batch: What its formats have to be asked about.
    """

    events: tuple[SchemaEvent | LayoutEvent, ...]
    batch: Batch


class TableWishes:
    """Changes of schema and layout that one transaction wants, decided on whatever it meets.

    Those of the schema are decided first, as one batch. The first decision pins columns by id.

    Args:
        changes: What is asked, in order.
        highest: The highest field id that the writer saw.
    """

    def __init__(self, changes: Iterable[SchemaChange | SpecChange], highest: int) -> None:
        schema: list[Any] = []
        layout: list[Any] = []
        for each in changes:
            is_layout = isinstance(BY_ASKED.get(type(each)), LayoutOperation)
            (layout if is_layout else schema).append(each)
        self.schema: tuple[SchemaChange, ...] = tuple(schema)
        self._layout = LayoutIntent(layout, highest)
        self.anchors: tuple[Anchor, ...] | None = None

    def __bool__(self) -> bool:
        return bool(self.schema or self._layout)

    def decide(self, state: TableState, rules_of: RulesOf, history: History) -> Decided:
        """Decide the changes on a state.

        Args:
            state: The table.
            rules_of: Whose rules apply.
            history: The table's past, for the formats.

        Raises:
            InvalidChangeError: A rule forbids a change.
        """
        return self._decided(decide_schema, state, rules_of, history)

    def resolve(self, state: TableState, rules_of: RulesOf, history: History) -> Decided:
        """Say what the changes mean on a state; whether the whole may be is left to `decide`."""
        return self._decided(resolve_schema, state, rules_of, history)

    def _decided(
        self,
        decide: Callable[..., Decision],
        state: TableState,
        rules_of: RulesOf,
        history: History,
    ) -> Decided:
        schema = state.schema
        schema_events: tuple[SchemaEvent, ...] = ()
        wished = _options_after(schema.options, self.schema)
        rules = rules_of(wished)
        if self.schema:
            decision = decide(
                schema,
                self.schema,
                has_snapshots=state.snapshot is not None,
                anchors=self.anchors,
                rules=rules,
                past=partial(history.columns, state),
            )
            # The first decision's anchors stay: its ids are those that the writer meant.
            self.anchors = self.anchors or decision.anchors
            schema_events = decision.events
            if schema_events:
                schema = decision.schema
        if schema.options != wished:
            # They name columns, and followed their names.
            rules = rules_of(schema.options)
        layout = layout_before(state, schema, schema_events)
        events = (*schema_events, *self._layout.decide(layout, schema, rules))
        return Decided(events, Batch(state, schema, layout, rules, history))


class EventsDecided(Struct, frozen=True):
    """Events that a function decides on whatever state they meet; see `stream.Intent`.

    Attributes:
        decision: Returns the events on a state.
        asker: The caller, for the table's own rules.
    """

    decision: Callable[[TableState], tuple[TableEvent, ...]]
    asker: Asker
    base_version: None = None

    def meet(self, winners: object) -> None:
        """See `Intent`: there is nothing to prepare."""

    def decide(self, state: TableState | None, winners: object) -> tuple[TableEvent, ...] | Landed:
        """Return the events; nothing is committed where there are none.

        Raises:
            NotFoundError: There is no table.
            InvalidChangeError: The table follows a source, or its rules forbid the change.
            TableDroppedError: The table was dropped.
        """
        del winners
        if state is None:
            raise NotFoundError("the table has no version 0; create it first")
        if state.dropped:
            raise TableDroppedError("the table was dropped; open its name again to see its state")
        if state.is_mirrored:
            raise InvalidChangeError(
                "the table follows a source, which others own, and takes no commits of its own: "
                "let the ledger own it (lakeledger promote)",
                kind="MIRRORED",
            )
        events = self.decision(state)
        refuse_commit(state, events, self.asker)
        return events or Landed(state.version)


def _options_after(options: Mapping[str, str], changes: Iterable[SchemaChange]) -> dict[str, str]:
    after = dict(options)
    for each in changes:
        if isinstance(each, SetOption):
            after[each.key] = each.value
        elif isinstance(each, RemoveOption):
            after.pop(each.key, None)
    return after
