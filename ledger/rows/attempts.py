"""Write attempts: folders of their data files, and their list in the table's log folder.

Tasks create data files before one commit names them. An attempt that fails leaves files that no
commit names, and on an object store only a listing of all files would find them. So each task
registers its attempt before its first file, and `lakeledger maintain` looks for orphans in the
folders of registered attempts only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from attrs import evolve, field, frozen
from msgspec import json

from ledger.log.layout import Layout
from ledger.log.request import now_millis
from ledger.model.attempt_files import DATA_FOLDER, attempt_entry_name, attempt_name
from ledger.stores import Store
from ledger.table_handle import HasHandle, TableHandle, handle_of

if TYPE_CHECKING:
    import pyarrow as pa


@frozen
class WriteAttempt:
    """Attempt at writing rows of one commit; all its tasks have the same; pickled to executors.

    Attributes:
        attempt_id: Its id: random for a batch job, derived from user and batch for a stream.
        folder: The URL below which its data files are created.
    """

    attempt_id: str
    folder: str
    _location: str = field(repr=False)
    _store: Store = field(repr=False, eq=False)
    _layout: Layout = field(repr=False)

    @classmethod
    def of(cls, table: HasHandle[TableHandle], attempt_id: str) -> WriteAttempt:
        """Return an attempt at writing into a table; reads and writes nothing.

        Args:
            table: The table.
            attempt_id: Any text; folders and file names hold it with other characters replaced.

        Example:
            >>> import ledger
            >>> lake = ledger.open("memory://attempt")
            >>> _ = lake.create_database("shop")
            >>> table = lake.create_table("shop.orders", {"id": "BIGINT"})
            >>> WriteAttempt.of(table, "spark-1-7").folder
            'memory://attempt/shop.db/orders/data/spark-1-7'
        """
        return cls.of_handle(handle_of(table), attempt_id)

    @classmethod
    def of_handle(cls, handle: TableHandle, attempt_id: str) -> WriteAttempt:
        """Return an attempt at writing into the table of an internal handle; see `of`."""
        location = handle.data_location
        folder = f"{location}/{DATA_FOLDER}/{attempt_name(attempt_id)}"
        return cls(attempt_id, folder, location, handle.log.store, handle.log.layout)

    def renamed(self, attempt_id: str) -> WriteAttempt:
        """Return the attempt of another id at the same table; reads and writes nothing."""
        folder = f"{self._location}/{DATA_FOLDER}/{attempt_name(attempt_id)}"
        return evolve(self, attempt_id=attempt_id, folder=folder)

    def register(self) -> None:
        """Add the attempt to the list of today (UTC), unless it is there.

        Each task calls it before its first file, so that the list has a recent day for each file.

        Raises:
            StoreError: The store rejects it; nothing was written.
            OSError: The store did not answer; the same call again is safe.
        """
        name = attempt_entry_name(attempt_name(self.attempt_id), now_millis())
        body = json.encode({"attemptId": self.attempt_id}, order="deterministic")
        self._store.create(self._layout.attempt(name), body + b"\n")

    def registered(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield rows; register the attempt before the first of them.

        Raises:
            StoreError, OSError: As for `register`.
        """
        is_registered = False
        for batch in batches:
            if batch.num_rows and not is_registered:
                self.register()
                is_registered = True
            yield batch
