"""Live files of imported Paimon tables, from engines' manifests.

Only the fields of an entry that statistics need are decoded. A base list holds all entries before a
snapshot's own, merged or not: added and deleted files sum up to the files live before it.

Source: Paimon's ManifestFileMeta, ManifestEntry and DataFileMeta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeVar

import msgspec
from attrs import Factory, define, frozen
from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from ledger.events.snapshots import SnapshotCommitted
from ledger.locations import with_scheme
from ledger.model.errors import DamagedLogError, InvalidInputError, NotFoundError, UnsupportedError
from ledger.model.file_change import FileChange, PartitionValue
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot
from ledger.model.types import DataField, DataType
from ledger.state.paimon_origin import PaimonOrigin
from ledger.state.table import TableState
from ledger.table_handle import TableHandle
from projections.manifest_files.container import read_container
from projections.manifest_files.lists import delta_list
from projections.paimon.binary_row import decode_row
from projections.paimon.manifest_avro import (
    MANIFEST_VERSION,
    ManifestEntry,
    read_manifest,
    read_manifest_list,
)
from projections.paimon.manifest_writing import file_change
from projections.paimon.paths import bucket_path, manifest_path
from projections.paimon.row_values import scalar
from projections.partition_text import PartitionText
from projections.statistics.engine_files import (
    Asked,
    ListedManifest,
    ManifestPart,
    ManifestReader,
    NamedManifestList,
    Row,
)

_Key = tuple[bytes, int, int, str]


def engine_files(
    table: TableHandle, state: TableState, snapshot_ids: Iterable[int]
) -> Iterator[FileChange]:
    """Yield the live files of snapshots, from engines' manifests.

    Their paths are absolute. A table with a primary key has bounds of key columns only: those of
    another column may come from rows that a newer file replaces, so a scan must not skip a file
    by them.

    Args:
        table: The table.
        state: A state that has the snapshots.
        snapshot_ids: Their ids.

    Raises:
        NotFoundError: A manifest is missing, or outside of the permitted locations.
        DamagedLogError: A manifest is damaged, or deletes a file that was not live.
    """
    paimon = state.origin_of_kind(PaimonOrigin)
    reader, snapshots = EngineFileReader(table, state, paimon), paimon.readable_snapshots
    for each in snapshot_ids:
        yield from reader.live_files(snapshots[each])


@define
class EngineFileReader:
    """Reader of engines' manifests of a table.

    Attributes:
        table: The table.
        state: A state of it, whose schema has the partition keys.
        paimon: Its origin.
    """

    table: TableHandle
    state: TableState
    paimon: PaimonOrigin
    _columns: dict[int, tuple[DataField, ...]] = Factory(dict)

    def live_files(self, snapshot: Snapshot) -> Iterator[FileChange]:
        """Yield the live files of a snapshot."""
        for entry in self.live_entries(snapshot):
            change = self.file_change(entry)
            yield self._keep_key_statistics(change, self._known(entry.file.schema_id))

    def live_entries(self, snapshot: Snapshot) -> Iterable[ManifestEntry]:
        """Return the entries of the live files of a snapshot.

        Raises:
            NotFoundError: A manifest is missing, or outside of the permitted locations.
            DamagedLogError: A manifest is damaged, or deletes a file that was not live.
        """
        found: dict[_Key, ManifestEntry] = {}
        lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
        for name in (each for each in lists if each is not None):
            for entry in self._list_entries(name):
                file = entry.file
                key = (entry.partition, entry.bucket, file.level, file.file_name)
                if entry.kind == "ADD":
                    found[key] = entry
                elif found.pop(key, None) is None:
                    raise DamagedLogError(
                        f"{name} deletes {file.file_name}, which was not live", name
                    )
        return found.values()

    def file_change(self, entry: ManifestEntry) -> FileChange:
        """Return the file change of an entry, with an absolute path.

        Raises:
            DamagedLogError: Its partition or statistics do not fit their types.
        """
        schema = self.state.schema
        try:
            return file_change(
                entry,
                spec_types=[schema.field(each).type for each in schema.partition_keys],
                columns=self._known(entry.file.schema_id),
                folder=self._bucket_folder(entry, schema),
            )
        except InvalidInputError as error:
            name = entry.file.file_name
            raise DamagedLogError(f"an entry of {name} is invalid: {error}", name) from error

    def _list_entries(self, name: str) -> Iterator[ManifestEntry]:
        for each in read_manifest_list(self.read_manifest_file(name), name):
            yield from read_manifest(self.read_manifest_file(each.file_name), each.file_name)

    def read_manifest_file(self, name: str) -> bytes:
        """Return the bytes of a manifest, a list or an index manifest.

        Raises:
            NotFoundError: It is missing, or outside of the permitted locations.
        """
        url = f"{self._location_uri}/{manifest_path(name)}"
        body = self.table.read_file(url)
        if body is None:
            is_served = self.state.owner.kind == "served"
            way = (
                "its snapshot expired, or the file is lost"
                if is_served
                else "import new commits (lakeledger import paimon)"
            )
            raise NotFoundError(
                f"{url}, written by the table's engine, is missing or outside of the permitted "
                f"locations: {way}, or ledger.open(..., allowed_locations=[...])"
            )
        return body

    @property
    def _location_uri(self) -> str:
        return with_scheme(self.paimon.folder(self.table.data_location))

    def _known(self, schema_id: int) -> tuple[DataField, ...]:
        """Return a schema's columns; none for a missing schema, whose bounds cannot be decoded."""
        if schema_id not in self._columns:
            there = schema_id in self.paimon.schemas
            self._columns[schema_id] = self.paimon.schema(schema_id).fields if there else ()
        return self._columns[schema_id]

    def _bucket_folder(self, entry: ManifestEntry, schema: Schema) -> str:
        keys = schema.partition_keys
        types = [schema.field(each).type for each in keys]
        values = list(map(scalar, decode_row(entry.partition, types), types))
        inside = schema.options.get("data-file.path-directory", "").strip("/")
        bucket = bucket_path(PartitionText.of(schema).spec(keys, values), entry.bucket)
        return "/".join(each for each in (self._location_uri, inside, bucket) if each)

    def _keep_key_statistics(self, change: FileChange, columns: Sequence[DataField]) -> FileChange:
        keys = self.state.schema.primary_keys
        if not keys:
            return change
        key_ids = {each.id for each in columns if each.name in keys}
        return replace(
            change,
            **{
                name: {key: each for key, each in found.items() if key in key_ids}
                for name in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")
                if (found := getattr(change, name)) is not UNSET
            },
        )


_ADDED = 0


def _avro_name(name: str) -> str:
    return f"_{name.upper()}"


class _ManifestRecord(msgspec.Struct, frozen=True, rename=_avro_name):
    version: Literal[2]


class ListedPaimonManifest(_ManifestRecord, frozen=True, rename=_avro_name):
    """An entry of a manifest list: one manifest."""

    file_name: str
    file_size: int
    num_added_files: int
    num_deleted_files: int


class _DataFileRecord(msgspec.Struct, frozen=True, rename=_avro_name):
    file_name: str
    file_size: int
    row_count: int
    creation_time: int | None = None
    external_path: str | None = None


class _ManifestEntryRecord(_ManifestRecord, frozen=True, rename=_avro_name):
    kind: Literal[0, 1]
    partition: bytes
    bucket: int
    file: _DataFileRecord
    total_buckets: int = 0


_T = TypeVar("_T", bound=_ManifestRecord)


def listed_manifests(body: bytes, file: str) -> list[ListedPaimonManifest]:
    """Return the manifests that a manifest list names.

    Args:
        body: The whole file.
        file: Its name, for errors.

    Raises:
        DamagedLogError: It is no manifest list, or is truncated or changed.
        MissingDependencyError: The package for the file's codec is not installed.
        UnsupportedError: Its records have an unknown version.
    """
    return _convert_records(read_container(body, file), ListedPaimonManifest, file)


def _convert_records(records: Iterator[dict[str, Any]], kind: type[_T], file: str) -> list[_T]:
    return [_convert_record(each, kind, file) for each in records]


def _convert_record(record: dict[str, Any], kind: type[_T], file: str) -> _T:
    try:
        return msgspec.convert(record, kind)
    except msgspec.ValidationError as error:
        version = record.get("_VERSION")
        if version != MANIFEST_VERSION:
            raise UnsupportedError(
                f"{file} holds records of version {version!r}, and only version "
                f"{MANIFEST_VERSION} is supported: read it with the Paimon that wrote it"
            ) from error
        raise DamagedLogError(
            f"{file} holds a record that is not Paimon's: {error}; restore it from a copy", file
        ) from error


@define
class PaimonPartitions:
    """Decoder from Paimon's binary partitions to the log's form.

    Attributes:
        spec_id: The spec of Paimon's files: identity over the partition keys.
        names: The partition keys.
        types: Their types.
        text: The encoding of their values in paths.
    """

    spec_id: int
    names: tuple[str, ...]
    types: tuple[DataType, ...]
    text: PartitionText
    _known: dict[bytes, tuple[str, tuple[PartitionValue, ...]]] = Factory(dict)

    @classmethod
    def of(cls, state: TableState) -> PaimonPartitions:
        """Return the decoder of a table. Keys never change their order or types.

        Raises:
            UnsupportedError: No spec of the table has its partition keys alone.
        """
        schema = state.schema
        keys = [schema.field(name) for name in schema.partition_keys]
        wanted = [("identity", each.id) for each in keys]
        for spec in state.specs:
            if [(each.transform, each.source_id) for each in spec.fields] == wanted:
                types = tuple(each.type for each in keys)
                return cls(spec.spec_id, schema.partition_keys, types, PartitionText.of(schema))
        raise UnsupportedError(
            f"no partition spec of the table consists of just its partition keys "
            f"{schema.partition_keys}, by which Paimon's files are partitioned"
        )

    def json(self, row: bytes) -> str:
        """Return a partition as a JSON array.

        Raises:
            InvalidInputError: The bytes are not such a partition.
        """
        return self._decode_partition(row)[0]

    def folder(self, row: bytes, bucket: int) -> str:
        """Return the folder of a bucket's files; raises as `json`."""
        values = self._decode_partition(row)[1]
        return bucket_path(self.text.spec(self.names, values), bucket)

    def _decode_partition(self, row: bytes) -> tuple[str, tuple[PartitionValue, ...]]:
        found = self._known.get(row)
        if found is None:
            values = tuple(map(scalar, decode_row(row, self.types), self.types))
            found = msgspec.json.encode(values).decode(), values
            self._known[row] = found
        return found


def entry_rows(body: bytes, part: ManifestPart, partitions: PaimonPartitions) -> Iterator[Row]:
    """Yield a manifest's entries; their paths are empty if not requested.

    Args:
        body: The whole file.
        part: The manifest's list entry and the requested fields.
        partitions: The table's decoder of partitions.

    Raises:
        DamagedLogError: It is no manifest of this table, or is truncated or changed.
        MissingDependencyError: As `listed_manifests`; UnsupportedError likewise.
    """
    file = part.file
    entries: Sequence[_ManifestEntryRecord] = _convert_records(
        read_container(body, file), _ManifestEntryRecord, file
    )
    try:
        for each in entries:
            found = each.file
            path = ""
            if part.compared:
                folder = partitions.folder(each.partition, each.bucket)
                path = found.external_path or f"{folder}/{found.file_name}"
            yield (
                partitions.spec_id,
                partitions.json(each.partition),
                "data",
                1 if each.kind == _ADDED else -1,
                found.row_count,
                found.file_size,
                found.creation_time or 0,
                path,
            )
    except InvalidInputError as error:
        raise DamagedLogError(
            f"{file} holds a partition that does not fit the table's keys: {error}", file
        ) from error


class EntryCounts(NamedTuple):
    """Change of a partition's sums by an entry of a manifest; an entry that deletes subtracts."""

    partition: bytes
    records: int
    size_in_bytes: int
    files: int
    creation_time: int
    total_buckets: int


def entry_counts(body: bytes, file: str) -> Iterator[EntryCounts]:
    """Yield what each entry of a manifest adds to its partition's sums.

    Args:
        body: The whole file.
        file: Its name, for errors.

    Raises:
        DamagedLogError: It is no manifest, or is truncated or changed.
        MissingDependencyError: As `listed_manifests`; UnsupportedError likewise.
    """
    for each in _convert_records(read_container(body, file), _ManifestEntryRecord, file):
        sign = 1 if each.kind == _ADDED else -1
        found = each.file
        yield EntryCounts(
            each.partition,
            sign * found.row_count,
            sign * found.file_size,
            sign,
            found.creation_time or 0,
            each.total_buckets,
        )


@frozen
class PaimonManifests:
    """See `projections.statistics.engine_files.EngineManifests`."""

    def has_named(self, event: SnapshotCommitted) -> bool:
        """Return whether a snapshot names a delta list, which only Paimon's engines write."""
        return delta_list(event) is not None

    def lists(self, event: SnapshotCommitted, asked: Asked) -> Iterator[NamedManifestList]:
        """Yield the delta list, and before it the base list if all entries are requested."""
        delta = event.delta_manifest_list, event.delta_manifest_list_size
        base = event.base_manifest_list, event.base_manifest_list_size
        is_whole = asked == "contents" or event.snapshot_id == 1
        for name, size in (base, delta) if is_whole else (delta,):
            if not isinstance(name, UnsetType):
                path = manifest_path(name)
                yield NamedManifestList(path, None if isinstance(size, UnsetType) else size)

    def listed(
        self, body: bytes, file: str, event: SnapshotCommitted, asked: Asked
    ) -> list[ListedManifest]:
        """Return the manifests of a list; all of their entries count."""
        del event, asked
        return [
            ListedManifest(
                path=manifest_path(each.file_name),
                size=each.file_size,
                count=each.num_added_files + each.num_deleted_files,
            )
            for each in listed_manifests(body, file)
        ]

    def reader(self, state: TableState, schemas: Callable[[], Iterator[Schema]]) -> ManifestReader:
        """Return the reader of a table's manifests."""
        del schemas
        partitions = PaimonPartitions.of(state)
        return lambda body, part: entry_rows(body, part, partitions)


PAIMON = PaimonManifests()
