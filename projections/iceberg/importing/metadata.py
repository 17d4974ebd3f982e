"""A born table's state as Iceberg's metadata, and the parts of metadata as the ledger has them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from attrs import evolve, frozen
from msgspec.structs import replace

from ledger.events.born import iceberg as e
from ledger.evolution.declared.rules import FORMATS_OPTION
from ledger.evolution.state import TableState
from ledger.evolution.table.origin.iceberg import IcebergOrigin
from ledger.model.errors import UnsupportedError
from ledger.model.iceberg.snapshot import MAIN, EncryptionKey, IcebergSnapshot, SnapshotLogEntry
from projections.iceberg.importing.moved import moved_on
from projections.iceberg.importing.schemas import source_schema
from projections.iceberg.metadata import schema as iceberg
from projections.iceberg.metadata.table import TableMetadata, knowing


def _of_nobody(snapshot_id: int) -> str:
    raise UnsupportedError(f"snapshot {snapshot_id} has no manifest list")


def metadata_of(state: TableState, list_of: Callable[[int], str] = _of_nobody) -> TableMetadata:
    """Return what Iceberg says of a table that was born there, at a version.

    Where the version stands amid what one file of the source says, the time of the file is that
    of the commit.

    Args:
        state: The table.
        list_of: Gives the manifest list of a snapshot that the ledger made.

    Raises:
        UnsupportedError: The table was not born in Iceberg.
    """
    born = state.imported_from(IcebergOrigin)
    return _metadata(
        state,
        born,
        tuple(_snapshot(each, list_of) for each in born.snapshots.values()),
        born.snapshot_log,
    )


@frozen
class Standing:
    """A table at a version, and the same in Iceberg's words."""

    state: TableState
    metadata: TableMetadata


def standing(state: TableState, file: TableMetadata, before: Standing | None = None) -> Standing:
    """Return a table in Iceberg's words, as `metadata_of` says them.

    What a file of its source says just so is taken from there, and what stood before from before:
    a long history is neither put into words nor compared again.

    Args:
        state: The table.
        file: What a file of the source says.
        before: The same of an earlier version.

    Raises:
        UnsupportedError: The table was not born in Iceberg.
    """
    born = state.imported_from(IcebergOrigin)
    had = None if before is None else before.state.imported_from(IcebergOrigin)
    if before is None or had is None or not _goes_on(had, born):
        made = _metadata(state, born, _like(born, file), _entries_like(born, file))
        return Standing(state, made)
    said = before.metadata
    dropped, logged = moved_on(had.snapshot_log, born.snapshot_log)
    more = islice(born.snapshots.values(), len(had.snapshots), None)
    made = _metadata(
        state,
        born,
        (*said.snapshots, *(_snapshot(each, _of_nobody) for each in more)),
        (*said.snapshot_log[dropped:], *logged),
    )
    if list(born.schemas.values()) == list(had.schemas.values()):
        made = evolve(made, schemas=said.schemas)
    return Standing(state, knowing(made, said))


def as_said(state: TableState, file: TableMetadata) -> Standing:
    """Return a table in Iceberg's words that says what a file of its source does, all of it."""
    made = _metadata(state, state.imported_from(IcebergOrigin), file.snapshots, file.snapshot_log)
    return Standing(state, knowing(made, file))


def _goes_on(had: IcebergOrigin, has: IcebergOrigin) -> bool:
    """Whether a table has the snapshots that it had, just so, and perhaps some more."""
    before = list(had.snapshots.values())
    return list(islice(has.snapshots.values(), len(before))) == before


def _entries_like(born: IcebergOrigin, file: TableMetadata) -> tuple[SnapshotLogEntry, ...]:
    there = file.snapshot_log[: len(born.snapshot_log)]
    return there if there == born.snapshot_log else born.snapshot_log


def _like(born: IcebergOrigin, file: TableMetadata) -> tuple[IcebergSnapshot, ...]:
    """Return a table's snapshots: those that a file has just so as it has them, in its order."""
    ours = born.snapshots
    same = {each.snapshot_id: each for each in file.snapshots if ours.get(each.snapshot_id) == each}
    others = (each for key, each in ours.items() if key not in same)
    return (*same.values(), *(_snapshot(each, _of_nobody) for each in others))


def _metadata(
    state: TableState,
    born: IcebergOrigin,
    snapshots: tuple[IcebergSnapshot, ...],
    snapshot_log: tuple[SnapshotLogEntry, ...],
) -> TableMetadata:
    whole = born.synced_in == state.version
    main = born.refs.get(MAIN)
    return TableMetadata(
        format_version=born.format_version,
        table_uuid=born.table_uuid,
        location=born.location,
        last_sequence_number=born.last_sequence_number,
        last_updated_ms=born.last_updated_millis if whole else state.effective_millis,
        last_column_id=state.schema.highest_field_id,
        current_schema_id=born.schema_id,
        schemas=tuple(_schema(each, born.format_version) for each in born.schemas.values()),
        default_spec_id=state.default_spec_id,
        partition_specs=tuple(state.specs),
        last_partition_id=state.last_partition_id,
        default_sort_order_id=state.default_order_id,
        sort_orders=state.sort_orders,
        # Neither has an order that means anything, and a checkpoint keeps none.
        properties=dict(sorted(without_formats(state.schema.options).items())),
        current_snapshot_id=None if main is None else main.snapshot_id,
        next_row_id=born.next_row_id,
        encryption_keys=tuple(born.encryption_keys.values()),
        refs=dict(sorted(born.refs.items())),
        snapshots=snapshots,
        statistics=tuple(born.statistics.values()),
        partition_statistics=tuple(each for _, each in sorted(state.partition_statistics.items())),
        snapshot_log=snapshot_log,
        metadata_log=born.metadata_log,
    )


def _snapshot(snapshot: IcebergSnapshot, list_of: Callable[[int], str]) -> IcebergSnapshot:
    if snapshot.manifest_list is None and snapshot.manifests is None:
        return replace(snapshot, manifest_list=list_of(snapshot.snapshot_id))
    return snapshot


_MOST_KNOWN = 20_000
_known_schemas: dict[int, tuple[e.IcebergSchema, int, iceberg.Schema]] = {}
"""Schemas of a format version by the identity of the state's, which is held to keep it."""


def _schema(schema: e.IcebergSchema, format_version: int) -> iceberg.Schema:
    known = _known_schemas.get(id(schema))
    if known is None or known[1] != format_version:
        if len(_known_schemas) >= _MOST_KNOWN:
            _known_schemas.clear()
        made = source_schema(schema, format_version)
        known = _known_schemas[id(schema)] = schema, format_version, made
    return known[2]


def disagreements(made: TableMetadata, source: TableMetadata) -> list[str]:
    """Return the names of what two metadata files say differently; order has no meaning there."""
    return [
        name
        for name, (one, other) in {
            **{
                each: (getattr(made, each), getattr(source, each))
                for each in (
                    "format_version",
                    "table_uuid",
                    "location",
                    "last_sequence_number",
                    "last_updated_ms",
                    "last_column_id",
                    "current_schema_id",
                    "schemas_by_id",
                    "default_spec_id",
                    "specs_by_id",
                    "last_partition_id",
                    "default_sort_order_id",
                    "orders_by_id",
                    "current_snapshot_id",
                    "next_row_id",
                    "snapshot_log",
                    "metadata_log",
                )
            },
            "snapshots_by_id": _each_by_id(made, source),
            "properties": (made.properties, without_formats(source.properties)),
            "refs": (dict(made.refs), dict(source.refs)),
            "encryption_keys": (_by(made, "key_id"), _by(source, "key_id")),
            "statistics": (_files(made.statistics), _files(source.statistics)),
            "partition_statistics": (
                _files(made.partition_statistics),
                _files(source.partition_statistics),
            ),
        }.items()
        if one != other
    ]


def _each_by_id(made: TableMetadata, source: TableMetadata) -> tuple[object, object]:
    if made.snapshots == source.snapshots:
        return (), ()
    return made.snapshots_by_id, source.snapshots_by_id


def without_formats(properties: Mapping[str, str]) -> dict[str, str]:
    """Return a source's properties without the one that the ledger's own table has."""
    return {key: each for key, each in properties.items() if key != FORMATS_OPTION}


def _by(metadata: TableMetadata, key: str) -> dict[str, EncryptionKey]:
    return {getattr(each, key): each for each in metadata.encryption_keys}


def _files(files: Any) -> dict[int, Any]:
    return {each.snapshot_id: each for each in files}
