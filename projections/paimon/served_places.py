"""Check of a folder that a client gives a new table of Paimon: nothing in it is overwritten."""

from __future__ import annotations

from typing import Final

from ledger.ledger_handle import LedgerHandle
from ledger.model.errors import InvalidChangeError
from ledger.state.catalog import CatalogState
from ledger.table_folders import is_restorable
from projections.importing.trial import SourceFiles
from projections.locations import check_table_folder, list_folder

_PAIMON_FOLDERS: Final = ("schema", "snapshot")


def check_new_folder(ledger: LedgerHandle, state: CatalogState, location: str) -> None:
    """Check that a table can be created in a folder.

    Args:
        ledger: The ledger.
        state: The newest state of its catalog.
        location: The folder's URL.

    Raises:
        InvalidChangeError: It meets the folder of a table, or of one that may be restored; it holds
            a ledger or a part of one; or it holds a table of Paimon already.
        StoreError: It cannot be listed.
    """
    check_table_folder(ledger, state, location, is_restorable(state))
    files = SourceFiles(ledger.setting.file_access())
    for folder in _PAIMON_FOLDERS:
        found = [
            each
            for each in list_folder(files, f"{location}/{folder}")
            if each.startswith(f"{folder}-") and each[len(folder) + 1 :].isdigit()
        ]
        if found:
            raise InvalidChangeError(
                f"location {location} holds a table of Paimon already ({folder}/{found[0]}); "
                "register it, or choose another. Nothing was committed"
            )
