"""Conflicts: what a writer needs unchanged, who changed it, and how that is told.

What is needed are cells with values. An option that names columns is needed by what it means: it
is compared, in the newest names, with what stands there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ledger.events import TableEvent
from ledger.events.commit import Commit, Transaction, said_by
from ledger.events.schema_changes import RemoveOption, SchemaChange, SetOption
from ledger.events.schema_events import UpdateKeys
from ledger.evolution.columns.draft import Anchor
from ledger.evolution.fold.table_builder import TableBuilder
from ledger.evolution.options.naming import KEY_OPTIONS, ColumnNames, option_text
from ledger.evolution.options.reading import comma_list
from ledger.evolution.state import TableState
from ledger.evolution.table.conflicts.cells import Cell, cell_name, claims, existence
from ledger.evolution.table.conflicts.touched import RecentlyTouched, Touch
from ledger.model.errors import CommitConflictError
from ledger.model.path_text import shown_path
from ledger.model.schema import Schema

_OPTION_CHANGES = (SetOption, RemoveOption)
_KEY_CELLS = dict(zip(KEY_OPTIONS, ("primaryKey", "partitionKeys"), strict=True))
_MOST_MILLIS = 253_402_300_799_999

# Cells whose values may refer to columns; numbers in others are snapshots, sizes and times.
_OF_COLUMNS = {"column", "name", "identifierFields", "partitionSpec", "sortOrder"}


class Own(Struct, frozen=True, eq=False):
    """A value that refers to a column of the writer's own, so it equals nobody else's."""

    value: object


class Needs(Struct, frozen=True):
    """What a transaction's changes of schema and layout need as it was.

    Attributes:
        cells: With their values.
        options: Changes of options that name columns, with the ids that they mean; the last one
            a key.
    """

    cells: Mapping[Cell, object] = {}
    options: tuple[tuple[SetOption | RemoveOption, tuple[int | None, ...]], ...] = ()

    @classmethod
    def of(
        cls,
        events: Iterable[TableEvent],
        changes: Sequence[SchemaChange],
        anchors: Sequence[Anchor],
        highest: int,
    ) -> Needs:
        """Return the needs of a first decision.

        Args:
            events: What was decided.
            changes: What was asked of the schema.
            anchors: What that was about, one a change; none when nothing was asked.
            highest: The highest field id that the writer saw. Ids above it were given out by the
                transaction itself; another writer's mean other things.
        """
        asked = {each.key for each in changes if isinstance(each, _OPTION_CHANGES)}
        options = _naming(zip(changes, anchors, strict=True))
        named = {change.key for change, _ in options}
        cells: dict[Cell, object] = {}
        for anchor in anchors:
            cells.update(existence(anchor))
        for event in events:
            # What Paimon derives from a change is derived again, on whatever stands there then.
            if isinstance(event, _OPTION_CHANGES) and (
                event.key not in asked or event.key in named
            ):
                continue
            if not isinstance(event, UpdateKeys):
                cells.update(claims(event))
        needed = {
            cell: _owned(value, highest) if cell[0] in _OF_COLUMNS else value
            for cell, value in cells.items()
            if cell[0] not in {"column", "name"} or cell[1] <= highest
        }
        return cls(needed, options)

    def meant(self, schema: Schema) -> Iterator[tuple[Cell, object, object]]:
        """Yield the cells of options that name columns, what is wanted, and what stands there.

        Both in the names of `schema`. What means a column that is gone is left out: that the
        column is there is a need of its own.
        """
        names = ColumnNames(schema.fields) if self.options else None
        for change, ids in self.options if names else ():
            option = option_text(change.key, getattr(change, "value", None))
            if names is None or option is None or not all(map(names.has, filter(_is_id, ids))):
                continue
            key, value = names.say(option, ids)
            if key in _KEY_CELLS:
                there = schema.primary_keys if key == KEY_OPTIONS[0] else schema.partition_keys
                yield (_KEY_CELLS[key],), comma_list(value or ""), there
            else:
                yield ("option", key), value, schema.options.get(key)


def _is_id(value: int | None) -> bool:
    return value is not None


def _naming(
    decided: Iterable[tuple[SchemaChange, Anchor]],
) -> tuple[tuple[SetOption | RemoveOption, tuple[int | None, ...]], ...]:
    last: dict[str, tuple[SetOption | RemoveOption, tuple[int | None, ...]]] = {}
    for change, anchor in decided:
        if isinstance(change, _OPTION_CHANGES) and anchor.named:
            last[change.key] = (change, anchor.named)
    return tuple(last.values())


def _owned(value: object, highest: int) -> object:
    """Return a claimed value, marked if it refers to a column above `highest`."""
    return Own(value) if any(each > highest for each in _ids(value)) else value


def _ids(value: object) -> Iterator[int]:
    for each in value if isinstance(value, tuple) else ():
        # A layout's fields begin with their sources; `True` is no id.
        found = each[0] if isinstance(each, tuple) and each else each
        if type(found) is int:
            yield found


def contradicted(
    needs: Needs, winners: Sequence[Commit[TableEvent]], touched: RecentlyTouched, state: TableState
) -> tuple[Commit[TableEvent], Touch, object] | None:
    """Return who set an option that names columns to another value, and the value needed."""
    for cell, wanted, there in needs.meant(state.schema):
        if wanted == there:
            continue
        for commit in reversed(winners):
            touch = touched.by(commit).last(cell)
            if touch is not None:
                return commit, touch, wanted
    return None


def taken(
    touch: Touch, commit: Commit[TableEvent], needed: object, base: Schema, now: Schema
) -> CommitConflictError:
    """Return the refusal of what somebody else has set, brought or taken meanwhile.

    Args:
        touch: What was done.
        commit: Where.
        needed: The value that the writer needs.
        base: The schema that the writer looked at; its names are those that he knows.
        now: The schema as it is.
    """
    who = f"by {touch.author or 'somebody'} in version {commit.version} ({_when(commit)})"
    if touch.file is not None:
        subject = f"file {touch.file.path}"
        done = "added" if touch.file.kind == "ADD" else "removed"
        told = f"{subject} was {done} {who}; read the table again and plan anew"
        return CommitConflictError(told, subject, commit.version, touch.author, touch.event)
    names = _Names(base, now)
    subject = names.subject(touch.cell)
    if touch.cell[0] == "column" and touch.cell[-1] == "exists":
        what = "brought back" if touch.value else "dropped"
        needs = "drops it" if touch.value else "needs it"
        told = f"{subject} was {what} {who}, and this {needs}; look at the table, then ask again"
    else:
        theirs, mine = names.value(touch.cell, touch.value), names.value(touch.cell, needed)
        told = (
            f"{subject} was changed {who} to {theirs}, and you asked for {mine}; look at it, then "
            "ask again"
        )
    return CommitConflictError(
        told, cell_name(touch.cell), commit.version, touch.author, touch.event
    )


def _when(commit: Commit[TableEvent]) -> str:
    if not 0 <= commit.time_millis <= _MOST_MILLIS:
        return f"{commit.time_millis} ms after 1970"
    moment = datetime.fromtimestamp(commit.time_millis / 1000, UTC)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


class _Names(Struct, frozen=True):
    """What cells and their values are called, for people."""

    base: Schema
    now: Schema | None = None

    def column(self, field_id: int) -> str:
        for schema in (self.base, self.now):
            path = None if schema is None else ColumnNames(schema.fields).path(field_id)
            if path is not None:
                return f"column {shown_path(path)} (id {field_id})"
        return "your new column" if self.now is None else f"column {field_id}"

    def subject(self, cell: Cell) -> str:
        say = _SUBJECTS.get(str(cell[0]))
        return cell_name(cell) if say is None else say(self, cell)

    def value(self, cell: Cell, value: Any) -> str:
        names, inner = (_Names(self.base), value.value) if isinstance(value, Own) else (self, value)
        say = _VALUES.get(str(cell[-1] if cell[0] == "column" else cell[0]))
        return _text(inner) if say is None else say(names, inner)

    def named(self, value: Any) -> str:
        if isinstance(value, int):
            return f"the name of {self.column(value)}"
        return f"a new column, {value[0]}"

    def place(self, value: Any) -> str:
        kind, reference = value
        return kind if reference is None else f"{kind} {self.column(reference)}"

    def columns(self, value: Iterable[int]) -> str:
        return ", ".join(map(self.column, value)) or "none"

    def spec(self, value: Sequence[Any]) -> str:
        fields = (f"{transform} of {self.column(each)}" for each, transform, _ in value[1:])
        return ", ".join(fields) or "unpartitioned"

    def order(self, value: Sequence[Any]) -> str:
        fields = (f"{how} of {self.column(each)} {way}" for each, how, way, _ in value)
        return ", ".join(fields) or "unsorted"


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return str(list(value))
    return "none" if value is None else repr(value)


def _tag(value: tuple[int, object] | None) -> str:
    return "gone" if value is None else f"a name of snapshot {value[0]}"


def _ref(value: Any) -> str:
    return "as it was" if value is None else f"snapshot {value.snapshot_id}"


_SUBJECTS: Mapping[str, Callable[[_Names, Cell], str]] = {
    "column": lambda names, cell: (
        names.column(cell[1])
        if cell[2] == "exists"
        else f"the {cell[2]} of {names.column(cell[1])}"
    ),
    "name": lambda names, cell: (
        f"the name {cell[2]}" + ("" if cell[1] < 0 else f" inside {names.column(cell[1])}")
    ),
    "comment": lambda *_: "the table's comment",
    "primaryKey": lambda *_: "the primary key",
    "partitionKeys": lambda *_: "the partition key",
    "identifierFields": lambda *_: "the set of identifier fields",
    "partitionSpec": lambda *_: "the partition spec",
    "sortOrder": lambda *_: "the sort order",
    "snapshots": lambda *_: "the newest snapshot",
    "branch": lambda _, cell: f"branch {cell[1]}",
    "ref": lambda _, cell: f"where branch {cell[1]} begins",
    "partitionStatistics": lambda _, cell: f"the statistics file of snapshot {cell[1]}",
    "statistics": lambda _, cell: f"the Puffin file of snapshot {cell[1]}",
}
_VALUES: Mapping[str, Callable[[_Names, Any], str]] = {
    "name": lambda names, value: repr(value) if isinstance(value, str) else names.named(value),
    "type": lambda _, value: value,
    "nullability": lambda _, value: "NULL" if value else "NOT NULL",
    "position": _Names.place,
    "identifierFields": _Names.columns,
    "partitionSpec": _Names.spec,
    "sortOrder": _Names.order,
    "tag": lambda _, value: _tag(value),
    "branch": lambda _, value: f"snapshot {value}",
    "ref": lambda _, value: _ref(value),
}


def lost(
    base: TableState,
    winners: Sequence[Commit[TableEvent]],
    error: Exception,
    fails_on: Callable[[TableState], bool],
) -> CommitConflictError:
    """Return the refusal of what a rule forbids on the newest state, and did not on the base.

    Args:
        base: The state that the writer looked at.
        winners: The commits since, oldest first.
        error: What the rule said.
        fails_on: Whether the changes are refused on a state.
    """
    version, author, event, when = _culprit(base, winners, fails_on)
    return CommitConflictError(
        f"{error} (it could be done at version {base.version}, which this was asked on; "
        f"version {version} by {author or 'somebody'}, {when}, is why it cannot now)",
        str(getattr(error, "kind", "state")),
        version,
        author,
        event,
    )


def _culprit(
    base: TableState,
    winners: Sequence[Commit[TableEvent]],
    fails_on: Callable[[TableState], bool],
) -> tuple[int, str, TableEvent | None, str]:
    """Return version, author, event and time of what made the difference."""
    steps = [(commit, each) for commit in winners for each in commit.transactions]
    count = _first(len(steps), lambda end: fails_on(_folded(base, steps[:end])))
    commit, guilty = steps[count - 1]
    events = guilty.events

    def fails_within(end: int) -> bool:
        part = replace(guilty, events=events[:end])
        return fails_on(_folded(base, [*steps[: count - 1], (commit, part)]))

    number = _first(len(events), fails_within)
    event = events[number - 1] if events else None
    return commit.version, said_by(guilty), event, _when(commit)


def _first(count: int, fails_after: Callable[[int], bool]) -> int:
    """Return after how many steps it fails, having held before; after all of them it does."""
    held, failed = 0, count
    while failed - held > 1:
        middle = (held + failed) // 2
        if fails_after(middle):
            failed = middle
        else:
            held = middle
    return failed


def _folded(
    base: TableState,
    steps: Iterable[tuple[Commit[TableEvent], Transaction[TableEvent]]],
) -> TableState:
    builder = TableBuilder(base)
    for commit, transaction in steps:
        if builder.version < commit.version:
            builder.begin(commit.version, commit.time_millis)
        builder.add(transaction)
    return builder.freeze()
