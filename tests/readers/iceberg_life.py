"""Lives of Iceberg tables: every kind of change, with real files."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from random import Random
from typing import Any

from attrs import define, evolve, field, frozen

from ledger import (
    AddColumn,
    AddPartitionField,
    DropColumn,
    InvalidChangeError,
    Ledger,
    RemovePartitionField,
    RenameColumn,
    ReplaceSortOrder,
    Schema,
    SchemaChange,
    SetOption,
    SnapshotPlan,
    SortColumn,
    UpdateColumnType,
    UpdatePartitionSpec,
)
from ledger.model import CommitKind
from ledger.table_handle import handle_of
from projections.iceberg.materialise import project
from tests.readers.book import Book
from tests.readers.logical_columns import (
    DAY,
    ID,
    NAMES,
    Columns,
    replaced,
    row_of,
    steps,
    wire,
    with_collections,
)
from tests.readers.logical_rows import DAYS, File, LogicalTable

_ADD = "SELECT *, NULL::INT AS qty FROM {rows}"
_RENAME = "SELECT * RENAME (name AS title) FROM {rows}"
_WIDEN = "SELECT * REPLACE (qty::BIGINT AS qty) FROM {rows}"
_DROP = "SELECT * EXCLUDE (note) FROM {rows}"


@frozen
class Case:
    """The format version that a table begins with, and whether its files carry field ids."""

    version: int
    has_ids: bool

    def __str__(self) -> str:
        return f"v{self.version} {'ids' if self.has_ids else 'names'}"


CASES = [Case(version, has_ids) for version in (1, 2, 3) for has_ids in (True, False)]


def life(lake: Ledger, case: Case) -> Book:
    """Return a table that was upgraded on its way, each version projected, and its book."""
    columns = {"id": "BIGINT NOT NULL", "name": "STRING", "note": "STRING", "day": "DATE"}
    options = {"format-version": str(case.version)}
    schema = Schema.of(columns, partition_keys=["day"], options=options)
    name = f"life_{case}".replace(" ", "_")
    book = Book(lake.create_table(f"shop.{name}", schema), has_ids=case.has_ids)
    first = _in_day(book, "2013-01-01")
    _in_day(book, "2013-01-02")
    book.tag("early", 2)
    book.alter([AddColumn(("qty",), "INT")], _ADD)
    _in_day(book, "2013-01-01")
    book.delete(first)
    book.alter([RenameColumn(("name",), "title")], _RENAME)
    book.alter([SetOption("owner", "etl")])
    book.rollback(2)
    _in_day(book, "2013-01-02")
    book.alter([UpdateColumnType(("qty",), "BIGINT")], _WIDEN)
    for _ in range(9):
        _in_day(book, "2013-01-03")
    if case.version < 3:
        book.alter([SetOption("format-version", str(case.version + 1))])
    book.alter([DropColumn(("note",))], _DROP)
    _in_day(book, "2013-01-01")
    book.tag("late", book.last)
    book.expire(before=5)
    book.delete(book.live[0], book.live[-2])
    project(handle_of(book.table), every=1)
    return book


def _in_day(book: Book, day: str) -> Any:
    return book.add(f"day={day}", {"day": f"DATE '{day}'"})


_LONG = (
    *("append", "append", "append", "append", "overwrite", "compact", "rewrite", "rewrite"),
    *("delete", "roll_back", "tag", "untag", "expire", "expire", "expire", "spec", "order"),
    *("add", "add", "add", "add", "rename", "drop", "move", "widen"),
    *("swap", "retake") * 9,
)
LOSING = frozenset({"tag", "untag", "expire"})
"""Changes that may remove a snapshot, so that it is read before them."""

_TRANSFORMS = ("identity", "bucket[3]", "month", "year")
_KEPT_FILES = 5
_NAMED = (0.2, 0.7)
"""The share of new files without field ids, in turn for some versions each."""

_TURN = 40
_SPARED = 0.8


@define
class LongLife(LogicalTable):
    """A table of Iceberg's alone, whose layout and format version change, too.

    Names are swapped in one commit, and files go before there are many.

    Attributes:
        moments: By version, the files and columns that were current after it.
    """

    happenings: tuple[str, ...] = _LONG
    nests: float = 0.25
    moments: dict[int, tuple[tuple[File, ...], Columns]] = field(factory=dict)

    @classmethod
    def begun(cls, lake: Ledger, name: str, random: Random) -> LongLife:
        """Return a table of format version 1."""
        options = {"ledger.formats": "iceberg", "format-version": "1"}
        schema = Schema.of({"id": "BIGINT NOT NULL", "day": "DATE"}, options=options)
        life = cls(lake.create_table(name, schema), random, (ID, DAY))
        life.note()
        return life

    @property
    def version(self) -> int:
        return self.table.state.version

    def live(self, before: Callable[[str], None]) -> None:
        """Let one thing happen.

        Args:
            before: Called with its name.
        """
        happening = self.random.choice(self.happenings)
        if len(self.files) > _KEPT_FILES and happening in ("append", "roll_back"):
            happening = "rewrite"
        before(happening)
        getattr(self, happening)()
        self.note()

    def note(self) -> None:
        """Remember what is current now."""
        self.moments[self.version] = self.files, self.columns

    def rows_at(self, version: int) -> list[dict[str, Any]]:
        """Return what the rows have to be right after a version."""
        return self.rows_of(*self.moments[version])

    def append(self, *, has_ids: bool | None = None) -> None:
        """Write a file, now seldom and now often without field ids."""
        share = _NAMED[self.version // _TURN % 2]
        super().append(has_ids=self.random.random() >= share if has_ids is None else has_ids)

    def overwrite(self) -> None:
        """Replace a day's files, whatever spec they are of."""
        day = self.random.choice(DAYS)
        row = row_of(self.columns, self.random) | {0: next(self._ids), -1: day}
        self._replace("OVERWRITE", [each for each in self.files if each.day == day], [row], day)

    def rewrite(self) -> None:
        """Put a day's rows into one file with field ids, so that names can be free again."""
        day = self.random.choice(DAYS)
        gone = [each for each in self.files if each.day == day]
        rows = [with_collections(self.columns, row) for each in gone for row in each.rows]
        if rows:
            self._replace("COMPACT", gone, rows, day)

    def _replace(self, kind: CommitKind, gone: list[File], rows: list[Any], day: dt.date) -> None:
        file = self._write(rows, day)
        added = self.table.data_files([self._path(file)])
        plan = SnapshotPlan(kind, added, delete=tuple(each.path for each in gone))
        self.table.commit_snapshot(plan)
        self._snapshot((*(each for each in self.files if each not in gone), file))

    def expire(self) -> None:
        """Let all snapshots but the newest go, so that names are free again."""
        state = self.table.state
        if state.last_snapshot_id > state.earliest_snapshot_id:
            newest = max(state.earliest_snapshot_id + 1, state.last_snapshot_id - 3)
            first = self.random.randint(newest, state.last_snapshot_id)
            self.table.expire_snapshots(before=first)
            self._forget()

    def swap(self) -> None:
        """Give two columns each other's name in one commit."""
        path, level = self._level()
        changing = [each for each in level if each.name in NAMES]
        if len(changing) < 2:
            path, level = (), self.columns
            changing = [each for each in level if each.name in NAMES]
        if len(changing) < 2:
            return
        one, other = self.random.sample(changing, 2)
        above = steps(path)
        pairs = (one.name, "between"), (other.name, one.name), ("between", other.name)
        renames: list[SchemaChange] = [RenameColumn((*above, old), new) for old, new in pairs]
        names = {one.key: other.name, other.key: one.name}
        swapped = tuple(evolve(each, name=names.get(each.key, each.name)) for each in level)
        self._alter(renames, replaced(self.columns, path, swapped))

    def retake(self) -> None:
        """Let a new column have the name of one that goes in the same commit."""
        path, level = self._level()
        changing = [each for each in level if each.name in NAMES]
        if not changing:
            return
        gone = self.random.choice(changing)
        new = self._column(gone.name, is_flat=bool(path))
        place = (*steps(path), gone.name)
        rest = (*(each for each in level if each is not gone), new)
        changes: list[SchemaChange] = [DropColumn(place), AddColumn(place, wire(new))]
        self._alter(changes, replaced(self.columns, path, rest))

    def _alter(self, changes: list[SchemaChange], columns: Columns) -> bool:
        # A refusal reads much: what is bound to be refused is asked now and then.
        if self.clashes(columns) and self.random.random() < _SPARED:
            return False
        return super()._alter(changes, columns)

    def spec(self) -> None:
        """Add or remove a partition field of the day."""
        transform = self.random.choice(_TRANSFORMS)
        there = {each.transform for each in self.table.state.spec.fields}
        change = (
            RemovePartitionField(source=("day",), transform=transform)
            if transform in there
            else AddPartitionField(("day",), transform)
        )
        self._lay_out(UpdatePartitionSpec(updates=(change,)))

    def order(self) -> None:
        """Sort by something else, or by nothing."""
        columns = self.random.sample(("id", "day"), self.random.randrange(3))
        keys = (SortColumn((each,), direction="desc", null_order="nulls-last") for each in columns)
        self._lay_out(ReplaceSortOrder(tuple(keys)))

    def _lay_out(self, change: UpdatePartitionSpec | ReplaceSortOrder) -> None:
        try:
            self.table.alter([change])
        except InvalidChangeError:
            self.refused += 1
