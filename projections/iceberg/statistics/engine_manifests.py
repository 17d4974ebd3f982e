"""Iceberg's manifest lists as parts, and its manifests as rows.

A list names every manifest of its snapshot. What the snapshot did stands in those that it added:
their entries of status ADDED and DELETED. Iceberg keeps no time of a file: its snapshot's stands
for it.

Source: the Iceberg table specification, "Manifest Lists", "Manifest Entry Fields", "Data File
Fields" and "Snapshot ID inheritance".
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from typing import Any, Literal, TypeVar

import msgspec
from attrs import Factory, define, frozen
from msgspec import UnsetType

from ledger.events.snapshot_events import SnapshotCommitted
from ledger.evolution.state import TableState
from ledger.model import types as t
from ledger.model.errors import DamagedLogError, LedgerError, NotFoundError
from ledger.model.schema import Schema
from ledger.model.transforms.paths import field_types
from ledger.model.transforms.values import encode_value
from ledger.model.types.numbers import whole_number
from projections.iceberg.manifests.partition_struct import PartitionStruct
from projections.manifest_files.container import read_container
from projections.manifest_files.lists import delta_list
from projections.statistics.definition import content_of
from projections.statistics.reading.engine_manifests import (
    Asked,
    ListedManifest,
    ManifestReader,
    NamedList,
)
from projections.statistics.reading.manifest_part import NOBODY, ManifestPart, Row

ADDED, DELETED = 1, 2
"""Status of an entry; 0 is EXISTING."""

_CONTENTS = ("data", "position-deletes", "equality-deletes")
_SNAPSHOT_ID = "snapshot-id"


class IcebergListed(msgspec.Struct, frozen=True):
    """What a manifest list says of a manifest; version 1 may leave the counts out."""

    manifest_path: str
    manifest_length: int
    partition_spec_id: int
    added_snapshot_id: int
    added_files_count: int | None = None
    existing_files_count: int | None = None
    deleted_files_count: int | None = None

    @property
    def live_count(self) -> int:
        """How many live files it has; 1 where it does not say."""
        counts = (self.added_files_count, self.existing_files_count)
        return 1 if None in counts else sum(filter(None, counts))

    @property
    def changed_count(self) -> int:
        """How many files came or went in it; 1 where it does not say."""
        counts = (self.added_files_count, self.deleted_files_count)
        return 1 if None in counts else sum(filter(None, counts))


@frozen
class ManifestList:
    """A snapshot's manifest list.

    Attributes:
        snapshot_id: Iceberg's id of the snapshot, as the file's header has it.
        manifests: What it names.
    """

    snapshot_id: int | None
    manifests: tuple[IcebergListed, ...]


class _File(msgspec.Struct, frozen=True):
    file_path: str
    file_format: str
    partition: dict[str, Any]
    record_count: int
    file_size_in_bytes: int
    content: Literal[0, 1, 2] = 0
    content_offset: int | None = None


class _Entry(msgspec.Struct, frozen=True):
    status: Literal[0, 1, 2]
    data_file: _File
    snapshot_id: int | None = None


_T = TypeVar("_T")


def manifest_list(body: bytes, file: str) -> ManifestList:
    """Return what a manifest list names.

    Args:
        body: The whole file.
        file: Its name, for errors.

    Raises:
        DamagedLogError: It is no manifest list, or is cut or changed.
        MissingDependencyError: The package for the file's codec is not installed.
    """
    import fastavro

    manifests = _converted(read_container(body, file), IcebergListed, file)
    # The container was read whole, so that its header is sound.
    said = str((fastavro.reader(io.BytesIO(body)).metadata or {}).get(_SNAPSHOT_ID, ""))
    return ManifestList(whole_number(said) if said.isascii() else None, tuple(manifests))


def _converted(records: Iterator[dict[str, Any]], kind: type[_T], file: str) -> list[_T]:
    try:
        return [msgspec.convert(each, kind) for each in records]
    except msgspec.ValidationError as error:
        raise DamagedLogError(
            f"{file} holds a record that is none of Iceberg's: {error}; restore it from a copy",
            file,
        ) from error


@define
class IcebergPartitions:
    """Partitions as Iceberg's entries have them, in the log's form.

    Attributes:
        state: The table's: its specs.
        schemas: Gives all of its schemas, newest first, for columns that were dropped.
    """

    state: TableState
    schemas: Callable[[], Iterator[Schema]]
    _structs: dict[int, PartitionStruct] = Factory(dict)
    _known: dict[tuple[int, tuple[Any, ...]], str] = Factory(dict)

    def json(self, spec_id: int, values: tuple[Any, ...]) -> str:
        """Return a partition as a JSON array.

        Args:
            spec_id: Its spec.
            values: As Avro has them, in the order of the spec's fields.

        Raises:
            NotFoundError: The table has no such spec.
            ValueError, TypeError, LedgerError: They are no such values.
        """
        key = (spec_id, values)
        found = self._known.get(key)
        if found is None:
            pairs = zip(self._struct(spec_id).columns, values, strict=True)
            plain = [encode_value(column.from_avro(value), column.type) for column, value in pairs]
            found = msgspec.json.encode(plain).decode()
            self._known[key] = found
        return found

    def _struct(self, spec_id: int) -> PartitionStruct:
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
    """Yield a manifest's entries: those of the snapshot that is wanted, or all that are live.

    Args:
        body: The whole file.
        part: What is known of it.
        partitions: The table's.

    Raises:
        DamagedLogError: It is no manifest of this table, or is cut or changed.
        MissingDependencyError: As `manifest_list`.
    """
    file, spec_id, adder = part.file, part.spec_id, part.adder
    for each in _converted(read_container(body, file), _Entry, file):
        if adder == NOBODY:
            wanted = each.status != DELETED
        else:
            # An entry without a snapshot is of the one that added the manifest.
            by = adder if each.snapshot_id is None else each.snapshot_id
            wanted = each.status in (ADDED, DELETED) and by == adder
        if not wanted:
            continue
        found = each.data_file
        offset = "" if found.content_offset is None else f"#{found.content_offset}"
        yield (
            spec_id,
            _partition(partitions, spec_id, found, file),
            content_of(_CONTENTS[found.content], found.file_format.lower()),
            -1 if each.status == DELETED else 1,
            found.record_count,
            found.file_size_in_bytes,
            part.time_millis,
            found.file_path + offset,
        )


def _partition(partitions: IcebergPartitions, spec_id: int, found: _File, file: str) -> str:
    try:
        return partitions.json(spec_id, tuple(found.partition.values()))
    except NotFoundError as error:
        raise DamagedLogError(
            f"{file} is of a spec that the table has not: {error}", file
        ) from error
    except (LedgerError, ValueError, TypeError, AttributeError, OverflowError) as error:
        raise DamagedLogError(
            f"{file} holds a partition {list(found.partition.values())!r:.80} that does not fit "
            f"spec {spec_id}: {error}",
            file,
        ) from error


@frozen
class IcebergManifests:
    """See `projections.statistics.reading.engine_manifests.EngineManifests`."""

    def has_named(self, event: SnapshotCommitted) -> bool:
        """Whether a snapshot names one list, as its base list."""
        return delta_list(event) is None

    def lists(self, event: SnapshotCommitted, asked: Asked) -> Iterator[NamedList]:
        """Yield the one list, which says both what a snapshot did and what it holds."""
        del asked
        name, size = event.base_manifest_list, event.base_manifest_list_size
        if not isinstance(name, UnsetType):
            yield NamedList(name, None if isinstance(size, UnsetType) else size)

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
        """Return what reads a table's manifests."""
        partitions = IcebergPartitions(state, schemas)
        return lambda body, part: entry_rows(body, part, partitions)


ICEBERG = IcebergManifests()
