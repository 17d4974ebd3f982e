"""Column history: every column a table ever had, by field id, with its changes.

One pass over a log, oldest commit first, keeps the value of each setting and the event that set it.
Memory grows with the number of current columns and settings and of requested dropped ones, not with
the number of commits: a dropped column is discarded unless it is requested.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final
from weakref import WeakKeyDictionary

from attrs import define, field, frozen
from msgspec import Struct, UnsetType

from ledger.audit.cause import Cause
from ledger.audit.member_order import MemberOrder
from ledger.decide.operations import BY_FACT
from ledger.decide.schema_operations import COLUMN_OPERATIONS
from ledger.events import TableEvent
from ledger.events import imported as added
from ledger.events.commit import Commit, Transaction, kind_of
from ledger.events.schema import (
    ColumnAdded,
    ColumnCommentUpdated,
    ColumnDefaultValueUpdated,
    ColumnDropped,
    ColumnMoved,
    ColumnNullabilityUpdated,
    ColumnRenamed,
    ColumnTypeUpdated,
    ColumnUndropped,
    IdentifierFieldsSet,
    PartitionSpecUpdated,
    SortOrderReplaced,
    UpdateKeys,
)
from ledger.events.snapshots import BranchCommitted, RolledBack, SnapshotCommitted, SnapshotsExpired
from ledger.events.table import TableCreated
from ledger.log.stream_log import StreamLog
from ledger.model.types import ArrayType, DataField, DataType, MapType, RowType
from ledger.model.types.text import bare_type_text, format_type
from ledger.model.types.wire import type_from_wire
from ledger.state.schema_record import first_schema
from ledger.state.table_builder import TableBuilder

Path = tuple[str, ...]
Aspect = tuple[str, ...]
"""Name of a settable aspect of a column: `("name",)`, `("type", "element")`, ..."""


class CurrentValue(Struct, frozen=True, gc=False):
    """Current value of an aspect or setting, and the event that set it.

    Attributes:
        value: The current value.
        cause: The first event that set the current value, after any other value.
        repeats: Number of later transactions that set the same value again; if there are any,
            removing a single transaction would not change the value.
    """

    value: Any
    cause: Cause
    repeats: int = 0


MOST_NAMES: Final = 20
"""Maximum number of a column's names that are kept, the newest ones."""


@define(eq=False)
class ColumnHistory:
    """History of one column, identified by its field id through renames.

    Attributes:
        field_id: The column's field id.
        parent: The nearest enclosing named field; None at the top level.
        hops: The `element` and `value` steps between the two.
        depth: The number of names in its path.
        added: The event that added it.
        back: The event that restored it last after a drop; None if none did.
        died: The event that dropped it or an enclosing column; None if it exists.
        gaps: Its latest drops, each with the event that restored it; at most `MOST_NAMES`.
        gap_count: Number of times that it was dropped and restored.
        aspects: Its aspects, with current value and cause.
        first_name: Its first name.
        names: Its latest names, each with the event that set it; at most `MOST_NAMES`.
        lost: The events that dropped members of it, by the members' ids.
        is_meant: True if it ever had the name at its position in the requested path.
        touched: The transactions that changed it or a nested column, oldest first, if requested:
            the commit's version times `_MOST_PLACES`, plus the transaction's index in the commit.
    """

    field_id: int
    parent: ColumnHistory | None
    hops: Path
    depth: int
    added: Cause
    back: Cause | None = None
    died: Cause | None = None
    gaps: deque[tuple[Cause, Cause]] = field(factory=partial(deque, maxlen=MOST_NAMES), repr=False)
    gap_count: int = 0
    aspects: dict[Aspect, CurrentValue] = field(factory=dict, repr=False)
    first_name: str = ""
    names: deque[tuple[str, Cause]] = field(factory=partial(deque, maxlen=MOST_NAMES), repr=False)
    lost: dict[int, Cause] = field(factory=dict, repr=False)
    is_meant: bool = False
    touched: array[int] = field(factory=partial(array, "q"), repr=False)

    @property
    def name(self) -> str:
        """Its current or last name."""
        return self.names[-1][0]

    @property
    def path(self) -> Path:
        """Its current or last path."""
        around = () if self.parent is None else self.parent.path
        return (*around, *self.hops, self.name)

    def was_at_path(self, path: Path) -> bool:
        """Return True if the requested path matches, by current or former names."""
        if len(path) != self.depth or not self.is_meant:
            return False
        around = path[: len(path) - 1 - len(self.hops)]
        if path[len(around) : -1] != self.hops:
            return False
        return self.parent is None or self.parent.was_at_path(around)


_MOST_PLACES: Final = 1 << 24
"""A bound above the number of transactions in any commit."""

Cell = tuple[Any, ...]

# Cells that are not settings: files and snapshots have a history of their own, counters none.
_NO_SETTINGS = frozenset(
    {
        *("column", "name", "columns", "table", "clock", "schema", "currentSchema"),
        *("snapshot", "snapshots", "earliestSnapshot", "partitionStatistics", "statistics"),
        *("snapshotLog", "metadataLog", "source", "tableFact"),
    }
)


@frozen
class RequestedHistories:
    """Request for dropped columns to keep; current columns are always kept.

    Attributes:
        ids: Keep the columns with these ids, such as all final ones: they may be restored.
        path: Keep the columns that ever had this path, nested ones, and their transactions.
        column: Keep the column with this id, nested ones, and its transactions.
        newest: Keep this number of the columns dropped last.
    """

    ids: frozenset[int] = frozenset()
    path: Path = ()
    column: int | None = None
    newest: int = 0


class ColumnHistories:
    """Histories of a table's columns and settings, built from its commits, oldest first.

    Args:
        asked: The dropped columns to keep.
        restored: Ids of further ones to keep: they are restored later.

    Attributes:
        by_id: The current columns and the kept dropped ones, by field id.
        settings: The settings, with current value and cause.
        orders: The order of the members of each struct: by the id of its nearest named column,
            None at the top level, then by the `element` and `value` steps below that.
        count: Number of columns that the table ever had.
    """

    def __init__(self, asked: RequestedHistories, restored: frozenset[int] = frozenset()) -> None:
        self.count = 0
        self._kept_ids = asked.ids | restored
        self.by_id: dict[int, ColumnHistory] = {}
        self.settings: dict[Cell, CurrentValue] = {}
        self.orders: dict[int | None, dict[Path, MemberOrder]] = {}
        self._asked = asked
        self._gone: dict[int, None] = {}
        self._highest = self._highest_before = -1
        self._place = 0
        self._before: dict[Cell, CurrentValue | None] = {}
        self._builder: TableBuilder | None = None

    def take(self, commits: Iterable[Commit[TableEvent]]) -> None:
        """Add commits, from version 0 on."""
        for commit in commits:
            if commit.version == 0 and _is_imported(commit):
                self._builder = TableBuilder()
            if self._builder is not None:
                self._builder.begin(commit.version, commit.time_millis)
            self._highest_before = self._highest
            for self._place, transaction in enumerate(commit.transactions):
                self._before.clear()
                if self._builder is not None:
                    self._builder.add(transaction)
                for fact in transaction.events:
                    kind = type(fact)
                    if kind not in _SILENT:
                        _RULES[kind](self, fact, _make_cause(commit, transaction, fact))

    def current_columns(self) -> Iterator[ColumnHistory]:
        """Yield the current columns, each before its nested ones."""
        return (each for each in self.by_id.values() if each.died is None)

    def find(self, path: Path) -> ColumnHistory | None:
        """Return the column at a path: the current one, or else the last one.

        A dropped or renamed column is found only at the requested path.
        """
        found = [each for each in self.by_id.values() if each.name == path[-1]]
        found = [each for each in found if each.path == path]
        found = [each for each in found if each.died is None] or found
        if not found and path == self._asked.path:
            # Former names of it and of its enclosing columns count, too; the newest first.
            found = [each for each in self.by_id.values() if each.was_at_path(path)]
        return max(found, key=lambda each: each.field_id, default=None)

    def restored_without_history(self) -> frozenset[int]:
        """Return the ids of columns that were not kept when they were dropped, and came back."""
        return frozenset(
            each.field_id
            for each in self.by_id.values()
            if isinstance(each.added.fact, ColumnUndropped) and each.field_id not in self._kept_ids
        )

    def has_requested_columns(self, asked: RequestedHistories) -> bool:
        """Return whether the columns of a request are kept here."""
        if asked == self._asked:
            return True
        history = None if asked.column is None else self.by_id.get(asked.column)
        if history is None or asked != RequestedHistories(column=asked.column):
            return False
        # A column that got the requested name later lacks the transactions before.
        own_name = self._asked.path[history.depth - 1 : history.depth]
        return history.field_id == self._asked.column or own_name == (history.first_name,)

    # Settings: options, comment, keys, layout, tags.

    def _set_settings(self, fact: TableEvent, cause: Cause) -> None:
        for cell, value in BY_FACT[type(fact)].sets(fact):
            if cell[0] not in _NO_SETTINGS:
                self._set_setting(cell, value, cause)

    def _set_layout(self, fact: PartitionSpecUpdated | SortOrderReplaced, cause: Cause) -> None:
        if fact.set_default:
            self._set_settings(fact, cause)
            return
        # A spec that is not the default does not change the layout of files.
        number = fact.spec_id if isinstance(fact, PartitionSpecUpdated) else fact.order_id
        for cell, value in BY_FACT[type(fact)].sets(fact):
            self._set_setting((*cell, number), value, cause)

    def _set_setting(self, cell: Cell, value: Any, cause: Cause) -> None:
        held = self._value_after(cell, self.settings.get(cell), value, cause)
        if value is None:
            # Tags come and go by the thousand.
            self.settings.pop(cell, None)
        else:
            self.settings[cell] = held

    def _set_aspect(self, history: ColumnHistory, aspect: Aspect, value: Any, cause: Cause) -> bool:
        """Set an aspect of a column; return whether the event changed it."""
        there = history.aspects[aspect]
        cell = ("column", history.field_id, *aspect)
        history.aspects[aspect] = self._value_after(cell, there, value, cause)
        return bool(there.value != value)

    def _value_after(
        self, cell: Cell, there: CurrentValue | None, value: Any, cause: Cause
    ) -> CurrentValue:
        """Return the value that an event leaves; of a transaction's values only the last counts."""
        before = self._before.setdefault(cell, there)
        if before is not None and before.value == value:
            return CurrentValue(value, before.cause, before.repeats + 1)
        if there is not None and there.value == value:
            return there
        return CurrentValue(value, cause)

    # Columns.

    def transactions_changing(self, field_id: int) -> list[tuple[int, int]]:
        """Return the transactions that changed a requested column or its nested ones.

        Pairs of a version and an index in the commit, oldest first.
        """
        history = self.by_id.get(field_id)
        return [] if history is None else [divmod(each, _MOST_PLACES) for each in history.touched]

    def _record_touch(self, history: ColumnHistory, cause: Cause) -> None:
        moment = cause.version * _MOST_PLACES + self._place
        around: ColumnHistory | None = history
        while around is not None:
            touched = around.touched
            if self._is_requested(around) and (not touched or touched[-1] != moment):
                touched.append(moment)
            around = around.parent

    def _is_requested(self, history: ColumnHistory) -> bool:
        return history.is_meant or history.field_id == self._asked.column

    def _is_inside_requested(self, history: ColumnHistory | None) -> bool:
        # Nested columns are reported with it, and may be restored.
        while history is not None and not self._is_requested(history):
            history = history.parent
        return history is not None

    def _add_name(self, history: ColumnHistory, name: str, cause: Cause) -> None:
        history.names.append((name, cause))
        path = self._asked.path
        history.is_meant = history.is_meant or path[history.depth - 1 : history.depth] == (name,)

    def _count_unknown_column(self, field_id: int) -> None:
        """Count an unknown column, unless it is restored: ids only grow."""
        self.count += field_id > self._highest_before
        self._highest = max(self._highest, field_id)

    def _add_column(
        self, column: DataField, parent: ColumnHistory | None, hops: Path, cause: Cause
    ) -> ColumnHistory:
        """Start or resume the history of a column and its nested ones."""
        depth = len(hops) + 1 + (0 if parent is None else parent.depth)
        history = self.by_id.get(column.id)
        if history is None or history.died is None:
            self._count_unknown_column(column.id)
            history = ColumnHistory(column.id, parent, hops, depth, cause, first_name=column.name)
        else:
            # A restored column has the aspects of the event, whatever it had before.
            history.gaps.append((history.died, cause))
            history.gap_count += 1
            history.back, history.died = cause, None
            history.parent, history.hops, history.depth = parent, hops, depth
            self._gone.pop(column.id, None)
            history.aspects.clear()
            history.lost.clear()
        self.by_id[column.id] = history
        self._add_name(history, column.name, cause)
        aspects = history.aspects
        aspects[("name",)] = CurrentValue(column.name, cause)
        aspects[("comment",)] = CurrentValue(column.description, cause)
        aspects[("default",)] = CurrentValue(column.default_value, cause)
        self._record_types(history, (), column.type, cause)
        self._member_order(parent, hops).add(column.id, column.name)
        self._record_touch(history, cause)
        return history

    def _record_types(
        self, history: ColumnHistory, rest: Path, data_type: DataType, cause: Cause
    ) -> None:
        """Record the types from a part of a column inwards, and start the nested columns."""
        history.aspects[("type", *rest)] = CurrentValue(_type_text(data_type), cause)
        history.aspects[("nullability", *rest)] = CurrentValue(data_type.nullable, cause)
        match data_type:
            case RowType(fields=fields):
                for each in fields:
                    self._add_column(each, history, rest, cause)
            case ArrayType(element=inner):
                self._record_types(history, (*rest, "element"), inner, cause)
            case MapType(value=inner):
                self._record_types(history, (*rest, "value"), inner, cause)
            case _:
                return

    def top_level(self) -> MemberOrder:
        """Return the order of the table's columns."""
        return self._member_order(None, ())

    def _member_order(self, parent: ColumnHistory | None, hops: Path) -> MemberOrder:
        orders = self.orders.setdefault(None if parent is None else parent.field_id, {})
        found = orders.get(hops)
        if found is None:
            found = orders[hops] = MemberOrder()
        return found

    def _member_named(
        self, parent: ColumnHistory | None, hops: Path, name: str
    ) -> ColumnHistory | None:
        orders = self.orders.get(None if parent is None else parent.field_id, {})
        found = orders[hops].names.get(name) if hops in orders else None
        return None if found is None else self.by_id[found]

    def _apply_creation(self, fact: TableCreated, cause: Cause) -> None:
        schema = first_schema(fact)
        for each in schema.fields:
            self._add_column(each, None, (), cause)
        for key, value in schema.options.items():
            self.settings["option", key] = CurrentValue(value, cause)
        self.settings["comment",] = CurrentValue(schema.comment, cause)
        self.settings["primaryKey",] = CurrentValue(schema.primary_keys, cause)
        self.settings["partitionKeys",] = CurrentValue(schema.partition_keys, cause)

    def _apply_added_column(self, fact: ColumnAdded | ColumnUndropped, cause: Cause) -> None:
        *around, name = fact.field_names
        if isinstance(fact, ColumnAdded) and fact.field_id in self.by_id:
            # Paimon gives the id again after a rollback of its schemas: it is another column.
            del self.by_id[fact.field_id]
            self._gone.pop(fact.field_id, None)
        parent, hops = self._nearest_named_column(tuple(around))
        column = DataField(
            fact.field_id,
            name,
            type_from_wire(fact.data_type),
            fact.comment,
            fact.default_value,
        )
        self._add_column(column, parent, hops, cause)
        move = fact.move
        if move is not None and move.type != "LAST":
            order = self._member_order(parent, hops)
            order.place_newest(move.type, order.names.get(move.reference_field_name or ""))

    def _apply_undrop(self, fact: ColumnUndropped, cause: Cause) -> None:
        parent, _ = self._nearest_named_column(tuple(fact.field_names[:-1]))
        if parent is not None:
            # Its enclosing column has then lost no member.
            parent.lost.pop(fact.field_id, None)
        self._apply_added_column(fact, cause)

    def _nearest_named_column(self, around: Path) -> tuple[ColumnHistory | None, Path]:
        """Return the nearest named column at or around a path, and the rest of the path."""
        if not around:
            return None, ()
        owner = self.by_id[self.top_level().names[around[0]]]
        hops: Path = ()
        for step in around[1:]:
            inner = self._member_named(owner, hops, step)
            if inner is None:
                hops = (*hops, step)
            else:
                owner, hops = inner, ()
        return owner, hops

    def _apply_rename(self, fact: ColumnRenamed, cause: Cause) -> None:
        self._rename(self.by_id[fact.field_id], fact.new_name, cause)

    def _rename(self, history: ColumnHistory, name: str, cause: Cause) -> None:
        before = history.name
        if self._set_aspect(history, ("name",), name, cause):
            self._add_name(history, name, cause)
            self._member_order(history.parent, history.hops).rename(history.field_id, before, name)
            self._record_touch(history, cause)

    def _apply_drop(self, fact: ColumnDropped, cause: Cause) -> None:
        history = self.by_id[fact.field_id]
        self._end_history(history, cause)
        if history.parent is not None:
            history.parent.lost[history.field_id] = cause
        self._member_order(history.parent, history.hops).remove(history.field_id, history.name)

    def _end_history(self, history: ColumnHistory, cause: Cause) -> None:
        self._record_touch(history, cause)
        history.died = cause
        for order in self.orders.pop(history.field_id, {}).values():
            for each in order.ids:
                self._end_history(self.by_id[each], cause)
        if history.field_id not in self._kept_ids and not self._is_inside_requested(history):
            self._gone[history.field_id] = None
        if len(self._gone) > self._asked.newest:
            forgotten = next(iter(self._gone))
            del self._gone[forgotten], self.by_id[forgotten]

    def _apply_type_change(self, fact: ColumnTypeUpdated, cause: Cause) -> None:
        history = self.by_id[fact.field_id]
        rest = fact.field_names[history.depth :]
        wanted = type_from_wire(fact.new_data_type)
        if (
            wanted.depth
            or rest in self.orders.get(history.field_id, ())
            or _nested_aspects(history, rest)
        ):
            self._end_nested_histories(history, rest, cause)
            held = history.aspects["nullability", *rest]
            self._record_types(history, rest, wanted, cause)
            history.aspects["nullability", *rest] = held
            self._record_touch(history, cause)
        elif self._set_aspect(history, ("type", *rest), _type_text(wanted), cause):
            self._record_touch(history, cause)
        if not fact.keep_nullability and self._set_aspect(
            history, ("nullability", *rest), wanted.nullable, cause
        ):
            self._record_touch(history, cause)

    def _end_nested_histories(self, history: ColumnHistory, rest: Path, cause: Cause) -> None:
        orders = self.orders.get(history.field_id, {})
        for hops in [each for each in orders if each[: len(rest)] == rest]:
            for each in orders.pop(hops).ids:
                self._end_history(self.by_id[each], cause)
        for aspect in _nested_aspects(history, rest):
            del history.aspects[aspect]
        # Earlier losses inside a dropped part do not matter.
        for key in [
            k
            for k, e in history.lost.items()
            if _path_inside_column(e, history)[: len(rest)] == rest
        ]:
            del history.lost[key]

    def _apply_nullability(self, fact: ColumnNullabilityUpdated, cause: Cause) -> None:
        history = self.by_id[fact.field_id]
        rest = fact.field_names[history.depth :]
        if self._set_aspect(history, ("nullability", *rest), fact.new_nullability, cause):
            self._record_touch(history, cause)

    def _apply_comment(self, fact: ColumnCommentUpdated, cause: Cause) -> None:
        history = self.by_id[fact.field_id]
        if self._set_aspect(history, ("comment",), fact.new_comment, cause):
            self._record_touch(history, cause)

    def _apply_default(self, fact: ColumnDefaultValueUpdated, cause: Cause) -> None:
        history = self.by_id[fact.field_id]
        if self._set_aspect(history, ("default",), fact.new_default_value, cause):
            self._record_touch(history, cause)

    def _apply_move(self, fact: ColumnMoved, cause: Cause) -> None:
        history = self.by_id[fact.field_id]
        reference = None if isinstance(fact.reference_id, UnsetType) else fact.reference_id
        order = self._member_order(history.parent, history.hops)
        if order.move(history.field_id, fact.move.type, reference, cause):
            # A move changes the column itself; inside a column, it changes that column, too.
            self._record_touch(history, cause)

    def _apply_keys(self, fact: UpdateKeys, cause: Cause) -> None:
        self._set_setting(("primaryKey",), fact.primary_keys, cause)
        self._set_setting(("partitionKeys",), fact.partition_keys, cause)

    # Whole schemas, of imported tables.

    def _replace(self, _fact: object, cause: Cause) -> None:
        if self._builder is not None:
            schema = self._builder.freeze().schema
            self._replace_members(None, (), schema.fields, cause)
            self._set_setting(("identifierFields",), schema.identifier_field_ids, cause)

    def _replace_members(
        self, parent: ColumnHistory | None, hops: Path, fields: Sequence[DataField], cause: Cause
    ) -> None:
        wanted = {each.id for each in fields}
        order = self._member_order(parent, hops)
        for each in [self.by_id[key] for key in order.ids if key not in wanted]:
            self._end_history(each, cause)
            order.remove(each.field_id, each.name)
            if parent is not None:
                parent.lost[each.field_id] = cause
        for column in fields:
            history = self.by_id.get(column.id)
            if history is None or history.died is not None:
                self._add_column(column, parent, hops, cause)
                continue
            self._rename(history, column.name, cause)
            for aspect, value in (
                ("comment", column.description),
                ("default", column.default_value),
            ):
                if self._set_aspect(history, (aspect,), value, cause):
                    self._record_touch(history, cause)
            self._replace_type(history, (), column.type, cause)
        order.replace_order([each.id for each in fields], cause)

    def _replace_type(
        self, history: ColumnHistory, rest: Path, data_type: DataType, cause: Cause
    ) -> None:
        held = history.aspects["type", *rest]
        if held.value != _type_text(data_type):
            self._end_nested_histories(history, rest, cause)
            self._record_types(history, rest, data_type, cause)
            self._record_touch(history, cause)
            return
        if self._set_aspect(history, ("nullability", *rest), data_type.nullable, cause):
            self._record_touch(history, cause)
        match data_type:
            case RowType(fields=fields):
                self._replace_members(history, rest, fields, cause)
            case ArrayType(element=inner):
                self._replace_type(history, (*rest, "element"), inner, cause)
            case MapType(value=inner):
                self._replace_type(history, (*rest, "value"), inner, cause)
            case _:
                return


def _is_imported(commit: Commit[TableEvent]) -> bool:
    facts = (each for transaction in commit.transactions for each in transaction.events)
    return any(isinstance(each, TableCreated) and each.is_imported for each in facts)


def _nested_aspects(history: ColumnHistory, rest: Path) -> list[Aspect]:
    """Return the aspects of the parts nested in a part of a column."""
    count = len(rest)
    return [
        each
        for each in history.aspects
        if each[0] in {"type", "nullability"} and len(each) > count + 1 and each[1:][:count] == rest
    ]


def _path_inside_column(cause: Cause, history: ColumnHistory) -> Path:
    """Return the path inside a column that an event is about."""
    names: Path = getattr(cause.fact, "field_names", ())
    return names[history.depth :]


def _type_text(data_type: DataType) -> str:
    """Return a type's text without its members, which are aspects of their own."""
    match data_type:
        case RowType() | ArrayType():
            return data_type.root
        case MapType(key=key):
            return f"MAP by {format_type(key)}"
        case _:
            return bare_type_text(data_type)


def column_histories(
    log: StreamLog[Any, Any], last: int, asked: RequestedHistories
) -> ColumnHistories:
    """Return the histories of a table's columns and settings up to a version.

    The last result is cached while the stream is open: a lookup of a column by an older name, and
    then of its transactions, reads the log once.

    Args:
        log: The table's stream.
        last: The version.
        asked: The dropped columns to keep.
    """
    kept = _KEPT.get(log)
    if kept is not None and kept[0] == last and kept[1].has_requested_columns(asked):
        return kept[1]
    found = _read_histories(log, last, ColumnHistories(asked))
    restored = found.restored_without_history()
    if restored:
        # Their first part was not kept: only the later events show that they are asked for.
        found = _read_histories(log, last, ColumnHistories(asked, restored))
    _KEPT[log] = last, found
    return found


_KEPT: Final[WeakKeyDictionary[StreamLog[Any, Any], tuple[int, ColumnHistories]]] = (
    WeakKeyDictionary()
)


def _read_histories(
    log: StreamLog[Any, Any], last: int, histories: ColumnHistories
) -> ColumnHistories:
    """Return the histories after adding all commits up to a version to them."""
    creation = log.commit_at(0)
    if _is_imported(creation):
        histories.take(log.personal.resolve_each(read.commit for read in log.commits(0, last)))
    else:
        histories.take(log.personal.resolve([creation]))
        histories.take(log.personal.resolve_each(log.reader.wanted(1, last, _changes_no_settings)))
    return histories


def _changes_no_settings(_version: int, body: bytes) -> bool:
    """Return True if a commit has only events that change no column or setting.

    Checked on its bytes: every event, and every type inside an event, starts with its kind; inside
    a text the quotes would be escaped.
    """
    if not body.startswith(_SILENT_KINDS, body.find(_EVENTS) + len(_EVENTS)):
        return False
    left = body.count(_NAMED)
    for kind in _SILENT_KINDS:
        left -= body.count(kind)
        if not left:
            return True
    return False


def _make_cause(
    commit: Commit[TableEvent], transaction: Transaction[TableEvent], fact: TableEvent
) -> Cause:
    effective = transaction.effective_time_millis
    return Cause(
        commit.version,
        transaction.id,
        transaction.author,
        transaction.message,
        commit.time_millis if isinstance(effective, UnsetType) else effective,
        fact,
    )


_OF_COLUMNS: Final = frozenset(kind for row in COLUMN_OPERATIONS for kind in row.facts)
_RULES: Final[Mapping[type, Callable[[ColumnHistories, Any, Cause], None]]] = {
    # Events about columns have rules of their own; others set the cells of their operation.
    **dict.fromkeys(BY_FACT.keys() - _OF_COLUMNS, ColumnHistories._set_settings),  # noqa: SLF001
    IdentifierFieldsSet: ColumnHistories._set_settings,  # noqa: SLF001
    TableCreated: ColumnHistories._apply_creation,  # noqa: SLF001 - the table of its rules
    ColumnAdded: ColumnHistories._apply_added_column,  # noqa: SLF001
    ColumnRenamed: ColumnHistories._apply_rename,  # noqa: SLF001
    ColumnDropped: ColumnHistories._apply_drop,  # noqa: SLF001
    ColumnUndropped: ColumnHistories._apply_undrop,  # noqa: SLF001
    ColumnTypeUpdated: ColumnHistories._apply_type_change,  # noqa: SLF001
    ColumnNullabilityUpdated: ColumnHistories._apply_nullability,  # noqa: SLF001
    ColumnCommentUpdated: ColumnHistories._apply_comment,  # noqa: SLF001
    ColumnDefaultValueUpdated: ColumnHistories._apply_default,  # noqa: SLF001
    ColumnMoved: ColumnHistories._apply_move,  # noqa: SLF001
    UpdateKeys: ColumnHistories._apply_keys,  # noqa: SLF001
    PartitionSpecUpdated: ColumnHistories._set_layout,  # noqa: SLF001
    SortOrderReplaced: ColumnHistories._set_layout,  # noqa: SLF001
    added.SchemaReplaced: ColumnHistories._replace,
    added.CurrentSchemaSet: ColumnHistories._replace,
}

_SILENT: Final = (
    *(SnapshotCommitted, BranchCommitted, added.SnapshotAdded),
    *(RolledBack, SnapshotsExpired),
)
"""Frequent events that change no column or setting; the most frequent first."""

_EVENTS: Final = b'"events":['
_KIND: Final = b'{"type":"'
_NAMED: Final = b'"type"'
_SILENT_KINDS: Final = tuple(b'%s%s"' % (_KIND, kind_of(each).encode()) for each in _SILENT)
