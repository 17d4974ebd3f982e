"""EngineFiles: manifest lists and manifests that a table's engine keeps below its location."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import field, frozen

from ledger.history.older import TableLog
from ledger.locations import FileNames, is_absolute
from ledger.model.errors import DamagedLogError, UnsupportedError
from ledger.stores import Store


class MissingFileError(DamagedLogError):
    """What a snapshot is known by is gone: its engine may have expired the snapshot."""


@contextmanager
def named_by(snapshot_id: int) -> Iterator[None]:
    """Let errors about damaged files say which snapshot names them."""
    try:
        yield
    except MissingFileError:
        raise
    except DamagedLogError as error:
        raise DamagedLogError(f"of snapshot {snapshot_id}: {error}", error.file) from error


@frozen
class EngineFiles:
    """The files of one table's engine.

    Attributes:
        store: The table's.
        root: The table's folder on it; empty when it is the store's root.
    """

    store: Store
    root: str
    _on_store: FileNames = field(init=False, repr=False, eq=False)
    _in_table: FileNames = field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        """Work out what the files' names begin with."""
        folder = f"{self.store.url}/{self.root}" if self.root else self.store.url
        object.__setattr__(self, "_on_store", FileNames(self.store.url))
        object.__setattr__(self, "_in_table", FileNames(folder))

    @classmethod
    def of(cls, log: TableLog) -> EngineFiles:
        """Return those of the table that has this log."""
        return cls(log.store, log.layout.folder)

    def key(self, name: str) -> str:
        """Return the key of a file.

        Args:
            name: A path below the table's location, or an absolute one, or a URI.

        Raises:
            UnsupportedError: It lies outside of the table's store.

        Example:
            >>> from ledger.stores import MemoryStore
            >>> files = EngineFiles(MemoryStore("lake"), "shop.db/orders")
            >>> files.key("metadata/snap-1.avro"), files.key("memory://lake/x/snap-1.avro")
            ('shop.db/orders/metadata/snap-1.avro', 'x/snap-1.avro')
        """
        if not is_absolute(name):
            return f"{self.root}/{name}" if self.root else name
        key = self._on_store.usual(name)
        if is_absolute(key):
            raise UnsupportedError(
                f"{name} lies outside of {self.store.url}, the store of the table that names it: "
                "statistics are read from files on the table's own store alone"
            )
        return key

    def path(self, name: str) -> str:
        """Return the one path of a file, however it is spelled: below the location, or a URL."""
        return self._in_table.usual(name)

    def exists(self, key: str) -> bool:
        """Whether a file is there."""
        return self.store.exists(key)

    def read(self, key: str, size: int | None, snapshot_id: int) -> bytes:
        """Return a file.

        Args:
            key: Its key.
            size: Its bytes, where that was recorded.
            snapshot_id: The snapshot that names it, for errors.

        Raises:
            MissingFileError: It is not there.
            DamagedLogError: It is shorter than was recorded.
        """
        body = self.store.read(key)
        if body is None:
            raise MissingFileError(
                f"{key}, which snapshot {snapshot_id} names, is missing. Restore it; or, if the "
                "table's engine expired that snapshot, expire it in the ledger, too",
                key,
            )
        if size is not None and len(body) < size:
            raise DamagedLogError(
                f"{key} has {len(body)} of its {size} bytes. Restore it from a copy",
                key,
            )
        return body
