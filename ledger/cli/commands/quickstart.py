"""`lakeledger quickstart`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from ledger.cli.plugins import view
from ledger.cli.screen import Output, Screen
from ledger.ledger import open as open_ledger
from ledger.model.errors import MissingDependencyError
from ledger.table import Table
from ledger.table_at import TableAt

TOP = 5


def quickstart(
    folder: Annotated[
        Path, Parameter(help="A folder for the ledger: new, empty, or an earlier quickstart's.")
    ] = Path("lakeledger-quickstart"),
    /,
    *,
    anew: Annotated[
        bool,
        Parameter(
            negative="", show_default=False, help="Delete an earlier quickstart in it first."
        ),
    ] = False,
    spark: Annotated[bool, Parameter(help="Compute the busiest days with Spark.")] = True,
    output: Annotated[Output, Parameter(help="Text, or one JSON document.")] = "text",
) -> None:
    """See it all at once, on the 27,004 flights that left New York in January 2013.

    A table is loaded day by day while its schema changes; a week is tagged; a mistake is rolled
    back; then the ledger tells what happened. The sample comes with the package; its licence is
    CC0. It is left in the folder as january.parquet, its first day as new-year.parquet.

    Example:
        lakeledger quickstart try --no-spark
    """
    from ledger.cli.quickstart.flights import sample
    from ledger.cli.quickstart.folder import leave_files, prepare
    from ledger.cli.quickstart.printed import print_story
    from ledger.cli.quickstart.story import tell

    screen = Screen(output)
    prepare(folder, anew=anew)
    flights = sample()
    leave_files(folder, flights)
    lake = open_ledger(str(folder))
    with screen.progress("loading days") as told:
        story = tell(lake, flights, statistics=_with_spark if spark else _without, on_progress=told)
    screen.result(story.to_json(), lambda to: print_story(story, to, str(folder)))


def _with_spark(table: Table, at: TableAt) -> Mapping[str, Any]:
    document: Mapping[str, Any] = view("statistics")(table, at, top=TOP)
    return document


def _without(_table: Table, _at: TableAt) -> Mapping[str, Any]:
    raise MissingDependencyError("Spark was not asked for (--no-spark)")
