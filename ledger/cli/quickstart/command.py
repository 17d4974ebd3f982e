"""Command `quickstart`."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from ledger.cli.commands.log import COLUMNS, rows
from ledger.cli.families import view
from ledger.cli.output import Output, Screen
from ledger.cli.quickstart.steps import DATABASE, DELAYS, IDENTIFIER, flights_by_day
from ledger.cli.quickstart.story import Story
from ledger.ledger import open as open_ledger
from ledger.log.layout import STREAM_FOLDER
from ledger.model.errors import AlreadyExistsError
from ledger.model.messages import size
from ledger.table import Table
from ledger.table_at import TableAt

if TYPE_CHECKING:
    import pyarrow as pa


TOP = 5


def quickstart(
    folder: Annotated[
        Path, Parameter(help="Folder of the ledger: new, empty, or of an earlier quickstart.")
    ] = Path("lakeledger-quickstart"),
    /,
    *,
    anew: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="Delete an earlier quickstart in the folder first.",
        ),
    ] = False,
    output: Annotated[
        Output, Parameter(help="Output format: text, or one JSON document.")
    ] = "text",
) -> None:
    """Run a guided tour on the 27,004 flights that left New York in January 2013.

    Loads a table day by day while its schema changes, tags a week, rolls back a mistake, and shows
    the history. A second, small table is projected to every format, with Python code to read it.
    The sample data is part of the package, under CC0. The folder keeps it as january.parquet, and
    its first day as new-year.parquet.

    Example:
        lakeledger quickstart try
    """
    from ledger.cli.quickstart.steps import sample
    from ledger.cli.quickstart.story import tell_story

    screen = Screen(output)
    prepare(folder, anew=anew)
    flights = sample()
    write_flight_files(folder, flights)
    lake = open_ledger(str(folder))
    with screen.progress("loading days") as report:
        story = tell_story(
            lake,
            flights,
            statistics=_busiest_days,
            on_progress=report,
        )
    screen.result(story.to_json(), lambda to: print_story(story, to, str(folder)))


def _busiest_days(table: Table, at: TableAt) -> Mapping[str, Any]:
    document: Mapping[str, Any] = view("statistics")(table, at, top=TOP)
    return document


MARKER = ".lakeledger-quickstart"
JANUARY, NEW_YEAR = "january.parquet", "new-year.parquet"
_OWN = (MARKER, STREAM_FOLDER, f"{DATABASE}.db", JANUARY, NEW_YEAR)


def prepare(folder: Path, *, anew: bool) -> None:
    """Prepare a folder for the quickstart.

    Args:
        folder: Folder of the ledger.
        anew: True to delete an earlier quickstart in it.

    Raises:
        AlreadyExistsError: It contains other files, or an earlier quickstart to keep.
    """
    if folder.exists() and not folder.is_dir():
        raise AlreadyExistsError(f"{folder} is a file; name a folder for the quickstart")
    found = {each.name for each in folder.iterdir()} if folder.exists() else set()
    if found and MARKER not in found:
        raise AlreadyExistsError(
            f"folder {folder} contains other files ({min(found)}, ...); name an empty or new one: "
            "lakeledger quickstart DIR"
        )
    if found and not anew:
        raise AlreadyExistsError(
            f"folder {folder} contains an earlier quickstart; show it (lakeledger log {IDENTIFIER} "
            f"--ledger {folder}), or start over with --anew"
        )
    others = found - set(_OWN)
    if others:
        raise AlreadyExistsError(
            f"folder {folder} contains files besides the quickstart ({min(others)}, ...), which "
            "are not deleted; name another folder"
        )
    _empty_folder(folder)


def _empty_folder(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # The marker is created first and deleted last, so that a killed run can be started over.
    (folder / MARKER).touch()
    for name in _OWN[1:]:
        place = folder / name
        if place.is_file():
            place.unlink()
        else:
            shutil.rmtree(place, ignore_errors=True)


def write_flight_files(folder: Path, flights: pa.Table) -> None:
    """Write the flights as plain files, all of them and the first day, for the user's own tables.

    Args:
        folder: Target folder.
        flights: Sample data.
    """
    from pyarrow import parquet

    parquet.write_table(flights, folder / JANUARY)
    parquet.write_table(flights_by_day(flights)["2013-01-01"], folder / NEW_YEAR)


def print_story(story: Story, screen: Screen, shown_url: str) -> None:
    """Print the result of the quickstart.

    Args:
        story: Result to print.
        screen: Output of the command.
        shown_url: Root of the ledger as the user wrote it, for the commands to try next.
    """
    today = story.standings[-1]
    screen.line(
        f"{today.record_count:,} real flights out of New York, {today.file_count} files, "
        f"{len(story.commits)} commits: {story.identifier} at {story.location}",
        style="bold",
    )
    _print_log(story, screen)
    _print_schemas(story, screen)
    _print_rollback(story, screen)
    _print_busiest_days(story, screen)
    _print_readings(story, screen)
    _print_next_steps(story, screen, shown_url)


def _print_log(story: Story, screen: Screen) -> None:
    screen.heading("1. The commit history")
    screen.line("One file per day, with schema changes in between. No data is rewritten.")
    screen.table(COLUMNS, rows(story.commits))


def _print_schemas(story: Story, screen: Screen) -> None:
    screen.heading(f"2. The schema at tag {story.tag} and today")
    screen.line(
        "Columns are tracked by field id, so renamed, widened and moved ones still read old files."
    )
    screen.table(
        ("id", f"at {story.tag}", "today", "what changed"),
        ((each.field_id, each.then, each.now, each.what) for each in story.columns),
    )
    screen.line("The table declares Paimon and Iceberg, so one change is rejected:")
    screen.line(f"  {story.refusal}")


def _print_rollback(story: Story, screen: Screen) -> None:
    screen.heading("3. A day was loaded twice and rolled back")
    screen.line(
        "The rollback is a new snapshot with the old contents; the mistake stays in the log."
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


def _print_busiest_days(story: Story, screen: Screen) -> None:
    screen.heading("4. The busiest days, from the table's statistics")
    if story.statistics is None:
        screen.line(f"Skipped: {story.statistics_missing}")
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


def _print_readings(story: Story, screen: Screen) -> None:
    screen.heading(f"5. One table, {len(story.readings)} formats")
    if not story.readings:
        screen.line("Skipped: no format is installed.")
        return
    kept = ", ".join(each.format for each in story.readings)
    screen.line(f"{DELAYS} is projected to {kept}, after a column rename. To read it in Python:")
    for each in story.readings:
        screen.line()
        screen.line(f"  # pip install {each.package}")
        for line in each.lines:
            screen.line(f"  {line}")


def _print_next_steps(story: Story, screen: Screen, shown_url: str) -> None:
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
