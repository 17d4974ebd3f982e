"""Checks of locations that clients name."""

from __future__ import annotations

from typing import Final

from ledger.ledger_handle import LedgerHandle
from ledger.locations import folded, place_of
from ledger.log.layout import STREAM_FOLDER
from ledger.model.errors import (
    InvalidChangeError,
    InvalidInputError,
    StoreError,
    UnsupportedError,
)
from ledger.state.catalog import CatalogState
from ledger.stores.file_access import resolve_symlinks
from ledger.table_folders import Counts, is_live, refuse_used_folder
from ledger.table_handle import TableHandle
from projections.importing.trial import SourceFiles

_LONGEST_NAME: Final = 255
"""Length in bytes of the longest name of a file that storages take."""


def check_location(handle: LedgerHandle | TableHandle, url: str, what: str) -> None:
    """Check that a client may name a location: below the ledger, or below an allowed one.

    Args:
        handle: The ledger, or a table of it.
        url: The client's location.
        what: The name of the value, for the message.

    Raises:
        InvalidInputError: It is not a location of files.
        UnsupportedError: It is somewhere else.
    """
    setting = handle.setting
    setting.file_access().check(url)
    place = resolve_symlinks(place_of(url))
    segments = place.path.split("/")
    if any(
        folded(each) == STREAM_FOLDER or len(each.encode()) > _LONGEST_NAME for each in segments
    ):
        raise InvalidInputError(
            f"{what} {url} has a folder {STREAM_FOLDER}, which is the ledger's, or a name of more "
            f"than {_LONGEST_NAME} bytes; choose another place"
        )
    roots = (place_of(setting.home), place_of(setting.store.url), *setting.allowed)
    if ".." in segments or not any(resolve_symlinks(each).holds(place) for each in roots):
        raise UnsupportedError(
            f"{what} {url} is outside of the ledger and of the locations that are allowed; allow "
            "its folder when the ledger is opened (allowed_locations, or "
            "LAKELEDGER_ALLOWED_LOCATIONS)"
        )


def check_table_folder(
    ledger: LedgerHandle, state: CatalogState, location: str, counts: Counts
) -> None:
    """Check that engines may write a table in a folder: it meets no other table's, and no ledger.

    Args:
        ledger: The ledger.
        state: The newest state of its catalog.
        location: The folder's URL, which `check_location` permits.
        counts: The tables whose folder outside of their own counts.

    Raises:
        InvalidChangeError: It does; see `refuse_used_folder`.
        StoreError: It cannot be listed.
    """
    refuse_used_folder(ledger, state, location, counts)
    names = list_folder(SourceFiles(ledger.setting.file_access()), location)
    if any(folded(each) == STREAM_FOLDER for each in names):
        raise InvalidChangeError(
            f"location {location} holds a folder {STREAM_FOLDER}, which is a ledger's; choose "
            "another. Nothing was committed"
        )


def check_unowned_folder(ledger: LedgerHandle, state: CatalogState, location: str) -> None:
    """Check that no other table has a folder; a dropped one that was there is no obstacle.

    The folder that a dropped table had as its own is one: its log is there.

    Args:
        ledger: The ledger.
        state: The newest state of its catalog.
        location: The folder's URL, which `check_location` permits.

    Raises:
        InvalidChangeError, StoreError: As of `check_table_folder`.
    """
    check_table_folder(ledger, state, location, is_live(state))


def list_folder(files: SourceFiles, folder: str) -> list[str]:
    """Return the names in a folder; none if it does not exist.

    Raises:
        StoreError: It cannot be listed.
    """
    try:
        return files.names(folder)
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(f"{folder} cannot be listed: {error}. Nothing was committed") from error
