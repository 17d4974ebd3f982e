"""Conflict detection: the cells that events set or require, and those that commits touched.

A cell is the unit of conflict: a field id and an aspect, an option, the comment, a tag, ... Two
events conflict when one claims a cell that the other set to another value. An equal value is no
conflict, and events that share no cell commute.

Needs are cells with their required values. An option that names columns is compared by the columns
that it means, in their newest names.

Transactions batched in one commit are checked against the commits before it, and against the
transactions that joined the batch earlier.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime
from itertools import islice
from operator import attrgetter, is_
from typing import Any, Protocol, Self

from msgspec import Struct
from msgspec.structs import replace

from ledger.decide.changes import CommitSnapshot, TableChange
from ledger.decide.column_draft import ChangeAnchor
from ledger.decide.operation import Cell
from ledger.decide.operations import BY_FACT
from ledger.decide.schema_operations import ROOT
from ledger.decide.table_options import KEY_OPTIONS, ColumnNames, comma_list, split_option_columns
from ledger.events import TableEvent
from ledger.events.commit import Commit, Transaction, said_by
from ledger.events.schema import RemoveOption, SchemaChange, SetOption, UpdateKeys
from ledger.events.snapshots import ListingEvent, RolledBack
from ledger.model.errors import CommitConflictError
from ledger.model.file_change import FileChange
from ledger.model.names import quote_path
from ledger.model.schema import Schema
from ledger.model.snapshot import branch_number
from ledger.model.types import DataField, DataType, parts_of, walk_fields
from ledger.state.layout import PartitionFilter
from ledger.state.table import TableState
from ledger.state.table_builder import TableBuilder

__all__ = [
    "Cell",
    "cell_name",
    "claimed_cells",
    "column_existence_cells",
    "column_holding_name",
    "sets",
]


def cell_name(cell: Cell) -> str:
    """Return a cell's name as display text: `column 4 name`, `option bucket`, `tag v1`."""
    return " ".join(str(each) for each in cell)


def sets(event: TableEvent) -> Iterator[tuple[Cell, Any]]:
    """Yield the cells that an event sets, with their values."""
    return BY_FACT[type(event)].sets(event)


def claimed_cells(event: TableEvent) -> Iterator[tuple[Cell, Any]]:
    """Yield the cells that must not have been set to another value meanwhile."""
    return BY_FACT[type(event)].claimed(event)


def column_holding_name(cell: Cell, schema: Schema) -> int | None:
    """Return the id of the column that has the name which a `name` cell is about; None if free."""
    _, owner, name = cell
    members: Iterable[DataField] = schema.fields
    if owner != ROOT:
        around = next((each for each in walk_fields(schema.fields) if each.id == owner), None)
        members = () if around is None else _walk_row_members(around.type)
    return next((each.id for each in members if each.name == name), None)


def _walk_row_members(data_type: DataType) -> Iterator[DataField]:
    """Yield a ROW's members, including those inside lists and maps of ROWs."""
    for each in parts_of(data_type):
        if each.field is not None:
            yield each.field
        elif each.name != "key":
            yield from _walk_row_members(each.type)


def column_existence_cells(anchor: ChangeAnchor) -> Iterator[tuple[Cell, Any]]:
    """Yield the cells of the columns that a change goes through, changes, refers to or names."""
    for field_id in (*anchor.ids, anchor.reference_id, *anchor.named):
        if field_id is not None:
            yield ("column", field_id, "exists"), True


LoadFiles = Callable[[ListingEvent], Iterable[FileChange]]
"""Returns the file changes of a snapshot event, wherever they are stored."""


class CommitFileIndex(Protocol):
    """Canonical file paths, and an index of the files that commits name."""

    def usual(self, path: str) -> str:
        """Return the canonical form of a file's path."""

    def key(self, path: str, line: int) -> str:
        """Return the key of a canonical path on a line, as in the sets that `of` returns."""

    def of(self, commit: Commit[TableEvent]) -> AbstractSet[str] | None:
        """Return the keys of the files that a commit in the log names; None for other commits."""


class UnindexedFiles:
    """Paths as they are given, without an index: every commit's files are read."""

    def usual(self, path: str) -> str:
        """See `CommitFileIndex`."""
        return path

    def key(self, path: str, _branch_number: int) -> str:
        """See `CommitFileIndex`."""
        return path

    def of(self, _commit: Commit[TableEvent]) -> AbstractSet[str] | None:
        """See `CommitFileIndex`."""
        return None


AS_WRITTEN = UnindexedFiles()

_ORDER = attrgetter("order")
_MOST_KEPT = 32
"""Number of recent commits whose index is kept: writers that share a commit check one of the
last ones, which for eight concurrent writers are a few; an older one is indexed again."""


class EventEffect(Struct, frozen=True):
    """One effect of an event: it set a cell, or added or removed a file.

    Attributes:
        order: Position among all effects of its commit; effects are compared by it.
        author: Author of its transaction.
        event: The event.
        cell: The cell that was set, if it was a cell.
        value: The cell's new value.
        file: The file change, if it was a file.
    """

    order: tuple[int, int, int]
    author: str
    event: TableEvent
    cell: Cell = ()
    value: Any = None
    file: FileChange | None = None


class FileConditions(Struct, frozen=True):
    """Conditions of a writer's snapshots on the files that others add and remove meanwhile.

    Attributes:
        files: Effects that must not have happened: line, kind and canonical path; a line is main
            or a branch, by its number, and effects on other lines do not matter.
        overwritten: The lines and partitions that were replaced whole, where files added by others
            are a conflict.
        keys: Keys of the files of `files`: a commit that names none of them need not be read; None:
            every commit has to be.
    """

    files: frozenset[tuple[int, str, str]]
    overwritten: tuple[tuple[int, PartitionFilter], ...]
    keys: frozenset[str] | None = None

    @classmethod
    def of(cls, changes: Iterable[TableChange], named: CommitFileIndex = AS_WRITTEN) -> Self | None:
        """Return the conditions of some changes; None when they are not about files.

        Args:
            changes: The requested changes.
            named: Canonical file paths.
        """
        snapshots = [each for each in changes if isinstance(each, CommitSnapshot)]
        overwritten = [
            (_branch_number(each), each.where)
            for each in snapshots
            if each.where is not None and each.isolation != "snapshot"
        ]
        files = frozenset(
            (_branch_number(each), *one)
            for each in snapshots
            for file in each.files
            for one in _invalidating_effects(file, named.usual)
        )
        if not files and not overwritten:
            return None
        # Other effects on a file come from files with other names.
        has_keys = not overwritten and all(kind in _COMES_OR_GOES for _, kind, _ in files)
        keys = frozenset(named.key(path, line) for line, _, path in files) if has_keys else None
        return cls(files, tuple(overwritten), keys)

    def clashes(self, file: FileChange, state: TableState, line: int = 0) -> bool:
        """Return whether another writer's file change, on a line, violates or may violate them."""
        if any((line, *each) in self.files for each in _file_change_effects(file, str)):
            return True
        if file.kind != "ADD":
            return False
        return any(
            own == line and where.matches(file, state.spec_by_id(file.spec_id)) is not False
            for own, where in self.overwritten
        )


_COMES_OR_GOES = frozenset({"ADD", "DELETE"})
_DELETES_ROWS, _HAS_VECTOR = "deletes rows of", "has the deletion vector of"


def _file_change_effects(
    file: FileChange, usual: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    """Yield the effects of a file change, with the canonical path of the affected file."""
    yield file.kind, usual(file.path)
    if file.kind == "ADD" and isinstance(file.referenced_data_file, str):
        data_file = usual(file.referenced_data_file)
        yield _DELETES_ROWS, data_file
        if file.is_vector:
            yield _HAS_VECTOR, data_file


def _invalidating_effects(
    file: FileChange, usual: Callable[[str], str]
) -> Iterator[tuple[str, str]]:
    """Yield the effects by others that would invalidate a file change.

    A removed data file was rewritten without the rows that were deleted by then, and one whose
    rows are deleted has to exist; it has one deletion vector at most.
    """
    yield file.kind, usual(file.path)
    if file.kind == "DELETE" and file.content == "data":
        yield _DELETES_ROWS, usual(file.path)
    if file.kind == "ADD" and isinstance(file.referenced_data_file, str):
        data_file = usual(file.referenced_data_file)
        yield "DELETE", data_file
        if file.is_vector:
            yield _HAS_VECTOR, data_file


def _branch_number(change: CommitSnapshot) -> int:
    return 0 if change.branch is None else change.branch.number


class CommitEffects:
    """Index of the effects of one commit; it grows while transactions join the commit.

    Attributes:
        commit: The commit as it was indexed last.
        snapshot_keys: The keys of its snapshots.

    Args:
        load_files: Returns the files of its snapshots; called only when files are needed.
        usual: Returns the canonical form of a file's path.
    """

    def __init__(self, load_files: LoadFiles, usual: Callable[[str], str] = str) -> None:
        self._load_files = load_files
        self._usual = usual
        self.commit: Commit[TableEvent] | None = None
        self._seen: list[Transaction[TableEvent]] = []
        self._events = 0
        # Cells are not needed where only files are added and removed.
        self._unindexed: list[tuple[int, Transaction[TableEvent]]] = []
        self._indexed: dict[Cell, list[EventEffect]] = {}
        self._files: dict[tuple[int, str, str], EventEffect] = {}
        self._added: list[tuple[int, FileChange, EventEffect]] = []
        self._unread: list[tuple[int, str, ListingEvent]] = []
        self.snapshot_keys: set[str] = set()

    def is_extended_by(self, commit: Commit[TableEvent]) -> bool:
        """Return whether a commit begins with the very transactions that were indexed."""
        there = commit.transactions
        return len(self._seen) <= len(there) and all(map(is_, self._seen, there))

    def add_joined_transactions(self, commit: Commit[TableEvent]) -> None:
        """Add the transactions that have joined since."""
        self.commit = commit
        for transaction in commit.transactions[len(self._seen) :]:
            self._unindexed.append((self._events, transaction))
            for number, event in enumerate(transaction.events, self._events):
                if isinstance(event, ListingEvent):
                    self._unread.append((number, said_by(transaction), event))
                    if not isinstance(event, RolledBack) and (key := event.key):
                        self.snapshot_keys.add(key)
            self._events += len(transaction.events)
            self._seen.append(transaction)

    def _cell_effects(self) -> dict[Cell, list[EventEffect]]:
        """Return the effects on cells, each transaction's last of each."""
        for first, transaction in self._unindexed:
            own: dict[Cell, EventEffect] = {}
            author = said_by(transaction)
            for number, event in enumerate(transaction.events, first):
                for place, (cell, value) in enumerate(sets(event)):
                    # No reader saw a transaction's intermediate values: the last value counts.
                    own[cell] = EventEffect((number, 0, place), author, event, cell, value)
            for cell, touch in own.items():
                self._indexed.setdefault(cell, []).append(touch)
        if self._unindexed:
            self._unindexed.clear()
        return self._indexed

    def first(
        self, claimed: Mapping[Cell, object], wanted: FileConditions | None, state: TableState
    ) -> EventEffect | None:
        """Return the first effect that contradicts a writer's claims or conditions on files."""
        first = None
        # Most writers change other cells.
        if claimed and not self._cell_effects().keys().isdisjoint(claimed):
            first = min(self._contradictions(claimed, state), key=_ORDER, default=None)
        if wanted is None:
            return first
        self.read_effect_files(first)
        clashes = (*self._file_contradictions(wanted, state), *([first] if first else ()))
        return min(clashes, key=_ORDER, default=None)

    def last(self, cell: Cell) -> EventEffect | None:
        """Return the last effect on a cell, if there is any."""
        return next(reversed(self._cell_effects().get(cell, ())), None)

    def _contradictions(
        self, claimed: Mapping[Cell, object], state: TableState
    ) -> Iterator[EventEffect]:
        # Few cells are claimed, however many were set.
        there = self._cell_effects()
        for cell, value in claimed.items():
            touches = there.get(cell)
            if touches is None:
                continue
            others = (each for each in touches if each.value != value)
            if cell[-1] == "exists" and value is True and _column_exists(cell, state.schema):
                # It was dropped, and has been restored.
                continue
            if cell[0] == "name":
                # A name that was only used temporarily is free again.
                now = column_holding_name(cell, state.schema)
                others = (each for each in others if getattr(each.event, "field_id", None) == now)
            yield from islice(others, 1)

    def _file_contradictions(
        self, wanted: FileConditions, state: TableState
    ) -> Iterator[EventEffect]:
        yield from (self._files[each] for each in self._files.keys() & wanted.files)
        for line, file, touch in self._added if wanted.overwritten else ():
            if wanted.clashes(file, state, line):
                yield touch
                break

    def read_effect_files(self, before: EventEffect | None = None) -> None:
        """Read the file lists of effects before a given one, or of all."""
        while self._unread and (before is None or self._unread[0][0] < before.order[0]):
            number, author, event = self._unread[0]
            line = branch_number(event.snapshot_id)
            # All of a list or nothing, should it be unreadable.
            for place, file in enumerate(tuple(self._load_files(event))):
                touch = EventEffect((number, 1, place), author, event, file=file)
                for each in _file_change_effects(file, self._usual):
                    self._files.setdefault((line, *each), touch)
                if file.kind == "ADD":
                    self._added.append((line, file, touch))
            del self._unread[0]


def _column_exists(cell: Cell, schema: Schema) -> bool:
    return any(each.id == cell[1] for each in walk_fields(schema.fields))


class RecentlyTouched:
    """Indexes of the last few commits' effects. Not thread-safe.

    Args:
        load_files: Returns the files of their snapshots.
        named: Canonical file paths, and the index of files by commit.
    """

    def __init__(self, load_files: LoadFiles, named: CommitFileIndex = AS_WRITTEN) -> None:
        self._load_files = load_files
        self.named = named
        self._kept: dict[int, CommitEffects] = {}

    def remaining_conditions(
        self, wanted: FileConditions | None, commit: Commit[TableEvent]
    ) -> FileConditions | None:
        """Return the conditions, or None where a commit names none of their files."""
        if wanted is None or wanted.keys is None:
            return wanted
        found = self.named.of(commit)
        return wanted if found is None or not found.isdisjoint(wanted.keys) else None

    def effects_of(self, commit: Commit[TableEvent]) -> CommitEffects:
        """Return the index of a commit, which may have grown since the last call."""
        found = self._kept.get(commit.version)
        if found is not None and found.commit is commit:
            return found
        if found is None or not found.is_extended_by(commit):
            found = self._kept[commit.version] = CommitEffects(self._load_files, self.named.usual)
            if len(self._kept) > _MOST_KEPT:
                del self._kept[next(iter(self._kept))]
        found.add_joined_transactions(commit)
        return found


_OPTION_CHANGES = (SetOption, RemoveOption)
_KEY_CELLS = dict(zip(KEY_OPTIONS, ("primaryKey", "partitionKeys"), strict=True))
_MOST_MILLIS = 253_402_300_799_999

# Cells whose values may refer to columns; numbers in others are snapshots, sizes and times.
_OF_COLUMNS = {"column", "name", "identifierFields", "partitionSpec", "sortOrder"}


class OwnColumnValue(Struct, frozen=True, eq=False):
    """A value that refers to a new column of the transaction, so it equals no other writer's."""

    value: object


class NeededCells(Struct, frozen=True):
    """Cells that a transaction's changes of schema and layout need unchanged.

    Attributes:
        cells: The cells, with their values.
        options: Changes of options that name columns, with the ids that they mean; the last one
            of each key.
    """

    cells: Mapping[Cell, object] = {}
    options: tuple[tuple[SetOption | RemoveOption, tuple[int | None, ...]], ...] = ()

    @classmethod
    def of(
        cls,
        events: Iterable[TableEvent],
        changes: Sequence[SchemaChange],
        anchors: Sequence[ChangeAnchor],
        highest: int,
    ) -> NeededCells:
        """Return the needs of a first decision.

        Args:
            events: The decided events.
            changes: The requested changes of the schema.
            anchors: Their subjects, one a change; none when there are none.
            highest: The highest field id that the writer saw. Ids above it were assigned by the
                transaction itself; another writer's mean other columns.
        """
        asked = {each.key for each in changes if isinstance(each, _OPTION_CHANGES)}
        options = _last_naming_options(zip(changes, anchors, strict=True))
        named = {change.key for change, _ in options}
        cells: dict[Cell, object] = {}
        for anchor in anchors:
            cells.update(column_existence_cells(anchor))
        for event in events:
            # Options that Paimon derives from a change are derived again, from the state then.
            if isinstance(event, _OPTION_CHANGES) and (
                event.key not in asked or event.key in named
            ):
                continue
            if not isinstance(event, UpdateKeys):
                cells.update(claimed_cells(event))
        needed = {
            cell: _mark_own_column_value(value, highest) if cell[0] in _OF_COLUMNS else value
            for cell, value in cells.items()
            if cell[0] not in {"column", "name"} or cell[1] <= highest
        }
        return cls(needed, options)

    def meant(self, schema: Schema) -> Iterator[tuple[Cell, object, object]]:
        """Yield the cells of options that name columns, with wanted and current value.

        Both in the names of `schema`. An option of a column that was dropped is left out: that the
        column exists is a need of its own.
        """
        names = ColumnNames(schema.fields) if self.options else None
        for change, ids in self.options if names else ():
            option = split_option_columns(change.key, getattr(change, "value", None))
            if (
                names is None
                or option is None
                or not all(map(names.has, filter(_is_existing_id, ids)))
            ):
                continue
            key, value = names.say(option, ids)
            if key in _KEY_CELLS:
                there = schema.primary_keys if key == KEY_OPTIONS[0] else schema.partition_keys
                yield (_KEY_CELLS[key],), comma_list(value or ""), there
            else:
                yield ("option", key), value, schema.options.get(key)


def _is_existing_id(value: int | None) -> bool:
    return value is not None


def _last_naming_options(
    decided: Iterable[tuple[SchemaChange, ChangeAnchor]],
) -> tuple[tuple[SetOption | RemoveOption, tuple[int | None, ...]], ...]:
    last: dict[str, tuple[SetOption | RemoveOption, tuple[int | None, ...]]] = {}
    for change, anchor in decided:
        if isinstance(change, _OPTION_CHANGES) and anchor.named:
            last[change.key] = (change, anchor.named)
    return tuple(last.values())


def _mark_own_column_value(value: object, highest: int) -> object:
    """Return a claimed value, marked if it refers to a column above `highest`."""
    return OwnColumnValue(value) if any(each > highest for each in _column_ids_in(value)) else value


def _column_ids_in(value: object) -> Iterator[int]:
    for each in value if isinstance(value, tuple) else ():
        # A layout's fields begin with their sources; `True` is no id.
        found = each[0] if isinstance(each, tuple) and each else each
        if type(found) is int:
            yield found


def find_option_contradiction(
    needs: NeededCells,
    winners: Sequence[Commit[TableEvent]],
    touched: RecentlyTouched,
    state: TableState,
) -> tuple[Commit[TableEvent], EventEffect, object] | None:
    """Return the effect on an option that contradicts the needs, with commit and needed value."""
    for cell, wanted, there in needs.meant(state.schema):
        if wanted == there:
            continue
        for commit in reversed(winners):
            touch = touched.effects_of(commit).last(cell)
            if touch is not None:
                return commit, touch, wanted
    return None


def cell_conflict_error(
    touch: EventEffect, commit: Commit[TableEvent], needed: object, base: Schema, now: Schema
) -> CommitConflictError:
    """Return the error for a cell or file that another writer changed meanwhile.

    Args:
        touch: The effect.
        commit: The commit that had it.
        needed: The value that the writer needs.
        base: The schema that the writer saw; messages use its names.
        now: The current schema.
    """
    who = (
        f"by {touch.author or 'somebody'} in version {commit.version} ({_commit_time_text(commit)})"
    )
    if touch.file is not None:
        subject = f"file {touch.file.path}"
        done = "added" if touch.file.kind == "ADD" else "removed"
        message = f"{subject} was {done} {who}; read the table again and retry"
        return CommitConflictError(message, subject, commit.version, touch.author, touch.event)
    names = _CellDisplayNames(base, now)
    subject = names.subject(touch.cell)
    if touch.cell[0] == "column" and touch.cell[-1] == "exists":
        what = "restored" if touch.value else "dropped"
        needs = "drops it" if touch.value else "needs it"
        message = f"{subject} was {what} {who}, and this {needs}; check the table, then retry"
    else:
        theirs, mine = names.value(touch.cell, touch.value), names.value(touch.cell, needed)
        message = (
            f"{subject} was changed {who} to {theirs}, and you asked for {mine}; check it, then "
            "retry"
        )
    return CommitConflictError(
        message, cell_name(touch.cell), commit.version, touch.author, touch.event
    )


def _commit_time_text(commit: Commit[TableEvent]) -> str:
    if not 0 <= commit.time_millis <= _MOST_MILLIS:
        return f"{commit.time_millis} ms after 1970"
    moment = datetime.fromtimestamp(commit.time_millis / 1000, UTC)
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


class _CellDisplayNames(Struct, frozen=True):
    """Display names of cells and of their values."""

    base: Schema
    now: Schema | None = None

    def column(self, field_id: int) -> str:
        for schema in (self.base, self.now):
            path = None if schema is None else ColumnNames(schema.fields).path(field_id)
            if path is not None:
                return f"column {quote_path(path)} (id {field_id})"
        return "your new column" if self.now is None else f"column {field_id}"

    def subject(self, cell: Cell) -> str:
        say = _SUBJECTS.get(str(cell[0]))
        return cell_name(cell) if say is None else say(self, cell)

    def value(self, cell: Cell, value: Any) -> str:
        names, inner = (
            (_CellDisplayNames(self.base), value.value)
            if isinstance(value, OwnColumnValue)
            else (self, value)
        )
        say = _VALUES.get(str(cell[-1] if cell[0] == "column" else cell[0]))
        return _value_text(inner) if say is None else say(names, inner)

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


def _value_text(value: object) -> str:
    if isinstance(value, tuple):
        return str(list(value))
    return "none" if value is None else repr(value)


def _tag_text(value: tuple[int, object] | None) -> str:
    return "gone" if value is None else f"a name of snapshot {value[0]}"


def _ref_text(value: Any) -> str:
    return "as it was" if value is None else f"snapshot {value.snapshot_id}"


_SUBJECTS: Mapping[str, Callable[[_CellDisplayNames, Cell], str]] = {
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
_VALUES: Mapping[str, Callable[[_CellDisplayNames, Any], str]] = {
    "name": lambda names, value: repr(value) if isinstance(value, str) else names.named(value),
    "type": lambda _, value: value,
    "nullability": lambda _, value: "NULL" if value else "NOT NULL",
    "position": _CellDisplayNames.place,
    "identifierFields": _CellDisplayNames.columns,
    "partitionSpec": _CellDisplayNames.spec,
    "sortOrder": _CellDisplayNames.order,
    "tag": lambda _, value: _tag_text(value),
    "branch": lambda _, value: f"snapshot {value}",
    "ref": lambda _, value: _ref_text(value),
}


def rule_conflict_error(
    base: TableState,
    winners: Sequence[Commit[TableEvent]],
    error: Exception,
    fails_on: Callable[[TableState], bool],
) -> CommitConflictError:
    """Return the error for a rule that rejects changes on the newest state, but not on the base.

    Args:
        base: The state that the writer saw.
        winners: The commits since, oldest first.
        error: The rule's error.
        fails_on: Returns whether the changes are rejected on a state.
    """
    version, author, event, when = _find_failing_winner(base, winners, fails_on)
    return CommitConflictError(
        f"{error} (it was possible at version {base.version}, which this was based on; "
        f"version {version} by {author or 'somebody'}, {when}, made it impossible)",
        str(getattr(error, "kind", "state")),
        version,
        author,
        event,
    )


def _find_failing_winner(
    base: TableState,
    winners: Sequence[Commit[TableEvent]],
    fails_on: Callable[[TableState], bool],
) -> tuple[int, str, TableEvent | None, str]:
    """Return version, author, event and time of the first winner that made the changes fail."""
    steps = [(commit, each) for commit in winners for each in commit.transactions]
    count = _first_failing_step(len(steps), lambda end: fails_on(_fold_steps(base, steps[:end])))
    commit, guilty = steps[count - 1]
    events = guilty.events

    def fails_within(end: int) -> bool:
        part = replace(guilty, events=events[:end])
        return fails_on(_fold_steps(base, [*steps[: count - 1], (commit, part)]))

    number = _first_failing_step(len(events), fails_within)
    event = events[number - 1] if events else None
    return commit.version, said_by(guilty), event, _commit_time_text(commit)


def _first_failing_step(count: int, fails_after: Callable[[int], bool]) -> int:
    """Return the number of steps after which it fails first; after all of them it does."""
    held, failed = 0, count
    while failed - held > 1:
        middle = (held + failed) // 2
        if fails_after(middle):
            failed = middle
        else:
            held = middle
    return failed


def _fold_steps(
    base: TableState,
    steps: Iterable[tuple[Commit[TableEvent], Transaction[TableEvent]]],
) -> TableState:
    builder = TableBuilder(base)
    for commit, transaction in steps:
        if builder.version < commit.version:
            builder.begin(commit.version, commit.time_millis)
        builder.add(transaction)
    return builder.freeze()
