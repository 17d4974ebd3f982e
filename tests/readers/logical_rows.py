"""Expected rows while columns change: a model that knows nothing of field ids.

Every column has a key of its own, given out by the model when the column is added. Rows are kept
by these keys, so that no name and no position can lead to another column's values.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from random import Random
from typing import Any

from attrs import define, evolve, field, frozen

from ledger import (
    AddColumn,
    DropColumn,
    FormatError,
    Ledger,
    Move,
    RenameColumn,
    Schema,
    SchemaChange,
    SnapshotPlan,
    Table,
    UndropColumn,
    UpdateColumnPosition,
    UpdateColumnType,
)
from ledger.model import paths_of
from tests.readers.lakehouse import Rows, folder_of, write_rows
from tests.readers.logical_columns import (
    ATOMS,
    DAY,
    ID,
    NAMES,
    NESTED,
    WIDER,
    Column,
    Columns,
    Level,
    bindings,
    named,
    replaced,
    row_of,
    steps,
    wire,
    with_collections,
)


@frozen
class File:
    path: str
    day: dt.date
    rows: tuple[Mapping[int, Any], ...]
    names: Mapping[tuple[Level, str], int]
    """The column that each name means; empty for a file with field ids."""


DAYS = (dt.date(2013, 1, 1), dt.date(2013, 1, 2))

EVOLUTION = (
    *("append", "append", "append", "add", "add", "add"),
    *("rename", "swap", "drop", "move", "widen", "rename", "drop", "widen"),
    *("delete", "expire"),
)
LIFE = (
    *("append", "append", "append", "append", "compact", "delete", "overwrite", "roll_back"),
    *("tag", "tag", "untag", "expire", "add", "add", "rename", "drop", "move", "widen"),
)


RETURNING = (*EVOLUTION, *["undrop"] * 5)


@frozen
class Gone:
    """A column that was dropped: its id, what it stood in and behind what."""

    column: Column
    field_id: int
    owner: int | None
    before: tuple[int, ...]


@define
class LogicalTable:
    """A table, and beside it what its rows have to be.

    Attributes:
        table: The ledger's.
        random: Decides what happens.
        columns: The current ones.
        files: The live ones.
        snapshots: By id, the files and columns of each that can still be read.
        tags: The snapshot that each names.
        refused: How many changes were.
        happenings: What `step` chooses from.
        nests: How often a column that is added has members.
        came_back: How many columns did.
    """

    table: Table
    random: Random
    columns: Columns
    happenings: tuple[str, ...] = EVOLUTION
    nests: float = 0.4
    files: tuple[File, ...] = ()
    snapshots: dict[int, tuple[tuple[File, ...], Columns]] = field(factory=dict)
    tags: dict[str, int] = field(factory=dict)
    refused: int = 0
    came_back: int = 0
    _gone: list[Gone] = field(factory=list)
    _keys: Iterator[int] = field(factory=lambda: count(1))
    _ids: Iterator[int] = field(factory=lambda: count(1))
    _paths: Iterator[int] = field(factory=count)

    # What happens.

    def step(self) -> None:
        """Let one thing happen."""
        getattr(self, self.random.choice(self.happenings))()

    def append(self, *, has_ids: bool | None = None) -> None:
        """Write a file of two rows with the columns of now."""
        with_ids = self.random.random() < 0.5 if has_ids is None else has_ids
        day = self.random.choice(DAYS)
        rows = [row_of(self.columns, self.random) | {0: next(self._ids), -1: day} for _ in range(2)]
        file = self._write(rows, day, has_ids=with_ids)
        self.table.add_files([self._path(file)])
        self._snapshot((*self.files, file))

    def delete(self) -> None:
        if self.files:
            gone = self.random.choice(self.files)
            self.table.delete_files([gone.path])
            self._snapshot(tuple(each for each in self.files if each is not gone))

    def compact(self) -> None:
        """Put the rows of two files of a day into one, with the columns of now."""
        day = self.random.choice(DAYS)
        small = [each for each in self.files if each.day == day][:2]
        if len(small) == 2:
            rows = [with_collections(self.columns, row) for each in small for row in each.rows]
            file = self._write(rows, day, has_ids=True)
            added = self.table.data_files([self._path(file)])
            gone = tuple(each.path for each in small)
            self.table.commit_snapshot(SnapshotPlan("COMPACT", added, delete=gone))
            self._snapshot((*(each for each in self.files if each not in small), file))

    def overwrite(self) -> None:
        """Replace a day."""
        day = self.random.choice(DAYS)
        file = self._write([row_of(self.columns, self.random) | {0: next(self._ids), -1: day}], day)
        added = self.table.data_files([self._path(file)])
        self.table.overwrite(added, where={"day": day.isoformat()})
        self._snapshot((*(each for each in self.files if each.day != day), file))

    def roll_back(self) -> None:
        if self.snapshots:
            target = self.random.choice(sorted(self.snapshots))
            self.table.rollback(snapshot=target)
            self._snapshot(self.snapshots[target][0])

    def tag(self) -> None:
        name = self.random.choice(("one", "two"))
        if self.snapshots:
            move = self.table.replace_tag if name in self.tags else self.table.create_tag
            self.tags[name] = self.random.choice(sorted(self.snapshots))
            move(name, snapshot=self.tags[name])
            self._forget()

    def untag(self) -> None:
        if self.tags:
            name = self.random.choice(sorted(self.tags))
            self.table.delete_tag(name)
            del self.tags[name]
            self._forget()

    def expire(self) -> None:
        """Let all snapshots but the newest ones go."""
        last = self.table.state.last_snapshot_id
        if last > 1:
            self.table.expire_snapshots(before=self.random.randint(2, last))
            self._forget()

    def _forget(self) -> None:
        """Forget the snapshots that expired and that no tag keeps any more."""
        first = self.table.state.earliest_snapshot_id
        kept = set(self.tags.values())
        self.snapshots = {n: e for n, e in self.snapshots.items() if n >= first or n in kept}

    def add(self) -> None:
        path, level = self._level()
        free = sorted(set(NAMES) - {each.name for each in level})
        if not free:
            return
        column = self._column(self.random.choice(free), is_flat=bool(path))
        change = AddColumn((*steps(path), column.name), wire(column))
        self._alter([change], replaced(self.columns, path, (*level, column)))

    def rename(self) -> None:
        path, level = self._level()
        free = sorted(set(NAMES) - {each.name for each in level})
        changing = [each for each in level if each.name in NAMES]
        if free and changing:
            old, new = self.random.choice(changing), self.random.choice(free)
            renamed = tuple(evolve(e, name=new) if e is old else e for e in level)
            change = RenameColumn((*steps(path), old.name), new)
            self._alter([change], replaced(self.columns, path, renamed))

    def swap(self) -> None:
        """Give two columns each other's name, one rename after the other as Paimon wants it."""
        path, level = self._level()
        changing = [each for each in level if each.name in NAMES]
        if len(changing) < 2:
            return
        one, other = self.random.sample(changing, 2)
        above, now = steps(path), {each.key: each.name for each in level}
        between = f"between {next(self._keys)}"
        for old, key, new in (
            (one.name, one.key, between),
            (other.name, other.key, one.name),
            (between, one.key, other.name),
        ):
            now[key] = new
            renamed = tuple(evolve(each, name=now[each.key]) for each in level)
            change = RenameColumn((*above, old), new)
            if not self._alter([change], replaced(self.columns, path, renamed)):
                return

    def drop(self) -> None:
        path, level = self._level()
        changing = [each for each in level if each.name in NAMES]
        if changing:
            gone = self.random.choice(changing)
            rest = tuple(each for each in level if each is not gone)
            whole = (*steps(path), gone.name)
            field_id = dict(paths_of(self.table.state.schema))[whole]
            before = tuple(each.key for each in level[: level.index(gone)])
            if self._alter([DropColumn(whole)], replaced(self.columns, path, rest)):
                owner = path[-1].key if path else None
                self._gone.append(Gone(gone, field_id, owner, before))

    def undrop(self) -> None:
        """Bring a column back, under another name where its own is taken."""
        if not self._gone:
            return
        gone = self.random.choice(self._gone)
        path = tuple(each for each in self.columns if each.key == gone.owner)
        if gone.owner is not None and not path:
            return
        level = path[0].members if path else self.columns
        free = sorted(set(NAMES) - {each.name for each in level})
        if not free:
            return
        name = gone.column.name if gone.column.name in free else self.random.choice(free)
        standing = [each.key for each in level]
        behind = next((each for each in reversed(gone.before) if each in standing), None)
        at = 0 if behind is None else standing.index(behind) + 1
        back = (*level[:at], evolve(gone.column, name=name), *level[at:])
        change = UndropColumn((*steps(path), name), gone.field_id)
        if self._alter([change], replaced(self.columns, path, back)):
            self._gone.remove(gone)
            self.came_back += 1

    def move(self) -> None:
        path, level = self._level()
        if len(level) < 2:
            return
        moved, after = self.random.sample(level, 2)
        rest = [each for each in level if each is not moved]
        rest.insert(rest.index(after) + 1, moved)
        change = UpdateColumnPosition(
            Move(moved.name, "AFTER", after.name), (*steps(path), moved.name)
        )
        self._alter([change], replaced(self.columns, path, tuple(rest)))

    def widen(self) -> None:
        path, level = self._level()
        changing = [each for each in level if each.type in WIDER]
        if changing:
            old = self.random.choice(changing)
            wide = tuple(evolve(e, type=WIDER[e.type]) if e is old else e for e in level)
            change = UpdateColumnType((*steps(path), old.name), WIDER[old.type])
            self._alter([change], replaced(self.columns, path, wide))

    # What has to be.

    def clashes(self, columns: Columns) -> bool:
        """Return whether a name would mean another column than in files without field ids."""
        files = [each for files, _ in self.snapshots.values() for each in files]
        meant = dict(bindings(columns))
        for names in (each.names for each in files):
            if any(meant.setdefault(name, key) != key for name, key in names.items()):
                return True
        return False

    def expected(self, snapshot: int | None = None) -> Rows:
        """Return the rows now, or at a snapshot with the columns of then."""
        files, columns = (
            (self.files, self.columns) if snapshot is None else self.snapshots[snapshot]
        )
        return self.rows_of(files, columns)

    @staticmethod
    def rows_of(files: tuple[File, ...], columns: Columns) -> Rows:
        """Return the rows of some files in some columns, by id."""
        rows = [named(columns, row) for each in files for row in each.rows]
        return sorted(rows, key=lambda row: int(row["id"]))

    def _alter(self, changes: list[SchemaChange], columns: Columns) -> bool:
        try:
            self.table.alter(changes)
        except FormatError as error:
            self.refused += 1
            rule = error.rule
        else:
            rule = ""
        assert ("files without field ids" in rule) == self.clashes(columns), (changes, rule)
        if rule:
            return False
        self.columns = columns
        return True

    def _write(
        self, rows: Sequence[Mapping[int, Any]], day: dt.date, *, has_ids: bool = True
    ) -> File:
        folder = f"day={day}/" if DAY in self.columns else ""
        path = f"{folder}{next(self._paths)}.parquet"
        written = [named(self.columns, row) for row in rows]
        write_rows(self.table, path, written, has_ids=has_ids)
        names = {} if has_ids else dict(bindings(self.columns))
        return File(path, day, tuple(rows), names)

    def _path(self, file: File) -> str:
        return str(folder_of(self.table) / file.path)

    def _snapshot(self, files: tuple[File, ...]) -> None:
        self.files = files
        self.snapshots[self.table.state.last_snapshot_id] = (files, self.columns)

    def _level(self) -> tuple[tuple[Column, ...], Columns]:
        """Return a path of columns, and the columns of the struct that it leads to."""
        nested = [each for each in self.columns if each.members]
        if nested and self.random.random() < 0.5:
            chosen = self.random.choice(nested)
            return (chosen,), chosen.members
        return (), self.columns

    def _column(self, name: str, *, is_flat: bool) -> Column:
        key = next(self._keys)
        if is_flat or self.random.random() >= self.nests:
            return Column(key, name, self.random.choice(ATOMS))
        members = tuple(
            Column(next(self._keys), each, self.random.choice(ATOMS)) for each in ("keep", "a")
        )
        return Column(key, name, self.random.choice(tuple(NESTED)), members)


def begun(lake: Ledger, name: str, random: Random, **options: str) -> LogicalTable:
    """Return a table with nothing but an id, whose columns will change."""
    table = lake.create_table(name, Schema.of({"id": "BIGINT NOT NULL"}, options=options))
    return LogicalTable(table, random, (ID,))


def begun_by_day(lake: Ledger, name: str, random: Random) -> LogicalTable:
    """Return a table of flat columns that is partitioned by day, which will live."""
    columns = {"id": "BIGINT NOT NULL", "day": "DATE"}
    table = lake.create_table(name, Schema.of(columns, partition_keys=["day"]))
    return LogicalTable(table, random, (ID, DAY), LIFE, nests=0)
