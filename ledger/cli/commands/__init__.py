"""The commands; each is a function whose parameters are its options."""

# ruff: noqa: E501 - a summary is one line

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts import App

# By name: where in `ledger.cli` it is, and its help's first line. Imported when it is asked for.
# fmt: off
_COMMANDS = {
    "quickstart": ("quickstart.command", "See it all at once, on the 27,004 flights that left New York in January 2013."),
    "init": ("commands.ledgers", "Begin a ledger in an empty folder; where there is one already, nothing changes."),
    "create": ("commands.tables", "Create a database, or a table in one."),
    "alter": ("commands.alter", "Change a table's schema, options or comment: all changes land in one commit, or none."),
    "plan": ("commands.alter", "Show what alter would do with the same options; nothing is written."),
    "sql": ("commands.alter", "Run ALTER TABLE, as Spark and Iceberg write it."),
    "add-files": ("commands.files", "Register existing Parquet files as one snapshot; only their footers are read."),
    "tag": ("commands.refs", "Give a snapshot a name; a tagged snapshot outlives expiry."),
    "branch": ("commands.refs", "Make a branch: commits to it leave main as it is, until main is fast-forwarded to it."),
    "overwrite": ("commands.files", "Put files in the place of what is in a table, or in one of its partitions."),
    "delete-files": ("commands.files", "Take live files out of a table, as one snapshot; nothing is deleted on disk."),
    "rollback": ("commands.refs", "Put a snapshot's contents back, as a new snapshot; history and schema stay as they are."),
    "ls": ("commands.show", "List databases with their tables and views."),
    "show": ("commands.show", "Show a table at any instant: columns with their ids, options, snapshot, totals, tags."),
    "head": ("commands.show", "Show some rows of a table at any instant, read by PyIceberg."),
    "log": ("commands.log", "Say who changed a table, when, why and how; newest first."),
    "diff": ("commands.diff", "Say what differs between two instants of a table, or from another table."),
    "blame": ("commands.diff", "Say of each column, option, key and tag which changes made it what it is, by whom and why."),
    "undo": ("commands.alter", "Take one change back by a new one that keeps what came later; without --yes: show how."),
    "revert": ("commands.alter", "Give a table an earlier instant's schema, options and layout again; without --yes: show how."),
    "replay": ("commands.export", "Replay a table's commits up to any version: shown, as lines, a ledger, or a format's files."),
    "report": ("commands.show", "Write an audit page: one HTML file that needs no network and runs no script."),
    "snapshots": ("commands.refs", "List a table's snapshots, newest first: those not expired, and those kept by a tag."),
    "rename": ("commands.tables", "Give a table another name; its files stay where they are."),
    "drop": ("commands.tables", "Drop a table, or an empty database; no file is deleted, and the log stays."),
    "expire": ("commands.refs", "Expire a table's oldest snapshots; tagged ones stay, and no file is deleted."),
    "doctor": ("commands.ledgers", "Try out whether a place can hold a ledger: writes a key of its own, and removes it again."),
    "verify": ("commands.verify", "Check that everything stands as it was written; exit 6 if not."),
    "maintain": ("commands.maintain", "Remove what nobody needs any more, seal what is missing; safe beside any writer."),
    "follow": ("commands.follow", "Keep the files of every format that a table's option ledger.follow names up to its commits."),
    "promote": ("commands.export", "Own a table that others owned until now, and that the ledger followed."),
    "serve-table": ("commands.serve", "Let engines commit a table's data through a server, or take it back."),
    "move": ("commands.ledgers", "Say that the ledger was moved to where it is now: stop all writers of the old place first."),
    "export": ("commands.export", "Write a ledger to stdout as lines of JSON: its commits byte for byte, and what they name."),
    "import": ("commands.imports", "Bring in what exists elsewhere: a ledger, or tables of other formats."),
    "erase": ("commands.erase", "Take away what a ledger keeps of a person outside of its lines; there is no way back."),
    "correct-clock": ("commands.erase", "Correct what a clock that was ahead left: reading by --timestamp is right again."),
    "view": ("commands.view", "Create, alter, rename, drop, show and list views."),
}
# fmt: on

NAMES: tuple[str, ...] = (*_COMMANDS,)
"""The names of the commands, as one begins: the examples of their help build on each other so."""

SUMMARIES: Mapping[str, str] = {name: summary for name, (_, summary) in _COMMANDS.items()}
"""What each does, in a line, for the help that lists them."""


def register(app: App, name: str) -> None:
    """Add one command to the app."""
    from ledger.cli.families import add

    module = import_module(f"ledger.cli.{_COMMANDS[name][0]}")
    if hasattr(module, "register"):
        module.register(app)
    else:
        add(app, name, getattr(module, name.replace("-", "_")))


__all__ = ["NAMES", "SUMMARIES", "register"]
