"""`lakeledger log`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from cyclopts import Parameter, validators
from msgspec.structs import replace

from ledger.cli.options import Place
from ledger.cli.phrases import phrases, plain, when
from ledger.cli.screen import Cell, Screen
from ledger.events.commit import Commit
from ledger.model.errors import NotFoundError
from ledger.model.excerpt import moment

COLUMNS = ("version", "time (UTC)", "author", "message", "what happened")


def log(
    name: Annotated[str | None, Parameter(help="DATABASE.TABLE; none: the catalog's log.")] = None,
    /,
    *,
    limit: Annotated[
        int, Parameter(validator=validators.Number(gte=1), help="How many commits at most.")
    ] = 50,
    commit_id: Annotated[
        str | None,
        Parameter(show_default=False, help="Only what was committed under this id, if it landed."),
    ] = None,
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    """Say who changed a table, when, why and how; newest first.

    In JSON the events stand as in the log, but without their lists of files.

    Example:
        lakeledger log shop.flights --limit 10

        lakeledger log shop.orders --commit-id split-1
    """
    lake = place.open()
    source = lake if name is None else lake.table(name)
    head = source.state.version
    commits: list[Commit[Any]]
    if commit_id is None:
        first = max(0, head - limit + 1)
        commits = list(reversed(list(source.events(first))))[:limit]
    else:
        first, commits = 0, [_under(commit_id, source.find_commit(commit_id), head)]

    def text(screen: Screen) -> None:
        screen.table(COLUMNS, rows(commits))

    screen = place.screen
    screen.result({"commits": [plain(each) for each in commits]}, text)
    if first > 0:
        screen.notice(f"{first:,} older commits are not shown; --limit {head + 1} shows all")


def _under(commit_id: str, commit: Commit[Any] | None, head: int) -> Commit[Any]:
    """Return what was committed under an id, without what rode along.

    Raises:
        NotFoundError: Nothing was.
    """
    if commit is None:
        raise NotFoundError(
            f"up to version {head} nothing was committed under the id {commit_id}: it has not "
            "landed, and asking again with the same commit_id= is safe"
        )
    mine = tuple(each for each in commit.transactions if each.id == commit_id)
    return replace(commit, transactions=mine)


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
