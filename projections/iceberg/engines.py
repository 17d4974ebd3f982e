"""What manifests of engines list, of a table that was born in Iceberg: its files at a snapshot."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from attrs import frozen
from msgspec import UNSET, UnsetType

from ledger.evolution.state import TableState
from ledger.evolution.table.origin.iceberg import IcebergOrigin
from ledger.model import types as t
from ledger.model.errors import LedgerError, NotFoundError, UnsupportedError
from ledger.model.file_change import FileChange
from ledger.model.iceberg.snapshot import IcebergSnapshot
from ledger.model.transforms.paths import field_types
from ledger.model.transforms.values import decode_value, encode_value
from ledger.table import Table
from projections.iceberg.manifests.entry import ManifestEntry
from projections.iceberg.manifests.file import ManifestFile, Part, wherever
from projections.iceberg.manifests.partition_struct import FieldSummary, PartitionStruct
from projections.iceberg.manifests.reading import read_manifest
from projections.manifest_files.container import read_container, telling_damage

_CONTENTS: Final = ("data", "position-deletes", "equality-deletes")


def engine_files(table: Table, state: TableState) -> tuple[FileChange, ...]:
    """Return the live files of a table at a state, as an engine's manifests list them.

    A deletion vector is called by its file, `#` and where in it it begins. The schema of a file is
    the state's, and its time that of the snapshot that added it.

    Raises:
        NotFoundError: A manifest is gone, or lies where nobody allowed to read.
        UnsupportedError: The snapshot names its manifests in a way that is not read here.
        DamagedLogError: A manifest is damaged.
    """
    if state.snapshot is None:
        return ()
    born = state.imported_from(IcebergOrigin)
    manifests = EngineManifests(state, born, table.read_file)
    return tuple(manifests.files(born.snapshots[state.snapshot.id]))


@frozen
class EngineManifests:
    """The manifests of the snapshots that engines made.

    Attributes:
        state: The table.
        born: What it has of Iceberg.
        read: Reads a file by its URL; None where it is gone.
    """

    state: TableState
    born: IcebergOrigin
    read: Callable[[str], bytes | None]

    def files(self, snapshot: IcebergSnapshot) -> Iterator[FileChange]:
        """Yield the live files of a snapshot; raises as `engine_files`."""
        structs = self.structs()
        for each in self.listed(snapshot):
            struct = structs.get(each.part.spec_id)
            if struct is None:
                raise UnsupportedError(
                    f"{each.path} is of partition spec {each.part.spec_id}, which the table does "
                    "not have: have its owner put the table's metadata right, then import that"
                )
            for entry in read_manifest(self.body(each.path), each, struct):
                yield self._change(entry, struct)

    def listed(self, snapshot: IcebergSnapshot) -> tuple[ManifestFile, ...]:
        """Return the manifests of a snapshot that have live files; raises as `engine_files`."""
        if snapshot.manifest_list is None:
            raise UnsupportedError(
                f"snapshot {snapshot.snapshot_id} has no manifest list, as very old writers left "
                "it: let its owner commit once more"
            )
        found = self.said(self.body(snapshot.manifest_list), snapshot.manifest_list)
        return tuple(each for each in found if each.live_files)

    def said(self, body: bytes, url: str) -> Iterator[ManifestFile]:
        """Yield what a manifest list names.

        Args:
            body: Its bytes.
            url: Where it is, for messages.

        Raises:
            DamagedLogError: It is none.
            UnsupportedError: A manifest is encrypted.
        """
        records = read_container(body, url)
        with telling_damage(url):
            found = [wherever(_manifest(each), place) for place, each in enumerate(records)]
        yield from found

    def body(self, url: str) -> bytes:
        """Return a file.

        Raises:
            NotFoundError: It is gone, or lies where nobody allowed to read.
        """
        body = self.read(url)
        if body is None:
            raise NotFoundError(
                f"{url}, which the table's engine wrote, is gone, or lies where nobody allowed to "
                "read: ledger.open(..., allowed_locations=[...])"
            )
        return body

    def structs(self) -> dict[int, PartitionStruct]:
        """Return the partition struct of every spec."""
        types = source_types(self.state, self.born)
        return {each.spec_id: PartitionStruct.of(each, types) for each in self.state.specs}

    def _change(self, entry: ManifestEntry, struct: PartitionStruct) -> FileChange:
        file = entry.file
        added_by = self.born.snapshots.get(entry.snapshot_id) or self.born.current
        values = zip(struct.columns, entry.partition, strict=True)
        try:
            partition = tuple(encode_value(value, each.type) for each, value in values)
            for each, value in zip(struct.columns, partition, strict=True):
                decode_value(value, each.type)
        except (LedgerError, ValueError, TypeError) as error:
            raise UnsupportedError(f"the partition of {entry.path} is none: {error}") from error
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
            value_counts=_mapped(file, "value_counts"),
            null_value_counts=_mapped(file, "null_value_counts"),
            lower_bounds=_mapped(file, "lower_bounds"),
            upper_bounds=_mapped(file, "upper_bounds"),
            first_row_id=UNSET if entry.first_row_id is None else entry.first_row_id,
            # What is in no order says nothing of it.
            sort_order_id=file.get("sort_order_id") or UNSET,
            equality_ids=tuple(file.get("equality_ids") or ()) or UNSET,
            referenced_data_file=_said(file, "referenced_data_file"),
            content_offset=_said(file, "content_offset"),
            content_size_in_bytes=_said(file, "content_size_in_bytes"),
        )


def source_types(state: TableState, born: IcebergOrigin) -> Mapping[int, t.DataType]:
    """Return the types of all columns by field id; dropped ones have the type they had last."""
    found: dict[int, t.DataType] = {}
    for each in born.schemas:
        found |= field_types(born.schema_of(each, state.schema))
    wanted = {field.source_id for spec in state.specs for field in spec.fields}
    return {**dict.fromkeys(wanted, t.UnknownType()), **found}


def _said(file: Mapping[str, Any], name: str) -> Any:
    return UNSET if file.get(name) is None else file[name]


def _mapped(file: Mapping[str, Any], name: str) -> dict[int, Any] | UnsetType:
    pairs = file.get(name)
    if not pairs:
        return UNSET
    return {each["key"]: _plain(each["value"]) for each in pairs}


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else value


def _manifest(record: Mapping[str, Any]) -> ManifestFile:
    """Return what a list says of an engine's manifest."""
    if record.get("key_metadata") is not None:
        raise UnsupportedError(f"{record['manifest_path']} is encrypted, and cannot be read here")
    content, first_row_id = record.get("content") or 0, record.get("first_row_id")
    rows = _count(record, "added", "rows") + _count(record, "existing", "rows")
    return ManifestFile(
        part=Part(0, 0, record["partition_spec_id"], content, 0),
        path=record["manifest_path"],
        length=record["manifest_length"],
        check="",
        low=(0, ""),
        high=(0, ""),
        sequence_number=record.get("sequence_number") or 0,
        min_sequence_number=record.get("min_sequence_number") or 0,
        added_snapshot_id=record["added_snapshot_id"],
        added_files=_count(record, "added", "files"),
        existing_files=_count(record, "existing", "files"),
        deleted_files=_count(record, "deleted", "files"),
        added_rows=_count(record, "added", "rows"),
        existing_rows=_count(record, "existing", "rows"),
        deleted_rows=_count(record, "deleted", "rows"),
        partitions=_summaries(record.get("partitions")),
        first_row_id=first_row_id,
        new_rows=0 if content or first_row_id is not None else rows,
    )


def _count(record: Mapping[str, Any], kind: str, what: str) -> int:
    """Return a count; 1 where version 1 does not say, so that the manifest is looked into."""
    found = record.get(f"{kind}_{what}_count", record.get(f"{kind}_data_{what}_count"))
    return 1 if found is None else int(found)


def _summaries(found: Any) -> tuple[FieldSummary, ...] | None:
    if found is None:
        return None
    names = ("contains_null", "contains_nan", "lower_bound", "upper_bound")
    return tuple(FieldSummary(*(each.get(name) for name in names)) for each in found)
