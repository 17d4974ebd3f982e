"""`lakeledger log`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from cyclopts import Parameter, validators

from ledger.cli.options import Place
from ledger.cli.phrases import phrases, plain, when
from ledger.cli.screen import Cell, Screen, moment
from ledger.events.commit import Commit

COLUMNS = ("version", "time (UTC)", "author", "message", "what happened")


def log(
    name: Annotated[str | None, Parameter(help="DATABASE.TABLE; none: the catalog's log.")] = None,
    /,
    *,
    limit: Annotated[
        int, Parameter(validator=validators.Number(gte=1), help="How many commits at most.")
    ] = 50,
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    """Say who changed a table, when, why and how; newest first.

    In JSON the events stand as in the log, but without their lists of files.

    Example:
        lakeledger log shop.orders --limit 10
    """
    lake = place.open()
    source = lake if name is None else lake.table(name)
    head = source.state.version
    first = max(0, head - limit + 1)
    commits: list[Commit[Any]] = list(reversed(list(source.events(first))))[:limit]

    def text(screen: Screen) -> None:
        screen.table(COLUMNS, rows(commits))

    screen = place.screen
    screen.result({"commits": [plain(each) for each in commits]}, text)
    if first > 0:
        screen.notice(f"{first:,} older commits are not shown; --limit {head + 1} shows all")


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
