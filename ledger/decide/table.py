"""TableIntent: a writer's request on a table, decided again on every newer state.

The first decision resolves every column path to field ids. When other writers win, the intent
checks for a cell or file that both changed, and is decided again with its paths following the ids.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal

from attrs import evolve
from msgspec import Struct
from msgspec.structs import replace

from ledger.decide.changes import (
    AllowIncompatibleChanges,
    CommitSnapshot,
    CreateTag,
    DropTable,
    OtherChange,
    ReplaceTag,
    SnapshotChange,
    TableChange,
)
from ledger.decide.column_draft import ChangeAnchor
from ledger.decide.commit_policies import CommitContext, refuse_commit
from ledger.decide.conflicts import (
    FileConditions,
    NeededCells,
    RecentlyTouched,
    cell_conflict_error,
    find_option_contradiction,
    rule_conflict_error,
)
from ledger.decide.format_rules import (
    Batch,
    Formats,
    History,
    raised_rule_numbers,
    refuse_inexpressible,
    refuse_unknown,
    refuse_unresolvable_names,
)
from ledger.decide.layout import spec_comparison_key
from ledger.decide.name_mapping import (
    NAME_MAPPING,
    follow_schema_change,
    learn_names,
    named_parts,
)
from ledger.decide.operation import DecisionContext, LayoutOperation, StateOperation
from ledger.decide.operations import BY_ASKED, operation
from ledger.decide.schema_batch import decide_schema, resolve_schema
from ledger.decide.snapshots import is_read_by_name
from ledger.decide.table_options import PERSONAL_OPTION, refuse_invalid_marks
from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.events.schema import (
    PartitionSpecUpdated,
    RemoveOption,
    SchemaChange,
    SchemaEvent,
    SetOption,
    SortOrderReplaced,
    SpecChange,
    UpdateKeys,
    UpdatePartitionSpec,
)
from ledger.events.table import TableUndropped
from ledger.model.errors import (
    AlreadyExistsError,
    InvalidChangeError,
    NotFoundError,
    TableDroppedError,
)
from ledger.model.iceberg_layout import SortOrder
from ledger.model.schema import Schema
from ledger.state.declared_formats import Rules
from ledger.state.layout import LayoutTrail, SourceColumnFinder, identity_spec
from ledger.state.owner import METADATA_OWNERS, OwnerKind, refuse_unservable_options
from ledger.state.stream import AlreadyCommitted
from ledger.state.table import TableState

LayoutEvent = PartitionSpecUpdated | SortOrderReplaced


class LayoutIntent:
    """A writer's changes of a table's layout, which can be decided on any state.

    Args:
        changes: The requested changes, in order.
        highest: The highest field id that the writer saw; see `SourceColumnFinder`.
    """

    def __init__(self, changes: Sequence[SpecChange], highest: int) -> None:
        self._changes = tuple(changes)
        self._sources = SourceColumnFinder(highest)
        self._first: tuple[LayoutEvent, ...] | None = None

    def __bool__(self) -> bool:
        """Return whether any change is requested."""
        return bool(self._changes)

    def decide(self, layout: LayoutTrail, schema: Schema, rules: Rules) -> Iterator[LayoutEvent]:
        """Yield the events that the changes become, and fold them into `layout`.

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
        # The first decision's events stay: they are what the writer meant.
        self._first = self._first or tuple(decided)

    def _has_spec(self, layout: LayoutTrail) -> bool:
        """Return whether another writer made the requested spec since the first decision."""
        specs = [each for each in self._first or () if isinstance(each, PartitionSpecUpdated)]
        if not specs:
            return False
        wanted = specs[-1]
        there = [layout.spec] if wanted.set_default else layout.specs
        shape = tuple((each.source_id, each.name, each.transform) for each in wanted.fields)
        return any(spec_comparison_key(each.fields) == shape for each in there)


def layout_before_changes(
    state: TableState, schema: Schema, events: Sequence[SchemaEvent]
) -> LayoutTrail:
    """Return the layout that a transaction's layout changes begin with.

    Args:
        state: The table before the transaction.
        schema: Its schema after the transaction's schema events.
        events: The transaction's schema events.

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
"""Returns the rules that a table's options declare."""


class TableDecision(Struct, frozen=True):
    """Result of deciding changes.

    Attributes:
        events: The events, in order.
        batch: The table before and after, for the checks of its formats.
    """

    events: tuple[SchemaEvent | LayoutEvent, ...]
    batch: Batch


class PendingTableChanges:
    """One transaction's changes of schema and layout, which can be decided on any state.

    Those of the schema are decided first, as one batch. The first decision pins columns by id.

    Args:
        changes: The requested changes, in order.
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
        self.anchors: tuple[ChangeAnchor, ...] | None = None

    def __bool__(self) -> bool:
        return bool(self.schema or self._layout)

    def decide(self, state: TableState, rules_of: RulesOf, history: History) -> TableDecision:
        """Decide the changes on a state.

        Args:
            state: The table.
            rules_of: Returns the rules that options declare.
            history: The table's history, for the formats.

        Raises:
            InvalidChangeError: A rule forbids a change.
        """
        schema = state.schema
        schema_events: tuple[SchemaEvent, ...] = ()
        wished = _options_after(schema.options, self.schema)
        rules = rules_of(wished)
        if self.schema:
            decision = decide_schema(schema, self.schema, **self._context(state, rules, history))
            # The first decision's anchors stay: its ids are those that the writer meant.
            self.anchors = self.anchors or decision.anchors
            schema_events = decision.events
            if schema_events:
                schema = decision.schema
        if schema.options != wished:
            # They name columns, and were renamed with them.
            rules = rules_of(schema.options)
        layout = layout_before_changes(state, schema, schema_events)
        events = (*schema_events, *self._layout.decide(layout, schema, rules))
        return TableDecision(events, Batch(state, schema, layout, rules, history))

    def resolve(
        self, state: TableState, rules_of: RulesOf, history: History
    ) -> tuple[SchemaEvent | LayoutEvent, ...]:
        """Return the events that the changes mean on a state; only `decide` validates them."""
        schema = state.schema
        schema_events: tuple[SchemaEvent, ...] = ()
        rules = rules_of(_options_after(schema.options, self.schema))
        if self.schema:
            draft, anchors = resolve_schema(
                schema, self.schema, **self._context(state, rules, history)
            )
            self.anchors = self.anchors or anchors
            schema_events = tuple(draft.events)
            if not self._layout:
                return schema_events
            if schema_events:
                schema = draft.freeze()
        layout = layout_before_changes(state, schema, schema_events)
        return (*schema_events, *self._layout.decide(layout, schema, rules))

    def _context(self, state: TableState, rules: Rules, history: History) -> dict[str, Any]:
        return {
            "has_snapshots": state.snapshot is not None,
            "anchors": self.anchors,
            "rules": rules,
            "past": partial(history.columns, state),
        }


class EventFunctionIntent(Struct, frozen=True):
    """Events that a function decides on any state; see `stream.Intent`.

    Attributes:
        decision: Returns the events on a state.
        context: The commit context, for the table's own rules.
    """

    decision: Callable[[TableState], tuple[TableEvent, ...] | AlreadyCommitted]
    context: CommitContext
    base_version: None = None

    def index_winners(self, winners: object) -> None:
        """Prepare nothing; see `Intent`."""

    def decide(
        self, state: TableState | None, winners: object
    ) -> tuple[TableEvent, ...] | AlreadyCommitted:
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
                "promote it to let the ledger own it (lakeledger promote)",
                kind="MIRRORED",
            )
        events = self.decision(state)
        if isinstance(events, AlreadyCommitted):
            return events
        refuse_commit(state, events, self.context)
        return events or AlreadyCommitted(state.version)


class UnsealIntent(Struct, frozen=True):
    """Continuation of a sealed stream, after the catalog restored its table; see `stream.Intent`.

    Attributes:
        undrop: The event, as in the catalog's stream.
    """

    undrop: TableUndropped
    base_version: None = None

    def index_winners(self, winners: object) -> None:
        """Prepare nothing; see `Intent`."""

    def decide(
        self, state: TableState | None, winners: object
    ) -> tuple[TableEvent, ...] | AlreadyCommitted:
        """Return the event; nothing is committed where that seal was undone already.

        Raises:
            NotFoundError: There is no table.
        """
        del winners
        if state is None:
            raise NotFoundError("the table has no version 0; create it first")
        if state.dropped and state.version == self.undrop.sealed_version:
            return (self.undrop,)
        return AlreadyCommitted(state.version)


def _options_after(options: Mapping[str, str], changes: Iterable[SchemaChange]) -> dict[str, str]:
    after = dict(options)
    for each in changes:
        if isinstance(each, SetOption):
            after[each.key] = each.value
        elif isinstance(each, RemoveOption):
            after.pop(each.key, None)
    return after


Judged = Literal["now", "later"]
"""State on which changes are validated: the one that the writer saw, or the newest."""


class TableIntent:
    """One transaction's changes of a table, which can be decided on any state.

    Args:
        changes: The requested changes, in order. SchemaChanges are decided as one batch, as in
            Paimon, before the rest.
        base: The state that the writer saw. Contradictions to it are raised here.
        touched: Effects of the winners, shared by all intents.
        history: The table's history, for the formats' rules.
        formats: The installed formats.
        context: The commit context, for the table's own rules; None to skip them.
        judged: "later" where other transactions are ahead of it in the commit queue: changes of
            schema and layout are validated once, on the state after those, and errors then do not
            refer to the base.
    """

    def __init__(  # noqa: PLR0913 - what decides, and the commit context
        self,
        changes: Sequence[TableChange],
        base: TableState,
        touched: RecentlyTouched,
        history: History,
        formats: Formats,
        *,
        context: CommitContext | None = None,
        judged: Judged = "now",
    ) -> None:
        asked: list[Any] = [
            each for each in changes if not isinstance(each, AllowIncompatibleChanges)
        ]
        self._asked = asked
        self._allows_incompatible = len(asked) < len(changes)
        pending_changes: list[Any] = []
        self._others: list[OtherChange] = []
        for each in asked:
            if isinstance(BY_ASKED.get(type(each)), StateOperation):
                self._others.append(_pin_newest_snapshot(each, base))
            else:
                pending_changes.append(each)
        self._pending_changes = PendingTableChanges(pending_changes, base.schema.highest_field_id)
        self._touched = touched
        self._history = history
        self._formats = formats
        self._context = context
        # Needed only after the first lost race, and most writers never lose.
        self._needed: NeededCells | None = None
        self._wanted: FileConditions | None = None
        self._spared: dict[int, Commit[TableEvent]] = {}
        self.base_version = base.version
        self._base = base
        is_plain = (
            not base.origin.names_schemas
            and not base.dropped
            and all(map(_needs_from_request_only, self._others))
        )
        self.is_judged = judged == "now" or not is_plain
        self._first = self._decide_and_check(base) if self.is_judged else self._resolve_events(base)

    def _needed_cells(self) -> NeededCells:
        """Return the cells that must be unchanged since the base."""
        if isinstance(self._first, AlreadyCommitted):
            return NeededCells()
        anchors = self._pending_changes.anchors or ()
        asked = self._pending_changes.schema if anchors else ()
        return NeededCells.of(self._first, asked, anchors, self._base.schema.highest_field_id)

    def index_winners(self, winners: Sequence[Commit[TableEvent]]) -> None:
        """Index the winners' effects; see `Intent`."""
        needed, wanted = self._first_decision_needs()
        for commit in winners if needed.cells or wanted is not None else ():
            if self._touched.remaining_conditions(wanted, commit) is not None:
                self._touched.effects_of(commit).read_effect_files()
            elif needed.cells:
                self._touched.effects_of(commit)
            else:
                self._spared[commit.version] = commit

    def decide(
        self, state: TableState | None, winners: Sequence[Commit[TableEvent]]
    ) -> tuple[TableEvent, ...] | AlreadyCommitted:
        """Return the events that the changes become on `state`; see `Intent`."""
        if state is None:
            raise NotFoundError("the table has no version 0; create it first")
        if state.version == self.base_version:
            return self._first if self.is_judged else self._decide_anew(state)
        committed = self._find_committed_duplicate(winners)
        if committed is not None:
            return committed
        self._refuse_conflicts(state, winners)
        try:
            return self._decide_and_check(state)
        except TableDroppedError:
            raise
        except (InvalidChangeError, NotFoundError, AlreadyExistsError) as error:
            if not self.is_judged:
                raise
            raise rule_conflict_error(self._base, winners, error, self._is_refused_on) from error

    def _is_refused_on(self, state: TableState) -> bool:
        try:
            self._decide_and_check(state)
        except (InvalidChangeError, NotFoundError, AlreadyExistsError):
            return True
        return False

    def _decide_and_check(self, state: TableState) -> tuple[TableEvent, ...] | AlreadyCommitted:
        if not state.dropped:
            refuse_by_owner(state, self._asked)
            events = tuple(self._decide_events(state))
            if self._context is not None:
                refuse_commit(state, events, self._context)
            return events
        if any(isinstance(each, DropTable) for each in self._others):
            # Only a restoration follows a seal, so it is at the newest version.
            return AlreadyCommitted(state.version)
        raise TableDroppedError("the table was dropped; open its name again to see its state")

    def _resolve_events(self, base: TableState) -> tuple[TableEvent, ...]:
        refuse_by_owner(base, self._asked)
        if not self._pending_changes:
            return ()
        rules = partial(Rules.of, allow_incompatible=self._allows_incompatible)
        return self._pending_changes.resolve(base, rules, self._history)

    def _decide_anew(self, base: TableState) -> tuple[TableEvent, ...] | AlreadyCommitted:
        # As if it had not been decided before.
        self._pending_changes.anchors = None
        return self._decide_and_check(base)

    def _decide_events(self, state: TableState) -> Iterator[TableEvent]:
        schema = state.schema
        asks = False
        if self._pending_changes:
            decided = self._decide_schema_and_layout(state)
            yield from decided.events
            schema, asks = decided.batch.schema, bool(decided.events)
            facts = state.origin.schema_change_effects(state.schema, schema)
            yield from facts.events
            if facts.schema_id != schema.id:
                schema = evolve(schema, id=facts.schema_id)
        mapping = self._name_mapping(state, schema)
        if mapping is not None:
            yield SetOption(NAME_MAPPING, mapping)
            schema = schema.with_options({**schema.options, NAME_MAPPING: mapping})
        for row, event in self._decide_state_changes(state, schema) if self._others else ():
            asks = asks or row.asks_formats
            yield event
        if asks:
            raised = raised_rule_numbers(schema.options, state, self._formats)
            if raised is not None:
                yield raised

    def _name_mapping(self, state: TableState, schema: Schema) -> str | None:
        """Return the table's new name mapping for Iceberg; None where it stays as it is.

        Args:
            state: The table before the transaction.
            schema: Its schema after the transaction's schema events.
        """
        before, text = state.schema.options.get(NAME_MAPPING), schema.options.get(NAME_MAPPING)
        found = text
        if text is not None and text == before and schema.fields != state.schema.fields:
            found = follow_schema_change(text, state.schema, schema)
        files = (
            each
            for change in self._others
            if isinstance(change, CommitSnapshot)
            for each in change.files
        )
        used = {each.schema_id for each in files if is_read_by_name(each)}
        named = state.origin.schemas_to_map(used.union(state.named_schema_ids), schema)
        if named:
            found = learn_names(found, map(named_parts, named))
        return None if found == text else found

    def _decide_state_changes(
        self, state: TableState, schema: Schema
    ) -> Iterator[tuple[StateOperation, TableEvent]]:
        """Yield the events of the changes that come after those of the schema and the layout."""
        context = DecisionContext(
            state,
            schema,
            state.origin.last_used_snapshot_id(state),
            state.totals.record_count,
            state.version == self.base_version,
            self._formats,
            self._refuse_unresolvable_names,
        )
        for change in self._others:
            row = operation(change, StateOperation)
            event = row.decide(context, change)
            if event is not None:
                yield row, event

    def _decide_schema_and_layout(self, state: TableState) -> TableDecision:
        """Return the decided changes of the schema and the layout."""
        decided = self._pending_changes.decide(
            state, partial(self._parse_rules, state), self._history
        )
        if decided.events:
            refuse_invalid_marks(
                decided.batch.schema, state.schema.options, is_erasable=state.keeps_outside
            )
            refuse_inexpressible(decided.batch, self._formats)
        return decided

    def _parse_rules(self, state: TableState, options: Mapping[str, str]) -> Rules:
        refuse_unknown(options, state.schema.options, self._formats)
        if state.owner.protocol is not None:
            refuse_unservable_options(options, state.owner.protocol)
        return Rules.of(options, allow_incompatible=self._allows_incompatible)

    def _refuse_unresolvable_names(
        self, state: TableState, schema: Schema, change: SnapshotChange
    ) -> None:
        if change.files:
            refuse_unresolvable_names(schema, change.files, state, self._history, self._formats)

    def _first_decision_needs(self) -> tuple[NeededCells, FileConditions | None]:
        if self._needed is None:
            self._wanted = FileConditions.of(self._others, self._touched.named)
            self._needed = self._needed_cells()
        return self._needed, self._wanted

    def _refuse_conflicts(self, state: TableState, winners: Sequence[Commit[TableEvent]]) -> None:
        needed, wanted = self._first_decision_needs()
        cells, schema = needed.cells, self._base.schema
        for commit in winners if cells or wanted is not None else ():
            if self._spared.get(commit.version) is commit:
                continue
            remaining_conditions = None
            if wanted is not None:
                remaining_conditions = self._touched.remaining_conditions(wanted, commit)
            if remaining_conditions is None and not cells:
                continue
            touch = self._touched.effects_of(commit).first(cells, remaining_conditions, state)
            if touch is not None:
                raise cell_conflict_error(
                    touch, commit, cells.get(touch.cell), schema, state.schema
                )
        found = find_option_contradiction(needed, winners, self._touched, state)
        if found is not None:
            commit, touch, value = found
            raise cell_conflict_error(touch, commit, value, schema, state.schema)

    def _find_committed_duplicate(
        self, winners: Sequence[Commit[TableEvent]]
    ) -> AlreadyCommitted | None:
        """Return the winner with the same snapshot, committed by another attempt of its job."""
        keys = {each.key for each in self._others if isinstance(each, CommitSnapshot)}
        keys.discard(None)
        for commit in winners if keys else ():
            if not keys.isdisjoint(self._touched.effects_of(commit).snapshot_keys):
                return AlreadyCommitted(commit.version)
        return None


def refuse_by_owner(state: TableState, changes: Collection[TableChange]) -> None:
    """Reject changes that the table's owner does not allow the library.

    Data of a served table is committed as manifests, by another request than a list of files.

    Args:
        state: The table.
        changes: The requested changes.

    Raises:
        InvalidChangeError: The table is served or mirrored, and does not allow one of them.
    """
    owner = state.owner
    if owner.kind == "ledger" or all(owner.kind in _allowed_owner_kinds(each) for each in changes):
        return
    if owner.kind == "served":
        raise InvalidChangeError(
            f"the table is served: engines commit its data through the {owner.protocol} "
            f"protocol since version {owner.since_version}, and no list of data files can be "
            "committed here. Commit through the server, or take the table back first "
            "(lakeledger serve-table TABLE --back, or Table.stop_serving)",
            kind="SERVED",
        )
    origin = state.origin
    marks = any(isinstance(e, SetOption) and e.key == PERSONAL_OPTION for e in changes)
    there = f"set the property {PERSONAL_OPTION} there" if marks else "change it there"
    raise InvalidChangeError(
        f"the table follows {origin.source}, which others own, and takes no commits of "
        f"its own: {there}, then import what is new (lakeledger import "
        f"{origin.format_name}), "
        "or promote it to let the ledger own it from now on (lakeledger promote)",
        kind="MIRRORED",
    )


def _allowed_owner_kinds(change: TableChange) -> frozenset[OwnerKind]:
    """Return the owners of a table under which a change is allowed."""
    row = BY_ASKED.get(type(change))
    return row.owners if isinstance(row, StateOperation) else METADATA_OWNERS


def _needs_from_request_only(change: OtherChange) -> bool:
    """Return whether a change's needs follow from the request, not from the first decision."""
    return isinstance(change, CommitSnapshot) and change.branch is None


def _pin_newest_snapshot(change: OtherChange, base: TableState) -> OtherChange:
    """Return a change with "the newest snapshot" resolved to the id that the writer saw."""
    if isinstance(change, CreateTag | ReplaceTag) and change.snapshot_id is None:
        return replace(change, snapshot_id=base.last_snapshot_id or None)
    return change
