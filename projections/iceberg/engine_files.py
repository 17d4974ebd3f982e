"""Files of imported Iceberg tables, read from engines' manifests.

A manifest list names every manifest of its snapshot. The snapshot's changes are in the manifests
that it added: their entries of status ADDED and DELETED. Iceberg keeps no time for a file, so the
time of its snapshot is used.

Source: the Iceberg table specification, "Manifest Lists", "Manifest Entry Fields", "Data File
Fields" and "Snapshot ID inheritance".
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, Literal, TypeVar

import msgspec
from attrs import Factory, define, frozen
from msgspec import UNSET, UnsetType

from ledger.events.snapshots import SnapshotCommitted
from ledger.model import types as t
from ledger.model.errors import DamagedLogError, LedgerError, NotFoundError, UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.iceberg_objects import IcebergSnapshot
from ledger.model.schema import Schema
from ledger.model.single_values import decode_value, encode_value
from ledger.model.transforms import field_types
from ledger.model.types import whole_number
from ledger.state.iceberg_origin import IcebergOrigin
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.iceberg.manifest_entry import FieldSummary, ManifestEntry, PartitionStruct
from projections.iceberg.manifest_list import ManifestFile, ManifestRange, unmergeable_manifest
from projections.iceberg.manifest_reading import read_manifest
from projections.iceberg.position import Names
from projections.manifest_files.container import read_container, translating_decoder_errors
from projections.manifest_files.lists import delta_list
from projections.statistics.definition import content_of
from projections.statistics.engine_files import (
    NOBODY,
    Asked,
    ListedManifest,
    ManifestPart,
    ManifestReader,
    NamedManifestList,
    Row,
)

_CONTENTS: Final = ("data", "position-deletes", "equality-deletes")


def engine_files(
    table: TableHandle, state: TableState, snapshot_ids: Iterable[int]
) -> Iterator[FileChange]:
    """Yield the live files of snapshots, as engines' manifests list them.

    Each manifest is read once, though several snapshots list it. The path of a deletion vector is
    its file, `#` and its offset in that file. Every file gets the state's schema, and the time of
    the snapshot that added it.

    Args:
        table: The table.
        state: A state that has the snapshots.
        snapshot_ids: Their ids.

    Raises:
        NotFoundError: A manifest does not exist, or its location is not allowed.
        UnsupportedError: The snapshot has no manifest list, or a manifest is encrypted.
        DamagedLogError: A manifest is damaged.
    """
    manifests = EngineManifests.of(table, state)
    structs, seen = manifests.structs(), set[str]()
    for snapshot_id in snapshot_ids:
        for each in manifests.listed(manifests.origin.snapshots[snapshot_id]):
            if each.path not in seen:
                seen.add(each.path)
                yield from manifests.files_of_manifest(each, structs)


@frozen
class EngineManifests:
    """Reader of the manifests of snapshots that engines made.

    Attributes:
        state: The table's state.
        origin: Its Iceberg metadata from the source.
        location: The ledger's location of the table, with the manifest lists of its own snapshots.
        read: Function that reads a file by its URL; None if it does not exist.
    """

    state: TableState
    origin: IcebergOrigin
    location: str
    read: Callable[[str], bytes | None]

    @classmethod
    def of(cls, table: TableHandle, state: TableState) -> EngineManifests:
        """Return the reader of a table's manifests at a state."""
        return cls(state, state.origin_of_kind(IcebergOrigin), table.location, table.read_file)

    def files(self, snapshot: IcebergSnapshot) -> Iterator[FileChange]:
        """Yield the live files of a snapshot; raises as `engine_files`."""
        structs = self.structs()
        for each in self.listed(snapshot):
            yield from self.files_of_manifest(each, structs)

    def files_of_manifest(
        self, manifest: ManifestFile, structs: Mapping[int, PartitionStruct]
    ) -> Iterator[FileChange]:
        """Yield the live files of a manifest; raises as `engine_files`.

        Args:
            manifest: The manifest.
            structs: The partition structs, as `structs` returns them.
        """
        struct = structs.get(manifest.part.spec_id)
        if struct is None:
            raise UnsupportedError(
                f"{manifest.path} is of partition spec {manifest.part.spec_id}, which the table "
                "does not have: have its owner correct the table's metadata, then import that"
            )
        for entry in read_manifest(self.body(manifest.path), manifest, struct):
            yield self._file_change_of_entry(entry, struct)

    def listed(self, snapshot: IcebergSnapshot) -> tuple[ManifestFile, ...]:
        """Return the manifests of a snapshot that have live files; raises as `engine_files`."""
        url = self.list_url(snapshot)
        return tuple(each for each in listed_manifests(self.body(url), url) if each.live_files)

    def list_url(self, snapshot: IcebergSnapshot) -> str:
        """Return the URL of a snapshot's manifest list; raises as `engine_files`."""
        if snapshot.manifest_list is not None:
            return snapshot.manifest_list
        if not self.origin.lists_files(snapshot.snapshot_id):
            raise UnsupportedError(
                f"snapshot {snapshot.snapshot_id} has no manifest list, as with very old writers: "
                "let its owner commit once more"
            )
        names = Names(self.state.table_id)
        return f"{self.location}/{names.manifest_list(snapshot.snapshot_id)}"

    def body(self, url: str) -> bytes:
        """Return a file's content; raises as `read_existing`."""
        return read_existing(self.read, url)

    def structs(self) -> dict[int, PartitionStruct]:
        """Return the partition struct of every spec, by spec id."""
        types = column_types_by_id(self.state, self.origin)
        return {each.spec_id: PartitionStruct.of(each, types) for each in self.state.specs}

    def _file_change_of_entry(self, entry: ManifestEntry, struct: PartitionStruct) -> FileChange:
        file = entry.file
        added_by = self.origin.snapshots.get(entry.snapshot_id) or self.origin.current
        values = zip(struct.columns, entry.partition, strict=True)
        try:
            partition = tuple(encode_value(value, each.type) for each, value in values)
            for each, value in zip(struct.columns, partition, strict=True):
                decode_value(value, each.type)
        except (LedgerError, ValueError, TypeError) as error:
            raise UnsupportedError(f"the partition of {entry.path} is invalid: {error}") from error
        return FileChange(
            path=entry.path,
            partition=partition,
            schema_id=self.state.schema.id,
            record_count=entry.records,
            file_size_in_bytes=file["file_size_in_bytes"],
            creation_time=0 if added_by is None else added_by.timestamp_ms,
            format=str(file["file_format"]).lower(),
            content=_CONTENTS[file["content"]],
            spec_id=entry.spec_id,
            field_ids=True,
            value_counts=_map_or_unset(file, "value_counts"),
            null_value_counts=_map_or_unset(file, "null_value_counts"),
            lower_bounds=_map_or_unset(file, "lower_bounds"),
            upper_bounds=_map_or_unset(file, "upper_bounds"),
            first_row_id=UNSET if entry.first_row_id is None else entry.first_row_id,
            # An unsorted file has no sort order id.
            sort_order_id=file.get("sort_order_id") or UNSET,
            equality_ids=tuple(file.get("equality_ids") or ()) or UNSET,
            referenced_data_file=_value_or_unset(file, "referenced_data_file"),
            content_offset=_value_or_unset(file, "content_offset"),
            content_size_in_bytes=_value_or_unset(file, "content_size_in_bytes"),
        )


def read_existing(read: Callable[[str], bytes | None], url: str) -> bytes:
    """Return the content of a file that an engine wrote.

    Args:
        read: Function that reads a file by its URL; None if it does not exist.
        url: The file.

    Raises:
        NotFoundError: It does not exist, or its location is not allowed.
    """
    body = read(url)
    if body is None:
        raise NotFoundError(
            f"{url}, which the table's engine wrote, does not exist, or its location is not "
            "allowed: ledger.open(..., allowed_locations=[...])"
        )
    return body


def listed_manifests(body: bytes, url: str) -> Iterator[ManifestFile]:
    """Yield the manifests in a manifest list.

    Args:
        body: Its bytes.
        url: Its location, for messages.

    Raises:
        DamagedLogError: The bytes are not a manifest list.
        UnsupportedError: A manifest is encrypted.
    """
    records = read_container(body, url)
    with translating_decoder_errors(url):
        found = [
            unmergeable_manifest(_manifest_from_record(each), place)
            for place, each in enumerate(records)
        ]
    yield from found


def column_types_by_id(state: TableState, origin: IcebergOrigin) -> Mapping[int, t.DataType]:
    """Return the types of all columns by field id; dropped ones have their last type."""
    found: dict[int, t.DataType] = {}
    for each in origin.schemas:
        found |= field_types(origin.schema_of(each, state.schema))
    wanted = {field.source_id for spec in state.specs for field in spec.fields}
    return {**dict.fromkeys(wanted, t.UnknownType()), **found}


def _value_or_unset(file: Mapping[str, Any], name: str) -> Any:
    return UNSET if file.get(name) is None else file[name]


def _map_or_unset(file: Mapping[str, Any], name: str) -> dict[int, Any] | UnsetType:
    pairs = file.get(name)
    if not pairs:
        return UNSET
    return {each["key"]: _hex_if_bytes(each["value"]) for each in pairs}


def _hex_if_bytes(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def _manifest_from_record(record: Mapping[str, Any]) -> ManifestFile:
    """Return the manifest file of a record in an engine's manifest list."""
    if record.get("key_metadata") is not None:
        raise UnsupportedError(f"{record['manifest_path']} is encrypted, and cannot be read here")
    content, first_row_id = record.get("content") or 0, record.get("first_row_id")
    rows = _count_or_one(record, "added", "rows") + _count_or_one(record, "existing", "rows")
    return ManifestFile(
        part=ManifestRange(0, 0, record["partition_spec_id"], content, 0),
        path=record["manifest_path"],
        length=record["manifest_length"],
        check="",
        low=(0, ""),
        high=(0, ""),
        sequence_number=record.get("sequence_number") or 0,
        min_sequence_number=record.get("min_sequence_number") or 0,
        added_snapshot_id=record["added_snapshot_id"],
        added_files=_count_or_one(record, "added", "files"),
        existing_files=_count_or_one(record, "existing", "files"),
        deleted_files=_count_or_one(record, "deleted", "files"),
        added_rows=_count_or_one(record, "added", "rows"),
        existing_rows=_count_or_one(record, "existing", "rows"),
        deleted_rows=_count_or_one(record, "deleted", "rows"),
        partitions=_field_summaries(record.get("partitions")),
        first_row_id=first_row_id,
        new_rows=0 if content or first_row_id is not None else rows,
    )


def _count_or_one(record: Mapping[str, Any], kind: str, what: str) -> int:
    """Return a count; 1 if version 1 leaves it out, so that the manifest is read."""
    found = record.get(f"{kind}_{what}_count", record.get(f"{kind}_data_{what}_count"))
    return 1 if found is None else int(found)


def _field_summaries(found: Any) -> tuple[FieldSummary, ...] | None:
    if found is None:
        return None
    names = ("contains_null", "contains_nan", "lower_bound", "upper_bound")
    return tuple(FieldSummary(*(each.get(name) for name in names)) for each in found)


ADDED, DELETED = 1, 2
"""Status of a manifest entry; 0 is EXISTING."""

_MANIFEST_CONTENTS = ("data", "position-deletes", "equality-deletes")
_SNAPSHOT_ID = "snapshot-id"


class ListedIcebergManifest(msgspec.Struct, frozen=True):
    """A manifest in a manifest list; version 1 may leave the counts out."""

    manifest_path: str
    manifest_length: int
    partition_spec_id: int
    added_snapshot_id: int
    added_files_count: int | None = None
    existing_files_count: int | None = None
    deleted_files_count: int | None = None

    @property
    def live_count(self) -> int:
        """Number of live files; 1 if unknown."""
        counts = (self.added_files_count, self.existing_files_count)
        return 1 if None in counts else sum(filter(None, counts))

    @property
    def changed_count(self) -> int:
        """Number of files added or deleted in it; 1 if unknown."""
        counts = (self.added_files_count, self.deleted_files_count)
        return 1 if None in counts else sum(filter(None, counts))


@frozen
class ManifestList:
    """A snapshot's manifest list.

    Attributes:
        snapshot_id: Iceberg's id of the snapshot, from the file's header.
        manifests: The manifests in the list.
    """

    snapshot_id: int | None
    manifests: tuple[ListedIcebergManifest, ...]


class _DataFileRecord(msgspec.Struct, frozen=True):
    file_path: str
    file_format: str
    partition: dict[str, Any]
    record_count: int
    file_size_in_bytes: int
    content: Literal[0, 1, 2] = 0
    content_offset: int | None = None


class _EntryRecord(msgspec.Struct, frozen=True):
    status: Literal[0, 1, 2]
    data_file: _DataFileRecord
    snapshot_id: int | None = None


_T = TypeVar("_T")


def manifest_list(body: bytes, file: str) -> ManifestList:
    """Return the content of a manifest list.

    Args:
        body: The whole file.
        file: Its name, for errors.

    Raises:
        DamagedLogError: It is not a manifest list, or is cut short or changed.
        MissingDependencyError: The package for the file's codec is not installed.
    """
    import fastavro

    manifests = _convert_records(read_container(body, file), ListedIcebergManifest, file)
    # The container was read completely, so its header is valid.
    said = str((fastavro.reader(io.BytesIO(body)).metadata or {}).get(_SNAPSHOT_ID, ""))
    return ManifestList(whole_number(said) if said.isascii() else None, tuple(manifests))


def _convert_records(records: Iterator[dict[str, Any]], kind: type[_T], file: str) -> list[_T]:
    try:
        return [msgspec.convert(each, kind) for each in records]
    except msgspec.ValidationError as error:
        raise DamagedLogError(
            f"{file} holds an invalid manifest record: {error}; restore it from a copy",
            file,
        ) from error


@define
class IcebergPartitions:
    """Conversion of partitions in manifest entries to the log's form.

    Attributes:
        state: The table's state, for its specs.
        schemas: Function that gives all of its schemas, newest first, for dropped columns.
    """

    state: TableState
    schemas: Callable[[], Iterator[Schema]]
    _structs: dict[int, PartitionStruct] = Factory(dict)
    _known: dict[tuple[int, tuple[Any, ...]], str] = Factory(dict)

    def json(self, spec_id: int, values: tuple[Any, ...]) -> str:
        """Return a partition as a JSON array.

        Args:
            spec_id: The partition spec.
            values: The values as in Avro, in the order of the spec's fields.

        Raises:
            NotFoundError: The table has no such spec.
            ValueError, TypeError, LedgerError: The values do not fit the spec.
        """
        key = (spec_id, values)
        found = self._known.get(key)
        if found is None:
            pairs = zip(self._partition_struct(spec_id).columns, values, strict=True)
            plain = [encode_value(column.from_avro(value), column.type) for column, value in pairs]
            found = msgspec.json.encode(plain).decode()
            self._known[key] = found
        return found

    def _partition_struct(self, spec_id: int) -> PartitionStruct:
        found = self._structs.get(spec_id)
        if found is None:
            spec = self.state.spec_by_id(spec_id)
            types = field_types(self.state.schema)
            wanted = {each.source_id for each in spec.fields}
            if wanted - types.keys():
                for schema in self.schemas():
                    types = field_types(schema) | types
            unknown = dict.fromkeys(wanted - types.keys(), t.UnknownType())
            found = PartitionStruct.of(spec, {**types, **unknown})
            self._structs[spec_id] = found
        return found


def entry_rows(body: bytes, part: ManifestPart, partitions: IcebergPartitions) -> Iterator[Row]:
    """Yield a manifest's entries: all live ones, or those of one snapshot.

    Args:
        body: The whole file.
        part: The manifest's record in its list.
        partitions: The table's partitions.

    Raises:
        DamagedLogError: It is not a manifest of this table, or is cut short or changed.
        MissingDependencyError: As `manifest_list`.
    """
    file, spec_id, adder = part.file, part.spec_id, part.adder
    for each in _convert_records(read_container(body, file), _EntryRecord, file):
        if adder == NOBODY:
            wanted = each.status != DELETED
        else:
            # An entry without a snapshot id belongs to the snapshot that added the manifest.
            by = adder if each.snapshot_id is None else each.snapshot_id
            wanted = each.status in (ADDED, DELETED) and by == adder
        if not wanted:
            continue
        found = each.data_file
        offset = "" if found.content_offset is None else f"#{found.content_offset}"
        yield (
            spec_id,
            _partition_json(partitions, spec_id, found, file),
            content_of(_MANIFEST_CONTENTS[found.content], found.file_format.lower()),
            -1 if each.status == DELETED else 1,
            found.record_count,
            found.file_size_in_bytes,
            part.time_millis,
            found.file_path + offset,
        )


def _partition_json(
    partitions: IcebergPartitions, spec_id: int, found: _DataFileRecord, file: str
) -> str:
    try:
        return partitions.json(spec_id, tuple(found.partition.values()))
    except NotFoundError as error:
        raise DamagedLogError(
            f"{file} is of a spec that the table does not have: {error}", file
        ) from error
    except (LedgerError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise DamagedLogError(
            f"{file} holds a partition {list(found.partition.values())!r:.80} that does not fit "
            f"spec {spec_id}: {error}",
            file,
        ) from error


@frozen
class IcebergManifests:
    """See `projections.statistics.engine_files.EngineManifests`."""

    def has_named(self, event: SnapshotCommitted) -> bool:
        """Return whether a snapshot names a single list, as its base list."""
        return delta_list(event) is None

    def lists(self, event: SnapshotCommitted, asked: Asked) -> Iterator[NamedManifestList]:
        """Yield the only list, which has both the snapshot's changes and its content."""
        del asked
        name, size = event.base_manifest_list, event.base_manifest_list_size
        if not isinstance(name, UnsetType):
            yield NamedManifestList(name, None if isinstance(size, UnsetType) else size)

    def listed(
        self, body: bytes, file: str, event: SnapshotCommitted, asked: Asked
    ) -> list[ListedManifest]:
        """Return the manifests that have live files, or those that the snapshot added."""
        found = manifest_list(body, file)
        live = asked == "contents" or event.snapshot_id == 1
        adder = event.snapshot_id if found.snapshot_id is None else found.snapshot_id
        return [
            ListedManifest(
                path=each.manifest_path,
                size=each.manifest_length,
                count=each.live_count if live else each.changed_count,
                adder=NOBODY if live else adder,
                spec_id=each.partition_spec_id,
            )
            for each in found.manifests
            if (each.live_count if live else each.added_snapshot_id == adder)
        ]

    def reader(self, state: TableState, schemas: Callable[[], Iterator[Schema]]) -> ManifestReader:
        """Return a reader of a table's manifests."""
        partitions = IcebergPartitions(state, schemas)
        return lambda body, part: entry_rows(body, part, partitions)


ICEBERG = IcebergManifests()
