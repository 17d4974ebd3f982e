"""Audit report: one self-contained HTML page about a table or a ledger.

The page stays small for any length of history: the newest changes are listed one by one, and older
ones summarized by month, author and kind.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import define, evolve, field, frozen

from ledger.audit.cause import Cause
from ledger.audit.column_history import (
    ColumnHistories,
    ColumnHistory,
    RequestedHistories,
)
from ledger.audit.entries import Entry
from ledger.audit.snapshot_list import MOST_SNAPSHOTS, SnapshotList, SnapshotRow, is_expired
from ledger.decide.operations import in_words
from ledger.events import TableEvent
from ledger.events.commit import Commit
from ledger.events.snapshots import BranchCommitted
from ledger.model.extras import missing_extra_error
from ledger.model.messages import moment, printable_line, size
from ledger.model.names import quote_path
from ledger.model.schema import Schema, paths_of
from ledger.model.types import type_places
from ledger.model.types.text import format_type
from ledger.state.table import TableState

if TYPE_CHECKING:
    from jinja2 import Template


NEWEST: Final = 400
"""Number of newest changes that are listed one by one."""

MOST_COLUMNS: Final = 120
MOST_SCHEMAS: Final = 25
MOST_SCHEMA_COLUMNS: Final = 1_500
MOST_PARTITIONS: Final = 40
MOST_POINTS: Final = 300
MOST_EVENTS: Final = 12
LONGEST_TEXT: Final = 300


def text(given: object) -> str:
    """Return an untrusted text, made `printable_line` and truncated.

    Example:
        >>> text("a" + chr(27) + "b")
        'a?b'
    """
    shown = printable_line(str(given)[: LONGEST_TEXT + 1])
    return shown if len(shown) <= LONGEST_TEXT else shown[:LONGEST_TEXT] + " ..."


@frozen
class TimelineChange:
    """One transaction on the timeline."""

    table: str
    version: int
    time: str
    author: str
    message: str
    events: tuple[str, ...]
    more: int


@frozen
class MonthSummary:
    """Summary of a month of older history."""

    month: str
    count: int
    people: str
    kinds: str


@frozen
class NamedTime:
    """Segment of a bar: a period under one name, in per mille of the whole time.

    Attributes:
        name: The column's name; empty while it was dropped.
        left: The begin.
        width: The length.
        who: The name or the drop, with its author, in words.
        kind: `name`, `other` for every second name, `gap` while the column was dropped.
    """

    name: str
    left: float
    width: float
    who: str
    kind: str


@frozen
class Bar:
    """Bar of a column on the timeline, from its creation to its drop."""

    path: str
    field_id: int
    is_alive: bool
    parts: tuple[NamedTime, ...]
    words: str


@frozen
class SchemaPoint:
    """The schema at one point in time."""

    schema_id: int
    time: str
    columns: tuple[tuple[int, str, str, str, str], ...]
    has_defaults: bool
    has_comments: bool


@frozen
class PartitionRow:
    """A partition with its numbers of rows, files and bytes."""

    path: str
    rows: int
    files: int
    bytes: str
    share: float


@frozen
class Curve:
    """Growth of a number: corners of steps in a box of 1,000 by 200, and the maximum."""

    name: str
    points: str
    last: str
    greatest: str


@define
class TransactionStatistics:
    """Statistics of transactions, collected in one pass over a log.

    Attributes:
        changes: The newest transactions, oldest first.
        periods: The older ones, by month.
        people: Number of changes by author.
        kinds: Number of events by kind.
        total: Number of transactions.
        greatest: The greatest numbers of rows and files of main.
    """

    changes: deque[Entry] = field(factory=lambda: deque(maxlen=NEWEST))
    months: dict[str, tuple[Counter[str], Counter[str]]] = field(factory=dict)
    people: Counter[str] = field(factory=Counter)
    kinds: Counter[str] = field(factory=Counter)
    total: int = 0
    growth: list[tuple[int, int, int]] = field(factory=list)
    rows: int = 0
    files: int = 0
    greatest: tuple[int, int] = (0, 0)

    def take(self, entry: Entry) -> None:
        """Add the next entry."""
        if len(self.changes) == NEWEST:
            self.summarise(self.changes[0])
        self.changes.append(entry)
        self.total += 1
        self.people[entry.transaction.author or "(nobody)"] += 1
        self.kinds.update(entry.kinds)
        rows, files = _main_growth(entry)
        if rows or files:
            self.rows += rows
            self.files += files
            self.greatest = max(self.greatest[0], self.rows), max(self.greatest[1], self.files)
            self.growth.append((entry.time_millis, self.rows, self.files))
            if len(self.growth) > 2 * MOST_POINTS:
                # The newest point is always kept.
                self.growth = [*self.growth[:-1:2], self.growth[-1]]

    def summarise(self, entry: Entry) -> None:
        """Count an entry that is not listed by itself."""
        month = moment(entry.time_millis)[: len("2013-01")]
        people, kinds = self.months.setdefault(month, (Counter(), Counter()))
        people[entry.transaction.author or "(nobody)"] += 1
        kinds.update(entry.kinds)


def _main_growth(entry: Entry) -> tuple[int, int]:
    """Return the growth of main in rows and files; files of branches do not count."""
    if any(isinstance(each, BranchCommitted) for each in entry.transaction.events):
        return 0, 0
    return entry.sums[:2]


def timeline_change(entry: Entry) -> TimelineChange:
    """Return an entry in the form of the timeline."""
    words = [*map(in_words, entry.transaction.events[:MOST_EVENTS])]
    return TimelineChange(
        text(entry.label),
        entry.version,
        moment(entry.time_millis),
        text(entry.transaction.author),
        text(entry.transaction.message),
        tuple(map(text, words)),
        max(0, len(entry.transaction.events) - MOST_EVENTS),
    )


def older_months(gathered: TransactionStatistics) -> tuple[MonthSummary, ...]:
    """Return the older history by month, newest first."""
    return tuple(
        MonthSummary(month, sum(people.values()), _format_counts(people), _format_counts(kinds))
        for month, (people, kinds) in sorted(gathered.months.items(), reverse=True)
    )


def _format_counts(counts: Counter[str]) -> str:
    most = ", ".join(f"{text(name)} {count:,}" for name, count in counts.most_common(4))
    return f"{most}, ..." if len(counts) > 4 else most  # noqa: PLR2004


def column_bars(histories: ColumnHistories, begin: int, end: int) -> tuple[Bar, ...]:
    """Return the bars of columns: current ones in their order, then dropped ones."""
    order = {key: at for at, key in enumerate(histories.top_level().ids)}
    found = sorted(histories.by_id.values(), key=lambda each: _bar_sort_key(each, order))
    return tuple(_column_bar(each, begin, max(end, begin + 1)) for each in found[:MOST_COLUMNS])


def _bar_sort_key(
    history: ColumnHistory, order: dict[int, int]
) -> tuple[bool, int, tuple[str, ...]]:
    outer = history
    while outer.parent is not None:
        outer = outer.parent
    gone = -(history.died.version if history.died else 0)
    return history.died is not None, gone or order.get(outer.field_id, 0), history.path


def _column_bar(history: ColumnHistory, begin: int, end: int) -> Bar:
    def place(millis: int) -> float:
        return round(1000 * (millis - begin) / (end - begin), 1)

    def part(name: str, since: int, until: int, words: str, kind: str) -> NamedTime:
        left = min(place(since), 998.0)
        return NamedTime(text(name), left, max(2.0, round(place(until) - left, 1)), words, kind)

    return Bar(
        text(quote_path(history.path)),
        history.field_id,
        history.died is None,
        tuple(part(*each) for each in _periods(history, end)),
        text(_history_text(history)),
    )


def _periods(history: ColumnHistory, end: int) -> Iterator[tuple[str, int, int, str, str]]:
    """Yield the periods of a column: its names, and the times while it was dropped."""
    last = end if history.died is None else history.died.time_millis
    drops = {id(back): drop for drop, back in history.gaps}
    names = [*history.names]
    kinds, kind, previous = ("name", "other"), 1, ""
    following: list[Cause | None] = [*(cause for _, cause in names[1:]), None]
    for (name, cause), after in zip(names, following, strict=True):
        until = last if after is None else after.time_millis
        drop = None if after is None else drops.get(id(after))
        words = text(f"{name}: since {moment(cause.time_millis)}, by {cause.author}")
        stop = until if drop is None else drop.time_millis
        if name != previous:
            kind, previous = 1 - kind, name
        yield name, cause.time_millis, stop, words, kinds[kind]
        if drop is not None and after is not None:
            yield "", stop, until, text(_gap_text(drop, after)), "gap"


def _gap_text(drop: Cause, back: Cause) -> str:
    return (
        f"dropped {moment(drop.time_millis)} by {drop.author}, "
        f"restored {moment(back.time_millis)} by {back.author}"
    )


def _history_text(history: ColumnHistory) -> str:
    words = [f"since {moment(history.added.time_millis)} by {history.added.author}"]
    earlier = [name for name, _ in history.names if name != history.name]
    if earlier:
        words.append("before: " + ", ".join([*dict.fromkeys(earlier)][-5:]))
    if history.gap_count > len(history.gaps):
        words.append(f"dropped and restored {history.gap_count} times")
    words += [_gap_text(drop, back) for drop, back in [*history.gaps][-3:]]
    if history.died is not None:
        words.append(f"dropped {moment(history.died.time_millis)} by {history.died.author}")
    return "; ".join(words)


def newest_schemas(schemas: Iterable[Schema]) -> tuple[SchemaPoint, ...]:
    """Return the newest schemas, up to the limit of the page."""
    found: list[SchemaPoint] = []
    room = MOST_SCHEMA_COLUMNS
    for schema in islice(schemas, MOST_SCHEMAS):
        columns = tuple(
            (
                each.field.id,
                text(each.name),
                text(format_type(each.type)),
                text(each.field.default_value or ""),
                text(each.field.description or ""),
            )
            for each in type_places(schema.fields)
            if each.field is not None
        )
        room -= len(columns)
        if found and room < 0:
            break
        shown = columns[:500]
        *_, defaults, comments = zip(*shown, strict=True) if shown else ((), ())
        found.append(
            SchemaPoint(schema.id, moment(schema.time_millis), shown, any(defaults), any(comments))
        )
    return tuple(found)


def largest_partitions(counted: dict[str, tuple[int, int, int]]) -> tuple[PartitionRow, ...]:
    """Return the largest partitions by bytes."""
    greatest = sorted(counted.items(), key=lambda each: -each[1][2])[:MOST_PARTITIONS]
    most = max((length for _, (_, _, length) in greatest), default=0) or 1
    return tuple(
        PartitionRow(text(path), rows, files, size(length), round(100 * length / most, 1))
        for path, (rows, files, length) in greatest
    )


def growth_curves(
    growth: Sequence[tuple[int, int, int]], greatest: tuple[int, int] = (0, 0)
) -> tuple[Curve, ...]:
    """Return the growth of rows and files as steps: a number holds until the next change.

    Args:
        growth: Time, rows and files after each change, oldest first.
        greatest: Greatest numbers of rows and files, if `growth` leaves changes out.
    """
    if len(growth) < 2:  # noqa: PLR2004
        return ()
    every = -(-2 * len(growth) // MOST_POINTS)
    # The last point is always included, and only once.
    shown = [*growth[:-1:every], growth[-1]]
    return tuple(
        _growth_curve(name, [(each[0], each[at + 1]) for each in shown], greatest[at])
        for at, name in enumerate(("rows", "files"))
    )


def _growth_curve(name: str, points: Sequence[tuple[int, int]], greatest: int) -> Curve:
    begin, end = points[0][0], max(points[-1][0], points[0][0] + 1)
    most = max(1, greatest, *(value for _, value in points))
    corners: list[str] = []
    height = ""
    for at, value in points:
        x, before = f"{1000 * (at - begin) / (end - begin):.1f}", height
        height = f"{200 - 200 * max(value, 0) / most:.1f}"
        corners += [f"{x},{each}" for each in (before, height) if each]
    shown = " ".join(corner for corner, _ in groupby(corners))
    return Curve(name, shown, f"{points[-1][1]:,}", f"{most:,}")


Sums = tuple[int, int, int]


def table_page(
    name: str,
    state: TableState,
    commits: Iterable[Commit[TableEvent]],
    schemas: Iterable[Schema],
    partitions: Mapping[str, Sums],
) -> str:
    """Return the audit page of one table as HTML.

    Args:
        name: The table's full name.
        state: The table's current state.
        commits: All of its commits, oldest first; consumed once.
        schemas: Its schemas, newest first; consumed up to the limit of the page.
        partitions: Rows, files and bytes of each partition; read after the commits.

    Raises:
        MissingDependencyError: jinja2 is not installed.
    """
    template = _load_template()
    there = frozenset(key for _, key in paths_of(state.schema))
    gathered, histories = (
        TransactionStatistics(),
        ColumnHistories(RequestedHistories(ids=there, newest=MOST_COLUMNS)),
    )
    snapshots = SnapshotList()
    for commit in commits:
        histories.take((commit,))
        for transaction in commit.transactions:
            entry = Entry("", commit, transaction)
            gathered.take(entry)
            snapshots.take(entry)
    begin = state.created_at
    points = newest_schemas(schemas)
    bars = column_bars(histories, begin, state.updated_at)
    found: dict[str, Any] = {
        "bars": bars,
        "more_columns": histories.count - len(bars),
        "begin": moment(begin),
        "end": moment(state.updated_at),
        "comment": text(state.schema.comment or ""),
        "curves": growth_curves(_whole_growth(gathered, state), gathered.greatest),
        "partitions": largest_partitions(dict(partitions)),
        "more_partitions": max(0, len(partitions) - MOST_PARTITIONS),
        "snapshots": [*map(_snapshot_cells, snapshots.rows(state))],
        "more_snapshots": max(0, snapshots.count - MOST_SNAPSHOTS),
        "tags": _tag_rows(state),
        "schemas": points,
        "more_schemas": max(0, state.schema.id + 1 - len(points)),
        "facts": [
            ("version", f"{state.version:,}"),
            ("changes", f"{gathered.total:,}"),
            ("columns", f"{len(state.schema.fields):,}"),
            ("rows", f"{state.totals.record_count:,}"),
            ("files", f"{state.totals.file_count:,}"),
            ("size", size(state.totals.file_size_in_bytes)),
            ("created (UTC)", moment(state.created_at)),
            ("by", text(state.created_by)),
            ("most changes by", _most_frequent_authors(gathered.people)),
        ],
    }
    return _render_page(template, name, gathered, moment(state.updated_at), found)


def ledger_page(
    name: str, entries: Iterable[Entry], tables: Iterable[tuple[str, TableState]], as_of: str
) -> str:
    """Return the audit page of a whole ledger as HTML.

    Args:
        name: The ledger's name for the title.
        entries: All entries of all streams, newest first; consumed once.
        tables: Each table and its state.
        as_of: The time of the newest included change.

    Raises:
        MissingDependencyError: jinja2 is not installed.
    """
    template = _load_template()
    gathered = TransactionStatistics()
    newest: list[Entry] = []
    for entry in entries:
        # The newest entries come first: these are listed and the rest is counted.
        gathered.total += 1
        gathered.people[entry.transaction.author or "(nobody)"] += 1
        if len(newest) < NEWEST:
            newest.append(entry)
        else:
            gathered.summarise(entry)
    gathered.changes.extend(reversed(newest))
    rows = [_table_row(each, state) for each, state in tables]
    found: dict[str, Any] = {
        "tables": rows,
        "facts": [
            ("tables", f"{len(rows):,}"),
            ("changes", f"{gathered.total:,}"),
            ("most changes by", _most_frequent_authors(gathered.people)),
        ],
    }
    return _render_page(template, name, gathered, as_of, found)


def _render_page(
    template: Template,
    name: str,
    gathered: TransactionStatistics,
    as_of: str,
    found: Mapping[str, Any],
) -> str:
    anchors = {
        "tables": "tables",
        "bars": "columns",
        "curves": "growth",
        "partitions": "partitions",
        "schemas": "schemas",
    }
    sections = [(anchor, anchor) for key, anchor in anchors.items() if found.get(key)]
    if found.get("snapshots") or found.get("tags"):
        sections.append(("snapshots", "snapshots"))
    return template.render(
        {
            "title": text(name),
            "subtitle": f"Who changed what, when and why; as of {as_of} UTC",
            "as_of": f"{as_of} UTC",
            "sections": [*sections, ("changes", "changes")],
            "changes": [timeline_change(each) for each in reversed(gathered.changes)],
            "periods": older_months(gathered),
            **found,
        }
    )


def _whole_growth(gathered: TransactionStatistics, state: TableState) -> list[tuple[int, int, int]]:
    """Return the growth from the table's creation, without rows, to its newest version."""
    if not gathered.growth:
        return []
    first, last = gathered.growth[0], gathered.growth[-1]
    begin = [(state.created_at, 0, 0)] if state.created_at < first[0] else []
    now = [(state.updated_at, *last[1:])] if state.updated_at > last[0] else []
    return [*begin, *gathered.growth, *now]


def _snapshot_cells(row: SnapshotRow) -> SnapshotRow:
    return evolve(row, text=text(row.text), author=text(row.author), status=text(row.status))


def _tag_rows(state: TableState) -> list[tuple[str, str, int, str]]:
    return [
        (
            text(ref.name),
            ref.ref_type,
            ref.snapshot_id,
            "keeps an expired snapshot" if is_expired(ref.snapshot_id, state) else "",
        )
        for ref in state.refs
    ]


def _table_row(name: str, state: TableState) -> dict[str, Any]:
    return {
        "name": text(name),
        "columns": f"{len(state.schema.fields):,}",
        "rows": f"{state.totals.record_count:,}",
        "files": f"{state.totals.file_count:,}",
        "version": f"{state.version:,}",
        "time": moment(state.updated_at),
        "author": text(state.updated_by),
    }


def _name_parts(name: str) -> list[str]:
    """Split a name behind its dots and underscores, where a browser may break it."""
    return re.findall(r"[^._]*[._]+|[^._]+", name)


def _most_frequent_authors(people: Counter[str]) -> str:
    return ", ".join(text(name) for name, _ in people.most_common(3)) or "nobody"


@lru_cache(maxsize=1)
def _load_template() -> Template:
    try:
        from jinja2 import Environment
    except ImportError as error:
        raise missing_extra_error("the audit page needs jinja2", "report") from error
    environment = Environment(autoescape=True)
    environment.filters["name_parts"] = _name_parts
    source = (Path(__file__).parent / "page.html.jinja").read_text("utf-8")
    return environment.from_string(source)
