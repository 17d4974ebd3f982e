"""The command `log`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import groupby, islice
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

from attrs import evolve, frozen
from cyclopts import Group, Parameter
from msgspec.structs import replace

from ledger.audit.entries import Entry, WantedEntries, entries, merged, wanted_of
from ledger.cli.changes import whole_path
from ledger.cli.exits import UsageError
from ledger.cli.options import LedgerFlags, OnBranch, one_or_more, read_time, tables_of
from ledger.cli.output import Cell, Document, Screen
from ledger.cli.phrases import phrases, plain, when
from ledger.events.commit import Commit
from ledger.ledger import Ledger
from ledger.log.request import ASKING_AGAIN
from ledger.model.errors import LedgerError, NotFoundError, StoreError
from ledger.model.instant import millis
from ledger.model.messages import moment, size
from ledger.table import Table

if TYPE_CHECKING:
    from ledger.audit.listings import Sightings


COLUMNS = ("version", "time (UTC)", "author", "message", "what happened")

_FILTERS = Group("Which of them (all that are named have to hold)", sort_key=10)
_LOOK_EVERY_S = 1.0


@Parameter(name="*", group=_FILTERS)
@frozen
class Filters:
    """Which entries of a log."""

    before: Annotated[
        int | None, Parameter(help="Older than this version; goes on where another call ended.")
    ] = None
    since: Annotated[str | None, Parameter(help="Not before this day or time.")] = None
    until: Annotated[str | None, Parameter(help="Not after this day or time.")] = None
    by: Annotated[str | None, Parameter(help="A part of the author's name.")] = None
    kind: Annotated[
        tuple[str, ...],
        Parameter(negative="", show_default=False, help="Such as addColumn; repeatable."),
    ] = ()
    grep: Annotated[
        str | None, Parameter(help="A regular expression that is found in the message.")
    ] = None
    column: Annotated[
        str | None,
        Parameter(help="Whatever touched this column, or what is in it, through all its names."),
    ] = None

    branch: OnBranch = None

    def wanted(self, table: Table | None) -> WantedEntries:
        """Return what the log is asked for.

        Raises:
            UsageError: A column is named, and no table, or a time cannot be read.
        """
        if self.column is not None and table is None:
            raise UsageError("--column is of one table; name the table, too")
        column = None
        if table is not None and self.column is not None:
            column = table.column_id(whole_path(self.column))
        return wanted_of(**self.asked(), column_id=column)

    def asked(self) -> dict[str, Any]:
        """Return what `Ledger.entries` is asked for."""
        return {
            "last": None if self.before is None else self.before - 1,
            "since": None if self.since is None else _begin(self.since),
            "until": None if self.until is None else millis(read_time(self.until)),
            "author": self.by,
            "kinds": self.kind,
            "message": self.grep,
            "branch": self.branch,
        }


def _begin(text: str) -> int:
    """Return when a time begins; a day is read as it ends everywhere else."""
    is_day = len(text) == len("2013-01-31") and not text.isdecimal() and text != "yesterday"
    return millis(read_time(f"{text}T00:00:00" if is_day else text))


def log(  # noqa: PLR0913 - each is an option
    name: Annotated[
        str | None,
        Parameter(
            help="DATABASE.TABLE, or DATABASE for all of its tables; none: the catalog's.",
            completer=tables_of,
        ),
    ] = None,
    /,
    *,
    all: Annotated[  # noqa: A002 - the option's name
        bool,
        Parameter(negative="", help="The catalog and every table, dropped ones too, by time."),
    ] = False,
    limit: Annotated[
        int,
        Parameter(alias="-n", validator=one_or_more, help="How many commits at most."),
    ] = 50,
    filters: Filters = Filters(),
    stat: Annotated[
        bool, Parameter(negative="", help="Say how many rows, files and bytes came or went.")
    ] = False,
    follow: Annotated[
        bool, Parameter(negative="", help="Go on with what is committed from now on; Ctrl-C ends.")
    ] = False,
    commit_id: Annotated[
        str | None,
        Parameter(show_default=False, help="Only what landed under this id: there, else anywhere."),
    ] = None,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Say who changed a table, when, why and how; newest first.

    In JSON the events stand as in the log, but without their lists of files. With --output jsonl
    each commit is a line of its own.

    Example:
        lakeledger log shop.flights --limit 10

        lakeledger log shop.flights --column origin --by ada --since 2013-01-01

        lakeledger log shop.orders --commit-id split-1
    """
    lake = place.open()
    shown = _Shown(place.screen, has_table=all or (name is not None and "." not in name), stat=stat)
    if commit_id is not None:
        _print_under(lake, name, commit_id, shown)
        return
    sources = _sources(lake, name, is_all=all)
    only = sources[0] if len(sources) == 1 and isinstance(sources[0], Table) else None
    wanted = filters.wanted(only)
    heads = {_place(each): each.state.version for each in sources}
    several = shown.has_table
    told = lake.entries(name, **filters.asked()) if several else _of_one(sources[0], wanted)
    commits = _commits(told)
    newest = list(islice(commits, limit))
    rest = next(commits, None)
    shown.print(newest)
    if rest is not None and len(sources) == 1 and not follow:
        oldest = newest[-1].commit.version
        place.screen.notice(f"there are older ones; --before {oldest} goes on from here")
    elif rest is not None and not follow:
        place.screen.notice(f"there are older ones; --limit {2 * limit} shows more")
    if only is not None:
        tell_stale(only, place.screen)
    if follow:
        _follow(partial(_sources, lake, name, is_all=all), sources, heads, wanted, shown)


def tell_stale(table: Table, screen: Screen) -> None:
    """Say on stderr which followed formats' readers do not see all of a table's log yet."""
    for each in table.freshness():
        if each.behind or each.problem is not None:
            screen.notice(f"the {each.format} files of {table.identifier} are at {each}")


def _sources(lake: Ledger, name: str | None, *, is_all: bool) -> Sequence[Ledger | Table]:
    """Return the streams that are asked for.

    Raises:
        NotFoundError: There is no such database or table.
    """
    if name is not None and "." in name:
        return [lake.table(name)]
    if name is None and not is_all:
        return [lake]
    databases = lake.databases() if name is None else [name]
    tables = [lake.table(f"{each}.{table}") for each in databases for table in lake.tables(each)]
    return [*([lake] if name is None else []), *tables]


def _of_one(source: Ledger | Table, wanted: WantedEntries) -> Iterator[Entry]:
    return entries(source.log, _named(source), wanted)


def _named(source: Ledger | Table) -> str:
    return str(source.identifier) if isinstance(source, Table) else ""


def _place(source: Ledger | Table) -> str:
    """Return what a stream keeps when its table gets another name."""
    return source.path if isinstance(source, Table) else ""


def _follow(
    again: Callable[[], Sequence[Ledger | Table]],
    sources: Sequence[Ledger | Table],
    heads: dict[str, int],
    wanted: WantedEntries,
    shown: _Shown,
) -> NoReturn:
    """Print what is committed from now on; tables come meanwhile, get other names, and go."""
    while True:
        time.sleep(_LOOK_EVERY_S)
        if shown.has_table:
            with suppress(NotFoundError):
                sources = again()
        heads = _more(sources, heads, wanted, shown)


def _more(
    sources: Sequence[Ledger | Table], heads: dict[str, int], wanted: WantedEntries, shown: _Shown
) -> dict[str, int]:
    """Print what was committed since; return the newest versions now."""
    now = {_place(each): each.state.version for each in sources}
    fresh = (
        _of_one(source, evolve(wanted, first=heads.get(_place(source), -1) + 1, last=None))
        for source in sources
        if now[_place(source)] > heads.get(_place(source), -1)
    )
    # Who watches reads downwards.
    found = list(_commits(merged(fresh)))[::-1]
    if found:
        shown.print(found)
    return now


@frozen
class _Commit:
    entry: Entry
    commit: Commit[Any]


def _commits(found: Iterable[Entry]) -> Iterator[_Commit]:
    """Yield the commits of entries, each with the transactions alone that are wanted."""
    for _, some in groupby(found, lambda each: (each.label, each.version)):
        mine = list(some)
        transactions = tuple(each.transaction for each in reversed(mine))
        yield _Commit(mine[0], replace(mine[0].commit, transactions=transactions))


@frozen
class _Shown:
    """How commits are printed."""

    screen: Screen
    has_table: bool
    stat: bool

    def print(self, found: Sequence[_Commit]) -> None:
        """Print commits."""
        names = (("table",) if self.has_table else ()) + COLUMNS
        names += ("rows", "files", "size") if self.stat else ()
        self.screen.results(
            "commits", map(self._document, found), lambda to: to.table(names, self._rows(found))
        )

    def _document(self, found: _Commit) -> Document:
        document = _of_table(found.entry) if self.has_table else {}
        document |= plain(found.commit)
        if self.stat:
            rows, files, length = _sums(found.commit)
            document |= {"stat": {"rows": rows, "files": files, "bytes": length}}
        return document

    def _rows(self, found: Sequence[_Commit]) -> Iterator[tuple[Cell, ...]]:
        for each in found:
            label = each.entry.label or "(catalog)"
            names: tuple[Cell, ...] = (label,) if self.has_table else ()
            sums = _shown_sums(each.commit) if self.stat else ()
            for row in rows([each.commit]):
                yield (*names, *row, *sums)
                names, sums = ("",) * len(names), ("",) * len(sums)


def _of_table(entry: Entry) -> dict[str, Any]:
    """Return which table an entry is of, and what became of that."""
    document: dict[str, Any] = {"table": entry.table}
    if entry.then not in {"", entry.table}:
        document["then"] = entry.then
    if entry.is_dropped:
        document["dropped"] = True
    return document


def _sums(commit: Commit[Any]) -> tuple[int, int, int]:
    each = [Entry("", commit, transaction).sums for transaction in commit.transactions]
    rows_, files, length = (sum(column) for column in zip(*each, strict=True))
    return rows_, files, length


def _shown_sums(commit: Commit[Any]) -> tuple[Cell, ...]:
    count, files, length = _sums(commit)
    if not any((count, files, length)):
        return "", "", ""
    sign = "-" if length < 0 else "+"
    return f"{count:+,}", f"{files:+,}", f"{sign}{size(abs(length))}"


def _print_under(lake: Ledger, name: str | None, commit_id: str, shown: _Shown) -> None:
    """Print what was committed under an id, of the table that is named or else of any."""
    entry = None if name is None else _of_named(lake, name, commit_id)
    if entry is not None:
        shown.print([*_commits([entry])])
        return
    # It may be another's table by now, or have another name, or none.
    with shown.screen.progress("looking through logs") as told:
        found = lake.find_everywhere(commit_id, told)
    if not found.entries:
        _refuse_unknown(commit_id, found)
    evolve(shown, has_table=True).print([*_commits(found.entries)])


def _of_named(lake: Ledger, name: str, commit_id: str) -> Entry | None:
    # What cannot be opened is looked for with all others, and told if it is in none of them.
    with suppress(LedgerError, OSError):
        found = lake.table(name).find_commit(commit_id)
        if found is not None:
            mine = (each for each in found.transactions if each.id == commit_id)
            return Entry(name, found, next(mine))
    return None


def _refuse_unknown(commit_id: str, found: Sightings) -> NoReturn:
    """Say that nothing was committed under an id, or that this cannot be known.

    Raises:
        NotFoundError: Nothing was.
        StoreError: Some logs cannot be read.
    """
    if found.unread:
        logs = "; ".join(f"{each or 'the catalog'} ({why})" for each, why in found.unread.items())
        raise StoreError(
            f"whether anything was committed under the id {commit_id} cannot be known: no log that "
            f"can be read has it, and these could not be: {logs}. Restore them, then look again"
        )
    raise NotFoundError(
        f"nothing was committed under the id {commit_id}, to the catalog or to any of "
        f"{found.tables:,} tables, dropped ones included: it has not landed, and {ASKING_AGAIN}"
    )


def rows(commits: Sequence[Commit[Any]]) -> Iterator[tuple[Cell, ...]]:
    """Yield a row of `COLUMNS` for every event, with version and author on the first of each."""
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
