"""Structured log events through structlog.

`NOTICES` is the whole list; `ledger/docs/observing.md` shows it to people. What went wrong and
harmed nothing (`warn`) is told to everybody; what goes its way (`tell`) to those alone who
configured structlog, so that nobody else pays for it: not even structlog is imported.

Authors, messages and values are never told. They stand in the log, under the commit's id; what is
erased there must not live on in the logs of others.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Final, Literal

from msgspec import Struct

Level = Literal["debug", "info", "warning", "error"]


class Notice(Struct, frozen=True):
    """One kind of event.

    Attributes:
        level: How it is logged.
        when: What happened.
        keys: What is told with it.
    """

    level: Level
    when: str
    keys: tuple[str, ...]


NOTICES: Final[Mapping[str, Notice]] = {
    # Commits, told in the thread of whoever asked for them.
    "commit_landed": Notice(
        "info",
        "a transaction is in the log; `repeated` where it had landed before",
        ("stream", "commit_id", "version", "repeated", "attempts", "seconds"),
    ),
    "commit_conflicted": Notice(
        "warning",
        "somebody else set the same thing to something else; nothing was written",
        ("stream", "commit_id", "cell", "winner_version", "seconds"),
    ),
    "commit_refused": Notice(
        "info",
        "a rule, the store or a damaged log forbids it; `error` is the error's kind",
        ("stream", "commit_id", "error", "seconds"),
    ),
    "commit_unknown": Notice(
        "error",
        "the store gave no answer; the transaction may have landed",
        ("stream", "commit_id", "version", "seconds"),
    ),
    "commit_retried": Notice(
        "info",
        "another writer took the version; so many transactions are decided again",
        ("stream", "lost_version", "attempt", "transactions"),
    ),
    # Tables.
    "readers_get_it_wrong": Notice(
        "warning",
        "a table was created of which a reader gets something wrong, such as names that differ by "
        "case alone",
        ("table", "says"),
    ),
    # Files of formats, and those who follow.
    "files_projected": Notice(
        "info",
        "the files of a format were brought from one version to another; `lag_seconds` ago the "
        "first commit came that they lacked",
        ("table", "format", "from_version", "version", "seconds", "lag_seconds"),
    ),
    "projecting_failed": Notice(
        "warning",
        "the files of a format could not be brought on; they stand where they stood",
        ("table", "format", "from_version", "error", "seconds"),
    ),
    "files_restored": Notice(
        "warning",
        "files of a format were lost or damaged, and made again",
        ("table", "format", "version"),
    ),
    "older_renderer_replaced": Notice(
        "warning",
        "files that an older version made are made anew",
        ("table", "format", "version", "renderer"),
    ),
    "place_replaced": Notice(
        "warning",
        "files that were made for another place are made anew",
        ("table", "format", "version", "stood_at", "now_at"),
    ),
    "iceberg_files_of_another_place": Notice(
        "warning",
        "rows are read although the files beside the log lead to another place",
        ("table", "made_at", "table_at", "next_step"),
    ),
    "format_could_not_follow": Notice(
        "warning",
        "a format that follows commits could not; told once for each reason",
        ("table", "format", "error", "advice"),
    ),
    "files_left_behind": Notice(
        "warning",
        "a process ended before the files that follow its commits were there; it waited so long",
        ("table", "waited_s", "advice"),
    ),
    "commits_unknown_at_exit": Notice(
        "warning",
        "a process exited before these commits were answered; it waited 10 s",
        ("commit_ids", "advice"),
    ),
    "follow_failed": Notice("warning", "no format could be looked at", ("table", "error")),
    # Clocks.
    "newest_commit_is_ahead": Notice(
        "warning",
        "the newest commit's time lies in this machine's future",
        ("stream", "seconds", "rule", "next_step"),
    ),
    # Caches: what is missing costs time alone.
    "checkpoint_failed": Notice(
        "warning", "a checkpoint could not be saved", ("root", "version", "error")
    ),
    "merging_failed": Notice("warning", "indexes could not be merged", ("root", "error")),
    "segment_skipped": Notice("warning", "a segment could not be read", ("file", "error")),
    "segment_passed_over": Notice(
        "warning", "a segment is not what the log vouches for", ("file", "error", "advice")
    ),
    "names_skipped": Notice(
        "warning", "the names of older columns could not be saved", ("version", "error")
    ),
    "file_run_skipped": Notice(
        "warning", "a run of live files could not be saved", ("version", "error")
    ),
    "file_run_damaged": Notice("warning", "a run of live files is damaged", ("file",)),
    "file_run_unreadable": Notice(
        "warning", "a run of live files could not be read", ("file", "error")
    ),
    "statistics_tile_unreadable": Notice(
        "warning", "a part of the kept statistics could not be read", ("file",)
    ),
}
"""Every event that is ever told, by its name."""


def warn(logger: str, event: str, **facts: object) -> None:
    """Tell whoever listens; who does not configure structlog sees a line on stderr."""
    # It brings rich and asyncio along, a third of what importing the ledger would take.
    import structlog

    if structlog.is_configured():
        told = structlog.get_logger(logger)
    else:
        # Its own default is stdout, where a line would stand among somebody's results.
        told = structlog.wrap_logger(structlog.PrintLogger(sys.stderr))
    told.warning(event, **facts)


def is_heard() -> bool:
    """Whether somebody in this process configured structlog."""
    # While another thread imports it, it is there and empty, and nobody has configured it.
    is_configured = getattr(sys.modules.get("structlog"), "is_configured", None)
    return is_configured is not None and bool(is_configured())


def tell(logger: str, event: str, **facts: object) -> None:
    """Tell those who configured structlog, and nobody else."""
    if not is_heard():
        return
    import structlog

    # A commit stands as it stands, whatever becomes of a line about it.
    with suppress(Exception):
        getattr(structlog.get_logger(logger), NOTICES[event].level)(event, **facts)
