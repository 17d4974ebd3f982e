"""Locations of ledgers and tables that are sent to Spark's tasks, and the start of a task."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any
from zipimport import zipimporter

import msgspec
from attrs import field, frozen

from ledger.ledger import Ledger
from ledger.ledger import open as open_ledger
from ledger.model.names import Identifier
from ledger.opening.context import TableSetting
from ledger.stores import client_options, open_store
from ledger.stores.wrappers import Trust, with_trust
from ledger.table_handle import TableHandle, handle_of


@frozen
class LedgerLocation:
    """Location of a ledger, and the options of its storage client."""

    url: str
    storage_options: Mapping[str, Any] = field(factory=dict, hash=False)
    trust: Trust = "all"

    def open(self) -> Ledger:
        """Return a new handle of the ledger.

        Raises:
            NotFoundError: There is no ledger at the URL.
            DamagedLogError: The ledger's root file is missing.
        """
        lake = open_ledger(self.url, self.storage_options, trust=self.trust)
        handle_of(lake).refuse_missing()
        return lake

    def setting(self) -> TableSetting:
        """Return the setting that handles of its tables share; one client per process."""
        options = msgspec.json.encode(dict(self.storage_options), order="sorted")
        return _shared_setting(self.url, options, self.trust)


def encode_storage_options(options: Mapping[str, Any]) -> str:
    """Return options of a storage client as the value of the option `storageOptions`, JSON."""
    return msgspec.json.encode(dict(options)).decode()


@lru_cache(maxsize=16)
def _shared_setting(url: str, options: bytes, trust: Trust) -> TableSetting:
    given: dict[str, Any] = msgspec.json.decode(options)
    return TableSetting(
        store=with_trust(open_store(url, given), trust),
        storage_options=client_options(url, given),
        author="",
        trust=trust,
    )


@frozen
class TablePlace:
    """Location of a table's stream in a ledger, and its name for messages."""

    identifier: str
    table_id: str
    path: str

    def open(self, root: LedgerLocation) -> TableHandle:
        """Return its handle, without reading the catalog."""
        database, _, name = self.identifier.partition(".")
        return TableHandle(Identifier(database, name), self.path, root.setting())


def clear_archive_importers() -> None:
    """Clear Python's importers of archives; imported modules stay.

    Before every task Spark invalidates Python's import caches. Up to Python 3.11 each importer of
    an archive then reads the archive's directory again, and a worker has one for each package of
    Spark's: a fifth of a second per task. They are a cache, and recreated when needed.
    """
    for path, importer in list(sys.path_importer_cache.items()):
        if isinstance(importer, zipimporter):
            del sys.path_importer_cache[path]
