"""Views of a ledger: its databases, the tables of one, and a search by name.

The catalog's state answers them; only the tables of one page are opened.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import islice
from typing import Final

from attrs import frozen

from ledger.audit.entries import EntryFilter, entries
from ledger.audit.report import text
from ledger.model.errors import LedgerError
from ledger.model.messages import size
from ledger.model.names import Identifier
from ledger.state.catalog import CatalogState
from projections.rest.page.history_views import ChangeRow
from projections.rest.page.queries import Deadline, ListPage, PageQuery, page_of
from projections.rest.served_ledger import ServedLedger

DATABASES_OF_A_PAGE: Final = 100
TABLES_OF_A_PAGE: Final = 50
MOST_FOUND: Final = 100
MOST_OTHERS: Final = 100
NEWEST_CHANGES: Final = 8


@frozen
class DatabaseSummary:
    """A database in the list."""

    name: str
    tables: int
    views: int
    functions: int
    created_millis: int
    created_by: str


@frozen
class LedgerOverview:
    """The first page.

    Attributes:
        url: Root of the ledger.
        databases: The databases of the page.
        position: The page of the list.
        tables: Number of tables.
        version: Version of the catalog; -1 before its first commit.
        search: The text that was searched for; empty if none was.
        found: Tables whose name contains it, up to a limit.
        found_count: Number of all of them.
        changes: The newest changes of the catalog.
    """

    url: str
    databases: tuple[DatabaseSummary, ...]
    position: ListPage
    tables: int
    version: int
    search: str
    found: tuple[Identifier, ...]
    found_count: int
    changes: tuple[ChangeRow, ...]


@frozen
class TableSummary:
    """A table in the list of its database.

    Attributes:
        identifier: The table.
        facts: Columns, rows, files, bytes as text and version; None if it was not read.
        updated_millis: Time of its newest change.
        updated_by: Author of its newest change.
        problem: The reason why it could not be read; empty if it could.
    """

    identifier: Identifier
    facts: tuple[int, int, int, str, int] | None
    updated_millis: int
    updated_by: str
    problem: str = ""


@frozen
class DatabaseView:
    """The page of one database.

    Attributes:
        name: Its name.
        options: Its options.
        search: The text that the names of the tables contain; empty for all.
        tables: The tables of the page.
        position: The page of the list.
        views: Names of its views, up to a limit.
        functions: Names of its functions, up to a limit.
        others: Number of all of its views and functions.
    """

    name: str
    options: tuple[tuple[str, str], ...]
    search: str
    tables: tuple[TableSummary, ...]
    position: ListPage
    views: tuple[str, ...]
    functions: tuple[str, ...]
    others: int


def ledger_overview(served: ServedLedger, query: PageQuery) -> LedgerOverview:
    """Return the first page of a ledger.

    Raises:
        NotFoundError: There is no ledger.
        RequestError: A parameter is out of bounds.
    """
    served.handle.refuse_missing()
    state = served.state
    search = query.text("q")
    found = _tables_named_like(state, search) if search else []
    position, names = page_of(sorted(state.databases), query.page(), DATABASES_OF_A_PAGE)
    return LedgerOverview(
        served.handle.url,
        _database_summaries(served, names),
        position,
        len(state.tables),
        state.version,
        search,
        tuple(found[:MOST_FOUND]),
        len(found),
        _newest_changes(served),
    )


def _newest_changes(served: ServedLedger) -> tuple[ChangeRow, ...]:
    log = served.handle.log
    if log.head is None:
        return ()
    newest = islice(entries(log, "", EntryFilter()), NEWEST_CHANGES)
    return tuple(map(ChangeRow.of, newest))


def _tables_named_like(state: CatalogState, search: str) -> list[Identifier]:
    part = search.casefold()
    found = [each for each in state.tables if part in str(each).casefold()]
    return sorted(found, key=str)


def _database_summaries(served: ServedLedger, names: Sequence[str]) -> tuple[DatabaseSummary, ...]:
    state = served.state
    tables = Counter(each.database for each in state.tables)
    views = Counter(each.database for each in state.views)
    functions = Counter(each.database for each in state.functions)
    audits = {name: served.handle.log.personal.named(state.databases[name].audit) for name in names}
    return tuple(
        DatabaseSummary(
            name, tables[name], views[name], functions[name], audit.created_at, audit.created_by
        )
        for name, audit in audits.items()
    )


def database_view(
    served: ServedLedger, name: str, query: PageQuery, deadline: Deadline
) -> DatabaseView:
    """Return the page of a database.

    Raises:
        NotFoundError: It does not exist; the message names similar ones.
        RequestError: A parameter is out of bounds.
    """
    state = served.state
    database = state.database(name)
    search = query.text("q")
    part = search.casefold()
    named = (each for each in state.tables if each.database == name)
    names = sorted((each for each in named if part in each.name.casefold()), key=str)
    position, shown = page_of(names, query.page(), TABLES_OF_A_PAGE)
    views = sorted(each.name for each in state.views if each.database == name)
    functions = sorted(each.name for each in state.functions if each.database == name)
    return DatabaseView(
        name,
        tuple((text(key), text(value)) for key, value in sorted(database.options.items())),
        search,
        tuple(_table_summary(served, each, deadline) for each in shown),
        position,
        tuple(views[:MOST_OTHERS]),
        tuple(functions[:MOST_OTHERS]),
        len(views) + len(functions),
    )


def _table_summary(
    served: ServedLedger, identifier: Identifier, deadline: Deadline
) -> TableSummary:
    if deadline.is_over:
        return TableSummary(identifier, None, 0, "", "not read in time")
    try:
        handle = served.table(identifier)
        if handle is None:
            return TableSummary(identifier, None, 0, "", "dropped meanwhile")
        state = handle.log.personal.named(handle.state)
    except (LedgerError, OSError) as error:
        return TableSummary(identifier, None, 0, "", text(str(error)))
    totals = state.totals
    numbers = totals.record_count, totals.file_count, size(totals.file_size_in_bytes)
    facts = len(state.schema.fields), *numbers, state.version
    return TableSummary(identifier, facts, state.updated_at, text(state.updated_by))


def short_name(url: str) -> str:
    """Return the last part of the root of a ledger, for titles.

    Example:
        >>> short_name("file:///data/lake"), short_name("s3://bucket")
        ('lake', 'bucket')
    """
    return url.rstrip("/").rpartition("/")[2] or url
