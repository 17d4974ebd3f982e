"""Check of locations that clients name."""

from __future__ import annotations

from typing import Final

from ledger.ledger_handle import LedgerHandle
from ledger.locations import folded, place_of
from ledger.log.layout import STREAM_FOLDER
from ledger.model.errors import InvalidInputError, UnsupportedError
from ledger.stores.file_access import resolve_symlinks
from ledger.table_handle import TableHandle

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
