"""Iceberg tables as sources: metadata file, folder or catalog."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Container, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import msgspec
from attrs import evolve, field, frozen

from ledger.locations import LOCAL, Place, family_of, place_of
from ledger.model.errors import (
    InvalidInputError,
    LedgerError,
    MissingDependencyError,
    NotFoundError,
    StoreError,
    TooLargeError,
)
from ledger.model.iceberg_objects import MAIN, SnapshotRef
from ledger.stores.file_access import FileAccess, endpoint_of
from projections.iceberg.manifest_reading import partition_width
from projections.iceberg.table_json import ReadFile, read_after
from projections.iceberg.table_metadata import TableMetadata
from projections.importing.importing import FoundTable, has_folder, tables_below
from projections.importing.trial import SourceFiles, place_of_source
from projections.manifest_files.container import read_container, telling_damage

Read = Callable[[str], bytes]
"""Returns a file's bytes; raises OSError where it is not there or may not be read."""

_METADATA = re.compile(r"\.metadata\.json(\.gz)?$|\.gz\.metadata\.json$")
IN_CATALOG = re.compile(r"(?P<catalog>[\w-]{2,}):(?P<name>[^/:]+\.[^/:]+)")
_CATALOG = re.compile(r"(?P<catalog>[\w-]{2,}):(?P<namespace>[^/:]*)")
_NUMBER = re.compile(r"v?([0-9]+)")


@frozen
class MetadataFile:
    """A metadata file, and what it says.

    Attributes:
        url: Where it is.
        file: It, as it was read.
        metadata: What it says; `main` among its refs, which older writers left to the reader.
    """

    url: str
    file: ReadFile = field(repr=False, eq=False)
    metadata: TableMetadata


@frozen
class Source:
    """A table of somebody else.

    Attributes:
        name: As people know it; without secrets.
        newest: What it says now.
        read: Reads its files.
        known: A file of it that was read before.
    """

    name: str
    newest: MetadataFile
    read: Read
    known: ReadFile | None = field(default=None, repr=False, eq=False)

    def files_since(self, known: str, known_millis: int) -> list[MetadataFile]:
        """Return the metadata files that came after a known one and are still there, oldest first.

        Files are known by their names, which are unique in a table, wherever it was moved or
        copied. The newest is among them unless it is the known one.

        Args:
            known: The known one; empty for none.
            known_millis: When it was written. No older one comes where the log names it no more.
        """
        if posixpath.basename(self.newest.url) == posixpath.basename(known):
            return []
        found = [self.newest]
        for entry in reversed(self.newest.metadata.metadata_log):
            if posixpath.basename(entry.metadata_file) == posixpath.basename(known):
                break
            older = self._older(entry.metadata_file)
            if older is not None and older.metadata.last_updated_ms >= known_millis:
                found.append(older)
        return found[::-1]

    def _older(self, url: str) -> MetadataFile | None:
        """Return an earlier metadata file; None where it is gone, or of another table."""
        beside = posixpath.join(posixpath.dirname(self.newest.url), posixpath.basename(url))
        for place in dict.fromkeys((beside, url)):
            if family_of(place) != family_of(self.newest.url):
                # A table that was copied names the place that it came from.
                continue
            try:
                file = read_after(self.read(place), self.known)
            except (OSError, LedgerError):
                continue
            if file.metadata.table_uuid == self.newest.metadata.table_uuid:
                return MetadataFile(url, file, _whole(file.metadata))
        return None

    def refuse_missing(self, known: Container[int] = ()) -> None:
        """Check that what the branches and tags point to can be read, where it is at hand.

        A metadata file that lies elsewhere than its table, as a copy does, says nothing of that.

        Args:
            known: The snapshots that came in before: what they brought was there then.

        Raises:
            NotFoundError: A manifest list or a manifest is gone.
            InvalidInputError: A manifest is of another partition spec than the metadata says.
            DamagedLogError: A manifest is none.
        """
        metadata = self.newest.metadata
        if not _place(metadata.location).holds(_place(self.newest.url)):
            return
        for name, ref in metadata.refs.items():
            if ref.snapshot_id in known:
                continue
            snapshot = metadata.snapshot(ref.snapshot_id)
            named = snapshot.manifests or ()
            for path, spec_id in self._manifests(snapshot.manifest_list, named, known):
                try:
                    body = self.read(path)
                    if spec_id is not None:
                        _refuse_other_width(metadata, spec_id, body, path)
                except OSError as error:
                    raise NotFoundError(
                        f"{path} of snapshot {snapshot.snapshot_id}, which {name} points to, "
                        f"cannot be read ({error}); nothing was imported"
                    ) from error

    def _manifests(
        self, listed: str | None, named: tuple[str, ...], known: Container[int]
    ) -> Iterator[tuple[str, int | None]]:
        """Yield the files that a snapshot is read by, each manifest with its spec if it is said."""
        yield from ((each, None) for each in named)
        if listed is None:
            return
        yield listed, None
        records = read_container(self.read(listed), listed)
        with telling_damage(listed):
            manifests = [msgspec.convert(each, _ListedManifest) for each in records]
        for each in manifests:
            if each.added_snapshot_id not in known:
                yield each.manifest_path, each.partition_spec_id


class _ListedManifest(msgspec.Struct):
    """The part of a manifest list's record that is checked before an import."""

    manifest_path: str
    partition_spec_id: int | None = None
    added_snapshot_id: int | None = None


def _refuse_other_width(metadata: TableMetadata, spec_id: int, body: bytes, path: str) -> None:
    """Check that a manifest is of a partition spec of its table."""
    spec = metadata.specs_by_id.get(spec_id)
    has = f"the metadata has no partition spec {spec_id}"
    if spec is not None:
        wanted = len(spec.fields)
        if partition_width(body, path) == wanted:
            return
        has = f"partition spec {spec_id} of the metadata has {wanted} fields, and the manifest not"
    raise InvalidInputError(
        f"{path} cannot be read by its spec: {has}; nothing was imported: have its owner put the "
        "metadata right, then import again"
    )


def _place(url: str) -> Place:
    return place_of(url.rstrip("/"), Place(LOCAL, "", ""))


def open_source(source: str, access: FileAccess, known: ReadFile | None = None) -> Source:
    """Find a table.

    Args:
        source: A metadata file, a table's folder, or `CATALOG:NAMESPACE.TABLE` of a catalog that
            PyIceberg is configured for.
        access: Permission to open files, and the options of their client.
        known: A file of it that was read before: what stands there is not read again.

    Raises:
        InvalidInputError: There is something else, or half a file.
        NotFoundError: There is nothing.
        StoreError: It may not be read.
        MissingDependencyError: A catalog was named, and PyIceberg is not installed.
    """
    named = IN_CATALOG.fullmatch(source)
    if named is not None:
        return _of_catalog(source, named["catalog"], named["name"], access, known)
    at = place_of_source(source)
    if _METADATA.search(at):
        files = SourceFiles(access.below(_root_of(at)))
        found = _read(at, files.read, known)
        return Source(found.metadata.location, found, files.read, known)
    files = SourceFiles(access.below(at))
    found = _read(_newest_in(at, files), files.read, known)
    # By the name that its own log will have for it.
    own = f"{found.metadata.location}/metadata/{posixpath.basename(found.url)}"
    is_there = _place(found.metadata.location) == _place(at)
    return Source(at, evolve(found, url=own) if is_there else found, files.read, known)


def _root_of(metadata_file: str) -> str:
    """Return the folder of the table that a metadata file belongs to, as its path says."""
    folder = posixpath.dirname(metadata_file)
    return posixpath.dirname(folder) if posixpath.basename(folder) == "metadata" else folder


def _read(url: str, read: Read, known: ReadFile | None) -> MetadataFile:
    try:
        body = read(url)
    except FileNotFoundError as error:
        raise NotFoundError(f"{url} does not exist; name a metadata file, or a folder") from error
    except OSError as error:
        raise StoreError(f"{url} cannot be read: {error}") from error
    try:
        file = read_after(body, known)
        return MetadataFile(url, file, _whole(file.metadata))
    except TooLargeError as error:
        raise TooLargeError(f"{url}: {error}") from error
    except InvalidInputError as error:
        raise InvalidInputError(f"{url} is no metadata of an Iceberg table: {error}") from error


def _whole(metadata: TableMetadata) -> TableMetadata:
    """Return metadata whose branch `main` is said, which older writers left to the reader."""
    current = metadata.current_snapshot_id
    if current is None or MAIN in metadata.refs:
        return metadata
    main = SnapshotRef(snapshot_id=current, type="branch")
    return evolve(metadata, refs={**metadata.refs, MAIN: main})


def _newest_in(folder: str, files: SourceFiles) -> str:
    """Return the newest metadata file of a table's folder."""
    try:
        names = files.names(f"{folder}/metadata")
    except FileNotFoundError as error:
        raise NotFoundError(
            f"{folder} holds no Iceberg table: it has no folder metadata/"
        ) from error
    except OSError as error:
        raise StoreError(f"{folder} cannot be read: {error}") from error
    found = [each for each in names if _METADATA.search(each)]
    if not found:
        raise InvalidInputError(f"{folder}/metadata holds no metadata file of an Iceberg table")
    hinted = ""
    if "version-hint.text" in names:
        hint = files.read(f"{folder}/metadata/version-hint.text").decode(errors="replace").strip()
        hinted = next((e for e in found if e in {f"v{hint}.metadata.json", hint}), "")
    return f"{folder}/metadata/{hinted or _highest(found, folder)}"


def _highest(names: list[str], folder: str) -> str:
    numbered = sorted(
        (int(number[1]), each) for each in names if (number := _NUMBER.match(each)) is not None
    )
    if not numbered:
        raise InvalidInputError(
            f"which file of {folder}/metadata is the newest, nobody says: name it itself"
        )
    highest = [each for number, each in numbered if number == numbered[-1][0]]
    if len(highest) > 1:
        raise InvalidInputError(
            f"{folder}/metadata has {len(highest)} files of the highest number, {highest[0]} and "
            f"{highest[1]}: name the one that is the table's"
        )
    return highest[0]


def tables_of(source: str, access: FileAccess) -> list[FoundTable]:
    """Return the tables of a folder, or of a catalog or one of its namespaces.

    Args:
        source: A folder of tables or of databases, `CATALOG:`, or `CATALOG:NAMESPACE`.
        access: Permission to open files, and the options of their client.

    Raises:
        NotFoundError: There is no table.
        StoreError: The folder may not be listed, or the catalog cannot be asked.
        MissingDependencyError: A catalog was named, and PyIceberg is not installed.
    """
    named = _CATALOG.fullmatch(source)
    if named is None:
        at = place_of_source(source)
        return tables_below(SourceFiles(access.below(at)), at, has_folder("metadata"))
    catalog, namespace = named["catalog"], named["namespace"]
    load_catalog = catalogs()
    try:
        with closed_after(load_catalog(catalog)) as asked:
            spaces = [(namespace,)] if namespace else asked.list_namespaces()
            found = [each for space in spaces for each in asked.list_tables(space)]
    except Exception as error:
        # Every kind of catalog has errors of its own.
        raise StoreError(f"catalog {catalog} cannot be asked for its tables: {error}") from error
    if not found:
        raise NotFoundError(f"catalog {source} has no tables")
    return [
        FoundTable("_".join(space), name, f"{catalog}:{'.'.join((*space, name))}")
        for *space, name in sorted(found)
    ]


def catalogs() -> Callable[[str], Any]:
    """Return what loads a catalog by its name; whoever does closes it.

    Raises:
        MissingDependencyError: PyIceberg is not installed.
    """
    try:
        from pyiceberg.catalog import load_catalog
    except ImportError as error:
        raise MissingDependencyError(
            f"catalogs are asked through PyIceberg, which is not installed ({error}): pip install "
            '"lakeledger[iceberg]"'
        ) from error
    return load_catalog


@contextmanager
def closed_after(catalog: Any) -> Iterator[Any]:
    """Yield a catalog and let go of its connections; those before PyIceberg 0.11 keep theirs."""
    try:
        yield catalog
    finally:
        if hasattr(catalog, "close"):
            catalog.close()


def _of_catalog(
    source: str, catalog: str, name: str, access: FileAccess, known: ReadFile | None
) -> Source:
    load_catalog = catalogs()
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    try:
        # What a table reads its files by stays open without its catalog.
        with closed_after(load_catalog(catalog)) as asked:
            table = asked.load_table(name)
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        raise NotFoundError(f"catalog {catalog} has no table {name}") from error
    except Exception as error:
        # Every kind of catalog has errors of its own.
        raise StoreError(f"catalog {catalog} cannot be asked for {name}: {error}") from error

    at = table.metadata_location
    permitted = access.below(_root_of(at))
    if family_of(at) != LOCAL:
        # The catalog's client reads every bucket of the table's own service.
        permitted = evolve(permitted, endpoints=(endpoint_of(at, access.options),))

    def read(url: str) -> bytes:
        permitted.check(url)
        if family_of(url) == LOCAL:
            return permitted.read(url)
        with table.io.new_input(url).open() as stream:
            body: bytes = stream.read()
        return body

    return Source(source, _read(at, read, known), read, known)


def is_swappable(catalog: str) -> bool:
    """Whether a catalog's pointer can be swapped on the condition that it is where it was.

    PyIceberg's SQL catalogs have one row a table, in a database that compares and sets.
    """
    from pyiceberg.catalog.sql import SqlCatalog

    try:
        with closed_after(catalogs()(catalog)) as found:
            return isinstance(found, SqlCatalog)
    except Exception as error:
        # Every kind of catalog has errors of its own.
        raise StoreError(f"catalog {catalog} cannot be asked: {error}") from error


def _named(source: str) -> tuple[AbstractContextManager[Any], tuple[str, ...]]:
    named = IN_CATALOG.fullmatch(source)
    if named is None:
        raise InvalidInputError(f"{source} is no table of a catalog, CATALOG:NAMESPACE.TABLE")
    return closed_after(catalogs()(named["catalog"])), tuple(named["name"].split("."))


def pointer_of(source: str) -> str | None:
    """Return the metadata file that a table of a SQL catalog leads to; None without such a table.

    The file itself is not asked for: it may be gone where others were made in its place.

    Raises:
        StoreError: The catalog cannot be asked.
    """
    from pyiceberg.catalog.sql import IcebergTables
    from sqlalchemy import select
    from sqlalchemy.exc import SQLAlchemyError

    opened, name = _named(source)
    with opened as catalog:
        try:
            with catalog.engine.connect() as connection:
                question = select(IcebergTables.metadata_location).where(*_row(catalog, name))
                found: str | None = connection.execute(question).scalar_one_or_none()
        except SQLAlchemyError as error:
            raise StoreError(f"{source} cannot be asked for: {error}") from error
    return found


def swap_pointer(source: str, expected: str, new: str) -> bool:
    """Let a catalog's table lead to another metadata file, if it leads to the one expected.

    Returns whether it did.

    Raises:
        StoreError: The catalog cannot be asked or written.
    """
    from pyiceberg.catalog.sql import IcebergTables
    from sqlalchemy import update
    from sqlalchemy.exc import SQLAlchemyError

    opened, name = _named(source)
    with opened as catalog:
        statement = (
            update(IcebergTables)
            .where(*_row(catalog, name), IcebergTables.metadata_location == expected)
            .values(metadata_location=new, previous_metadata_location=expected)
        )
        try:
            with catalog.engine.begin() as connection:
                done = connection.execute(statement)
        except SQLAlchemyError as error:
            raise StoreError(f"{source} cannot be led to {new}: {error}") from error
    return bool(done.rowcount == 1)


def _row(catalog: Any, table: tuple[str, ...]) -> tuple[Any, ...]:
    """Return what holds of the one row that a SQL catalog has of a table."""
    from pyiceberg.catalog.sql import IcebergTables

    *space, name = table
    return (
        IcebergTables.catalog_name == catalog.name,
        IcebergTables.table_namespace == ".".join(space),
        IcebergTables.table_name == name,
    )
