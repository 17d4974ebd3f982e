"""The command `import`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Annotated, Any

from cyclopts import App, Parameter

from ledger.cli.families import add, family
from ledger.cli.options import LedgerFlags
from ledger.cli.output import Screen, progress_notices
from ledger.formats import having, part
from ledger.ledger import open as open_ledger
from ledger.model.errors import NotFoundError
from ledger.relocation.importing import Brought, bring


def import_ledger(
    file: Annotated[
        str, Parameter(allow_leading_hyphen=True, help="What export wrote; - for stdin.")
    ],
    /,
    *,
    copy: Annotated[
        bool,
        Parameter(
            negative="",
            show_default=False,
            help="Give it an identity of its own, for when the original goes on.",
        ),
    ] = False,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Bring a ledger back from what export wrote: the same ledger in a new place, or a copy.

    Every commit is checked along its hashes before it is written. Asked again with the same lines,
    or with those of a later export, it goes on from where it was: nothing that stands there is
    rewritten, and what differs is refused. Until all came through, the ledger cannot be opened.

    Data files are brought by other means: they belong below the same paths.

    Example:
        lakeledger import ledger backup.jsonl --ledger ./restored
    """
    lake = open_ledger(place.url(), place.storage_options(), trust=place.trust)
    report = progress_notices(place.screen, "importing {}: {:,} of {:,} commits")
    with _opened(file) as lines:
        done = bring(lake.setting, lines, as_copy=copy, told=report)
    place.screen.result(_document(lake.url, done), lambda to: _print(to, lake.url, done))


@contextmanager
def _opened(file: str) -> Iterator[IO[bytes]]:
    if file == "-":
        yield sys.stdin.buffer
        return
    if not Path(file).is_file():
        raise NotFoundError(f"there is no file {file}")
    with Path(file).open("rb") as lines:
        yield lines


def _document(url: str, done: Brought) -> dict[str, Any]:
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


def _print(screen: Screen, url: str, done: Brought) -> None:
    of = f", a copy of {done.copied_from}" if done.copied_from else ""
    screen.line(f"{url} holds the ledger {done.ledger_id}{of}")
    screen.line(f"{done.written:,} commits were written")
    for name in done.absent:
        screen.line(f"not carried: {name}; import it later, or drop it")
    for name, version, head in done.streams:
        screen.line(f"{name}  {version}:{head}" if head else f"{name}  no commit")


def register(app: App) -> None:
    """Add what brings in a ledger; what else can be imported is told by the formats."""
    imports = family(
        app,
        "import",
        text="Bring in what exists elsewhere: a ledger, or tables of other formats.",
        example="lakeledger import ledger backup.jsonl --ledger ./restored",
    )
    add(imports, "ledger", import_ledger)
    for each in having("import_command"):
        part(each, "import_command")(imports)
