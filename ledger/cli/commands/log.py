"""Command `log`."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby, islice
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from attrs import evolve, frozen
from cyclopts import Group, Parameter
from msgspec.structs import replace

from ledger.audit.entries import (
    Entry,
    EntryFilter,
    check_branch,
    entries,
    make_entry_filter,
    merge_entries_by_time,
)
from ledger.cli.changes import parse_column_path
from ledger.cli.exits import UsageError
from ledger.cli.options import LedgerFlags, branches_of, check_one_or_more, read_time, tables_of
from ledger.cli.output import Cell, Document, Screen
from ledger.cli.phrases import phrases, plain, stream_log_of, when
from ledger.events.commit import Commit
from ledger.ledger import Ledger
from ledger.log.request import ASKING_AGAIN, now_millis
from ledger.model.errors import InvalidInputError, LedgerError, NotFoundError, StoreError
from ledger.model.messages import moment, size
from ledger.table import Table
from ledger.table_handle import handle_of

if TYPE_CHECKING:
    from ledger.audit.listings import FoundCommits


COLUMNS = ("version", "time (UTC)", "author", "message", "what happened")

_FILTERS = Group("Filters (all must match)", sort_key=10)
_LOOK_EVERY_S = 1.0


def _check_pattern(_type: Any, pattern: str | None) -> None:
    try:
        re.compile(pattern or "")
    except re.error as error:
        raise ValueError(f"It is no regular expression: {error}.") from error


def _check_kinds(_type: Any, kinds: Sequence[str]) -> None:
    several = next((each for each in kinds if "," in each), "")
    if several:
        repeated = " ".join(f"--kind {each.strip()}" for each in several.split(","))
        raise ValueError(f"Repeat the option: {repeated}.")
    if "" in kinds:
        raise ValueError("A kind of event is not empty; give one, such as addColumn.")
    try:
        make_entry_filter(now_millis=now_millis(), kinds=kinds)
    except InvalidInputError as error:
        raise ValueError(f"{error.message}.") from error


@Parameter(name="*", group=_FILTERS)
@frozen
class LogFilters:
    """Filters of log entries."""

    before: Annotated[int | None, Parameter(help="Only versions before this one; for paging.")] = (
        None
    )
    since: Annotated[str | None, Parameter(help="Only commits since this date or time.")] = None
    until: Annotated[str | None, Parameter(help="Only commits until this date or time.")] = None
    author: Annotated[str | None, Parameter(help="Only commits with this text in the author.")] = (
        None
    )
    kind: Annotated[
        tuple[str, ...],
        Parameter(
            negative="",
            show_default=False,
            validator=_check_kinds,
            help="Only this kind of event, such as addColumn; repeatable.",
        ),
    ] = ()
    grep: Annotated[
        str | None,
        Parameter(
            validator=_check_pattern,
            help="Only commits with a message that matches this regular expression.",
        ),
    ] = None
    column: Annotated[
        str | None,
        Parameter(help="Only changes of this column or its nested fields, across renames."),
    ] = None

    branch: Annotated[
        str | None,
        Parameter(
            show_default=False,
            help="Only commits to this branch, current or deleted; main is the main line.",
            completer=branches_of,
        ),
    ] = None

    def wanted(self, table: Table | None, *, is_catalog: bool) -> EntryFilter:
        """Return the filters as a query of the log.

        Raises:
            UsageError: A column is given without a table, a branch for the catalog alone, or a time
                cannot be parsed.
            NotFoundError: The table never had the branch.
        """
        if self.column is not None and table is None:
            raise UsageError("--column applies to one table; name the table")
        if self.branch is not None and is_catalog:
            raise UsageError("--branch applies to tables; name a table or database, or use --all")
        if table is not None and self.branch is not None:
            check_branch(handle_of(table).log, self.branch)
        column = None
        if table is not None and self.column is not None:
            column = table.column_id(parse_column_path(self.column))
        return make_entry_filter(now_millis=now_millis(), **self.asked(), column_id=column)

    def asked(self) -> dict[str, Any]:
        """Return the filters as arguments of `Ledger.entries`."""
        return {
            "last": None if self.before is None else self.before - 1,
            "since": None if self.since is None else read_time(self.since, date="begin"),
            "until": None if self.until is None else read_time(self.until),
            "author": self.author,
            "kinds": self.kind,
            "message": self.grep,
            "branch": self.branch,
        }


def log(  # noqa: PLR0913 - each is an option
    name: Annotated[
        str | None,
        Parameter(
            help="DATABASE.TABLE, or DATABASE for all its tables; default: the catalog.",
            completer=tables_of,
        ),
    ] = None,
    /,
    *,
    all: Annotated[  # noqa: A002 - the option's name
        bool, Parameter(negative="", help="Catalog and all tables by time, including dropped ones.")
    ] = False,
    limit: Annotated[
        int, Parameter(alias="-n", validator=check_one_or_more, help="Maximum number of commits.")
    ] = 50,
    filters: LogFilters = LogFilters(),
    stat: Annotated[
        bool, Parameter(negative="", help="Show added and removed rows, files and bytes.")
    ] = False,
    follow: Annotated[
        bool, Parameter(negative="", help="Also print new commits until Ctrl-C.")
    ] = False,
    commit_id: Annotated[
        str | None,
        Parameter(show_default=False, help="Only the commit with this id, in NAME or else in any."),
    ] = None,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Show the commit history of a table, a database or the catalog, newest first.

    JSON output has the events as in the log, but without their lists of files. With --output jsonl,
    each commit is one line.

    Example:
        lakeledger log shop.flights --limit 10

        lakeledger log shop.flights --column origin --author ada --since 2013-01-01

        lakeledger log shop.orders --commit-id split-1
    """
    lake = place.open()
    has_table = all or (name is not None and "." not in name)
    shown = _CommitPrinter(place.screen, has_table=has_table, stat=stat)
    if commit_id is not None:
        _print_commit_by_id(lake, name, commit_id, shown)
        return
    only = None if name is None or has_table else lake.table(name)
    wanted = filters.wanted(only, is_catalog=name is None and not all)
    streams = partial(_requested_streams, lake, name, is_all=all)
    # Opened before the commits are read, so that no commit is missed in between.
    sources = streams() if follow else []
    heads = {_stream_path(each): each.state.version for each in sources}
    of_tables = partial(lake.entries, name, **filters.asked())
    found = of_tables() if has_table else _entries_of_stream(_refreshed(only or lake), wanted)
    commits = _group_by_commit(found)
    newest = list(islice(commits, limit))
    if follow:
        with suppress(KeyboardInterrupt):
            shown.print(newest)
            _print_new_commits(streams, sources, heads, wanted, shown)
        return
    shown.print(newest)
    if not newest:
        place.screen.notice("no commit matches; `lakeledger log --help` lists the filters")
    if next(commits, None) is not None:
        shown.print_way_to_older(newest[-1].commit.version, limit)
    if only is not None:
        warn_stale_projections(only, place.screen)


def warn_stale_projections(table: Table, screen: Screen) -> None:
    """Print on stderr which projections of a table are behind its log."""
    for each in table.freshness():
        if each.behind or each.problem is not None:
            screen.notice(f"the {each.format} files of {table.identifier} are at {each}")


def _requested_streams(lake: Ledger, name: str | None, *, is_all: bool) -> Sequence[Ledger | Table]:
    """Return the requested streams.

    Raises:
        NotFoundError: The database or table does not exist.
    """
    if name is not None and "." in name:
        return [lake.table(name)]
    if name is None and not is_all:
        return [lake]
    databases = lake.databases() if name is None else [name]
    tables = [lake.table(f"{each}.{table}") for each in databases for table in lake.tables(each)]
    return [*([lake] if name is None else []), *tables]


def _refreshed(source: Ledger | Table) -> Ledger | Table:
    """Return a stream after reading its newest commits."""
    stream_log_of(source).refresh()
    return source


def _entries_of_stream(source: Ledger | Table, wanted: EntryFilter) -> Iterator[Entry]:
    return entries(stream_log_of(source), _stream_name(source), wanted)


def _stream_name(source: Ledger | Table) -> str:
    return str(source.identifier) if isinstance(source, Table) else ""


def _stream_path(source: Ledger | Table) -> str:
    """Return the path of a stream, which does not change when its table is renamed."""
    return handle_of(source).path if isinstance(source, Table) else ""


def _print_new_commits(
    again: Callable[[], Sequence[Ledger | Table]],
    sources: Sequence[Ledger | Table],
    heads: dict[str, int],
    wanted: EntryFilter,
    shown: _CommitPrinter,
) -> NoReturn:
    """Print new commits, including those of tables created, renamed or dropped meanwhile."""
    while True:
        time.sleep(_LOOK_EVERY_S)
        if shown.has_table:
            with suppress(NotFoundError):
                sources = again()
        heads = _print_commits_after(sources, heads, wanted, shown)


def _print_commits_after(
    sources: Sequence[Ledger | Table],
    heads: dict[str, int],
    wanted: EntryFilter,
    shown: _CommitPrinter,
) -> dict[str, int]:
    """Print commits after the given versions; return the newest versions."""
    now = {_stream_path(each): each.state.version for each in sources}
    fresh = (
        _entries_of_stream(
            source, evolve(wanted, first=heads.get(_stream_path(source), -1) + 1, last=None)
        )
        for source in sources
        if now[_stream_path(source)] > heads.get(_stream_path(source), -1)
    )
    # Followed output is oldest first.
    found = list(_group_by_commit(merge_entries_by_time(fresh)))[::-1]
    if found:
        shown.print(found)
    return now


@frozen
class _MatchingCommit:
    entry: Entry
    commit: Commit[Any]


def _group_by_commit(found: Iterable[Entry]) -> Iterator[_MatchingCommit]:
    """Yield the commits of entries, each with only its matching transactions."""
    for _, some in groupby(found, lambda each: (each.label, each.version)):
        mine = list(some)
        transactions = tuple(each.transaction for each in reversed(mine))
        yield _MatchingCommit(mine[0], replace(mine[0].commit, transactions=transactions))


@frozen
class _CommitPrinter:
    """Output format of commits."""

    screen: Screen
    has_table: bool
    stat: bool

    def print(self, found: Sequence[_MatchingCommit]) -> None:
        """Print commits."""
        names = (("table",) if self.has_table else ()) + COLUMNS
        names += ("rows", "files", "size") if self.stat else ()
        self.screen.results(
            "commits",
            map(self._commit_document, found),
            lambda to: to.table(names, self._commit_rows(found)),
        )

    def print_way_to_older(self, version: int, limit: int) -> None:
        """Print how to see the commits before the oldest one shown."""
        # Versions are of one log.
        more = f"for more, use --limit {2 * limit}"
        how = more if self.has_table else f"to continue, use --before {version}"
        self.screen.notice(f"there are older commits; {how}")

    def _commit_document(self, found: _MatchingCommit) -> Document:
        document = _table_fields_of(found.entry) if self.has_table else {}
        document |= plain(found.commit)
        if self.stat:
            rows, files, length = _commit_sums(found.commit)
            document |= {"stat": {"rows": rows, "files": files, "bytes": length}}
        return document

    def _commit_rows(self, found: Sequence[_MatchingCommit]) -> Iterator[tuple[Cell, ...]]:
        for each in found:
            label = each.entry.label or "(catalog)"
            names: tuple[Cell, ...] = (label,) if self.has_table else ()
            sums = _format_sums(each.commit) if self.stat else ()
            for row in rows([each.commit]):
                yield (*names, *row, *sums)
                names, sums = ("",) * len(names), ("",) * len(sums)


def _table_fields_of(entry: Entry) -> dict[str, Any]:
    """Return the table of an entry, its later name, and if it was dropped."""
    document: dict[str, Any] = {"table": entry.table}
    if entry.then not in {"", entry.table}:
        document["then"] = entry.then
    if entry.is_dropped:
        document["dropped"] = True
    return document


def _commit_sums(commit: Commit[Any]) -> tuple[int, int, int]:
    each = [Entry("", commit, transaction).sums for transaction in commit.transactions]
    rows_, files, length = (sum(column) for column in zip(*each, strict=True))
    return rows_, files, length


def _format_sums(commit: Commit[Any]) -> tuple[Cell, ...]:
    count, files, length = _commit_sums(commit)
    if not any((count, files, length)):
        return "", "", ""
    sign = "-" if length < 0 else "+"
    return f"{count:+,}", f"{files:+,}", f"{sign}{size(abs(length))}"


def _print_commit_by_id(
    lake: Ledger, name: str | None, commit_id: str, shown: _CommitPrinter
) -> None:
    """Print the commit with an id, of the named table or else of any."""
    entry = None if name is None else _find_in_named_table(lake, name, commit_id)
    if entry is not None:
        shown.print([*_group_by_commit([entry])])
        return
    # The name may now belong to another table, or to none.
    with shown.screen.progress("searching logs") as matching:
        found = lake.find_everywhere(commit_id, matching)
    if not found.entries:
        _raise_unknown_commit_id(commit_id, found)
    evolve(shown, has_table=True).print([*_group_by_commit(found.entries)])


def _find_in_named_table(lake: Ledger, name: str, commit_id: str) -> Entry | None:
    # A table that cannot be opened is searched with all others, and reported if none has the id.
    with suppress(LedgerError, OSError):
        found = lake.table(name).find_commit(commit_id)
        if found is not None:
            mine = (each for each in found.transactions if each.id == commit_id)
            return Entry(name, found, next(mine))
    return None


def _raise_unknown_commit_id(commit_id: str, found: FoundCommits) -> NoReturn:
    """Raise that no commit has an id, or that this cannot be determined.

    Raises:
        NotFoundError: No commit has the id.
        StoreError: Some logs cannot be read.
    """
    if found.unread:
        logs = "; ".join(f"{each or 'the catalog'} ({why})" for each, why in found.unread.items())
        raise StoreError(
            f"commit id {commit_id} was not found, but it may be in these logs, which could not be "
            f"read: {logs}. Restore them, then search again"
        )
    raise NotFoundError(
        f"commit id {commit_id} was not found in the catalog or in any of {found.tables:,} tables, "
        f"including dropped ones: it was not committed, and {ASKING_AGAIN}"
    )


def rows(commits: Sequence[Commit[Any]]) -> Iterator[tuple[Cell, ...]]:
    """Yield a row of `COLUMNS` per event; version and author are only in a commit's first row."""
    for commit in commits:
        for transaction in commit.transactions:
            time = moment(when(commit, transaction))
            first: tuple[Cell, ...] = (
                str(commit.version),
                time,
                transaction.author,
                transaction.message,
            )
            for said in phrases(transaction):
                yield (*first, said)
                first = ("", "", "", "")
