"""Command `import`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any

from cyclopts import App, Parameter

from ledger.cli.exits import UsageError
from ledger.cli.families import add, family
from ledger.cli.options import LedgerFlags
from ledger.cli.output import Screen, progress_reports
from ledger.formats import having, part
from ledger.ledger import open as open_ledger
from ledger.model.errors import NotFoundError
from ledger.relocation.importing import ImportSummary, import_lines
from ledger.table_handle import handle_of


def import_ledger(
    file: Annotated[
        str, Parameter(allow_leading_hyphen=True, help="File written by export; - for stdin.")
    ],
    /,
    *,
    copy: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="The original stays in use: give the copy a ledger id of its own.",
        ),
    ] = False,
    restore: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="The original takes no more commits: keep its ledger id.",
        ),
    ] = False,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Import an export: restore the ledger at a new location, or make a copy.

    The hash chain of every commit is verified before it is written. Run again with the same export
    or a later one, it resumes: existing files are not rewritten, and differing ones are rejected.
    The ledger cannot be opened until the import is complete. Two ledgers with one id that both take
    commits would contradict each other, so say which it is: --restore or --copy.

    Copy the data files separately, to the same relative paths.

    Example:
        lakeledger import ledger backup.jsonl --restore --ledger ./restored
    """
    if copy == restore:
        raise UsageError(
            "write either --restore, if the original takes no more commits, or --copy, if it stays "
            "in use and this becomes a ledger of its own"
        )
    lake = open_ledger(place.url(), place.storage_options(), trust=place.trust)
    report = progress_reports(place.screen, "importing {}: {:,} of {:,} commits")
    with _open_export(file) as lines:
        done = import_lines(handle_of(lake).setting, lines, as_copy=copy, report=report)
    place.screen.result(
        _import_document(lake.url, done), lambda to: _print_import(to, lake.url, done)
    )


@contextmanager
def _open_export(file: str) -> Iterator[IO[bytes]]:
    if file == "-":
        yield sys.stdin.buffer
        return
    if not Path(file).is_file():
        raise NotFoundError(f"there is no file {file}")
    with Path(file).open("rb") as lines:
        yield lines


def _import_document(url: str, done: ImportSummary) -> dict[str, Any]:
    document: dict[str, Any] = {
        "url": url,
        "ledgerId": done.ledger_id,
        "copiedFrom": done.copied_from,
        "commitsWritten": done.written,
        "streams": [
            {"stream": name, "version": version, "head": head or None}
            for name, version, head in done.streams
        ],
        "notCarried": list(done.absent),
    }
    return {key: value for key, value in document.items() if value is not None}


def _print_import(screen: Screen, url: str, done: ImportSummary) -> None:
    of = f", a copy of {done.copied_from}" if done.copied_from else ""
    screen.line(f"{url} has the ledger {done.ledger_id}{of}")
    screen.line(f"{done.written:,} commits were written")
    for name in done.absent:
        screen.line(f"not in the export: {name}; import it later, or drop it")
    for name, version, head in done.streams:
        screen.line(f"{name}  {version}:{head}" if head else f"{name}  no commits")


def register(app: App) -> None:
    """Add the group with `import ledger` and an import command for each format."""
    imports = family(
        app,
        "import",
        text="Import a ledger from an export, or tables of other formats.",
        example="lakeledger import ledger backup.jsonl --restore --ledger ./restored",
    )
    add(imports, "ledger", import_ledger)
    for each in having("import_command"):
        part(each, "import_command")(imports)
