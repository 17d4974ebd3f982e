"""What manifests of engines list, of a table that was born in Paimon: its files at a snapshot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from attrs import Factory, define
from msgspec import UNSET
from msgspec.structs import replace

from ledger.evolution.state import TableState
from ledger.evolution.table.origin.paimon import PaimonOrigin
from ledger.locations import with_scheme
from ledger.model.errors import DamagedLogError, InvalidInputError, NotFoundError
from ledger.model.file_change import FileChange
from ledger.model.schema import Schema
from ledger.model.snapshot import Snapshot
from ledger.model.types import DataField
from ledger.table import Table
from projections.paimon.manifests.avro import read_manifest, read_manifest_list
from projections.paimon.manifests.entries import file_change
from projections.paimon.manifests.records import ManifestEntry
from projections.paimon.paths import bucket_path, manifest_path
from projections.paimon.rows.binary_row import decode_row
from projections.paimon.rows.values import scalar
from projections.partition_text import PartitionText

_Key = tuple[bytes, int, int, str]


def engine_files(table: Table, state: TableState) -> tuple[FileChange, ...]:
    """Return the live files of a table at a state, as its engines' manifests list them.

    They are named by their whole places. Of a table with a primary key only the key's bounds are
    told: another column's may be those of a row that a newer file replaces, and nobody may leave
    a file out by them.

    Raises:
        NotFoundError: A manifest is gone, or lies where nobody allowed to read.
        DamagedLogError: A manifest is damaged, or takes away what was never there.
    """
    if state.snapshot is None:
        return ()
    paimon = state.imported_from(PaimonOrigin)
    return tuple(_Files(table, state, paimon).live(state.snapshot))


@define
class _Files:
    table: Table
    state: TableState
    paimon: PaimonOrigin
    _columns: dict[int, tuple[DataField, ...]] = Factory(dict)

    def live(self, snapshot: Snapshot) -> Iterator[FileChange]:
        """Yield the live files of a snapshot."""
        found: dict[_Key, ManifestEntry] = {}
        lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
        for name in (each for each in lists if each is not None):
            for entry in self._entries(name):
                file = entry.file
                key = (entry.partition, entry.bucket, file.level, file.file_name)
                if entry.kind == "ADD":
                    found[key] = entry
                elif found.pop(key, None) is None:
                    raise DamagedLogError(
                        f"{name} takes away {file.file_name}, which was never there", name
                    )
        schema = self.state.schema
        types = [schema.field(each).type for each in schema.partition_keys]
        for entry in found.values():
            columns = self._known(entry.file.schema_id)
            try:
                change = file_change(
                    entry, spec_types=types, columns=columns, folder=self._folder(entry, schema)
                )
            except InvalidInputError as error:
                name = entry.file.file_name
                raise DamagedLogError(f"the entry of {name} is none: {error}", name) from error
            yield self._bounded(change, columns)

    def _entries(self, name: str) -> Iterator[ManifestEntry]:
        for each in read_manifest_list(self._read(name), name):
            yield from read_manifest(self._read(each.file_name), each.file_name)

    def _read(self, name: str) -> bytes:
        url = f"{self._uri}/{manifest_path(name)}"
        body = self.table.read_file(url)
        if body is None:
            raise NotFoundError(
                f"{url}, which the table's engine wrote, is gone, or lies where nobody allowed to "
                "read: take over what is new (lakeledger import paimon), or ledger.open(..., "
                "allowed_locations=[...])"
            )
        return body

    @property
    def _uri(self) -> str:
        return with_scheme(self.paimon.location)

    def _known(self, schema_id: int) -> tuple[DataField, ...]:
        """Return a schema's columns; none of one that is gone, whose bounds nobody can read."""
        if schema_id not in self._columns:
            there = schema_id in self.paimon.schemas
            self._columns[schema_id] = self.paimon.schema(schema_id).fields if there else ()
        return self._columns[schema_id]

    def _folder(self, entry: ManifestEntry, schema: Schema) -> str:
        keys = schema.partition_keys
        types = [schema.field(each).type for each in keys]
        values = list(map(scalar, decode_row(entry.partition, types), types))
        inside = schema.options.get("data-file.path-directory", "").strip("/")
        bucket = bucket_path(PartitionText.of(schema).spec(keys, values), entry.bucket)
        return "/".join(each for each in (self._uri, inside, bucket) if each)

    def _bounded(self, change: FileChange, columns: Sequence[DataField]) -> FileChange:
        keys = self.state.schema.primary_keys
        if not keys:
            return change
        told = {each.id for each in columns if each.name in keys}
        return replace(
            change,
            **{
                name: {key: each for key, each in found.items() if key in told}
                for name in ("value_counts", "null_value_counts", "lower_bounds", "upper_bounds")
                if (found := getattr(change, name)) is not UNSET
            },
        )
