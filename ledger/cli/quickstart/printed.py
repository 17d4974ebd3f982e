"""The story for people: headings and tables."""

from __future__ import annotations

from ledger.cli.commands.log import COLUMNS, rows
from ledger.cli.quickstart.story import Story
from ledger.cli.screen import Screen
from ledger.model.excerpt import size


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


def _next(story: Story, screen: Screen, shown_url: str) -> None:
    screen.heading("Try next")
    for line in (
        f"export LAKELEDGER_URL={shown_url}",
        f"lakeledger show {story.identifier} --at tag:{story.tag}",
        f"lakeledger log {story.identifier} --limit 5 --output json",
        f'lakeledger plan {story.identifier} --type "distance STRING"',
        f'lakeledger alter {story.identifier} --add "route.stops INT" --message "connections"',
    ):
        screen.line(f"  {line}")
