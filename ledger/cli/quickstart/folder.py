"""The folder of the quickstart: empty, or its own."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from ledger.cli.quickstart.flights import by_day
from ledger.cli.quickstart.steps import DATABASE, IDENTIFIER
from ledger.model.errors import AlreadyExistsError

if TYPE_CHECKING:
    import pyarrow as pa

MARKER = ".lakeledger-quickstart"
JANUARY, NEW_YEAR = "january.parquet", "new-year.parquet"
_OWN = (MARKER, "_ledger", f"{DATABASE}.db", JANUARY, NEW_YEAR)


def prepare(folder: Path, *, anew: bool) -> None:
    """Make a folder ready for the story.

    Args:
        folder: Where the ledger will be.
        anew: Whether an earlier quickstart in it goes.

    Raises:
        AlreadyExistsError: It holds other things, or an earlier quickstart that should stay.
    """
    if folder.exists() and not folder.is_dir():
        raise AlreadyExistsError(f"{folder} is a file; name a folder for the quickstart")
    found = {each.name for each in folder.iterdir()} if folder.exists() else set()
    if found and MARKER not in found:
        raise AlreadyExistsError(
            f"folder {folder} holds other things ({min(found)}, ...); name an empty or a new one: "
            "lakeledger quickstart DIR"
        )
    if found and not anew:
        raise AlreadyExistsError(
            f"folder {folder} holds an earlier quickstart; look at it (lakeledger log {IDENTIFIER} "
            f"--ledger {folder}), or begin it anew with --anew"
        )
    others = found - set(_OWN)
    if others:
        raise AlreadyExistsError(
            f"folder {folder} holds things beside the quickstart ({min(others)}, ...), which are "
            "not deleted; name another folder"
        )
    _empty(folder)


def _empty(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    # The marker comes first and goes last, so that a run that was killed can be begun anew.
    (folder / MARKER).touch()
    for name in _OWN[1:]:
        place = folder / name
        if place.is_file():
            place.unlink()
        else:
            shutil.rmtree(place, ignore_errors=True)


def leave_files(folder: Path, flights: pa.Table) -> None:
    """Leave the flights as plain files: all of them, and the first day's, for tables of one's own.

    Args:
        folder: Where to.
        flights: The packaged flights.
    """
    from pyarrow import parquet

    parquet.write_table(flights, folder / JANUARY)
    parquet.write_table(by_day(flights)["2013-01-01"], folder / NEW_YEAR)
