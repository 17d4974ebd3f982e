"""Engines' manifest lists and manifests as inputs of the statistics.

The module names the lists to read and decodes them; the caller reads the files, so that they can
be read anywhere, and once.

Plans consist of parts, which are independent of the reader: they hold the data of a manifest list,
so that lists are read once and manifests can be read anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal, Protocol

from attrs import field, frozen

from ledger.events.snapshots import SnapshotCommitted
from ledger.formats import INSTALLED, part, part_if_any
from ledger.history.older import TableLog
from ledger.locations import FileNames, is_absolute
from ledger.model.errors import DamagedLogError, UnsupportedError
from ledger.model.schema import Schema
from ledger.state.table import TableState
from ledger.stores import Store
from projections.statistics.definition import (
    ENTRIES,
    KEY_NAMES,
    PLACE_NAMES,
    EngineColumn,
    arrow_schema,
)

if TYPE_CHECKING:
    import pyarrow as pa


class MissingFileError(DamagedLogError):
    """A file of a snapshot is missing: its engine may have expired the snapshot."""


@contextmanager
def add_snapshot_to_errors(snapshot_id: int) -> Iterator[None]:
    """Add the snapshot's id to errors about damaged files."""
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
        """Derive the prefix of the files' names."""
        folder = f"{self.store.url}/{self.root}" if self.root else self.store.url
        object.__setattr__(self, "_on_store", FileNames(self.store.url))
        object.__setattr__(self, "_in_table", FileNames(folder))

    @classmethod
    def of(cls, log: TableLog) -> EngineFiles:
        """Return the engine files of the table that has this log."""
        return cls(log.store, log.layout.folder)

    def key(self, name: str) -> str:
        """Return the key of a file.

        Args:
            name: A path below the table's location, or an absolute one, or a URI.

        Raises:
            UnsupportedError: It is outside of the table's store.

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
                f"{name} is outside of {self.store.url}, the store of the table that names it: "
                "statistics are read from files on the table's own store alone"
            )
        return key

    def path(self, name: str) -> str:
        """Return the canonical path of a file: below the location, or a URL."""
        return self._in_table.usual(name)

    def exists(self, key: str) -> bool:
        """Return whether a file exists."""
        return self.store.exists(key)

    def read(self, key: str, size: int | None, snapshot_id: int) -> bytes:
        """Return the bytes of a file.

        Args:
            key: Its key.
            size: Its recorded size in bytes; None if unknown.
            snapshot_id: The snapshot that names it, for errors.

        Raises:
            MissingFileError: It does not exist.
            DamagedLogError: It is shorter than recorded.
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


LEDGER = "ledger"
"""The dialect of file lists in the ledger itself."""

NOBODY = -1
"""Value of `adder` that selects the entries of all snapshots."""


@frozen(kw_only=True)
class ManifestPart:
    """One manifest, or one list of file changes, and the selection of its entries.

    Attributes:
        version: The commit of the snapshot that is counted.
        snapshot_id: That snapshot.
        dialect: The format of the manifest; `LEDGER` means the list that a commit holds or
            names.
        file: Its key on the table's store; of the ledger's the commit's.
        size: Its size in bytes; -1 if not recorded.
        count: The number of its entries, as far as its list has it.
        sign: 1 if its files are added, -1 if deleted.
        compared: 1 if equal added and deleted files cancel out, as in a rollback.
        adder: The engine's id of the snapshot whose changes alone are selected, or the ledger's
            of the snapshot whose list it is; `NOBODY` selects all that its format counts.
        spec_id: The files' partition spec, in formats whose lists have it.
        time_millis: Effective time of the counted snapshot, for formats without file times.
    """

    version: int
    snapshot_id: int
    dialect: str
    file: str
    size: int = -1
    count: int = 0
    sign: int = 1
    compared: int = 0
    adder: int = NOBODY
    spec_id: int = 0
    time_millis: int = 0

    @property
    def content(self) -> tuple[str, str, int]:
        """Key that is equal for parts with the same entries."""
        return self.dialect, self.file, self.adder


FOUND = (*ENTRIES, EngineColumn("path", "string", nullable=True))
"""Rows of `ENTRIES` with the file's path, for comparison."""


PATHS = [*PLACE_NAMES, *KEY_NAMES, "path"]
"""Key of a file in the comparison of one snapshot."""

COMPARED = ("record_count", "file_size_in_bytes", "creation_time")
"""Columns that are equal for one file in every list."""

Row = tuple[int, str, str, int, int, int, int, str]
"""A manifest's entry for one file: the columns of `FOUND` after the position."""


def drop_cancelled_parts(parts: Sequence[ManifestPart]) -> list[ManifestPart]:
    """Return parts without those that are both added and deleted, which cancel out.

    Example:
        >>> from attrs import evolve
        >>> old, new = (ManifestPart(version=3, snapshot_id=3, dialect="paimon", file=each)
        ...             for each in "ab")
        >>> [each.file for each in drop_cancelled_parts([old, new, evolve(old, sign=-1)])]
        ['b']
    """
    sums: dict[tuple[str, str, int], int] = {}
    for each in parts:
        sums[each.content] = sums.get(each.content, 0) + each.sign
    found: list[ManifestPart] = []
    for each in parts:
        if sums[each.content] * each.sign > 0:
            sums[each.content] -= each.sign
            found.append(each)
    return found


def compared(rows: pa.Table) -> pa.Table:
    """Return entries without files that are both added and deleted, and without their paths.

    Args:
        rows: Rows of `FOUND`; all rows of a snapshot.
    """
    import pyarrow.compute as pc

    folds = [("sign", "sum"), *((name, "max") for name in COMPARED)]
    grouped = rows.group_by(PATHS, use_threads=False).aggregate(folds)
    names = {f"{name}_{fold}": name for name, fold in folds}
    named = grouped.rename_columns([names.get(each, each) for each in grouped.column_names])
    schema = arrow_schema(ENTRIES)
    return named.filter(pc.not_equal(named["sign"], 0)).select(schema.names).cast(schema)


Asked = Literal["changes", "contents"]
"""Selection of a snapshot's files: its changes, or its complete contents.

The changes of the first snapshot are its contents, since earlier ones are unknown.
"""


@frozen
class NamedManifestList:
    """A manifest list that a snapshot names.

    Attributes:
        path: A path below the table's location, or absolute, or a URI.
        size: Its recorded size in bytes; None if unknown.
    """

    path: str
    size: int | None


@frozen
class ListedManifest:
    """A manifest in a manifest list; see `ManifestPart`.

    Attributes:
        path: As in `NamedManifestList`.
        size: Its size in bytes.
        count: The number of selected entries, as far as its list has it.
        adder: The snapshot whose changes alone are selected, by the engine's id.
        spec_id: The files' partition spec, where the list has it.
    """

    path: str
    size: int
    count: int
    adder: int = NOBODY
    spec_id: int = 0


class ManifestReader(Protocol):
    """Reader of the manifests of one table."""

    def __call__(self, body: bytes, part: ManifestPart, /) -> Iterator[Row]:
        """Yield the selected entries of a manifest.

        Args:
            body: The whole file.
            part: The manifest's selection; paths are needed only for parts that are compared.

        Raises:
            DamagedLogError: It is no manifest of this table, or is truncated or changed.
            MissingDependencyError: The package for the file's codec is not installed.
            UnsupportedError: Its records have an unknown version.
        """


class EngineManifests(Protocol):
    """A format's decoder of its engines' manifest lists and manifests."""

    def has_named(self, event: SnapshotCommitted) -> bool:
        """Return whether the lists that a snapshot names are of the format's engines."""

    def lists(self, event: SnapshotCommitted, asked: Asked) -> Iterator[NamedManifestList]:
        """Yield the lists that a snapshot names for a selection."""

    def listed(
        self, body: bytes, file: str, event: SnapshotCommitted, asked: Asked
    ) -> list[ListedManifest]:
        """Return the manifests that a list names for a selection.

        Args:
            body: The whole list.
            file: Its name, for errors.
            event: The snapshot that names it.
            asked: The selection.

        Raises:
            DamagedLogError, MissingDependencyError, UnsupportedError: As `ManifestReader`.
        """

    def reader(self, state: TableState, schemas: Callable[[], Iterator[Schema]]) -> ManifestReader:
        """Return the reader of a table's manifests.

        Args:
            state: The table's state.
            schemas: Returns all of its schemas, newest first, for columns that were dropped.

        Raises:
            UnsupportedError: Such a table has no manifests of the format.
        """


class InstalledManifestDecoders:
    """The manifest decoders of the installed formats; each is imported on first use."""

    def __init__(self) -> None:
        self._found: dict[str, EngineManifests] = {}

    def of(self, event: SnapshotCommitted) -> tuple[str, EngineManifests]:
        """Return the format whose engine named a snapshot's lists, and its decoder.

        Raises:
            UnsupportedError: No installed format knows them.
        """
        if not self._found:
            # Other formats first: Iceberg and Paimon, the ledger's defaults, decide by which lists
            # a snapshot names, and not by their contents.
            for each in reversed(INSTALLED.names()):
                known: EngineManifests | None = part_if_any(each, "engine_manifests")
                if known is not None:
                    self._found[each] = known
        for name, manifests in self._found.items():
            if manifests.has_named(event):
                return name, manifests
        raise UnsupportedError(
            f"no installed format knows the manifest lists of snapshot {event.snapshot_id}:"
            " install the package that does"
        )


def manifest_decoder_of(format_name: str) -> EngineManifests:
    """Return a format's decoder of its engines' manifests.

    Raises:
        MissingDependencyError: No installed package provides it.
    """
    found: EngineManifests = part(format_name, "engine_manifests")
    return found
