"""The commands, one module each; a command is a function whose parameters are its options."""

# ruff: noqa: E501 - a summary is one line

from __future__ import annotations

from importlib import import_module

from cyclopts import App

from ledger.cli import families

# The first line of each command's own help; a command is imported when it is asked for.
_SUMMARIES = {
    "quickstart": "See it all at once, on the 27,004 flights that left New York in January 2013.",
    "init": "Begin a ledger in an empty folder; where there is one already, nothing changes.",
    "create": "Create a database, or a table in one.",
    "alter": "Change a table's schema, options or comment: all changes land in one commit, or none.",
    "plan": "Show what alter would do with the same options; nothing is written.",
    "sql": "Run ALTER TABLE, as Spark and Iceberg write it.",
    "add-files": "Register existing Parquet files as one snapshot; only their footers are read.",
    "tag": "Give a snapshot a name; a tagged snapshot outlives expiry.",
    "overwrite": "Put files in the place of what is in a table, or in one of its partitions.",
    "delete-files": "Take live files out of a table, as one snapshot; nothing is deleted on disk.",
    "rollback": "Put a snapshot's contents back, as a new snapshot; history and schema stay as they are.",
    "ls": "List databases with their tables and views.",
    "show": "Show a table at any instant: columns with their ids, options, snapshot, totals, tags.",
    "head": "Show some rows of a table at any instant, read by PyIceberg.",
    "log": "Say who changed a table, when, why and how; newest first.",
    "snapshots": "List a table's snapshots, newest first: those not expired, and those kept by a tag.",
    "rename": "Give a table another name; its files stay where they are.",
    "drop": "Drop a table, or an empty database; no file is deleted, and the log stays.",
    "expire": "Expire a table's oldest snapshots; tagged ones stay, and no file is deleted.",
    "doctor": "Try out whether a place can hold a ledger: writes a key of its own, and removes it again.",
    "verify": "Check that everything stands as it was written; exit 6 if not.",
    "maintain": "Remove what nobody needs any more, seal what is missing; safe beside any writer.",
    "upgrade": "Let a ledger take commits of the newest format; nothing that stands there is rewritten.",
    "correct-clock": "Correct what a clock that was ahead left: reading by --timestamp is right again.",
    "view": "Create, alter, rename, drop, show and list views.",
}

NAMES: tuple[str, ...] = (*_SUMMARIES,)
"""The names of the commands, in the order of the help."""


def register(app: App, name: str) -> None:
    """Add one command to the app."""
    module = import_module(f"{__name__}.{name.replace('-', '_')}")
    if hasattr(module, "register"):
        module.register(app)
    else:
        families.add(app, name, getattr(module, name.replace("-", "_")))


def outline(app: App) -> None:
    """Add every command to the app by its summary alone, for the help that lists them."""
    for position, (name, summary) in enumerate(_SUMMARIES.items()):
        app.command(_never, name=name, help=summary, sort_key=position)


def _never() -> None:
    """Stand for a command that is listed and not called."""


__all__ = ["NAMES", "outline", "register"]
