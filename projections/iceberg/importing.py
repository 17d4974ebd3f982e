"""Import of Iceberg tables from a metadata file, folder or catalog; promotion."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import lru_cache
from typing import Any, Final, TypeAlias
from weakref import WeakKeyDictionary

import msgspec
from attrs import evolve, field, frozen
from msgspec import UNSET, inspect

import projections.iceberg.imported_metadata as m
from ledger.decide.table_options import PERSONAL_OPTION, unmatched_mark_names
from ledger.events import TableEvent
from ledger.events import imported as e
from ledger.events.snapshots import SnapshotCommitted
from ledger.events.table import SchemaRecord, TablePromoted
from ledger.locations import LOCAL, Place, family_of, place_of
from ledger.model.errors import (
    AlreadyExistsError,
    CommitConflictError,
    InvalidInputError,
    LedgerError,
    NotFoundError,
    StoreError,
    UnsupportedError,
)
from ledger.model.extras import missing_extra_error
from ledger.model.schema import highest_field_id
from ledger.model.types.wire import field_from_wire
from ledger.state.declared_formats import FORMATS_OPTION
from ledger.state.iceberg_origin import IcebergOrigin, highest_main_snapshot_id
from ledger.state.iceberg_summary import FileCounts, totals_of
from ledger.state.table import TableState
from ledger.stores.file_access import FileAccess, endpoint_of
from ledger.table_handle import TableHandle
from projections.iceberg.differences import (
    SourceStep,
    counter_change_events,
    metadata_change_events,
    split_into_steps,
)
from projections.iceberg.engine_files import EngineManifests
from projections.iceberg.imported_metadata import (
    KnownMetadata,
    known_from_source_file,
    ledger_schema,
)
from projections.iceberg.manifest_reading import partition_width
from projections.iceberg.materialise import project
from projections.iceberg.metadata_folder import (
    MetadataFile,
    Read,
    in_commit_order,
    is_later,
    is_metadata_file,
    is_same_table,
    read_metadata_file,
    read_newest_metadata_file,
)
from projections.iceberg.metadata_schema import Schema
from projections.iceberg.position import FOLDER, RENDERER, Names, is_projected_metadata_file
from projections.iceberg.schema_json import DEEPEST
from projections.iceberg.table_json import MetadataFileKeys, ParsedMetadataFile
from projections.iceberg.table_metadata import ROW_IDS_SINCE, TableMetadata
from projections.importing.importing import (
    FoundTable,
    Importing,
    IncomingTransactions,
    has_folder,
    tables_below,
)
from projections.importing.promoting import Promoting, adoption_snapshot
from projections.importing.trial import (
    ImportedCreation,
    PlannedTransaction,
    PlanningState,
    SourceFiles,
    canonical_source,
)
from projections.manifest_files.container import read_container, translating_decoder_errors

IN_CATALOG = re.compile(r"(?P<catalog>[\w-]{2,}):(?P<name>[^/:]+\.[^/:]+)")
_CATALOG = re.compile(r"(?P<catalog>[\w-]{2,}):(?P<namespace>[^/:]*)")


@frozen
class IcebergSource:
    """An Iceberg table at the source of an import.

    Attributes:
        name: Its display name, without secrets.
        newest: Its newest metadata file.
        read: Function that reads its files.
        known: A metadata file of it that was read before.
    """

    name: str
    newest: MetadataFile
    read: Read
    known: ParsedMetadataFile | None = field(default=None, repr=False, eq=False)

    def files_since(self, known: str, known_millis: int) -> list[MetadataFile]:
        """Return the metadata files after a known one that still exist, oldest first.

        Files are identified by name, which is unique in a table even if it was moved or
        copied. The newest is the last one, unless it is the known one. Entries of its log that
        name itself, a file twice, a later file, or another table's file are ignored.

        Args:
            known: The name of the known one; empty for none.
            known_millis: The time of the known one; older files are left out if the log lacks it.
        """
        known = posixpath.basename(known)
        if self.newest.name == known:
            return []
        names = {self.newest.name, ""}
        found: list[MetadataFile] = []
        for entry in reversed(self.newest.metadata.metadata_log):
            name = posixpath.basename(entry.metadata_file)
            if name in names:
                continue
            if name == known:
                break
            names.add(name)
            older = self._previous_metadata_file(entry.metadata_file)
            if (
                older is not None
                and older.metadata.last_updated_ms >= known_millis
                and not is_later(older, self.newest)
            ):
                found.append(older)
        return [*in_commit_order(found[::-1]), self.newest]

    def _previous_metadata_file(self, url: str) -> MetadataFile | None:
        """Return an earlier metadata file; None if it does not exist, or is of another table."""
        beside = posixpath.join(posixpath.dirname(self.newest.url), posixpath.basename(url))
        for place in dict.fromkeys((beside, url)):
            if family_of(place) != family_of(self.newest.url):
                # The log of a copied table has paths of the original.
                continue
            try:
                found = MetadataFile.parse(place, self.read(place), self.known)
            except (OSError, LedgerError):
                continue
            if is_same_table(found.metadata.table_uuid, self.newest.metadata.table_uuid):
                return evolve(found, url=url)
        return None

    def refuse_missing_files(self, known: Container[int] = ()) -> None:
        """Check that the snapshots of branches and tags can be read, if they are accessible.

        A metadata file outside its table's folder, such as a copy, is not checked.

        Args:
            known: Snapshots imported before, which were checked then.

        Raises:
            NotFoundError: A manifest list or a manifest does not exist.
            InvalidInputError: A manifest has another partition spec than the metadata says.
            DamagedLogError: A manifest is damaged.
        """
        metadata = self.newest.metadata
        if not _folder_place(metadata.location).holds(_folder_place(self.newest.url)):
            return
        for name, ref in metadata.refs.items():
            if ref.snapshot_id in known:
                continue
            snapshot = metadata.snapshot(ref.snapshot_id)
            named = snapshot.manifests or ()
            for path, spec_id in self._files_of_snapshot(snapshot.manifest_list, named, known):
                try:
                    body = self.read(path)
                    if spec_id is not None:
                        _check_partition_width(metadata, spec_id, body, path)
                except OSError as error:
                    raise NotFoundError(
                        f"{path} of snapshot {snapshot.snapshot_id}, which {name} points to, "
                        f"cannot be read ({error}); nothing was imported"
                    ) from error

    def _files_of_snapshot(
        self, listed: str | None, named: tuple[str, ...], known: Container[int]
    ) -> Iterator[tuple[str, int | None]]:
        """Yield the files needed to read a snapshot, each manifest with its spec id if given."""
        yield from ((each, None) for each in named)
        if listed is None:
            return
        yield listed, None
        records = read_container(self.read(listed), listed)
        with translating_decoder_errors(listed):
            manifests = [msgspec.convert(each, _ListedManifest) for each in records]
        for each in manifests:
            if each.added_snapshot_id not in known:
                yield each.manifest_path, each.partition_spec_id


class _ListedManifest(msgspec.Struct):
    """The fields of a manifest list's record that are checked before an import."""

    manifest_path: str
    partition_spec_id: int | None = None
    added_snapshot_id: int | None = None


def _check_partition_width(metadata: TableMetadata, spec_id: int, body: bytes, path: str) -> None:
    """Check that a manifest's partition spec is one of its table's."""
    spec = metadata.specs_by_id.get(spec_id)
    has = f"the metadata has no partition spec {spec_id}"
    if spec is not None:
        wanted = len(spec.fields)
        if partition_width(body, path) == wanted:
            return
        has = f"partition spec {spec_id} of the metadata has {wanted} fields, and the manifest not"
    raise InvalidInputError(
        f"{path} cannot be read by its spec: {has}; nothing was imported: have its owner correct "
        "the metadata, then import again"
    )


def _folder_place(url: str) -> Place:
    return place_of(url.rstrip("/"), Place(LOCAL, "", ""))


def open_source(
    source: str,
    access: FileAccess,
    known: ParsedMetadataFile | None = None,
    origin: IcebergOrigin | None = None,
) -> IcebergSource:
    """Open a table at its source.

    Args:
        source: A metadata file, a table's folder, or `CATALOG:NAMESPACE.TABLE` of a catalog that
            PyIceberg is configured for.
        access: Permission to open files, and the options of the storage client.
        known: A metadata file of it that was read before; unchanged parts are not parsed again.
        origin: The imported table that follows it, if there is one.

    Raises:
        InvalidInputError: The source is not an Iceberg table, a file is cut short, or a folder has
            files of several tables.
        NotFoundError: The source does not exist.
        StoreError: The source cannot be read.
        MissingDependencyError: A catalog was named, and PyIceberg is not installed.
    """
    named = IN_CATALOG.fullmatch(source)
    if named is not None:
        return _open_from_catalog(source, named["catalog"], named["name"], access, known)
    at = canonical_source(source)
    if is_metadata_file(at):
        files = SourceFiles(access.below(_table_folder_of(at)))
        found = read_metadata_file(at, files.read, known)
        return IcebergSource(found.metadata.location, found, files.read, known)
    files = SourceFiles(access.below(at))
    found = read_newest_metadata_file(at, files, known, origin)
    # The name that its own metadata log will use.
    own = f"{found.metadata.location}/metadata/{found.name}"
    is_there = _folder_place(found.metadata.location) == _folder_place(at)
    return IcebergSource(at, evolve(found, url=own) if is_there else found, files.read, known)


def _table_folder_of(metadata_file: str) -> str:
    """Return the folder of a metadata file's table, judging by its path."""
    folder = posixpath.dirname(metadata_file)
    return posixpath.dirname(folder) if posixpath.basename(folder) == "metadata" else folder


def tables_of(source: str, access: FileAccess) -> list[FoundTable]:
    """Return the tables of a folder, or of a catalog or one of its namespaces.

    Args:
        source: A folder of tables or of databases, `CATALOG:`, or `CATALOG:NAMESPACE`.
        access: Permission to open files, and the options of the storage client.

    Raises:
        NotFoundError: There is no table.
        StoreError: The folder cannot be listed, or the catalog cannot be reached.
        MissingDependencyError: A catalog was named, and PyIceberg is not installed.
    """
    named = _CATALOG.fullmatch(source)
    if named is None:
        at = canonical_source(source)
        return tables_below(SourceFiles(access.below(at)), at, has_folder("metadata"))
    catalog, namespace = named["catalog"], named["namespace"]
    load_catalog = pyiceberg_catalog_loader()
    try:
        with closing_catalog(load_catalog(catalog)) as asked:
            spaces = [(namespace,)] if namespace else asked.list_namespaces()
            found = [each for space in spaces for each in asked.list_tables(space)]
    except Exception as error:
        # Each kind of catalog has its own errors.
        raise StoreError(f"catalog {catalog} cannot list its tables: {error}") from error
    if not found:
        raise NotFoundError(f"catalog {source} has no tables")
    return [
        FoundTable("_".join(space), name, f"{catalog}:{'.'.join((*space, name))}")
        for *space, name in sorted(found)
    ]


def pyiceberg_catalog_loader() -> Callable[[str], Any]:
    """Return PyIceberg's function that loads a catalog by name; the caller closes it.

    Raises:
        MissingDependencyError: PyIceberg is not installed.
    """
    try:
        from pyiceberg.catalog import load_catalog
    except ImportError as error:
        raise missing_extra_error(
            f"catalogs are read through PyIceberg, which is not installed ({error})", "iceberg"
        ) from error
    return load_catalog


@contextmanager
def closing_catalog(catalog: Any) -> Iterator[Any]:
    """Yield a catalog, then close its connections; PyIceberg before 0.11 cannot close them."""
    try:
        yield catalog
    finally:
        if hasattr(catalog, "close"):
            catalog.close()


def _open_from_catalog(
    source: str, catalog: str, name: str, access: FileAccess, known: ParsedMetadataFile | None
) -> IcebergSource:
    load_catalog = pyiceberg_catalog_loader()
    from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

    try:
        # The table's file reader stays open after its catalog is closed.
        with closing_catalog(load_catalog(catalog)) as asked:
            table = asked.load_table(name)
    except (NoSuchTableError, NoSuchNamespaceError) as error:
        raise NotFoundError(f"catalog {catalog} has no table {name}") from error
    except Exception as error:
        # Each kind of catalog has its own errors.
        raise StoreError(f"catalog {catalog} cannot load {name}: {error}") from error

    at = table.metadata_location
    permitted = access.below(_table_folder_of(at))
    if family_of(at) != LOCAL:
        # The catalog's client may read every bucket of the table's own service.
        permitted = evolve(permitted, endpoints=(endpoint_of(at, access.options),))

    def read(url: str) -> bytes:
        permitted.check(url)
        if family_of(url) == LOCAL:
            return permitted.read(url)
        with table.io.new_input(url).open() as stream:
            body: bytes = stream.read()
        return body

    return IcebergSource(source, read_metadata_file(at, read, known), read, known)


def has_swappable_pointer(catalog: str) -> bool:
    """Return whether a catalog's pointer can be swapped atomically (compare and set).

    PyIceberg's SQL catalogs have one row per table, in a transactional database.
    """
    from pyiceberg.catalog.sql import SqlCatalog

    try:
        with closing_catalog(pyiceberg_catalog_loader()(catalog)) as found:
            return isinstance(found, SqlCatalog)
    except Exception as error:
        # Each kind of catalog has its own errors.
        raise StoreError(f"catalog {catalog} cannot be reached: {error}") from error


def _open_named_catalog(source: str) -> tuple[AbstractContextManager[Any], tuple[str, ...]]:
    named = IN_CATALOG.fullmatch(source)
    if named is None:
        raise InvalidInputError(f"{source} is not a catalog table, CATALOG:NAMESPACE.TABLE")
    return closing_catalog(pyiceberg_catalog_loader()(named["catalog"])), tuple(
        named["name"].split(".")
    )


def catalog_pointer_of(source: str) -> str | None:
    """Return the metadata file of a table in a SQL catalog; None if there is no such table.

    The file itself is not read: it may have been deleted and others written instead.

    Raises:
        StoreError: The catalog cannot be read.
    """
    from pyiceberg.catalog.sql import IcebergTables
    from sqlalchemy import select
    from sqlalchemy.exc import SQLAlchemyError

    opened, name = _open_named_catalog(source)
    with opened as catalog:
        try:
            with catalog.engine.connect() as connection:
                question = select(IcebergTables.metadata_location).where(
                    *_row_conditions(catalog, name)
                )
                found: str | None = connection.execute(question).scalar_one_or_none()
        except SQLAlchemyError as error:
            raise StoreError(f"{source} cannot be looked up: {error}") from error
    return found


def swap_catalog_pointer(source: str, expected: str, new: str) -> bool:
    """Set a catalog table's metadata file, if the current one is as expected.

    Returns whether the pointer was swapped.

    Raises:
        StoreError: The catalog cannot be read or written.
    """
    from pyiceberg.catalog.sql import IcebergTables
    from sqlalchemy import update
    from sqlalchemy.exc import SQLAlchemyError

    opened, name = _open_named_catalog(source)
    with opened as catalog:
        statement = (
            update(IcebergTables)
            .where(*_row_conditions(catalog, name), IcebergTables.metadata_location == expected)
            .values(metadata_location=new, previous_metadata_location=expected)
        )
        try:
            with catalog.engine.begin() as connection:
                done = connection.execute(statement)
        except SQLAlchemyError as error:
            raise StoreError(f"{source} cannot be pointed to {new}: {error}") from error
    return bool(done.rowcount == 1)


def _row_conditions(catalog: Any, table: tuple[str, ...]) -> tuple[Any, ...]:
    """Return the conditions that select a table's row in a SQL catalog."""
    from pyiceberg.catalog.sql import IcebergTables

    *space, name = table
    return (
        IcebergTables.catalog_name == catalog.name,
        IcebergTables.table_namespace == ".".join(space),
        IcebergTables.table_name == name,
    )


def creation_of(first: TableMetadata, source: str) -> ImportedCreation:
    """Return the creation events of a table, from its oldest known metadata file.

    Args:
        first: The content of that file.
        source: The source table's name.

    Raises:
        UnsupportedError: The ledger cannot hold its first schema, spec or sort order.
    """
    schema = ledger_schema(_oldest_known_schema(first), first.format_version)
    fields = tuple(map(field_from_wire, schema.fields))
    spec, order = first.specs_by_id.get(0), first.orders_by_id.get(1)
    begins_sorted = order is not None and 0 not in first.orders_by_id
    return ImportedCreation(
        schema=SchemaRecord(
            fields=schema.fields,
            highest_field_id=highest_field_id(fields),
            options={FORMATS_OPTION: "iceberg"},
            identifier_field_ids=schema.identifier_field_ids,
        ),
        origin=e.ImportedIcebergTable(
            source=source,
            location=first.location,
            format_version=first.format_version,
            schema_id=schema.schema_id,
            table_uuid=first.table_uuid or UNSET,
            text=schema.text,
        ),
        millis=min(_times_in_metadata(first)),
        field_id_policy="iceberg",
        partition_spec=UNSET if spec is None else spec.fields,
        sort_order=order.fields if begins_sorted and order is not None else UNSET,
    )


def _oldest_known_schema(first: TableMetadata) -> Schema:
    """Return the oldest schema that was current at some time, as far as a file shows."""
    # Iceberg gives id 0 to the schema of a new table, and a snapshot names its current schema.
    current = {0, first.current_schema_id, *(each.schema_id for each in first.snapshots)}
    known = (each for each in first.schemas if each.schema_id in current)
    return min(known, key=lambda each: each.schema_id)


def _times_in_metadata(metadata: TableMetadata) -> Iterator[int]:
    yield metadata.last_updated_ms
    yield from (each.timestamp_ms for each in metadata.snapshots)
    yield from (each.timestamp_ms for each in metadata.snapshot_log)
    yield from (each.timestamp_ms for each in metadata.metadata_log)


def plan_import(
    trial: PlanningState, files: Sequence[MetadataFile], known: m.KnownMetadata | None = None
) -> Iterator[PlannedTransaction]:
    """Yield the transactions that import metadata files, oldest first.

    Args:
        trial: The table's state; afterwards, the state after all of them.
        files: The files, oldest first.
        known: The current state as Iceberg metadata, if computed before.

    Raises:
        UnsupportedError: The ledger cannot hold a file's content; the message names it.
    """
    for each in files:
        begun = known or m.known_metadata(trial.state, each.metadata)
        before = begun.metadata
        if each is not files[-1] and _is_copy(trial.state, before, each):
            continue
        for step in split_into_steps(before, each.metadata):
            yield _plan_step(trial, before, step, each)
            before = step.target
        known = m.known_metadata(trial.state, each.metadata, begun)
        _refuse_inexact_copy(known.metadata, each)


def _plan_step(
    trial: PlanningState, before: TableMetadata, step: SourceStep, file: MetadataFile
) -> PlannedTransaction:
    events = metadata_change_events(trial, before, step.target)
    if step.is_whole:
        state = trial.after(events, step.millis, step.author)
        followed = e.SourceFollowed(file.url, step.target.last_updated_ms)
        events = (*events, *counter_change_events(state, step.target), followed)
    return trial.take(events, step.millis, step.author, file.url)


def _is_copy(state: TableState, reached: TableMetadata, file: MetadataFile) -> bool:
    """Return whether a file has the content of the file imported before it, under another name."""
    return (
        state.origin_of_kind(IcebergOrigin).synced_in >= 0
        and reached.last_updated_ms == file.metadata.last_updated_ms
        and not m.differing_fields(reached, file.metadata)
    )


def _refuse_inexact_copy(made: TableMetadata, file: MetadataFile) -> None:
    wrong = m.differing_fields(made, file.metadata)
    if wrong:
        said = ", ".join(each.replace("_", "-") for each in wrong)
        raise UnsupportedError(f"the ledger cannot hold the {said} of {file.url} exactly")


_Walk: TypeAlias = Callable[[Any, str], Iterator[str]]
"""Function that yields the paths of unknown keys in JSON at a path."""


def unknown_metadata_keys(
    parts: Mapping[str, msgspec.Raw], places: Mapping[str, Collection[int]] | None = None
) -> tuple[str, ...]:
    """Return the paths of keys in a metadata file that this version does not know.

    Args:
        parts: The JSON text of a valid table metadata file, by key.
        places: The items of a list to check, by the list's key; all items of other lists. Most of a
            long history was checked before.

    Example:
        >>> unknown_metadata_keys({"refs": msgspec.Raw(b'{"main": {"colour": 1}}')})
        ('refs.*.colour',)
    """
    wanted = places or {}
    found = {
        key: _list_items_at(part, wanted[key]) if key in wanted else msgspec.json.decode(part)
        for key, part in parts.items()
    }
    return tuple(dict.fromkeys(_table_key_walk()(found, "")))


_RAW: Final = msgspec.json.Decoder(list[msgspec.Raw] | None)


def _list_items_at(part: msgspec.Raw, places: Collection[int]) -> list[Any]:
    items = _RAW.decode(part) or () if places else ()
    return [msgspec.json.decode(items[place]) for place in places]


@lru_cache(maxsize=1)
def _table_key_walk() -> _Walk:
    inside = _walks_of_fields(MetadataFileKeys)
    return _object_walk(
        {**inside, "schema": _unknown_schema_keys, "schemas": _list_walk(_unknown_schema_keys)}
    )


def _walks_of_fields(kind: type) -> dict[str, _Walk | None]:
    info = inspect.type_info(kind)
    if not isinstance(info, inspect.StructType):
        raise TypeError(kind)
    return {each.encode_name: _key_walk_of_type(each.type) for each in info.fields}


def _key_walk_of_type(info: inspect.Type) -> _Walk | None:
    """Return a function that checks values of a type; None if the type has no keys."""
    if isinstance(info, inspect.StructType):
        return _object_walk(_walks_of_fields(info.cls))
    if isinstance(info, inspect.CollectionType):
        inner = _key_walk_of_type(info.item_type)
        return inner and _list_walk(inner)
    if isinstance(info, inspect.DictType):
        inner = _key_walk_of_type(info.value_type)
        return inner and _map_walk(inner)
    if isinstance(info, inspect.UnionType):
        return next((found for each in info.types if (found := _key_walk_of_type(each))), None)
    return None


def _object_walk(inside: dict[str, _Walk | None]) -> _Walk:
    def walk(value: Any, place: str) -> Iterator[str]:
        for key, each in value.items() if isinstance(value, dict) else ():
            if key not in inside:
                yield f"{place}{key}"
            elif (inner := inside[key]) is not None:
                yield from inner(each, f"{place}{key}.")

    return walk


def _list_walk(inner: _Walk) -> _Walk:
    def walk(value: Any, place: str) -> Iterator[str]:
        for each in value if isinstance(value, list) else ():
            yield from inner(each, place)

    return walk


def _map_walk(inner: _Walk) -> _Walk:
    def walk(value: Any, place: str) -> Iterator[str]:
        for each in value.values() if isinstance(value, dict) else ():
            yield from inner(each, f"{place}*.")

    return walk


_COLUMN: Final = frozenset(
    ("id", "name", "required", "type", "doc", "initial-default", "write-default")
)
_NO_TYPE: Final[frozenset[str]] = frozenset()
_TYPES: Final = {
    "struct": frozenset(("type", "schema-id", "identifier-field-ids", "fields")),
    "list": frozenset(("type", "element-id", "element", "element-required")),
    "map": frozenset(("type", "key-id", "key", "value-id", "value", "value-required")),
}


def _unknown_schema_keys(value: Any, place: str, depth: int = 0) -> Iterator[str]:
    """Yield the unknown keys of a schema or a type.

    The JSON may be invalid: `schema`, which later versions left in place, is not parsed if
    there are `schemas`.
    """
    if not isinstance(value, dict) or depth > DEEPEST:
        return
    kind, fields = value.get("type"), value.get("fields")
    known = _TYPES.get(kind, _NO_TYPE) if isinstance(kind, str) else _NO_TYPE
    yield from (f"{place}{key}" for key in value.keys() - known)
    for each in fields if isinstance(fields, list) else ():
        if not isinstance(each, dict):
            continue
        if not each.keys() <= _COLUMN:
            yield from (f"{place}fields.{key}" for key in each.keys() - _COLUMN)
        yield from _unknown_schema_keys(each.get("type"), f"{place}fields.type.", depth + 1)
    for key in ("element", "key", "value"):
        yield from _unknown_schema_keys(value.get(key), f"{place}{key}.", depth + 1)


@frozen
class _LastImport:
    """State of a source at its last import in this process."""

    newest: MetadataFile

    def known_metadata(self, state: TableState) -> KnownMetadata | None:
        """Return a state as Iceberg metadata, if it is the source's at that time."""
        origin, newest = state.origin_of_kind(IcebergOrigin), self.newest
        is_it = origin.synced_in == state.version and origin.metadata_file == newest.url
        return known_from_source_file(state, newest.metadata) if is_it else None


_looks: WeakKeyDictionary[TableHandle, _LastImport] = WeakKeyDictionary()


def read(
    source: str, table: TableHandle | None, now_millis: int, access: FileAccess
) -> IncomingTransactions:
    """Return the new versions; see `projections.importing.importing.Read`."""
    look = None if table is None else _looks.get(table)
    known = None if table is None else table.state
    origin = None if known is None else known.origin_of_kind(IcebergOrigin)
    found = open_source(source, access, look.newest.file if look else None, origin)
    since = ("", 0)
    if origin is not None:
        _refuse_other_table(origin, found)
        since = origin.metadata_file, origin.last_updated_millis
    files = found.files_since(*since)
    if files:
        found.refuse_missing_files(() if origin is None else origin.snapshots)
    creation = None if known is not None else creation_of(files[0].metadata, found.name)
    start = known if creation is None else creation.state()
    if start is None:
        raise AssertionError("the table exists or is created by this import")
    known_metadata = look.known_metadata(start) if look else None
    plan = tuple(plan_import(PlanningState(start, now_millis), files, known_metadata))
    if table is not None:
        _looks[table] = _LastImport(found.newest)
    return IncomingTransactions(
        found.name, found.newest.url, creation, plan, _keys_not_imported(found, origin, files)
    )


def _keys_not_imported(
    source: IcebergSource, origin: IcebergOrigin | None, files: Sequence[MetadataFile]
) -> tuple[str, ...]:
    if not files:
        return ()
    file = source.newest.file
    # Unknown keys of a file that was read before were reported then.
    is_all_new = origin is None or file.new is not file.parts
    unknown = unknown_metadata_keys(
        file.new, None if is_all_new or origin is None else _new_item_positions(file, origin)
    )
    return tuple(f"the key {each} of {posixpath.basename(source.newest.url)}" for each in unknown)


def _new_item_positions(
    file: ParsedMetadataFile, origin: IcebergOrigin
) -> dict[str, Collection[int]]:
    """Return the positions of new items in the lists of a file."""
    said, logged = file.metadata, len(origin.snapshot_log)
    last = origin.snapshot_log[-1].snapshot_id if logged else None
    begins = len(said.snapshot_log) >= logged > 0
    same = begins and said.snapshot_log[logged - 1].snapshot_id == last
    schemas = said.schemas_by_id.keys() - origin.schemas.keys()
    snapshots = said.snapshots_by_id.keys() - origin.snapshots.keys()
    return {
        "schemas": [at for at, each in enumerate(said.schemas) if each.schema_id in schemas],
        "snapshots": [
            at for at, each in enumerate(said.snapshots) if each.snapshot_id in snapshots
        ],
        "snapshot-log": range(logged if same else 0, len(said.snapshot_log)),
    }


def _refuse_other_table(origin: IcebergOrigin, source: IcebergSource) -> None:
    now = source.newest.metadata
    if is_same_table(origin.table_uuid, now.table_uuid):
        return
    if origin.table_uuid is None and origin.location == now.location:
        return
    raise AlreadyExistsError(
        f"the table follows {origin.source}, whose uuid is {origin.table_uuid}; "
        f"that of {source.name} is {now.table_uuid}: it is another table, or was dropped and "
        "recreated; import it under another name"
    )


ICEBERG = Importing("iceberg", read, tables_of)


class IcebergHandover:
    """See `projections.importing.promoting.Handover`."""

    def source(self, table: TableHandle) -> str:
        """Return the source of an imported table."""
        return table.state.origin_of_kind(IcebergOrigin).source

    def is_here(self, table: TableHandle, source: str, access: FileAccess) -> bool:
        """Return whether the source points to the ledger's own files already.

        Raises:
            UnsupportedError: It is a catalog's table, and points to another ledger's files.
        """
        newest = open_source(source, access).newest.url
        if _is_ledger_metadata_file(table, newest):
            return True
        if IN_CATALOG.fullmatch(source) and is_projected_metadata_file(newest):
            raise UnsupportedError(
                f"{source} is already written by a ledger's table: its catalog points to {newest}. "
                "Commit there; its changes are imported here"
            )
        return False

    def promotion(self, table: TableHandle, source: str) -> tuple[TableEvent, ...]:
        """Return the promotion's event.

        Raises:
            UnsupportedError: The table is encrypted, or marks a column as personal that does not
                exist.
        """
        state = table.state
        origin = state.origin_of_kind(IcebergOrigin)
        if origin.encryption_keys:
            raise UnsupportedError(
                f"{origin.source} is encrypted, and the ledger writes no encrypted files; leave it "
                "to its owner"
            )
        lost = unmatched_mark_names(
            state.schema.options.get(PERSONAL_OPTION, ""), state.schema.fields
        )
        if lost and state.keeps_outside:
            raise UnsupportedError(
                f"{origin.source} marks {lost[0]} as personal, and has no such column: the bounds "
                f"of the column that is meant would stay in the log for ever. Set its property "
                f"{PERSONAL_OPTION}, import that (lakeledger import iceberg), and promote again"
            )
        last = highest_main_snapshot_id(origin.snapshots)
        said = TablePromoted(
            source=origin.source,
            catalog=_swappable_catalog_of(source) or UNSET,
            last_snapshot_id=last,
        )
        return (said,)

    def adoption(self, table: TableHandle) -> tuple[TableEvent, ...]:
        """Return the snapshot that lists the live files; nothing without a snapshot.

        Raises:
            UnsupportedError: A snapshot has no manifest list.
            NotFoundError: A manifest does not exist.
        """
        state = table.state
        origin = state.origin_of_kind(IcebergOrigin)
        last = (
            origin.last_assigned_id
            if origin.is_promoted
            else highest_main_snapshot_id(origin.snapshots)
        )
        adopted = _adoption_snapshot(table, state, origin, last)
        return () if adopted is None else (adopted,)

    def hand_over(
        self, table: TableHandle, source: str, access: FileAccess, now_millis: int
    ) -> bool:
        """Swap the catalog's pointer, if it is unchanged since the last import."""
        del now_millis
        newest = open_source(source, access).newest.url
        if _is_ledger_metadata_file(table, newest):
            return True
        imported = table.state.origin_of_kind(IcebergOrigin).metadata_file
        if posixpath.basename(newest) != posixpath.basename(imported):
            return False
        if not _swappable_catalog_of(source):
            return True
        version = project(table)
        return swap_catalog_pointer(source, newest, _metadata_file_uri(table, version))

    def instructions(self, table: TableHandle) -> tuple[str, ...]:
        """Return the next steps for the table's former owner, one sentence each."""
        origin, name = table.state.origin_of_kind(IcebergOrigin), table.identifier
        stop = f"stop all writers of {origin.source}: new commits there are lost to the ledger"
        catalog = _readers_catalog(table, None)
        if catalog:
            on = f"after later changes, update {catalog} with: lakeledger promote {name}"
            return (stop, on)
        read = f"let readers read {table.location}, or register its newest metadata file for them"
        keep = f"keep the files below {origin.location}: the table's older rows stay there"
        on = f"after later changes, bring the files up to date: lakeledger project iceberg {name}"
        return (stop, read, keep, on)


class IcebergLeading:
    """See `projections.importing.promoting.Leading`."""

    def check(self, table: TableHandle, source: str | None) -> None:
        """See `projections.importing.promoting.Leading`."""
        _check_catalog_pointer(table, _readers_catalog(table, source))

    def follow(self, table: TableHandle, source: str | None) -> None:
        """Project the table, and move the catalog's pointer to its newest metadata file."""
        version, catalog = project(table), _readers_catalog(table, source)
        at, wanted = _check_catalog_pointer(table, catalog), _metadata_file_uri(table, version)
        if not at or at == wanted:
            return
        if not swap_catalog_pointer(catalog, at, wanted):
            # A concurrent promotion moved it, or a writer of the catalog committed.
            _check_catalog_pointer(table, catalog)

    def catalog(self, table: TableHandle, source: str) -> str:
        """Return the catalog table that points here; empty if none does."""
        return _readers_catalog(table, source)


def _readers_catalog(table: TableHandle, given: str | None) -> str:
    """Return the catalog's table whose pointer readers of a table follow; empty if none is known.

    That is the given source, or the catalog's table that the promotion recorded, or the source that
    was named at the import.
    """
    if given is not None and _swappable_catalog_of(given):
        return given
    log, state = table.log, table.state
    if state.is_promoted:
        promotions = log.find_matching_commits(
            0,
            state.version,
            lambda sketch: any(
                event.type == "promoteTable"
                for each in sketch.transactions
                for event in each.events
            ),
        )
        for _, commit in promotions:
            for event in (event for each in commit.transactions for event in each.events):
                if isinstance(event, TablePromoted) and event.catalog is not UNSET:
                    return _swappable_catalog_of(event.catalog)
    return _swappable_catalog_of(state.origin.source)


def _check_catalog_pointer(table: TableHandle, source: str) -> str:
    """Return the ledger's metadata file that a promoted table's catalog points to; empty without.

    Args:
        table: The table.
        source: As `_readers_catalog` returns it.

    Raises:
        CommitConflictError: It points to another file: a writer committed through the catalog.
        InvalidInputError: It points to a location that the table was moved from.
        NotFoundError: The catalog has no such table.
        StoreError: The catalog cannot be read.
    """
    if not source:
        return ""
    at, name, since = catalog_pointer_of(source), table.identifier, table.state.owner.since_version
    if at is None:
        raise NotFoundError(
            f"{source} does not exist in its catalog, and the ledger owns {name} since version "
            f"{since}: register a metadata file of {table.location}/metadata under that name, and "
            f"run again: lakeledger promote {name}"
        )
    if _is_ledger_metadata_file(table, at):
        return at
    register = (
        f"drop {source} from its catalog without its files, register a metadata file of "
        f"{table.location}/metadata under that name, and run again: lakeledger promote {name}"
    )
    if _has_metadata_file_name(table, f"{FOLDER}/{posixpath.basename(at)}"):
        raise InvalidInputError(
            f"{source} points to {at}, a metadata file of {name} at another location than "
            f"{table.location}: {register}"
        )
    raise CommitConflictError(
        f"{source} points to {at}, which the ledger did not write: another writer committed "
        f"there, and the ledger owns {name} since version {since}. Nothing was overwritten. "
        "Stop that writer, look at its rows under another name (lakeledger import iceberg "
        f"{source} {name}_foreign), and commit the missing ones to {name}. Then {register}",
        source,
        table.state.version,
    )


def _swappable_catalog_of(source: str) -> str:
    named = IN_CATALOG.fullmatch(source)
    return source if named is not None and has_swappable_pointer(named["catalog"]) else ""


def _metadata_file_uri(table: TableHandle, version: int) -> str:
    return f"{table.location}/{Names(table.state.table_id).metadata(version)}"


def _is_ledger_metadata_file(table: TableHandle, url: str) -> bool:
    """Return whether the ledger projected a metadata file, with any renderer version."""
    own = f"{table.location}/"
    path = url.removeprefix(own)
    return path != url and _has_metadata_file_name(table, path)


def _has_metadata_file_name(table: TableHandle, path: str) -> bool:
    """Return whether a path below a table's location is of one of its projected metadata files."""
    names = (Names(table.state.table_id, each) for each in range(1, RENDERER + 1))
    return any(each.version_of(path) is not None for each in names)


def _adoption_snapshot(
    table: TableHandle, state: TableState, origin: IcebergOrigin, last: int
) -> SnapshotCommitted | None:
    """Return the snapshot by which the ledger lists the live files; None if there are none."""
    current = origin.current
    manifests = EngineManifests.of(table, state)
    files = () if current is None else tuple(manifests.files(current))
    # The log still lists what it listed before engines owned the table.
    changes = table.live.difference_to(state, files)
    if current is None and not changes:
        return None
    listed = () if current is None else manifests.listed(current)
    rows = sum(each.new_rows for each in listed)
    is_numbered = origin.format_version >= ROW_IDS_SINCE
    return adoption_snapshot(
        changes,
        total_record_count=totals_of(files).records,
        snapshot_id=origin.next_snapshot_id(last),
        schema_id=origin.schema_id,
        summary=FileCounts.of(()).summary("COMPACT", totals_of(files).named, {}),
        next_row_id=origin.next_row_id + rows if is_numbered else UNSET,
    )


PROMOTE = Promoting(ICEBERG, IcebergHandover(), IcebergLeading())
