"""Views of the history of a table: its changes, blame, and the difference of two instants."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, get_args

from attrs import evolve, field, frozen

from ledger.audit.blame import blame_column, blame_columns, blame_settings, flatten_blames
from ledger.audit.difference import DiffRow
from ledger.audit.entries import Entry, EntryFilter, entries, make_entry_filter
from ledger.audit.report import Bar, column_bars, text, timeline_change
from ledger.events import TableEvent
from ledger.events.commit import kind_of
from ledger.model.names import parse_column_path
from ledger.table import Table
from ledger.table_handle import TableHandle, handle_of
from projections.rest.page.queries import Deadline, PageQuery

CHANGES_OF_A_PAGE: Final = 50
MOST_CHANGES: Final = 200
"""Number of changes of a page at which a commit of many transactions is cut."""

VERSIONS_AT_ONCE: Final = 5_000
"""Number of versions that are searched between two looks at the deadline."""

MOST_BLAMED: Final = 400
MOST_BARS: Final = 40
MOST_DIFFERENCES: Final = 500
_MOST_KINDS: Final = 3

KINDS: Final = tuple(sorted({kind_of(each) for each in get_args(TableEvent)}))
"""Kinds of events of tables, as `type` names them in the log."""

_REMOVALS: Final = ("drop", "delete", "expire", "rollback", "rolledBack", "remove")


@frozen
class ChangeRow:
    """A transaction in a list of changes.

    Attributes:
        version: Version of its commit.
        time_millis: Its effective time.
        author: Its author.
        message: Its message.
        events: Its events in words, up to a limit.
        more: Number of events beyond it.
        kinds: The different kinds of its events, up to a limit, each with True for a removal.
        rows: Change of the number of rows.
        files: Change of the number of files.
    """

    version: int
    time_millis: int
    author: str
    message: str
    events: tuple[str, ...]
    more: int
    kinds: tuple[tuple[str, bool], ...]
    rows: int
    files: int

    @classmethod
    def of(cls, entry: Entry) -> ChangeRow:
        """Return the row of an entry."""
        shown = timeline_change(entry)
        kinds = [*dict.fromkeys(entry.kinds)][:_MOST_KINDS]
        rows, files, _ = entry.sums
        return cls(
            entry.version,
            entry.time_millis,
            shown.author,
            shown.message,
            shown.events,
            shown.more,
            tuple((each, each.startswith(_REMOVALS)) for each in kinds),
            rows,
            files,
        )


@frozen
class HistoryView:
    """A page of a table's changes.

    Attributes:
        changes: The changes, newest first.
        column: The column that they changed; empty for all.
        author: A part of their author; empty for all.
        kind: A kind of their events; empty for all.
        kinds: The kinds that can be chosen.
        before: The version before which the next page begins; None on the last page.
        is_cut: True if the time was over before the page was full.
        large: A version of which not all changes are shown; None if there is none.
    """

    changes: tuple[ChangeRow, ...]
    column: str
    author: str
    kind: str
    before: int | None
    is_cut: bool
    large: int | None
    kinds: tuple[str, ...] = KINDS


def newest_changes(handle: TableHandle, last: int, count: int) -> tuple[ChangeRow, ...]:
    """Return the newest changes up to a version."""
    found = entries(handle.log, "", EntryFilter(last=last))
    return tuple(ChangeRow.of(each) for each in islice(found, count))


def history_view(handle: TableHandle, query: PageQuery, deadline: Deadline) -> HistoryView:
    """Return a page of a table's changes, filtered by column, author and kind.

    Raises:
        ColumnNotFoundError: No column ever had that path.
        RequestError, InvalidInputError: A parameter is out of bounds, or no path of a column.
    """
    column, author = query.text("column"), query.text("author")
    kind, before = query.one_of("kind", KINDS), query.whole("before")
    newest = handle.state.version
    wanted = make_entry_filter(
        now_millis=handle.setting.now_millis(),
        author=author or None,
        kinds=[kind] if kind else [],
        column_id=handle.column_id(parse_column_path(column)) if column else None,
    )
    last = newest if before is None else min(newest, before - 1)
    search = _Search(handle, wanted, deadline)
    changes = (*search.changes(last),)
    return HistoryView(changes, column, author, kind, search.before, search.is_cut, search.large)


class _Search:
    """Search for the changes of one page, which ends when it is full or the time is over."""

    def __init__(self, handle: TableHandle, wanted: EntryFilter, deadline: Deadline) -> None:
        self._table = handle
        self._wanted = wanted
        self._deadline = deadline
        self.before: int | None = None
        self.is_cut = False
        self.large: int | None = None

    def changes(self, last: int) -> Iterator[ChangeRow]:
        """Yield the changes of the page, newest first; those of a large commit up to a limit."""
        count, previous = 0, -1
        for entry in self._entries(last):
            is_new = entry.version != previous
            if count >= (CHANGES_OF_A_PAGE if is_new else MOST_CHANGES):
                self.before = previous
                self.large = None if is_new else previous
                return
            count, previous = count + 1, entry.version
            yield ChangeRow.of(entry)

    def _entries(self, last: int) -> Iterator[Entry]:
        # Changes of a column are found by one pass over the log, however few versions are wanted.
        at_once = last + 1 if self._wanted.column_id is not None else VERSIONS_AT_ONCE
        while last >= 0:
            first = max(0, last - at_once + 1)
            yield from entries(self._table.log, "", evolve(self._wanted, first=first, last=last))
            last = first - 1
            if last >= 0 and self._deadline.is_over:
                self.before, self.is_cut = first, True
                return


@frozen
class BlameRow:
    """An aspect of a column or a setting, and the commit that set its current value."""

    subject: str
    aspect: str
    value: str
    version: int
    time_millis: int
    author: str
    message: str
    repeats: int


@frozen
class BlameView:
    """Blame of a table, or of one column.

    Attributes:
        column: The column; empty for all columns and settings.
        rows: The aspects, up to a limit.
        more: Number of aspects beyond it.
        bars: The columns through time.
        begin_millis: Begin of the bars.
        end_millis: End of the bars.
    """

    column: str
    rows: tuple[BlameRow, ...]
    more: int
    bars: tuple[Bar, ...] = field(repr=False)
    begin_millis: int
    end_millis: int


def blame_view(handle: TableHandle, query: PageQuery) -> BlameView:
    """Return the commits that set the current columns and settings, or one column.

    Raises:
        ColumnNotFoundError: No column ever had that path.
        RequestError, InvalidInputError: A parameter is out of bounds, or no path of a column.
    """
    column = query.text("column")
    path = parse_column_path(column) if column else ()
    state = handle.state
    histories = handle.column_histories_of(path)
    if path:
        blames = [blame_column(histories, path)]
        bars: tuple[Bar, ...] = ()
    else:
        blames = [*blame_columns(histories), *blame_settings(histories)]
        bars = column_bars(histories, state.created_at, state.updated_at)[:MOST_BARS]
    rows = [
        BlameRow(
            text(blame.subject),
            text(each.aspect),
            text("" if each.value is None else each.value),
            each.cause.version,
            each.cause.time_millis,
            text(each.cause.author),
            text(each.cause.message),
            each.repeats,
        )
        for blame in flatten_blames(blames)
        for each in blame.origins
    ]
    more = max(0, len(rows) - MOST_BLAMED)
    shown = tuple(rows[:MOST_BLAMED])
    return BlameView(column, shown, more, bars, state.created_at, state.updated_at)


@frozen
class DiffView:
    """Difference of two instants of a table.

    Attributes:
        before: Text of the first instant, for the form.
        after: Text of the second one.
        span: Both in words.
        rows: The differences, up to a limit.
        more: Number of differences beyond it.
        newest: The newest version.
    """

    before: str
    after: str
    span: str
    rows: tuple[DiffRow, ...]
    more: int
    newest: int


def diff_view(table: Table, query: PageQuery) -> DiffView:
    """Return the difference of two instants; of the newest version and the one before by default.

    Raises:
        InvalidInputError, NotFoundError: A text is not an instant, or it does not exist.
        RequestError: A parameter is too long.
    """
    newest = handle_of(table).state.version
    before = query.text("before") or f"version:{max(0, newest - 1)}"
    after = query.text("after") or f"version:{newest}"
    found = table.diff(table.at(before), table.at(after))
    rows = found.rows
    shown = tuple(
        evolve(
            each,
            what=text(each.what),
            before=None if each.before is None else text(each.before),
            after=None if each.after is None else text(each.after),
        )
        for each in rows[:MOST_DIFFERENCES]
    )
    more = max(0, len(rows) - MOST_DIFFERENCES)
    return DiffView(before, after, text(found.span), shown, more, newest)
