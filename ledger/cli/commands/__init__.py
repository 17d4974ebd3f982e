"""The commands: each is a function whose parameters are its options.

- `look`: those that change nothing.
- `change`: those that change databases, tables and views.
- `keep`: those that look after a ledger.

A new command is its function in one of these rooms, and one row here.
"""

# ruff: noqa: E501 - a summary is one line

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from cyclopts import App, Group

from ledger.cli.families import add

if TYPE_CHECKING:
    from cyclopts.help import HelpPanel
    from rich.console import Console, ConsoleOptions, RenderableType

# By name: where in `ledger.cli` it is, and its help's first line. Imported when it is asked for.
# fmt: off
_COMMANDS = {
    "quickstart": ("quickstart.command", "See it all at once, on the 27,004 flights that left New York in January 2013."),
    "init": ("commands.keep.ledgers", "Begin a ledger in an empty folder; where there is one already, nothing changes."),
    "create": ("commands.change.tables", "Create a database, or a table in one."),
    "alter": ("commands.change.alter", "Change a table's schema, options or comment: all changes land in one commit, or none."),
    "plan": ("commands.change.plan", "Show what alter would do with the same options; nothing is written."),
    "sql": ("commands.change.alter", "Run ALTER TABLE, as Spark and Iceberg write it."),
    "add-files": ("commands.change.files", "Register existing Parquet files as one snapshot; only their footers are read."),
    "tag": ("commands.change.snapshots", "Give a snapshot a name; a tagged snapshot outlives expiry."),
    "branch": ("commands.change.branch", "Make a branch: commits to it leave main as it is, until main is fast-forwarded to it."),
    "overwrite": ("commands.change.files", "Put files in the place of what is in a table, or in one of its partitions."),
    "delete-files": ("commands.change.files", "Take live files out of a table, as one snapshot; nothing is deleted on disk."),
    "rollback": ("commands.change.snapshots", "Put a snapshot's contents back, as a new snapshot; history and schema stay as they are."),
    "ls": ("commands.look.show", "List databases with their tables and views."),
    "show": ("commands.look.show", "Show a table at any instant: columns with their ids, options, snapshot, totals, tags."),
    "head": ("commands.look.head", "Show some rows of a table at any instant, read by PyIceberg."),
    "log": ("commands.look.log", "Say who changed a table, when, why and how; newest first."),
    "diff": ("commands.look.diff", "Say what differs between two instants of a table, or from another table."),
    "blame": ("commands.look.diff", "Say of each column, option, key and tag which changes made it what it is, by whom and why."),
    "undo": ("commands.change.undo", "Take one change back by a new one that keeps what came later; without --yes: show how."),
    "revert": ("commands.change.undo", "Give a table an earlier instant's schema, options and layout again; without --yes: show how."),
    "replay": ("commands.look.replay", "Replay a table's commits up to any version: shown, as lines, a ledger, or a format's files."),
    "report": ("commands.look.report", "Write an audit page: one HTML file that needs no network and runs no script."),
    "snapshots": ("commands.look.snapshots", "List a table's snapshots, newest first: those not expired, and those kept by a tag."),
    "rename": ("commands.change.tables", "Give a table another name; its files stay where they are."),
    "drop": ("commands.change.tables", "Drop a table, or an empty database; no file is deleted, and the log stays."),
    "expire": ("commands.change.snapshots", "Expire a table's oldest snapshots; tagged ones stay, and no file is deleted."),
    "doctor": ("commands.keep.ledgers", "Try out whether a place can hold a ledger: writes a key of its own, and removes it again."),
    "verify": ("commands.keep.verify", "Check that everything stands as it was written; exit 6 if not."),
    "maintain": ("commands.keep.maintain", "Remove what nobody needs any more, seal what is missing; safe beside any writer."),
    "follow": ("commands.keep.follow", "Keep the files of every format that a table's option ledger.follow names up to its commits."),
    "promote": ("commands.keep.promote", "Own a table that others owned until now, and that the ledger followed."),
    "move": ("commands.keep.move", "Say that the ledger was moved to where it is now: stop all writers of the old place first."),
    "export": ("commands.keep.export", "Write a ledger to stdout as lines of JSON: its commits byte for byte, and what they name."),
    "import": ("commands.keep.imports", "Bring in what exists elsewhere: a ledger, or tables of other formats."),
    "upgrade": ("commands.keep.ledgers", "Let a ledger take commits of the newest format; nothing that stands there is rewritten."),
    "erase": ("commands.keep.erase", "Take away what a ledger keeps of a person outside of its lines; there is no way back."),
    "correct-clock": ("commands.keep.correct_clock", "Correct what a clock that was ahead left: reading by --timestamp is right again."),
    "view": ("commands.change.view", "Create, alter, rename, drop, show and list views."),
}
# fmt: on

_PLUGGED = "Look after formats"
"""The family of what installed packages bring."""

_FAMILIES = {
    "Begin": ("quickstart", "init", "create", "import"),
    "See what there is": ("ls", "show", "head", "snapshots"),
    "Ask who changed what, and why": ("log", "diff", "blame", "replay", "report"),
    "Change tables": ("alter", "plan", "sql", "rename", "drop", "view", "undo", "revert"),
    "Change what is in them": (
        "add-files",
        "overwrite",
        "delete-files",
        "tag",
        "branch",
        "rollback",
        "expire",
    ),
    _PLUGGED: ("follow", "promote"),
    "Look after a ledger": (
        "verify",
        "maintain",
        "doctor",
        "upgrade",
        "move",
        "export",
        "erase",
        "correct-clock",
    ),
}
"""The same by what a person wants, for the help; above they stand as one begins."""

NAMES: tuple[str, ...] = (*_COMMANDS,)
"""The names of the commands, as one begins: the examples of their help build on each other so."""


def register(app: App, name: str) -> None:
    """Add one command to the app."""
    module = import_module(f"ledger.cli.{_COMMANDS[name][0]}")
    if hasattr(module, "register"):
        module.register(app)
    else:
        add(app, name, getattr(module, name.replace("-", "_")))


def outline(app: App) -> None:
    """Add every command to the app by its summary alone, for the help that lists them."""
    for position, (name, (_, summary)) in enumerate(_COMMANDS.items()):
        app.command(_never, name=name, help=summary, sort_key=position)
    app.group_commands = Group("Commands", help_formatter=_by_family)


def _by_family(console: Console, options: ConsoleOptions, panel: HelpPanel) -> None:
    """Print the commands in one panel, under a heading for each thing that a person wants."""
    del options
    from cyclopts.help import PanelSpec
    from rich.console import Group as Lines
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    entries = {each.positive_names[0]: each for each in panel.entries}
    listed = {family: [*names] for family, names in _FAMILIES.items()}
    known = {name for names in listed.values() for name in names}
    others = sorted(entries.keys() - known)
    listed[_PLUGGED] += [each for each in others if not each.startswith("-")]
    listed["Anywhere"] = [each for each in others if each.startswith("-")]
    width = max(map(len, entries))
    lines: list[RenderableType] = []
    for family, names in listed.items():
        table = Table.grid(padding=(0, 2, 0, 0))
        table.add_column(width=width, style="cyan", no_wrap=True)
        table.add_column(overflow="fold")
        for name in names:
            table.add_row(name, entries[name].description)
        lines += [Text(family, style="bold"), Padding(table, (0, 0, 1, 0))]
    console.print(PanelSpec().build(Lines(*lines), title=panel.title))


def _never() -> None:
    """Stand for a command that is listed and not called."""


__all__ = ["NAMES", "outline", "register"]
