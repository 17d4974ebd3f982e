"""`lakeledger export`: a ledger as lines."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from cyclopts import Parameter

from ledger.cli.exits import UsageError
from ledger.cli.options import LedgerFlags, tables_of
from ledger.cli.screen import Screen
from ledger.model.identifier import Identifier
from ledger.moving.export import Told
from ledger.moving.export import export as export_ledger

_FIRST_NOTICE_S = 2.0
_NOTICE_S = 10.0


@contextmanager
def telling(screen: Screen, what: str) -> Iterator[Told]:
    """Yield what says on stderr now and then how far it is."""
    due = time.monotonic() + _FIRST_NOTICE_S

    def tell(stream: str, done: int, of: int) -> None:
        nonlocal due
        now = time.monotonic()
        if now >= due and done < of:
            screen.notice(f"{what} {stream}: {done:,} of {of:,} commits")
            due = now + _NOTICE_S

    yield tell


def export(
    *names: Annotated[
        str, Parameter(help="DATABASE.TABLE; none: the whole ledger.", completer=tables_of)
    ],
    version: Annotated[
        int | None, Parameter(help="Of one table: no commit after this version.")
    ] = None,
    place: LedgerFlags = LedgerFlags(),  # noqa: B008 - frozen
) -> None:
    """Write a ledger to stdout as lines of JSON: its commits byte for byte, and what they name.

    Others may go on writing meanwhile: the catalog is read first, then each table as far as it
    reaches. Tables that were dropped are there, too. Data files are not, and neither is what can be
    made again from the log: caches and projections.

    `lakeledger import ledger` brings the lines back.

    Example:
        lakeledger export > backup.jsonl

        lakeledger export shop.orders shop.items | zstd > two.jsonl.zst
    """
    if sys.stdout.isatty():
        raise UsageError("this would fill the screen: lakeledger export > FILE")
    lake = place.open()
    wanted = [Identifier.parse(each) for each in names]
    out = sys.stdout.buffer
    with telling(place.screen, "exporting") as told:
        done = export_ledger(lake.setting, out, wanted, version=version, told=told)
    out.flush()
    place.screen.notice(
        f"exported {done.commits:,} commits of {len(done.streams):,} logs, and "
        f"{done.files:,} files that they name"
    )
