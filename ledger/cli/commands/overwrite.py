"""`lakeledger overwrite`."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from ledger.cli.commands.committed import committed
from ledger.cli.exits import UsageError
from ledger.cli.options import Place, Writing
from ledger.cli.paths import key_and_value
from ledger.evolution.table.changes import Isolation


def overwrite(
    name: Annotated[str, Parameter(help="DATABASE.TABLE.")],
    /,
    *paths: Annotated[str, Parameter(help="Parquet files, folders or globs; paths or URLs.")],
    where: Annotated[
        tuple[str, ...],
        Parameter(
            negative="",
            show_default=False,
            help="KEY=VALUE of a partition: only its files go; repeatable.",
        ),
    ] = (),
    isolation: Annotated[
        Isolation,
        Parameter(help="Whether a file that somebody adds there meanwhile is a conflict."),
    ] = "serializable",
    writing: Writing = Writing(),  # noqa: B008 - frozen
    place: Place = Place(),  # noqa: B008 - frozen
) -> None:
    """Put files in the place of what is in a table, or in one of its partitions.

    One snapshot; nothing is deleted on disk. Without files the partitions named are emptied.

    Example:
        lakeledger overwrite shop.flights try/new-year.parquet
    """
    if not paths and not where:
        raise UsageError("overwrite what? give files, or --where KEY=VALUE to empty a partition")
    table = place.table(name)
    screen = place.screen
    with screen.progress("reading footers") as told:
        files = table.data_files(paths, told) if paths else ()
    values = dict(key_and_value(each) for each in where) or None
    done = table.overwrite(files, where=values, isolation=isolation, **writing.options())
    committed(screen, table, done, writing)
