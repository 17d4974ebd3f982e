"""The command `quickstart`."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ledger.cli.commands.log import COLUMNS, rows
from ledger.cli.families import view
from ledger.cli.output import Output, Screen
from ledger.cli.quickstart.steps import DATABASE, DELAYS, IDENTIFIER, by_day
from ledger.cli.quickstart.story import Story
from ledger.ledger import open as open_ledger
from ledger.log.layout import STREAM_FOLDER
from ledger.model.errors import AlreadyExistsError, MissingDependencyError
from ledger.model.messages import size
from ledger.table import Table
from ledger.table_at import TableAt

if TYPE_CHECKING:
    import pyarrow as pa


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
    back; then the ledger tells what happened. A small table more is kept in every format, and
    Python to read it is told. The sample comes with the package; its licence is
    CC0. It is left in the folder as january.parquet, its first day as new-year.parquet.

    Example:
        lakeledger quickstart try --no-spark
    """
    from ledger.cli.quickstart.steps import sample
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


MARKER = ".lakeledger-quickstart"
JANUARY, NEW_YEAR = "january.parquet", "new-year.parquet"
_OWN = (MARKER, STREAM_FOLDER, f"{DATABASE}.db", JANUARY, NEW_YEAR)


def prepare(folder: Path, *, anew: bool) -> None:
    """Make a folder ready for the story.

    Args:
        folder: Where the ledger will be.
        anew: Whether an earlier quickstart in it goes.

    Raises:
        AlreadyExistsError: It holds other things, or an earlier quickstart that should stay.
    """
    if folder.exists() and not folder.is_dir():
        raise AlreadyExistsError(f"{folder} is a file; name a folder for the quickstart")
    found = {each.name for each in folder.iterdir()} if folder.exists() else set()
    if found and MARKER not in found:
        raise AlreadyExistsError(
            f"folder {folder} holds other things ({min(found)}, ...); name an empty or a new one: "
            "lakeledger quickstart DIR"
        )
    if found and not anew:
        raise AlreadyExistsError(
            f"folder {folder} holds an earlier quickstart; look at it (lakeledger log {IDENTIFIER} "
            f"--ledger {folder}), or begin it anew with --anew"
        )
    others = found - set(_OWN)
    if others:
        raise AlreadyExistsError(
            f"folder {folder} holds things beside the quickstart ({min(others)}, ...), which are "
            "not deleted; name another folder"
        )
    _empty(folder)


def _empty(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # The marker comes first and goes last, so that a run that was killed can be begun anew.
    (folder / MARKER).touch()
    for name in _OWN[1:]:
        place = folder / name
        if place.is_file():
            place.unlink()
        else:
            shutil.rmtree(place, ignore_errors=True)


def leave_files(folder: Path, flights: pa.Table) -> None:
    """Leave the flights as plain files: all of them, and the first day's, for tables of one's own.

    Args:
        folder: Where to.
        flights: The packaged flights.
    """
    from pyarrow import parquet

    parquet.write_table(flights, folder / JANUARY)
    parquet.write_table(by_day(flights)["2013-01-01"], folder / NEW_YEAR)


def print_story(story: Story, screen: Screen, shown_url: str) -> None:
    """Print the story.

    Args:
        story: What to tell.
        screen: Where to.
        shown_url: The ledger's root as the user wrote it, for the commands to try next.
    """
    today = story.standings[-1]
    screen.line(
        f"{today.record_count:,} real flights out of New York, {today.file_count} files, "
        f"{len(story.commits)} commits: {story.identifier} at {story.location}",
        style="bold",
    )
    _log(story, screen)
    _schemas(story, screen)
    _standings(story, screen)
    _busiest(story, screen)
    _readings(story, screen)
    _next(story, screen, shown_url)


def _log(story: Story, screen: Screen) -> None:
    screen.heading("1. Who changed the table, when, and why")
    screen.line("One file a day; between the days the schema changes. Nothing is ever rewritten.")
    screen.table(COLUMNS, rows(story.commits))


def _schemas(story: Story, screen: Screen) -> None:
    screen.heading(f"2. The schema at tag {story.tag} beside today's")
    screen.line("A column is its id: renamed, widened and moved ones still read their old files.")
    screen.table(
        ("id", f"at {story.tag}", "today", "what changed"),
        ((each.field_id, each.then, each.now, each.what) for each in story.columns),
    )
    screen.line("The table stays readable as Paimon and as Iceberg, so one change is refused:")
    screen.line(f"  {story.refusal}")


def _standings(story: Story, screen: Screen) -> None:
    screen.heading("3. A day was loaded twice, and taken back")
    screen.line(
        "The rollback is a new snapshot with the old contents; the mistake stays in the log"
    )
    screen.table(
        ("moment", "snapshot", "version", "live files", "rows", "size"),
        (
            (
                each.moment,
                each.snapshot_id,
                each.version,
                each.file_count,
                each.record_count,
                size(each.file_size_in_bytes),
            )
            for each in story.standings
        ),
    )


def _busiest(story: Story, screen: Screen) -> None:
    screen.heading("4. The busiest days, computed by Spark from the log")
    if story.statistics is None:
        screen.line(f"Left out: {story.statistics_missing}")
        return
    screen.table(
        ("partition", "rows", "files", "size"),
        (
            (
                ", ".join(f"{key}={value}" for key, value in each["spec"].items()),
                each["recordCount"],
                each["fileCount"],
                size(each["fileSizeInBytes"]),
            )
            for each in story.statistics["partitions"]
        ),
    )


def _readings(story: Story, screen: Screen) -> None:
    screen.heading(f"5. One table, {len(story.readings)} formats")
    if not story.readings:
        screen.line("Left out: no format that keeps files is installed.")
        return
    kept = ", ".join(each.format for each in story.readings)
    screen.line(f"{DELAYS} is kept as {kept}, a column renamed since; the same rows in Python:")
    for each in story.readings:
        screen.line()
        screen.line(f"  # pip install {each.package}")
        for line in each.lines:
            screen.line(f"  {line}")


def _next(story: Story, screen: Screen, shown_url: str) -> None:
    screen.heading("Try next")
    for line in (
        f"export LAKELEDGER_URL={shown_url}",
        f"lakeledger show {story.identifier} --at tag:{story.tag}",
        f"lakeledger log {story.identifier} --limit 5 --output json",
        f"lakeledger blame {story.identifier}",
        f"lakeledger diff {story.identifier} tag:{story.tag}",
        f'lakeledger plan {story.identifier} --type "distance STRING"',
        f'lakeledger alter {story.identifier} --add "route.stops INT" --message "connections"',
    ):
        screen.line(f"  {line}")
