"""Discovery of the ledger that the current folder is in.

The ledger is that of the nearest folder upwards that is a ledger's root. The search ends at the
root of the file system and where another file system begins, as that of git does. A ledger's files
are data, of which nothing is executed, so a discovered ledger need not be trusted.
"""

from __future__ import annotations

from pathlib import Path

from ledger.opening.ledger_file import ROOT_KEY


def find_ledger_above(folder: Path) -> Path | None:
    """Return the root of the ledger that a folder is in; None if it is in none.

    Args:
        folder: Absolute path of a folder.
    """
    try:
        device = folder.stat().st_dev
        for each in (folder, *folder.parents):
            if each.stat().st_dev != device:
                return None
            if (each / ROOT_KEY).is_file():
                return each
    except OSError:
        # A folder that cannot be read hides what is above it.
        return None
    return None


def current_ledger() -> Path | None:
    """Return the root of the ledger that the current folder is in; None if it is in none."""
    try:
        return find_ledger_above(Path.cwd())
    except FileNotFoundError:
        # The current folder was deleted.
        return None
