"""Commands of the command line; each is a function whose parameters are its options."""

# ruff: noqa: E501 - a summary is one line

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cyclopts import App

# By name: the module in `ledger.cli`, imported on demand, and the first line of the help.
# fmt: off
_COMMANDS = {
    "quickstart": ("quickstart.command", "Run a guided tour on the 27,004 flights that left New York in January 2013."),
    "init": ("commands.ledgers", "Initialize a ledger; does nothing if one already exists."),
    "create": ("commands.tables", "Create a database or a table."),
    "alter": ("commands.alter", "Change a table's schema, options or comment in one atomic commit."),
    "plan": ("commands.alter", "Show what alter would do with the same options; writes nothing."),
    "sql": ("commands.sql", "Query the history and tables with SQL, or run an ALTER TABLE statement."),
    "add-files": ("commands.files", "Register existing Parquet files as one snapshot; reads only their footers."),
    "append": ("commands.rows", "Write the rows of files into a table as one snapshot."),
    "tag": ("commands.refs", "Create, replace or drop a tag; tagged snapshots survive expiry."),
    "branch": ("commands.refs", "Create, list, reset, fast-forward or drop a branch; commits to it do not change main."),
    "overwrite": ("commands.files", "Replace the live files of a table or of matching partitions."),
    "delete-files": ("commands.files", "Remove live files from a table as one snapshot; deletes nothing on disk."),
    "rollback": ("commands.refs", "Restore a snapshot's contents as a new snapshot; keeps history and schema."),
    "ls": ("commands.show", "List databases, tables, views and functions."),
    "show": ("commands.show", "Show a table at any instant: columns with field ids, options, snapshot, totals, tags."),
    "head": ("commands.show", "Show the first rows of a table at any instant, read with PyIceberg."),
    "status": ("commands.status", "Show what needs attention, each with the command that resolves it."),
    "log": ("commands.log", "Show the commit history of a table, a database or the catalog, newest first."),
    "diff": ("commands.diff", "Compare two versions of a table, or two tables."),
    "blame": ("commands.diff", "Show the commits behind each column, option, key and tag, with author and message."),
    "undo": ("commands.alter", "Undo one commit with a new one and keep later changes; without --yes, show the plan."),
    "restore": ("commands.alter", "Restore an earlier schema, options and layout; without --yes, show the plan."),
    "replay": ("commands.export", "Replay a table up to a version: print its commits, or write an export, a ledger or files."),
    "report": ("commands.show", "Write an audit report: one self-contained HTML file without scripts."),
    "snapshots": ("commands.refs", "List a table's snapshots, newest first: unexpired ones and those kept by a tag."),
    "rename": ("commands.tables", "Rename a table; its files stay where they are."),
    "drop": ("commands.drop", "Drop a table or an empty database; without --yes, show the plan."),
    "undrop": ("commands.drop", "Restore a dropped table with its id, history and all versions."),
    "expire": ("commands.expire", "Expire a table's oldest snapshots; without --yes, show the plan."),
    "doctor": ("commands.ledgers", "Check whether a store can hold a ledger; writes a test key and removes it."),
    "verify": ("commands.verify", "Verify the hash chain and everything derived from the log; exits with 6 on damage."),
    "maintain": ("commands.maintain", "Remove orphaned files and seal missing segments; safe with concurrent writers."),
    "follow": ("commands.follow", "Keep the projections that the table option ledger.follow names up to date."),
    "promote": ("commands.export", "Promote a mirrored table: the ledger becomes its owner."),
    "serve-table": ("commands.serve", "Hand an Iceberg table's data commits to engines through a server, or take them back."),
    "move": ("commands.ledgers", "Record that the ledger was moved here; stop all writers of the old location first."),
    "export": ("commands.export", "Export a ledger to stdout as JSON lines: its commits byte for byte, and their files."),
    "import": ("commands.imports", "Import a ledger from an export, or tables of other formats."),
    "erase": ("commands.erase", "Erase personal data outside the log, irreversibly; without --yes, show the plan."),
    "correct-clock": ("commands.erase", "Correct commit times written by a clock that was ahead, so that --timestamp is right."),
    "view": ("commands.view", "Create, alter, rename, drop, show and list views."),
}
# fmt: on

NAMES: tuple[str, ...] = (*_COMMANDS,)
"""Command names, ordered so that the examples in their help build on each other."""

SUMMARIES: Mapping[str, str] = {name: summary for name, (_, summary) in _COMMANDS.items()}
"""One-line summaries by command name, for the overview."""


def register(app: App, name: str) -> None:
    """Add one command to the app."""
    from ledger.cli.families import add

    module = import_module(f"ledger.cli.{_COMMANDS[name][0]}")
    if hasattr(module, "register"):
        module.register(app)
    else:
        add(app, name, getattr(module, name.replace("-", "_")))


__all__ = ["NAMES", "SUMMARIES", "register"]
