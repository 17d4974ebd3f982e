"""Paimon's manifest lists as parts, and its manifests as rows.

Only what the statistics ask of an entry is taken from it. A base list holds all entries before a
snapshot's own, merged or not: added up with their signs they are the files live before it.

Source: Paimon's ManifestFileMeta, ManifestEntry and DataFileMeta.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeVar

import msgspec
from attrs import Factory, define, frozen
from msgspec import UnsetType

from ledger.events.snapshot_events import SnapshotCommitted
from ledger.evolution.state import TableState
from ledger.model.errors import DamagedLogError, InvalidInputError, UnsupportedError
from ledger.model.file_change import PartitionValue
from ledger.model.schema import Schema
from ledger.model.types import DataType
from projections.manifest_files.container import read_container
from projections.manifest_files.lists import delta_list
from projections.paimon.manifests.avro import MANIFEST_VERSION
from projections.paimon.paths import bucket_path, manifest_path
from projections.paimon.rows.binary_row import decode_row
from projections.paimon.rows.values import scalar
from projections.partition_text import PartitionText
from projections.statistics.reading.engine_manifests import (
    Asked,
    ListedManifest,
    ManifestReader,
    NamedList,
)
from projections.statistics.reading.manifest_part import ManifestPart, Row

_ADDED = 0


def _avro_name(name: str) -> str:
    return f"_{name.upper()}"


class _Record(msgspec.Struct, frozen=True, rename=_avro_name):
    version: Literal[2]


class PaimonListed(_Record, frozen=True, rename=_avro_name):
    """What a manifest list says of a manifest."""

    file_name: str
    file_size: int
    num_added_files: int
    num_deleted_files: int


class _File(msgspec.Struct, frozen=True, rename=_avro_name):
    file_name: str
    file_size: int
    row_count: int
    creation_time: int | None = None
    external_path: str | None = None


class _Entry(_Record, frozen=True, rename=_avro_name):
    kind: Literal[0, 1]
    partition: bytes
    bucket: int
    file: _File


_T = TypeVar("_T", bound=_Record)


def listed_manifests(body: bytes, file: str) -> list[PaimonListed]:
    """Return what a manifest list names.

    Args:
        body: The whole file.
        file: Its name, for errors.

    Raises:
        DamagedLogError: It is no manifest list, or is cut or changed.
        MissingDependencyError: The package for the file's codec is not installed.
        UnsupportedError: Its records have a version that this reader does not know.
    """
    return _converted(read_container(body, file), PaimonListed, file)


def _converted(records: Iterator[dict[str, Any]], kind: type[_T], file: str) -> list[_T]:
    return [_record(each, kind, file) for each in records]


def _record(record: dict[str, Any], kind: type[_T], file: str) -> _T:
    try:
        return msgspec.convert(record, kind)
    except msgspec.ValidationError as error:
        version = record.get("_VERSION")
        if version != MANIFEST_VERSION:
            raise UnsupportedError(
                f"{file} holds records of version {version!r}, and this reads version "
                f"{MANIFEST_VERSION}: read it with the Paimon that wrote it"
            ) from error
        raise DamagedLogError(
            f"{file} holds a record that is none of Paimon's: {error}; restore it from a copy", file
        ) from error


@define
class PaimonPartitions:
    """Partitions as Paimon's entries have them, in the log's form.

    Attributes:
        spec_id: The spec that Paimon's files are of: identity over the partition keys.
        names: The partition keys.
        types: Their types.
        text: How their values are written in paths.
    """

    spec_id: int
    names: tuple[str, ...]
    types: tuple[DataType, ...]
    text: PartitionText
    _known: dict[bytes, tuple[str, tuple[PartitionValue, ...]]] = Factory(dict)

    @classmethod
    def of(cls, state: TableState) -> PaimonPartitions:
        """Return those of a table. Keys keep their order and types for ever.

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
            f"no partition spec of the table is made of its partition keys {schema.partition_keys} "
            "alone, by which Paimon's files are partitioned"
        )

    def json(self, row: bytes) -> str:
        """Return a partition as a JSON array.

        Raises:
            InvalidInputError: The bytes are no such partition.
        """
        return self._decoded(row)[0]

    def folder(self, row: bytes, bucket: int) -> str:
        """Return where Paimon keeps the files of a bucket; raises as `json`."""
        values = self._decoded(row)[1]
        return bucket_path(self.text.spec(self.names, values), bucket)

    def _decoded(self, row: bytes) -> tuple[str, tuple[PartitionValue, ...]]:
        found = self._known.get(row)
        if found is None:
            values = tuple(map(scalar, decode_row(row, self.types), self.types))
            found = msgspec.json.encode(values).decode(), values
            self._known[row] = found
        return found


def entry_rows(body: bytes, part: ManifestPart, partitions: PaimonPartitions) -> Iterator[Row]:
    """Yield a manifest's entries; their paths are empty where nobody asks for them.

    Args:
        body: The whole file.
        part: What is known of it.
        partitions: The table's.

    Raises:
        DamagedLogError: It is no manifest of this table, or is cut or changed.
        MissingDependencyError: As `listed_manifests`; UnsupportedError likewise.
    """
    file = part.file
    entries: Sequence[_Entry] = _converted(read_container(body, file), _Entry, file)
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
            f"{file} holds a partition that is none of the table's: {error}", file
        ) from error


@frozen
class PaimonManifests:
    """See `projections.statistics.reading.engine_manifests.EngineManifests`."""

    def has_named(self, event: SnapshotCommitted) -> bool:
        """Whether a snapshot names a delta list, which no other format's engines write."""
        return delta_list(event) is not None

    def lists(self, event: SnapshotCommitted, asked: Asked) -> Iterator[NamedList]:
        """Yield the delta list, and before it the base list where all is asked for."""
        delta = event.delta_manifest_list, event.delta_manifest_list_size
        base = event.base_manifest_list, event.base_manifest_list_size
        is_whole = asked == "contents" or event.snapshot_id == 1
        for name, size in (base, delta) if is_whole else (delta,):
            if not isinstance(name, UnsetType):
                path = manifest_path(name)
                yield NamedList(path, None if isinstance(size, UnsetType) else size)

    def listed(
        self, body: bytes, file: str, event: SnapshotCommitted, asked: Asked
    ) -> list[ListedManifest]:
        """Return the manifests of a list, all of whose entries count."""
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
        """Return what reads a table's manifests."""
        del schemas
        partitions = PaimonPartitions.of(state)
        return lambda body, part: entry_rows(body, part, partitions)


PAIMON = PaimonManifests()
